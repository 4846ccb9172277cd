"""Straight turns: from the mail to the disk and from there to the act, while the actor's task sleeps.

A turn that waits for nothing but the disk needs no task: waking one twice a turn, through all that it had
awaited, took a seventh of a step (`docs/adr/0016`). It runs the actor's own code, in the same order; whatever
would have to wait, and whatever fails, is the task's.
"""

from collections.abc import Callable
from typing import Protocol

import anyio
import anyio.abc
from attrs import frozen

from resumed.schemas import line_io
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.snapshot import Line, Snapshot
from resumed.store.journal import Journal

from .bell import Bell
from .disk import Disk
from .entry import JobEntry
from .machine.verdict import Verdict
from .mailbox import Message
from .onward import Onward
from .soon import soon


class Round:
    """The actors that have mail, each once; all of them get their turn together, soon."""

    def __init__(self, group: Callable[[], anyio.abc.TaskGroup | None]) -> None:
        self._group = group
        self._turns: list[Callable[[], None]] = []

    def add(self, turn: Callable[[], None]) -> None:
        """Call `turn` in the loop's next turn; it must not raise. None is called once its owner has ended."""
        group = self._group()
        if group is not None:
            self._turns.append(turn)
            if len(self._turns) == 1:
                soon(group, self._run)

    def _run(self) -> None:
        turns, self._turns = self._turns, []
        for turn in turns:
            turn()


@frozen
class Drawn:
    """What the law makes of messages: the line to commit, the snapshot after it, a verdict for each."""

    messages: list[Message]
    line: Line | Onward | None
    tentative: Snapshot
    verdicts: list[Verdict]


class Actor(Protocol):
    """The actor whose turns these are."""

    entry: JobEntry
    journal: Journal

    def waits_for_more(self, messages: list[Message]) -> bool:
        """True when something must be awaited before these are decided."""
        ...

    def draw_plain(self, messages: list[Message]) -> Drawn | None:
        """What the law makes of them now where they are one plain step, or one plain call or its landing, for
        which nothing is awaited."""
        ...

    def draw_up(self, messages: list[Message]) -> Drawn:
        """What it makes of any."""
        ...

    def settle(self, drawn: Drawn) -> None:
        """Its line is durable: adopt, and answer."""
        ...

    def act_on(self, drawn: Drawn) -> bool:
        """Start what is due after it, and stop what is no longer; True when the job wants a slot."""
        ...

    def needs_task(self, wants: bool) -> bool:
        """True when a checkpoint is wanted, or nothing that is worth a task."""
        ...


class House(Protocol):
    """What is asked of the supervisor."""

    disk: Disk
    next_turn: Callable[[Callable[[], None]], None]
    """Calls a turn soon, with those of other actors."""


class Straight:
    """One actor's straight turns. They are taken only while its task is in `wait`."""

    __slots__ = ("_actor", "_drawn", "_error", "_house", "_landed", "_queued", "_task")

    def __init__(self, actor: Actor, house: House) -> None:
        self._actor = actor
        self._house = house
        self._task: Bell | None = None
        """Rung when the task is needed; None while it is awake."""
        self._queued = False
        self._drawn: Drawn | None = None
        """What is on its way to the disk."""
        self._landed: Bell | None = None
        """For a task that ends while a line is on its way."""
        self._error: BaseException | None = None

    async def wait(self) -> None:
        """Sleep until the task is needed. Raises what a turn raised: a CommitError is that of the messages in
        hand. Canceled, it returns only when no line is on its way any more."""
        box = self._actor.entry.box
        bell = self._task = Bell()
        box.reader = self._mail
        if box or box.rung:
            self._mail()
        try:
            await bell.wait()
        finally:
            box.reader = self._task = None
            if self._drawn is not None:
                self._landed = Bell()
                with anyio.CancelScope(shield=True):
                    await self._landed.wait()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _mail(self) -> None:
        if not self._queued and self._drawn is None:
            self._queued = True
            self._house.next_turn(self._turn)

    def _turn(self) -> None:
        self._queued = False
        if self._task is None or self._task.rung:
            return  # it is awake, and looks itself
        try:
            self._begin()
        except BaseException as error:  # noqa: BLE001 - it is raised again in the task
            self._wake(error)

    def _begin(self) -> None:
        actor = self._actor
        box = actor.entry.box
        if actor.entry.crashes:
            self._wake()
            return
        box.rung = False
        messages = box.take()
        drawn = actor.draw_plain(messages)
        if drawn is None:
            if actor.waits_for_more(messages):
                self._wake()
                return
            drawn = actor.draw_up(messages)
        line = drawn.line
        if line is None:
            self._end(drawn)
            return
        if isinstance(line, Onward):
            raw, digest = line.raw, line.digest
        else:
            try:
                raw, digest = line_io.spell_line(line)
            except FaultyInputError:
                self._wake()  # it decides them again, in smaller pieces
                return
        self._drawn = drawn
        try:
            self._house.disk.submit(actor.journal, raw, line.sequence, digest, self._durable)
        except BaseException:
            self._drawn = None
            raise

    def _durable(self, error: BaseException | None) -> None:
        """The line is durable, or nobody knows."""
        drawn, self._drawn = self._drawn, None
        if self._landed is not None:
            self._landed.ring()
        elif error is not None:
            self._wake(error)
        elif drawn is not None:
            try:
                self._end(drawn)
            except BaseException as found:  # noqa: BLE001 - it is raised again in the task
                self._wake(found)

    def _end(self, drawn: Drawn) -> None:
        actor = self._actor
        actor.settle(drawn)
        wants = actor.act_on(drawn)
        box = actor.entry.box
        if actor.needs_task(wants):
            self._wake()
        elif box or box.rung:
            self._mail()

    def _wake(self, error: BaseException | None = None) -> None:
        self._error = error
        if self._task is not None:
            self._task.ring()
