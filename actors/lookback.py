"""The look back: a job's past piece by piece, and why it stands as it does; it reads off the loop, only."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from attrs import frozen

from resumed.schemas.errors import StoreError
from resumed.schemas.job import Status
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import HistoryRow, JobRow, WhyView
from resumed.store import history, quarantine
from resumed.store.history import Past

from . import past, refusals, views, why
from .supervisor import Supervisor

PIECE = 500
"""Lines in one piece of a job's past."""

Look = Callable[[str], Awaitable[tuple[Snapshot, Path] | Refusal]]
"""A job's last adopted snapshot and its folder, open or ended; why not, when none can be read."""


@frozen(kw_only=True)
class Piece:
    """Some rows of a job's past; `following` is the sequence after which to go on, 0 after the last."""

    rows: tuple[HistoryRow, ...]
    following: int
    notes: tuple[str, ...]


class Lookback:
    """Looks at the past of one supervisor's jobs, open, ended and set aside."""

    def __init__(self, supervisor: Supervisor, look: Look) -> None:
        self._supervisor = supervisor
        self._look = look

    async def history(self, job: str, after: int, item: str) -> Piece | Refusal:
        """The rows past sequence `after` (a negative one counts from the end); with `item`, of that one."""
        folder = await self._folder(job)
        if isinstance(folder, Refusal):
            return folder
        told = await self._past(folder, after, PIECE)
        return Piece(rows=past.rows(told.lines, item), following=told.following, notes=told.notes)

    async def why(self, job: str) -> WhyView | Refusal:
        """Why the job stands as it does."""
        found = await self._look(job)
        if isinstance(found, Refusal):
            return await self._aside(job, found)
        snapshot, folder = found
        told = await self._past(folder, -why.LOOK_BACK, why.LOOK_BACK)
        return why.view(snapshot, self._supervisor.clock.now(), told)

    async def _past(self, folder: Path, after: int, most: int) -> Past:
        """What the logs tell; a folder that cannot be listed has no past, and says so."""
        try:
            return await self._supervisor.reads.call(history.read, folder, after, most)
        except StoreError as error:
            return Past(lines=(), following=0, torn=0, notes=(str(error),))

    async def _folder(self, job: str) -> Path | Refusal:
        """Where the job's files are, in whatever state they are."""
        supervisor = self._supervisor
        entry = supervisor.entries.get(job)
        places = [entry.folder] if entry is not None else []
        places += [supervisor.layout.archived(job), supervisor.layout.quarantine / job]
        for place in places:
            if await supervisor.reads.call(place.is_dir):
                return place
        return refusals.no_such(job)

    async def _aside(self, job: str, refusal: Refusal) -> WhyView | Refusal:
        """A job that is set aside is told about all the same, as far as it can be read."""
        supervisor = self._supervisor
        entry = supervisor.entries.get(job)
        if entry is not None:
            since = entry.since.wall if entry.since is not None else 0
            row = views.hindered(job, supervisor.row(entry), since, entry.trouble)
            return await self._why_aside(row, entry.trouble, entry.folder, moved=False)
        try:
            found = await supervisor.reads.call(quarantine.find, supervisor.layout, job)
        except StoreError:
            return refusal
        if found is None:
            return refusal
        since = found.at.wall if found.at is not None else 0
        row = views.hindered(job, None, since, found.detail)
        return await self._why_aside(row, f"{found.reason}: {found.detail}", found.folder, moved=True)

    async def _why_aside(self, row: JobRow, detail: str, folder: Path, *, moved: bool) -> WhyView:
        assert row.status is Status.QUARANTINED
        told = await self._past(folder, -why.LOOK_BACK, why.LOOK_BACK)
        return why.aside(row, detail, told, moved=moved)
