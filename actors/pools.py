"""Pools: the workers of one pinned workflow, what each holds, and the jobs that wait for them in turn.

It starts and ends no worker.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from attrs import define, evolve, field

from resumed.schemas import frames
from resumed.schemas.workflow import Contract

from .turns import Turns

Key = tuple[str, str, int]
"""(job, unit, number)"""


class Worker(Protocol):
    """What a worker process offers; `actors.workers.WorkerProcess`, or a test's own."""

    name: str
    slots: int
    pid: int
    """Of its keeper, our own child; everything that the worker starts is below it."""

    def send(self, frame: frames.ToWorker) -> None:
        """Send a frame; GoneError when it is gone."""
        ...

    def kill(self) -> None:
        """End it and all below it at once."""
        ...

    def forget(self) -> None:
        """Remove its files, once its end is committed."""
        ...

    def stderr_tail(self, size: int = 2000) -> str:
        """What it wrote last."""
        ...


Spawn = Callable[[str, Contract], Awaitable[Worker]]


@define(eq=False)
class Hand:
    """One worker and what it holds."""

    worker: Worker
    pool: "Pool"
    held: set[Key] = field(factory=set)
    offered: set[str] = field(factory=set)
    ready: bool = False
    ending: bool = False
    closing: bool = False
    """It takes no further try: a workflow that has no worker waits for its place."""
    born: float = 0.0
    idle_since: float = 0.0
    streak: int = 0
    priority: int = 0
    """Of the job that a place was offered to last."""

    def free(self) -> bool:
        """True when one more try fits."""
        usable = self.ready and not (self.ending or self.closing)
        return usable and len(self.held) + len(self.offered) < self.worker.slots

    def is_spare(self) -> bool:
        """True when it could run, has nothing to do, and nobody waits for it."""
        return self.ready and not (self.ending or self.held or self.offered or self.pool.waiting)


@define(eq=False)
class Pool:
    """The workers of one pinned workflow, and the jobs that wait for them (in turn)."""

    contract: Contract
    errands: bool = False
    """Its workers go on errands only: those of the workflow's own pool run several tries at once."""
    hands: dict[str, Hand] = field(factory=dict)
    waiting: Turns = field(factory=Turns)
    starting: int = 0
    stillborn: int = 0
    hungry: float | None = None
    """Since when its jobs have waited without any worker of its own."""
    grown: float = 0.0
    """When a worker was started for it last."""
    refused: int = 0
    """Starts that the system refused, in a row."""
    pausing: bool = False
    """The next start waits a little, since the last was refused."""
    trouble: str = ""
    """What the system said when it refused to start a worker."""

    def is_idle(self) -> bool:
        """True when nothing would be lost with it."""
        return not (self.hands or self.waiting or self.starting or self.pausing)

    def starves(self) -> bool:
        """True when jobs wait for a worker, one may be started, and none is there or on its way."""
        return bool(self.waiting) and not (self.hands or self.starting or self.pausing)


_APART = " errands"
"""Ends the name of a pool whose workers go on errands only."""


def pool_for(pools: dict[str, Pool], digest: str, contract: Contract, errand: bool) -> Pool:
    """A pinned workflow's pool, made when there is none; for errands one whose workers have one slot."""
    apart = errand and contract.slots > 1
    name = digest + _APART if apart else digest
    pool = pools.get(name)
    if pool is None:
        pool = pools[name] = Pool(evolve(contract, slots=1) if apart else contract, errands=apart)
    return pool


def pools_of(pools: dict[str, Pool], digest: str) -> list[Pool]:
    """The pools that there are of a pinned workflow."""
    found = (pools.get(digest), pools.get(digest + _APART))
    return [pool for pool in found if pool is not None]
