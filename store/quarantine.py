"""Jobs set aside: the same folder, moved whole and untouched, with the reason beside it; nothing is deleted.

The order: the reason durable first, then the move. A reason without its folder is a move that a crash cut
short: the job is found unfit again at the next start, and set aside under its first reason.
"""

import os
from pathlib import Path

from attrs import frozen

from resumed.schemas import checked
from resumed.schemas.errors import FaultyInputError, StoreError
from resumed.schemas.instant import Instant

from . import durable, files
from .layout import Layout

REASON = ".reason.json"


@frozen(kw_only=True)
class Reason:
    """`<id>.reason.json`: why a job was set aside. `reason` is a slug, `detail` a sentence."""

    id: str
    reason: str
    detail: str
    at: Instant


@frozen(kw_only=True)
class Entry:
    """One job set aside; `at` is None when the reason file is missing or cannot be read."""

    id: str
    reason: str
    detail: str
    at: Instant | None
    folder: Path


def set_aside(layout: Layout, job_id: str, reason: str, detail: str, at: Instant) -> Path:
    """Move a job's folder to the quarantine and say why; again after a crash, it finishes the same move.

    StoreError when the quarantine holds another job of that id, or when there is no such job.
    """
    return set_aside_from(layout, layout.job(job_id), reason, detail, at)


def set_aside_from(layout: Layout, source: Path, reason: str, detail: str, at: Instant) -> Path:
    """The same for a folder wherever it lies; it keeps its name."""
    job_id = source.name
    target = layout.quarantine / job_id
    with durable.reading(source):
        here, there = durable.exists(source), durable.exists(target)
    if here and there:
        raise StoreError(f"cannot set {job_id} aside: the quarantine already holds a job of that id")
    if not here and not there:
        raise StoreError(f"cannot set {job_id} aside: there is no such job")
    with durable.writing("set aside", source):
        give_reason(layout, job_id, reason, detail, at)
        # A crash before this line leaves the job where it was, to be judged again.
        if here:
            durable.rename_new(source, target)
        durable.sync_folder(layout.quarantine)
        durable.sync_folder(source.parent)
    return target


def entries(layout: Layout) -> tuple[Entry, ...]:
    """All jobs set aside, by id; UnreadableError when the quarantine itself cannot be listed.

    One that cannot be looked at, or has no reason, is listed with what hinders it, and hides no other.
    """
    with durable.reading(layout.quarantine):
        names = durable.names(layout.quarantine)
    return tuple(_entry(layout, name) for name in names if not _is_reason(layout.quarantine / name))


def count(layout: Layout) -> int:
    """How many jobs are set aside; UnreadableError when the quarantine itself cannot be listed."""
    with durable.reading(layout.quarantine):
        names = durable.names(layout.quarantine)
    return sum(not _is_reason(layout.quarantine / name) for name in names)


def mark(place: Path) -> tuple[int, int, int] | None:
    """What changes when a job comes into the quarantine at `place`, or goes: the folder's device, inode and
    time of change, in nanoseconds; None when it cannot be looked at.

    Changes within one tick of the kernel may share a mark.
    """
    try:
        found = durable.status(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def find(layout: Layout, job_id: str) -> Entry | None:
    """The job of that id if it is set aside; UnreadableError when that cannot be told."""
    with durable.reading(layout.quarantine / job_id):
        if not durable.exists(layout.quarantine / job_id):
            return None
    return None if _is_reason(layout.quarantine / job_id) else _entry(layout, job_id)


def reason_path(layout: Layout, job_id: str) -> Path:
    """Where the reason for a job lies."""
    return layout.quarantine / f"{job_id}{REASON}"


def read_reason(path: Path) -> Reason:
    """The reason in a file; FaultyInputError when it holds none, UnreadableError when it cannot be read."""
    with durable.reading(path):
        raw = durable.read_all(path)
    found = checked.read(raw, Reason, f"cannot read {path.name}")
    if f"{found.id}{REASON}" != _shown(path.name):
        raise FaultyInputError(f"cannot read {path.name}", (f"it is the reason for {found.id} @ $.id",))
    return found


def give_reason(layout: Layout, job_id: str, reason: str, detail: str, at: Instant) -> None:
    """Make the reason for a job durable, unless it has one; OSError when the disk refuses."""
    path = reason_path(layout, job_id)
    record = Reason(id=_shown(job_id), reason=reason, detail=_clean(detail), at=at)
    try:
        durable.write_new(path, checked.spell(record))
    except FileExistsError:
        # The first reason stays; it may not have been durable yet.
        durable.sync_folder(path.parent)


def _is_reason(path: Path) -> bool:
    """True for reason files and left-overs; a job's folder may bear any id, also one that ends like them."""
    if durable.is_temporary(path.name):
        return True
    if not path.name.endswith(REASON):
        return False
    try:
        return not files.is_folder(path)
    except OSError:
        return True


def _entry(layout: Layout, name: str) -> Entry:
    folder, job_id = layout.quarantine / name, _shown(name)
    try:
        found = read_reason(reason_path(layout, name))
    except (FaultyInputError, StoreError) as error:
        return Entry(id=job_id, reason="unknown", detail=_shown(str(error)), at=None, folder=folder)
    return Entry(id=job_id, reason=found.reason, detail=found.detail, at=found.at, folder=folder)


def _shown(text: str) -> str:
    """A name as text that any record can hold."""
    return _clean(os.fsencode(text).decode("utf-8", "backslashreplace"))


def _clean(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
