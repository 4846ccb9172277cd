"""An attempt is its whole process tree: nothing of it outlives it, and nothing of it holds it up."""

import os
import signal
import time
from pathlib import Path

import pytest

from .kit import FINAL, ITEM, Daemon, command, program, until

GIB = 1024 * 1024 * 1024


def memory(pid: int) -> int:
    """The most a process ever had in memory, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def keepers(daemon: Daemon) -> list[int]:
    """This daemon's keepers."""
    assert daemon.process is not None
    return children(daemon.process.pid)


def workers(daemon: Daemon) -> list[int]:
    """Its workers, each the only child of its keeper."""
    return [pid for keeper in keepers(daemon) for pid in children(keeper)]


def children(pid: int) -> list[int]:
    """Direct children, of whichever thread."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(each) for task in tasks for each in task.read_text().split()]


def test_a_grandchild_that_holds_the_pipe_delays_nothing(daemon: Daemon) -> None:
    """C41a: a program whose background child keeps its output open is done when it ends, with its output,
    and the child is gone."""
    daemon.workflow("holds", command(["sh", "-c", "sleep 600 & echo done"]))
    daemon.workflow("flees", command(["sh", "-c", "setsid sleep 600 & echo done"]))
    daemon.start()
    for workflow in ("holds", "flees"):
        began = time.monotonic()
        daemon.submit(workflow, workflow, ["a"])
        assert "completed" == daemon.wait_status(workflow, *FINAL)["status"]
        assert time.monotonic() - began < 20
        assert b"done\n" == daemon.resumectl("output", workflow, "a").stdout
        assert [] == daemon.processes_of(workflow)


@pytest.mark.parametrize("verb", ["shell", "deaf", "flee"])
def test_cancel_leaves_no_process_of_a_tree_that_ignores_it(daemon: Daemon, verb: str) -> None:
    """C41b: cancel of a tree that ignores SIGTERM, also of a double-forked grandchild in its own session,
    leaves no process of the job soon after the grace time."""
    if verb == "shell":
        script = 'trap "" TERM; sleep 600 & echo "start x a 1 $$ 0" >>"$1"; wait; sleep 600'
        text = command(["sh", "-c", script, "sh", str(daemon.witness.path)], grace="300ms")
    else:
        text = program([ITEM, daemon.witness.path, verb, 600_000], grace="300ms")
    daemon.workflow("deaf", text)
    daemon.start()
    daemon.submit("deaf", "deaf", ["a"])
    seen = {"shell": "start", "deaf": "tick", "flee": "tick"}[verb]
    until(lambda: daemon.witness.lines(event=seen), "it runs")
    assert daemon.processes_of("deaf")
    daemon.ask("Cancel", job="deaf")
    began = time.monotonic()
    assert "canceled" == daemon.wait_status("deaf", *FINAL)["status"]
    assert [] == daemon.processes_of("deaf")
    assert 0.2 < time.monotonic() - began < 10


@pytest.mark.timeout(600)
@pytest.mark.parametrize("verb", ["tick", pytest.param("deaf", marks=pytest.mark.faults), "flee"])
def test_attempts_never_overlap_after_the_daemons_death(
    daemon: Daemon, verb: str, faults_scale: float
) -> None:
    """C41c: after SIGKILL of the daemon, while an item (also a deaf one, also a grandchild that left the
    session) writes every few milliseconds, no line of the old attempt comes after the first of the new."""
    daemon.works("ticks", verb, 600_000)
    daemon.start()
    daemon.submit("ticks", "ticks", ["a"])
    attempts = 1
    for number in range(max(2, round(10 * faults_scale))):
        _writes(daemon)
        daemon.kill()
        daemon.start(ready=False)
        attempts += 1
        until(lambda attempts=attempts: len(_attempts(daemon)) == attempts, "the next one begins")
        if number % 2:
            # A recorded end, so that the deaths in a row are counted anew.
            daemon.ask("Pause", job="ticks", now=True)
            daemon.wait_status("ticks", "paused")
            assert [] == daemon.processes_of("ticks")
            daemon.ask("Resume", job="ticks")
            attempts += 1
            until(lambda attempts=attempts: len(_attempts(daemon)) == attempts, "it goes on")
    _writes(daemon)

    assert [] == daemon.witness.overlaps()
    assert attempts <= daemon.items("ticks")["a"]["tries"]


def _writes(daemon: Daemon) -> None:
    """Returns once the newest attempt has written some lines."""
    newest = daemon.witness.lines(event="start")[-1] if _attempts(daemon) else None
    place = newest.place if newest else 0
    until(lambda: len(daemon.witness.lines(event="tick", since=place)) > 3, "it writes")


def _attempts(daemon: Daemon) -> set[int]:
    return {said.attempt for said in daemon.witness.lines(event="start")}


@pytest.mark.timeout(300)
def test_endless_output_without_a_line_end_takes_bounded_memory(daemon: Daemon, faults_scale: float) -> None:
    """C41d: 1 GiB of output without a newline blocks nobody and takes bounded memory in worker and daemon;
    the log is cut at its cap and says so, and the job fails by its output's limit."""
    size = max(64 * 1024 * 1024, round(GIB * faults_scale) if faults_scale >= 1 else 0)
    script = f"import os\nleft = {size}\npiece = b'x' * 65536\nwhile left > 0: left -= os.write(1, piece)"
    daemon.workflow("floods", program(["-c", script], timeout="4m"))
    daemon.configure(workers=1)
    daemon.start()
    assert daemon.process is not None
    daemon.submit("floods", "floods", ["a"])
    row = daemon.wait_status("floods", *FINAL, "held", within=240)
    item = daemon.items("floods")["a"]
    [worker] = workers(daemon)

    assert "held" == row["status"]
    assert ("failed", "output-too-large") == (item["state"], item["code"])
    assert str(size) in item["reason"]
    assert memory(worker) < 160 * 1024 * 1024
    assert memory(daemon.process.pid) < 160 * 1024 * 1024
    log = next((daemon.state / "jobs").glob("*/floods/logs/*.log"))
    assert 16 * 1024 * 1024 < log.stat().st_size < 17 * 1024 * 1024
    assert b"is not kept" in log.read_bytes()[-300:]


