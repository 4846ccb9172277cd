"""The daemon's configuration: flags over the file over the service manager's folders over defaults.

It reads one file and changes nothing; every refusal here comes before the daemon has touched anything else.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, fields, frozen

from resumed.actors.bounds import Bounds
from resumed.schemas import codec, durations, tomltext
from resumed.schemas.errors import FaultyInputError

from . import policy, rights
from .grants import Grant, problems_of
from .policy import Approvals

ROOT = 0
MAX_BYTES = 1024 * 1024
BACKENDS = ("asyncio", "trio")


@frozen(kw_only=True)
class Config:
    """What `resumed serve` runs with. Paths are absolute."""

    state: Path
    socket: Path
    workflows: Path
    incoming: Path
    backend: str = "asyncio"
    stop_timeout: float = 20.0
    """Seconds in which a drain must be over."""
    workers: int = 4
    """The most worker processes at a time."""
    grants: tuple[Grant, ...] = ()
    """What others than root and the daemon's own user may do."""
    approvals: Bounds = field(factory=Bounds)
    """What rules of approval say at most."""
    socket_group: str | None = None
    """The only group that may connect; None: everybody once there are grants, else our user alone."""
    credentials: Path | None = None
    """The folder of credentials that steps and effects may name; None: there are none."""


@frozen(kw_only=True)
class _File:
    """The keys of the configuration file, as written; None where a key is absent."""

    state: str | None = None
    socket: str | None = None
    workflows: str | None = None
    incoming: str | None = None
    backend: str | None = None
    stop_timeout: str | None = None
    workers: int | None = None
    socket_group: str | None = None
    credentials: str | None = None
    grant: tuple[Grant, ...] | None = None
    approvals: Approvals | None = None


def own_home(config: Config, environ: Mapping[str, str], uid: int) -> Path | None:
    """The home folder of a user's own daemon; None for root, and for a user that exists for the daemon alone.

    The home of such a user is where its state lies, and no place for anybody's inputs.
    """
    home = _home(environ)
    alone = uid == ROOT or home == Path("/") or config.state == home or config.state in home.parents
    return None if alone else home


def bounds(config: Config, environ: Mapping[str, str], uid: int) -> Bounds:
    """What rules of approval say at most: as configured, and whether one person has the daemon alone.

    That is a user's own daemon which grants nothing to anybody else.
    """
    alone = own_home(config, environ, uid) is not None and not config.grants
    return evolve(config.approvals, alone=alone)


def default_file(environ: Mapping[str, str], uid: int) -> Path:
    """Where the configuration file lies when none is named; it need not exist."""
    return _config_home(environ, uid) / "resumed.toml"


def load(file: Path | None, flags: Mapping[str, str | None], environ: Mapping[str, str], uid: int) -> Config:
    """The configuration; FaultyInputError names the key and what is wrong with it.

    A file that was named must be there; the default one may be absent.
    """
    path = file if file is not None else default_file(environ, uid)
    written = _read(path, required=file is not None)
    texts = {name: value for name, value in flags.items() if value is not None}
    given = _File(**texts)  # type: ignore[arg-type]  # keys that are no texts have no flag
    chosen = evolve(written, **_set(given))
    return _checked(chosen, _defaults(environ, uid), path)


def _read(path: Path, *, required: bool) -> _File:
    what = f"cannot read the configuration {path}"
    try:
        raw = _trusted_bytes(path, what)
    except FileNotFoundError:
        if required:
            raise FaultyInputError(what, ("there is no such file",)) from None
        return _File()
    except OSError as error:
        raise FaultyInputError(what, (error.strerror or str(error),)) from None
    found = codec.from_plain(tomltext.parse(raw, what, MAX_BYTES), _File, what)
    # A relative path in a file means: beside the file.
    places: dict[str, Any] = {
        name: str(path.parent / os.path.expanduser(value))
        for name, value in _set(found).items()
        if name in _PLACES and value
    }
    return evolve(found, **places)


