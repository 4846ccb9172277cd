"""The keeper of one worker process: it ends every process below it, proves that, and writes `NAME.gone`.

Run by file path as `python -I -S keeper.py NAME FOLDER LIFELINE SOCKET GROUP ARGV...`, GROUP being the
`cgroup.procs` to join or empty: standard library only, so that it starts in a few milliseconds and breaks
with no installation. It never reads a frame, never opens a file of the store but `FOLDER/NAME.gone` and
`FOLDER/NAME.stderr`, and never lives on without its worker.

The order that must hold: in its group and a sub-reaper before the fork; every descendant reaped before
`NAME.gone`; its sync before the keeper's own end. `NAME.gone` is therefore the proof, whatever its text says.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
from typing import NoReturn

PDEATHSIG, SUBREAPER, NO_NEW_PRIVS = 1, 36, 38  # linux/prctl.h
WALL = 0x40000000  # linux/wait.h: also children whose exit signal is not SIGCHLD
KILL_ORDER = b"k"
WORKER_SOCKET = 3
NOT_WRITTEN = 3
"""The keeper's exit status when all is gone and only the writing of `NAME.gone` failed."""
NOT_JOINED = 4
"""The keeper's exit status when it could not join its control group, and so started nothing."""
DEAF_TO = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def control(option: int, argument: int) -> None:
    """One `prctl` that must succeed; OSError when the kernel refuses it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, argument, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"cannot set prctl {option}: {os.strerror(number)}")


def become_subreaper() -> None:
    """From here on orphans below this process become its own children."""
    control(SUBREAPER, 1)


def children() -> list[int]:
    """The direct children of this process, dead ones that are not reaped yet included.

    Asked of each thread, since a child belongs to the thread that forked it.
    """
    found: list[int] = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/children", "rb") as listing:
                found += map(int, listing.read().split())
        except FileNotFoundError:
            continue  # the thread ended; its children now stand under another, seen in the next round
    return found


def has_children() -> bool:
    """False only when this process has no child of any kind."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | WALL)
    except ChildProcessError:
        return False
    return True


def end_descendants(known: int = 0) -> int | None:
    """Kill and reap everything below this process; returns the wait status of the child `known`, if any.

    Only direct children are killed: their pids cannot be used anew before this thread reaps them. What dies
    leaves its own children to us, the sub-reaper, so each round goes one level down, and a tree that forks
    faster than it is killed still loses its root each time. ECHILD is the proof.
    """
    status: int | None = None
    while True:
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            # Blocks for one only: a child listed above is dying, and one that is not came by a death.
            pid, ended = os.waitpid(-1, WALL)
            while pid:
                if pid == known:
                    status = ended
                pid, ended = os.waitpid(-1, WALL | os.WNOHANG)
        except ChildProcessError:
            return status


def deaf() -> None:
    """Handlers, not SIG_IGN: a worker would inherit that over its exec, and with it be deaf itself."""
    for number in DEAF_TO:
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, {signal.SIGCHLD})


def open_stderr(folder: str, name: str) -> None:
    """What the worker itself, and this keeper, print goes to `NAME.stderr`, for people and error messages."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    descriptor = os.open(f"{folder}/{name}.stderr", flags, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)


def join(group: str) -> bool:
    """Move this process into a control group, and with it all that it will start."""
    try:
        procs = os.open(group, os.O_WRONLY | os.O_CLOEXEC)
        os.write(procs, b"0")
        os.close(procs)
    except OSError as error:
        os.write(2, f"cannot join {group}: {error}\n".encode(errors="replace"))
        return False
    return True


def become_worker(socket: int, argv: list[str], keeper: int) -> NoReturn:
    """In the child: a session of its own, no way to new privileges, one inherited socket, then exec."""
    try:
        os.setsid()
        control(PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(125)  # the keeper died before the line above, so its signal never comes
        control(NO_NEW_PRIVS, 1)
        for number in DEAF_TO:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.dup2(socket, WORKER_SOCKET, inheritable=True)
        os.closerange(WORKER_SOCKET + 1, os.sysconf("SC_OPEN_MAX"))
        os.execve(argv[0], argv, os.environ)
    except BaseException as error:  # noqa: BLE001  nothing above may return into the keeper's own code
        os.write(2, f"cannot start the worker: {error}\n".encode(errors="replace"))
    os._exit(126)


def watch(lifeline: int, worker: int) -> str:
    """Wait for a reason to end everything: `itself`, `order`, or `lifeline` (the daemon is gone)."""
    ended = os.pidfd_open(worker)
    waiting = select.poll()
    waiting.register(lifeline, select.POLLIN)
    waiting.register(ended, select.POLLIN)
    ready = {descriptor for descriptor, _ in waiting.poll()}
    if ended in ready:
        return "itself"
    return "order" if os.read(lifeline, 1) == KILL_ORDER else "lifeline"


def write_gone(folder: str, name: str, by: str, status: int | None) -> bool:
    """Create `NAME.gone`; a kill in here leaves a shorter file, and that it exists is what counts."""
    how = "null"
    if status is not None:
        code = os.waitstatus_to_exitcode(status)
        how = f'{{"signal": {-code}}}' if code < 0 else f'{{"exit": {code}}}'
    try:
        gone = os.open(f"{folder}/{name}.gone", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.write(gone, f'{{"by": "{by}", "worker": {how}}}\n'.encode())
        os.fsync(gone)
        os.close(gone)
        parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fsync(parent)
        os.close(parent)
    except OSError as error:
        os.write(2, f"cannot write {name}.gone: {error}\n".encode(errors="replace"))
        return False
    return True


def main(argv: list[str]) -> int:
    """Keep one worker; the exit status is 0, or NOT_WRITTEN, and both mean that all below is gone."""
    name, folder, lifeline, socket, group, *command = argv
    deaf()
    open_stderr(folder, name)
    if group and not join(group):
        return NOT_JOINED
    become_subreaper()
    keeper = os.getpid()
    worker = os.fork()
    if worker == 0:
        become_worker(int(socket), command, keeper)
    os.close(int(socket))
    by = watch(int(lifeline), worker)
    status = end_descendants(worker)
    return 0 if write_gone(folder, name, by, status) else NOT_WRITTEN


if __name__ == "__main__":
    # Without the interpreter's own shutdown: nothing of it is needed, and nothing may go wrong in it.
    os._exit(main(sys.argv[1:]))
