"""Limits in the living house: the timer at the cap, the breaker, and what a person may do about both."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from loop import cases, world
from loop.workers import accept
from loop.world import World

from resumed.actors.entry import Stage
from resumed.schemas import decisions, frames
from resumed.schemas.job import Budget, Ending, ItemState
from resumed.schemas.limits import Limits
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import Told

Case = Callable[[Path], Awaitable[None]]

pytestmark = [pytest.mark.parametrize("backend", ["asyncio", "trio"]), pytest.mark.usefixtures("quiet")]


def limited(**limits: Any) -> list[Any]:
    """One workflow that allows so much."""
    return [evolve(world.contract(), limits=Limits(**limits))]


async def until_held(one: World, job: str) -> str:
    """The reason of the hold, once the job is parked under one."""

    def held() -> bool:
        entry = one.entry(job)
        return entry is None or (entry.stage is Stage.PARKED and one.snapshot(job).hold is not None)

    assert await one.until(held, 100_000.0)
    hold = one.snapshot(job).hold
    assert hold is not None
    return f"{hold.code}: {hold.reason}"


async def ask(one: World, job: str, kind: str, **fields: Any) -> Told | Refusal:
    """A person's request, and its answer."""
    one.daemon.soon(lambda: one.daemon.ask(job, kind, **fields))
    await one.until(lambda: one.asked[-1].answer is not None)
    answer = one.asked[-1].answer
    assert isinstance(answer, Told | Refusal)
    return answer


@pytest.mark.parametrize("kill", [False, True])
def test_active_time_is_carried_over_kills_and_holds_at_the_cap(backend: str, kill: bool) -> None:
    """Ten items of 20 s may take 120 s: the job holds and asks, whatever happened on the way (C45)."""

    async def case(root: Path) -> None:
        contracts = limited(active_time=2000.0)
        async with cases.made(root, contracts=contracts, most_workers=1) as one:
            one.machine.lasts = lambda frame: 20.0 if frame.item else 0.0
            await one.start()
            names = [f"i-{number}" for number in range(10)]
            await one.admit("harbour", names, limits={"active_time": "120s"})
            if kill:
                for _ in range(3):
                    await one.passes(33.0)
                    await one.kill()
                    await one.start()
            reason = await until_held(one, "harbour")
            snapshot = one.snapshot("harbour")
            assert "budget: it has been at work for 2m00s of 2m00s" == reason
            used = snapshot.used.active_seconds or 0.0
            assert 120.0 <= used <= 140.0  # what was open may finish
            runs = len(one.witness.ran)
            assert isinstance(await ask(one, "harbour", "Resume"), Refusal)
            assert isinstance(await ask(one, "harbour", "Extend", active_time=9000.0), Refusal)
            await one.passes(3600.0)
            assert runs == len(one.witness.ran)
            assert isinstance(await ask(one, "harbour", "Extend", active_time=2000.0), Told)
            await one.until(lambda: one.entry("harbour") is None)

            outcome = one.snapshot("harbour").outcome
            assert Ending.COMPLETED == (outcome and outcome.ending)

    cases.play(backend, case)


def test_money_that_is_spent_stops_the_next_start(backend: str) -> None:
    """Whatever comes together, no try starts once its predecessors have spent what the job may use (I8)."""

    async def case(root: Path) -> None:
        def says(frame: frames.Run) -> decisions.Answer:
            if not frame.item:
                return cases.usual()(frame)
            return evolve(accept(frame.item), used=Budget(usd="0.30"))

        contracts = limited(usd="1")
        async with cases.made(root, says=says, contracts=contracts, most_workers=1) as one:
            await one.start()
            await one.admit("harbour", [f"i-{number}" for number in range(10)])
            assert "budget: it has used 1.2 of 1 usd" == await until_held(one, "harbour")
            assert 4 == sum(bool(ran.unit) for ran in one.witness.ran)
            await one.kill()
            await one.start()
            await one.passes(600.0)
            assert 4 == sum(bool(ran.unit) for ran in one.witness.ran)
            above = await ask(one, "harbour", "Extend", usd="2")
            assert isinstance(above, Refusal)
            assert "limits.usd in label.toml" in above.reason
            raised = await ask(one, "harbour", "Extend", usd="9", allowed=Limits(usd="9"))
            assert isinstance(raised, Told)
            await one.until(lambda: one.entry("harbour") is None)

            assert "3" == one.snapshot("harbour").used.usd

    cases.play(backend, case)


@pytest.mark.parametrize("kill", [False, True])
def test_failures_in_a_row_make_the_job_wait_and_then_ask(backend: str, kill: bool) -> None:
    """While another system is away, no item is used up: some tries, three waits that outlive the daemon, a
    hold; a person's word and its return bring every item to its end."""

    async def case(root: Path) -> None:
        away = True

        def says(frame: frames.Run) -> decisions.Answer:
            if frame.item and away:
                refused = decisions.TryAgain(reason=f"cannot reach cms for {frame.item}", code="exit-7")
                return decisions.Answer(decided=refused)
            return cases.usual(3)(frame)

        contracts = [world.contract(tries=1, backoff_max=100.0)]
        async with cases.made(root, says=says, contracts=contracts, most_workers=3) as one:
            await one.start()
            names = [f"i-{number}" for number in range(20)]
            await one.admit("harbour", names)
            for _ in range(20 if kill else 0):
                await one.passes(35.0)
                await one.kill()
                await one.start()
            assert (await until_held(one, "harbour")).startswith("breaker: 5 tries in a row failed")
            runs = sum(bool(ran.unit) for ran in one.witness.ran)
            assert runs <= 5 + 2 + 3
            assert {0} == {item.failures for item in one.snapshot("harbour").items}
            away = False
            assert isinstance(await ask(one, "harbour", "Resume"), Told)
            await one.until(lambda: one.entry("harbour") is None)

            outcome = one.snapshot("harbour").outcome
            assert Ending.COMPLETED == (outcome and outcome.ending)
            assert 20 == one.snapshot("harbour").items.count(ItemState.DONE)

    cases.play(backend, case)
