"""Control groups (v2) below the one that was delegated to the daemon: one for each worker and all below it.

An empty group is the proof that nothing of its worker lives, whoever killed whom; limits are the kernel's.
Only a group that is known to be delegated is ever written to. The order that must hold: the daemon in a
leaf of its own before controllers are handed down, a worker's limits before its first process.
"""

import logging
import os
from pathlib import Path

import anyio
from attrs import define, frozen

from resumed.schemas import codec

logger = logging.getLogger(__name__)

MARKS = ("user.delegate", "trusted.delegate")
"""What systemd (251 and later) sets on a group that it leaves to a service."""
SAID = "RESUMED_DELEGATED"
"""What a unit of one user says instead: the user's own manager may not set the marks."""
OWN = "daemon"
"""The leaf that the daemon itself lives in."""
WANTED = ("memory", "pids")
KEEPER = 1
"""Processes of ours beside a worker and what is below it."""
_POLL = 0.002
_MOST = 10.0
"""Seconds in which a killed group must be empty: what does not die in this time sits in the kernel."""


@define(eq=False)
class Group:
    """One worker's group. `path` is its name from the root of the name space `space`."""

    place: Path
    path: str
    space: str

    def procs(self) -> Path:
        """What a process writes itself into to join."""
        return self.place / "cgroup.procs"

    def drop(self) -> None:
        """Remove it unused."""
        _remove(self.place)

    async def end(self) -> bool:
        """Kill all that is in it, and remove it; True, a proof, once it is empty."""
        return await end(self.place)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed something in it for want of memory."""
        try:
            return _number(self.place / "memory.events", "oom_kill") > 0
        except OSError:
            return False  # this group knows nothing of memory


@frozen(kw_only=True)
class Groups:
    """The delegated group, taken. `store` tells our workers' groups from another daemon's."""

    place: Path
    path: str
    space: str
    store: str
    limits: frozenset[str]
    """Which limits hold: what the kernel hands down here."""

    def can_limit(self) -> bool:
        """Whether a workflow's limits of memory and processes can be held."""
        return self.limits >= set(WANTED)

    def make(self, name: str, memory: int | None, pids: int | None) -> Group:
        """A group with its limits, empty; OSError when the kernel refuses."""
        made = self._group(f"{self.store}-{name}")
        made.place.mkdir()
        if memory is not None and "memory" in self.limits:
            _write(made.place / "memory.max", str(memory))
            if (made.place / "memory.swap.max").exists():
                # Else a worker at its limit would go on in the swap, and the host with it.
                _write(made.place / "memory.swap.max", "0")
        if pids is not None and "pids" in self.limits:
            _write(made.place / "pids.max", str(pids + KEEPER))
        return made

    def strays(self) -> list[Group]:
        """The groups of this store's workers that are there."""
        names = sorted(each.name for each in self.place.iterdir() if each.name.startswith(f"{self.store}-"))
        return [self._group(name) for name in names]

    def worker_of(self, pid: int, proc: Path = Path("/proc")) -> str:
        """The worker in whose group a process is, "" when it is in none of ours; never raises."""
        try:
            lines = (proc / str(pid) / "cgroup").read_text().splitlines()
        except OSError:
            return ""
        path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")
        prefix = f"{self.path.rstrip('/')}/{self.store}-"
        return path.removeprefix(prefix).partition("/")[0] if path.startswith(prefix) else ""

    def _group(self, name: str) -> Group:
        return Group(self.place / name, f"{self.path.rstrip('/')}/{name}", self.space)


def take(root: Path, proc: Path = Path("/proc/self"), said: str = "") -> Groups | None:
    """The group that was delegated to this process, with the process in a leaf of its own; None without one.

    `said` is what the environment says of it. Whatever the kernel refuses on the way is logged, and leaves
    the keepers to do the work.
    """
    found = _delegated(proc, said)
    if found is None:
        return None
    place, path = found
    try:
        (place / OWN).mkdir(exist_ok=True)
        _write(place / OWN / "cgroup.procs", str(os.getpid()))
        limits = _hand_down(place)
    except OSError as error:
        logger.warning("The delegated control group %s cannot be used: %s.", place, error.strerror or error)
        return None
    store = f"store-{codec.digest(os.fsencode(root.resolve()))[:8]}"
    return Groups(place=place, path=path, space=_space(proc), store=store, limits=limits)


