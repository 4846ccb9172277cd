"""The house of the living jobs: disk threads, workers, supervisor and reception of one store, put together.

The order at the start: what an earlier daemon's workers left is known gone (or known not to be) before any
job is read. At the end: jobs are parked, then workers end, then the disk threads.
"""

import gc
import logging
import os
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.abc
from attrs import frozen

from resumed.schemas import release
from resumed.schemas.errors import StoreError
from resumed.schemas.workflow import Contract
from resumed.store import admission
from resumed.store.layout import Layout

from . import containment, scratch
from .bounds import Bounds
from .clock import Clock
from .containment import Containment
from .controlgroups import Groups
from .describe import Describer
from .disk import ThreadDisk
from .door import Door, Workflows
from .names import Names
from .pools import Worker
from .pulse import Pulse
from .reception import Reception
from .rehearsal import Rehearser
from .supervisor import Supervisor
from .trouble import DiskTrouble, WatchedDisk
from .witness import Alone, Authority
from .workers import WorkerProcess

logger = logging.getLogger(__name__)

SPARED_AFTER = 0.1
"""Seconds after which a start is over, as far as the collector is concerned."""
SETTLE_SECONDS = 10.0
"""How long an earlier daemon's keepers may take to end what they keep."""


@frozen(kw_only=True)
class Figures:
    """The daemon in a few numbers, cheap enough to be asked for every second."""

    open: int
    at_work: int
    """Jobs that have a try in a worker's hands."""
    workers: int
    loading: int
    trouble: str = ""


class House:
    """One store's jobs, alive. `jobs` may be asked once `run` has started."""

    def __init__(
        self,
        layout: Layout,
        workflows: Workflows,
        *,
        clock: Clock,
        backend: str,
        most_workers: int,
        shelf: Callable[[], tuple[tuple[str, ...], tuple[str, ...]]],
        groups: Groups | None = None,
        credentials: str = "",
        authority: Authority | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        self.layout = layout
        self._contained = Containment(groups)
        self._disk = ThreadDisk()
        self._reads = ThreadDisk()
        self._places = ThreadDisk()
        self._names = Names()
        self._group: anyio.abc.TaskGroup | None = None
        self._outer: anyio.abc.TaskGroup | None = None
        self._threads = Pulse(self._disk, self._reads)
        self.trouble = DiskTrouble(layout, clock, self._disk, self._rest)
        watched = WatchedDisk(self._disk, self.trouble)
        self.supervisor = Supervisor(
            layout,
            clock=clock,
            disk=watched,
            reads=self._reads,
            places=self._places,
            spawn=self._spawn,
            most_workers=most_workers,
        )
        self.supervisor.workshop.is_disk_trouble = self.trouble.noticed
        self.supervisor.workshop.credentials = credentials
        self.supervisor.ease = self.trouble.ease
        witness = self.supervisor.witness
        witness.authority, witness.look = authority or Alone(), self._names.look
        witness.bounds = bounds or Bounds()
        house = {
            "release": release.VERSION,
            "store": str(layout.root),
            "pid": os.getpid(),
            "backend": backend,
            "containment": "control group" if groups is not None else "keeper",
        }
        self._describer = Describer(layout.workers, self._contained, clock, self.supervisor.workshop.name)
        door = Door(self.supervisor, workflows, self._describer.whole)
        self._rehearser = Rehearser(
            layout, self._contained, clock, self._reads, self.supervisor.workshop.name
        )
        self.jobs = Reception(
            self.supervisor,
            door,
            house=house,
            shelf=shelf,
            trouble=self.trouble,
            rehearse=self._rehearser.rehearse,
            groups=groups,
        )
        witness.placed = self.jobs.unplaced

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Live until cancelled; started once every job has its place and may be asked about."""
        self._contained.become_subreaper()
        async with anyio.create_task_group() as outer:
            try:
                # Not `start`: canceled meanwhile, it would wait for threads that only the end below ends.
                outer.start_soon(self._disk.run)
                outer.start_soon(self._reads.run)
                outer.start_soon(self._places.run)
                outer.start_soon(self._names.run)
                self._outer = outer
                await self._settle()
                async with anyio.create_task_group() as group:
                    self._group = self._describer.group = self._rehearser.group = group
                    group.start_soon(self.trouble.run)
                    group.start_soon(self._spare_the_collector)
                    await group.start(self.supervisor.run)
                    task_status.started()
            finally:
                self._group = self._describer.group = self._rehearser.group = self._outer = None
                self._disk.close()
                self._reads.close()
                self._places.close()
                self._names.close()

    async def _settle(self) -> None:
        """Know what became of the workers of before; clear away what no job names."""
        workers: Path = self.layout.workers
        verdicts = await containment.settle(workers, SETTLE_SECONDS)
        for name, verdict in verdicts.items():
            if verdict.proven:
                continue
            said = f"{verdict.how}; {containment.spell(verdict.remains)}"
            logger.error("worker %s of an earlier daemon is not known to be gone: %s", name, said)
            self.supervisor.unproven[name] = said
        if self._contained.groups is not None:
            # What is left was on no record: its worker never got a frame.
            for stray in self._contained.groups.strays():
                await stray.end()
        await self._disk.call(scratch.empty, self.layout.scratch, frozenset(self.supervisor.unproven))
        await self.trouble.prepare()
        try:
            for left in await self._disk.call(admission.clean, self.layout):
                logger.info("a left-over of an admission was removed: %s", left)
        except (StoreError, OSError) as error:
            # Left-overs are never loaded; the next start tries again.
            logger.error("left-overs of admissions could not all be removed: %s", error)

    async def _spawn(self, name: str, contract: Contract) -> Worker:
        assert self._group is not None
        workshop = self.supervisor.workshop
        worker = WorkerProcess(
            name=name,
            contract=contract,
            workers=self.layout.workers,
            contained=self._contained,
            on_frame=workshop.on_frame,
            on_faulty=workshop.on_faulty,
            on_gone=workshop.on_gone,
        )
        try:
            await worker.start(self._group)
        except StoreError as error:
            self.trouble.noticed(error)
            raise
        return worker

    def _rest(self, resting: bool) -> None:
        self.supervisor.workshop.slots.rest(resting)

    async def _spare_the_collector(self) -> None:
        """What is loaded stays: looking through it again and again took a tenth of the daemon's time.

        Not before the doors are open: nobody is to wait for it at the start.
        """
        await self.supervisor.clock.wait(SPARED_AFTER)
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000)
        gc.enable()

    def figures(self) -> Figures:
        """How the daemon is now."""
        hands = self.supervisor.workshop.slots.hands
        return Figures(
            open=len(self.supervisor.entries),
            at_work=len({job for hand in hands.values() for job, _, _ in hand.held}),
            workers=len(hands),
            loading=self.supervisor.loading,
            trouble=self.trouble.said,
        )

    def beats(self) -> bool:
        """Whether the disk's threads have moved since this was asked last; true while they are not there."""
        return self._outer is None or self._threads.beats(self._outer)

    def bound(self, bounds: Bounds) -> None:
        """What rules of approval say at most, from now on."""
        self.supervisor.witness.bounds = bounds

    def allow_workers(self, most: int) -> None:
        """How many workers there may be from now on; those that are too many end when they are idle."""
        self.supervisor.workshop.slots.most = most

    async def drain(self, seconds: float) -> None:
        """Stop what runs in good order and park every job."""
        await self.supervisor.drain(seconds)
