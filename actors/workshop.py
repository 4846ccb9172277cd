"""The workshop: hands open tries to workers, has them ended, and turns what workers say into events of jobs.

It never decides what an answer means and commits nothing; a frame for a job not there changes nothing.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from attrs import define

from resumed.schemas import events, frames
from resumed.schemas.errors import CommitError, FaultyInputError, ResumedError
from resumed.schemas.instant import MICRO, Instant
from resumed.schemas.job import Try
from resumed.schemas.snapshot import Snapshot
from resumed.store import files

from . import containment, places, scratch, shown
from .clock import Clock
from .disk import Disk
from .entry import JobEntry
from .handed import Handed, Heard
from .machine import due
from .machine.work import SUSPECT_CRASHES
from .mailbox import Message, Offered
from .pools import Key, Spawn, Worker
from .slots import Slots
from .turns import Rank

logger = logging.getLogger(__name__)

SUSPECT_SECONDS = 5.0
"""How long a suspect try holds the others back, unless it ends first (DESIGN.md section 3)."""
SWEPT = 64
"""How many folders that may not be there are looked for at a time."""
MOST_UNDECIDED = 10_000
"""Messages in a job's box beyond which a worker that adds one is ended."""
STOP_MARGIN = 5.0
"""Seconds beyond a step's grace time after which a worker that did not say `stopped` is ended for all."""


class Desk(Protocol):
    """What the workshop asks of the supervisor."""

    clock: Clock
    disk: Disk

    def entry(self, job: str) -> JobEntry | None:
        """The open job of that id."""
        ...

    def post(self, entry: JobEntry, message: Message) -> None:
        """Put a message in the job's box and see that somebody reads it."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run a task of the supervisor's."""
        ...


@define(eq=False)
class _Suspect:
    key: Key
    since: Instant


