"""What must hold before the daemon takes anything: looked at here, and nothing is changed.

`serve` looks before its first side effect, `check-config` looks and that is all; so what one refuses the
other refuses too. What only taking can tell, that another daemon holds the store or the socket, is not here.
"""

import grp
import os
import stat
from pathlib import Path

from resumed.schemas.errors import FaultyInputError, StoreError
from resumed.store import layout as store_layout
from resumed.store.layout import Layout

from . import rights
from .config import Config


def look(config: Config, *, passed: bool) -> None:
    """Raises StoreError, FaultyInputError or a damaged store's error; a `passed` socket needs no place."""
    _state(config.state)
    _incoming(config)
    if config.credentials is not None:
        _credentials(config.credentials)
    if not passed:
        _socket(config.socket)
        openness(config)


def _state(state: Path) -> None:
    """A folder that is there must be a folder of ours alone, and hold no store that we cannot open."""
    try:
        there = os.stat(state)
    except FileNotFoundError:
        _writable(_nearest(state), f"cannot make the store {state}", state)
        return
    except OSError as error:
        raise unusable(state, error) from None
    why = rights.problem(there)
    if not stat.S_ISDIR(there.st_mode):
        why = "it is no folder"
    elif there.st_uid != os.geteuid():
        why = f"it belongs to uid {there.st_uid}, expected our own ({os.geteuid()})"
    if why:
        raise StoreError(f"cannot use the store {state}: {why}", path=str(state))
    store_layout.check(Layout(state))


def _credentials(folder: Path) -> None:
    """Only root and we may get into it: what the service manager made for us is let to our group by it."""
    try:
        there = os.stat(folder)
    except OSError as error:
        raise unusable(folder, error) from None
    why = rights.problem(there)
    if not stat.S_ISDIR(there.st_mode):
        why = "it is no folder"
    elif not why and there.st_mode & 0o007:
        why = f"others may get into it (mode {stat.S_IMODE(there.st_mode):04o}): chmod 0700 {folder}"
    if why:
        raise StoreError(f"cannot use the credentials in {folder}: {why}", path=str(folder))


def _incoming(config: Config) -> None:
    """A watched folder elsewhere must be there, and lie where a rename can reach it."""
    if config.incoming == config.state / "incoming":
        return
    try:
        there = os.stat(config.incoming)
    except OSError as error:
        raise unusable(config.incoming, error) from None
    if there.st_dev != os.stat(_nearest(config.state)).st_dev:
        raise StoreError(
            f"cannot watch {config.incoming}: it lies on another file system than the store {config.state}, "
            "and files are taken in by a rename",
            path=str(config.incoming),
        )


def _socket(path: Path) -> None:
    """The socket's folder must take a new name, and nothing but a socket may stand under that name."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unusable(path, error) from None
    else:
        if not stat.S_ISSOCK(there.st_mode):
            raise StoreError(
                f"cannot listen at {path}: something that is no socket stands there", path=str(path)
            )
    _writable(_nearest(path.parent), f"cannot listen at {path}", path)


def openness(config: Config) -> tuple[int, int | None]:
    """The socket's mode and group: who may connect at all. What a peer may do there, the grants say."""
    if config.socket_group is None:
        return (0o666 if config.grants else 0o600), None
    try:
        return 0o660, grp.getgrnam(config.socket_group).gr_gid
    except KeyError:
        what = f"cannot listen at {config.socket}"
        why = f"expected a group that this host knows, got {config.socket_group!r} @ $.socket_group"
        raise FaultyInputError(what, (why,)) from None


def _nearest(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    while not os.path.lexists(path) and path != path.parent:
        path = path.parent
    return path


def _writable(folder: Path, what: str, path: Path) -> None:
    why = ""
    if not folder.is_dir():
        why = f"{folder} is no folder"
    elif not os.access(folder, os.W_OK | os.X_OK):
        why = f"we (uid {os.geteuid()}) may not write in {folder}"
    if why:
        raise StoreError(f"{what}: {why}", path=str(path))


def unusable(path: Path, error: OSError) -> StoreError:
    """What is said of a path that the system keeps from us."""
    return StoreError(f"cannot use {path}: {error.strerror or error}", path=str(path), errno=error.errno or 0)
