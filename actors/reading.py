"""The first reading of the jobs that a store holds: each for itself, by as few threads as will do.

One thread reads alone, since several would only wait for the interpreter and for each other; when nothing
comes back for a moment, another one goes on with what is left. So a slow job holds up its own place only.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from resumed.store.recovery import Recovered

from .clock import Clock
from .disk import Disk
from .entry import JobEntry

READERS = 8
STALLED = 0.25
"""Seconds without a job that was read after which another reader begins."""

Outcome = Recovered | Exception


async def read(reads: Disk, load: Callable[[Path], Recovered], entry: JobEntry) -> Outcome:
    """The job, or why it cannot be read: whatever that is, it is the affair of this job."""
    try:
        return await reads.call(load, entry.folder)
    except Exception as error:  # noqa: BLE001 - one folder that our reader fails over stops no other
        return error


class FirstReading:
    """Reads entries in their order, those asked for first. `took` is told what became of each."""

    def __init__(
        self,
        entries: Iterable[JobEntry],
        *,
        clock: Clock,
        reads: Disk,
        load: Callable[[Path], Recovered],
        took: Callable[[JobEntry, Outcome], Coroutine[Any, Any, None]],
    ) -> None:
        self._queue = deque(entries)
        self._first: deque[JobEntry] = deque()
        self._unread = {entry.id for entry in self._queue}
        self._clock = clock
        self._reads = reads
        self._load = load
        self._took = took
        self._count = 0
        self._watch = anyio.CancelScope()

    def hurry(self, entry: JobEntry) -> None:
        """Somebody asks for this job: it is the next, unless it is being read already."""
        if entry.id in self._unread:
            self._first.append(entry)

    async def run(self) -> None:
        """Returns when every job was read, and what was to be done about it is done."""
        async with anyio.create_task_group() as group:
            with self._watch:
                for _ in range(READERS):
                    group.start_soon(self._read, group)
                    await self._until_stalled()

    async def _until_stalled(self) -> None:
        """Returns when no job came back for a moment; cut off when none is left to begin."""
        seen = -1
        while seen != self._count:
            seen = self._count
            await self._clock.wait(STALLED)

    async def _read(self, group: anyio.abc.TaskGroup) -> None:
        while (entry := self._next()) is not None:
            outcome = await read(self._reads, self._load, entry)
            if isinstance(outcome, Exception):
                # It may take its time to set a job aside: nobody waits for that.
                group.start_soon(self._took, entry, outcome)
            else:
                await self._took(entry, outcome)
            self._count += 1
        self._watch.cancel()

    def _next(self) -> JobEntry | None:
        """The next that nobody has begun: one that was asked for stands in both queues."""
        for queue in (self._first, self._queue):
            while queue:
                entry = queue.popleft()
                if entry.id in self._unread:
                    self._unread.remove(entry.id)
                    return entry
        return None
