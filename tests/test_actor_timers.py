"""Timers: instants ring by whichever of their two clocks comes first, also after the wall clock was set."""

from pathlib import Path

import pytest

from resumed.actors.entry import JobEntry
from resumed.actors.timers import Timers
from resumed.schemas.instant import MICRO, Instant, later
from resumed.store.layout import Layout

NOON = 1_795_000_000 * MICRO
BOOT = "6f1c2b7a-0000-4000-8000-000000000001"
OTHER = "6f1c2b7a-0000-4000-8000-000000000002"


class Hands:
    """A clock that the test moves; nobody waits on it here."""

    def __init__(self) -> None:
        self.wall, self.up = NOON, 1_000 * MICRO

    def now(self) -> Instant:
        return Instant(wall=self.wall, boot=BOOT, up=self.up)

    async def wait(self, seconds: float) -> None:
        raise AssertionError(f"nobody waits {seconds} here")

    def pass_by(self, seconds: float, *, wall: float | None = None) -> None:
        self.up += round(seconds * MICRO)
        self.wall += round((seconds if wall is None else wall) * MICRO)


class Bench:
    """One job under a timer."""

    def __init__(self) -> None:
        self.clock = Hands()
        self.job = JobEntry(id="harbour-7", layout=Layout(Path("/nowhere")))
        self.rung = 0
        self.timers = Timers(self.clock, lambda: [self.job], lambda _: self.job, self._hear, lambda _: None)

    def _hear(self, entry: JobEntry) -> None:
        del entry
        self.rung += 1

    def look(self) -> int:
        """What one look of the timers rings, so far."""
        now = self.clock.now()
        self.timers._compare(now)
        self.timers._ring(now)
        return self.rung


@pytest.mark.parametrize("jump", [-3600.0, -1.0, 0.0, 1.0])
def test_an_instant_of_this_boot_rings_by_elapsed_time(jump: float) -> None:
    """A limit of 100 s rings after 100 s of this boot, wherever the wall clock was set meanwhile."""
    bench = Bench()
    bench.timers.set(bench.job, later(bench.clock.now(), 100.0))
    bench.clock.pass_by(50.0, wall=50.0 + jump)
    early = bench.look()
    bench.clock.pass_by(50.0)

    assert (0, 1) == (early, bench.look())


def test_a_wall_clock_set_forward_rings_what_it_passed() -> None:
    """An instant that the wall clock has passed is due, however little time has elapsed."""
    bench = Bench()
    bench.timers.set(bench.job, later(bench.clock.now(), 3600.0))
    bench.clock.pass_by(1.0, wall=7200.0)

    assert 1 == bench.look()


def test_an_instant_of_another_boot_rings_by_the_wall_clock() -> None:
    """Of an instant that another boot wrote only its wall time counts."""
    bench = Bench()
    bench.timers.set(bench.job, Instant(wall=NOON + 100 * MICRO, boot=OTHER, up=0))
    early = bench.look()
    bench.clock.pass_by(100.0)

    assert (0, 1) == (early, bench.look())


def test_an_earlier_instant_takes_the_place() -> None:
    """The earlier of two instants rings, and what was set last is rung for next."""
    bench = Bench()
    start = bench.clock.now()
    bench.timers.set(bench.job, later(start, 100.0))
    bench.timers.set(bench.job, later(start, 10.0))
    bench.clock.pass_by(10.0)
    first = bench.look()
    bench.timers.set(bench.job, later(start, 100.0))
    bench.clock.pass_by(89.0)
    second = bench.look()
    bench.clock.pass_by(1.0)

    assert (1, 1, 2) == (first, second, bench.look())


def test_clocks_that_drift_apart_a_little_ring_late_and_not_for_ever() -> None:
    """A drift below what places instants anew never makes one look ring, or turn, without end."""
    bench = Bench()
    bench.timers.set(bench.job, Instant(wall=NOON + 100 * MICRO, boot=OTHER, up=0))
    bench.clock.pass_by(100.0, wall=99.7)
    early = bench.look()
    bench.clock.pass_by(0.3)

    assert (0, 1) == (early, bench.look())
