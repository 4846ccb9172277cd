"""Actors that sleep: their jobs go on at an instant that is near, so they stay, with their open logs.

A task of its own for each would weigh more than all the rest of it (`docs/adr/0033`): one is started when
a message or that instant comes.
"""

from collections.abc import Callable

import anyio

from .disk import Disk
from .entry import JobEntry
from .job import JobActor


class Sleepers:
    """By job; `go_on` starts the task in which whoever was woken is taken out and goes on."""

    def __init__(self, disk: Disk, go_on: Callable[[JobEntry], None]) -> None:
        self._disk = disk
        self._go_on = go_on
        self._actors: dict[str, JobActor] = {}
        self._woken: set[str] = set()

    def __contains__(self, job: str) -> bool:
        """Whether this job's actor sleeps, with no task."""
        return job in self._actors and job not in self._woken

    def lay(self, actor: JobActor) -> None:
        """This one sleeps from now on; what its entry holds empty is dropped."""
        self._actors[actor.entry.id] = actor
        actor.entry.slim()

    def wake(self, entry: JobEntry) -> None:
        """If its actor sleeps, it goes on; a second call before it does so changes nothing."""
        if entry.id in self:
            self._woken.add(entry.id)
            self._go_on(entry)

    def take(self, entry: JobEntry) -> JobActor | None:
        """Its actor, when it slept; it does not any more."""
        self._woken.discard(entry.id)
        return self._actors.pop(entry.id, None)

    async def close(self) -> None:
        """Close the logs of those that nobody wakes any more: their jobs go on from the files."""
        with anyio.CancelScope(shield=True):
            for actor in self._actors.values():
                await self._disk.call(actor.journal.close)
        self._actors.clear()
