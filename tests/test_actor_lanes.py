"""Lanes: a file system that hangs holds its own calls, and nobody else's."""

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

from resumed.actors.disk import InlineDisk
from resumed.actors.lanes import MOST, Lanes

T = TypeVar("T")
pytestmark = pytest.mark.anyio
HUNG, OTHER, THIRD = 66, 7, 8


class Hanging(InlineDisk):
    """A disk of four threads; calls of the file systems that hang come back when they are let go."""

    def __init__(self, *hung: int) -> None:
        self.hung = {device: anyio.Event() for device in hung}
        self.at_work: Counter[int] = Counter()
        self.most: Counter[int] = Counter()
        self.all = 0
        self.ended: list[int] = []

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """The function's result; the first argument is the file system's number."""
        device = args[0]
        self.at_work[device] += 1
        self.most[device] = max(self.most[device], self.at_work[device])
        self.all = max(self.all, sum(self.at_work.values()))
        try:
            with anyio.CancelScope(shield=True):
                if device in self.hung:
                    await self.hung[device].wait()
                else:
                    await anyio.lowlevel.checkpoint()
            return function(*args)
        finally:
            self.at_work[device] -= 1
            self.ended.append(device)


async def settle() -> None:
    for _ in range(50):
        await anyio.lowlevel.checkpoint()


async def test_one_that_hangs_leaves_threads_to_the_others() -> None:
    """However many outputs wait for a place that hangs, those of other places are published meanwhile; and
    once it answers, so are its own, all of them."""
    disk = Hanging(HUNG)
    lanes = Lanes(disk)
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(lanes.call, HUNG, abs, HUNG)
        for _ in range(20):
            group.start_soon(lanes.call, OTHER, abs, OTHER)
        with anyio.fail_after(20):
            while disk.ended.count(OTHER) < 20:
                await anyio.lowlevel.checkpoint()
        assert (0, MOST) == (disk.ended.count(HUNG), disk.at_work[HUNG])
        disk.hung[HUNG].set()

    assert 20 == disk.ended.count(HUNG)
    assert MOST >= max(disk.most.values())


async def test_two_that_hang_leave_a_thread_to_a_third() -> None:
    """A second call of one file system takes no last thread: two that hang hold three of four."""
    disk = Hanging(HUNG, OTHER)
    lanes = Lanes(disk)
    async with anyio.create_task_group() as group:
        for device in (HUNG, OTHER):
            for _ in range(5):
                group.start_soon(lanes.call, device, abs, device)
        await settle()
        assert 3 == sum(disk.at_work.values())
        with anyio.fail_after(20):
            assert THIRD == await lanes.call(THIRD, abs, THIRD)
        for gate in disk.hung.values():
            gate.set()

    assert 4 >= disk.all
    assert {HUNG: 5, OTHER: 5, THIRD: 1} == dict(Counter(disk.ended))


async def test_canceled_waiters_give_their_lane_back() -> None:
    """Whoever is canceled while it waits, or as it is let in, leaves no lane taken behind it."""
    disk = Hanging(HUNG)
    lanes = Lanes(disk)
    async with anyio.create_task_group() as group:
        for _ in range(MOST):
            group.start_soon(lanes.call, HUNG, abs, HUNG)
        await settle()
        with anyio.move_on_after(0):
            await lanes.call(HUNG, abs, HUNG)
        async with anyio.create_task_group() as late:
            for _ in range(3):
                late.start_soon(lanes.call, HUNG, abs, HUNG)
            await settle()
            disk.hung[HUNG].set()
            late.cancel_scope.cancel()

    assert ({}, []) == (lanes._at_work, lanes._waiting)
    assert HUNG == await lanes.call(HUNG, abs, HUNG)


async def test_an_error_gives_the_lane_back() -> None:
    """What fails in its thread is raised where it was asked for, and the lane is free."""
    lanes = Lanes(InlineDisk())
    for _ in range(2 * MOST):
        with pytest.raises(ZeroDivisionError):
            await lanes.call(OTHER, divmod, 1, 0)

    assert {} == lanes._at_work
