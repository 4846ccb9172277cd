"""The whole path of a step: supervisor, law, journal and disk threads here, one worker process beside them.

A run is measured while every job is at work: from the moment each has made three steps, for a set time.
Left out is what surrounds it: admission, opening the logs, starting the worker, ending.
"""

from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import anyio
import jobs
from attrs import frozen
from syncs import counted, slowed

from resumed.actors.clock import SystemClock
from resumed.actors.entry import JobEntry
from resumed.actors.house import House
from resumed.actors.supervisor import Supervisor
from resumed.schemas.instant import Instant
from resumed.schemas.jobfile import JobFile
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.workflow import Contract
from resumed.store import admission, layout

ENDLESS = 1_000_000_000
WARM = 3
PATIENCE = 120.0


@frozen(kw_only=True)
class Run:
    """One run: steps a second, syncs a step, and the time between a job's steps in ms."""

    steps_per_s: float
    syncs_per_step: float
    gaps: list[float]
    cpu_us: float
    """CPU time a step of the daemon's process, all its threads, in microseconds."""


class Watch:
    """Counts the steps a supervisor adopts: commits by which the position was entered anew."""

    def __init__(self, wanted: int) -> None:
        self.steps = 0
        self.timed = False
        self.gaps: list[float] = []
        self.all_warm = anyio.Event()
        self._cold = wanted
        self._last: dict[str, tuple[int, float]] = {}

    def over(self, supervisor: Supervisor) -> None:
        """Look at every snapshot that comes into force from now on."""
        adopted = supervisor.adopted

        def watched(entry: JobEntry, snapshot: Snapshot, now: Instant, until: Instant | None = None) -> None:
            adopted(entry, snapshot, now, until)
            self._look(entry.id, snapshot.position.occurrence)

        setattr(supervisor, "adopted", watched)  # noqa: B010 - the seam is a method, and stays one

    def _look(self, job: str, occurrence: int) -> None:
        before, at = self._last.get(job, (0, 0.0))
        if occurrence == before:
            return
        now = perf_counter()
        self._last[job] = (occurrence, now)
        self.steps += 1
        if self.timed:
            self.gaps.append((now - at) * 1000)
        if occurrence == WARM + 1:
            self._cold -= 1
            if not self._cold:
                self.all_warm.set()


class NoWorkflows:
    """Nothing comes in by the door here."""

    def pick(self, name: str, version: int | None) -> Contract | Refusal:
        """Jobs are admitted by the store itself: a call is a fault of the benchmark."""
        raise AssertionError("the door was asked for a workflow")

    def is_quick(self, contract: Contract) -> bool:
        """No: it is asked beside the loop."""
        return False

    def accept(self, contract: Contract, job: JobFile, what: str, reader: object = None) -> str:
        """As for `pick`."""
        raise AssertionError("the door was asked for a job's inputs")


def measure(
    folder: Path,
    size: int,
    seconds: float,
    backend: str,
    *,
    workers: int = 1,
    delay: float = 0.0,
    workflow: str = "ticking",
) -> Run:
    """Run `size` jobs in `workers` workers that hold them all, and measure for `seconds`.

    Each sync takes `delay` seconds longer than it does.
    """
    pinned = jobs.contract(size // workers, workflow)
    store = layout.create(folder / "state", "bench", SystemClock().now())
    for number in range(size):
        record, line = jobs.admitted(f"job-{number}", pinned, ENDLESS)
        admission.admit(store, record, line)
    with slowed(delay):
        return anyio.run(partial(_drive, store, size, seconds, backend, workers), backend=backend)


async def _drive(store: layout.Layout, size: int, seconds: float, backend: str, workers: int) -> Run:
    house = House(
        store,
        NoWorkflows(),
        clock=SystemClock(),
        backend=backend,
        most_workers=workers,
        shelf=lambda: ((), ()),
    )
    watch = Watch(size)
    watch.over(house.supervisor)
    with counted() as syncs:
        async with anyio.create_task_group() as group:
            await group.start(house.run)
            with anyio.fail_after(PATIENCE):
                await watch.all_warm.wait()
            before, steps, begun = syncs.value(), watch.steps, perf_counter()
            cpu, watch.timed = process_time(), True
            await anyio.sleep(seconds)
            passed, steps = perf_counter() - begun, watch.steps - steps
            watch.timed, cpu = False, process_time() - cpu
            found = syncs.value() - before
            # As at a power cut: nothing is parked, and the worker is killed.
            group.cancel_scope.cancel()
    return Run(
        steps_per_s=steps / passed,
        syncs_per_step=found / steps,
        gaps=watch.gaps,
        cpu_us=cpu / steps * 1_000_000,
    )
