"""The actor of one job: receive, decide, commit, adopt, act.

Nothing acts before its commit returned, and the new snapshot is adopted only then: what the disk says is
what runs. It never starts a process, opens a file or reads a clock of its own; it asks `house`.

The order that must hold: wake (one commit) before the first message; STOP before RUN; answers and messages
leave the mailbox only after adoption. A kill at any line leaves the files to say what is due.
"""

import logging
from functools import partial
from pathlib import Path
from typing import Protocol

from attrs import evolve

from resumed.schemas import events, line_io
from resumed.schemas.errors import CommitError, FaultyInputError, StoreError, UnreadableError
from resumed.schemas.instant import Instant, reached
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import STATE_SCHEMA, Checkpoint, Entry, Line, Snapshot
from resumed.store.journal import SYNC_FAILED, Journal
from resumed.store.recovery import Recovered

from . import acting, onward, outputs, receipts, straight, verdicts, witness
from .clock import Clock
from .entry import JobEntry
from .machine import due, plaincall
from .machine.apply import after
from .machine.transition import transition
from .machine.verdict import Verdict
from .mailbox import Answered, Message, Offered
from .onward import Onward
from .straight import Drawn, Straight
from .trouble import Ease
from .witness import Witness

logger = logging.getLogger(__name__)

RETRY_FIRST = 0.25
RETRY_MOST = 15.0
"""Seconds between two tries to open a new log after a failed sync."""


class House(straight.House, acting.House, Protocol):
    """What an actor asks of its supervisor."""

    clock: Clock
    ease: Ease
    witness: Witness

    def adopted(
        self, entry: JobEntry, snapshot: Snapshot, now: Instant, until: Instant | None = None
    ) -> None:
        """This snapshot is in force; look again at `until`, or when `due` says after `now`."""
        ...

    def lost(self, snapshot: Snapshot) -> events.Woke:
        """What the start-up found of the workers of an attempt that this process did not open."""
        ...

    def load(self, folder: Path) -> Recovered:
        """The job as its files tell it."""
        ...


