"""Straight turns: what an actor does while its task sleeps, and what is left to the task."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from machine_kit import BOOT, Play

from resumed.actors.entry import JobEntry
from resumed.actors.flights import Done
from resumed.actors.mailbox import Message
from resumed.actors.straight import Drawn, Straight
from resumed.schemas import events
from resumed.schemas.errors import CommitError
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import Line
from resumed.store.layout import Layout

pytestmark = pytest.mark.anyio
AT = Instant(wall=1, boot=BOOT, up=1)


class Slow:
    """A disk that holds each line back until the test lets it land."""

    def __init__(self) -> None:
        self.waiting: list[Done] = []

    def submit(self, journal: object, raw: bytes, sequence: int, digest: str, done: Done) -> None:
        """The line is on its way."""
        self.waiting.append(done)

    def land(self, error: BaseException | None = None) -> None:
        """The first line has landed, or not."""
        self.waiting.pop(0)(error)


class Scribe:
    """An actor that commits a line for every look with mail, and writes down what is asked of it."""

    def __init__(self) -> None:
        self.entry = JobEntry(id="harbour", layout=Layout(Path("/nowhere")))
        self.journal: Any = None
        self.did: list[str] = []
        self.waits = False
        self.needed = False
        self.fault: Exception | None = None

    def waits_for_more(self, messages: list[Message]) -> bool:
        return self.waits

    def draw_plain(self, messages: list[Message]) -> Drawn | None:
        return None

    def draw_up(self, messages: list[Message]) -> Drawn:
        if self.fault is not None:
            raise self.fault
        self.did.append(f"draw {len(messages)}")
        line = Line(sequence=1, epoch=1, previous="", at=AT) if messages else None
        return Drawn(messages, line, Play.of("a").snapshot, [])

    def settle(self, drawn: Drawn) -> None:
        self.entry.box.adopted()
        self.did.append("settle")

    def act_on(self, drawn: Drawn) -> bool:
        self.did.append("act")
        return False

    def needs_task(self, wants: bool) -> bool:
        return self.needed


class Bench:
    """One actor whose straight turns are taken at once, and its task."""

    def __init__(self) -> None:
        self.disk = Slow()
        self.actor = Scribe()
        self.turns: list[Callable[[], None]] = []
        house: Any = SimpleNamespace(disk=self.disk, next_turn=self.turns.append)
        self.straight = Straight(self.actor, cast(Any, house))
        self.woken: list[BaseException | None] = []

    async def task(self) -> None:
        """Sleep until the task is needed, once; note why."""
        try:
            await self.straight.wait()
        except Exception as error:  # noqa: BLE001 - it is what the test asks about
            self.woken.append(error)
        else:
            self.woken.append(None)

    def mail(self, count: int = 1) -> None:
        """So many messages at once."""
        for _ in range(count):
            self.actor.entry.box.put(Message(events.Tick()))

    async def turn(self) -> None:
        """Let the turns that are asked for be taken, and the task hear of it."""
        turns = self.turns[:]
        self.turns.clear()
        for each in turns:
            each()
        await anyio.wait_all_tasks_blocked()


async def asleep(group: Any) -> Bench:
    """A bench whose task sleeps."""
    bench = Bench()
    group.start_soon(bench.task)
    await anyio.wait_all_tasks_blocked()
    return bench


async def test_nothing_acts_before_its_line_landed() -> None:
    """Mail that comes while a line is on its way waits for it, and is then decided together."""
    async with anyio.create_task_group() as group:
        bench = await asleep(group)
        try:
            bench.mail(2)
            await bench.turn()
            bench.mail(3)
            await bench.turn()
            assert ["draw 2"] == bench.actor.did
            bench.disk.land()
            assert ["draw 2", "settle", "act"] == bench.actor.did
            await bench.turn()
            bench.disk.land()

            assert ["draw 2", "settle", "act", "draw 3", "settle", "act"] == bench.actor.did
            assert [] == bench.woken
        finally:
            while bench.disk.waiting:
                bench.disk.land()  # the task waits for it: a test that fails must not hang
        group.cancel_scope.cancel()


async def test_a_look_that_was_asked_for_before_is_taken() -> None:
    """A timer that rang while the task was awake is seen once it sleeps."""
    async with anyio.create_task_group() as group:
        bench = Bench()
        bench.actor.entry.box.wake()
        group.start_soon(bench.task)
        await anyio.wait_all_tasks_blocked()
        await bench.turn()

        assert ["draw 0", "settle", "act"] == bench.actor.did
        assert not bench.actor.entry.box.rung
        group.cancel_scope.cancel()


@pytest.mark.parametrize("why", ["an output to keep", "a death before", "parked or checkpointed"])
async def test_what_must_wait_is_left_to_the_task(why: str) -> None:
    """The task is woken, and no straight turn is taken before it sleeps again."""
    async with anyio.create_task_group() as group:
        bench = await asleep(group)
        bench.actor.waits = why == "an output to keep"
        bench.actor.entry.crashes = why == "a death before"
        bench.actor.needed = why == "parked or checkpointed"
        bench.mail()
        await bench.turn()
        if bench.actor.needed:
            bench.disk.land()
            await bench.turn()
        bench.mail()
        await bench.turn()

        assert [None] == bench.woken
        assert (["draw 1", "settle", "act"] if bench.actor.needed else []) == bench.actor.did
        assert [] == bench.disk.waiting
        assert 1 <= len(bench.actor.entry.box.left())


async def test_errors_are_the_tasks() -> None:
    """A failed commit, a broken law and a disk that takes nothing are raised in the task, once."""
    for error in (CommitError("cannot commit", path="/nowhere", errno=5), ValueError("a bad value")):
        async with anyio.create_task_group() as group:
            bench = await asleep(group)
            bench.actor.fault = None if isinstance(error, CommitError) else error
            bench.mail()
            await bench.turn()
            if bench.disk.waiting:
                bench.disk.land(error)
            await bench.turn()

            assert [error] == bench.woken
            assert "act" not in bench.actor.did
            group.start_soon(bench.task)
            await anyio.wait_all_tasks_blocked()
            assert [error] == bench.woken
            group.cancel_scope.cancel()


async def test_a_task_that_ends_waits_for_its_line() -> None:
    """Cancellation never splits a commit: the task goes only when its line has landed, and adopts nothing."""
    async with anyio.create_task_group() as group:
        bench = await asleep(group)
        bench.mail()
        await bench.turn()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
            ended = bench.actor.entry.box.reader is None
            bench.disk.land()

    assert ended
    assert ["draw 1"] == bench.actor.did
    assert 1 == len(bench.actor.entry.box.left())
