"""The worker process: reads `open`, loads one workflow, then runs tries and answers each as it is ready.

`python -I -m resumed.actors.worker.main`, started by a keeper with its socket as descriptor 3. It
never reads or writes the store, and imports nothing of the author's before the first frame. A try is
answered only when, in a worker of one slot, every process below it is dead.
"""

import os
import socket
import sys
from collections import OrderedDict
from typing import Protocol

import anyio
import anyio.abc

from resumed.schemas import frames
from resumed.schemas.decisions import Answer
from resumed.schemas.errors import AuthorError, FaultyInputError
from resumed.schemas.workflow import Contract

from . import faulttext, keeper
from .trial import Trial, TryStoppedError
from .wire import Wire

_REMEMBERED = 4096  # names of answered tries, so that a repeated `run` starts nothing

Key = tuple[str, int, str, int]


class Steps(Protocol):
    """A loaded workflow: what the worker runs tries of."""

    contract: Contract

    async def run(self, run: frames.Run, trial: Trial) -> Answer:
        """One handler's answer; TryStoppedError when it was stopped; may raise anything."""


def _key(frame: frames.Run | frames.Stop) -> Key:
    return frame.job, frame.epoch, frame.item, frame.number


class Worker:
    """The open tries of one loaded workflow."""

    def __init__(self, wire: Wire, steps: Steps) -> None:
        self._wire = wire
        self._steps = steps
        self._alone = steps.contract.slots == 1
        self._open: dict[Key, Trial] = {}
        self._answered: OrderedDict[Key, None] = OrderedDict()
        self._closing = False

    async def serve(self, lines: list[bytes] | None) -> None:
        """Run what is asked until the daemon says `close` and all is answered, or closes its end."""
        async with anyio.create_task_group() as group:
            self._group = group
            while lines is not None:
                for line in lines:
                    self._obey(frames.read_to_worker(line))
                if self._closing and not self._open:
                    await self._wire.flush()
                    break
                lines = await self._wire.lines()
            self._closing = True
            group.cancel_scope.cancel()

    def _obey(self, frame: frames.ToWorker) -> None:
        if isinstance(frame, frames.Run):
            key = _key(frame)
            if key not in self._open and key not in self._answered:
                trial = self._open[key] = Trial()
                self._group.start_soon(self._try, frame, key, trial)
        elif isinstance(frame, frames.Stop):
            self._stop(frame)
        elif isinstance(frame, frames.Close):
            self._closing = True

    def _stop(self, stop: frames.Stop) -> None:
        key = _key(stop)
        if trial := self._open.get(key):
            trial.stop(stop.grace)
        elif key not in self._answered:
            # Its `run` never came, or comes later: it will start nothing.
            self._answer(key, self._stopped(key))

    async def _try(self, run: frames.Run, key: Key, trial: Trial) -> None:
        answer: frames.FromWorker = self._stopped(key)
        with trial.scope:
            try:
                answer = self._returned(key, await self._steps.run(run, trial))
            except GeneratorExit:
                raise
            except TryStoppedError:
                pass
            except BaseException as error:
                if isinstance(error, anyio.get_cancelled_exc_class()) and (
                    trial.scope.cancel_called or self._closing
                ):
                    raise
                # Everything else is the author's, SystemExit included: it ends this try and no other.
                answer = self._raised(key, error)
        if self._alone and keeper.has_children():
            keeper.end_descendants()
        del self._open[key]
        self._answer(key, answer)
        if self._closing and not self._open:
            await self._wire.flush()
            self._group.cancel_scope.cancel()

    def _answer(self, key: Key, frame: frames.FromWorker) -> None:
        self._answered[key] = None
        if len(self._answered) > _REMEMBERED:
            self._answered.popitem(last=False)
        try:
            raw = frames.write(frame)
        except (FaultyInputError, TypeError, ValueError) as error:
            raw = frames.write(self._raised(key, error))
        self._wire.send(raw, self._group)

    @staticmethod
    def _returned(key: Key, answer: Answer) -> frames.Returned:
        return frames.Returned(job=key[0], epoch=key[1], item=key[2], number=key[3], answer=answer)

    @staticmethod
    def _stopped(key: Key) -> frames.Stopped:
        return frames.Stopped(job=key[0], epoch=key[1], item=key[2], number=key[3])

    @staticmethod
    def _raised(key: Key, error: BaseException) -> frames.Raised:
        return frames.Raised(job=key[0], epoch=key[1], item=key[2], number=key[3], error=faulttext.of(error))


def load(opened: frames.Open) -> Steps:
    """The workflow that the first frame names; the author's module is imported here and not before."""
    if opened.contract.entry:
        from . import authors

        return authors.load(opened.contract, opened.describe)
    from . import programs

    return programs.load(opened.contract)


async def serve(connection: socket.socket) -> None:
    """Be a worker on this socket until it is over."""
    wire = Wire(connection)
    lines = await wire.lines()
    if lines is None:
        return
    first = frames.read_to_worker(lines[0])
    if not isinstance(first, frames.Open):
        raise FaultyInputError("cannot start a worker", ("the first frame is not open",))
    async with anyio.create_task_group() as group:
        try:
            steps = load(first)
        except BaseException as error:  # noqa: BLE001  an author's module may do anything when imported
            code = "contract" if isinstance(error, AuthorError) else "import"
            reason = str(error) if isinstance(error, AuthorError) else faulttext.of(error)
            wire.send(frames.write(frames.Trouble(code=code, reason=faulttext.clean(reason))), group)
            return
        wire.send(frames.write(frames.Ready(worker=first.worker, contract=steps.contract)), group)
    await Worker(wire, steps).serve(lines[1:])


def main() -> int:
    """Serve the daemon at the other end of descriptor 3."""
    os.set_inheritable(keeper.WORKER_SOCKET, False)
    keeper.become_subreaper()
    connection = socket.socket(fileno=keeper.WORKER_SOCKET)
    anyio.run(serve, connection)
    return 0


if __name__ == "__main__":
    sys.exit(main())
