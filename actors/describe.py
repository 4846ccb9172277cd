"""Asking a worker what contract a Python workflow declares; the daemon itself never imports authors' code."""

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.abc

from resumed.schemas import codec, frames
from resumed.schemas.errors import AuthorError, ResumedError
from resumed.schemas.instant import Instant, later, reached
from resumed.schemas.workflow import Contract

from .clock import Clock
from .containment import Containment
from .workers import WorkerProcess

FRESH_SECONDS = 5.0
"""How long an answer, also a bad one, is used again: a burst of files asks once, an edit is seen soon."""
PATIENCE = 30.0
"""Seconds a module may take to import."""


class Describer:
    """Answers by contract (as the shelf has it, without steps) for a short while."""

    def __init__(self, workers: Path, contained: Containment, clock: Clock, name: Callable[[], str]) -> None:
        self._workers = workers
        self._contained = contained
        self._clock = clock
        self._name = name
        self._known: dict[str, tuple[Instant, Contract | str]] = {}
        self._busy: dict[str, anyio.Lock] = {}
        """One a contract: a module that hangs holds up those that wait for the same one alone."""
        self.group: anyio.abc.TaskGroup | None = None
        """Where the worker's tasks run; set while the house is alive."""

    async def whole(self, contract: Contract) -> Contract:
        """The contract with its steps; AuthorError says why the class cannot be run."""
        if contract.steps or not contract.entry:
            return contract
        key = codec.digest(codec.encode(contract))
        async with self._busy.setdefault(key, anyio.Lock()):
            known = self._known.get(key)
            if known is None or reached(later(known[0], FRESH_SECONDS), self._clock.now()):
                found = await self._ask_once(contract)
                known = self._known[key] = (self._clock.now(), found)
        if isinstance(known[1], str):
            raise AuthorError(known[1])
        return known[1]

    async def _ask_once(self, contract: Contract) -> Contract | str:
        try:
            return await self._ask(contract)
        except AuthorError as error:
            return str(error)

    async def _ask(self, contract: Contract) -> Contract:
        answered = anyio.Event()
        heard: list[Contract | str] = []

        def on_frame(worker: WorkerProcess, frame: frames.FromWorker) -> None:
            del worker
            if isinstance(frame, frames.Ready):
                heard.append(frame.contract)
            elif isinstance(frame, frames.Trouble):
                heard.append(frame.reason)
            answered.set()

        def on_faulty(worker: WorkerProcess, error: ResumedError) -> None:
            del worker
            heard.append(str(error))
            answered.set()

        def on_gone(worker: WorkerProcess, how: str, proven: bool) -> None:
            if proven:
                worker.forget()
            heard.append(f"its worker ended: {how}")
            answered.set()

        if self.group is None:
            raise AuthorError(f"cannot load {contract.entry}: the daemon is ending")
        worker = WorkerProcess(
            name=self._name(),
            contract=contract,
            workers=self._workers,
            contained=self._contained,
            on_frame=on_frame,
            on_faulty=on_faulty,
            on_gone=on_gone,
            describe=True,
        )
        await worker.start(self.group)
        with anyio.move_on_after(PATIENCE):
            await answered.wait()
        worker.kill()
        first = heard[0] if heard else f"it took longer than {PATIENCE:g} s to import"
        if isinstance(first, str):
            raise AuthorError(
                first if first.startswith("cannot load") else f"cannot load {contract.entry}: {first}"
            )
        return first
