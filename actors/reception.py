"""The reception: what the outside may ask of the jobs; it looks, admits and passes on, never decides."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from resumed.schemas import events
from resumed.schemas.askviews import AskRow, AskView, ToolRow
from resumed.schemas.instant import MICRO
from resumed.schemas.job import Artifact, ItemState, Person, Status
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry, Line, Snapshot
from resumed.schemas.views import (
    AsideView,
    EndedRow,
    HouseView,
    JobRow,
    JobView,
    PreviewView,
    Quarantined,
    Told,
    WhyView,
)
from resumed.schemas.workflow import Contract

from . import inbox, outputs, places, placing, refusals, views
from .controlgroups import Groups
from .door import Door
from .finder import HINDERED, Finder, Located
from .lookback import Lookback, Piece
from .machine.asks import InForce
from .machine.transition import transition
from .mailbox import Message, Reply
from .once import Ask, Once
from .placing import Outsiders, Placement
from .printed import Printed, printed
from .retirement import Retirement
from .sight import EVERYTHING, Sight, Whose
from .submission import Submission
from .supervisor import Supervisor
from .trouble import DiskTrouble

logger = logging.getLogger(__name__)


class Reception:
    """The face of one supervisor."""

    def __init__(
        self,
        supervisor: Supervisor,
        door: Door,
        *,
        house: dict[str, Any],
        shelf: Callable[[], tuple[tuple[str, ...], tuple[str, ...]]],
        trouble: DiskTrouble | None = None,
        groups: Groups | None = None,
        rehearse: Callable[[Line], Awaitable[PreviewView]] | None = None,
    ) -> None:
        self._supervisor = supervisor
        self._finder = Finder(supervisor)
        self._door = door
        self._groups = groups
        self._outsiders = Outsiders()
        self._house = house
        self._shelf = shelf
        self._trouble = trouble
        self._rehearse = rehearse
        self._since = supervisor.clock.now()
        self._lookback = Lookback(supervisor, self._look)
        self._retirement = Retirement(supervisor, self._finder)

    # ---- requests -------------------------------------------------------------------------------------

    async def submit(
        self,
        raw: bytes,
        *,
        name: str,
        requester: Person,
        via: str,
        may: Callable[[str], bool] = lambda _: True,
        request: str = "",
        again: bool = False,
    ) -> Told | Refusal:
        """Admit a job file, or find the job that it is; FaultyInputError for a bad one.

        Under the same `request` id and content the answer is the first one. With `again` the file is
        deliberately another job than the one it was before.
        """
        offered = Submission(
            raw=raw,
            name=name,
            requester=requester,
            via=via,
            may=may,
            request=request,
            again=again,
            hindered=self._trouble.said if self._trouble is not None else "",
        )
        found = await self._door.admit(offered)
        if isinstance(found, Refusal):
            return found
        job = found.job
        entry = self._supervisor.entries.get(job)
        row = None if entry is None else self._supervisor.row(entry)
        if row is None:
            snapshot = await self._look(job)
            if isinstance(snapshot, Refusal):
                return snapshot
            row = views.row(snapshot[0], self._supervisor.clock.now())
        if not found.repeated:
            said, attempt = f"{job} was admitted", 1
        else:
            under = f" under the key {found.key}" if found.key else ""
            said, attempt = f"{job} exists already{under}: it is {row.status}", row.epoch
        return Told(row=row, said=said, repeated=found.repeated, attempt=attempt, known=found.known)

    async def rehearse(
        self, raw: bytes, *, name: str, requester: Person, may: Callable[[str], bool]
    ) -> PreviewView | Refusal:
        """What a job file would become; nothing is admitted. FaultyInputError for a bad one."""
        offered = Submission(raw=raw, name=name, requester=requester, via="socket", may=may)
        found = await self._door.rehearse(offered)
        if isinstance(found, Refusal):
            return found
        if isinstance(found, Line):
            assert self._rehearse is not None
            return await self._rehearse(found)
        snapshot = await self._look(found.job)
        if isinstance(snapshot, Refusal):
            return snapshot
        job = snapshot[0].job
        return PreviewView(job=job.id, workflow=job.workflow, version=job.version, exists=True)

    async def tell(self, job: str, request: events.Request) -> Told | Refusal:
        """Carry a request to the job; CommitError when its outcome is unknown, GoneError at the end."""
        entry = self._supervisor.entries.get(job)
        if entry is not None and entry.admitted is not None:
            await entry.admitted.wait()
            entry = self._supervisor.entries.get(job)
        if entry is None:
            return await self._tell_ended(job, request)
        if entry.stage in HINDERED:
            return refusals.set_aside(job, entry.trouble)
        reply = Reply()
        self._supervisor.post(entry, Message(request, reply))
        answered = await reply.wait()
        if isinstance(answered.verdict, Refusal) and isinstance(request, events.Deciding):
            by = request.by
            logger.warning("uid %d (%s) was refused: %s", by.uid, by.name, answered.verdict.reason)
        return self._told(answered.verdict, answered.snapshot)

    async def _tell_ended(self, job: str, request: events.Request) -> Told | Refusal:
        found = await self._look(job)
        if isinstance(found, Refusal):
            return found
        return self._told(transition(found[0], request, self._supervisor.clock.now()), found[0])

    def _told(self, verdict: Any, snapshot: Snapshot) -> Told | Refusal:
        if isinstance(verdict, Refusal):
            return verdict
        now = self._supervisor.clock.now()
        row, changed = views.row(snapshot, now), isinstance(verdict, Entry)
        receipt = verdict.changes.receipt if changed else verdict.receipt
        if receipt is not None:
            return Told(
                row=row,
                said=receipt.said,
                attempt=receipt.attempt,
                repeated=receipt.repeated,
                known=not changed,
            )
        said = views.said(snapshot, verdict.decision.choice) if changed else verdict.reason
        return Told(row=row, said=said, attempt=views.attempt(snapshot, now), repeated=not changed)

    # ---- what people are asked ------------------------------------------------------------------------

    def inbox(self, sight: Sight = EVERYTHING) -> list[tuple[AskRow, Whose]]:
        """What people are asked by the jobs in sight."""
        return inbox.rows(self._supervisor, sight)

    async def asked_of(self, job: str, subject: str) -> AskView | Refusal:
        """One thing that a job asks, whole."""
        found = await self._look(job)
        if isinstance(found, Refusal):
            return found
        rows = self._supervisor.witness.asks(found[0], self._supervisor.clock.now())
        return await self._supervisor.reads.call(inbox.whole, *found, subject, rows)

    async def revision(self, job: str, subject: str, text: str) -> Artifact | Refusal:
        """The edited text of a draft, durable before any line names it."""
        found = await self._look(job)
        if isinstance(found, Refusal):
            return found
        return await self._supervisor.disk.call(inbox.keep, *found, subject, text)

    async def tools(self) -> tuple[tuple[ToolRow, ...], tuple[str, ...]]:
        """What the workflows in force may write to other systems; why that cannot be told of others."""
        return await self._door.tools()

    # ---- looking --------------------------------------------------------------------------------------

    async def locate(self, name: str, sight: Sight = EVERYTHING) -> Located | Refusal:
        """The job that a name means, among those in sight."""
        return await self._finder.locate(name, sight)

    async def placed(self, pid: int, start: int | None, uid: int) -> Placement:
        """Where a process stands to the process trees of attempts: whose of them it may be part of."""
        return await placing.placed(self._supervisor, self._groups, pid, start, uid, self._outsiders)

    async def unplaced(self, person: Person) -> str:
        """Why the process that a person gives a command from is not outside the trees of all attempts; empty
        when it is. A dropped file comes from no process that is there."""
        if person.via != "socket":
            return ""
        if person.pid is None:
            return "nobody can tell which process it came from"
        found = await self.placed(person.pid, person.start, person.uid)
        return "" if found.outside else found.why or "it comes from within an attempt"

    def in_force(self, workflow: str) -> InForce:
        """The rule in force today for a tool of the workflow, as its contract states it."""
        return self._supervisor.witness.in_force(workflow)

    def rows(self, sight: Sight = EVERYTHING) -> list[JobRow]:
        """The open jobs in sight, oldest first; those that cannot be read as quarantined."""
        return self._finder.rows(sight)

    async def ended(self, sight: Sight = EVERYTHING, limit: int = 100) -> list[JobRow]:
        """The jobs in sight among the `limit` that ended last, newest first."""
        return await self._finder.ended(sight, limit)

    def ended_since(self, since: int) -> int:
        """How many jobs ended at that wall instant or later, of the last days."""
        return self._supervisor.roll.ended_since(since)

    async def quarantined(self, sight: Sight = EVERYTHING) -> list[Quarantined]:
        """The jobs in sight that are set aside, in the quarantine or (unreadable) in their place."""
        return await self._finder.quarantined(sight)

    async def _look(self, job: str) -> tuple[Snapshot, Path] | Refusal:
        return await self._finder.look(job)

    async def _snapshot(self, job: str) -> tuple[Snapshot, Path] | None:
        found = await self._look(job)
        return None if isinstance(found, Refusal) else found

    async def view(self, job: str) -> JobView | Refusal:
        """One job, whole; why not, when it cannot be read."""
        found = await self._look(job)
        if isinstance(found, Refusal):
            return found
        return views.view(found[0], self._supervisor.clock.now(), str(found[1]))

    async def contract(self, job: str) -> tuple[Contract, str] | Refusal:
        """The workflow pinned in the job, and its digest."""
        found = await self._look(job)
        if isinstance(found, Refusal):
            return found
        return found[0].contract, found[0].code_version.contract

    async def why(self, job: str) -> WhyView | Refusal:
        """Why the job stands as it does."""
        return await self._lookback.why(job)

    async def history(self, job: str, after: int, item: str) -> Piece | Refusal:
        """A piece of the job's past."""
        return await self._lookback.history(job, after, item)

    async def aside(self, job: str) -> AsideView | Refusal:
        """What is wrong with a job that is set aside."""
        return await self._retirement.show(job)

    async def restore(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> Told | Refusal:
        """Bring a job that is set aside back."""
        return await self._retirement.restore(job, by, reason, ask)

    async def discard(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> Told | Refusal:
        """Give up a job that is set aside."""
        return await self._retirement.discard(job, by, reason, ask)

    async def ended_before(self, seconds: float, names: tuple[str, ...]) -> tuple[tuple[EndedRow, ...], int]:
        """The jobs that ended longer ago than that."""
        return await self._retirement.ended(seconds, names)

    async def left(self, uid: int, request: str, name: str) -> str:
        """The job of that name that is gone for good by that very request of the user; else nothing."""
        return await self._retirement.left(uid, request, name)

    async def prune(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> bool | Refusal:
        """Remove a job that has ended; True where that very request had done so before."""
        return await self._retirement.prune(job, by, reason, ask)

    @property
    def once(self) -> Once:
        """What is remembered of commands that no job keeps."""
        return self._retirement.once

    async def log_file(self, job: str, item: str) -> Path | None:
        """Where an item's programs (or with "" the job steps') wrote what they said."""
        found = await self._snapshot(job)
        if found is None or (item and item not in found[0].items):
            return None
        return Path(places.log_file(found[1], item))

    async def printed(self, job: str, only: str | None) -> Printed | Refusal | None:
        """Where the programs of a job's items, or of one of them, print; None without such an item."""
        found = await self._look(job)
        return found if isinstance(found, Refusal) else printed(found[0], found[1], only)

    async def output(self, job: str, item: str, offset: int, most: int) -> outputs.Piece | None:
        """A piece of an item's accepted output."""
        found = await self._snapshot(job)
        row = None if found is None else found[0].items.get(item)
        if found is None or row is None or row.state is not ItemState.DONE or row.output is None:
            return None
        return await self._supervisor.reads.call(outputs.piece, found[1], row.output, offset, most)

    def house(self, sight: Sight = EVERYTHING) -> HouseView:
        """The daemon itself: open jobs are counted as far as in sight, troubles are for who sees all."""
        supervisor = self._supervisor
        counts = self._finder.counts(sight)
        aside, hindrances = self._finder.count_aside()
        names, problems = self._shelf()
        now = supervisor.clock.now()
        disk = self._trouble.line() if self._trouble is not None else ()
        troubles = problems + hindrances + supervisor.workshop.slots.troubles()
        # Whoever cannot be read says why: one look at each serves both.
        troubled = [entry for entry in supervisor.entries.values() if entry.trouble]
        troubles += tuple(f"{entry.id}: {entry.trouble}" for entry in troubled[:20])
        return HouseView(
            uptime=(now.up - self._since.up) // MICRO,
            open=len(supervisor.entries) if sight.everything else sum(counts.values()),
            running=counts.get(Status.RESUMING, 0) + counts.get(Status.RUNNING, 0),
            held=counts.get(Status.HELD, 0),
            quarantined=aside + sum(entry.stage in HINDERED for entry in troubled),
            ended=supervisor.roll.ended,
            workers=len(supervisor.workshop.slots.hands),
            loading=supervisor.loading,
            workflows=names,
            troubles=disk + (troubles if sight.everything else ()),
            **self._house,
        )

    async def changed(self, job: str, sequence: int) -> JobRow | None:
        """Return when the job's row has moved past `sequence`; None when it has ended or is not there."""
        while (entry := self._supervisor.entries.get(job)) is not None:
            row = self._supervisor.row(entry)
            if row is not None and row.sequence > sequence:
                return row
            watcher = anyio.Event()
            entry.watchers.append(watcher)
            try:
                await watcher.wait()
            finally:
                if watcher in entry.watchers:
                    entry.watchers.remove(watcher)
        return None