def recorded(path: str, space: str, proc: Path = Path("/proc/self")) -> Path | None:
    """Where a group that an earlier daemon recorded lies now; None when that cannot be told from here."""
    root = _mount(proc)
    if not path or root is None or space != _space(proc):
        return None
    return root / path.lstrip("/")


async def end(place: Path) -> bool:
    """Kill all that is in a group, and remove it; True, a proof, once it is empty.

    One that is not there any more was empty when it was removed: the kernel removes no other.
    """
    with anyio.move_on_after(_MOST, shield=True):
        while True:
            try:
                if not _number(place / "cgroup.events", "populated"):
                    break
                _write(place / "cgroup.kill", "1")
            except (FileNotFoundError, NotADirectoryError):
                return True
            except OSError as error:
                logger.error("the control group %s could not be ended: %s", place, error)
                return False
            await anyio.sleep(_POLL)
        _remove(place)
        return True
    logger.error("the control group %s did not end when killed", place)
    return False


def _remove(place: Path) -> None:
    """Remove an empty group, and what groups its processes may have made in it."""
    for folder, _, _ in os.walk(place, topdown=False):
        try:
            os.rmdir(folder)
        except OSError as error:
            # It stays empty; the next start removes it.
            logger.warning("the control group %s could not be removed: %s", folder, error)
            return


def _delegated(proc: Path, said: str) -> tuple[Path, str] | None:
    """The delegated group this process is in, or in whose leaf of ours it is: its folder and path."""
    root = _mount(proc)
    try:
        lines = (proc / "cgroup").read_text().splitlines()
    except OSError:
        return None
    path = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "")
    if root is None or not path:
        return None
    for each in (path, os.path.dirname(path) if os.path.basename(path) == OWN else ""):
        place = root / each.lstrip("/")
        # Without `cgroup.kill` (Linux 5.14) a group cannot be ended at once: then keepers are all there is.
        if each and (_is_marked(place) or (said == "yes" and _is_ours(place))):
            return (place, each) if (place / "cgroup.kill").exists() else None
    return None


def _is_marked(place: Path) -> bool:
    for mark in MARKS:
        try:
            if os.getxattr(place, mark) == b"1":
                return True
        except OSError:
            continue  # no such mark, or not ours to read
    return False


def _is_ours(place: Path) -> bool:
    """Whether an ordinary user's manager made it: there the environment's word is taken."""
    try:
        return _owner(place) == os.geteuid() != 0
    except OSError:
        return False


def _owner(place: Path) -> int:
    return os.stat(place).st_uid


def _hand_down(place: Path) -> frozenset[str]:
    """Let workers' groups have the controllers we want; which of them they have now."""
    there = (place / "cgroup.controllers").read_text().split()
    for each in WANTED:
        if each not in there:
            continue
        try:
            _write(place / "cgroup.subtree_control", f"+{each}")
        except OSError as error:
            logger.warning("The controller %s cannot be handed down in %s: %s.", each, place, error.strerror)
    return frozenset((place / "cgroup.subtree_control").read_text().split()) & set(WANTED)


def _mount(proc: Path) -> Path | None:
    """Where the second version's tree is mounted, at its root."""
    try:
        lines = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        kind = fields[fields.index("-") + 1]
        if kind == "cgroup2" and fields[3] == "/":
            return Path(fields[4])
    return None


def _space(proc: Path) -> str:
    try:
        return os.readlink(proc / "ns" / "cgroup")
    except OSError:
        return ""


def _number(file: Path, key: str) -> int:
    """The number behind a key in a flat keyed file of the kernel's; 0 where there is no such key."""
    lines = file.read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.split()[:1] == [key]), 0)


def _write(file: Path, text: str) -> None:
    """Write one word to a file of the kernel's, which is never made here."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