@pytest.mark.parametrize("verb", [pytest.param("tick", marks=pytest.mark.faults), "flee"])
def test_a_killed_keeper_takes_its_whole_tree_along(daemon: Daemon, verb: str) -> None:
    """C41: when a worker's keeper is killed, all below it is ended before the next attempt begins, which is
    visible as interrupted and uses up no try."""
    daemon.works("ticks", verb, 600_000)
    daemon.configure(workers=1)
    daemon.start()
    daemon.submit("ticks", "ticks", ["a"])
    until(lambda: daemon.witness.lines(event="tick"), "it writes")
    [keeper] = keepers(daemon)
    os.kill(keeper, signal.SIGKILL)
    until(lambda: len(daemon.witness.lines(event="start")) > 1, "it begins again")
    until(
        lambda: daemon.witness.lines(event="tick", since=daemon.witness.lines(event="start")[1].place),
        "it writes",
    )
    item = daemon.items("ticks")["a"]

    first, second = daemon.witness.lines(event="start")[:2]
    pids = {said.pid for said in daemon.witness.lines() if said.place < second.place}
    late = {said.pid for said in daemon.witness.lines() if said.place > second.place}
    assert not pids & late
    assert (2, 0) == (item["tries"], item["failures"])
    assert first.pid not in daemon.processes()


def test_a_killed_worker_is_an_interruption(daemon: Daemon) -> None:
    """C41: when the worker itself is killed, its tree goes with it and its item is tried again."""
    daemon.works("ticks", "flee", 600_000)
    daemon.configure(workers=1)
    daemon.start()
    daemon.submit("ticks", "ticks", ["a"])
    until(lambda: daemon.witness.lines(event="tick"), "it writes")
    [keeper] = keepers(daemon)
    [worker] = workers(daemon)
    os.kill(worker, signal.SIGKILL)
    until(lambda: len(daemon.witness.lines(event="start")) > 1, "it begins again")
    second = daemon.witness.lines(event="start")[1]
    until(lambda: daemon.witness.lines(event="tick", since=second.place), "it writes")

    pids = {said.pid for said in daemon.witness.lines() if said.place < second.place}
    late = {said.pid for said in daemon.witness.lines() if said.place > second.place}
    assert not pids & late
    assert keeper not in daemon.processes()
    assert "in_progress" == daemon.items("ticks")["a"]["state"]
