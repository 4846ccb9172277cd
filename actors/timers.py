"""Timers: the instants at which jobs, parked or not, are to be looked at again; it looks at none itself.

Kept by wall clock and checked against both clocks when they ring; nobody sleeps longer than a coarse tick,
so a clock that was set or a machine that slept is noticed.
"""

import heapq
from collections.abc import Callable

import anyio

from resumed.schemas.instant import MICRO, Instant, seconds_until

from .clock import Clock
from .entry import JobEntry

COARSE = 5.0
"""The longest sleep, in seconds."""


class Timers:
    """One queue for all jobs. `rung` is called with a job whose instant has come, `each` at every look."""

    def __init__(
        self,
        clock: Clock,
        entry: Callable[[str], JobEntry | None],
        rung: Callable[[JobEntry], None],
        each: Callable[[Instant], None],
    ) -> None:
        self._clock = clock
        self._entry = entry
        self._rung = rung
        self._each = each
        self._queue: list[tuple[int, str]] = []
        self._earlier = anyio.Event()

    def set(self, entry: JobEntry, at: Instant | None) -> None:
        """Look at the job at this instant; a place that stands earlier in the queue is kept."""
        entry.next_due = at
        if at is None or (entry.scheduled is not None and entry.scheduled.wall <= at.wall):
            return
        entry.scheduled = at
        first = not self._queue or at.wall < self._queue[0][0]
        heapq.heappush(self._queue, (at.wall, entry.id))
        if first:
            self._earlier.set()

    async def run(self) -> None:
        """Ring until cancelled."""
        while True:
            now = self._clock.now()
            self._ring(now)
            self._each(now)
            seconds = COARSE
            if self._queue:
                seconds = min(seconds, max(0.0, (self._queue[0][0] - now.wall) / MICRO))
            self._earlier = anyio.Event()
            await self._sleep(seconds)

    async def _sleep(self, seconds: float) -> None:
        async with anyio.create_task_group() as group:

            async def until_earlier() -> None:
                await self._earlier.wait()
                group.cancel_scope.cancel()

            group.start_soon(until_earlier)
            await self._clock.wait(seconds)
            group.cancel_scope.cancel()

    def _ring(self, now: Instant) -> None:
        while self._queue and self._queue[0][0] <= now.wall:
            _, job = heapq.heappop(self._queue)
            entry = self._entry(job)
            if entry is None:
                continue
            entry.scheduled = None
            if entry.next_due is None:
                continue
            if seconds_until(entry.next_due, now) > 0:
                self.set(entry, entry.next_due)
            else:
                self._rung(entry)
