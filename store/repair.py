"""`fsck --repair`: what is damaged is moved out of the way; nothing is deleted, and nothing is guessed.

The caller holds the store's lock. What recovery lives with is left alone. A job that does not load goes to
the quarantine, as at a start; a file that nothing needs, or that only hinders, goes to `lost/`, under the
path it had. Each step is driven by what fsck finds, so a repair that was killed is simply made again.
"""

from pathlib import Path

from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.errors import DamagedError, FaultyInputError, StoreError
from resumed.schemas.instant import Instant

from . import archive, claims, durable, files, fsck, intake, layout, names, quarantine, recovery
from .examine import Finding
from .layout import Layout
from .recovery import Apply


@frozen(kw_only=True)
class Step:
    """One thing that was done: `source` and `target` are paths; `target` alone was written new."""

    source: str
    target: str
    why: str


@frozen(kw_only=True)
class Repair:
    """What was done, what was left and why, and what fsck says afterwards."""

    steps: tuple[Step, ...]
    left: tuple[str, ...]
    report: fsck.Report


def repair(place: Layout, apply: Apply, now: Instant, store_id: str) -> Repair:
    """Repair a store whose lock is held; CommitError when the disk refuses, and then again is possible.

    The errors of `look` come before anything is touched.
    """
    look(place)
    work = _Work(place, apply, now)
    work.house(store_id)
    for finding in fsck.check(place.root, apply).findings:
        if finding.code not in fsck.NOTES:
            work.settle(finding)
    report = fsck.check(place.root, apply)
    wrong = [finding for finding in report.findings if finding.code not in fsck.NOTES]
    left = tuple(f"{_below(place, one)}: {one.detail}; {_why_left(place, one)}" for one in wrong)
    return Repair(steps=tuple(work.steps), left=left, report=report)


def _below(place: Layout, finding: Finding) -> str:
    return finding.path.removeprefix(f"{place.root}/")


def _why_left(place: Layout, finding: Finding) -> str:
    if finding.code == "unreadable":
        return "it could not be read, so nothing is known of it"
    where = _below(place, finding).split("/")[0]
    if finding.code == "missing":
        return "its bytes are nowhere in the store"
    return _LEFT.get(where, "no repair is known")


_LEFT = {
    "names": "what it names stays taken while it is there",
    "workers": "its worker is not known to be gone while it is there",
    "jobs": "recovery needs it",
    "archive": "recovery needs it",
}


def look(place: Layout) -> None:
    """Whether a repair may begin at all: NewerSchemaError and UnreadableError say that it must not."""
    try:
        layout.read(place)
    except DamagedError:
        pass


def _claims(folder: Path) -> tuple[claims.Claim, ...]:
    try:
        return claims.of(recovery.peek(folder))
    except (StoreError, FaultyInputError):
        return ()


