"""Schedules in the living house: jobs that wait are parked; they start by their instant or when told."""

import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from loop import cases, workers, world
from loop.world import World

from resumed.actors.entry import Stage
from resumed.schemas import decisions
from resumed.schemas.job import Ending
from resumed.schemas.views import Told
from resumed.store import quarantine

Case = Callable[[Path], Awaitable[None]]

pytestmark = [pytest.mark.parametrize("backend", ["asyncio", "trio"]), pytest.mark.usefixtures("quiet")]


def parked(one: World, job: str) -> bool:
    """True while the job has neither actor nor message."""
    entry = one.entry(job)
    return entry is not None and entry.stage is Stage.PARKED and not entry.box


def status(one: World, job: str) -> str:
    """The word that a list shows for the job."""
    entry = one.entry(job)
    row = None if entry is None else one.daemon.supervisor.row(entry)
    return "" if row is None else row.status.value


def hold(one: World, job: str) -> str:
    """The reason of the job's hold."""
    found = one.snapshot(job).hold
    return "" if found is None else found.reason


def began(one: World, job: str) -> float:
    """When the job's first try was seen to run, in seconds since the beginning."""
    return next(ran.at for ran in one.witness.ran if ran.job == job) / 1_000_000


async def ask(one: World, job: str, kind: str) -> None:
    """A person's request, answered."""
    one.daemon.soon(one.daemon.ask, job, kind)
    await one.until(lambda: one.asked[-1].answer is not None)
    assert isinstance(one.asked[-1].answer, Told)


def ended(one: World, job: str) -> Ending | None:
    """How the job ended."""
    outcome = one.snapshot(job).outcome
    return None if outcome is None else outcome.ending


@pytest.mark.parametrize("woken", [False, True])
def test_an_actor_sleeps_until_an_instant_that_is_near(backend: str, woken: bool) -> None:
    """Its job is not parked, and goes on by its timer, or at once when a person asks, in the same log."""

    async def case(root: Path) -> None:
        says = workers.say({"start": workers.fan_out(), "work": decisions.Later(seconds=50.0, reason="429")})
        async with cases.made(root, says=says) as one:
            await one.start()
            await one.admit("harbour", ["a"])
            sleepers = one.daemon.supervisor.sleepers
            await one.until(lambda: "harbour" in sleepers, 30.0)
            before = one.snapshot("harbour")
            folder = one.place("harbour")
            assert folder is not None
            logs = sorted(path.name for path in folder.glob("*.log"))
            assert Stage.ACTIVE is one.entry("harbour").stage  # type: ignore[union-attr]
            assert one.entry("harbour").there("box") is None  # type: ignore[union-attr]
            if woken:
                await ask(one, "harbour", "Pause")
                assert await one.until(lambda: parked(one, "harbour"), 1.0)
                assert before.sequence + 1 == one.snapshot("harbour").sequence
                return
            assert await one.until(lambda: one.witness.runs("harbour", "a") == 2, 60.0)

            assert logs == sorted(path.name for path in folder.glob("*.log"))

    cases.play(backend, case)


@pytest.mark.parametrize("restart", [False, True])
def test_a_job_starts_at_its_time(backend: str, restart: bool) -> None:
    """It is parked until then, also across a kill of the daemon, and starts by its own timer."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("harbour", ["a"], not_before="2h", deadline="9h")
            await one.passes(3600.0)
            assert parked(one, "harbour")
            assert "waiting" == status(one, "harbour")
            if restart:
                await one.kill()
                await one.start()
                await one.passes(1.0)
                assert parked(one, "harbour")
            await one.until(lambda: one.rests("harbour"), 7200.0)

            assert Ending.COMPLETED is ended(one, "harbour")
            assert 7200.0 <= began(one, "harbour") < 7202.0

    cases.play(backend, case)


def test_a_waiting_job_is_ended_by_its_deadline(backend: str) -> None:
    """A job that is parked and waits for another one still expires on time."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("first", ["a"], not_before="5h")
            await one.admit("second", ["a"], after=["first"], deadline="1h")
            await one.until(lambda: one.rests("second"), 7200.0)

            assert Ending.EXPIRED is ended(one, "second")
            assert 3600.0 <= one.clock.seconds < 3610.0

    cases.play(backend, case)


@pytest.mark.parametrize("restart", [False, True])
def test_a_job_starts_once_those_before_it_have_completed(backend: str, restart: bool) -> None:
    """A chain runs in order, whatever order it came in; nobody runs beside the one it waits for."""

    async def case(root: Path) -> None:
        async with cases.made(root, most_workers=4) as one:
            await one.start()
            one.machine.lasts = lambda frame: 5.0
            await one.admit("third", ["a"], after=["first", "second"])
            await one.until(lambda: parked(one, "third"))
            assert "held" == status(one, "third")  # nobody has heard of the two yet
            await one.admit("first", ["a"])
            await one.admit("second", ["a"], after=["first"])
            await one.passes(3.0)
            assert ["waiting", "waiting"] == [status(one, job) for job in ("second", "third")]
            if restart:
                await one.kill()
                await one.start()
            await one.until(lambda: all(one.rests(job) for job in one.jobs))

            assert {Ending.COMPLETED} == {ended(one, job) for job in one.jobs}
            assert ["first", "second", "third"] == list(dict.fromkeys(ran.job for ran in one.witness.ran))

    cases.play(backend, case)


