"""Giving a staged output the name it is published under, and taking it away again; replaces nothing, ever.

What is staged is known by its inode, and what it is by its digest. The order that must hold: the staged file
synced, renamed without replacing, its folder synced; only then it is published. A kill at any line leaves the
staged file under one of its two names (or both, where the file system knows no such rename), whole; asked
again, `place` goes on from there. A name that is taken is success where it bears our inode or our bytes.
"""

import hashlib
import stat
from pathlib import Path

from attrs import frozen

from resumed.schemas import strict
from resumed.schemas.events import Placing
from resumed.schemas.publication import Publication

from . import durable

_CHUNK = 1024 * 1024


@frozen
class Came:
    """What came of an attempt, why, and the inode that bears the name now, where it is published."""

    outcome: Placing
    reason: str = ""
    device: int = 0
    inode: int = 0


def place(row: Publication) -> Came:
    """Publish the staged output; what came of it, and why where that is not `PUBLISHED`."""
    target = Path(row.destination)
    temp = target.parent / row.temp
    try:
        return _there(row, temp, target) or _rename(row, temp, target)
    except OSError as error:
        return Came(Placing.REFUSED, f"cannot publish {target}: {error.strerror or error}")


def withdraw(row: Publication) -> Came:
    """Take the staged output away; `PUBLISHED` where it has its name already."""
    target = Path(row.destination)
    temp = target.parent / row.temp
    try:
        if _is_ours(row, target):
            return _finish(row, temp, target)
        if _is_ours(row, temp):
            durable.unlink(temp)
            durable.sync_folder(temp.parent)
        return Came(Placing.WITHDRAWN)
    except OSError as error:
        return Came(Placing.REFUSED, f"cannot take away {temp}: {error.strerror or error}")


def _there(row: Publication, temp: Path, target: Path) -> Came | None:
    """What a file that bears the name already means; None where there is none."""
    if not durable.exists(target):
        return None
    if _is_ours(row, target):
        return _finish(row, temp, target)
    try:
        if stat.S_ISREG(durable.status(target).st_mode) and _has_our_bytes(row, target):
            return _finish(row, temp, target)
    except PermissionError:
        pass  # a file that may not be read is somebody else's
    return Came(Placing.EXISTS, f"cannot publish {target}: something else is there already")


def _finish(row: Publication, temp: Path, target: Path) -> Came:
    """It has its name: what may be left of the staged one goes, and the name is made durable."""
    durable.sync_folder(target.parent)
    if _is_ours(row, temp):
        # The same bytes were there before, or a kill came between the two halves of a rename by link. Only
        # now: a power cut could take the name away, and this would have been the last that bears our bytes.
        durable.unlink(temp)
        durable.sync_folder(target.parent)
    return _published(target)


def _published(target: Path) -> Came:
    found = durable.status(target)
    return Came(Placing.PUBLISHED, "", found.st_dev & strict.MAX_INT, found.st_ino & strict.MAX_INT)


def _rename(row: Publication, temp: Path, target: Path) -> Came:
    if not _is_ours(row, temp):
        return Came(Placing.LOST, f"cannot publish {target}: what was staged for it as {temp.name} is gone")
    if not _has_our_bytes(row, temp):
        durable.unlink(temp)
        return Came(Placing.LOST, f"cannot publish {target}: what was staged for it is not what it was")
    try:
        durable.rename_new(temp, target)
    except FileExistsError:
        # Somebody was faster.
        said = f"cannot publish {target}: the name comes and goes"
        return _there(row, temp, target) or Came(Placing.REFUSED, said)
    durable.sync_folder(target.parent)
    return _published(target)


def _is_ours(row: Publication, path: Path) -> bool:
    try:
        found = durable.status(path)
    except FileNotFoundError:
        return False
    inode = (found.st_dev & strict.MAX_INT, found.st_ino & strict.MAX_INT)
    return stat.S_ISREG(found.st_mode) and inode == (row.device, row.inode)


def _has_our_bytes(row: Publication, path: Path) -> bool:
    """Whether a file's bytes are those of the output; if so they are durable, whoever wrote them."""
    fd = durable.open_read(path)
    try:
        found = durable.status_of(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size != row.size:
            return False
        digest, offset = hashlib.sha256(), 0
        while piece := durable.read_at(fd, _CHUNK, offset):
            digest.update(piece)
            offset += len(piece)
        if offset != row.size or digest.hexdigest() != row.sha256:
            return False
        durable.sync_file(fd)
        return True
    finally:
        durable.close(fd)
