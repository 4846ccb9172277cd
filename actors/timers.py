"""Timers: the instants at which jobs, parked or not, are to be looked at again; it looks at none itself.

The queue is kept by the boot clock, which nobody sets; what the wall clock says of an instant is counted in,
and counted anew when the two clocks have moved apart. Nobody sleeps longer than a coarse tick.
"""

import heapq
import logging
from collections.abc import Callable, Iterable

import anyio

from resumed.schemas.instant import MICRO, Instant, seconds_until, spell

from .clock import Clock
from .entry import JobEntry
from .machine.reckoning import CLOCK

logger = logging.getLogger(__name__)

COARSE = 5.0
"""The longest sleep, in seconds."""
APART = MICRO // 2
"""Microseconds that wall and boot clock may move apart before all instants are placed anew."""


class Timers:
    """One queue for all jobs. `rung` is called with a job whose instant has come, `each` at every look."""

    def __init__(
        self,
        clock: Clock,
        entries: Callable[[], Iterable[JobEntry]],
        entry: Callable[[str], JobEntry | None],
        rung: Callable[[JobEntry], None],
        each: Callable[[Instant], None],
    ) -> None:
        self._clock = clock
        self._entries = entries
        self._entry = entry
        self._rung = rung
        self._each = each
        self._queue: list[tuple[int, str]] = []
        self._nap: anyio.CancelScope | None = None
        now = clock.now()
        self._boot = now.boot
        self._offset = now.wall - now.up

    def set(self, entry: JobEntry, at: Instant | None) -> None:
        """Look at the job at this instant; a place that stands earlier in the queue is kept."""
        entry.next_due = at
        if at is not None:
            self._place(entry, self._up(at))

    def _up(self, at: Instant) -> int:
        """When the instant comes, on this boot's clock: the earlier of what its own two clocks say."""
        by_wall = at.wall - self._offset
        return min(at.up, by_wall) if at.boot == self._boot else by_wall

    def _place(self, entry: JobEntry, up: int) -> None:
        if entry.scheduled is not None and entry.scheduled <= up:
            return
        entry.scheduled = up
        first = not self._queue or up < self._queue[0][0]
        heapq.heappush(self._queue, (up, entry.id))
        if first and self._nap is not None:
            self._nap.cancel()

    async def run(self) -> None:
        """Ring until cancelled."""
        while True:
            now = self._clock.now()
            self._compare(now)
            self._ring(now)
            self._each(now)
            seconds = COARSE
            if self._queue:
                seconds = min(seconds, max(0.0, (self._queue[0][0] - now.up) / MICRO))
            # Left early, also before it is entered, when an instant comes that is earlier than all others.
            self._nap = anyio.CancelScope()
            with self._nap:
                await self._clock.wait(seconds)

    def _compare(self, now: Instant) -> None:
        """Place all instants anew once the wall clock was set; what is held for the clock is looked at."""
        apart = now.wall - now.up - self._offset
        if abs(apart) < APART:
            return
        way = "forward" if apart > 0 else "back"
        logger.warning("The wall clock was set %s by %.3f s to %s.", way, abs(apart) / MICRO, spell(now.wall))
        self._offset = now.wall - now.up
        self._queue = []
        for entry in list(self._entries()):
            entry.scheduled = None
            self.set(entry, entry.next_due)
            if entry.hold() == CLOCK:
                self._rung(entry)

    def _ring(self, now: Instant) -> None:
        while self._queue and self._queue[0][0] <= now.up:
            up, job = heapq.heappop(self._queue)
            entry = self._entry(job)
            if entry is None or entry.scheduled != up:
                continue
            entry.scheduled = None
            if entry.next_due is None:
                continue
            left = seconds_until(entry.next_due, now)
            if left > 0:
                # Counted from now: what its clocks say by themselves may lie in the past by a trifle.
                self._place(entry, now.up + max(1, round(left * MICRO)))
            else:
                self._rung(entry)
