"""The daemon's side of one worker process: start it, exchange frames with it, end it, know that it is gone.

It never decides what a frame means, and holds no stream, task or channel per frame: `send` writes to the
socket itself, and one reader hands every line that is there to `on_frame`.

The order that must hold: identity durable, then `open`, then any other frame; every frame the worker sent
handed over, then `on_gone`, once.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from resumed.schemas import framelines, frames
from resumed.schemas.errors import FaultyInputError, GoneError, ProtocolError
from resumed.schemas.workflow import PATH, Contract

from . import containment, readable
from .containment import Containment, Identity
from .controlgroups import Group
from .soon import soon
from .worker import keeper, surroundings

PROTOCOL = "protocol"
"""The code of the trouble that a worker of another protocol is, and of the hold of jobs that wait for it."""
MAX_WAITING = 64 * 1024 * 1024
"""Bytes kept for a worker that does not read; past it the worker is ended as faulty."""
_READ = 64 * 1024  # for more, each read would have its memory mapped and unmapped under all threads
_WRITE = 256 * 1024
_ROUNDS = 1024  # reads of what a worker left in its socket, far more than a socket holds
_LEAVING = 5.0  # how long a worker may live after it closed its socket
_STUCK = 10.0  # how long a keeper may take over a kill order before it is killed itself, then over that
ALL_GONE = (0, keeper.NOT_WRITTEN, keeper.NOT_JOINED)
"""A keeper's exit statuses that say that nothing below it lives."""

OnFrame = Callable[["WorkerProcess", frames.FromWorker], None]
OnFaulty = Callable[["WorkerProcess", FaultyInputError], None]
OnGone = Callable[["WorkerProcess", str, bool], None]


def environment(name: str, passed: tuple[str, ...] = ()) -> dict[str, str]:
    """What a worker's processes see: made here, never the daemon's own; the mark names them as ours.

    Variables that steps pass on to their programs are there under `surroundings.PASSED`, so that they mean
    nothing to the worker itself.
    """
    made = {"PATH": PATH, "LANG": "C.UTF-8", "TZ": "UTC", "HOME": "/"}
    kept = {key: os.environ[key] for key in ("LANG", "TZ", "HOME") if os.environ.get(key)}
    for_steps = {surroundings.PASSED + key: os.environ[key] for key in passed if key in os.environ}
    return made | kept | for_steps | {containment.MARK: name}


