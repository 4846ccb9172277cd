"""The finder over a real store: what each sight finds of jobs open, ended and set aside."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from loop import cases, world
from loop.world import ADA, World

from resumed.actors.finder import Finder, Located
from resumed.actors.sight import Whose
from resumed.daemon.grants import Permit, Role, Scope
from resumed.schemas.refusal import Refusal

BACKENDS = ("asyncio", "trio")
pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.usefixtures("quiet")]
BO = 1001
LABEL = frozenset({"label"})


async def ask(one: World, call: Callable[..., Awaitable[Any]], *args: Any) -> Any:
    """The answer of the daemon to one call."""
    answers: list[Any] = []

    async def asking() -> None:
        answers.append(await call(*args))

    one.daemon.soon(asking)
    assert await one.until(lambda: bool(answers), 60.0)
    return answers[0]


SIGHTS = {
    # scopes of a user -> whether it sees ada's job, which is of the workflow label
    "all": (ADA.uid + 1, (Scope(Role.VIEWER),), True),
    "its workflow": (BO, (Scope(Role.VIEWER, LABEL),), True),
    "another workflow": (BO, (Scope(Role.VIEWER, frozenset({"x265"})),), False),
    "own alone": (BO, (Scope(Role.SUBMITTER),), False),
    "its own": (ADA.uid, (), True),
    "nothing": (BO, (), False),
}


@pytest.mark.parametrize("case", SIGHTS)
def test_each_sight_finds_what_it_may_see(backend: str, case: str) -> None:
    """Open, ended and set aside, by id and by prefix: in sight it is found, else it is as if not there."""
    uid, scopes, seen = SIGHTS[case]
    sight = Permit(uid, scopes)

    async def played(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            ends = {"ended-1", "ended-2"}
            for job in sorted(ends):
                await one.admit(job, ["a"])
            await one.until(lambda: not any(one.entry(job) for job in ends))
            await one.admit("open-2", ["a"])
            one.daemon.soon(one.daemon.ask, "open-2", "Pause")
            await one.until(lambda: one.entry("open-2").row.status == "paused")  # type: ignore[union-attr]
            jobs = one.daemon.jobs
            found = {name: await ask(one, jobs.locate, name, sight) for name in ("open-2", "open", "ended-1")}
            absent = await ask(one, jobs.locate, "absent", sight)
            listed = [each.id for each in jobs.rows(sight)]
            ended = {each.id for each in await ask(one, jobs.ended, sight)}

            if seen:
                assert {"open-2": "open-2", "open": "open-2", "ended-1": "ended-1"} == {
                    name: each.job for name, each in found.items()
                }
                assert (["open-2"], ends) == (listed, ended)
                whose = {each.whose for each in found.values()}
                assert whose <= {Whose("label", ADA.uid), None}
            else:
                for name, each in found.items():
                    assert isinstance(each, Refusal)
                    assert (each.code, each.reason) == ("no_such_job", absent.reason.replace("absent", name))
                assert ([], set()) == (listed, ended)

    cases.play(backend, played)


@pytest.mark.parametrize("case", SIGHTS)
def test_job_set_aside_is_told_to_who_may_see_it(backend: str, case: str) -> None:
    """A job moved to the quarantine is spoken of to those who saw it before, and to nobody else."""
    uid, scopes, seen = SIGHTS[case]
    sight = Permit(uid, scopes)

    async def played(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("bad-1", ["a"])
            one.daemon.soon(one.daemon.ask, "bad-1", "Pause")
            await one.until(lambda: one.entry("bad-1").row.status == "paused")  # type: ignore[union-attr]
            await one.kill()
            folder = one.place("bad-1")
            assert folder is not None
            for path in folder.glob("*.log"):
                path.write_bytes(path.read_bytes().replace(b" {", b" [", 2))
            one.weather.revive()
            one.jobs.clear()
            one.asked.clear()
            await one.start()
            await one.until(lambda: one.entry("bad-1") is None)
            told = await ask(one, one.daemon.jobs.locate, "bad-1", sight)
            aside = [each.id for each in await ask(one, one.daemon.jobs.quarantined, sight)]

            refusal = told.aside if seen else told
            assert isinstance(refusal, Refusal)
            assert ("set_aside" if seen else "no_such_job") == refusal.code
            assert (["bad-1"] if seen else []) == aside

    cases.play(backend, played)


def test_prefix_is_asked_among_jobs_in_sight(backend: str) -> None:
    """A prefix that two jobs share names the one that may be seen; the other is not given away."""

    async def played(root: Path) -> None:
        contracts = [world.contract("label"), world.contract("x265")]
        async with cases.made(root, contracts=contracts) as one:
            await one.start()
            for job, workflow in (("pier-1", "label"), ("pier-2", "x265")):
                await one.admit(job, ["a"], workflow)
                one.daemon.soon(one.daemon.ask, job, "Pause")
                await one.until(lambda job=job: one.entry(job).row.status == "paused")  # type: ignore[misc]
            wide = await ask(one, one.daemon.jobs.locate, "pier")
            narrow = await ask(one, one.daemon.jobs.locate, "pier", Permit(BO, (Scope(Role.VIEWER, LABEL),)))

            assert isinstance(wide, Refusal)
            assert "ambiguous" == wide.code
            assert Located("pier-1", Whose("label", ADA.uid)) == narrow

    cases.play(backend, played)


def test_the_quarantine_is_counted_as_it_is(backend: str) -> None:
    """However often it is asked and whatever is remembered: a folder that came or went is seen at once."""

    async def played(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            place, long_ago = one.layout.quarantine, (one.clock.now().wall - 3_600_000_000) * 1000
            finder = Finder(one.daemon.supervisor)
            found = []
            for moment in range(3):
                os.utime(place, ns=(long_ago + moment, long_ago + moment))
                found += [finder.count_aside(), finder.count_aside()]
                (place / f"job-{moment}").mkdir()
                found.append(finder.count_aside())
            (place / "job-1").rmdir()
            found.append(finder.count_aside())

            assert [(many, ()) for many in (0, 0, 1, 1, 1, 2, 2, 2, 3, 2)] == found

    cases.play(backend, played)