def test_a_job_that_comes_after_one_that_completed_long_ago_starts_at_once(backend: str) -> None:
    """What the archive holds counts: the job is told from there."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("first", ["a"])
            await one.until(lambda: one.entry("first") is None)
            await one.kill()
            await one.start()
            await one.admit("second", ["a"], after=["first"])
            await one.until(lambda: one.entry("second") is None)

            assert Ending.COMPLETED is ended(one, "second")

    cases.play(backend, case)


@pytest.mark.parametrize("late", [False, True])
def test_a_job_whose_forerunner_failed_is_held_for_a_person(backend: str, late: bool) -> None:
    """Whether it came before or after that end, it is held with the reason until a person lets it go on."""

    async def case(root: Path) -> None:
        says = workers.say({"start": decisions.Failed(reason="no such folder")})
        contracts = [world.contract("bad"), world.contract()]
        usual = cases.usual()

        def both(frame: object) -> decisions.Answer:
            return (says if frame.job == "first" else usual)(frame)  # type: ignore[attr-defined, arg-type]

        async with cases.made(root, says=both, contracts=contracts) as one:
            await one.start()
            if not late:
                await one.admit("second", ["a"], after=["first"])
            await one.admit("first", ["a"], "bad")
            await one.until(lambda: one.entry("first") is None)
            if late:
                await one.kill()
                await one.start()
                await one.admit("second", ["a"], after=["first"])
            await one.until(lambda: "held" == status(one, "second"))
            await one.until(lambda: parked(one, "second"))
            assert "it starts after first, which failed" == hold(one, "second")
            await ask(one, "second", "Resume")
            await one.until(lambda: one.entry("second") is None)

            assert Ending.COMPLETED is ended(one, "second")

    cases.play(backend, case)


def test_a_job_whose_forerunner_was_canceled_while_it_waited_is_held(backend: str) -> None:
    """A cancel of the one is told to the other at once, and not when somebody looks."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("first", ["a"], not_before="3h")
            await one.admit("second", ["a"], after=["first"])
            await ask(one, "first", "Cancel")
            await one.until(lambda: parked(one, "second") and "held" == status(one, "second"), 1.0)

            assert "it starts after first, which was canceled" == hold(one, "second")

    cases.play(backend, case)


def test_jobs_that_wait_for_each_other_are_held(backend: str) -> None:
    """A circle is seen when it closes and after a restart; one job let go sets the others going."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            names = ["one", "two", "three"]
            for name, other in zip(names, [*names[1:], "one"], strict=True):
                await one.admit(name, ["a"], after=[other])
            await one.until(lambda: all(parked(one, name) and hold(one, name) for name in names))
            assert "it starts after two, which waits for this one itself" == hold(one, "one")
            await one.kill()
            await one.start()
            await one.passes(2.0)
            assert ["held"] * 3 == [status(one, name) for name in names]
            await ask(one, "two", "Resume")
            await one.until(lambda: all(one.entry(name) is None for name in names))

            assert ["two", "one", "three"] == list(dict.fromkeys(ran.job for ran in one.witness.ran))

    cases.play(backend, case)


def test_a_job_waits_on_while_its_forerunner_is_set_aside(backend: str) -> None:
    """It is held while the other's files are in the quarantine, and goes on when they are back."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("first", ["a"], not_before="3h")
            await one.admit("second", ["a"], after=["first"])
            await one.kill()
            one.weather.revive()
            aside = quarantine.set_aside(one.layout, "first", "damaged", "a test", one.clock.now())
            await one.start()
            await one.until(lambda: parked(one, "second") and "held" == status(one, "second"))
            assert "it starts after first, whose files are set aside" == hold(one, "second")
            aside.rename(one.layout.job("first"))
            one.daemon.supervisor.take_in("first")
            await one.until(lambda: all(one.rests(job) for job in one.jobs), 4 * 3600.0)

            assert {Ending.COMPLETED} == {ended(one, job) for job in one.jobs}

    cases.play(backend, case)


def test_a_higher_priority_overtakes(backend: str) -> None:
    """A job that comes later with a higher priority has its items done before those that still wait."""

    async def case(root: Path) -> None:
        async with cases.made(root, most_workers=1) as one:
            one.machine.lasts = lambda frame: 1.0
            await one.start()
            await one.admit("slow", [f"i-{number}" for number in range(40)], priority=-1)
            await one.passes(10.0)
            await one.admit("quick", ["a", "b", "c"], priority=5)
            await one.until(lambda: one.entry("quick") is None)
            left = sum(ran.job == "slow" for ran in one.witness.ran)
            await one.until(lambda: one.entry("slow") is None)

            assert left < 20
            assert {Ending.COMPLETED} == {ended(one, job) for job in one.jobs}

    cases.play(backend, case)


def test_a_place_that_cannot_be_read_is_asked_again(backend: str) -> None:
    """While nobody can tell what became of the other job, the one waits; it starts when that is known."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("first", ["a"])
            await one.until(lambda: one.entry("first") is None)
            blind, archived = True, one.layout.archived("first")

            def veto(name: str, args: tuple[object, ...]) -> int | None:
                return errno.EIO if blind and str(args[0]).startswith(str(archived)) else None

            one.weather.veto = veto
            await one.admit("second", ["a"], after=["first"])
            await one.passes(60.0)
            assert "waiting" == status(one, "second")
            assert one.weather.failures > 2
            blind = False
            await one.until(lambda: one.entry("second") is None)

            assert Ending.COMPLETED is ended(one, "second")

    cases.play(backend, case)
