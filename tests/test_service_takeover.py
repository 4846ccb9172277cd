"""Taking a store over: the one process that holds it is ended, a pid in use anew never is."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import eventually
from service_kit import BOTH, Service

from resumed.actors import containment
from resumed.actors.clock import SystemClock
from resumed.daemon import takeover
from resumed.schemas.errors import BusyError
from resumed.schemas.instant import Instant
from resumed.store import layout, lock
from resumed.store.layout import Layout

OURS = {"boot": containment.boot_id(), "pid": os.getpid(), "start": 1}
HOLD = """
import fcntl, sys
held = open(sys.argv[1], "r+")
fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Layout:
    return layout.create(tmp_path / "state", "id", Instant(wall=1, boot="b", up=1))


@pytest.fixture
def holder(store: Layout) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that holds the lock and hears nothing."""
    store.lock_file.touch(mode=0o600)
    command = [sys.executable, "-S", "-c", HOLD, str(store.lock_file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"held\n" == process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        yield process
        process.kill()


def named(store: Layout, **identity: Any) -> None:
    store.lock_file.write_text(json.dumps(identity))


def test_stopped_holder_is_ended(store: Layout, holder: "subprocess.Popen[bytes]") -> None:
    """Who the lock file names, by boot, pid and start time, is ended, and the lock is ours."""
    named(store, boot=OURS["boot"], pid=holder.pid, start=containment.start_time(holder.pid))
    held = takeover.hold(store, OURS, SystemClock())
    said = lock.holder(store)
    held.release()

    assert -signal.SIGKILL == holder.wait(5)
    assert said == OURS


STRANGERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "a pid in use anew": lambda pid: {"boot": OURS["boot"], "pid": pid, "start": 1},
    "another boot's": lambda pid: {"boot": "b", "pid": pid, "start": containment.start_time(pid)},
    "no number": lambda pid: {"boot": OURS["boot"], "pid": str(pid), "start": containment.start_time(pid)},
    "nobody": lambda pid: {},
    "a pid that is gone": lambda pid: {"boot": OURS["boot"], "pid": 2**22 - 1, "start": 1},
    "our own": lambda pid: OURS,
}


@pytest.mark.parametrize("case", STRANGERS)
def test_nobody_else_is_ended(case: str, store: Layout, holder: "subprocess.Popen[bytes]") -> None:
    """Whoever the lock file does not surely name is left alone, and the lock is waited for in vain."""
    identity = STRANGERS[case](holder.pid)
    named(store, **identity)
    with pytest.raises(BusyError, match=r"holds its lock, also after 0\.1 s of taking over"):
        takeover.hold(store, OURS, SystemClock(), 0.1)

    assert holder.poll() is None
    assert identity == lock.holder(store)


def test_longer_identity_is_written_over_whole(store: Layout) -> None:
    """The lock file has one width, so that nothing of an earlier holder's words is left, nor room needed."""
    lock.hold(store, {"boot": "b" * 200, "pid": 1, "start": 1}).release()
    size = store.lock_file.stat().st_size
    lock.hold(store, OURS).release()

    assert OURS == lock.holder(store)
    assert size == store.lock_file.stat().st_size


@pytest.mark.parametrize("backend", BOTH)
def test_stopped_daemon_is_taken_over(backend: str, tmp_path: Path) -> None:
    """A stopped daemon still holds its store: without the word 75, with it the jobs go on, none twice."""
    first = Service(tmp_path, backend)
    process = first.up()
    first.ask("submit", str(first.file("deaf", "deaf", {"a": ""})))
    eventually(lambda: os.stat(tmp_path / "deaf.files" / "a.up"))
    process.send_signal(signal.SIGSTOP)
    refused = subprocess.run(first.command(), capture_output=True, text=True, timeout=20)
    before = Path(tmp_path / "deaf.files" / "a.up").stat().st_mtime_ns
    second = first.up("--take-over")

    def again() -> None:
        assert before < Path(tmp_path / "deaf.files" / "a.up").stat().st_mtime_ns

    eventually(again)
    row = json.loads(first.ask("show", "deaf", "--json").stdout)["job"]["row"]
    second.kill()
    second.wait(20)
    first.kill()

    assert 75 == refused.returncode
    assert -signal.SIGKILL == process.wait(5)
    assert ("running", 2) == (row["status"], row["epoch"])
    assert f"The daemon with pid {process.pid} held the store" in first.said()
