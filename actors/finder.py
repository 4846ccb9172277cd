"""The finder: which job a name means and which jobs there are, among those that whoever asks may see.

It changes nothing. A job that may not be seen is answered like one that is not there: nothing that is said
here tells the two apart.
"""

from collections import Counter
from pathlib import Path

from attrs import frozen

from resumed.schemas.errors import FaultyInputError, StoreError
from resumed.schemas.job import Status
from resumed.schemas.jobfile import ID
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import JobRow, Quarantined
from resumed.store import archive, quarantine, recovery, retire
from resumed.store.layout import Layout
from resumed.store.quarantine import Entry

from . import refusals, views
from .entry import JobEntry, Stage
from .machine import standing
from .sight import EVERYTHING, Sight, Whose
from .supervisor import Supervisor

MOST_LIKE = 200
"""Ended jobs of one beginning that are looked at to see whether they may be seen."""
SETTLED = 1_000_000_000
"""Nanoseconds after which a folder's time of change tells it from what it was before."""
HINDERED = (Stage.UNREADABLE, Stage.ASIDE)


@frozen
class Located:
    """The id behind a name, and whose the job is; None for who sees everything and need not know."""

    job: str
    whose: Whose | None
    aside: Refusal | None = None
    """What is said of it to who asks as if it could be asked: it is set aside, and why."""


