"""The wall clock steps while jobs wait, run and are parked; machines come back with another time (C43)."""

import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from loop import cases, workers, world
from loop.world import World

from resumed.actors.entry import Stage
from resumed.schemas import decisions, frames
from resumed.schemas.job import Ending
from resumed.schemas.views import Told

Case = Callable[[Path], Awaitable[None]]
HOUR = 3600.0

pytestmark = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Only what the timers say is listened to."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


def held_for(one: World, job: str) -> str:
    """The code of the hold that the job is parked under; "" while it is not."""
    entry = one.entry(job)
    if entry is None or entry.stage is not Stage.PARKED:
        return ""
    hold = one.snapshot(job).hold
    return "" if hold is None else hold.code


def ending(one: World, job: str) -> Ending | None:
    """How the job ended."""
    outcome = one.snapshot(job).outcome
    return None if outcome is None else outcome.ending


def starts(one: World, job: str, unit: str = "") -> list[float]:
    """When tries of the unit (or of all items) began, in true seconds."""
    return [
        ran.at / 1e6 for ran in one.witness.ran if ran.job == job and (ran.unit == unit if unit else ran.unit)
    ]


async def shift(one: World, seconds: float, restart: bool) -> None:
    """The wall clock is set, with the daemon running or while it restarts."""
    if restart:
        await one.kill()
    one.clock.jump(seconds)
    if restart:
        await one.start()
    await one.passes(0.01)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("moved", [-2 * HOUR, 2 * HOUR])
