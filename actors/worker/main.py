"""The worker process: reads `open`, loads one workflow, then runs tries and answers each as it is ready.

`python -I -m resumed.actors.worker.main`, started by a keeper with its socket as descriptor 3. It never
reads or writes the store, and imports nothing of the author's before the first frame. A try is answered
only when, in a worker of one slot, every process below it is dead.

The loop is asyncio's own, used directly: authors may use anyio in it, and a try costs one task.
"""

import asyncio
import gc
import os
import socket
import stat
import sys
from collections import OrderedDict
from typing import Protocol

from resumed.schemas import framelines, frames
from resumed.schemas.decisions import Answer
from resumed.schemas.errors import AuthorError, FaultyInputError, ProtocolError
from resumed.schemas.job import Budget
from resumed.schemas.workflow import Contract

from . import errands, faulttext, keeper, sources
from .trial import Trial, TryStoppedError
from .wire import Wire

_PRINTED = 16 * 1024 * 1024  # what authors' code may print before the file starts anew
_REMEMBERED = 4096  # names of answered tries, so that a repeated `run` starts nothing

Key = tuple[str, int, str, int]


class Steps(Protocol):
    """A loaded workflow: what the worker runs tries of."""

    contract: Contract

    async def run(self, run: frames.Run, trial: Trial) -> Answer:
        """One handler's answer; TryStoppedError when it was stopped; may raise anything."""

    def tool(self, name: str) -> errands.Tool:
        """What sends and looks up an effect; AuthorError when the workflow has no such tool."""


