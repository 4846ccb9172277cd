"""Where a process stands to the process trees of attempts: outside all of them, or within some job's own.

A job cannot decide anything about itself (DESIGN.md, I5), so whoever cannot be placed outside is not let
decide. What holds a tree together also proves it: every worker runs under a keeper, and both are
sub-reapers, as we are. So whatever an attempt starts stays below our own process however it forks and
whoever of its parents dies, and nothing but attempts is ever below us.

Where control groups are delegated, a process in a worker's group is within as well, whoever its parents are.

What cannot be seen from here: a process outside, of the same user, that a job asks to act for it (a user's
service manager, `at`, a shell left open). Where jobs share their approver's user, that is said as same-user.
"""

import os
from pathlib import Path

from attrs import frozen

from . import containment
from .controlgroups import Groups
from .supervisor import Supervisor

LOOKS = 3
"""Pairs of walks up to the first process; one of a pair may meet a parent that is just dying."""
MOST_PARENTS = 4096


@frozen
class Placement:
    """`outside` every tree; or within one of `jobs` (empty: nobody knows whose it is), and why that is so."""

    outside: bool
    jobs: frozenset[str] = frozenset()
    why: str = ""

    def may_decide(self, job: str | None) -> bool:
        """Whether the process may decide anything about the job, or with None about them all."""
        return self.outside or (job is not None and bool(self.jobs) and job not in self.jobs)


OUTSIDE = Placement(True)
MOST_KNOWN = 1024


class Outsiders:
    """Processes that were found outside: while one of them lives it stays there.

    When its parent dies it goes to one of that one's own forebears, and none of them is ours; so only that
    it lives is looked at again. Who stands in a control group may be moved: with groups nothing is kept.
    """

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def note(self, pid: int, start: int | None) -> None:
        """This process is outside."""
        if start is not None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[pid] = start

    def hold(self, pid: int, start: int | None) -> bool:
        """Whether it was found outside, and lives."""
        if start is None or self._known.get(pid) != start:
            return False
        stat = containment.stat_of(pid)
        if stat is not None and stat[1] == start:
            return True
        del self._known[pid]
        return False


async def placed(
    supervisor: Supervisor,
    groups: Groups | None,
    pid: int,
    start: int | None,
    uid: int,
    outsiders: Outsiders | None = None,
) -> Placement:
    """Where the process of that pid and start time (clock ticks) stands."""
    if pid == 0:
        # It is in no namespace of processes below ours, and all that we start is in ours or below.
        return OUTSIDE
    if pid == os.getpid():
        return OUTSIDE
    own = os.geteuid()
    if own not in (0, uid):
        # Attempts run as our own user, and no_new_privs keeps them there.
        return OUTSIDE
    lasting = outsiders if groups is None and not supervisor.unproven else None
    if lasting is not None and lasting.hold(pid, start):
        return OUTSIDE
    line = await supervisor.reads.call(lineage, pid, start)
    if line is None:
        return Placement(False, why=f"process {pid}, which connected, has ended or cannot be looked at")
    if os.getpid() in line:
        child = line[line.index(os.getpid()) - 1]
        hands = supervisor.workshop.slots.hands.items()
        return _within(supervisor, next((name for name, each in hands if each.worker.pid == child), ""))
    if groups is not None and (worker := await supervisor.reads.call(groups.worker_of, pid)):
        return _within(supervisor, worker)
    if supervisor.unproven:
        marked = await supervisor.reads.call(_marks, line)
        if left := sorted(marked & set(supervisor.unproven)):
            why = f"process {pid} bears the mark of {left[0]}, a worker of an earlier daemon"
            return Placement(False, why=why)
    if lasting is not None:
        lasting.note(pid, start)
    return OUTSIDE


def _within(supervisor: Supervisor, name: str) -> Placement:
    """Within a worker's tree, or that of one which is not known (any more)."""
    hand = supervisor.workshop.slots.hands.get(name)
    held = {key[0] for key in hand.held} if hand is not None else set()
    for entry in supervisor.entries.values() if name else ():
        if name in (entry.there("running") or {}).values():
            held.add(entry.id)
    whose = f"an attempt of {', '.join(sorted(held))}" if held else "a worker"
    return Placement(False, frozenset(held), f"it comes from within {whose}")


def lineage(pid: int, start: int | None) -> tuple[int, ...] | None:
    """The process, its parent, and so on up to the first one; None when that cannot be told for sure.

    Two walks that agree prove that every link of theirs held at the moment between them: a process that has
    lost its parent never gets it back.
    """
    if start is None:
        return None
    for _ in range(LOOKS):
        first, second = _walk(pid), _walk(pid)
        if first is None or second is None or first[0][1] != start:
            return None
        if first == second:
            return tuple(one for one, _ in first)
    return None


def _walk(pid: int) -> list[tuple[int, int]] | None:
    """Each process on the way up, with its start time; None when one of them is gone."""
    found: list[tuple[int, int]] = []
    while pid != 0 and len(found) < MOST_PARENTS:
        stat = containment.stat_of(pid)
        if stat is None:
            return None
        parent, start = stat
        found.append((pid, start))
        pid = parent
    return found


def _marks(pids: tuple[int, ...]) -> set[str]:
    """The workers' marks in the environments of these processes, as far as they can be read."""
    found: set[str] = set()
    prefix = f"{containment.MARK}=".encode()
    for pid in pids:
        try:
            raw = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue  # another user's: no attempt's
        found |= {
            part[len(prefix) :].decode(errors="replace")
            for part in raw.split(b"\0")
            if part.startswith(prefix)
        }
    return found
