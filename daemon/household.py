"""The parts below put together: disk threads, worker processes, supervisor, door and reception.

The order that must hold: workers of an earlier daemon are known gone, or known not to be, before any job
wakes; the supervisor ends before the workers, the workers before the disk.
"""

import logging

import anyio
from anyio.abc import TaskGroup, TaskStatus

from resumed.actors import containment, scratch
from resumed.actors.clock import Clock
from resumed.actors.containment import Containment, Verdict
from resumed.actors.disk import ThreadDisk
from resumed.actors.door import Door
from resumed.actors.reception import Reception
from resumed.actors.supervisor import Supervisor
from resumed.actors.workers import WorkerProcess
from resumed.schemas.release import VERSION
from resumed.schemas.workflow import Contract
from resumed.store import admission
from resumed.store.layout import Layout

from .config import Config
from .shelf import WorkflowShelf

log = logging.getLogger(__name__)


class Household:
    """One store's living jobs and all they need."""

    def __init__(self, config: Config, layout: Layout, shelf: WorkflowShelf, clock: Clock, pid: int) -> None:
        self._layout = layout
        self._folder = str(config.workflows)
        self._disk = ThreadDisk()
        self._contained = Containment()
        self._workers: TaskGroup | None = None
        self._over = anyio.Event()
        self.supervisor = Supervisor(
            layout, clock=clock, disk=self._disk, spawn=self._spawn, most_workers=config.workers
        )
        self.reception = Reception(
            self.supervisor,
            Door(self.supervisor, shelf),
            house={
                "release": VERSION,
                "store": str(layout.root),
                "pid": pid,
                "backend": config.backend,
                "containment": "keeper",
            },
            shelf=lambda: (shelf.names(), shelf.problems),
        )

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Runs until `drain` is through; `started()` when jobs may be asked for."""
        async with anyio.create_task_group() as base:
            await base.start(self._disk.run)
            await self._settle()
            async with anyio.create_task_group() as workers:
                self._workers = workers
                async with anyio.create_task_group() as jobs:
                    await jobs.start(self.supervisor.run)
                    task_status.started()
                    await self._over.wait()
                    jobs.cancel_scope.cancel()
                workers.cancel_scope.cancel()
            base.cancel_scope.cancel()

    async def drain(self, seconds: float) -> None:
        """Stops what runs in good order, then ends `run`."""
        await self.supervisor.drain(seconds)
        self._over.set()

    async def _settle(self) -> None:
        """What an earlier daemon left: its workers' ends, folders of tries, half an admission."""
        self._contained.become_subreaper()
        verdicts = await containment.settle(self._layout.workers)
        self.supervisor.unproven.update(
            {name: _spell(verdict) for name, verdict in verdicts.items() if not verdict.proven}
        )
        await self._disk.call(scratch.empty, self._layout.scratch)
        for left in await self._disk.call(admission.clean, self._layout):
            log.info("An admission that was cut short was removed: %s.", left)

    async def _spawn(self, name: str, contract: Contract) -> WorkerProcess:
        assert self._workers is not None
        workshop = self.supervisor.workshop
        worker = WorkerProcess(
            name=name,
            contract=contract,
            workers=self._layout.workers,
            contained=self._contained,
            on_frame=workshop.on_frame,
            on_faulty=workshop.on_faulty,
            on_gone=workshop.on_gone,
            folder=self._folder,
        )
        await worker.start(self._workers)
        return worker


def _spell(verdict: Verdict) -> str:
    remains = ", ".join(f"{each.pid} ({each.command})" for each in verdict.remains)
    return f"worker {verdict.name}: {verdict.how}" + (f"; still there: {remains}" if remains else "")
