"""The reception: what the outside may ask of the jobs; it looks, admits and passes on, never decides."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from resumed.schemas import events
from resumed.schemas.errors import NewerSchemaError, StoreError
from resumed.schemas.instant import MICRO
from resumed.schemas.job import ItemState, Person, Status
from resumed.schemas.jobfile import ID
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry, Snapshot
from resumed.schemas.views import HouseView, JobRow, JobView, Quarantined, Told, WhyView
from resumed.store import archive, quarantine
from resumed.store.layout import Layout

from . import outputs, places, refusals, views
from .door import Door
from .entry import JobEntry, Stage
from .lookback import Lookback, Piece
from .machine.transition import transition
from .mailbox import Message, Reply
from .supervisor import Supervisor


class Reception:
    """The face of one supervisor."""

    def __init__(
        self,
        supervisor: Supervisor,
        door: Door,
        *,
        house: dict[str, Any],
        shelf: Callable[[], tuple[tuple[str, ...], tuple[str, ...]]],
    ) -> None:
        self._supervisor = supervisor
        self._door = door
        self._house = house
        self._shelf = shelf
        self._since = supervisor.clock.now()
        self._lookback = Lookback(supervisor, self._look)

    # ---- requests -------------------------------------------------------------------------------------

    async def submit(self, raw: bytes, *, name: str, requester: Person, via: str) -> Told | Refusal:
        """Admit a job file, or find the job that it is; FaultyInputError for a bad one."""
        found = await self._door.admit(raw, name=name, requester=requester, via=via)
        if isinstance(found, Refusal):
            return found
        job, repeated = found
        entry = self._supervisor.entries.get(job)
        row = None if entry is None else self._supervisor.row(entry)
        if row is None:
            snapshot = await self._look(job)
            if isinstance(snapshot, Refusal):
                return snapshot
            row = views.row(snapshot[0], self._supervisor.clock.now())
        said = f"{job} exists already: it is {row.status}" if repeated else f"{job} was admitted"
        return Told(row=row, said=said, repeated=repeated, attempt=row.epoch + (0 if repeated else 1))

    async def tell(self, job: str, request: events.Request) -> Told | Refusal:
        """Carry a request to the job; CommitError when its outcome is unknown, GoneError at the end."""
        entry = self._supervisor.entries.get(job)
        if entry is not None and entry.admitted is not None:
            await entry.admitted.wait()
            entry = self._supervisor.entries.get(job)
        if entry is None:
            return await self._tell_ended(job, request)
        if entry.stage in (Stage.UNREADABLE, Stage.ASIDE):
            return refusals.set_aside(job, entry.trouble)
        reply = Reply()
        self._supervisor.post(entry, Message(request, reply))
        answered = await reply.wait()
        return self._told(answered.verdict, answered.snapshot)

    async def _tell_ended(self, job: str, request: events.Request) -> Told | Refusal:
        found = await self._look(job)
        if isinstance(found, Refusal):
            return found
        return self._told(transition(found[0], request, self._supervisor.clock.now()), found[0])

    def _told(self, verdict: Any, snapshot: Snapshot) -> Told | Refusal:
        if isinstance(verdict, Refusal):
            return verdict
        row = views.row(snapshot, self._supervisor.clock.now())
        will_run = row.status in (Status.READY, Status.RUNNING, Status.WAITING)
        attempt = snapshot.epoch if snapshot.attempt is not None or not will_run else snapshot.epoch + 1
        changed = isinstance(verdict, Entry)
        said = views.said(snapshot, verdict.decision.choice) if changed else verdict.reason
        return Told(row=row, said=said, attempt=attempt, repeated=not changed)

    # ---- looking --------------------------------------------------------------------------------------

    def find(self, name: str) -> str | Refusal:
        """The id that is `name`, or the only open one that begins with it; why not, when it is set aside."""
        entries = self._supervisor.entries
        if not ID.match(name):
            return refusals.no_such(name)
        if (entry := entries.get(name)) is not None:
            return name if not _hindered(entry) else refusals.set_aside(name, entry.trouble)
        if self._supervisor.layout.archived(name).is_dir():
            return name
        found = sorted(job for job in entries if job.startswith(name))
        if len(found) == 1:
            return self.find(found[0])
        if not found:
            return self._find_aside(name)
        some = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        return Refusal(code="ambiguous", reason=f"{name!r} begins {len(found)} jobs: {some}")

    def _find_aside(self, name: str) -> Refusal:
        there, troubles = self._entries()
        found = [each for each in there if each.id == name] or [
            each for each in there if each.id.startswith(name)
        ]
        if len(found) == 1:
            return refusals.set_aside(found[0].id, found[0].detail)
        if troubles:
            return Refusal(code="trouble", reason=f"cannot look for {name}: {troubles[0]}")
        return refusals.no_such(name)

    def rows(self) -> list[JobRow]:
        """The open jobs, oldest first; those that cannot be read as quarantined."""
        rows = [self._row(entry) for entry in list(self._supervisor.entries.values())]
        return sorted((row for row in rows if row is not None), key=lambda row: (row.created, row.id))

    def _row(self, entry: JobEntry) -> JobRow | None:
        row = self._supervisor.row(entry)
        if entry.stage not in (Stage.UNREADABLE, Stage.ASIDE):
            return row
        since = entry.since.wall if entry.since is not None else 0
        return views.hindered(entry.id, row, since, entry.trouble)

    async def ended(self, limit: int = 100) -> list[JobRow]:
        """The jobs that ended last, newest first."""
        supervisor = self._supervisor
        names = await supervisor.reads.call(_newest, supervisor.layout, limit)
        rows: list[JobRow] = []
        for job in names:
            found = await self._snapshot(job)
            if found is not None:
                rows.append(views.row(found[0], supervisor.clock.now()))
        return sorted(rows, key=lambda row: -row.since)

    async def _look(self, job: str) -> tuple[Snapshot, Path] | Refusal:
        """The job's last adopted snapshot and its folder, open or ended; why not, when none can be read."""
        supervisor = self._supervisor
        entry = supervisor.entries.get(job)
        if entry is not None and entry.snapshot is not None:
            return entry.snapshot, entry.folder
        if not ID.match(job):
            return refusals.no_such(job)
        folder = entry.folder if entry is not None else supervisor.layout.archived(job)
        try:
            recovered = await supervisor.reads.call(supervisor.load, folder)
        except (StoreError, NewerSchemaError) as error:
            there = entry is not None or folder.is_dir()
            return refusals.set_aside(job, str(error)) if there else self._find_aside(job)
        return recovered.snapshot, folder

    async def _snapshot(self, job: str) -> tuple[Snapshot, Path] | None:
        found = await self._look(job)
        return None if isinstance(found, Refusal) else found

    async def view(self, job: str) -> JobView | Refusal:
        """One job, whole; why not, when it cannot be read."""
        found = await self._look(job)
        if isinstance(found, Refusal):
            return found
        return views.view(found[0], self._supervisor.clock.now(), str(found[1]))

    async def why(self, job: str) -> WhyView | Refusal:
        """Why the job stands as it does."""
        return await self._lookback.why(job)

    async def history(self, job: str, after: int, item: str) -> Piece | Refusal:
        """A piece of the job's past."""
        return await self._lookback.history(job, after, item)

    async def log_file(self, job: str, item: str) -> Path | None:
        """Where an item's programs (or with "" the job steps') wrote what they said."""
        found = await self._snapshot(job)
        if found is None or (item and item not in found[0].items):
            return None
        return Path(places.log_file(found[1], item))

    async def output(self, job: str, item: str, offset: int, most: int) -> outputs.Piece | None:
        """A piece of an item's accepted output."""
        found = await self._snapshot(job)
        row = None if found is None else found[0].items.get(item)
        if found is None or row is None or row.state is not ItemState.DONE or row.output is None:
            return None
        return await self._supervisor.reads.call(outputs.piece, found[1], row.output, offset, most)

    def quarantined(self) -> list[Quarantined]:
        """The jobs set aside, in the quarantine or (unreadable) in their place."""
        found = [_aside(each) for each in self._entries()[0]]
        for entry in self._supervisor.entries.values():
            if entry.stage in (Stage.UNREADABLE, Stage.ASIDE):
                since = entry.since.wall if entry.since is not None else 0
                found.append(
                    Quarantined(
                        id=entry.id, reason="unreadable", detail=entry.trouble, since=since, moved=False
                    )
                )
        return found

    def _entries(self) -> tuple[tuple[quarantine.Entry, ...], tuple[str, ...]]:
        """What lies in the quarantine, and why it cannot be told when it cannot."""
        try:
            return quarantine.entries(self._supervisor.layout), ()
        except StoreError as error:
            return (), (f"the quarantine cannot be listed: {error}",)

    def house(self) -> HouseView:
        """The daemon itself."""
        supervisor = self._supervisor
        rows = self.rows()
        names, problems = self._shelf()
        now = supervisor.clock.now()
        return HouseView(
            uptime=(now.up - self._since.up) // MICRO,
            open=len(supervisor.entries),
            running=sum(row.status is Status.RUNNING for row in rows),
            held=sum(row.status is Status.HELD for row in rows),
            quarantined=len(self.quarantined()),
            ended=supervisor.roll.ended,
            workers=len(supervisor.workshop.slots.hands),
            loading=supervisor.loading,
            workflows=names,
            troubles=problems
            + self._entries()[1]
            + supervisor.workshop.slots.troubles()
            + tuple(_troubles(list(supervisor.entries.values()))),
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


def _hindered(entry: JobEntry) -> bool:
    return entry.stage in (Stage.UNREADABLE, Stage.ASIDE) and entry.snapshot is None


def _aside(each: quarantine.Entry) -> Quarantined:
    since = each.at.wall if each.at is not None else 0
    return Quarantined(id=each.id, reason=each.reason, detail=each.detail, since=since, moved=True)


def _newest(layout: Layout, limit: int) -> list[str]:
    """The ids of the jobs that were archived last: an archived folder is not written any more."""
    moments: list[tuple[float, str]] = []
    for job in archive.ids(layout):
        try:
            moments.append((layout.archived(job).stat().st_mtime, job))
        except OSError:
            continue
    return [job for _, job in sorted(moments, reverse=True)[:limit]]


def _troubles(entries: list[JobEntry]) -> list[str]:
    return [f"{entry.id}: {entry.trouble}" for entry in entries if entry.trouble][:20]
