"""The supervisor: which jobs there are, one actor for each that has anything to do, and none for the others.

It contains what fails: a damaged, unreadable or slow job, a dead actor, a dead worker stay the affair of one
job. It decides nothing about a job's state; requests and reports go into the job's mailbox.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
from anyio import lowlevel
from attrs import evolve

from resumed.schemas import events
from resumed.schemas.errors import (
    CommitError,
    DamagedError,
    GoneError,
    NewerSchemaError,
    ResumedError,
    StoreError,
    UnreadableError,
)
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import Admission, Line, Snapshot
from resumed.schemas.views import JobRow
from resumed.store import migration, quarantine, recovery
from resumed.store.layout import Layout
from resumed.store.recovery import Recovered

from . import archiving, deaths, draining, opened, views
from .admissions import Admissions
from .clock import Clock
from .disk import Disk
from .entry import JobEntry, Stage, has_work
from .job import JobActor
from .machine import due
from .machine.apply import apply
from .machine.transition import transition
from .mailbox import Answered, Message, Offered
from .pools import Spawn
from .publisher import Publisher
from .reading import FirstReading, Outcome, read
from .roll import Roll
from .sequels import Sequels
from .sleepers import Sleepers
from .straight import Round
from .timers import Timers
from .trouble import Ease, nothing_to_give
from .witness import Witness
from .workshop import Workshop

logger = logging.getLogger(__name__)

RETRY_FIRST = 0.5
RETRY_MOST = 30.0
"""Seconds between two tries to read a job that cannot be read."""


class Supervisor:
    """All open jobs of one store. Create it, `run` it, then ask it."""

    def __init__(
        self,
        layout: Layout,
        *,
        clock: Clock,
        disk: Disk,
        spawn: Spawn,
        most_workers: int = 4,
        reads: Disk | None = None,
        places: Disk | None = None,
    ) -> None:
        self.layout = layout
        self.clock = clock
        self.disk = disk
        self.reads = disk if reads is None else reads
        """Where whole jobs are read: a read that hangs must not take the threads that commit."""
        self.ease: Ease = nothing_to_give
        self.witness = Witness()
        self.admissions = Admissions(layout, disk)
        self.publisher = Publisher(self, disk, disk if places is None else places)
        self.draining = False
        self.entries: dict[str, JobEntry] = {}
        self.unproven: dict[str, str] = {}
        """Workers of an earlier daemon whose end nobody can prove: name -> what is known."""
        self.heard: Callable[[Admission], None] = lambda _: None  # told of each open job that was read
        self.loading = 0
        self.loaded = anyio.Event()
        self._reading: FirstReading | None = None
        self.roll = Roll(
            layout, clock=clock, reads=self.reads, start_soon=self.start_soon, found=self.take_in
        )
        self.timers = Timers(
            clock, self.entries.values, self.entry, self._rung, lambda _: self.workshop.slots.look()
        )
        self.sequels = Sequels(self)
        self.sleepers = Sleepers(disk, lambda entry: self.start_soon(self._live, entry))
        self.next_turn: Callable[[Callable[[], None]], None] = Round(lambda: self._group).add
        self._idle = anyio.Event()
        self._group: anyio.abc.TaskGroup | None = None
        self.workshop = Workshop(self, spawn, layout.scratch, most_workers)

    # ---- life -----------------------------------------------------------------------------------------

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Load every open job for itself, then supervise until cancelled; then every waiter is answered."""
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                for job in await self.roll.call_up():
                    self.entries[job] = JobEntry(id=job, layout=self.layout)
                self.loading = len(self.entries)
                group.start_soon(self.timers.run)
                group.start_soon(self.roll.count_ended)
                group.start_soon(self._load_all, list(self.entries.values()))
                task_status.started()
        finally:
            self._group = None
            await self.sleepers.close()
            for entry in self.entries.values():
                if (box := entry.there("box")) is not None:
                    box.close(GoneError("the daemon has ended; the job goes on when it starts again"))
                entry.changed()

    async def drain(self, seconds: float) -> None:
        """Stop what runs in good order and park every job, all within `seconds`: their end is for killing."""
        self.draining = True
        await draining.drain(self, seconds)

    async def until_parked(self) -> None:
        """Return when no job has an actor."""
        while any(entry.stage is Stage.ACTIVE for entry in self.entries.values()):
            self._idle = anyio.Event()
            await self._idle.wait()

    # ---- loading --------------------------------------------------------------------------------------

    async def _load_all(self, entries: list[JobEntry]) -> None:
        async def took(entry: JobEntry, outcome: Outcome) -> None:
            await self._took(entry, outcome)
            self.loading -= 1

        self._reading = FirstReading(entries, clock=self.clock, reads=self.reads, load=self.load, took=took)
        await self._reading.run()
        self._reading = None
        self.loaded.set()

    async def _load_first(self, entry: JobEntry) -> None:
        await self._took(entry, await read(self.reads, self.load, entry))

    async def _took(self, entry: JobEntry, outcome: Outcome) -> None:
        """The job was read, or something else became of that: it stops no other."""
        if isinstance(outcome, Recovered):
            entry.uid = outcome.admission.uid
            self.heard(outcome.admission)
            self._row(entry, outcome.snapshot)
            if has_work(outcome.snapshot, self.clock.now()) or entry.has_mail:
                self._activate(entry)
            else:
                entry.rest()
        elif isinstance(outcome, UnreadableError):
            self._suspend(entry, outcome)
            self.start_soon(self._live, entry)
        elif isinstance(outcome, DamagedError | NewerSchemaError):
            await self._set_aside(entry, outcome)
        else:
            said = deaths.text(outcome)
            logger.error("job %s cannot be read: %s", entry.id, said)
            self._aside(entry, f"cannot read {entry.id}: {said}")

    def load(self, folder: Path) -> Recovered:
        """The job as its files tell it; StoreError or NewerSchemaError otherwise."""
        return recovery.load(folder, apply)

    def _suspend(self, entry: JobEntry, error: StoreError) -> None:
        """The job's files cannot go on for now: people are told, reports wait, slots go to others."""
        if isinstance(error, UnreadableError):
            entry.stage, entry.since = Stage.UNREADABLE, entry.since or self.clock.now()
        entry.trouble = str(error)
        entry.box.again(error)
        entry.box.refuse_requests(error)
        self.workshop.give_back(entry)
        self._idle.set()

    def _aside(self, entry: JobEntry, why: str, *, moving: bool = False) -> None:
        """Set the job aside where it lies, as it is on the disk; the next start tries again."""
        entry.stage, entry.trouble, entry.since, entry.moving = Stage.ASIDE, why, self.clock.now(), moving
        self.sequels.gone(entry.id)
        self._close(entry, GoneError(f"{entry.id} is set aside: {why}"))
        self._idle.set()

    async def _set_aside(self, entry: JobEntry, error: Exception) -> None:
        """Move the folder whole and untouched to the quarantine, once nothing of the job runs any more; all
        other jobs go on. A crash before the move leaves it to the next start."""
        reason = "newer_schema" if isinstance(error, NewerSchemaError) else "damaged"
        logger.error("job %s was set aside (%s): %s", entry.id, reason, error)
        self._aside(entry, str(error), moving=True)
        await self.workshop.slots.until_free(entry.id)
        now = self.clock.now()
        try:
            await self.disk.call(quarantine.set_aside, self.layout, entry.id, reason, str(error), now)
        except (StoreError, OSError) as trouble:
            entry.trouble, entry.moving = f"{error}; and {trouble}", False
            return
        self._forget(entry, GoneError(f"{entry.id} is set aside: {error}"))
        self.sequels.gone(entry.id)

    def _forget(self, entry: JobEntry, error: ResumedError) -> None:
        entry.stage = Stage.ENDED
        self.entries.pop(entry.id, None)
        self._close(entry, error)
        self._idle.set()

    def _close(self, entry: JobEntry, error: ResumedError) -> None:
        """Nobody reads this box again: slots go back, tries that run are told to end, all are answered."""
        self.workshop.slots.unwant(entry.id, entry.digest)
        self.workshop.abandon(entry)
        entry.box.close(error)
        entry.changed()

    def take_in(self, job: str) -> None:
        """Open a job of the store that is not open yet: its admission was in doubt, and happened."""
        if job not in self.entries:
            entry = self.entries[job] = JobEntry(id=job, layout=self.layout)
            self.start_soon(self._load_first, entry)
            self.sequels.heard(job)

    def admitted(self, entry: JobEntry, line: Line) -> None:
        """A job has become durable: it waits for a slot like any other that is parked."""
        if line.opening is not None:
            self._row(entry, apply(line.opening, line))
        self.sequels.heard(entry.id)
        if entry.has_mail:
            self._activate(entry)
        else:
            entry.rest()

    # ---- activation and parking -----------------------------------------------------------------------

    def entry(self, job: str) -> JobEntry | None:
        """The open job of that id."""
        return self.entries.get(job)

    def start_soon(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run a task of ours; none is started once we have ended."""
        if self._group is not None:
            self._group.start_soon(function, *args)  # type: ignore[arg-type]  # its tasks return nothing

    def post(self, entry: JobEntry, message: Message) -> None:
        """Put a message in the job's box; a parked job gets an actor."""
        if self._group is None or entry.stage in (Stage.ASIDE, Stage.ENDED):
            self.turn_away(entry, message)
            return
        entry.box.put(message)
        if entry.stage is Stage.PARKED:
            self._activate(entry)
        elif entry.stage is Stage.ACTIVE:
            self.sleepers.wake(entry)
        elif entry.stage is Stage.LOADING and self._reading is not None:
            self._reading.hurry(entry)

    def turn_away(self, entry: JobEntry, message: Message) -> None:
        """Nobody reads the box: a slot goes back, and a person gets the last word there is."""
        if isinstance(message.event, Offered):
            self.workshop.decline(entry, message.event.worker)
        elif message.reply is not None:
            over = entry.snapshot if entry.stage is Stage.ENDED else None
            if over is None:
                message.reply.fill(GoneError(f"cannot reach {entry.id}: {entry.trouble or 'it is over'}"))
            else:
                message.reply.fill(Answered(transition(over, message.event, self.clock.now()), over))

    def _activate(self, entry: JobEntry) -> None:
        entry.stage = Stage.ACTIVE
        self.start_soon(self._live, entry)

    async def _live(self, entry: JobEntry) -> None:
        """Give the job an actor for as long as it has something to do; contain whatever that actor does."""
        wait = RETRY_FIRST
        while True:
            await lowlevel.checkpoint()  # calls of the disk are shielded: a shutdown is heard here
            try:
                over = await self._once(entry)
            except (UnreadableError, CommitError) as error:
                if await self.ease(error):
                    continue
                self._suspend(entry, error)
            except (DamagedError, NewerSchemaError) as error:
                await self._set_aside(entry, error)
                return
            except (Exception, BaseExceptionGroup, SystemExit, KeyboardInterrupt) as error:
                if deaths.is_cancellation(error):
                    raise
                deaths.record(entry, error)
                if deaths.too_many(entry):
                    self._aside(entry, f"its actor keeps dying: {entry.death}")
                    return
                continue
            else:
                wait = RETRY_FIRST
                if over:
                    self._idle.set()
                    return
                continue
            if self.draining:
                entry.rest()
                self._idle.set()
                return
            await self.clock.wait(wait)
            wait = min(wait * 2, RETRY_MOST)

    async def _opened(self, entry: JobEntry) -> JobActor:
        """An actor over the job's open log. What was read is dropped: the log's lines weigh more than all."""
        recovered = await self.reads.call(self.load, entry.folder)
        open_it = partial(migration.open_for_writing, named=entry.named, later=True)
        writer, snapshot = await self.disk.call(open_it, entry.folder, recovered, apply, self.clock.now())
        entry.named = True
        entry.trouble, entry.since, entry.stage = "", None, Stage.ACTIVE
        entry.uid = recovered.admission.uid
        return JobActor(self, entry, evolve(recovered, snapshot=snapshot), writer)

    async def _once(self, entry: JobEntry) -> bool:
        """One life of an actor, from opening the log (or its sleep) to parking or sleep; True when it needs
        no task any more."""
        sleeper = self.sleepers.take(entry)
        actor = sleeper or await self._opened(entry)
        try:
            life = actor.go_on() if sleeper else actor.run(deaths.first_message(entry, self.workshop))
            if await life:
                self.sleepers.lay(actor)
                return True
            actor.check_parkable()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.disk.call(actor.journal.close)
            raise
        with anyio.CancelScope(shield=True):
            await actor.park()
        if actor.snapshot.outcome is not None:
            await archiving.move(self, entry, actor.snapshot)
            self._forget(entry, GoneError(f"{entry.id} has ended"))
            return True
        # Still ACTIVE while the row is made: a slot offered meanwhile must not start a second actor.
        self._row(entry, actor.snapshot)
        if entry.box:
            return False
        entry.rest()
        return True

    def _row(self, entry: JobEntry, snapshot: Snapshot) -> None:
        """Without an actor the job is a row, an instant to look again, and a place in the queue for slots."""
        now = self.clock.now()
        entry.snapshot = None
        entry.keep_row(views.row(snapshot, now), tuple(self.witness.asks(snapshot, now)))
        entry.digest = snapshot.code_version.contract
        self.timers.set(entry, due.next_due(snapshot, now))
        self.sequels.note(entry, snapshot)
        if not self.draining:
            self.workshop.queue(entry, snapshot, now)
        entry.changed()

    # ---- what actors ask ------------------------------------------------------------------------------

    def adopted(
        self, entry: JobEntry, snapshot: Snapshot, now: Instant, until: Instant | None = None
    ) -> None:
        """This snapshot is in force; `until` is the instant to look again, where it is known."""
        entry.snapshot = snapshot
        entry.digest = snapshot.code_version.contract
        self.timers.set(entry, due.next_due(snapshot, now) if until is None else until)
        if snapshot.waits is not entry.waits:
            self.sequels.note(entry, snapshot)
        if entry.watchers:
            entry.changed()

    def want(self, entry: JobEntry, snapshot: Snapshot) -> None:
        """The job wants a slot."""
        if not self.draining:
            self.workshop.want(entry, snapshot)

    def lost(self, snapshot: Snapshot) -> events.Woke:
        """What is known of the workers of an attempt that another process opened."""
        names = tuple(sorted(opened.workers(snapshot) & set(self.unproven)))
        return events.Woke(unproven=names, detail=" ".join(self.unproven[name] for name in names))

    def row(self, entry: JobEntry) -> JobRow | None:
        """The job's row now; None while nothing of it has been read."""
        snapshot = entry.snapshot
        return entry.row if snapshot is None else views.row(snapshot, self.clock.now())

    def _rung(self, entry: JobEntry) -> None:
        if entry.stage is Stage.ACTIVE:
            entry.box.wake()
            self.sleepers.wake(entry)
        elif entry.stage is Stage.PARKED and not self.draining:
            self._activate(entry)
