"""A kill of daemon, keeper or worker at any moment: two attempts of one item never run at the same time."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve
from worker_kit import HERE, WAIT, one_step

from resumed.actors import containment
from resumed.actors.containment import Identity
from resumed.schemas import codec

pytestmark = pytest.mark.parametrize("backend", ["asyncio", "trio"])

# Appends its attempt to a file all the time, in a session of its own; says so once through a FIFO.
WITNESS = (
    'trap "" TERM HUP INT; '
    'setsid sh -c \'echo "$RESUMED_ATTEMPT" >> "$1"; echo up > "$2"; '
    'while echo "$RESUMED_ATTEMPT" >> "$1"; do :; done\' sh "$1" "$2" & wait'
)


class Daemon:
    """One run of the drill daemon."""

    def __init__(self, backend: str, folder: Path, name: str, attempt: int, drill: str = "wait") -> None:
        self.fifo = folder / "fifo"
        if not self.fifo.exists():
            os.mkfifo(self.fifo)
        (folder / "workers").mkdir(exist_ok=True)
        contract = one_step("sh", "-c", WITNESS, "sh", str(folder / "witness"), str(self.fifo))
        command = [sys.executable, str(HERE / "worker_daemon.py"), backend, str(folder / "workers"), name]
        command += [codec.encode(contract).decode(), str(attempt), drill]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def told(self) -> dict[str, Any]:
        """The next thing it says."""
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def stands(self) -> None:
        """Wait until the program is at work."""
        with open(self.fifo) as fifo:
            assert "up\n" == fifo.readline()

    def go_on(self) -> None:
        """Let the daemon do its drill."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """Kill it, if it lives, and let go of its pipes."""
        self.process.kill()
        self.process.communicate(timeout=WAIT)


@contextmanager
def daemon(backend: str, folder: Path, name: str, attempt: int, drill: str = "wait") -> Iterator[Daemon]:
    """A drill daemon."""
    made = Daemon(backend, folder, name, attempt, drill)
    try:
        yield made
    finally:
        made.close()


def attempts(witness: Path) -> list[int]:
    """The attempts that wrote, in order, each change once."""
    found: list[int] = []
    for line in witness.read_text().split():
        if not found or found[-1] != int(line):
            found.append(int(line))
    return found


def test_killed_daemon_leaves_no_worker(backend: str, tmp_path: Path) -> None:
    """C41 c: after a KILL of the daemon the old process is gone before the next attempt writes a line."""
    with daemon(backend, tmp_path, "w1", 1) as first:
        assert {"settled": {}} == first.told()
        first.stands()
        first.process.send_signal(signal.SIGKILL)
        with daemon(backend, tmp_path, "w2", 2) as second:
            assert {"settled": {"w1": [True, "its keeper ended it", 0]}} == second.told()
            second.stands()

    assert [1, 2] == attempts(tmp_path / "witness")
    assert not (tmp_path / "workers" / "w1.json").exists()


def test_stopped_daemon_does_not_fool_its_successor(backend: str, tmp_path: Path) -> None:
    """A daemon that is only stopped still holds its workers: they are reported, never taken for gone."""
    with daemon(backend, tmp_path, "w1", 1) as first:
        first.told()
        keeper = first.told()["keeper"]
        first.stands()
        first.process.send_signal(signal.SIGSTOP)
        verdict = anyio.run(containment.settle, tmp_path / "workers", 0.2, backend=backend)["w1"]
        first.process.send_signal(signal.SIGKILL)

        assert not verdict.proven
        assert keeper in [remain.pid for remain in verdict.remains]
    assert anyio.run(containment.settle, tmp_path / "workers", WAIT, backend=backend)["w1"].proven


@pytest.mark.parametrize("drill", ["kill keeper", "stop keeper", "stop keeper and worker"])
def test_daemon_ends_what_a_killed_keeper_leaves(drill: str, backend: str, tmp_path: Path) -> None:
    """A keeper that was killed, or is deaf to a kill order, leaves orphans to the daemon: proven dead too."""
    with daemon(backend, tmp_path, "w1", 1, drill) as only:
        only.told()
        only.told()
        only.stands()
        only.go_on()
        told = only.told()

        assert {"gone": "its keeper ended with status -9", "proven": True, "remains": 0} == told


def test_keeper_and_daemon_killed_together_is_a_hold(backend: str, tmp_path: Path) -> None:
    """With nobody left who could know, nothing is claimed: unproven, and what bears the mark is named."""
    with daemon(backend, tmp_path, "w1", 1) as only:
        only.told()
        keeper = only.told()["keeper"]
        only.stands()
        only.process.send_signal(signal.SIGSTOP)
        os.kill(keeper, signal.SIGKILL)
        only.process.send_signal(signal.SIGKILL)
        only.process.wait(WAIT)
        verdict = anyio.run(containment.settle, tmp_path / "workers", WAIT, backend=backend)["w1"]
        for remain in verdict.remains:
            os.kill(remain.pid, signal.SIGKILL)

        assert (False, "its keeper was killed") == (verdict.proven, verdict.how)
        assert any("while echo" in remain.command for remain in verdict.remains)
        assert (tmp_path / "workers" / "w1.json").exists()


def test_records_of_other_boots_prove_themselves(backend: str, tmp_path: Path) -> None:
    """Nothing of another boot lives; a pid that now means another process proves nothing by itself."""
    workers = tmp_path / "workers"
    workers.mkdir()
    ours = Identity(
        name="w1",
        boot=containment.boot_id(),
        pid=os.getpid(),
        start=(containment.start_time(os.getpid()) or 0) - 1,
        group=1,
        workflow="flow",
        version=1,
    )
    containment.record(workers, ours)
    containment.record(workers, evolve(ours, name="w2", boot="another"))
    (workers / "w3.json").write_text("{")
    started = time.monotonic()
    found = anyio.run(containment.settle, workers, WAIT, backend=backend)

    assert {"w1": False, "w2": True, "w3": False} == {name: verdict.proven for name, verdict in found.items()}
    assert "its keeper was killed" == found["w1"].how
    assert "its record is damaged" == found["w3"].how
    assert time.monotonic() - started < WAIT / 2
    assert ["w1.json", "w3.json"] == sorted(path.name for path in workers.iterdir())
