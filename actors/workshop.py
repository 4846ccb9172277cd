"""The workshop: hands open tries to workers, has them ended, and turns what workers say into events of jobs.

It never decides what an answer means and commits nothing; a frame for a job not there changes nothing.
"""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from resumed.schemas import events, frames
from resumed.schemas.errors import CommitError, FaultyInputError, ResumedError
from resumed.schemas.instant import MICRO, Instant
from resumed.schemas.job import Try
from resumed.schemas.ledger import ERRAND, Errand, ErrandKind
from resumed.schemas.snapshot import Snapshot
from resumed.store import files

from . import containment, opened, places, scratch, shown
from .clock import Clock
from .disk import Disk
from .entry import JobEntry
from .handed import Handed, Heard
from .machine import due, errands
from .mailbox import Message, Offered
from .pools import Key, Spawn, Worker
from .sends import Sends, not_handed
from .slots import Slots
from .suspects import Suspects
from .turns import Rank

logger = logging.getLogger(__name__)

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
        self.suspects = Suspects(desk)
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
        self.sends = Sends(self.slots, self._wake, self._later)

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

    def _wake(self, job: str) -> None:
        entry = self.desk.entry(job)
        if entry is not None:
            self.desk.post(entry, Message(events.Tick()))

    def _later(self, seconds: float, function: Callable[[], None]) -> None:
        async def wait() -> None:
            await self.desk.clock.wait(seconds)
            function()

        self.desk.start_soon(wait)

    # ---- from the actors ------------------------------------------------------------------------------

    def want(self, entry: JobEntry, snapshot: Snapshot) -> None:
        """Queue the job for a slot."""
        if not self.suspects.gates(entry):
            job = snapshot.job
            self.slots.want(job.id, entry.digest, snapshot.contract, Rank(job.priority, job.requester))

    def queue(self, entry: JobEntry, snapshot: Snapshot, now: Instant) -> None:
        """Queue a job without an actor for what is due of it."""
        if due.wanted(snapshot, now, 1):
            self.want(entry, snapshot)
        self.sends.claim(entry, snapshot, now)

    def choose(
        self, entry: JobEntry, adopted: Snapshot, tentative: Snapshot, worker: str, now: Instant
    ) -> str | None:
        """The errand, or else the unit, that may start in this slot by what stands in the line drawn up."""
        if self.slots.draining or not self.slots.offers(worker, entry.id):
            return None
        errand = self.sends.choose(entry, adopted, tentative, worker, now)
        if errand is not None:
            return errand
        return self.suspects.choose(entry, tentative, now) if self.slots.does_tries(worker) else None

    def take(self, entry: JobEntry, row: Try | Errand) -> None:
        """A try, or an errand, was started in the place offered."""
        self.slots.take(row.worker, (entry.id, opened.name_of(row), row.number))

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
        row = opened.row(snapshot, unit)
        assert row is not None
        self.slots.occupy(row.worker, (entry.id, unit, row.number))
        if isinstance(row, Errand):
            self._run_errand(entry, snapshot, row)
            return
        event: events.Report | None = None
        try:
            folder = self._make_folder(entry, snapshot, row)
            frame = shown.run(snapshot, row, entry.folder, folder, self.credentials)
            if not self._hand(entry, row, frame):
                event = _never_began(row, "its worker had ended before")
        except (FaultyInputError, CommitError) as error:
            event = events.Raised(unit=unit, epoch=row.epoch, number=row.number, error=str(error))
            if isinstance(error, CommitError) and self.is_disk_trouble(error):
                event = _never_began(row, str(error))
        if event is not None:
            self.desk.post(entry, Message(event))
        # Only now: an actor that died above leaves the try to be handed over by the next one.
        entry.running[unit, row.number] = row.worker

    def _run_errand(self, entry: JobEntry, snapshot: Snapshot, row: Errand) -> None:
        """Send a worker on an errand; what could surely not be handed to it is heard of as such."""
        self.sends.occupy(entry, snapshot, row)
        event: events.Report | None = None
        try:
            folder = self._make_folder(entry, snapshot, row)
            frame = shown.errand(snapshot, row, entry.folder, folder, self.credentials)
            # Before it is handed over: whatever befalls us below, from here on it may have begun, and an
            # actor that comes after us must not take it for one that has not.
            entry.running[opened.name_of(row), row.number] = row.worker
            if not self._hand(entry, row, frame):
                event = _never_began(row, "its worker had ended before")
        except (FaultyInputError, CommitError) as error:
            entry.running[opened.name_of(row), row.number] = row.worker
            event = not_handed(row, str(error))
        if event is not None:
            self.desk.post(entry, Message(event))

    def _make_folder(self, entry: JobEntry, snapshot: Snapshot, row: Try | Errand) -> str:
        """The try's own folder, made where programs need one; CommitError when there is none."""
        unit = opened.name_of(row)
        folder = places.scratch_folder(self.scratch, entry.id, unit, row)
        # A Python worker makes the folder itself once its author asks for it: most steps never do.
        made = places.runs_programs(snapshot)
        entry.folders[unit, row.number] = (folder, made)
        if made:
            scratch.make(Path(folder))
            scratch.make(entry.folder / files.LOGS)
        return folder

    def _hand(self, entry: JobEntry, row: Try | Errand, frame: frames.Run) -> bool:
        """Send it; False when the worker is gone, and nothing of it was sent."""
        if not self.slots.send(row.worker, frame):
            return False
        self._handed_to(row.worker).hand((entry.id, row.epoch, frame.item, row.number))
        return True

    def _handed_to(self, worker: str) -> Handed:
        found = self._handed.get(worker)
        if found is None:
            found = self._handed[worker] = Handed()
        return found

    def stop(self, entry: JobEntry, snapshot: Snapshot, unit: str) -> None:
        """Have an open try ended: ask its worker, and end the worker when it does not do so in time."""
        row = opened.row(snapshot, unit)
        assert row is not None
        held = (unit, row.number) in entry.running
        if held and isinstance(row, Errand) and row.kind is ErrandKind.SEND and self.slots.alive(row.worker):
            # Not asked: what it has begun could go on beside it, and its time in flight begins with its end.
            self.slots.kill(row.worker)
            return
        grace = opened.grace(snapshot, row)
        frame = frames.Stop(job=entry.id, epoch=row.epoch, item=unit, number=row.number, grace=grace)
        if held and self.slots.send(row.worker, frame):
            self.desk.start_soon(self._insist, entry, unit, row, grace + STOP_MARGIN)
            return
        # Its worker is gone, or never heard of it: the end is known already.
        self.slots.release(row.worker, (entry.id, unit, row.number))
        gone = events.Gone(unit=unit, epoch=row.epoch, number=row.number, died=False, began=held)
        self.desk.post(entry, Message(gone))

    async def _insist(self, entry: JobEntry, unit: str, row: Try | Errand, seconds: float) -> None:
        await self.desk.clock.wait(seconds)
        if (unit, row.number) in entry.running:
            what = unit.lstrip(ERRAND) or "a step"
            logger.warning(
                "worker %s did not stop %s of %s in time and was ended", row.worker, what, entry.id
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
        self.suspects.clear(key)
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
        self.sends.forget(entry)
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
            self.sends.over((frame.job, frame.item, frame.number))
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
                self.sends.over((job, unit, number))
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
                began=not errands.is_errand(unit) or (unit, number) in entry.running,
                reason=f"its worker ended: {how}",
            )
            self.desk.post(entry, Message(gone))
        if proven:
            self.desk.start_soon(self.desk.disk.call, scratch.remove_worker, self.scratch, worker.name)
            worker.forget()


def _never_began(row: Try | Errand, reason: str) -> events.Gone:
    return events.Gone(
        unit=opened.name_of(row), epoch=row.epoch, number=row.number, died=False, began=False, reason=reason
    )


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
