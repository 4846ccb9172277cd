"""Turns: which of the jobs that wait for a place is next; by priority, then by requester, then by job.

A higher priority goes first, but no turn is put off without end: after `MOST_PASSED` turns of higher ones a
lower priority gets one. Within a priority the requesters take turns, within a requester the jobs. So a job of
a requester with `j` jobs, among `r` requesters of its priority and `p` priorities that wait, gets its turn
within `j * r * (MOST_PASSED + p)` turns.
"""

from collections.abc import Iterator

from attrs import define, field, frozen

MOST_PASSED = 32
"""Turns of higher priorities that a lower one lets pass; counted, since a turn has no length of its own."""


@frozen
class Rank:
    """Where a job stands among those that wait."""

    priority: int = 0
    requester: str = ""


ANYONE = Rank()


@define(eq=False)
class _Level:
    """The jobs of one priority: by requester, both in turn."""

    requesters: dict[str, dict[str, None]] = field(factory=dict)
    passed: int = 0
    """Turns of higher priorities since its last one."""


class Turns:
    """The jobs that wait for a place in one pool."""

    def __init__(self) -> None:
        self._ranks: dict[str, Rank] = {}
        self._levels: dict[int, _Level] = {}

    def __len__(self) -> int:
        return len(self._ranks)

    def __bool__(self) -> bool:
        return bool(self._ranks)

    def __contains__(self, job: object) -> bool:
        return job in self._ranks

    def __iter__(self) -> Iterator[str]:
        """The jobs, in no order of their turns."""
        return iter(self._ranks)

    def add(self, job: str, rank: Rank) -> None:
        """Queue a job; one that waits already keeps its place."""
        if job not in self._ranks:
            self._ranks[job] = rank
            level = self._levels.setdefault(rank.priority, _Level())
            level.requesters.setdefault(rank.requester, {})[job] = None

    def remove(self, job: str) -> None:
        """The job waits no longer."""
        rank = self._ranks.pop(job, None)
        if rank is None:
            return
        level = self._levels[rank.priority]
        jobs = level.requesters[rank.requester]
        del jobs[job]
        if not jobs:
            del level.requesters[rank.requester]
        if not level.requesters:
            del self._levels[rank.priority]

    def clear(self) -> list[str]:
        """Nobody waits any more; returns who did."""
        waited = list(self._ranks)
        self._ranks, self._levels = {}, {}
        return waited

    def top(self) -> int | None:
        """The highest priority that waits, None when nobody does."""
        return max(self._levels) if self._levels else None

    def take(self) -> tuple[str, int]:
        """The job whose turn it is, taken out, and its priority; LookupError when nobody waits."""
        if not self._levels:
            raise LookupError("nobody waits")
        chosen = max(self._levels)
        late = [priority for priority, level in self._levels.items() if level.passed >= MOST_PASSED]
        if late:
            chosen = max(late, key=lambda priority: (self._levels[priority].passed, priority))
        for priority, level in self._levels.items():
            if priority < chosen:
                level.passed += 1
        level = self._levels[chosen]
        level.passed = 0
        requester = next(iter(level.requesters))
        jobs = level.requesters.pop(requester)
        job = next(iter(jobs))
        # Behind the others, whether or not it has more: a turn is a turn.
        level.requesters[requester] = jobs
        self.remove(job)
        return job, chosen