class Workshop:
    """Workers at work for jobs."""

    def __init__(self, desk: Desk, spawn: Spawn, folder: Path, most: int) -> None:
        self.desk = desk
        self.scratch = folder
        self.credentials = ""
        """The folder of the daemon's credentials; empty when there is none."""
        self._count = 0
        self._prefix = hashlib.sha256(repr(desk.clock.now()).encode()).hexdigest()[:8]
        self.is_disk_trouble: Callable[[CommitError], bool] = lambda _: False
        """Whether a refusal was noted as trouble of the whole disk: then nothing more is started."""
        self._left: list[str] = []
        """Folders of tries that are over, to be swept."""
        self._suspect: _Suspect | None = None
        self._gated: set[str] = set()
        self._handed: dict[str, Handed] = {}
        self.slots = Slots(
            spawn=spawn,
            most=most,
            start_soon=desk.start_soon,
            offer=self._offer,
            trouble=self._trouble,
            name=self.name,
            seconds=self._seconds,
            wait=desk.clock.wait,
        )

    def name(self) -> str:
        """A worker's name that no other worker of this store ever bore."""
        self._count += 1
        return f"{self._prefix}-{self._count}"

    def _seconds(self) -> float:
        return self.desk.clock.now().up / MICRO

    # ---- from the slots -------------------------------------------------------------------------------

    def _offer(self, job: str, worker: str) -> None:
        entry = self.desk.entry(job)
        if entry is None:
            self.slots.decline(worker, job)
        else:
            self.desk.post(entry, Message(Offered(worker)))

    def _trouble(self, job: str, code: str, reason: str) -> None:
        entry = self.desk.entry(job)
        if entry is not None:
            self.desk.post(entry, Message(events.Trouble(code=code, reason=reason)))

    # ---- from the actors ------------------------------------------------------------------------------

    def want(self, entry: JobEntry, snapshot: Snapshot) -> None:
        """Queue the job for a slot."""
        if entry.id not in self._gated:
            job = snapshot.job
            self.slots.want(job.id, entry.digest, snapshot.contract, Rank(job.priority, job.requester))

    def choose(self, entry: JobEntry, snapshot: Snapshot, worker: str, now: Instant) -> str | None:
        """The unit that may start in this slot: a suspect only while no other suspect is young."""
        if self.slots.draining or not self.slots.offers(worker, entry.id):
            return None
        gated = False
        for unit in due.wanted(snapshot, now, due.room(snapshot)):
            row = snapshot.position if unit == "" else snapshot.items[unit]
            if row.crashes < SUSPECT_CRASHES:
                return unit
            key = (entry.id, unit, row.tries + 1)
            if self._suspect is None:
                self._suspect = _Suspect(key, now)
                self.desk.start_soon(self._absolve, self._suspect)
            if self._suspect.key == key:  # also when its start has to be committed again
                return unit
            gated = True
        if gated:
            self._gated.add(entry.id)
        return None

    async def _absolve(self, suspect: _Suspect) -> None:
        await self.desk.clock.wait(SUSPECT_SECONDS)
        self._clear(suspect.key)

    def _clear(self, key: Key) -> None:
        if self._suspect is None or self._suspect.key != key:
            return
        self._suspect = None
        gated, self._gated = self._gated, set()
        for job in sorted(gated):
            entry = self.desk.entry(job)
            if entry is not None:
                self.desk.post(entry, Message(events.Tick()))

    def take(self, entry: JobEntry, row: Try) -> None:
        """A try was started in the place offered."""
        self.slots.take(row.worker, (entry.id, row.item, row.number))

    def decline(self, entry: JobEntry, worker: str) -> None:
        """The slot goes back."""
        self.slots.decline(worker, entry.id)

    def give_back(self, entry: JobEntry) -> None:
        """The job cannot use a slot for now: those offered to it go to others, and it waits for none."""
        self.slots.unwant(entry.id, entry.digest)
        for worker in entry.box.offers():
            self.decline(entry, worker)

    def run(self, entry: JobEntry, snapshot: Snapshot, unit: str) -> None:
        """Hand an open try to its worker; one whose worker is gone never began."""
        row = snapshot.tries[unit]
        self.slots.occupy(row.worker, (entry.id, unit, row.number))
        event: events.Report | None = None
        try:
            if not self._begin(entry, snapshot, row):
                event = events.Gone(
                    unit=unit,
                    epoch=row.epoch,
                    number=row.number,
                    died=False,
                    began=False,
                    reason="its worker had ended before",
                )
        except (FaultyInputError, CommitError) as error:
            event = events.Raised(unit=unit, epoch=row.epoch, number=row.number, error=str(error))
            if isinstance(error, CommitError) and self.is_disk_trouble(error):
                event = events.Gone(
                    unit=unit, epoch=row.epoch, number=row.number, died=False, began=False, reason=str(error)
                )
        if event is not None:
            self.desk.post(entry, Message(event))
        # Only now: an actor that died above leaves the try to be handed over by the next one.
        entry.running[unit, row.number] = row.worker

    def _begin(self, entry: JobEntry, snapshot: Snapshot, row: Try) -> bool:
        """Make the try's folder where programs need one, and send; False when the worker is gone.

        CommitError when there is no folder: nothing was sent.
        """
        folder = places.scratch_folder(self.scratch, entry.id, row)
        # A Python worker makes the folder itself once its author asks for it: most steps never do.
        made = places.runs_programs(snapshot)
        entry.folders[row.item, row.number] = (folder, made)
        if made:
            scratch.make(Path(folder))
            scratch.make(entry.folder / files.LOGS)
        if not self.slots.send(row.worker, shown.run(snapshot, row, entry.folder, folder, self.credentials)):
            return False
        handed = self._handed_to(row.worker)
        handed.hand((entry.id, row.epoch, row.item, row.number))
        return True

    def _handed_to(self, worker: str) -> Handed:
        found = self._handed.get(worker)
        if found is None:
            found = self._handed[worker] = Handed()
        return found

    def stop(self, entry: JobEntry, snapshot: Snapshot, unit: str) -> None:
        """Have an open try ended: ask its worker, and end the worker when it does not do so in time."""
        row = snapshot.tries[unit]
        step = snapshot.contract.step(row.step)
        grace = step.grace if step is not None else 0.0
        frame = frames.Stop(job=entry.id, epoch=row.epoch, item=unit, number=row.number, grace=grace)
        held = (unit, row.number) in entry.running and self.slots.send(row.worker, frame)
        if held:
            self.desk.start_soon(self._insist, entry, row, grace + STOP_MARGIN)
            return
        # Its worker is gone, or never heard of it: the end is known already.
        self.slots.release(row.worker, (entry.id, unit, row.number))
        began = (unit, row.number) in entry.running
        gone = events.Gone(unit=unit, epoch=row.epoch, number=row.number, died=False, began=began)
        self.desk.post(entry, Message(gone))

    async def _insist(self, entry: JobEntry, row: Try, seconds: float) -> None:
        await self.desk.clock.wait(seconds)
        if (row.item, row.number) in entry.running:
            logger.warning(
                "worker %s did not stop %s of %s in time and was ended",
                row.worker,
                row.item or "a step",
                entry.id,
            )
            self.slots.kill(row.worker)

    def ended(self, entry: JobEntry, unit: str, number: int) -> None:
        """The try's end is adopted: its slot is free, and its folder goes."""
        worker = entry.running.pop((unit, number), "")
        self._leave(*entry.folders.pop((unit, number), ("", False)))
        if entry.snapshot is not None and places.is_over(entry.snapshot, unit):
            self._leave(places.kept_folder(entry.folder, unit), made=True)
        entry.stopping.discard((unit, number))
        key = (entry.id, unit, number)
        self._clear(key)
        self.slots.release(worker, key)

    def _leave(self, folder: str, made: bool) -> None:
        """A try's folder goes: at once where we made it, else with others, as it is seldom there."""
        if folder:
            self._left.append(folder)
        if made or len(self._left) >= SWEPT:
            left, self._left = self._left, []
            self.desk.start_soon(self._clean, *left)

    def abandon(self, entry: JobEntry) -> None:
        """The job is out of our hands: its slots go back, and what still runs of it is told to end."""
        self.give_back(entry)
        for (unit, number), worker in entry.running.items():
            frame = frames.Stop(job=entry.id, epoch=entry.epoch, item=unit, number=number, grace=0.0)
            self.slots.send(worker, frame)
            self.desk.start_soon(self._insist_on, worker, (entry.id, unit, number))
        entry.running.clear()

    async def _insist_on(self, worker: str, key: Key) -> None:
        await self.desk.clock.wait(STOP_MARGIN)
        if self.slots.holds(worker, key):
            self.slots.kill(worker)

    async def _clean(self, *folders: str | Path) -> None:
        await self.desk.disk.call(scratch.remove, *folders)

    # ---- from the workers -----------------------------------------------------------------------------

    def on_frame(self, worker: Worker, frame: frames.FromWorker) -> None:
        """A worker said something about itself or about a try."""
        if isinstance(frame, frames.Ready):
            self.slots.ready(worker.name)
            return
        if isinstance(frame, frames.Trouble):
            self.slots.troubled(worker.name, frame.code, frame.reason)
            return
        handed = self._handed_to(worker.name)
        if handed.is_faulty():
            return
        heard = handed.hear((frame.job, frame.epoch, frame.item, frame.number))
        if heard is Heard.FAULT:
            self._out_of_turn(worker, handed, frame.job)
            return
        entry = self.desk.entry(frame.job)
        in_hand = entry is not None and entry.running.get((frame.item, frame.number)) == worker.name
        if not in_hand:
            # Of a job that was abandoned: its place is free now.
            self.slots.release(worker.name, (frame.job, frame.item, frame.number))
        late = heard is Heard.EVIDENCE or not in_hand
        if entry is None or (late and not isinstance(frame, frames.Returned)):
            logger.info("worker %s answered for %s, where nothing is open any more", worker.name, frame.job)
        elif len(entry.box) >= MOST_UNDECIDED:
            self._end_faulty(worker, f"it said too much of {frame.job}, which decides nothing now")
        else:
            priority = entry.snapshot.job.priority if entry.snapshot is not None else 0
            slot = not late and isinstance(frame, frames.Returned)
            slot = slot and self.slots.may_go_on(worker.name, priority)
            self.desk.post(entry, Message(_event(frame, late, slot)))

    def _out_of_turn(self, worker: Worker, handed: Handed, job: str) -> None:
        logger.warning("worker %s spoke of %s out of turn; nothing was changed", worker.name, job)
        if handed.is_faulty():
            self._end_faulty(worker, f"it spoke {handed.faults} times of tries that it does not run")

    def _end_faulty(self, worker: Worker, why: str) -> None:
        logger.error("worker %s was ended: %s", worker.name, why)
        worker.kill()

    def on_faulty(self, worker: Worker, error: ResumedError) -> None:
        """A worker broke the protocol; it is being ended, and its tries die with it."""
        logger.error("worker %s was ended: %s", worker.name, error)

    def on_gone(self, worker: Worker, how: str, proven: bool) -> None:
        """The worker is gone: every try it held died with it, or nobody can tell."""
        self._handed.pop(worker.name, None)
        hand = self.slots.hands.get(worker.name)
        asked = hand is not None and hand.ending
        held = self.slots.gone(worker.name)
        remains = containment.spell(containment.remains_of(worker.name)) if held and not proven else ""
        for job, unit, number in held:
            entry = self.desk.entry(job)
            if entry is None or entry.snapshot is None:
                continue
            if not proven:
                reason = f"nobody can tell that worker {worker.name} ended: {how}; {remains}"
                self.desk.post(entry, Message(events.Trouble(code="not_gone", reason=reason)))
                # Something may still work in it.
                entry.folders.pop((unit, number), None)
            gone = events.Gone(
                unit=unit,
                epoch=entry.snapshot.epoch,
                number=number,
                died=not asked,
                reason=f"its worker ended: {how}",
            )
            self.desk.post(entry, Message(gone))
        if proven:
            self.desk.start_soon(self.desk.disk.call, scratch.remove_worker, self.scratch, worker.name)
            worker.forget()


def _event(frame: frames.Returned | frames.Raised | frames.Stopped, late: bool, slot: bool) -> events.Report:
    """What a worker said of a try, as the law hears it."""
    if isinstance(frame, frames.Returned):
        return events.Returned(
            unit=frame.item,
            epoch=frame.epoch,
            number=frame.number,
            answer=frame.answer,
            slot=slot,
            late=late,
        )
    if isinstance(frame, frames.Raised):
        return events.Raised(unit=frame.item, epoch=frame.epoch, number=frame.number, error=frame.error)
    return events.Gone(unit=frame.item, epoch=frame.epoch, number=frame.number, died=False, used=frame.used)