class _Work:
    def __init__(self, place: Layout, apply: Apply, now: Instant) -> None:
        self.place, self.apply, self.now = place, apply, now
        self.steps: list[Step] = []
        self._moved: set[Path] = set()

    # ---- the house ------------------------------------------------------------------------------------

    def house(self, store_id: str) -> None:
        """`store.json` and the folders: what must be there for anything else."""
        record = self.place.store_file
        try:
            missing = layout.read(self.place) is None
        except DamagedError as error:
            self._lose(record, str(error))
            missing = True
        folders = [name for name in layout.FOLDERS if not durable.exists(self.place.root / name)]
        if not missing and not folders:
            return
        layout.make(self.place, store_id, self.now)
        for path in (*(self.place.root / name for name in folders), *([record] if missing else [])):
            self.steps.append(Step(source="", target=str(path), why="it was missing"))

    # ---- one finding ----------------------------------------------------------------------------------

    def settle(self, finding: Finding) -> None:
        """Do what can be done about one finding."""
        path = Path(finding.path)
        if any(path.is_relative_to(moved) for moved in self._moved):
            return
        place, *below = path.relative_to(self.place.root).parts or ("",)
        if finding.code == "unreadable":
            return
        if place in ("jobs", "archive") and finding.job:
            self._job(self.place.root.joinpath(place, *below[:2]), finding)
        elif place == "quarantine":
            self._reason(path, finding)
        elif place == "rejected":
            self._rejected(path, finding)
        elif place == "names" and finding.code == "missing":
            self._name(path)

    def _job(self, folder: Path, finding: Finding) -> None:
        if finding.code == "misplaced":
            self._misplaced(folder, finding)
        elif finding.fatal:
            self._set_aside(folder, "newer_schema" if finding.code == "newer" else "damaged", finding.detail)
        elif finding.code == "damaged" and self._is_spare(folder, Path(finding.path)):
            self._lose(Path(finding.path), finding.detail)

    def _is_spare(self, folder: Path, path: Path) -> bool:
        """True for a file that recovery of its job does not read."""
        if path.parent.name == files.ARTIFACTS:
            return True
        try:
            found = recovery.load(folder, self.apply)
        except (StoreError, FaultyInputError):
            return False
        log, checkpoint = files.parse_log(path.name), files.parse_checkpoint(path.name)
        if checkpoint is not None:
            return checkpoint.sequence != found.checkpoint or path.name in found.rejected
        if log is None:
            return False
        return log.first <= found.checkpoint or log not in files.listing(folder).newest_logs().values()

    def _misplaced(self, folder: Path, finding: Finding) -> None:
        try:
            job = recovery.load(folder, self.apply).admission.id
            right = (
                self.place.job(job) if folder.parent.parent == self.place.jobs else self.place.archived(job)
            )
            free = not layout.taken(self.place, job) and folder != right
        except (StoreError, FaultyInputError, ValueError):
            free = False
        if free:
            self._move(folder, right, finding.detail)
        else:
            self._set_aside(folder, "misplaced", finding.detail)

    def _set_aside(self, folder: Path, reason: str, detail: str) -> None:
        if durable.exists(self.place.quarantine / folder.name):
            self._lose(folder, f"{detail}; the quarantine already holds a job of that id")
            return
        quarantine.set_aside_from(self.place, folder, reason, detail, self.now)
        self._moved.add(folder)
        target = self.place.quarantine / folder.name
        self.steps.append(Step(source=str(folder), target=str(target), why=detail))

    def _reason(self, path: Path, finding: Finding) -> None:
        """A job set aside needs a reason beside it; one that cannot be read is kept in `lost/`."""
        if durable.exists(path):
            self._lose(path, finding.detail)
        job = path.name.removesuffix(quarantine.REASON)
        with durable.writing("give a reason to", path):
            quarantine.give_reason(self.place, job, "unknown", "its reason was lost", self.now)
        self.steps.append(Step(source="", target=str(path), why="a job set aside needs a reason"))

    def _rejected(self, path: Path, finding: Finding) -> None:
        """A refused file and its reason go together: neither says anything true of the other any more."""
        name = path.name.removesuffix(intake.REASON)
        for one in (path.with_name(f"{name}{intake.REASON}"), path.with_name(name)):
            if durable.exists(one):
                self._lose(one, finding.detail)

    def _name(self, path: Path) -> None:
        """A name that its job bears is written anew, from the job."""
        for parent in (self.place.jobs, self.place.archive):
            for job in archive.folders(parent):
                folder = parent / codec.shard(job) / job
                for claim in _claims(folder):
                    if names.spell(claim.kind, claim.uid, claim.value) == path.name:
                        claims.take(self.place, claim)
                        why = f"{job} bears the {claim.kind} {claim.value}"
                        self.steps.append(Step(source="", target=str(path), why=why))
                        return

    # ---- moving ---------------------------------------------------------------------------------------

    def _lose(self, path: Path, why: str) -> None:
        """Move a file or folder to `lost/`, under its own path there."""
        wanted = self.place.lost / path.relative_to(self.place.root)
        target, number = wanted, 0
        while durable.exists(target):
            number += 1
            target = wanted.with_name(f"{wanted.name}.{number}")
        self._move(path, target, why)

    def _move(self, path: Path, target: Path, why: str) -> None:
        with durable.writing("move", path):
            for parent in reversed(
                [one for one in target.parents if one.is_relative_to(self.place.root)][:-1]
            ):
                durable.ensure_folder(parent)
            durable.rename_new(path, target)
            # A crash before these two leaves it in one of both places, whole.
            durable.sync_folder(target.parent)
            durable.sync_folder(path.parent)
        self._moved.add(path)
        self.steps.append(Step(source=str(path), target=str(target), why=why))
