"""The keeper ends every process below it, whatever those do, and `NAME.gone` is there only afterwards."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from worker_kit import WAIT, alive, lines_of

from resumed.actors import containment
from resumed.actors.worker import keeper

# Each is a worker that says `here PID` on its socket for every process it leaves behind.
SAY = "import os, signal, sys, time\ndef say(): os.write(3, b'here %d\\n' % os.getpid())\n"
STAY = "say()\nwhile True: signal.pause()\n"
DRILLS = {
    "one child": (2, "os.fork()\n" + STAY),
    "a double fork": (2, "if os.fork() == 0:\n    if os.fork(): os._exit(0)\n" + STAY),
    "a session of its own": (
        2,
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n" + STAY,
    ),
    "a chain of thirty forks": (31, "for _ in range(30):\n    if os.fork(): break\n" + STAY),
    "a broad family": (32, "for _ in range(5): os.fork()\n" + STAY),
    "deaf to every signal": (
        2,
        "for n in set(signal.Signals) - {9, 19}: signal.signal(n, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_SETMASK, signal.Signals)\nos.fork()\n" + STAY,
    ),
    "children nobody waits for": (
        1,
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nos.fork() or os._exit(0)\n" + STAY,
    ),
}
ORPHANS = """
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        say()
        while True: signal.pause()
os.read(3, 1)
os._exit(5)
"""
# Four families that replace themselves as fast as they can: each process lives for one fork.
BOMB = (
    """
end = time.monotonic() + 5
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        say()
        while time.monotonic() < end:
            if os.fork(): os._exit(0)
        os._exit(0)
"""
    + STAY
)


class Kept:
    """A keeper with a script as its worker."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        self.heard, theirs = socket.socketpair()
        self.lifeline, held = socket.socketpair()
        command = [sys.executable, "-I", "-S", keeper.__file__, "w1", str(folder), str(held.fileno())]
        command += [str(theirs.fileno()), "", sys.executable, "-I", "-S", "-c", SAY + script]
        env = {"PATH": os.environ["PATH"], containment.MARK: "w1"}
        self.process = subprocess.Popen(
            command, env=env, start_new_session=True, pass_fds=(held.fileno(), theirs.fileno())
        )
        held.close()
        theirs.close()

    def pids(self, count: int) -> list[int]:
        """The processes that are in place."""
        return [int(line.split()[1]) for line in lines_of(self.heard.fileno(), count)]

    def end(self) -> dict[str, object]:
        """What the keeper wrote, once it has ended in good order."""
        assert 0 == self.process.wait(WAIT)
        note: dict[str, object] = json.loads((self.folder / "w1.gone").read_bytes())
        return note


@contextmanager
def kept(folder: Path, script: str) -> Iterator[Kept]:
    """A keeper, killed at the end whatever happened."""
    made = Kept(folder, script)
    try:
        yield made
    finally:
        made.lifeline.close()
        made.heard.close()
        made.process.wait(WAIT)


@pytest.mark.parametrize("drill", DRILLS)
def test_keeper_ends_everything_when_its_pipe_closes(drill: str, tmp_path: Path) -> None:
    """C41: when the daemon is gone, no process below its worker lives on, wherever it hid."""
    count, script = DRILLS[drill]
    with kept(tmp_path, script) as family:
        pids = family.pids(count)
        family.lifeline.close()
        family.end()

        assert [] == [pid for pid in pids if alive(pid)]
        assert () == containment.remains_of("w1")


def test_keeper_ends_families_that_fork_faster_than_they_are_killed(tmp_path: Path) -> None:
    """C41: a tree that forks for ever loses its root each time, and in the end the last of it."""
    with kept(tmp_path, BOMB) as family:
        family.pids(5)
        family.lifeline.send(keeper.KILL_ORDER)
        family.end()

        assert () == containment.remains_of("w1")


def test_keeper_ends_what_a_worker_leaves_behind(tmp_path: Path) -> None:
    """C41: a worker that ends by itself takes nothing that it started along into a later attempt."""
    with kept(tmp_path, ORPHANS) as family:
        pids = family.pids(3)
        family.heard.send(b"x")

        assert {"by": "itself", "worker": {"exit": 5}} == family.end()
        assert [] == [pid for pid in pids if alive(pid)]


def test_keeper_says_how_its_worker_ended(tmp_path: Path) -> None:
    """The proof says who ended the worker, and how it ended."""
    ends = {}
    for name, script in {"itself": "os._exit(7)", "order": STAY, "lifeline": STAY}.items():
        (tmp_path / name).mkdir()
        with kept(tmp_path / name, script) as family:
            if name == "order":
                family.lifeline.send(keeper.KILL_ORDER)
            elif name == "lifeline":
                family.lifeline.close()
            ends[name] = family.end()

    assert {"by": "itself", "worker": {"exit": 7}} == ends["itself"]
    assert {"by": "order", "worker": {"signal": 9}} == ends["order"]
    assert {"by": "lifeline", "worker": {"signal": 9}} == ends["lifeline"]


def test_keeper_is_deaf_to_signals_that_ask(tmp_path: Path) -> None:
    """A keeper that could be asked to end would leave its worker behind."""
    with kept(tmp_path, STAY) as family:
        (worker,) = family.pids(1)
        for number in keeper.DEAF_TO:
            os.kill(family.process.pid, number)

        assert family.process.poll() is None
        assert alive(worker)


def test_worker_hears_signals_its_keeper_does_not(tmp_path: Path) -> None:
    """A keeper's deafness is not inherited: a worker and its programs can be asked to end."""
    with kept(tmp_path, STAY) as family:
        (worker,) = family.pids(1)
        os.kill(worker, signal.SIGTERM)

        assert {"by": "itself", "worker": {"signal": 15}} == family.end()


def test_worker_dies_with_a_killed_keeper(tmp_path: Path) -> None:
    """A keeper killed by force takes its worker along, and leaves no proof behind."""
    with kept(tmp_path, STAY) as family:
        (worker,) = family.pids(1)
        ended = os.pidfd_open(worker)
        family.process.kill()
        family.process.wait(WAIT)
        assert [ended] == select.select([ended], [], [], WAIT)[0]
        os.close(ended)
        assert not (tmp_path / "w1.gone").exists()


def test_keeper_starts_its_worker_bare(tmp_path: Path) -> None:
    """A worker has its own session, no way to new privileges, one inherited descriptor and no more."""
    look = (
        "import json\nstatus = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
        "fds = sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1]\n"
        "os.write(3, json.dumps([os.getsid(0) == os.getpid(), status['NoNewPrivs'].strip(),\n"
        " int(status['SigBlk'], 16), int(status['SigIgn'], 16) & ~0x3001000, fds]).encode() + b'\\n')\n"
    )
    with kept(tmp_path, look) as family:
        (line,) = lines_of(family.heard.fileno(), 1)

        assert [True, "1", 0, 0, [0, 1, 2, 3]] == json.loads(line)
        family.end()


def test_keeper_says_when_only_its_proof_cannot_be_written(tmp_path: Path) -> None:
    """A disk that refuses the proof leaves no doubt: the exit status still tells a live daemon."""
    (tmp_path / "w1.gone").write_text("taken")
    with kept(tmp_path, STAY) as family:
        family.pids(1)
        family.lifeline.close()

        assert keeper.NOT_WRITTEN == family.process.wait(WAIT)
        assert () == containment.remains_of("w1")