class WorkerProcess:
    """One worker under its keeper.

    `on_frame`, `on_faulty` and `on_gone` are called synchronously, in the loop; they must not raise.
    `workers` is the store's folder of that name. With
    `describe` the worker only says what contract its entry declares.
    """

    def __init__(
        self,
        *,
        name: str,
        contract: Contract,
        workers: Path,
        contained: Containment,
        on_frame: OnFrame,
        on_faulty: OnFaulty,
        on_gone: OnGone,
        describe: bool = False,
    ) -> None:
        self.name = name
        self.contract = contract
        self.slots = contract.slots
        self.ready = False
        self.gone = anyio.Event()
        self._describe = describe
        self._workers = workers
        self._contained = contained
        self._on_frame, self._on_faulty, self._on_gone = on_frame, on_faulty, on_gone
        self._received = bytearray()
        self._waiting = bytearray()
        self._faulty = False
        self._no_more = anyio.Event()
        self._ordered = False
        self._patience = anyio.CancelScope()
        """Ends the wait for a keeper that ignores a kill order."""
        self._ended = -1
        self._cgroup: Group | None = None
        self._starved = False

    async def start(self, group: anyio.abc.TaskGroup) -> None:
        """Start the worker and its tasks in `group`; OSError when the system or the disk refuses.

        When `group` is cancelled the worker is killed, and its end is still awaited and told.
        """
        await anyio.to_thread.run_sync(self._start)
        self._group = group
        group.start_soon(self._read)
        group.start_soon(self._watch)
        self.send(frames.Open(worker=self.name, contract=self.contract, describe=self._describe))

    def _start(self) -> None:
        self._cgroup = self._own_group()
        ours, theirs = socket.socketpair()
        self._lifeline, held = socket.socketpair()
        self._socket = ours
        self._socket.setblocking(False)
        interpreter = self.contract.interpreter or sys.executable
        command = [sys.executable, "-I", "-S", keeper.__file__, self.name, str(self._workers)]
        command += [str(held.fileno()), str(theirs.fileno())]
        command += [str(self._cgroup.procs()) if self._cgroup is not None else ""]
        command += [interpreter, "-I", "-m", "resumed.actors.worker.main"]

        def fork() -> int:
            self._keeper = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=environment(self.name, self.contract.passed),
                start_new_session=True,
                pass_fds=(held.fileno(), theirs.fileno()),
            )
            return self._keeper.pid

        try:
            self.pid = self._contained.start(fork)
            self._ended = os.pidfd_open(self.pid)
        except BaseException:
            self._close()
            self._drop_group()
            raise
        finally:
            held.close()
            theirs.close()
        self._record()

    def _own_group(self) -> Group | None:
        """A control group with the limits of its workflow, where some were delegated to the daemon."""
        if self._contained.groups is None:
            return None
        limits = self.contract.limits
        return self._contained.groups.make(self.name, limits.memory, limits.pids_most())

    def _drop_group(self) -> None:
        if self._cgroup is not None:
            self._cgroup.drop()

    def _record(self) -> None:
        identity = Identity(
            name=self.name,
            boot=containment.boot_id(),
            pid=self.pid,
            start=containment.start_time(self.pid) or 0,
            group=self.pid,
            workflow=self.contract.workflow,
            version=self.contract.version,
            cgroup=self._cgroup.path if self._cgroup is not None else "",
            space=self._cgroup.space if self._cgroup is not None else "",
        )
        try:
            containment.record(self._workers, identity)
        except BaseException:
            # It has had no frame: closing its pipe ends it, and nobody else knows its name.
            self._close()
            self._keeper.wait()
            self._contained.forget(self.pid)
            self._drop_group()
            raise

    def send(self, frame: frames.ToWorker) -> None:
        """Send a frame in the loop's next turn, or as soon as the worker reads; GoneError when it is gone.

        FaultyInputError when the frame is too large: nothing was sent.
        """
        raw = framelines.write(frame)
        if self.gone.is_set():
            raise GoneError(f"cannot send to worker {self.name}: it is gone")
        first = not self._waiting
        self._waiting += raw
        if first and self.slots == 1:
            # Nothing else will come for it in this turn.
            self._send_waiting()
        elif first:
            soon(self._group, self._send_waiting)
        if len(self._waiting) > MAX_WAITING:
            self._fault(FaultyInputError(f"cannot send to worker {self.name}", ("it reads no frames",)))

    def _send_waiting(self) -> None:
        """One call for all frames of a turn of the loop: each call gives the interpreter lock away."""
        if self._write_some() and self._waiting and not self.gone.is_set():
            self._group.start_soon(self._flush)

    async def _flush(self) -> None:
        while self._waiting:
            await anyio.wait_writable(self._socket)
            self._write_some()

    def _write_some(self) -> bool:
        """Write what the socket takes; False when there is nobody to write to."""
        try:
            sent = self._socket.send(memoryview(self._waiting)[:_WRITE]) if self._waiting else 0
        except BlockingIOError:
            return True
        except OSError:
            # It closed its end: `on_gone` follows.
            self._waiting.clear()
            return False
        del self._waiting[:sent]
        return True

    async def _read(self) -> None:
        try:
            await readable.watch(self._socket.fileno(), lambda: self._take() is not None)
        finally:
            self._no_more.set()
        with anyio.move_on_after(_LEAVING):
            await self.gone.wait()
        self.kill()

    def _take(self) -> bool | None:
        """Hand over what is there: True after bytes, False when there are none now, None at the end."""
        try:
            raw = self._socket.recv(_READ)
        except BlockingIOError:
            return False
        except OSError:
            return None
        if not raw:
            return None
        if self._faulty:
            return True  # read and dropped, so that a writer of rubbish cannot block its own end
        self._received += raw
        if b"\n" in raw:
            *lines, rest = self._received.split(b"\n")
            self._received = rest
            for line in lines:
                self._hand_over(bytes(line))
        if len(self._received) > framelines.MAX_FRAME:
            self._fault(FaultyInputError("cannot read a worker's frame", ("it has no end",)))
        return True

    def _hand_over(self, line: bytes) -> None:
        if self._faulty:
            return
        try:
            frame = framelines.read_from_worker(line)
        except ProtocolError as error:
            # Every worker of this interpreter would say so: not one that broke, but one that cannot be used.
            self._faulty = True
            self.kill()
            self._on_frame(self, frames.Trouble(code=PROTOCOL, reason=self._other_protocol(error)))
            return
        except FaultyInputError as error:
            self._fault(error)
            return
        if isinstance(frame, frames.Ready):
            if frame.worker != self.name or self.ready:
                self._fault(FaultyInputError("cannot read a worker's frame", ("a ready out of place",)))
                return
            if frame.contract != self.contract and not self._describe:
                why = "its contract is not the one it was asked to run"
                self._fault(FaultyInputError("cannot use a worker", (why,)))
                return
            self.ready = True
            self.contract, self.slots = frame.contract, frame.contract.slots
        self._on_frame(self, frame)

    def _other_protocol(self, error: ProtocolError) -> str:
        interpreter = self.contract.interpreter or sys.executable
        said = f"its worker speaks protocol {error.spoken!r}, this daemon {frames.PROTOCOL}"
        return f"{said}: {interpreter} has another release of resumed"

    def _fault(self, error: FaultyInputError) -> None:
        """A worker that breaks the protocol once is not listened to again, and ends."""
        if self._faulty or self.gone.is_set():
            return
        self._faulty = True
        self.kill()
        self._on_faulty(self, error)

    async def _watch(self) -> None:
        try:
            with self._patience:
                await anyio.wait_readable(self._ended)
        finally:
            # Also when the owner is cancelled: the worker ends with it, and its end is known and told.
            with anyio.CancelScope(shield=True):
                await self._finish()

    async def _finish(self) -> None:
        if self._keeper.poll() is None:
            self.kill()
            await self._wait_or_kill_keeper()
        status = self._keeper.poll()
        proven = False
        if status is not None:
            self._contained.forget(self.pid)
            proven = status in ALL_GONE or await self._contained.sweep()
        if self._cgroup is not None:
            self._starved = self._cgroup.ran_out_of_memory()
            # Whatever the keeper came to: an empty group is the proof, and one that is not is none.
            proven = await self._cgroup.end()
        # Nobody below writes any more, so what is in the socket now is all there ever was. Where that is not
        # proven, whoever still writes does not keep us.
        for _ in range(_ROUNDS):
            if not self._take():
                break
        self._waiting.clear()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        await self._no_more.wait()
        self.gone.set()
        self._close()
        self._on_gone(self, self._how(status), proven)

    async def _wait_or_kill_keeper(self) -> None:
        if not self._patience.cancel_called:
            with anyio.move_on_after(_STUCK):
                await anyio.wait_readable(self._ended)
                return
        # A keeper that is stopped or stuck takes its worker along when killed; orphans come to us.
        self._keeper.kill()
        with anyio.move_on_after(_STUCK):
            await anyio.wait_readable(self._ended)

    def _how(self, status: int | None) -> str:
        """One sentence about the end, from the keeper's own note where there is one."""
        if status is None:
            return "its keeper does not end, not even when killed"
        if status not in ALL_GONE:
            return f"its keeper ended with status {status}"
        try:
            note = json.loads((self._workers / f"{self.name}.gone").read_bytes())
        except (OSError, ValueError):
            return "it ended"
        ended = note.get("worker") or {}
        by = {"order": ", on the daemon's order", "lifeline": ", with its pipe"}.get(note.get("by"), "")
        by += ", out of the memory it may use" if self._starved else ""
        if "signal" in ended:
            return f"it was killed by signal {ended['signal']}{by}"
        return f"it ended with status {ended.get('exit')}{by}"

    def kill(self) -> None:
        """Order the keeper to end the worker and everything below it, at once; `on_gone` follows.

        A keeper that does not obey in time, stopped or stuck as it is, is killed itself.
        """
        try:
            self._lifeline.send(keeper.KILL_ORDER)
        except OSError:
            pass  # the keeper is ending already
        if not (self._ordered or self.gone.is_set()):
            self._ordered = True
            self._group.start_soon(self._insist)

    async def _insist(self) -> None:
        with anyio.move_on_after(_STUCK):
            await self.gone.wait()
        if not self.gone.is_set():
            self._patience.cancel()

    def stderr_tail(self, size: int = 2000) -> str:
        """The last bytes that the worker itself wrote to stdout or stderr, as text for people."""
        try:
            with open(self._workers / f"{self.name}.stderr", "rb") as written:
                written.seek(0, os.SEEK_END)
                written.seek(max(0, written.tell() - size))
                return written.read().decode(errors="replace")
        except OSError:
            return ""

    def forget(self) -> None:
        """Remove the files of a worker that is proven gone, once its end is committed."""
        containment.forget(self._workers, self.name)

    def _close(self) -> None:
        self._socket.close()
        self._lifeline.close()
        if self._ended >= 0:
            os.close(self._ended)
            self._ended = -1
