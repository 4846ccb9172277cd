"""The slots: who gets a free place, and when a job must give way."""

from collections.abc import Awaitable, Callable

import pytest

from resumed.actors.slots import STREAK, Pool, Slots
from resumed.schemas import frames
from resumed.schemas.workflow import Contract

CONTRACT = Contract(workflow="w", version=1, start="s", steps=())


class Idle:
    """A worker of one slot that does nothing."""

    slots = 1

    def __init__(self, name: str) -> None:
        self.name = name

    def send(self, frame: frames.ToWorker) -> None:
        """Nothing."""

    def kill(self) -> None:
        """Nothing."""

    def forget(self) -> None:
        """Nothing."""

    def stderr_tail(self, size: int = 2000) -> str:
        """Nothing."""
        return ""


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
    )
    slots.want("job", "digest", CONTRACT)
    for function, pool in starts:
        await function(pool)
    slots.ready("w-1")
    slots.want("job", "digest", CONTRACT)
    slots.occupy("w-1", ("job", "", 1))

    assert [("job", "w-1")] == offers
    assert all(slots.may_go_on("w-1") for _ in range(2 * STREAK))
