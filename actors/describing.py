"""What a Python workflow declares: asked of a worker that is started for that alone; starts no try."""

from pathlib import Path

import anyio

from resumed.schemas import frames
from resumed.schemas.errors import AuthorError, FaultyInputError
from resumed.schemas.workflow import Contract

from .containment import Containment
from .workers import WorkerProcess

LIMIT = 30.0
"""Seconds that an author's module may take to import."""


async def describe(
    asked: Contract, *, name: str, workers: Path, contained: Containment, limit: float = LIMIT
) -> Contract:
    """The whole contract behind an entry; AuthorError with the reason when there is none in time.

    `asked` is what `programs.contract_of` gives for a Python workflow. No author code runs in the daemon.
    """
    heard: list[frames.FromWorker] = []
    faults: list[str] = []
    answered = anyio.Event()

    def on_frame(_: WorkerProcess, frame: frames.FromWorker) -> None:
        heard.append(frame)
        answered.set()

    def on_faulty(_: WorkerProcess, error: FaultyInputError) -> None:
        faults.append(str(error))

    worker = WorkerProcess(
        name=name,
        contract=asked,
        workers=workers,
        contained=contained,
        on_frame=on_frame,
        on_faulty=on_faulty,
        on_gone=lambda *_: answered.set(),
        describe=True,
    )
    async with anyio.create_task_group() as group:
        await worker.start(group)
        with anyio.move_on_after(limit):
            await answered.wait()
        said = worker.stderr_tail(500).strip()
        await worker.end(0.0 if not heard else 2.0)
    worker.forget()
    found = heard[0] if heard else None
    if isinstance(found, frames.Ready):
        return found.contract
    if isinstance(found, frames.Trouble):
        raise AuthorError(found.reason)
    why = faults[0] if faults else said or f"its worker said nothing within {limit:g} s"
    raise AuthorError(f"cannot load {asked.entry}: {why}")
