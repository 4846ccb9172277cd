"""Proof of death: which worker processes were started, and which of them, with all below them, are gone.

A worker's identity is durable before its first frame, in a file that is never replaced; its keeper's
`NAME.gone` beside it is the proof of its end. This module never sends a frame and never decides what a
missing proof means for a job: it says `proven` or not, and what still bears the worker's mark.
"""

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
from attrs import frozen

from resumed.schemas import checked
from resumed.schemas.errors import FaultyInputError, StoreError
from resumed.store import durable, identities
from resumed.store.layout import Layout

from . import controlgroups
from .controlgroups import Groups
from .worker import keeper

logger = logging.getLogger(__name__)

MARK = "RESUMED_WORKER"
_POLL = 0.002  # between two rounds of a sweep; a killed process is reapable within about 1 ms
_SWEEP = 10.0  # a process that SIGKILL does not end in this time sits in the kernel: no proof


@frozen(kw_only=True)
class Identity:
    """Which process keeps a worker: unique on this host for ever, by boot id, pid and start time (ticks)."""

    name: str
    boot: str
    pid: int
    start: int
    group: int
    workflow: str
    version: int
    cgroup: str = ""
    """The control group of its own that it is in with all below it, "" where it has none."""
    space: str = ""
    """The name space of control groups in which that is its path."""


@frozen(kw_only=True)
class Remain:
    """A process that still bears a worker's mark."""

    pid: int
    start: int
    command: str


@frozen(kw_only=True)
class Verdict:
    """What is known of one recorded worker; `remains` is looked up only when nothing is proven."""

    name: str
    proven: bool
    how: str
    remains: tuple[Remain, ...] = ()


def boot_id() -> str:
    """The kernel's name for this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks of this boot; None when there is none of that pid."""
    found = stat_of(pid)
    return None if found is None else found[1]


def stat_of(pid: int) -> tuple[int, int] | None:
    """A process's parent (0: none that we can see) and its start time; None when it is not there."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The command's name stands in parentheses and may hold anything, so the fields count from its end.
    fields = raw[raw.rindex(b")") + 2 :].split()
    return int(fields[1]), int(fields[19])


def remains_of(name: str) -> tuple[Remain, ...]:
    """Every process that still bears a worker's mark; one that cleared its environment is not found."""
    mark = f"{MARK}={name}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            if mark not in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                continue
            command = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").strip()
        except OSError:
            continue  # it ended, or is another user's
        start = start_time(int(entry))
        if start is not None:
            found.append(Remain(pid=int(entry), start=start, command=command.decode(errors="replace")[:200]))
    return tuple(sorted(found, key=lambda remain: remain.pid))


def spell(remains: tuple[Remain, ...]) -> str:
    """What bears a mark, for people."""
    found = ", ".join(f"{each.pid} {each.command}" for each in remains)
    return f"processes that bear its mark: {found or 'none found'}"


class Containment:
    """This daemon's direct children: live keepers, and orphans of keepers that were killed.

    With `become_subreaper` called first, whatever a dead keeper leaves becomes our child, so that killing
    and reaping every child that is not a live keeper is a proof of death here too. Nothing but keepers may
    be started as a child of a process that uses `sweep`.
    """

    def __init__(self, groups: Groups | None = None) -> None:
        self.groups = groups
        """Where control groups were delegated: each worker gets one of its own."""
        self._keepers: set[int] = set()
        self._starting = threading.Lock()
        self.is_subreaper = False

    def become_subreaper(self) -> None:
        """Make orphans of dead keepers our own children; OSError when the kernel refuses."""
        keeper.become_subreaper()
        self.is_subreaper = True

    def start(self, start: Callable[[], int]) -> int:
        """Run `start`, which forks a keeper and returns its pid, so that no sweep sees it as an orphan."""
        with self._starting:
            pid = start()
            self._keepers.add(pid)
        return pid

    def forget(self, pid: int) -> None:
        """A keeper was reaped."""
        self._keepers.discard(pid)

    def _orphans(self) -> list[int]:
        with self._starting:
            return [pid for pid in keeper.children() if pid not in self._keepers]

    async def sweep(self, limit: float = _SWEEP) -> bool:
        """End every orphan of a dead keeper; True, a proof, when we are sub-reaper and none is left."""
        with anyio.move_on_after(limit, shield=True):
            while orphans := self._orphans():
                for pid in orphans:
                    _kill_and_reap(pid)
                await anyio.sleep(_POLL)
            return self.is_subreaper
        logger.error("processes %s did not end when killed", self._orphans())
        return False


