"""Errands: a worker of its own that is asked one thing, and is gone before the answer is used.

It decides nothing about a job, and makes nothing durable but the worker's identity.
"""

from pathlib import Path

import anyio
import anyio.abc
from attrs import frozen

from resumed.schemas import frames
from resumed.schemas.workflow import Contract

from .containment import Containment
from .workers import WorkerProcess


@frozen(kw_only=True)
class Errand:
    """One question. Without `run` it is which contract the worker's entry declares; `patience` in seconds."""

    name: str
    contract: Contract
    patience: float
    run: frames.Run | None = None


async def send(
    errand: Errand, workers: Path, contained: Containment, group: anyio.abc.TaskGroup
) -> frames.FromWorker | str | None:
    """The frame that answers, or why there is none; None when the time for it is over.

    `workers` is the store's folder of that name; the worker's tasks run in `group`. OSError when the system
    refuses to start it.
    """
    heard: list[frames.FromWorker | str] = []
    answered, gone = anyio.Event(), anyio.Event()

    def on_frame(worker: WorkerProcess, frame: frames.FromWorker) -> None:
        if isinstance(frame, frames.Ready) and errand.run is not None:
            worker.send(errand.run)
        else:
            hear(frame)

    def hear(said: frames.FromWorker | str) -> None:
        heard.append(said)
        answered.set()

    def on_gone(worker: WorkerProcess, how: str, proven: bool) -> None:
        if proven:
            worker.forget()
        hear(f"its worker ended: {how}")
        gone.set()

    worker = WorkerProcess(
        name=errand.name,
        contract=errand.contract,
        workers=workers,
        contained=contained,
        on_frame=on_frame,
        on_faulty=lambda _, error: hear(str(error)),
        on_gone=on_gone,
        describe=errand.run is None,
    )
    await worker.start(group)
    try:
        with anyio.move_on_after(errand.patience):
            await answered.wait()
        # Read before it is killed: what its end says is no answer.
        first = heard[0] if heard else None
    finally:
        worker.kill()
        with anyio.CancelScope(shield=True):
            # Whoever asked may have hung up: what it started is gone before anything else is done.
            await gone.wait()
    return first
