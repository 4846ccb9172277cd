"""Targets: which calls are under way to each, of all jobs of the store, and the jobs that wait for a place.

A contract says how many calls its target takes at once. What counts is the set of open errands that send or
may go on to send, never a counter. A place that becomes free is kept for the job that has waited longest,
for a while: it must first get a worker. It decides nothing about a job and commits nothing.
"""

from collections.abc import Callable
from functools import partial

from attrs import define, field, frozen

from resumed.schemas.ledger import ToolContract

from .pools import Key

PATIENCE = 5.0
"""Seconds a free place is kept for the job that was called to it."""


@frozen
class Target:
    """One system that is written to, under one account."""

    name: str
    address: str
    account: str


def of(contract: ToolContract) -> Target:
    """Where a tool's calls go."""
    return Target(contract.target, contract.address, contract.account)


@frozen
class Wish:
    """A job wants to call: how many at once its contract allows."""

    target: Target
    most: int


def wish(contract: ToolContract) -> Wish:
    """What a call of this tool needs."""
    return Wish(of(contract), contract.at_once)


@define(eq=False)
class _Line:
    """One target's calls and who waits."""

    open: set[Key] = field(factory=set)
    waiting: dict[str, int] = field(factory=dict)
    """Jobs in the order they came, and how many calls at once each one's contract allows."""
    called: dict[str, int] = field(factory=dict)
    """Jobs that a free place is kept for, and the number of the call."""

    def is_idle(self) -> bool:
        return not (self.open or self.waiting or self.called)


class Targets:
    """All targets. `call` is told of a job whose turn it is; `later` calls a function after some seconds."""

    def __init__(
        self, call: Callable[[str], None], later: Callable[[float, Callable[[], None]], None]
    ) -> None:
        self._call = call
        self._later = later
        self._lines: dict[Target, _Line] = {}
        self._places: dict[Key, Target] = {}
        self._jobs: set[str] = set()
        self._calls = 0

    def __contains__(self, job: str) -> bool:
        """Whether the job is known to want calls, or has some under way."""
        return job in self._jobs

    def has_place(self, job: str, wish: Wish, instead: Key | None = None) -> bool:
        """Whether the job may call now; `instead` is a call of its own that is over with the same commit."""
        line = self._lines.get(wish.target)
        if line is None:
            return wish.most > 0
        if instead in line.open and line.waiting:
            instead = None  # others have waited for it
        taken = len(line.open) - (instead in line.open) + len(line.called) - (job in line.called)
        return taken < wish.most

    def take(self, key: Key, target: Target) -> None:
        """This errand has a place from now on."""
        line = self._lines.setdefault(target, _Line())
        line.open.add(key)
        self._leave(line, key[0])
        self._places[key] = target
        self._jobs.add(key[0])

    def release(self, key: Key) -> None:
        """The errand is over, or never came to be."""
        target = self._places.pop(key, None)
        if target is None:
            return
        self._lines[target].open.discard(key)
        self._next(target)

    def kept(self, job: str) -> list[Key]:
        """The places that errands of the job have."""
        return [key for key in self._places if key[0] == job]

    def wait(self, job: str, wishes: list[Wish]) -> bool:
        """The job wants these calls and no others; it waits where there is no place. True when one may begin
        now.
        """
        if wishes:
            self._jobs.add(job)
        elif job in self._jobs and not self.kept(job):
            self._jobs.discard(job)
        wanted = {each.target: each.most for each in wishes}
        for target, line in list(self._lines.items()):
            if target not in wanted and (job in line.waiting or job in line.called):
                self._leave(line, job)
                self._next(target)
        begins = False
        for each in wishes:
            if self.has_place(job, each):
                begins = True
            else:
                self._lines.setdefault(each.target, _Line()).waiting.setdefault(job, each.most)
        return begins

    def forget(self, job: str) -> None:
        """The job is out of our hands: it waits for nothing."""
        self.wait(job, [])

    @staticmethod
    def _leave(line: _Line, job: str) -> None:
        line.waiting.pop(job, None)
        line.called.pop(job, None)

    def _next(self, target: Target) -> None:
        """Call those who waited longest to the places that are free."""
        line = self._lines[target]
        while line.waiting:
            job, most = next(iter(line.waiting.items()))
            if len(line.open) + len(line.called) >= most:
                return
            del line.waiting[job]
            self._calls += 1
            line.called[job] = self._calls
            self._later(PATIENCE, partial(self._lapse, target, job, self._calls))
            self._call(job)
        if line.is_idle():
            del self._lines[target]

    def _lapse(self, target: Target, job: str, call: int) -> None:
        """It did not come in time: the place is for the next one, and it takes its chance when it comes."""
        line = self._lines.get(target)
        if line is not None and line.called.get(job) == call:
            del line.called[job]
            self._next(target)
