"""What the tests of worker processes share: a worker with a recorder, frames for it, and contracts."""

import math
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio

from resumed.actors.containment import Containment
from resumed.actors.worker import programs as worker_programs
from resumed.actors.workers import WorkerProcess
from resumed.schemas import frames, workflowfile
from resumed.schemas.errors import GoneError
from resumed.schemas.job import Item, Source
from resumed.schemas.workflow import Contract, Programs, PythonEntry

HERE = Path(__file__).resolve().parent
PYTHON = sys.executable
WAIT = 20.0
"""No test waits longer for anything; reaching it is a failure."""


def contract(toml: str, name: str = "flow") -> Contract:
    """The contract of a workflow file of programs."""
    return worker_programs.contract_of(workflowfile.read(toml.encode(), name))


def one_step(*run: str, more: str = "") -> Contract:
    """A workflow of one program."""
    words = ", ".join(repr(word) if "'" not in word else f"'''{word}'''" for word in run)
    return contract(f"version = 1\n[[step]]\nname = 'only'\nrepeatable = true\nrun = [{words}]\n{more}")


def python_contract(entry: str, name: str, version: int = 1, **more: Any) -> Contract:
    """The contract to describe a Python workflow by, its module beside the tests."""
    entry_of = PythonEntry(entry=entry, folder=str(HERE), **more)
    return worker_programs.contract_of(Programs(name=name, version=version, steps=(), python=entry_of))


class Desk:
    """A worker and what was heard of it, in order."""

    def __init__(self, folder: Path, contained: Containment) -> None:
        self.folder = folder
        self.workers = folder / "workers"
        self.workers.mkdir(exist_ok=True)
        self.contained = contained
        self.faults: list[str] = []
        self.ends: list[tuple[str, bool]] = []
        self.gone = anyio.Event()
        self._in, self._out = anyio.create_memory_object_stream[frames.FromWorker](math.inf)
        self.worker: WorkerProcess

    def close(self) -> None:
        """Close the recorder."""
        self._in.close()
        self._out.close()

    def _on_gone(self, _: WorkerProcess, how: str, proven: bool) -> None:
        self.ends.append((how, proven))
        self.gone.set()

    async def start(
        self, group: anyio.abc.TaskGroup, pinned: Contract, name: str = "w1", describe: bool = False
    ) -> frames.FromWorker:
        """Start a worker; returns its first frame."""
        self.worker = WorkerProcess(
            name=name,
            contract=pinned,
            workers=self.workers,
            contained=self.contained,
            on_frame=lambda _, frame: self._in.send_nowait(frame),
            on_faulty=lambda _, error: self.faults.append(str(error)),
            on_gone=self._on_gone,
            describe=describe,
        )
        await self.worker.start(group)
        return await self.heard()

    async def heard(self) -> frames.FromWorker:
        """The next frame."""
        with anyio.fail_after(WAIT):
            return await self._out.receive()

    def nothing_heard(self) -> bool:
        """True when no frame lies unread."""
        return self._out.statistics().current_buffer_used == 0

    def frame(self, step: str = "only", item: str = "i", number: int = 1, **more: Any) -> frames.Run:
        """A `run` frame with a scratch folder of its own."""
        scratch = self.folder / f"scratch-{item.replace('/', '-')}-{number}"
        scratch.mkdir(exist_ok=True)
        if item and "row" not in more:
            more["row"] = Item(id=item, ordinal=0)
        return frames.Run(
            job="j",
            epoch=1,
            item=item,
            number=number,
            step=step,
            occurrence=1,
            log=str(self.folder / "run.log"),
            scratch=str(scratch),
            **more,
        )

    async def run(self, step: str = "only", item: str = "i", number: int = 1, **more: Any) -> Any:
        """Run one try; returns its answering frame."""
        self.worker.send(self.frame(step, item, number, **more))
        return await self.heard()

    def stop(self, item: str = "i", number: int = 1, grace: float = 0.0) -> None:
        """Ask a try to end."""
        self.worker.send(frames.Stop(job="j", epoch=1, item=item, number=number, grace=grace))

    def log(self) -> bytes:
        """What programs printed."""
        return (self.folder / "run.log").read_bytes()


async def end(worker: WorkerProcess) -> None:
    """Ask a worker to end, then kill it; returns when it is known gone."""
    with suppress(GoneError):
        worker.send(frames.Close())
    with anyio.move_on_after(5.0):
        await worker.gone.wait()
    worker.kill()
    await worker.gone.wait()


@asynccontextmanager
async def desk(
    folder: Path, pinned: Contract, describe: bool = False, first: Callable[[Any], None] | None = None
) -> AsyncIterator[Desk]:
    """A started worker, ended afterwards and known gone."""
    made = Desk(folder, Containment())
    try:
        with anyio.fail_after(2 * WAIT):
            async with anyio.create_task_group() as group:
                ready = await made.start(group, pinned, describe=describe)
                if first is not None:
                    first(ready)
                try:
                    yield made
                finally:
                    with anyio.CancelScope(shield=True):
                        await end(made.worker)
    finally:
        made.close()


@asynccontextmanager
async def python_desk(folder: Path, entry: str, name: str, version: int = 1) -> AsyncIterator[Desk]:
    """A worker of a Python workflow, described first and then run under its pinned contract."""
    described: list[Contract] = []
    asked = python_contract(entry, name, version)
    async with desk(folder, asked, describe=True, first=lambda ready: described.append(ready.contract)):
        pass
    for file in (folder / "workers").iterdir():
        file.unlink()
    async with desk(folder, described[0]) as made:
        yield made


def with_source(item: str, path: Path) -> Item:
    """An item listed from a file."""
    return Item(id=item, ordinal=0, source=Source(path=str(path)))


def alive(pid: int) -> bool:
    """True while a process of that number is there and no zombie."""
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False


def lines_of(descriptor: int, count: int) -> list[bytes]:
    """Exactly `count` lines from a pipe or socket; blocks until they are there."""
    raw = b""
    while raw.count(b"\n") < count:
        piece = os.read(descriptor, 4096)
        assert piece, f"ended after {raw!r}"
        raw += piece
    return raw.splitlines()