class Worker:
    """One workflow on one socket, and its open tries."""

    def __init__(self, connection: socket.socket) -> None:
        self._wire = Wire(connection, self._line, self._end)
        self._steps: Steps | None = None
        self._alone = True
        self._open: dict[Key, Trial] = {}
        self._answered: OrderedDict[Key, None] = OrderedDict()
        self._closing = False
        self._fault: FaultyInputError | None = None
        self._over = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def serve(self) -> None:
        """Run what is asked until the daemon says `close` and all is answered, or closes its end."""
        await self._over.wait()
        await self._wire.sent()
        self._wire.close()
        if self._fault is not None:
            raise self._fault

    def _end(self) -> None:
        """The daemon closed its end: nobody will hear an answer, and the keeper ends what is left."""
        self._closing = True
        self._over.set()
        for trial in self._open.values():
            trial.stop(0.0)

    def _line(self, line: bytes) -> None:
        try:
            self._obey(line)
        except ProtocolError as error:
            said = f"the daemon speaks protocol {error.spoken!r}, this worker {frames.PROTOCOL}"
            reason = f"{said}: {sys.executable} has another release of resumed"
            self._give_up(frames.Trouble(code="protocol", reason=reason))
        except FaultyInputError as error:
            # The loop would only log it: a daemon that cannot be understood is not worked for.
            self._fault = error
            self._end()

    def _obey(self, line: bytes) -> None:
        frame = framelines.read_to_worker(line)
        if isinstance(frame, frames.Run):
            self._run(frame)
        elif isinstance(frame, frames.Stop):
            self._stop(frame)
        elif isinstance(frame, frames.Open):
            self._load(frame)
        else:
            self._closing = True
            self._end_if_idle()

    def _load(self, opened: frames.Open) -> None:
        if self._steps is not None:
            raise FaultyInputError("cannot read the daemon's frame", ("a second open",))
        try:
            self._steps = load(opened)
        except BaseException as error:  # noqa: BLE001  an author's module may do anything when imported
            ours = isinstance(error, AuthorError | FaultyInputError)
            reason = faulttext.clean(str(error)) if ours else faulttext.of(error)
            self._give_up(frames.Trouble(code="contract" if ours else "import", reason=reason))
            return
        # What is loaded stays: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000)
        self._alone = self._steps.contract.slots == 1
        self._wire.gather = not self._alone
        self._wire.send(framelines.write(frames.Ready(worker=opened.worker, contract=self._steps.contract)))

    def _give_up(self, trouble: frames.Trouble) -> None:
        """Nothing is ever run: say why, and end."""
        self._wire.send(framelines.write(trouble))
        self._closing = True
        self._over.set()

    def _run(self, run: frames.Run) -> None:
        key = (run.job, run.epoch, run.item, run.number)
        if self._closing or key in self._open or key in self._answered:
            return
        if self._steps is None:
            raise FaultyInputError("cannot read the daemon's frame", ("a run before open",))
        trial = self._open[key] = Trial()
        trial.task = self._loop.create_task(self._try(self._steps, run, key, trial))

    def _stop(self, stop: frames.Stop) -> None:
        key = (stop.job, stop.epoch, stop.item, stop.number)
        trial = self._open.get(key)
        if trial is not None:
            trial.stop(stop.grace)
            if not trial.started:
                # A task that is cancelled before its first step never runs a line of ours.
                self._answer(key, _stopped(key))
        elif key not in self._answered:
            # Its `run` never came, or comes later: it will start nothing.
            self._answer(key, _stopped(key))

    async def _try(self, steps: Steps, run: frames.Run, key: Key, trial: Trial) -> None:
        trial.started = True
        answer: frames.FromWorker
        try:
            if run.call is not None:
                contract = steps.contract.tool(run.call.tool)
                given = await errands.answered(contract, steps.tool(run.call.tool), run, trial)
            else:
                given = await sources.answered(steps, run, trial)
            answer = frames.Returned(job=key[0], epoch=key[1], item=key[2], number=key[3], answer=given)
        except TryStoppedError:
            answer = _stopped(key, trial.used)
        except BaseException as error:
            # All of it is the author's, SystemExit included.
            if isinstance(error, GeneratorExit) and self._over.is_set():
                raise  # the loop lets go of what is left of us; before that it is the author's like the rest
            stopped = trial.asked and isinstance(error, asyncio.CancelledError)
            answer = _stopped(key, trial.used) if stopped else _raised(key, error)
        if self._alone and keeper.has_children():
            keeper.end_descendants()
        self._answer(key, answer)

    def _answer(self, key: Key, frame: frames.FromWorker) -> None:
        _bound_stderr()
        self._open.pop(key, None)
        self._answered[key] = None
        if len(self._answered) > _REMEMBERED:
            self._answered.popitem(last=False)
        try:
            raw = framelines.write(frame)
        except (FaultyInputError, TypeError, ValueError) as error:
            raw = framelines.write(_raised(key, error))
        self._wire.send(raw)
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._closing and not self._open:
            self._over.set()


def _stopped(key: Key, used: Budget | None = None) -> frames.Stopped:
    return frames.Stopped(job=key[0], epoch=key[1], item=key[2], number=key[3], used=used)


def _raised(key: Key, error: BaseException) -> frames.Raised:
    text = faulttext.of(error)
    return frames.Raised(job=key[0], epoch=key[1], item=key[2], number=key[3], error=text)


def _bound_stderr() -> None:
    """A handler that prints for months must not fill the disk: past a bound its file starts anew."""
    try:
        found = os.fstat(2)
        if stat.S_ISREG(found.st_mode) and found.st_size > _PRINTED:
            os.ftruncate(2, 0)
    except OSError:
        pass


def load(opened: frames.Open) -> Steps:
    """The workflow that the first frame names; the author's module is imported here and not before."""
    if opened.contract.entry:
        from . import steps

        return steps.load(opened.contract, opened.describe)
    from . import programs

    return programs.load(opened.contract)


async def serve(connection: socket.socket) -> None:
    """Be a worker on this socket until it is over."""
    await Worker(connection).serve()


def main() -> int:
    """Serve the daemon at the other end of descriptor 3."""
    os.set_inheritable(keeper.WORKER_SOCKET, False)
    keeper.become_subreaper()
    asyncio.run(serve(socket.socket(fileno=keeper.WORKER_SOCKET)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