def _trusted_bytes(path: Path, what: str) -> bytes:
    """The file's bytes; whoever may write it may run commands as the daemon's user, so others must not."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        said = rights.problem(found) if stat.S_ISREG(found.st_mode) else "it is no regular file"
        if said:
            raise FaultyInputError(what, (said,))
        return file.read(MAX_BYTES + 1)


_PLACES = ("state", "socket", "workflows", "incoming", "credentials")


def _set(record: _File) -> dict[str, Any]:
    return {each.name: value for each in fields(_File) if (value := getattr(record, each.name)) is not None}


def _given(environ: Mapping[str, str], name: str) -> Path | None:
    """The folder that the service manager made for us (systemd.exec(5)); the first, where it made several."""
    first = environ.get(name, "").split(":")[0]
    return Path(first) if first.startswith("/") else None


def _config_home(environ: Mapping[str, str], uid: int) -> Path:
    if given := _given(environ, "CONFIGURATION_DIRECTORY"):
        return given
    if uid == ROOT:
        return Path("/etc/resumed")
    return Path(environ.get("XDG_CONFIG_HOME") or _home(environ) / ".config") / "resumed"


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or "/")


def _defaults(environ: Mapping[str, str], uid: int) -> _File:
    workers = max(4, 2 * (os.cpu_count() or 1))
    if uid == ROOT:
        state, run = Path("/var/lib/resumed"), Path("/run/resumed")
    else:
        state = Path(environ.get("XDG_STATE_HOME") or _home(environ) / ".local/state") / "resumed"
        run = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}") / "resumed"
    state = _given(environ, "STATE_DIRECTORY") or state
    run = _given(environ, "RUNTIME_DIRECTORY") or run
    return _File(
        state=str(state),
        socket=environ.get("RESUMED_SOCKET") or str(run / "control"),
        workflows=str(_config_home(environ, uid) / "workflows.d"),
        backend=BACKENDS[0],
        stop_timeout="20s",
        workers=workers,
        credentials=str(given) if (given := _given(environ, "CREDENTIALS_DIRECTORY")) else None,
    )


def _checked(chosen: _File, defaults: _File, path: Path) -> Config:
    whole = _set(defaults) | _set(chosen)
    what = f"cannot use the configuration ({path})"
    problems = []
    if whole["backend"] not in BACKENDS:
        problems.append(f"expected one of {', '.join(BACKENDS)}, got {whole['backend']!r} @ $.backend")
    seconds = 0.0
    try:
        seconds = durations.read(whole["stop_timeout"])
    except ValueError as error:
        problems.append(f"{error} @ $.stop_timeout")
    if not 1 <= whole["workers"] <= 1000:
        problems.append(f"expected 1 to 1000, got {whole['workers']} @ $.workers")
    problems += problems_of(whole.get("grant", ()), "$.grant")
    written = whole.get("approvals", Approvals())
    problems += policy.problems_of(written, "$.approvals")
    empty = [name for name in _PLACES if whole.get(name) == "" or "\0" in whole.get(name, "")]
    problems += [f"expected a path @ $.{name}" for name in empty]
    if problems:
        raise FaultyInputError(what, tuple(problems))
    state = _absolute(whole["state"])
    return Config(
        state=state,
        socket=_absolute(whole["socket"]),
        workflows=_absolute(whole["workflows"]),
        incoming=_absolute(whole["incoming"]) if "incoming" in whole else state / "incoming",
        backend=whole["backend"],
        stop_timeout=seconds,
        workers=whole["workers"],
        grants=whole.get("grant", ()),
        approvals=policy.bounds(written),
        socket_group=whole.get("socket_group"),
        credentials=_absolute(whole["credentials"]) if "credentials" in whole else None,
    )


def _absolute(text: str) -> Path:
    return Path(os.path.abspath(text))
