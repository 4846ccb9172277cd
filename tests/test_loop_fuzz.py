"""The loop's fuzz: whole lives of jobs under everything that may happen to them, by seed, in virtual time.

RESUMED_LOOP_SEED=asyncio:1234 runs that one seed and nothing else; so does ./dev test with it set.
"""

import logging
import os

import pytest
from loop import story
from loop.world import World

from resumed.actors.machine import reckoning, settle
from resumed.actors.machine.draft import Draft
from resumed.actors.sequels import Sequels
from resumed.schemas.instant import Instant
from resumed.store.journal import Journal

pytestmark = pytest.mark.usefixtures("quiet")

SEEDS = 2000
PART = 20
"""Seeds in one test, so that a failure names few and the tests spread over processes."""

# Each of these showed a fault once; what it was stands beside it.
PINNED = {
    "a parked job rang for ever while it waited for a slot": ("asyncio", 11),
    "a drain was timed by a clock of its own": ("asyncio", 16),
    "a park under a failing disk could not be cancelled": ("asyncio", 60),
    "a start stopped in the commit that granted it kept its slot": ("trio", 575),
    "a slot offered to a job whose actor kept dying was lost": ("trio", 637),
    "an answer from before its try was open was taken for its own": ("trio", 920),
}


def replay() -> tuple[str, int] | None:
    """The one seed asked for by name."""
    named = os.environ.get("RESUMED_LOOP_SEED", "")
    backend, _, seed = named.partition(":")
    return (backend, int(seed)) if seed else None


def tell(backend: str, seeds: range, seen: dict[str, int]) -> None:
    """Run seeds; the first that breaks a law fails, by its name."""
    for seed in seeds:
        told = story.run(seed, backend)
        hint = f"RESUMED_LOOP_SEED={backend}:{seed}"

        assert [] == told.broken, hint
        seen["runs"] = seen.get("runs", 0) + told.runs
        counts = {"kill": told.kills, "failure": told.failures, "crash": told.crashes, "drain": told.drains}
        for what, count in {**counts, "request": told.asked, **told.did, **told.ends}.items():
            seen[what] = seen.get(what, 0) + count


