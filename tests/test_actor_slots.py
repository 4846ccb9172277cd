"""The slots: who gets a free place, and when a job must give way."""

from collections.abc import Awaitable, Callable

import anyio.lowlevel
import pytest
from attrs import evolve

from resumed.actors.pools import Pool
from resumed.actors.slots import OVERDUE, PAUSE_MOST, STREAK, TURN, Slots
from resumed.actors.turns import Rank
from resumed.schemas import frames
from resumed.schemas.errors import CommitError
from resumed.schemas.workflow import Contract

CONTRACT = Contract(workflow="w", version=1, start="s", steps=())


class Idle:
    """A worker of one slot that does nothing."""

    slots = 1

    def __init__(self, name: str) -> None:
        self.name = name
        self.killed = False

    def send(self, frame: frames.ToWorker) -> None:
        """Nothing."""

    def kill(self) -> None:
        """Remembered, no more."""
        self.killed = True

    def forget(self) -> None:
        """Nothing."""

    def stderr_tail(self, size: int = 2000) -> str:
        """Nothing."""
        return ""


class Wall:
    """Slots over workers that do nothing, with all they say, and time that a test moves."""

    def __init__(self, most: int = 1) -> None:
        self.now = 0.0
        self.offers: list[tuple[str, str]] = []
        self.troubles: list[tuple[str, str, str]] = []
        self.starts: list[tuple[Callable[..., Awaitable[None]], Pool]] = []
        self.workers: dict[str, Idle] = {}
        self.waits: list[float] = []
        self.error: Exception | None = None
        self.slots = Slots(
            spawn=self._spawn,
            most=most,
            start_soon=lambda function, pool: self.starts.append((function, pool)),
            offer=lambda job, worker: self.offers.append((job, worker)),
            trouble=lambda job, code, reason: self.troubles.append((job, code, reason)),
            name=lambda: f"w-{len(self.workers) + 1}",
            seconds=lambda: self.now,
            wait=self._wait,
        )

    async def _spawn(self, name: str, contract: Contract) -> Idle:
        if self.error is not None:
            raise self.error
        made = self.workers[name] = Idle(name)
        made.slots = contract.slots
        return made

    async def _wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def start(self) -> None:
        """Start every worker that was asked for."""
        starts, self.starts = self.starts, []
        for function, pool in starts:
            await function(pool)


@pytest.mark.anyio
async def test_a_worker_without_slots_starves_nobody() -> None:
    """A contract that gives no slots holds the jobs that wait for it, and its place goes to others."""
    wall = Wall()
    wall.slots.want("none", "zero", evolve(CONTRACT, slots=0))
    wall.slots.want("other", "digest", CONTRACT)
    await wall.start()
    wall.slots.ready("w-1")

    assert [("none", "contract")] == [each[:2] for each in wall.troubles]
    assert wall.workers["w-1"].killed


@pytest.mark.anyio
async def test_a_worker_that_is_never_free_gives_way_at_a_look() -> None:
    """A worker whose jobs neither take nor free a place still ends when others have none, after its turn."""
    wall = Wall()
    wall.slots.want("one", "first", CONTRACT)
    await wall.start()
    wall.slots.want("other", "second", CONTRACT)
    wall.slots.ready("w-1")
    wall.slots.unwant("one", "first")
    wall.slots.hands["w-1"].offered.clear()
    wall.slots.look()
    assert not wall.workers["w-1"].killed
    wall.now = TURN
    wall.slots.look()

    assert wall.workers["w-1"].killed


@pytest.mark.anyio
async def test_a_freed_place_is_passed_on_at_once() -> None:
    """With one worker, a workflow without any gets its place as soon as nobody wants it, not after a turn of
    ten seconds: no time goes by here."""
    wall = Wall()
    wall.slots.want("one", "first", CONTRACT)
    await wall.start()
    wall.slots.ready("w-1")
    wall.slots.take("w-1", ("one", "", 1))
    wall.slots.want("other", "second", CONTRACT)
    await wall.start()
    assert not wall.workers["w-1"].killed
    wall.slots.release("w-1", ("one", "", 1))
    await wall.start()
    assert wall.workers["w-1"].killed
    wall.slots.gone("w-1")
    await wall.start()
    wall.slots.ready("w-2")

    assert 0.0 == wall.now
    assert [("one", "w-1"), ("other", "w-2")] == wall.offers


@pytest.mark.anyio
async def test_a_place_that_its_own_job_wants_again_is_kept_for_its_turn() -> None:
    """Between two tries of one job its worker is not ended for others, until its turn is over."""
    wall = Wall()
    wall.slots.want("one", "first", CONTRACT)
    await wall.start()
    wall.slots.ready("w-1")
    wall.slots.want("other", "second", CONTRACT)
    for number in range(1, 4):
        wall.slots.take("w-1", ("one", "", number))
        wall.slots.release("w-1", ("one", "", number))
        wall.slots.want("one", "first", CONTRACT)
        await wall.start()
    assert (False, 4) == (wall.workers["w-1"].killed, len(wall.offers))
    wall.now = TURN
    wall.slots.decline("w-1", "one")

    assert wall.workers["w-1"].killed