class JobActor:
    """One job's loop; `run` and `go_on` return when there is nothing to do for now.

    An actor that only waits for an instant that is near needs no task meanwhile: it is kept as it is, and
    whoever wakes it calls `go_on`.
    """

    __slots__ = ("_checkpoint_size", "_now", "checkpointed", "entry", "house", "journal", "snapshot")

    def __init__(self, house: House, entry: JobEntry, recovered: Recovered, journal: Journal) -> None:
        self.house = house
        self.entry = entry
        self.journal = journal
        self.snapshot = recovered.snapshot
        self.checkpointed = recovered.checkpoint
        self._checkpoint_size = 0
        self._now = house.clock.now()
        """When it last looked at the clock: once a turn."""

    async def run(self, first: Message | None = None) -> bool:
        """Live until there is nothing to do now; True when it only sleeps, False when the job may be parked.

        StoreError when the files cannot go on. `first` is decided before anything is done or read: the hold
        of a job whose actors keep dying.
        """
        self.house.adopted(self.entry, self.snapshot, self._now)
        await self._wake()
        # Also without a message: what has lapsed meanwhile is marked before anything else is done.
        await self._decide([] if first is None else [first])
        return await self._live()

    async def go_on(self) -> bool:
        """The same from where an actor that sleeps was left: there is a message, or an instant has come."""
        self.entry.box.rung = False
        await self._turn()
        return await self._live()

    async def _live(self) -> bool:
        straight = Straight(self, self.house)
        while True:
            wants = self.act()
            if self.journal.superseded is not None and not (self.entry.box or self._may_park()):
                # Nobody waits for an answer now. A job that parks drops it with its checkpoint.
                await self.house.disk.call(self.journal.drop_superseded)
            if self._may_rest(wants):
                return not self._may_park()
            try:
                await straight.wait()
            except CommitError as error:
                await self._failed(error)
            await self._turn()

    def check_parkable(self) -> None:
        """RuntimeError when the loop ended although work is open: the supervisor takes that as a death."""
        if not self._may_park():
            raise RuntimeError("its loop ended while work was open")

    async def park(self) -> None:
        """Checkpoint what is new and close the log; the files alone are the job from here on."""
        try:
            if self.journal.sequence > self.checkpointed:
                # A log that cannot go on is no matter here: whoever comes next opens one of its own.
                await self._checkpoint("park", fill=False, reload=False)
        finally:
            await self.house.disk.call(self.journal.close)

    def _may_park(self) -> bool:
        if self._is_busy():
            return False
        snapshot = self.snapshot
        return self.house.draining or (snapshot.attempt is None and not due.placings(snapshot, self._now))

    def _is_busy(self) -> bool:
        snapshot, entry = self.snapshot, self.entry
        return bool(snapshot.tries or snapshot.errands or entry.running or entry.placing)

    # ---- waking ---------------------------------------------------------------------------------------

    async def _wake(self) -> None:
        """An attempt that another process opened is over: one commit, or a few where one line is too short,
        before any message is read. What a line that was lost could have let go is marked then, and the log
        says no more that it is torn; where nothing can be let go it goes on saying so."""
        torn = bool(self.journal.torn) and bool(len(self.snapshot.effects) or self.snapshot.contract.effects)
        while torn or ((open_ := self.snapshot.attempt) is not None and open_.epoch != self.entry.epoch):
            # One that had to be told in pieces is not yet over.
            if await self._decide([Message(evolve(self.house.lost(self.snapshot), torn=torn))]) and torn:
                self.journal.torn, torn = (), False

    # ---- one turn -------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        box = self.entry.box
        # After a death one at a time, so that a message an actor dies over is known.
        messages = box.take(1 if self.entry.crashes else 64)
        for message in messages:
            event = message.event
            if isinstance(event, events.Returned) and outputs.is_to_keep(event):
                message.event = await self.house.publisher.keep(self.entry, event)
        if any(witness.concerns(self.snapshot, message.event) for message in messages):
            await self._find_out(messages)
        await self._decide(messages)

    async def _find_out(self, messages: list[Message]) -> None:
        """Put into messages what must be known of people before they are decided."""
        now = self.house.clock.now()
        choose = partial(self._choose, now)
        await self.house.witness.attach(self.snapshot, self.entry.uid, messages, now, choose)

    def _choose(self, now: Instant, worker: str) -> str | None:
        """The errand that this worker's slot would be used for."""
        snapshot = self.snapshot
        return self.house.workshop.sends.choose(self.entry, snapshot, snapshot, worker, now)

    def waits_for_more(self, messages: list[Message]) -> bool:
        """True when something must be kept, or found out, before these are decided."""
        concerned = False
        for message in messages:
            event = message.event
            if isinstance(event, events.Returned) and outputs.is_to_keep(event):
                return True
            concerned = concerned or witness.concerns(self.snapshot, event)
        if not concerned:
            return False
        now = self.house.clock.now()
        choose = partial(self._choose, now)
        return not self.house.witness.attach_at_once(self.snapshot, self.entry.uid, messages, now, choose)

    async def _decide(self, messages: list[Message]) -> bool:
        """False when what was drawn up is not in force, and what was in hand has been dealt with."""
        drawn = self.draw_up(messages)
        if isinstance(drawn.line, Line) and not await self._commit(drawn.line, messages):
            return False
        self.settle(drawn)
        if self._wants_checkpoint():
            await self._checkpoint("rotation", fill=True)
        return True

    def settle(self, drawn: Drawn) -> None:
        """What was drawn up is in force, and whoever waits for it is answered; nobody does for a report."""
        line = drawn.line
        if type(line) is Onward:
            self.snapshot, self.entry.crashes = drawn.tentative, 0
            self.house.adopted(self.entry, drawn.tentative, self._now, line.until)
            self.entry.box.adopted()
            return
        if line is not None:
            self._adopt(drawn.tentative)
        else:  # nothing changed but the time: the instant after the one that rang must not be missed
            self.house.adopted(self.entry, self.snapshot, self._now)
        for message, verdict in zip(drawn.messages, drawn.verdicts, strict=True):
            if message.reply is not None:
                message.reply.fill(Answered(verdict, self.snapshot))
            if isinstance(message.event, Offered):
                verdicts.offer_used(self.house, self.entry, message.event.worker, verdict)
        self.entry.box.adopted()

    def needs_task(self, wants: bool) -> bool:
        """True when a checkpoint is wanted, or nothing that is worth a task."""
        return self._wants_checkpoint() or self._may_rest(wants)

    def _may_rest(self, wants: bool) -> bool:
        """True when there is nothing to wait for: the job may be parked, or its actor only sleeps."""
        box = self.entry.box
        return not box and (self._may_park() or not (wants or box.rung or self._is_busy()))

    def _wants_checkpoint(self) -> bool:
        return self.journal.wants_checkpoint(self._checkpoint_size)

    def draw_plain(self, messages: list[Message]) -> Drawn | None:
        """The same as `draw_up`, in one go; None where they are not one plain step, or one plain call."""
        if len(messages) != 1 or type(event := messages[0].event) is not events.Returned:
            return None
        house = self.house
        now = house.clock.now()
        if plaincall.is_bare(event.answer.decided):
            event = house.witness.of_call(self.snapshot, self.entry.uid, event)
        found = onward.draw(house.workshop.sends, self.entry, self.snapshot, event, self.journal.digest, now)
        if found is None:
            return None
        self._now = now
        return Drawn(messages, *found, [])

    def draw_up(self, messages: list[Message]) -> Drawn:
        """The line that decides all messages in order now, each on top of the ones before."""
        house, entry = self.house, self.entry
        now = self._now = house.clock.now()
        tentative = self.snapshot
        entries: list[Entry] = []
        found: list[Verdict] = []
        sequence, previous = self.journal.sequence + 1, self.journal.digest

        def take(verdict: Verdict) -> None:
            nonlocal tentative
            if isinstance(verdict, Entry):
                entries.append(verdict)
                tentative = after(tentative, (verdict,), sequence, now)

        # What `due` named when this snapshot was adopted: while that has not come, nothing has lapsed.
        limit = entry.next_due
        if limit is not None and reached(limit, now):
            take(transition(tentative, events.Tick(), now))
        for message in messages:
            verdict = verdicts.verdict(house, entry, self.snapshot, tentative, message.event, now)
            verdict = receipts.with_receipt(tentative, message.event, verdict, sequence, now)
            take(verdict)
            found.append(verdict)
        if not entries:
            return Drawn(messages, None, self.snapshot, found)
        decided = tuple(entries)
        line = Line(sequence=sequence, epoch=tentative.epoch, previous=previous, at=now, entries=decided)
        return Drawn(messages, line, tentative, found)

    # ---- committing -----------------------------------------------------------------------------------

    async def _commit(self, line: Line, messages: list[Message]) -> bool:
        """Make the line durable; False when it is not, and what was in hand has been dealt with."""
        try:
            raw, digest = line_io.spell_line(line)
        except FaultyInputError as error:
            await self._too_large(messages, error)
            return False
        try:
            await self.house.disk.append(self.journal, raw, line.sequence, digest)
        except CommitError as error:
            await self._failed(error)
            return False
        return True

    async def _failed(self, error: CommitError) -> None:
        """The commit of what is in hand failed, and nobody knows whether it is on the disk."""
        logger.warning("a commit of %s failed and its outcome is unknown: %s", self.entry.id, error)
        self.entry.box.again(error)
        await self._reload()

    async def _too_large(self, messages: list[Message], error: FaultyInputError) -> None:
        """Decide the first message alone; one that makes a line too long becomes its own failure."""
        if len(messages) > 1:
            self.entry.box.keep_first()
            await self._decide(self.entry.box.in_hand)
            return
        event, reply = messages[0].event, messages[0].reply
        if reply is not None:
            # A person asked for more than one line holds: nothing of it is in force.
            said = Refusal(code="too_large", reason=f"{error}: name fewer items at a time")
            reply.fill(Answered(said, self.snapshot))
            self.entry.box.adopted()
        else:
            messages[0].event = verdicts.smaller(event, self.snapshot, error)
            await self._decide(messages)

    async def _reload(self) -> None:
        """After a failed commit: a new log seals the old one, and the job is read again from the disk.

        What is found damaged is raised: the job is set aside.
        """
        wait = RETRY_FIRST
        began = False
        while True:
            try:
                if self.journal.failed:
                    began = True
                    await self.house.disk.call(self.journal.reopen_after_failure)
                recovered = await self.house.disk.call(self.house.load, self.entry.folder)
                break
            except (CommitError, UnreadableError) as error:
                if await self.house.ease(error):
                    continue
                self.entry.trouble = str(error)
                self.entry.box.refuse_requests(error)
                self.house.workshop.give_back(self.entry)
                await self.house.clock.wait(wait)
                wait = min(wait * 2, RETRY_MOST)
        self.entry.trouble = ""
        self._adopt(recovered.snapshot)
        # What the lost line would have let go has no place any more, where it is drawn up again.
        self.house.workshop.sends.settle(self.entry, self.snapshot)
        if began:
            # The log that failed cannot say that another one follows; a checkpoint does.
            await self._checkpoint(SYNC_FAILED, fill=True, reload=False)

    def _adopt(self, snapshot: Snapshot) -> None:
        """The snapshot is in force: what its line says is durable."""
        before, self.snapshot = self.snapshot.attempt, snapshot
        snapshot.items.settle()
        self.entry.crashes = 0
        if (now := snapshot.attempt) is not None and (before is None or before.epoch != now.epoch):
            self.entry.epoch = now.epoch
        self.house.adopted(self.entry, snapshot, self._now)

    async def _checkpoint(self, why: str, *, fill: bool, reload: bool = True) -> None:
        """Rotate the log, then write the checkpoint; one that fails is no commit and is tried again later."""
        snapshot, digest = self.snapshot, self.journal.digest

        def write() -> int:
            self.journal.rotate(why, fill=fill)
            raw = line_io.spell_checkpoint(
                Checkpoint(
                    sequence=snapshot.sequence,
                    epoch=snapshot.epoch,
                    previous=digest,
                    state_schema=STATE_SCHEMA,
                    code_version=snapshot.code_version,
                    last_transition=snapshot.last_transition,
                    job=self.journal.job,
                    torn=self.journal.torn,
                    pinned=tuple(sorted(self.journal.pinned)),
                    snapshot=snapshot,
                )
            )
            self.journal.write_checkpoint(raw, snapshot.sequence)
            return len(raw)

        try:
            self._checkpoint_size = await self.house.disk.call(write)
            self.checkpointed = snapshot.sequence
        except StoreError as error:
            logger.warning("a checkpoint of %s failed: %s", self.entry.id, error)
            # Not asked for again at every commit: the log has to outgrow this mark first.
            self._checkpoint_size = 2 * self.journal.size_since_checkpoint
            if self.journal.failed and reload:
                await self._reload()

    # ---- acting ---------------------------------------------------------------------------------------

    def act(self) -> bool:
        """Begin what is due and end what is no longer; True when the job wants a slot."""
        return acting.act(self.house, self.entry, self.snapshot, self._now)

    def act_on(self, drawn: Drawn) -> bool:
        """The same after what was drawn up."""
        if type(drawn.line) is Onward:
            return onward.go_on(self.house, self.entry, self.snapshot, drawn.line.row, self._now)
        return self.act()
