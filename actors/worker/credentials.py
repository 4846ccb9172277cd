"""Credentials, handed by file: a private folder a try or errand, with those that its step or effect names.

They come from the daemon's own folder of them. A copy lies in memory (`/dev/shm`) where that can be had, else
in the try's scratch folder; it goes with the try, and what a crash leaves is removed with the worker's
scratch folder. No value is ever part of a frame, a stored call, a log or an error's text.
"""

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import field, frozen

from . import offers

MOST = 1024 * 1024
"""Bytes of one credential, as systemd.exec(5) bounds them."""
FOLDER = "RESUMED_CREDENTIALS"
"""The variable that names the private folder."""
MEMORY = "/dev/shm"
_OTHERS = 0o027


class AbsentError(Exception):
    """A credential cannot be handed on; the text says what to do, and holds no value."""


@frozen
class Handed:
    """What one try is handed: the folder, and the values by name."""

    folder: str = ""
    values: Mapping[str, bytes] = field(factory=dict)

    def paths(self) -> dict[str, str]:
        """What the placeholders stand for where a program is run."""
        return {f"secrets.{name}": os.path.join(self.folder, name) for name in self.values}

    def texts(self) -> dict[str, str]:
        """What they stand for in a header; AbsentError for one that cannot stand there."""
        found = {}
        for name, raw in self.values.items():
            text = raw.decode("ascii", "replace").rstrip("\r\n")
            if not text or not all(" " <= character <= "~" for character in text):
                raise AbsentError(
                    f"the credential {name!r} cannot stand in a header: expected one line of ASCII"
                )
            found[f"secrets.{name}"] = text
        return found

    def masks(self) -> tuple[bytes, ...]:
        """What must not be seen in what is kept, longest first."""
        return tuple(sorted({raw.strip() for raw in self.values.values()} - {b""}, key=len, reverse=True))


def memory(root: str) -> str:
    """Where the workers of one daemon have their private folders in memory; `root` is its scratch folder."""
    digest = hashlib.sha256(os.path.abspath(root).encode()).hexdigest()[:16]
    return f"{MEMORY}/resumed-{os.geteuid()}-{digest}"


def forget(root: str | Path, kept: frozenset[str] = frozenset()) -> None:
    """Remove what workers left in memory, except of those whose names are in `kept`."""
    place = memory(str(root))
    with contextlib.suppress(OSError):
        for worker in os.listdir(place) if _is_ours(place) else ():
            if worker not in kept:
                shutil.rmtree(os.path.join(place, worker), ignore_errors=True)
    _drop(place)


def forget_worker(root: str | Path, worker: str) -> None:
    """Remove what one worker left in memory."""
    place = memory(str(root))
    if _is_ours(place):
        shutil.rmtree(os.path.join(place, worker), ignore_errors=True)
        _drop(place)


def _drop(folder: str) -> None:
    """Remove a folder if nothing is in it."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def check(source: str, names: tuple[str, ...]) -> None:
    """AbsentError when one of those credentials cannot be had; none is kept."""
    for name in names:
        _read(source, name)


@contextlib.contextmanager
def handed(source: str, names: tuple[str, ...], scratch: str) -> Iterator[Handed]:
    """The credentials of those names, while the block lasts; AbsentError when one cannot be had."""
    if not names:
        yield Handed()
        return
    values = {name: _read(source, name) for name in names}
    folder = _folder(scratch)
    try:
        _fill(folder, values)
        yield Handed(folder, values)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.startswith(MEMORY):
            _drop(os.path.dirname(folder))
            _drop(os.path.dirname(os.path.dirname(folder)))


def _fill(folder: str, values: Mapping[str, bytes]) -> None:
    try:
        for name, raw in values.items():
            _write(os.path.join(folder, name), raw)
    except OSError as error:
        raise AbsentError(f"cannot hand on credentials in {folder}: {error.strerror}") from None


def _read(source: str, name: str) -> bytes:
    what = f"cannot hand on the credential {name!r}"
    if not source:
        raise AbsentError(
            f"{what}: the daemon has no folder of credentials; name one as `credentials` in resumed.toml, "
            "or give its service LoadCredential="
        )
    try:
        _check_folder(what, source)
        with offers.open_regular(os.path.join(source, name)) as file:
            found = os.fstat(file.fileno())
            if found.st_uid not in (0, os.geteuid()) or found.st_mode & _OTHERS:
                mode = f"mode {stat.S_IMODE(found.st_mode):04o}, uid {found.st_uid}"
                raise AbsentError(f"{what}: others may have it ({mode}): chmod 0400 {source}/{name}")
            raw = file.read(MOST + 1) or b""
    except FileNotFoundError:
        raise AbsentError(f"{what}: it is not in {source}; put it there (mode 0400), then go on") from None
    except OSError as error:
        raise AbsentError(f"{what}: {error.strerror or error} ({source}/{name})") from None
    if not raw or len(raw) > MOST:
        raise AbsentError(f"{what}: expected 1 to {MOST} bytes in {source}/{name}")
    return raw


def _check_folder(what: str, source: str) -> None:
    found = os.stat(source)
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & _OTHERS:
        mode = f"mode {stat.S_IMODE(found.st_mode):04o}, uid {found.st_uid}"
        raise AbsentError(f"{what}: others may get into {source} ({mode}): chmod 0700 {source}")


def _folder(scratch: str) -> str:
    """A new private folder, in memory where that can be had."""
    worker, unit = os.path.split(os.path.abspath(scratch))
    root, name = os.path.split(worker)
    inside = os.path.join(memory(root), name)
    for place in (inside, inside, scratch):  # twice: an empty one may be dropped by another worker's end
        folder = os.path.join(place, f"{unit}.credentials")
        try:
            if place == scratch:
                os.makedirs(place, 0o700, exist_ok=True)
            elif not os.path.ismount(MEMORY) or not _made(memory(root)) or not _made(place):
                continue
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder, 0o700)
            os.chmod(folder, 0o700)  # whatever the umask is
            return folder
        except OSError as error:
            reason = error.strerror
    raise AbsentError(f"cannot make a private folder for credentials: {reason}")


def _made(place: str) -> bool:
    """Whether that folder is there and nobody else's: anybody may make one in a place for everybody."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(place, 0o700)
    return _is_ours(place)


def _is_ours(place: str) -> bool:
    try:
        found = os.lstat(place)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _write(path: str, raw: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o400)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o400)
        file.write(raw)
