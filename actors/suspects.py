"""Suspects: units whose tries died twice in a row start alone, over all jobs of the store.

The next starts when the last has ended or has lived a while; who waits meanwhile asks for no slot.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from attrs import define

from resumed.schemas import events
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import Snapshot

from .clock import Clock
from .entry import JobEntry
from .machine import due
from .mailbox import Message
from .pools import Key

SUSPECT_SECONDS = 5.0
"""How long a suspect try holds the others back, unless it ends first (DESIGN.md section 3)."""


class Desk(Protocol):
    """What is asked of the supervisor."""

    clock: Clock

    def entry(self, job: str) -> JobEntry | None:
        """The open job of that id."""
        ...

    def post(self, entry: JobEntry, message: Message) -> None:
        """Put a message in the job's box and see that somebody reads it."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run a task of the supervisor's."""
        ...


@define(eq=False)
class _Suspect:
    key: Key
    since: Instant


class Suspects:
    """The one that is at work, and the jobs that wait for its end."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._suspect: _Suspect | None = None
        self._gated: set[str] = set()

    def gates(self, entry: JobEntry) -> bool:
        """Whether the job has only suspects to start, and must wait with them."""
        return entry.id in self._gated

    def choose(self, entry: JobEntry, snapshot: Snapshot, now: Instant) -> str | None:
        """The unit that may start: a suspect only while no other suspect is young."""
        gated = False
        for unit in due.wanted(snapshot, now, due.room(snapshot)):
            row = snapshot.position if unit == "" else snapshot.items[unit]
            if row.crashes < due.SUSPECT_CRASHES:
                return unit
            key = (entry.id, unit, row.tries + 1)
            if self._suspect is None:
                self._suspect = _Suspect(key, now)
                self._desk.start_soon(self._absolve, self._suspect)
            if self._suspect.key == key:  # also when its start has to be committed again
                return unit
            gated = True
        if gated:
            self._gated.add(entry.id)
        return None

    async def _absolve(self, suspect: _Suspect) -> None:
        await self._desk.clock.wait(SUSPECT_SECONDS)
        self.clear(suspect.key)

    def clear(self, key: Key) -> None:
        """This one has ended, or lived long enough: the next may start."""
        if self._suspect is None or self._suspect.key != key:
            return
        self._suspect = None
        gated, self._gated = self._gated, set()
        for job in sorted(gated):
            entry = self._desk.entry(job)
            if entry is not None:
                self._desk.post(entry, Message(events.Tick()))
