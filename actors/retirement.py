"""How jobs leave: out of the quarantine, back or for good, and ended ones for good; by a person's word only.

It works through the store alone; a job that is restored is opened like any other.
"""

import logging
from functools import partial
from pathlib import Path

from attrs import evolve

from resumed.schemas.errors import CommitError, FaultyInputError, StoreError
from resumed.schemas.instant import MICRO, spell
from resumed.schemas.job import Person
from resumed.schemas.ledger import EffectState
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import AsideView, EndedRow, Found, JobRow, Quarantined, Told
from resumed.store import archive, durable, examine, files, quarantine, receipts, recovery, retire
from resumed.store import layout as layout_of
from resumed.store.layout import Layout
from resumed.store.receipts import HouseReceipt

from . import possible, views
from .entry import JobEntry, Stage
from .finder import HINDERED, Finder
from .machine.apply import apply
from .once import Ask, Once
from .supervisor import Supervisor

logger = logging.getLogger(__name__)

MOST_FINDINGS = 100
MOST_ROWS = 1000
UNSETTLED = (EffectState.DISPATCHING, EffectState.UNKNOWN)


class Retirement:
    """Looks at, brings back and gives up the jobs of one supervisor's store."""

    def __init__(self, supervisor: Supervisor, finder: Finder) -> None:
        self._supervisor = supervisor
        self._finder = finder
        self.once = Once(supervisor)

    # ---- the quarantine -------------------------------------------------------------------------------

    async def show(self, job: str) -> AsideView | Refusal:
        """What is wrong with a job that is set aside, and where."""
        found = await self._aside(job)
        if isinstance(found, Refusal):
            return found
        row, folder = found
        view: AsideView = await self._supervisor.reads.call(_examined, row, folder)
        commands = possible.aside(job, moved=row.moved)
        return evolve(view, commands=tuple(each for each in commands if " show " not in each.command))

    async def restore(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> Told | Refusal:
        """Bring a job back to its place, once its files hold; CommitError when the disk refused."""
        found = await self._aside(job)
        since = found[0].since if not isinstance(found, Refusal) and found[0].moved else 0

        async def over(receipt: HouseReceipt) -> Told | None:
            """It was back unless it lies there as it did; one that lies in its place is read once more."""
            now = await self._aside(job)
            if isinstance(now, Refusal):
                looked = await self._finder.look(job)
                return None if isinstance(looked, Refusal) else self._back(looked[0], known=True)
            row = now[0]
            if not row.moved or row.since == receipt.since:
                return None
            said = f"{job} was back in its place, and has been set aside again since"
            return Told(row=views.hindered(job, None, row.since, row.detail), said=said, known=True)

        return await self.once.change(ask, job, since, over, partial(self._restore, job, by, reason))

    async def _restore(self, job: str, by: Person, reason: str) -> Told | Refusal:
        found = await self._aside(job)
        if isinstance(found, Refusal):
            return found
        folder = found[1]
        entry = self._supervisor.entries.get(job)
        back = await (self._move_back(job) if entry is None else self._open_again(job, entry, folder))
        if back is not None:
            return back
        logger.info("job %s was restored by %s: %s", job, by.name, reason or "no reason given")
        self._supervisor.take_in(job)
        looked = await self._finder.look(job)
        if isinstance(looked, Refusal):
            return looked
        return self._back(looked[0])

    def _back(self, snapshot: Snapshot, *, known: bool = False) -> Told:
        row = views.row(snapshot, self._supervisor.clock.now())
        return Told(row=row, said=f"{row.id} is back in its place: it is {row.status}", known=known)

    async def _move_back(self, job: str) -> Refusal | None:
        try:
            await self._supervisor.reads.call(retire.restore, self._supervisor.layout, job, apply)
        except CommitError:
            raise
        except (StoreError, FaultyInputError) as error:
            return _unfit(job, error)
        return None

    async def _open_again(self, job: str, entry: JobEntry, folder: Path) -> Refusal | None:
        """A job that lies in its place is read again, once nothing of it runs any more."""
        supervisor = self._supervisor
        if entry.moving or entry.stage is Stage.UNREADABLE:
            does = "is being moved to the quarantine" if entry.moving else "is tried again by itself"
            return Refusal(
                code="busy",
                reason=f"cannot restore {job}: it {does}: {entry.trouble}",
                commands=(f"resumectl quarantine show {job}", f"resumectl why {job}"),
            )
        try:
            await supervisor.reads.call(supervisor.load, folder)
        except (StoreError, FaultyInputError) as error:
            return _unfit(job, error)
        await supervisor.workshop.slots.until_free(job)
        if supervisor.entries.get(job) is entry and not entry.moving:
            supervisor.entries.pop(job)
        return None

    async def discard(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> Told | Refusal:
        """Give up a job that is set aside; CommitError when the disk refused: asking again tells."""

        async def over(receipt: HouseReceipt) -> Told | None:
            row = views.hindered(job, None, receipt.since, "")
            return _discarded(row, known=True) if await self._is_gone(job) else None

        return await self.once.change(ask, job, 0, over, partial(self._discard, job, by, reason))

    async def left(self, uid: int, request: str, name: str) -> str:
        """The job of that name (or prefix) that is gone, if that request was about it; else nothing."""
        receipt = await self._supervisor.reads.call(receipts.find, self._supervisor.layout, uid, request)
        if receipt is None or not name or not receipt.job.startswith(name):
            return ""
        return receipt.job if await self._is_gone(receipt.job) else ""

    async def _is_gone(self, job: str) -> bool:
        supervisor = self._supervisor
        return job not in supervisor.entries and (
            await supervisor.reads.call(layout_of.where, supervisor.layout, job) is None
        )

    async def _discard(self, job: str, by: Person, reason: str) -> Told | Refusal:
        found = await self._aside(job)
        if isinstance(found, Refusal):
            return found
        row, folder = found
        if not row.moved:
            return Refusal(
                code="in_its_place",
                reason=f"cannot discard {job}: it lies in its place, and the next start tries it again",
                commands=(f"resumectl quarantine restore {job}", f"resumectl quarantine show {job}"),
            )
        if (refusal := await self._unsettled(job, folder)) is not None:
            return refusal
        now = self._supervisor.clock.now()
        farewell = retire.Farewell(id=job, how="discarded", by=by.name, at=now, reason=reason)
        await self._supervisor.reads.call(retire.discard, self._supervisor.layout, farewell)
        logger.warning("job %s was discarded by %s: %s", job, by.name, reason or "no reason given")
        return _discarded(views.hindered(job, None, row.since, row.detail))

    async def _aside(self, job: str) -> tuple[Quarantined, Path] | Refusal:
        """The job and its folder, if it is set aside."""
        supervisor = self._supervisor
        entry = supervisor.entries.get(job)
        if entry is not None and entry.stage in HINDERED:
            since = entry.since.wall if entry.since is not None else 0
            row = Quarantined(id=job, reason="unreadable", detail=entry.trouble, since=since, moved=False)
            return row, entry.folder
        found = None
        if entry is None:
            found = await supervisor.reads.call(quarantine.find, supervisor.layout, job)
        if found is None:
            return Refusal(
                code="not_aside",
                reason=f"{job} is not set aside",
                commands=(f"resumectl show {job}", "resumectl quarantine list"),
            )
        since = found.at.wall if found.at is not None else 0
        row = Quarantined(id=job, reason=found.reason, detail=found.detail, since=since, moved=True)
        return row, found.folder

    async def _unsettled(self, job: str, folder: Path) -> Refusal | None:
        """Nothing that may have reached another system is given up before it is known (DESIGN.md, I7)."""
        try:
            found = await self._supervisor.reads.call(self._supervisor.load, folder)
        except (StoreError, FaultyInputError):
            return None  # it cannot be known, and that is what the person was told
        return _open_effects(job, found.snapshot)

    # ---- ended jobs -----------------------------------------------------------------------------------

    async def ended(self, seconds: float, names: tuple[str, ...]) -> tuple[tuple[EndedRow, ...], int]:
        """Jobs (those named, or all) that ended longer ago, oldest first, and how many there are."""
        supervisor = self._supervisor
        before = supervisor.clock.now().wall - round(seconds * MICRO) if seconds else None
        found: list[tuple[int, str]] = await supervisor.reads.call(_ended, supervisor.layout, before, names)
        rows = [
            EndedRow(
                id=job,
                ended=spell(at),
                size=await supervisor.reads.call(_size, supervisor.layout.archived(job)),
            )
            for at, job in found[:MOST_ROWS]
        ]
        return tuple(rows), len(found)

    async def prune(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> bool | Refusal:
        """Remove one ended job for good: whether it was gone by that request already; why not, when it has
        not ended, or is not settled."""

        async def over(_receipt: HouseReceipt) -> bool | None:
            return True if await self._is_gone(job) else None

        async def act() -> bool | Refusal:
            return await self._prune(job, by, reason) or False

        return await self.once.change(ask, job, 0, over, act)

    async def _prune(self, job: str, by: Person, reason: str) -> Refusal | None:
        supervisor = self._supervisor
        if job in supervisor.entries:
            return Refusal(
                code="not_ended",
                reason=f"cannot prune {job}: it has not ended, or is on its way to the archive",
                commands=(f"resumectl why {job}",),
            )
        if (refusal := await self._unsettled(job, supervisor.layout.archived(job))) is not None:
            return refusal
        now = supervisor.clock.now()
        farewell = retire.Farewell(id=job, how="pruned", by=by.name, at=now, reason=reason)
        try:
            await supervisor.reads.call(retire.prune, supervisor.layout, farewell)
        except CommitError:
            raise
        except StoreError as error:
            return Refusal(code="gone", reason=str(error), commands=("resumectl list -a",))
        supervisor.roll.ended -= 1
        logger.info("ended job %s was pruned by %s", job, by.name)
        return None


def _discarded(row: JobRow, *, known: bool = False) -> Told:
    said = f"{row.id} is discarded; its id stays known, and is never given again"
    return Told(row=row, said=said, known=known)


def _unfit(job: str, error: Exception) -> Refusal:
    return Refusal(
        code="does_not_load",
        reason=f"cannot restore {job}: {error}",
        commands=(f"resumectl quarantine show {job}", f"resumectl quarantine discard {job} --yes"),
    )


def _open_effects(job: str, snapshot: Snapshot) -> Refusal | None:
    unsettled = [effect for effect in snapshot.effects if effect.state in UNSETTLED]
    if not unsettled:
        return None
    return Refusal(
        code="unsettled",
        reason=f"cannot give up {job}: nobody knows yet whether {unsettled[0].tool} reached "
        f"{unsettled[0].target}" + (f" (and {len(unsettled) - 1} more)" if len(unsettled) > 1 else ""),
        commands=(f"resumectl why {job}",),
    )


def _examined(row: Quarantined, folder: Path) -> AsideView:
    """Every file of the folder, looked at."""
    found = [
        Found(path=each.path, code=each.code, detail=each.detail, fatal=each.fatal)
        for each in examine.job(folder, apply)
    ]
    found.sort(key=lambda each: not each.fatal)
    try:
        admission = recovery.peek(folder)
    except (StoreError, FaultyInputError):
        requester = file = admitted = ""
    else:
        requester, file, admitted = admission.requester, admission.name, spell(admission.admitted.wall)
    return AsideView(
        job=row,
        folder=str(folder),
        requester=requester,
        file=file,
        admitted=admitted,
        loads=not any(each.fatal for each in found),
        findings=tuple(found[:MOST_FINDINGS]),
        more=max(0, len(found) - MOST_FINDINGS),
    )


def _ended(layout: Layout, before: int | None, names: tuple[str, ...]) -> list[tuple[int, str]]:
    """When and which, oldest first: an archived folder is not written any more."""
    found: list[tuple[int, str]] = []
    for job in names or archive.ids(layout):
        try:
            at = durable.status(layout.archived(job)).st_mtime_ns // 1000
        except (OSError, ValueError):
            continue
        if before is None or at < before:
            found.append((at, job))
    return sorted(found)


def _size(folder: Path) -> int:
    """The bytes of all files below a folder; what cannot be looked at counts as none."""
    total = 0
    try:
        for name in durable.names(folder):
            found = durable.status(folder / name)
            total += _size(folder / name) if files.is_folder(folder / name) else found.st_size
    except OSError:
        pass
    return total