def _kill_and_reap(pid: int) -> None:
    # Our own child: its pid cannot be used anew before it is reaped here.
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG | keeper.WALL)


def record(workers: Path, identity: Identity) -> None:
    """Make a worker's identity durable; FileExistsError when the name was ever used.

    A crash before this leaves a worker that got no frame and ends with its pipe; after it, a file that
    `settle` reads.
    """
    identities.record(Layout(workers.parent), identity.name, checked.spell(identity))


def forget(workers: Path, name: str) -> None:
    """Remove a worker's files, its identity before the proof; what stays is tried again at each start."""
    try:
        identities.forget(Layout(workers.parent), name)
    except StoreError as error:
        logger.warning("%s", error)
        return
    durable.discard(workers / f"{name}.stderr")


def _recorded(workers: Path) -> Iterator[tuple[str, Identity | None]]:
    layout = Layout(workers.parent)
    for name in identities.names(layout):
        try:
            yield name, _identity(layout, name)
        except (FaultyInputError, StoreError) as error:
            # A crash never leaves half a file under this name: it was damaged, so nothing is known.
            logger.error("%s", error)
            yield name, None


def _identity(layout: Layout, name: str) -> Identity:
    what = f"cannot read worker {name}"
    found = checked.read(identities.read(layout, name), Identity, what)
    if found.name != name:
        raise FaultyInputError(what, (f"it is the record of {found.name} @ $.name",))
    return found


def _files(workers: Path) -> set[str]:
    return {path.stem for path in workers.iterdir() if path.suffix in (".gone", ".stderr")}


async def settle(workers: Path, timeout: float = 10.0) -> dict[str, Verdict]:
    """What became of every worker an earlier daemon recorded; waits for keepers that are still at work.

    Called once, before any job wakes, by the holder of the store's lock. Files of workers that are proven
    gone are removed; the others stay, so that every later start says the same. A name that is not in the
    answer was proven gone before, or never given work: its identity precedes its first frame.
    """
    verdicts: dict[str, Verdict] = {}

    async def one(name: str, identity: Identity | None) -> None:
        verdicts[name] = await _settle(workers, name, identity, timeout)

    async with anyio.create_task_group() as group:
        for name, identity in _recorded(workers):
            group.start_soon(one, name, identity)
    for verdict in verdicts.values():
        if verdict.proven:
            forget(workers, verdict.name)
    for stray in _files(workers):
        if stray not in verdicts:
            forget(workers, stray)
    return verdicts


async def _settle(workers: Path, name: str, identity: Identity | None, timeout: float) -> Verdict:
    if identities.gone(Layout(workers.parent), name):
        return Verdict(name=name, proven=True, how="its keeper ended it")
    if identity is None:
        return Verdict(name=name, proven=False, how="its record is damaged", remains=remains_of(name))
    if identity.boot != boot_id():
        return Verdict(name=name, proven=True, how="it ran in another boot")
    place = controlgroups.recorded(identity.cgroup, identity.space)
    if place is not None and await controlgroups.end(place):
        return Verdict(name=name, proven=True, how="its control group is empty")
    ended = await _wait_for_keeper(identity, timeout)
    if identities.gone(Layout(workers.parent), name):
        return Verdict(name=name, proven=True, how="its keeper ended it")
    how = "its keeper was killed" if ended else f"its keeper is still at work after {timeout:g} s"
    return Verdict(name=name, proven=False, how=how, remains=remains_of(name))


async def _wait_for_keeper(identity: Identity, timeout: float) -> bool:
    """True when the keeper is dead; it acts by itself, since its pipe closed with the daemon before us."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return True
    try:
        # Only after the descriptor is held: from here on the pid cannot come to mean another process.
        if start_time(identity.pid) != identity.start:
            return True
        with anyio.move_on_after(timeout) as scope:
            await anyio.wait_readable(descriptor)
        return not scope.cancelled_caught
    finally:
        os.close(descriptor)