class Finder:
    """Looks among one supervisor's jobs, open, ended and set aside."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._quarantine = supervisor.layout.quarantine
        self._counted: tuple[tuple[int, int, int], int] | None = None

    # ---- one job --------------------------------------------------------------------------------------

    async def locate(self, name: str, sight: Sight = EVERYTHING) -> Located | Refusal:
        """The job that is `name`, or the only one that begins with it; open jobs come before all others."""
        if not ID.match(name):
            return refusals.no_such(name)
        if (found := await self._exact(name, sight)) is not None:
            return found
        entries = list(self._supervisor.entries.items())
        begun = sorted(job for job, entry in entries if job.startswith(name) and self._shown(entry, sight))
        if len(begun) == 1:
            return await self._open(begun[0], sight) or refusals.no_such(name)
        if begun:
            return refusals.ambiguous(name, begun)
        if self._supervisor.loading and not sight.everything:
            many = self._supervisor.loading
            return Refusal(
                code="loading",
                reason=f"cannot look for {name} yet: {many} jobs are still being read; ask again",
            )
        return await self._closed(name, sight)

    async def _exact(self, name: str, sight: Sight) -> Located | Refusal | None:
        """The job of exactly that id, wherever it is; None when there is none, or none to be seen."""
        if name in self._supervisor.entries:
            return await self._open(name, sight) or refusals.no_such(name)
        folder = self._supervisor.layout.archived(name)
        if await self._supervisor.reads.call(folder.is_dir):
            return await self._ended(name, sight)
        there, _ = await self._entries()
        aside = next((each for each in there if each.id == name), None)
        return None if aside is None else await self._aside(aside, sight)

    async def _closed(self, name: str, sight: Sight) -> Located | Refusal:
        """The only job that begins with `name` among those that have ended or are set aside."""
        supervisor = self._supervisor
        there, troubles = await self._entries()
        ended = await supervisor.reads.call(_begun, supervisor.layout, name)
        if len(ended) > MOST_LIKE:
            return refusals.ambiguous(name, ended)
        found = [one for job in ended if (one := await self._ended(job, sight)) is not None]
        aside = [await self._aside(each, sight) for each in there if each.id.startswith(name)]
        found += [one for one in aside if one is not None]
        if len(found) > 1:
            return refusals.ambiguous(name, sorted(one.job for one in found))
        if found:
            return found[0]
        if troubles:
            return Refusal(code="trouble", reason=f"cannot look for {name}: {troubles[0]}")
        return await self._unknown(name, sight)

    async def _unknown(self, name: str, sight: Sight) -> Refusal:
        """Nobody bears the name; who sees everything is told of a job of that id that was given up."""
        try:
            farewell = await self._supervisor.reads.call(retire.farewell_of, self._supervisor.layout, name)
        except (StoreError, FaultyInputError):
            farewell = None
        if farewell is None or not sight.everything:
            return refusals.no_such(name)
        return refusals.given_up(farewell)

    async def _ended(self, job: str, sight: Sight) -> Located | None:
        if sight.everything:
            return Located(job, None)
        whose = await self._whose(self._supervisor.layout.archived(job), sight)
        return Located(job, whose) if whose is not None and sight.sees(whose) else None

    async def _aside(self, each: Entry, sight: Sight) -> Located | None:
        why = refusals.set_aside(each.id, each.detail)
        if sight.everything:
            return Located(each.id, None, why)
        whose = await self._whose(each.folder, sight)
        return Located(each.id, whose, why) if whose is not None and sight.sees(whose) else None

    async def _open(self, job: str, sight: Sight) -> Located | Refusal | None:
        """The open job of that id; None when it may not be seen, or is gone meanwhile."""
        entry = self._supervisor.entries.get(job)
        if entry is None:
            return await self.locate(job, sight)
        whose = self._known(entry)
        if whose is None and not sight.everything:
            whose = await self._whose(entry.folder, sight)
        if not sight.everything and (whose is None or not sight.sees(whose)):
            return None
        hindered = entry.stage in HINDERED and entry.snapshot is None
        return Located(job, whose, refusals.set_aside(job, entry.trouble) if hindered else None)

    def _known(self, entry: JobEntry) -> Whose | None:
        """What memory has of it; None while nothing was read."""
        row = self._supervisor.row(entry)
        return None if row is None else Whose(row.workflow, entry.uid)

    def _shown(self, entry: JobEntry, sight: Sight) -> bool:
        if sight.everything:
            return True
        whose = self._known(entry)
        return whose is not None and sight.sees(whose)

    async def _whose(self, folder: Path, sight: Sight) -> Whose | None:
        """What the files of a job say, no more of them read than is needed to tell."""
        reads = self._supervisor.reads
        try:
            found = await reads.call(recovery.peek, folder)
        except (StoreError, FaultyInputError):
            return None
        whose = Whose(found.workflow, found.uid)
        if whose.workflow or sight.sees(whose) or not sight.others:
            return whose
        # Admitted by the first release, which did not write the workflow beside the file.
        try:
            recovered = await reads.call(self._supervisor.load, folder)
        except (StoreError, FaultyInputError):
            return whose
        return Whose(recovered.snapshot.job.workflow, found.uid)

    async def _aside_shown(self, folder: Path, sight: Sight) -> bool:
        if sight.everything:
            return True
        whose = await self._whose(folder, sight)
        return whose is not None and sight.sees(whose)

    async def look(self, job: str) -> tuple[Snapshot, Path] | Refusal:
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
        except (StoreError, FaultyInputError) as error:
            if entry is not None or await supervisor.reads.call(folder.is_dir):
                return refusals.set_aside(job, str(error))
            found = await self._exact(job, EVERYTHING)
            refusal = found.aside if isinstance(found, Located) else found
            return refusal or refusals.no_such(job)
        return recovered.snapshot, folder

    # ---- many jobs ------------------------------------------------------------------------------------

    def rows(self, sight: Sight = EVERYTHING) -> list[JobRow]:
        """The open jobs, oldest first; those that cannot be read as quarantined."""
        shown = [self._row(entry) for entry in self._in_sight(sight)]
        return sorted((row for row in shown if row is not None), key=lambda row: (row.created, row.id))

    def count_aside(self) -> tuple[int, tuple[str, ...]]:
        """How many jobs lie in the quarantine, and why it cannot be told when it cannot.

        It is listed again only when the folder changed, or did so lately: then it may again, unseen.
        """
        layout, now = self._supervisor.layout, self._supervisor.clock.now()
        mark = quarantine.mark(self._quarantine)
        if self._counted is not None and mark == self._counted[0]:
            return self._counted[1], ()
        self._counted = None
        try:
            many = quarantine.count(layout)
        except StoreError as error:
            return 0, (_unlisted(error),)
        if mark is not None and now.wall * 1000 - mark[2] > SETTLED:
            self._counted = mark, many
        return many, ()

    def counts(self, sight: Sight = EVERYTHING) -> dict[Status, int]:
        """How many of the open jobs stand under each status; no row is made for it."""
        entries, parked = self._in_sight(sight), Stage.PARKED
        # Most jobs are parked: those are counted without a look at each.
        found: dict[Status, int] = Counter(
            [
                entry.row.status
                for entry in entries
                if entry.stage is parked and entry.row is not None and entry.snapshot is None
            ]
        )
        now = self._supervisor.clock.now()
        for entry in entries:
            if entry.stage is parked and entry.snapshot is None:
                continue
            if entry.stage in HINDERED:
                status = Status.QUARANTINED
            elif entry.snapshot is not None:
                status = standing.status(entry.snapshot, now)
            elif entry.row is not None:
                status = entry.row.status
            else:
                continue
            found[status] = found.get(status, 0) + 1
        return found

    def _in_sight(self, sight: Sight) -> list[JobEntry]:
        entries = list(self._supervisor.entries.values())
        return entries if sight.everything else [entry for entry in entries if self._shown(entry, sight)]

    def _row(self, entry: JobEntry) -> JobRow | None:
        row = self._supervisor.row(entry)
        if entry.stage not in HINDERED:
            return row
        since = entry.since.wall if entry.since is not None else 0
        return views.hindered(entry.id, row, since, entry.trouble)

    async def ended(self, sight: Sight = EVERYTHING, limit: int = 100) -> list[JobRow]:
        """The jobs that ended last, newest first."""
        supervisor = self._supervisor
        rows: list[JobRow] = []
        for job in await supervisor.reads.call(_newest, supervisor.layout, limit):
            folder = supervisor.layout.archived(job)
            try:
                found = await supervisor.reads.call(supervisor.load, folder)
            except (StoreError, FaultyInputError):
                continue
            if sight.sees(Whose(found.snapshot.job.workflow, found.admission.uid)):
                rows.append(views.row(found.snapshot, supervisor.clock.now()))
        return sorted(rows, key=lambda row: -row.since)

    async def quarantined(self, sight: Sight = EVERYTHING) -> list[Quarantined]:
        """The jobs set aside, in the quarantine or (unreadable) in their place."""
        there = (await self._entries())[0]
        found = [_aside(each) for each in there if await self._aside_shown(each.folder, sight)]
        for entry in list(self._supervisor.entries.values()):
            if entry.stage in HINDERED and (
                self._shown(entry, sight) or await self._aside_shown(entry.folder, sight)
            ):
                since = entry.since.wall if entry.since is not None else 0
                found.append(
                    Quarantined(
                        id=entry.id, reason="unreadable", detail=entry.trouble, since=since, moved=False
                    )
                )
        return found

    async def _entries(self) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
        """What lies in the quarantine, and why it cannot be told when it cannot."""
        return await self._supervisor.reads.call(listed, self._supervisor.layout)


def listed(layout: Layout) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """What lies in the quarantine, and why it cannot be told when it cannot."""
    try:
        return quarantine.entries(layout), ()
    except StoreError as error:
        return (), (_unlisted(error),)


def _unlisted(error: StoreError) -> str:
    return f"the quarantine cannot be listed: {error}"


def _aside(each: Entry) -> Quarantined:
    since = each.at.wall if each.at is not None else 0
    return Quarantined(id=each.id, reason=each.reason, detail=each.detail, since=since, moved=True)


def _begun(layout: Layout, name: str) -> list[str]:
    """The ended jobs whose ids begin with `name`; those in shards that cannot be listed are left out."""
    try:
        return [job for job in archive.ids(layout) if job.startswith(name)]
    except StoreError:
        return []


def _newest(layout: Layout, limit: int) -> list[str]:
    """The ids of the jobs that were archived last: an archived folder is not written any more."""
    moments: list[tuple[float, str]] = []
    for job in archive.ids(layout):
        try:
            moments.append((layout.archived(job).stat().st_mtime, job))
        except OSError:
            continue
    return [job for _, job in sorted(moments, reverse=True)[:limit]]
