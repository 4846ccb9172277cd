"""One run of one program: its own session, its output drained at all times, its whole tree gone at the end.

It decides nothing about items: it says how the program ended and what it printed. No shell is involved.
The order that must hold: the program ended, then all its descendants killed and reaped, then what is left
in the pipes read, then the answer; so a grandchild that holds a pipe delays nothing.
"""

import contextlib
import fcntl
import io
import os
import signal
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime

import anyio
import anyio.lowlevel
from attrs import field, frozen

from . import keeper
from .runlog import RunLog
from .trial import Trial, TryStoppedError

_PIPE = 1024 * 1024  # Linux's own limit for ordinary users
_AT_ONCE = 64 * 1024
_ROUNDS = 16  # reads before the loop gets its turn again
_TAIL = 4096
_MEMORY = 1024 * 1024
"""Bytes of an output that are kept in memory where it may also be kept in a file."""
_LINE = 300


@frozen(kw_only=True)
class Call:
    """What to run. `keep` is how many bytes of stdout are kept; 0 where another file is the output.

    With `spool`, the path of a file that may be made, more of them than fit memory well are kept there.

    `silence` is how many seconds it may print nothing, 0 for any; `grace` how many it has to end then.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(factory=dict)
    stdin: bytes = b""
    folder: str
    keep: int = 0
    spool: str = ""
    silence: float = 0.0
    grace: float = 10.0


@frozen(kw_only=True)
class Ended:
    """How a program ended: an exit status, or minus the signal. `stdout` is cut at `keep` bytes; with
    `spooled` it is in the file that was named for it.

    `silent` when it was ended since it printed nothing for too long; `last_line` is what it said before that.
    """

    status: int
    stdout: bytes
    printed: int
    last_line: str
    silent: bool = False
    spooled: bool = False


class NotStartedError(OSError):
    """The program could not be started: nothing of it ran."""


class _Pipe:
    """One of a program's outputs: what is read of it goes to the log, a part of it is kept."""

    def __init__(self, descriptor: int, log: RunLog, keep: int, tail: int, spool: str = "") -> None:
        os.set_blocking(descriptor, False)
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE)
        self._descriptor = descriptor
        self._log = log
        self._keep = keep
        self._tail = tail
        self._spool = spool
        self._file: io.FileIO | None = None
        self.kept = bytearray()
        self.size = 0
        self.heard = anyio.current_time()
        """When it printed last."""

    def take(self) -> bool:
        """Read what is there, up to a bound; False at the end of the stream."""
        for _ in range(_ROUNDS):
            try:
                raw = os.read(self._descriptor, _AT_ONCE)
            except BlockingIOError:
                return True
            if not raw:
                return False
            self._log.write(raw)
            self.size += len(raw)
            self.heard = anyio.current_time()
            if self._tail:
                self.kept += raw
                del self.kept[: -self._tail]
            else:
                self._hold(raw[: max(0, self._keep - (self.size - len(raw)))])
        return True

    def _hold(self, raw: bytes) -> None:
        self.kept += raw
        if self._spool and (self._file is not None or len(self.kept) > _MEMORY):
            if self._file is None:
                self._file = io.FileIO(self._spool, "w")
            left = memoryview(self.kept)
            while left:
                left = left[self._file.write(left) :]
            left.release()
            self.kept = bytearray()

    def close(self) -> bool:
        """No more comes; True where what was kept is in the file."""
        if self._file is None:
            return False
        self._file.close()
        return True

    async def pump(self) -> None:
        while True:
            await anyio.wait_readable(self._descriptor)
            if not self.take():
                return
            await anyio.lowlevel.checkpoint()

    def drain(self) -> None:
        """Read the rest once every process that could write is dead."""
        size = -1
        while size != self.size:
            size = self.size
            if not self.take():
                return

    def last_line(self) -> str:
        lines = (
            self._log.clean(bytes(self.kept)).decode("utf-8", "replace").replace("\x00", "\ufffd").split("\n")
        )
        return next((line.strip()[-_LINE:] for line in reversed(lines) if line.strip()), "")


def _start(call: Call) -> "subprocess.Popen[bytes]":
    stdin = os.memfd_create("stdin") if call.stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if call.stdin:
            with open(stdin, "wb", closefd=False) as file:
                file.write(call.stdin)
            os.lseek(stdin, 0, os.SEEK_SET)
        return subprocess.Popen(
            call.argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=call.folder,
            env=dict(call.env),
            start_new_session=True,
            bufsize=0,
        )
    finally:
        os.close(stdin)


async def run(call: Call, log: RunLog, trial: Trial) -> Ended:
    """Run a program to its end; NotStartedError when it cannot be, TryStoppedError when it was stopped.

    Only for workers that run one try at a time: every descendant of this process is dead afterwards.
    """
    try:
        process = _start(call)
    except OSError as error:
        raise NotStartedError(error.errno, error.strerror, error.filename) from None
    assert process.stdout is not None
    assert process.stderr is not None
    out = _Pipe(process.stdout.fileno(), log, call.keep, 0, call.spool)
    err = _Pipe(process.stderr.fileno(), log, 0, _TAIL)
    ended = os.pidfd_open(process.pid)
    stopped = silent = False
    said = ""

    asked = anyio.Event()
    trial.on_stop = asked.set

    async def end_it(grace: float) -> None:
        _signal_group(process.pid, signal.SIGTERM)
        await anyio.sleep(grace)
        process.kill()

    async def stop_when_asked() -> None:
        nonlocal stopped
        await asked.wait()
        stopped = True
        await end_it(trial.grace)

    async def stop_when_silent() -> None:
        nonlocal silent, said
        until = max(out.heard, err.heard) + call.silence
        while until > anyio.current_time():
            await anyio.sleep_until(until)
            until = max(out.heard, err.heard) + call.silence
        silent, said = True, err.last_line()
        await end_it(call.grace)

    try:
        async with anyio.create_task_group() as group:
            for task in (out.pump, err.pump, stop_when_asked):
                group.start_soon(task)
            if call.silence:
                group.start_soon(stop_when_silent)
            await anyio.wait_readable(ended)
            group.cancel_scope.cancel()
    finally:
        # Whatever happened above, nothing of the program outlives the try.
        trial.on_stop = None
        os.close(ended)
        _reap(process)
        out.drain()
        err.drain()
        process.stdout.close()
        process.stderr.close()
        spooled = out.close()
    why = "stopped: " if stopped else f"silent for {call.silence:g} s: " if silent else ""
    log.note(f"{why}{spell(process.returncode)}")
    if stopped:
        raise TryStoppedError
    return Ended(
        status=process.returncode,
        stdout=bytes(out.kept),
        printed=out.size,
        last_line=said if silent else err.last_line(),
        silent=silent,
        spooled=spooled,
    )


def _signal_group(pid: int, number: signal.Signals) -> None:
    # The leader is not reaped yet, so its number cannot mean another group.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _reap(process: "subprocess.Popen[bytes]") -> None:
    status = process.poll()
    found = keeper.end_descendants(process.pid)
    if status is None:
        # Set by hand: subprocess must never wait for a number that may belong to another process by now.
        process.returncode = os.waitstatus_to_exitcode(found) if found is not None else -signal.SIGKILL


def stamped(text: str) -> str:
    """A header line for the log, with the wall clock's time of now."""
    return f"{text[:300]} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def spell(status: int) -> str:
    """How a program ended, in the words of reasons and codes: `exit 3`, `signal 9`."""
    return f"signal {-status}" if status < 0 else f"exit {status}"
