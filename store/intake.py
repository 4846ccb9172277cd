"""The watched folder as far as it is disk: files are claimed, read once, and finished or rejected.

Nothing here parses a file or knows a job. The order of a claim: rename into `claimed/` without replacing,
open without following or blocking, check the descriptor, read once, compare the descriptor again. A file
leaves `claimed/` only when its job is durable (`finish`) or its refusal is (`reject`).
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from resumed.schemas import checked, codec, jobfile, strict
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant

from . import durable
from .layout import Layout

REASON = ".reason.json"
STILL = 50_000_000
"""Nanoseconds without a write after which a file counts as still; whether it is whole, its parser says."""
_UNFINISHED = ("~", ".tmp", ".temp", ".part", ".partial", ".swp", ".crdownload", ".filepart", REASON)
_MOST_NAME = 255
_MOST_INT = strict.MAX_INT


@frozen(kw_only=True)
class FileMarks:
    """What tells a refused file from another of its name: size and digest, or its inode if it has none."""

    size: int | None = None
    sha256: str = ""
    device: int | None = None
    inode: int | None = None


@frozen(kw_only=True)
class Rejection:
    """`NAME.reason.json`: why a file was refused. `name` is the one it came under; `code` is a slug."""

    name: str
    at: Instant
    file: FileMarks
    code: str
    reason: str = ""
    problems: tuple[str, ...] = ()


@frozen(kw_only=True)
class Claimed:
    """One file taken out of the folder, read once."""

    name: str
    raw: bytes
    uid: int
    mtime: int
    """Nanoseconds since 1970."""
    identity: tuple[int, int]
    """Device and inode."""


def identity(folder: Path) -> tuple[int, int]:
    """Device and inode of a folder; when they change, watching it has to begin anew."""
    found = os.stat(folder)
    return found.st_dev, found.st_ino


def scan(folder: Path) -> tuple[str, ...]:
    """The names to claim, sorted; dot names and those of files that editors and copies still write stay."""
    with durable.reading(folder):
        names = durable.names(folder)
    return tuple(name for name in names if not name.startswith(".") and not name.endswith(_UNFINISHED))


def claimed(layout: Layout) -> tuple[str, ...]:
    """What was claimed and neither finished nor rejected, for the scan at start."""
    with durable.reading(layout.claimed):
        return tuple(durable.names(layout.claimed))


def look(layout: Layout, name: str) -> os.stat_result | None:
    """What the kernel says about a file in the folder; None when it is gone."""
    with durable.reading(layout.incoming / name):
        try:
            return durable.status(layout.incoming / name)
        except FileNotFoundError:
            return None


def still_in(found: os.stat_result, now: Instant) -> float:
    """Seconds until a file counts as still, 0 when it does; what is no regular file never changes."""
    if not stat.S_ISREG(found.st_mode):
        return 0.0
    # A time in the future is a wrong clock somewhere, not a write that is still to come. A file that was
    # renamed into the folder keeps the time of its last write, and is taken that much sooner.
    passed = now.wall * 1000 - found.st_mtime_ns
    return 0.0 if abs(passed) >= STILL else (STILL - passed) / 1e9


@frozen(kw_only=True)
class Taken:
    """What taking some files came to: those that were read, what each of the others met, and how soon the
    first of those that are not still yet will be (None: there is none)."""

    files: tuple[Claimed, ...]
    met: tuple[tuple[str, Exception], ...]
    still_in: float | None = None


def take(layout: Layout, names: Sequence[str], now: Instant) -> Taken:
    """Claim and read each of these files of the watched folder; what one of them meets stops no other."""
    waits: list[float] = []

    def one(name: str) -> Claimed | None:
        found = look(layout, name)
        if found is None:
            return None
        if (left := still_in(found, now)) > 0:
            waits.append(left)
            return None
        return claim(layout, name)

    return evolve(_each(one, names), still_in=min(waits, default=None))


def take_up(layout: Layout, names: Sequence[str]) -> Taken:
    """Read each of these files of `claimed/`; what one of them meets stops no other."""
    return _each(partial(read, layout), names)


def _each(one: Callable[[str], Claimed | None], names: Sequence[str]) -> Taken:
    files: list[Claimed] = []
    met: list[tuple[str, Exception]] = []
    for name in names:
        try:
            if (file := one(name)) is not None:
                files.append(file)
        except Exception as error:  # noqa: BLE001 - whatever it is: the caller says it of that file
            met.append((name, error))
    return Taken(files=tuple(files), met=tuple(met))


def claim(layout: Layout, name: str) -> Claimed:
    """Take a file out of the folder and read it.

    FileNotFoundError when it is gone, FileExistsError while an earlier file of that name is being admitted;
    FaultyInputError when the file is unfit: it then lies in `claimed/`, to be rejected.
    """
    try:
        durable.rename_new(layout.incoming / name, layout.claimed / name)
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as error:
        raise durable.unreadable(layout.incoming / name, error) from error
    # Not synced: a crash leaves the file in one of both folders, and both are scanned at start.
    return read(layout, name)


def read(layout: Layout, name: str) -> Claimed:
    """A file that lies in `claimed/`; FaultyInputError when it is unfit."""
    path = layout.claimed / name
    with durable.reading(path):
        _check(name, durable.status(path))
        fd = durable.open_read(path)
        try:
            before = durable.status_of(fd)
            _check(name, before)
            # One byte more than it has: a file that grows as fast as it is read ends the reading too.
            raw = durable.read_open(fd, before.st_size + 1)
            after = durable.status_of(fd)
        finally:
            durable.close(fd)
    if _marks(before) != _marks(after) or len(raw) != after.st_size:
        raise _unfit(name, "it changed while it was read")
    return Claimed(
        name=name,
        raw=raw,
        uid=before.st_uid,
        mtime=before.st_mtime_ns,
        identity=(before.st_dev, before.st_ino),
    )


def finish(layout: Layout, *files: Claimed) -> None:
    """Remove claimed files whose jobs are durable; a second call changes nothing. One sync is for them all.

    A crash before it may bring some of them back: each is then found to be the job that exists.
    """
    with durable.writing("finish what lies in", layout.claimed):
        for file in files:
            path = layout.claimed / file.name
            if durable.exists(path):
                durable.unlink(path)
        durable.sync_folder(layout.claimed)


def reject(layout: Layout, name: str, reason: Mapping[str, Any], at: Instant) -> Path:
    """Move a claimed file to `rejected/` with its reason beside it; no name there is ever replaced.

    `reason` holds `code` and may hold `reason` and `problems`. Returns where the file lies. The reason is
    durable first: a crash in between leaves the file in `claimed/`, and the next rejection finds its own
    reason by the file's digest.
    """
    source = layout.claimed / name
    with durable.writing("reject", source):
        record = Rejection(
            name=_spell(name),
            at=at,
            file=marks_of(source),
            code=reason["code"],
            reason=strict.plain(reason.get("reason", "")),
            problems=tuple(map(strict.plain, reason.get("problems", ()))),
        )
        for target in _places(layout.rejected, name):
            if durable.exists(target) or not _own_reason(target, record):
                continue
            durable.rename_new(source, target)
            durable.sync_folder(layout.rejected)
            durable.sync_folder(layout.claimed)
            return target
    raise AssertionError("names never run out")


def marks_of(path: Path) -> FileMarks:
    """The marks of a file that lies there; OSError when it cannot be read."""
    found = durable.status(path)
    if not stat.S_ISREG(found.st_mode):
        return FileMarks(device=found.st_dev & _MOST_INT, inode=found.st_ino & _MOST_INT)
    fd = durable.open_read(path)
    try:
        raw = durable.read_open(fd, min(found.st_size, jobfile.MAX_BYTES + 1))
    finally:
        durable.close(fd)
    return FileMarks(size=found.st_size, sha256=codec.digest(raw))


def read_rejection(path: Path) -> Rejection:
    """The reason in a file; FaultyInputError when it holds none, UnreadableError when it cannot be read."""
    with durable.reading(path):
        raw = durable.read_all(path)
    return checked.read(raw, Rejection, f"cannot read {_spell(path.name)}")


def _own_reason(target: Path, record: Rejection) -> bool:
    """True once the reason for this very file stands beside `target`; False when the place is another's."""
    path = target.with_name(f"{target.name}{REASON}")
    try:
        durable.write_new(path, checked.spell(record))
    except FileExistsError:
        try:
            found = read_rejection(path)
        except FaultyInputError:
            return False
        if found.file != record.file:
            return False
        durable.sync_folder(path.parent)
    return True


def _places(folder: Path, name: str) -> Iterator[Path]:
    """The name itself where that can bear a reason beside it, then numbered ones."""
    stem = os.fsdecode(os.fsencode(name)[: _MOST_NAME - len(REASON) - 8])
    if stem == name and not name.endswith(REASON):
        yield folder / name
    for number in count(1):
        yield folder / f"{stem}.{number}"


def _check(name: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _unfit(name, "it is no regular file")
    if found.st_nlink != 1:
        raise _unfit(name, f"it has {found.st_nlink} names, expected one")
    if found.st_size > jobfile.MAX_BYTES:
        raise _unfit(name, f"it has {found.st_size} bytes, the most is {jobfile.MAX_BYTES}")
    if found.st_mode & 0o022:
        raise _unfit(name, f"others may write it (mode {stat.S_IMODE(found.st_mode):04o})")


def _marks(found: os.stat_result) -> tuple[int, ...]:
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_nlink,
        found.st_uid,
    )


def _unfit(name: str, why: str) -> FaultyInputError:
    return FaultyInputError(f"cannot admit {_spell(name)}", (why,))


def _spell(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")
