"""The one door to the disk: primitive calls that a test may replace one by one, and what is composed of them.

It knows no format. Callers write `durable.name(...)`; everything that changes the disk ends in one of the
primitives in `MUTATING`. Every descriptor is close-on-exec. The order that holds for a published file:
write, sync the file, rename without replacing, sync the folder.
"""

import ctypes
import errno
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from resumed.schemas.errors import CommitError, UnreadableError

from .grouped import MOST_BYTES, MOST_PARTS, Group, Part
from .grouped import own_group as _own_group

MUTATING = (
    "create",
    "open_lock",
    "pwrite",
    "truncate",
    "sync_data",
    "sync_file",
    "sync_folder",
    "rename_new",
    "unlink",
    "make_folder",
    "remove_folder",
)
"""The primitives that change the disk or make a change durable."""
READING = ("names", "open_read", "read_at", "status", "status_of", "space", "lock", "close")
"""The primitives that only look, and those about descriptors."""
GROUPED = ("write_and_sync_each", "begin_each", "sync_folders")
"""`pwrite` and `sync_data` on many files, `sync_folder` on many folders: the same to each, at once."""

TEMP_SUFFIX = ".tmp"
_SMALL, _CHUNK = 64 * 1024, 1024 * 1024
_AT_FDCWD = -100
_RENAME_NOREPLACE = 1

# ---- primitives -------------------------------------------------------------------------------------------


def create(path: Path) -> int:
    """A descriptor for a new file of mode 0600; FileExistsError when the name is taken."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def open_lock(path: Path) -> int:
    """A descriptor for a lock file, which is created when missing and never replaced."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def open_read(path: Path) -> int:
    """A descriptor for reading that follows no link and never blocks on a pipe or a device."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def pwrite(fd: int, raw: bytes | memoryview, offset: int) -> int:
    """One write call; returns how much of it was taken."""
    return os.pwrite(fd, raw, offset)


def read_at(fd: int, size: int, offset: int) -> bytes:
    """One read call; fewer bytes than asked for do not mean the end, no bytes do."""
    return os.pread(fd, size, offset)


def truncate(fd: int, size: int) -> None:
    """Cut an open file to `size` bytes."""
    os.ftruncate(fd, size)


def sync_data(fd: int) -> None:
    """Make an open file's bytes and its length durable."""
    os.fdatasync(fd)


def write_and_sync_each(parts: Sequence[Part]) -> list[OSError | None]:
    """Write each part's bytes to its file and make them durable; an error for each part that failed.

    As `write_at` and `sync_data` on one file after the other, but side by side where the kernel can.
    """
    group = _own_group() if len(parts) > 1 else None
    found: list[OSError | None] = []
    for some in _groups(parts):
        if group is None or len(some) == 1:
            found += [_write_and_sync(part) for part in some]
            continue
        for part, why in zip(some, group.run(some), strict=True):
            if why == -1:
                found.append(_write_and_sync(part))
            else:
                found.append(None if why is None else OSError(why, os.strerror(why)))
    return found


def begin_each(parts: Sequence[Part], group: Group, bell: int, ready: Callable[[], None]) -> bool:
    """Begin what `write_and_sync_each` does, for no more parts than one group holds.

    `group.collect` tells how each came to its end, from when `ready` is called; the eventfd `bell` rings for
    each. False when nothing was begun and `ready` was not called.
    """
    group.prepare(parts, bell)
    ready()
    if group.begin():
        os.eventfd_write(bell, 1)
    return True


def sync_folders(paths: Sequence[Path]) -> list[OSError | None]:
    """Make the names in each folder durable; an error for each that failed. Side by side where that goes."""
    group = _own_group() if len(paths) > 1 else None
    found: list[OSError | None] = []
    for start in range(0, len(paths), MOST_PARTS):
        some = paths[start : start + MOST_PARTS]
        found += [_sync_folder(path) for path in some] if group is None else _sync_together(group, some)
    return found


def _sync_together(group: Group, paths: Sequence[Path]) -> list[OSError | None]:
    opened: list[int] = []
    try:
        opened.extend(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for path in paths)
        said = group.sync(opened)
    except OSError:
        # One that cannot be opened must not cost the others.
        said = [-1] * len(paths)
    finally:
        for fd in opened:
            os.close(fd)
    return [
        _sync_folder(path) if why == -1 else None if why is None else OSError(why, os.strerror(why))
        for path, why in zip(paths, said, strict=True)
    ]


def _sync_folder(path: Path) -> OSError | None:
    try:
        sync_folder(path)
    except OSError as error:
        return error
    return None


def _write_and_sync(part: Part) -> OSError | None:
    fd, raw, offset = part
    try:
        write_at(fd, raw, offset)
        sync_data(fd)
    except OSError as error:
        return error
    return None


def _groups(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """The parts in order, as many at a time as one group holds; one that is too large stands alone."""
    some: list[Part] = []
    size = 0
    for part in parts:
        if some and (len(some) == MOST_PARTS or size + len(part[1]) > MOST_BYTES):
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part[1])
    yield some


