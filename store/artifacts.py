"""Immutable bytes in a job's folder, named by their sha256; durable before a line names them."""

import hashlib
import re
import stat
from pathlib import Path

from resumed.schemas import codec, strict
from resumed.schemas.errors import DamagedError, FaultyInputError

from . import durable, files

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_CHUNK = 1024 * 1024


def path(folder: Path, sha256: str) -> Path:
    """Where an artifact of that digest lies; ValueError for anything but a digest."""
    if not _DIGEST.match(sha256):
        raise ValueError(f"not a sha256: {sha256!r}")
    return folder / files.ARTIFACTS / sha256


def put(folder: Path, raw: bytes) -> str:
    """Make bytes durable in a job's folder and return their sha256.

    CommitError when the disk refused; DamagedError when the file of that digest is there and rotten.
    """
    sha256 = codec.digest(raw)
    target = path(folder, sha256)
    if not _is_kept(target, sha256):
        with durable.writing("keep the artifact", target):
            try:
                durable.write_new(target, raw)
            except FileExistsError:
                _confirm(target)
    return sha256


def adopt(folder: Path, source: Path, sha256: str, size: int) -> None:
    """Copy a file in, checking size and digest on the way.

    FaultyInputError when it is no regular file, cannot be read, or does not fit: nothing is kept then.
    """
    target = path(folder, sha256)
    try:
        fd = durable.open_read(source)
    except OSError as error:
        raise _unfit(source, error.strerror or "cannot be opened") from error
    try:
        found = durable.status_of(fd)
        if not stat.S_ISREG(found.st_mode):
            raise _unfit(source, "it is no regular file")
        if found.st_size != size:
            raise _unfit(source, f"expected {size} bytes, got {found.st_size}")
        if not _is_kept(target, sha256):
            with durable.writing("keep the artifact", target):
                _copy(fd, source, target, sha256, size)
    finally:
        durable.close(fd)


def read(folder: Path, sha256: str) -> bytes:
    """An artifact's bytes; DamagedError when they are missing or fail the digest, UnreadableError on EIO."""
    target = path(folder, sha256)
    with durable.reading(target):
        if not durable.exists(target):
            raise DamagedError(f"cannot read artifact {sha256}: it is missing", path=str(target))
        raw = durable.read_all(target)
    if codec.digest(raw) != sha256:
        raise DamagedError(f"cannot read artifact {sha256}: its bytes fail the digest", path=str(target))
    return raw


def read_piece(folder: Path, sha256: str, offset: int, size: int) -> bytes:
    """`size` of an artifact's bytes, not held against its digest.

    DamagedError when they are missing, UnreadableError when the disk refuses.
    """
    return read_piece_of(path(folder, sha256), offset, size)


def read_piece_of(target: Path, offset: int, size: int, known: tuple[int, int] | None = None) -> bytes:
    """The same of a file that lies elsewhere, an output that is kept by reference: `known` is its device and
    inode. Somebody may have put another file in its place, which they could not read themselves.
    """
    with durable.reading(target):
        if not durable.exists(target):
            raise DamagedError(f"cannot read artifact {target}: it is missing", path=str(target))
        fd = durable.open_read(target)
        if known is not None and not _is_it(fd, known):
            durable.close(fd)
            said = f"cannot read {target}: it is not the file that was published there"
            raise DamagedError(said, path=str(target))
        found = b""
        try:
            while part := durable.read_at(fd, size - len(found), offset + len(found)):
                found += part
        finally:
            durable.close(fd)
    if len(found) < size:
        raise DamagedError(f"cannot read artifact {target}: it is shorter than recorded", path=str(target))
    return found


def _is_it(fd: int, known: tuple[int, int]) -> bool:
    there = durable.status_of(fd)
    return (there.st_dev & strict.MAX_INT, there.st_ino & strict.MAX_INT) == known


def _is_kept(target: Path, sha256: str) -> bool:
    """True when the artifact is there and durable. Makes the folder on the way."""
    with durable.writing("keep the artifact", target):
        durable.ensure_folder(target.parent)
        if not durable.exists(target):
            return False
        read(target.parent.parent, sha256)
        _confirm(target)
    return True


def _confirm(target: Path) -> None:
    # The file was synced before it got its name; whoever named it may have died before the folder was.
    durable.sync_folder(target.parent)


def _copy(fd: int, source: Path, target: Path, sha256: str, size: int) -> None:
    temp = durable.temporary(target)
    new = durable.create(temp)
    try:
        try:
            digest, copied = hashlib.sha256(), 0
            while part := _read_part(fd, source, copied):
                durable.write_at(new, part, copied)
                digest.update(part)
                copied += len(part)
                if copied > size:
                    break
            if copied != size or digest.hexdigest() != sha256:
                raise _unfit(source, f"its {copied} bytes do not have the digest {sha256}")
            durable.sync_file(new)
        finally:
            durable.close(new)
        durable.rename_new(temp, target)
    except FileExistsError:
        durable.discard(temp)
    except (OSError, FaultyInputError):
        durable.discard(temp)
        raise
    _confirm(target)


def _read_part(fd: int, source: Path, offset: int) -> bytes:
    try:
        return durable.read_at(fd, _CHUNK, offset)
    except OSError as error:
        raise _unfit(source, error.strerror or "cannot be read") from error


def _unfit(source: Path, why: str) -> FaultyInputError:
    return FaultyInputError(f"cannot take {source}", (why,))