def test_the_wall_clock_steps(
    backend: str, moved: float, restart: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A retry, two deadlines and an expired job while the wall clock moves there and back, with the daemon
    running and across restarts: the retry takes its 5 s, expired stays expired, nothing starts after a
    deadline, and what only the jump would decide is held and not final (C43)."""

    async def case(root: Path) -> None:
        def says(frame: frames.Run) -> decisions.Answer:
            if frame.item and frame.job == "retry" and len(starts(one, "retry", frame.item)) < 5:
                return decisions.Answer(decided=decisions.TryAgain(reason=f"busy {frame.number}"))
            if frame.item and frame.job in ("near", "far"):
                return decisions.Answer(decided=decisions.Later(seconds=120.0, reason="429"))
            return cases.usual()(frame)

        contracts = [world.contract(tries=9, backoff_first=5.0, backoff_max=5.0)]
        async with cases.made(root, says=says, contracts=contracts, most_workers=4) as one:
            one.machine.lasts = lambda frame: 0.1
            await one.start()
            await one.admit("gone", ["a"], deadline="1m", not_before="59s")
            one.machine.lasts = lambda frame: 200.0 if frame.job == "gone" else 0.1
            await one.until(lambda: one.entry("gone") is None, 200.0)
            assert Ending.EXPIRED is ending(one, "gone")
            admitted = one.clock.seconds
            await one.admit("near", ["a"], deadline="1h")
            await one.admit("far", ["a"], deadline="10h")
            await one.admit("retry", ["a"])
            await one.passes(2.0)
            await shift(one, moved, restart)
            await one.until(lambda: len(starts(one, "retry")) > 2, 60.0)
            await one.passes(1.0)
            await shift(one, -moved, restart)
            await one.until(lambda: one.entry("retry") is None, 60.0)
            gaps = [
                round(b - a) for a, b in zip(starts(one, "retry"), starts(one, "retry")[1:], strict=False)
            ]
            assert len(gaps) == 4
            assert all(3 <= gap <= 8 for gap in gaps), (
                gaps
            )  # jitter takes up to a quarter; a restart adds some
            await one.passes(600.0)
            await shift(one, moved, restart)
            await one.passes(600.0)
            # Two hours ahead, one job's deadline seems to have passed; two hours behind, none has come.
            assert ("clock" if moved > 0 else "") == held_for(one, "near")
            assert ending(one, "near") is None
            assert "" == held_for(one, "far")
            before = len(starts(one, "near"))
            await one.passes(300.0)
            assert (before == len(starts(one, "near"))) is (moved > 0)
            await shift(one, -moved, restart)
            await one.passes(300.0)
            assert "" == held_for(one, "near")
            assert len(starts(one, "near")) > before
            await shift(one, moved, restart)
            await one.until(lambda: one.entry("near") is None, 2 * HOUR)

            assert Ending.EXPIRED is ending(one, "near")
            assert HOUR <= one.clock.seconds - admitted < HOUR + 130.0
            assert max(starts(one, "near")) < admitted + HOUR
            assert Ending.EXPIRED is ending(one, "gone")
            assert ending(one, "far") is None
            if not restart:
                assert "The wall clock was set" in caplog.text

    cases.play(backend, case)


def test_the_newest_checkpoint_is_that_of_the_highest_sequence(backend: str) -> None:
    """Equal, reversed and future times of files and records do not decide which state is the newest (C43)."""

    async def case(root: Path) -> None:
        async with cases.made(root, most_workers=1) as one:
            one.machine.lasts = lambda frame: 10.0
            await one.start()
            await one.admit("harbour", [f"i-{number}" for number in range(6)])
            for moved in (0.0, -2 * HOUR, 5 * HOUR):
                one.clock.jump(moved)
                await one.passes(12.0)
                one.daemon.soon(one.daemon.ask, "harbour", "Pause")
                await one.until(lambda: one.entry("harbour").stage is Stage.PARKED)  # type: ignore[union-attr]
                one.daemon.soon(one.daemon.ask, "harbour", "Resume")
                await one.passes(0.1)
            await one.kill()
            one.weather.revive()
            sequence = one.snapshot("harbour").sequence
            folder = one.layout.job("harbour")
            for age, path in enumerate(sorted(folder.glob("*.checkpoint.json"), key=_number)):
                os.utime(path, (2_000_000_000 - age * 1000,) * 2)
            assert sequence == one.snapshot("harbour").sequence
            await one.start()
            await one.until(lambda: one.entry("harbour") is None, 600.0)

            assert Ending.COMPLETED is ending(one, "harbour")

    cases.play(backend, case)


def _number(path: Path) -> int:
    return int(path.name.partition("-")[0])


def test_a_machine_comes_back_with_a_cold_clock(backend: str) -> None:
    """In another boot whose clock is behind, a job with a deadline is held and others go on; once the time
    service has set the clock it goes on by itself, or has expired."""

    async def case(root: Path) -> None:
        says = workers.say({"start": workers.fan_out(), "work": decisions.Later(seconds=200.0, reason="429")})
        async with cases.made(root, says=says, most_workers=2) as one:
            await one.start()
            await one.admit("bound", ["a"], deadline="10h")
            await one.admit("short", ["a"], deadline="30m")
            await one.admit("free", ["a"])
            await one.passes(60.0)
            await one.reboot(HOUR)
            one.clock.jump(-1000 * 24 * HOUR)
            await one.start()
            await one.until(lambda: held_for(one, "bound") == held_for(one, "short") == "clock", 60.0)
            runs = len(starts(one, "free"))
            await one.until(lambda: len(starts(one, "free")) > runs, 600.0)
            assert [1, 1] == [len(starts(one, job)) for job in ("bound", "short")]
            one.clock.jump(1000 * 24 * HOUR)
            await one.until(lambda: one.entry("short") is None and len(starts(one, "bound")) > 1, 600.0)

            assert (Ending.EXPIRED, None) == (ending(one, "short"), ending(one, "bound"))
            assert "" == held_for(one, "bound")

    cases.play(backend, case)


def test_a_person_lets_a_job_go_on_under_a_clock_that_nobody_believes(backend: str) -> None:
    """Resume is what the hold offers; the deadline then comes by the time that goes by."""

    async def case(root: Path) -> None:
        says = workers.say({"start": workers.fan_out(), "work": decisions.Later(seconds=50.0, reason="429")})
        async with cases.made(root, says=says) as one:
            await one.start()
            await one.admit("bound", ["a"], deadline="1h")
            await one.passes(60.0)
            one.clock.jump(5 * HOUR)
            await one.until(lambda: held_for(one, "bound") == "clock", 120.0)
            runs = len(starts(one, "bound"))
            one.daemon.soon(one.daemon.ask, "bound", "Resume")
            await one.until(lambda: one.asked[-1].answer is not None)
            assert isinstance(one.asked[-1].answer, Told)
            await one.until(lambda: one.entry("bound") is None, HOUR)

            assert len(starts(one, "bound")) > runs + 50
            assert Ending.EXPIRED is ending(one, "bound")
            assert HOUR <= one.clock.seconds < HOUR + 10.0

    cases.play(backend, case)