def sync_file(fd: int) -> None:
    """Make an open file durable with all that is known about it."""
    os.fsync(fd)


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def rename_new(source: Path, target: Path) -> None:
    """Rename a file or folder; FileExistsError when the target is taken, which is never replaced."""
    call = _renameat2()
    if call is not None:
        if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE) == 0:
            return
        found = ctypes.get_errno()
        if found not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OSError(found, os.strerror(found), str(source), None, str(target))
    _rename_by_link(source, target)


def unlink(path: Path) -> None:
    """Take a name away."""
    os.unlink(path)


def make_folder(path: Path) -> None:
    """Make a folder of mode 0700; FileExistsError when the name is taken."""
    os.mkdir(path, 0o700)


def remove_folder(path: Path) -> None:
    """Remove an empty folder."""
    os.rmdir(path)


def names(path: Path) -> list[str]:
    """The names in a folder, sorted."""
    return sorted(os.listdir(path))


def status(path: Path) -> os.stat_result:
    """What the kernel says about a name, following no link."""
    return os.lstat(path)


def status_of(fd: int) -> os.stat_result:
    """What the kernel says about an open file."""
    return os.fstat(fd)


def space(path: Path) -> tuple[int, int]:
    """Bytes and file entries that are free for us, where `path` lies; some are root's alone."""
    found = os.statvfs(path)
    if os.geteuid() == 0:
        return found.f_bfree * found.f_frsize, found.f_ffree
    return found.f_bavail * found.f_frsize, found.f_favail


def lock(fd: int) -> bool:
    """Take the whole-file lock of an open file; False when somebody else holds it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def close(fd: int) -> None:
    """Close a descriptor."""
    os.close(fd)


@cache
def _renameat2() -> "ctypes._FuncPointer | None":
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    return call  # type: ignore[no-any-return]  # a foreign function has no type of ours


def _rename_by_link(source: Path, target: Path) -> None:
    if os.path.isdir(source) and not os.path.islink(source):
        # No link() for folders. The store's lock is the fence: nobody else makes names here.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))
        os.rename(source, target)
        return
    os.link(source, target, follow_symlinks=False)
    # A crash here leaves both names on one file: the temporary one is removed as a left-over.
    os.unlink(source)


# ---- composed of them -------------------------------------------------------------------------------------


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn a failed read into UnreadableError: no verdict about the bytes."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> UnreadableError:
    """The error that stands for a failed read."""
    return UnreadableError(f"cannot read {path}: {error.strerror}", path=str(path), errno=error.errno or 0)


@contextmanager
def writing(what: str, path: Path) -> Iterator[None]:
    """Turn a failed write or sync into CommitError; a taken name stays FileExistsError."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise CommitError(
            f"cannot {what} {path}: {error.strerror}", path=str(path), errno=error.errno or 0
        ) from error


def is_temporary(name: str) -> bool:
    """True for the names that `temporary` gives: a left-over of a crash, never state."""
    return name.startswith(".") and name.endswith(TEMP_SUFFIX)


def temporary(target: Path) -> Path:
    """A fresh temporary name beside `target`."""
    stem = os.fsdecode(os.fsencode(target.name)[:200])
    return target.with_name(f".{stem}.{secrets.token_hex(6)}{TEMP_SUFFIX}")


def exists(path: Path) -> bool:
    """Whether a name is there; a failed look is an OSError, never a no."""
    try:
        status(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def write_at(fd: int, raw: bytes, offset: int) -> None:
    """Write all of `raw`, looping over short writes."""
    left = memoryview(raw)
    while left:
        taken = pwrite(fd, left, offset)
        if taken <= 0:
            raise OSError(errno.EIO, "a write took nothing")
        left = left[taken:]
        offset += taken


def read_open(fd: int, most: int | None = None) -> bytes:
    """All bytes of an open file from its start, or at most `most` of them."""
    parts: list[bytes] = []
    size = 0
    while most is None or size < most:
        # Most files are small: memory for more than they hold would be asked for and given back.
        chunk = _CHUNK if size else _SMALL
        part = read_at(fd, chunk if most is None else min(chunk, most - size), size)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def read_all(path: Path) -> bytes:
    """All bytes of a file."""
    fd = open_read(path)
    try:
        return read_open(fd)
    finally:
        close(fd)


def new_file(path: Path, raw: bytes) -> None:
    """Create a synced file inside a folder that is not published yet."""
    fd = create(path)
    try:
        write_at(fd, raw, 0)
        sync_file(fd)
    finally:
        close(fd)


def write_new(target: Path, raw: bytes) -> None:
    """Publish a file durably; FileExistsError when the name is taken. A crash leaves it whole or a temp."""
    temp = temporary(target)
    try:
        new_file(temp, raw)
        rename_new(temp, target)
    except OSError:
        discard(temp)
        raise
    sync_folder(target.parent)


def discard(path: Path) -> None:
    """Unlink a left-over if that is possible; what stays is removed at the next start."""
    try:
        unlink(path)
    except OSError:
        pass


def ensure_folder(path: Path) -> None:
    """Make a folder unless it is there; its name is durable afterwards either way."""
    try:
        make_folder(path)
    except FileExistsError:
        # It may have been made by a process that died before it synced the parent.
        pass
    sync_folder(path.parent)
