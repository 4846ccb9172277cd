"""Staging an output beside the place where it is to be published: whole, synced, under a name of ours.

It belongs to the try: a kill at any line leaves at most one hidden file in the destination's folder, which
the next try of the same step of the same item takes away. The daemon gives it its name.

Folders below the fixed part of the path are made; the folder that the fixed part names must be there, since
an absent one may be a disk that is not mounted. A source on the same file system is moved, not copied.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Mapping

from attrs import evolve, frozen

from resumed.schemas import strict, templates
from resumed.schemas.decisions import Decided, HoldBack, Offer, Staged, TryAgain
from resumed.schemas.workflow import ProgramStep

from . import faulttext

_AT_ONCE = 1024 * 1024
_PERSONS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
"""What no number of tries mends."""
CODE = "publish"
_LONGEST = 255  # NAME_MAX of every file system that Linux writes to in common use


@frozen(kw_only=True)
class Place:
    """Where an output goes: its path, the folder that must be there, and the name it is staged under."""

    path: str
    base: str
    temp: str

    @property
    def folder(self) -> str:
        """The folder it is published in."""
        return os.path.dirname(self.path)


class UnfitError(Exception):
    """It cannot be published; `decided` is what that means for the try."""

    def __init__(self, decided: Decided) -> None:
        super().__init__(decided)
        self.decided = decided


def place_of(step: ProgramStep, values: Mapping[str, str], owner: str) -> Place:
    """Where a step's output goes. `owner` is a text that no other unit of any job has in common with it.

    UnfitError when the values make no path of it.
    """
    path = templates.fill(step.publish, values)
    parts = path.split("/")
    if parts[0] or any(part in ("", ".", "..") for part in parts[1:]) or "\0" in path:
        reason = f"cannot publish as {path!r}: expected an absolute path without `.`, `..` or doubled slashes"
        raise UnfitError(HoldBack(code=CODE, reason=faulttext.clean(reason)))
    if any(len(os.fsencode(part)) > _LONGEST for part in parts):
        reason = f"cannot publish as {path!r}: a name in it has more than {_LONGEST} bytes"
        raise UnfitError(HoldBack(code=CODE, reason=faulttext.clean(reason)))
    name = hashlib.sha256(f"{owner}\n{step.name}".encode("utf-8", "surrogateescape")).hexdigest()[:20]
    return Place(path=path, base=_base(step.publish, values), temp=f".resumed-{name}.tmp")


def _base(publish: str, values: Mapping[str, str]) -> str:
    """The folder before the first part of the path that is not fixed by the file and the inputs."""
    fixed = []
    for part in publish.split("/")[:-1]:
        if any(not name.startswith("inputs.") for name in templates.names(part)):
            break
        fixed.append(templates.fill(part, values))
    return "/".join(fixed) or "/"


def check(place: Place) -> None:
    """Make the folders and see that a file may be made there, before anything is run; else UnfitError."""
    if not os.path.isdir(place.base):
        reason = f"cannot publish {place.path}: the folder {place.base} is not there"
        raise UnfitError(HoldBack(code=CODE, reason=faulttext.clean(reason)))
    try:
        _make_folders(place)
        if not os.access(place.folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "the folder may not be written to")
    except OSError as error:
        raise _unfit(place, error) from None


def stage(place: Place, offer: Offer, content: bytes | str, *, reference: bool) -> Offer:
    """The offer with its bytes staged: `content` is those bytes, or the path of the file that has them.

    What does not travel in the offer is then read from the staged file, and with `reference` nothing is.
    UnfitError when the system refuses.
    """
    temp = os.path.join(place.folder, place.temp)
    try:
        _make_folders(place)
        _unlink(temp)
        moved = isinstance(content, str) and _move(content, temp)
        descriptor = os.open(temp, os.O_RDONLY | os.O_CLOEXEC) if moved else _write(temp, offer, content)
        try:
            os.fsync(descriptor)
            found = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        _sync(place.folder)
    except OSError as error:
        raise _unfit(place, error) from None
    staged = Staged(
        destination=place.path,
        temp=place.temp,
        device=found.st_dev & strict.MAX_INT,
        inode=found.st_ino & strict.MAX_INT,
    )
    if reference:
        return Offer(name=offer.name, sha256=offer.sha256, size=offer.size, publish=staged, reference=True)
    return evolve(offer, path=temp if offer.path is not None else None, publish=staged)


def _unfit(place: Place, error: OSError) -> UnfitError:
    reason = faulttext.clean(f"cannot publish {place.path}: {error.strerror or error}")
    persons = error.errno in _PERSONS
    return UnfitError(HoldBack(code=CODE, reason=reason) if persons else TryAgain(code=CODE, reason=reason))


def _make_folders(place: Place) -> None:
    """Every folder below the base, each synced into the one above it."""
    missing = []
    folder = place.folder
    while folder != place.base and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except FileExistsError:
            continue  # another item's try was faster; its own sync counts for it alone
        finally:
            _sync(os.path.dirname(folder))


def _move(source: str, temp: str) -> bool:
    """Move the program's own file; False where it is none of its own, or on another file system."""
    found = os.lstat(source)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return False
    try:
        os.rename(source, temp)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _write(temp: str, offer: Offer, content: bytes | str) -> int:
    """The open descriptor of a new file with the output's bytes; OSError when they are not those offered."""
    descriptor = os.open(temp, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        digest = hashlib.sha256()
        with os.fdopen(os.dup(descriptor), "wb") as writing:
            if isinstance(content, bytes):
                digest.update(content)
                writing.write(content)
            else:
                with open(content, "rb") as reading:
                    os.fchmod(descriptor, os.fstat(reading.fileno()).st_mode & 0o777)
                    while piece := reading.read(_AT_ONCE):
                        digest.update(piece)
                        writing.write(piece)
        if digest.hexdigest() != offer.sha256:
            raise OSError("its file changed while it was copied")
    except BaseException:
        os.close(descriptor)
        _unlink(temp)
        raise
    return descriptor


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
