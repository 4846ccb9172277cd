"""The finder: which job a name means and which jobs there are, among those that whoever asks may see.

It changes nothing. A job that may not be seen is answered like one that is not there: nothing that is said
here tells the two apart.
"""

from pathlib import Path

from attrs import frozen

from resumed.schemas.errors import FaultyInputError, StoreError
from resumed.schemas.jobfile import ID
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import JobRow, Quarantined
from resumed.store import archive, quarantine, recovery
from resumed.store.layout import Layout
from resumed.store.quarantine import Entry

from . import refusals, views
from .entry import JobEntry, Stage
from .sight import EVERYTHING, Sight, Whose
from .supervisor import Supervisor

HINDERED = (Stage.UNREADABLE, Stage.ASIDE)


@frozen
class Located:
    """The id behind a name, and whose the job is; None for who sees everything and need not know."""

    job: str
    whose: Whose | None


class Finder:
    """Looks among one supervisor's jobs, open, ended and set aside."""

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    # ---- one job --------------------------------------------------------------------------------------

    async def locate(self, name: str, sight: Sight = EVERYTHING) -> Located | Refusal:
        """The job that is `name`, or the only open one that begins with it; why not, when it is set aside."""
        if not ID.match(name):
            return refusals.no_such(name)
        entries = self._supervisor.entries
        if name in entries:
            return await self._open(name, sight) or refusals.no_such(name)
        folder = self._supervisor.layout.archived(name)
        if await self._supervisor.reads.call(folder.is_dir):
            whose = None if sight.everything else await self._whose(folder, sight)
            if sight.everything or (whose is not None and sight.sees(whose)):
                return Located(name, whose)
        found = sorted(
            job for job, entry in list(entries.items()) if job.startswith(name) and self._shown(entry, sight)
        )
        if len(found) == 1:
            return await self._open(found[0], sight) or refusals.no_such(name)
        if found:
            some = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
            return Refusal(code="ambiguous", reason=f"{name!r} begins {len(found)} jobs: {some}")
        if self._supervisor.loading and not sight.everything:
            many = self._supervisor.loading
            return Refusal(
                code="loading",
                reason=f"cannot look for {name} yet: {many} jobs are still being read; ask again",
            )
        return await self.find_aside(name, sight)

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
        if entry.stage in HINDERED and entry.snapshot is None:
            return refusals.set_aside(job, entry.trouble)
        return Located(job, whose)

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

    async def find_aside(self, name: str, sight: Sight = EVERYTHING) -> Refusal:
        """What is said of a name that no job bears which can be asked: it is set aside, or there is none."""
        there, troubles = await self._entries()
        found = [each for each in there if each.id == name] or [
            each for each in there if each.id.startswith(name)
        ]
        if not sight.everything:
            found = [each for each in found if await self._aside_shown(each.folder, sight)]
        if len(found) == 1:
            return refusals.set_aside(found[0].id, found[0].detail)
        if troubles:
            return Refusal(code="trouble", reason=f"cannot look for {name}: {troubles[0]}")
        return refusals.no_such(name)

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
            there = entry is not None or await supervisor.reads.call(folder.is_dir)
            return refusals.set_aside(job, str(error)) if there else await self.find_aside(job)
        return recovered.snapshot, folder

    # ---- many jobs ------------------------------------------------------------------------------------

    def rows(self, sight: Sight = EVERYTHING) -> list[JobRow]:
        """The open jobs, oldest first; those that cannot be read as quarantined."""
        shown = [
            self._row(entry) for entry in list(self._supervisor.entries.values()) if self._shown(entry, sight)
        ]
        return sorted((row for row in shown if row is not None), key=lambda row: (row.created, row.id))

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
        return (), (f"the quarantine cannot be listed: {error}",)


def _aside(each: Entry) -> Quarantined:
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