@pytest.mark.anyio
async def test_want_during_an_offer_leaves_no_place_in_the_queue() -> None:
    """A job that asks again while its offer is on the way does not wait for itself, so it may go on."""
    offers: list[tuple[str, str]] = []
    starts: list[tuple[Callable[..., Awaitable[None]], Pool]] = []

    async def spawn(name: str, contract: Contract) -> Idle:
        return Idle(name)

    slots = Slots(
        spawn=spawn,
        most=1,
        start_soon=lambda function, pool: starts.append((function, pool)),
        offer=lambda job, worker: offers.append((job, worker)),
        trouble=lambda job, code, reason: None,
        name=lambda: "w-1",
        seconds=lambda: 0.0,
        wait=lambda _: anyio.lowlevel.checkpoint(),
    )
    slots.want("job", "digest", CONTRACT)
    for function, pool in starts:
        await function(pool)
    slots.ready("w-1")
    slots.want("job", "digest", CONTRACT)
    slots.occupy("w-1", ("job", "", 1))

    assert [("job", "w-1")] == offers
    assert all(slots.may_go_on("w-1") for _ in range(2 * STREAK))


REFUSALS = {
    "no processes": BlockingIOError(11, "Resource temporarily unavailable"),
    "no room": CommitError("cannot record worker w-1: No space left on device", path="w-1", errno=28),
    "no thread": RuntimeError("can't start new thread"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refused_start_is_tried_again_and_holds_nobody(case: str) -> None:
    """What the system is short of is no job's fault: tried again ever more slowly, shown, and then over."""
    wall = Wall()
    wall.error = REFUSALS[case]
    wall.slots.want("job", "digest", CONTRACT)
    for _ in range(8):
        await wall.start()

    assert ([1.0, 2.0, 4.0, 8.0, 16.0, PAUSE_MOST, PAUSE_MOST, PAUSE_MOST], []) == (wall.waits, wall.troubles)
    assert (f"no worker of w could be started: {wall.error}",) == wall.slots.troubles()
    wall.error = None
    await wall.start()
    wall.slots.ready("w-1")
    assert ([("job", "w-1")], ()) == (wall.offers, wall.slots.troubles())


@pytest.mark.anyio
async def test_a_worker_that_ends_before_it_is_ready_still_counts() -> None:
    """Three workers in a row that ended before they were ready hold the jobs that wait for them."""
    wall = Wall()
    wall.slots.want("job", "digest", CONTRACT)
    for number in range(1, 4):
        assert [] == wall.troubles
        await wall.start()
        wall.slots.gone(f"w-{number}")

    assert [("job", "worker")] == [each[:2] for each in wall.troubles]


@pytest.mark.anyio
async def test_pools_that_nobody_needs_are_dropped() -> None:
    """A workflow without workers and waiting jobs leaves nothing behind."""
    wall = Wall()
    wall.slots.want("job", "digest", CONTRACT)
    wall.slots.look()
    assert ["digest"] == list(wall.slots.pools)
    await wall.start()
    wall.slots.gone("w-1")
    await wall.start()
    wall.slots.unwant("job", "digest")
    wall.slots.gone("w-2")
    wall.slots.look()

    assert {} == wall.slots.pools


@pytest.mark.anyio
async def test_a_higher_priority_is_offered_the_place_first() -> None:
    """Of those that wait for one workflow the higher priority gets the next place, and holds the lower one's
    streak short."""
    wall = Wall()
    for job, priority in (("low", -2), ("plain", 0), ("high", 4)):
        wall.slots.want(job, "digest", CONTRACT, Rank(priority, "anna"))
    await wall.start()
    wall.slots.ready("w-1")
    assert [("high", "w-1")] == wall.offers
    wall.slots.take("w-1", ("high", "", 1))
    assert [True] * (STREAK - 1) == [wall.slots.may_go_on("w-1", 4) for _ in range(STREAK - 1)]
    assert not wall.slots.may_go_on("w-1", 4)
    assert not wall.slots.may_go_on("w-1", -2)
    wall.slots.release("w-1", ("high", "", 1))

    assert [("high", "w-1"), ("plain", "w-1")] == wall.offers


@pytest.mark.anyio
async def test_a_workflow_of_higher_priority_keeps_its_worker_and_no_longer_than_it_may() -> None:
    """With room for one worker, a workflow of lower priority waits longer than its turn, and not for ever;
    one of higher priority has it after a turn."""
    wall = Wall()
    wall.slots.want("one", "first", CONTRACT, Rank(1, "anna"))
    await wall.start()
    wall.slots.ready("w-1")
    wall.slots.take("w-1", ("one", "", 1))
    wall.slots.want("low", "second", CONTRACT, Rank(0, "bo"))
    wall.now = TURN
    assert wall.slots.may_go_on("w-1", 1)
    wall.now = OVERDUE - 1
    assert wall.slots.may_go_on("w-1", 1)
    wall.now = OVERDUE
    assert not wall.slots.may_go_on("w-1", 1)
    wall.slots.release("w-1", ("one", "", 1))
    assert wall.workers["w-1"].killed
    wall.slots.want("high", "third", CONTRACT, Rank(5, "cy"))
    wall.slots.gone("w-1")
    await wall.start()
    wall.slots.ready("w-2")
    assert ("low", "w-2") == wall.offers[-1]  # it was overdue: not even a higher one goes before it
    wall.now += TURN
    wall.slots.decline("w-2", "low")
    assert wall.workers["w-2"].killed
    wall.slots.gone("w-2")
    await wall.start()
    wall.slots.ready("w-3")

    assert ("high", "w-3") == wall.offers[-1]


@pytest.mark.anyio
async def test_only_a_worker_of_one_slot_goes_on_errands() -> None:
    """A worker that holds several tries at once sends nothing; one of its own is had for that."""
    wall, many = Wall(most=2), evolve(CONTRACT, slots=3)
    rank = Rank(0, "")
    wall.slots.want("tries", "digest", many, rank)
    wall.slots.want("sends", "digest", many, rank, errand=True)
    await wall.start()
    by_slots = {worker.slots: wall.slots.does_errands(name) for name, worker in wall.workers.items()}

    assert {3: False, 1: True} == by_slots
    assert not wall.slots.does_errands("gone")