@pytest.mark.skipif(replay() is not None, reason="one seed was asked for by name")
@pytest.mark.parametrize("part", range(SEEDS // PART // 10))
def test_loop_keeps_its_laws(part: int, faults_scale: float) -> None:
    """Nothing overlaps, is run again, is stuck or goes unanswered, whatever comes together (the fuzz)."""
    backend = ("asyncio", "trio")[part % 2]
    seen: dict[str, int] = {}
    tell(backend, range(part * PART, part * PART + min(PART, round(PART * 10 * faults_scale))), seen)

    assert all(seen.get(what, 0) for what in ("kill", "failure", "crash", "request", "runs")), seen


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.skipif(replay() is not None, reason="one seed was asked for by name")
@pytest.mark.parametrize("part", range(SEEDS // PART // 10, SEEDS // PART))
def test_loop_keeps_its_laws_at_full_count(part: int) -> None:
    """The rest of two thousand seeds, each on the other loop than its neighbours."""
    tell(("asyncio", "trio")[part % 2], range(part * PART, (part + 1) * PART), {})


@pytest.mark.skipif(replay() is not None, reason="one seed was asked for by name")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_loop_that_publishes_keeps_its_laws(backend: str, faults_scale: float) -> None:
    """The same lives with published outputs: done items bear theirs, and nobody else's file is touched."""
    seen: dict[str, int] = {}
    for seed in range(5000, 5000 + round(200 * faults_scale)):
        told = story.run(seed, backend, publishes=True)

        assert [] == told.broken, (backend, seed)
        for what, count in told.did.items():
            seen[what] = seen.get(what, 0) + count
    assert seen["published"]
    assert seen["skipped"]


@pytest.mark.faults
@pytest.mark.timeout(600)
def test_every_misbehaviour_hits() -> None:
    """The drill is none unless each kind of fault, and each end of a job, really comes about."""
    seen: dict[str, int] = {}
    tell("asyncio", range(60), seen)
    tell("trio", range(60, 120), seen)
    wanted = {one.name for one in story.Manners.__attrs_attrs__} - {"slowest"}  # type: ignore[attr-defined]

    wanted |= {"kill", "failure", "crash", "drain", "completed", "canceled", "failed"}
    assert set() == {*wanted, "compared", "source_changed"} - set(seen)


@pytest.mark.skipif(replay() is not None, reason="one seed was asked for by name")
@pytest.mark.parametrize("case", PINNED)
def test_fault_stays_mended(case: str) -> None:
    """A seed that once broke a law keeps all of them."""
    backend, seed = PINNED[case]

    assert [] == story.run(seed, backend).broken


@pytest.mark.skipif(replay() is not None, reason="one seed was asked for by name")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_time_and_limits_keep_the_laws(backend: str, faults_scale: float) -> None:
    """Jobs that wait for times and for each other, caps, breakers, clocks that are set and machines that go
    down, under everything else that may happen (the fuzz, RESUMED_LOOP_SEED=timed-asyncio:9000 for one)."""
    seen: dict[str, int] = {}
    for seed in range(9000, 9000 + round(300 * faults_scale)):
        told = story.run(seed, backend, timed=True)

        assert [] == told.broken, f"RESUMED_LOOP_SEED=timed-{backend}:{seed}"
        for what, count in {**told.did, **told.ends}.items():
            seen[what] = seen.get(what, 0) + count
    codes = {f"held: {code}" for code in ("after", "budget", "clock")}
    assert set() == {*codes, "waits: breaker", "jump", "reboot", "completed", "expired"} - set(seen)


TIMED_PINNED = {
    "a step that was held under another hold was held by nothing once that was over": ("asyncio", 9075),
}


@pytest.mark.skipif(replay() is not None, reason="one seed was asked for by name")
@pytest.mark.parametrize("case", TIMED_PINNED)
def test_fault_of_time_stays_mended(case: str) -> None:
    """A seed with clocks and limits that once broke a law keeps all of them."""
    backend, seed = TIMED_PINNED[case]

    assert [] == story.run(seed, backend, timed=True).broken


def deaf(sequels: Sequels, other: str) -> None:
    """Hears of the other job's end, and tells nobody."""


def forgetful(draft: Draft) -> None:
    """Does not hold a job whose step is held."""


def gullible(clocks: object, now: Instant) -> Instant:
    """Takes the wall clock for the time."""
    return now


TIMED_LEFT_OUT = {
    # what is left out, and a seed whose story needs it
    "telling jobs what became of others": (Sequels, "heard", deaf),
    "holding a job whose step is held": (settle, "_settle_position", forgetful),
    "doubting a wall clock that moved alone": (reckoning, "trusted", gullible),
}


@pytest.mark.parametrize("case", TIMED_LEFT_OUT)
def test_drill_of_time_sees_what_is_left_out(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one of these duties the laws are broken within some seeds."""
    monkeypatch.setattr(*TIMED_LEFT_OUT[case])

    assert any(story.run(seed, "asyncio", timed=True).broken for seed in (9075, *range(9000, 9060)))


def careless_append(log: Journal, raw: bytes, sequence: int, digest: str) -> None:
    """Says that a line is durable, and writes nothing."""
    log.sequence, log.digest = sequence, digest


async def careless_living(made: World) -> None:
    """Does not wait for the workers of the daemon before."""


LEFT_OUT = {
    "the writing of a line": (Journal, "append", careless_append),
    "the proof that workers are gone": (World, "end_workers", careless_living),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_drill_sees_what_is_left_out(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drill would notice: without one of the loop's duties its laws are broken within a few seeds."""
    monkeypatch.setattr(*LEFT_OUT[case])

    assert any(story.run(seed, "asyncio").broken for seed in range(20, 60))


@pytest.mark.skipif(replay() is None, reason="names no seed: RESUMED_LOOP_SEED=asyncio:1234")
def test_named_seed() -> None:
    """The seed in RESUMED_LOOP_SEED, alone."""
    named = replay()
    assert named is not None
    logging.disable(logging.NOTSET)

    backend = named[0].removeprefix("timed-")

    assert [] == story.run(named[1], backend, timed=backend != named[0]).broken
