"""How a daemon ends, and what a second one finds: drains, hurries, locks, stale sockets, a clean store."""

import json
import os
import signal
import subprocess
import time

from resumed.schemas.job import ItemState

from .kit import FINAL, Daemon, command, until


def drain(daemon: Daemon, *numbers: signal.Signals) -> tuple[int, float]:
    """The exit status, and how long it took, after these signals one after the other."""
    assert daemon.process is not None
    began = time.monotonic()
    for number in numbers:
        said = len(daemon.said())
        daemon.signal(number)
        until(lambda said=said: len(daemon.said()) > said or daemon.process.poll() is not None, "it heard")
    return daemon.process.wait(60), time.monotonic() - began


def running(daemon: Daemon, **keys: object) -> None:
    """Two jobs with a program of a minute each, one of them not repeatable."""
    for name, repeatable in (("again", True), ("once", False)):
        daemon.works(name, "work", 60_000, repeatable=repeatable, **keys)
    daemon.start()
    for name in ("again", "once"):
        daemon.submit(name, name, ["a", "b"])
    until(lambda: len(daemon.witness.lines(event="start")) == 2, "both run")


def stopped_in_good_order(daemon: Daemon) -> None:
    """What was running is pending again, or held where it must not be repeated; nothing is left open."""
    assert [] == daemon.processes()
    for job, state in (("again", ItemState.PENDING), ("once", ItemState.HELD)):
        snapshot = daemon.recover(job).snapshot
        item = snapshot.items["a"]
        assert (state, "interrupted", 1) == (item.state, item.code, item.tries)
        assert not snapshot.tries
        assert ItemState.PENDING == snapshot.items["b"].state
    assert 0 == daemon.fsck().returncode
    assert [] == [line for line in daemon.witness.lines() if line.event == "end"]


def test_sigterm_stops_what_runs_inside_its_time(daemon: Daemon) -> None:
    """SIGTERM ends a daemon with 0 inside its stated time: a minute's program is stopped in good order,
    pending again or held, and it goes on at the next start (C41)."""
    daemon.configure(stop="10s")
    running(daemon)
    code, took = drain(daemon, signal.SIGTERM)
    assert (0, True) == (code, took < 10), took
    stopped_in_good_order(daemon)
    daemon.start()
    until(lambda: len(daemon.witness.lines("again", event="start")) == 2, "the repeatable one goes on")
    assert (
        "held" == daemon.wait_status("once", "held", "running")["status"] or daemon.row("once")["held"] == 1
    )
    assert 1 == len(daemon.witness.lines("once", "a", "start"))


def test_sigterm_kills_what_does_not_stop_in_time(daemon: Daemon) -> None:
    """A program that ignores SIGTERM and has a long grace time does not hold up the end: its tree is killed
    when the stated time is over (C41)."""
    daemon.configure(stop="1s")
    daemon.works("deaf", "flee", 60_000, grace="10m")
    daemon.start()
    daemon.submit("deaf", "deaf", ["a"])
    until(lambda: daemon.witness.lines(event="tick"), "it runs")
    code, took = drain(daemon, signal.SIGTERM)
    assert (0, True) == (code, 0.7 < took < 10), took
    assert [] == daemon.processes()
    assert ItemState.PENDING == daemon.recover("deaf").snapshot.items["a"].state


def test_a_second_sigterm_hurries(daemon: Daemon) -> None:
    """A second SIGTERM ends a drain at once, and still in good order (C41)."""
    daemon.configure(stop="10m")
    daemon.works("deaf", "deaf", 600_000, grace="10m")
    daemon.start()
    daemon.submit("deaf", "deaf", ["a"])
    until(lambda: daemon.witness.lines(event="tick"), "it runs")
    code, took = drain(daemon, signal.SIGTERM, signal.SIGTERM)
    assert (0, True) == (code, took < 10), took
    assert [] == daemon.processes()
    assert not daemon.recover("deaf").snapshot.tries
    assert 0 == daemon.fsck().returncode


def test_a_second_daemon_leaves_and_names_the_holder(daemon: Daemon) -> None:
    """A second daemon on the same store, or on the same socket, ends with 75 naming the holder, and the
    first is undisturbed (C35)."""
    daemon.works("short", "work", 1)
    daemon.start()
    assert daemon.process is not None
    for places in ({"socket": daemon.root / "other"}, {"state": daemon.root / "other-state"}, {}):
        ran = subprocess.run(daemon.command(**places), capture_output=True, timeout=30, cwd=daemon.root)
        assert 75 == ran.returncode, ran.stderr
        assert str(daemon.process.pid).encode() in ran.stderr, (places, ran.stderr)
    assert not (daemon.root / "other").exists()
    # One that is stopped still holds it, and goes on where it was.
    daemon.signal(signal.SIGSTOP)
    try:
        ran = subprocess.run(
            daemon.command(socket=daemon.root / "other"), capture_output=True, timeout=30, cwd=daemon.root
        )
    finally:
        daemon.signal(signal.SIGCONT)
    assert 75 == ran.returncode, ran.stderr
    daemon.submit("alone", "short", ["a"])
    assert "completed" == daemon.wait_status("alone", *FINAL)["status"]


def _pid(daemon: Daemon) -> int:
    from resumed.daemon.client import UnreachableError

    try:
        return int(daemon.ask("Status")["house"]["pid"])
    except UnreachableError:
        return 0


def test_a_killed_daemon_leaves_a_clean_store_and_a_socket_to_take_over(daemon: Daemon) -> None:
    """After SIGKILL the store passes fsck, a stale socket is taken over, a swept one is bound anew (C35)."""
    daemon.works("short", "work", 5)
    daemon.start()
    for number in range(2):
        daemon.submit(f"job-{number}", "short", ["a", "b"])
        until(lambda number=number: daemon.witness.lines(f"job-{number}"), "it runs")
        daemon.kill()
        daemon.bury()
        assert daemon.socket.exists(), "there is no stale socket to take over"
        checked = daemon.fsck()
        assert 0 == checked.returncode, checked.stdout
        daemon.start()
        assert "completed" == daemon.wait_status(f"job-{number}", *FINAL)["status"]
    os.unlink(daemon.socket)
    until(lambda: _pid(daemon) == (daemon.process and daemon.process.pid), "it serves again", within=30)


def test_a_kill_in_the_middle_of_a_drain_loses_nothing(daemon: Daemon) -> None:
    """SIGKILL after SIGTERM is like any other kill: the store is clean and the work goes on (C01)."""
    daemon.workflow("stays", command(["sh", "-c", "trap '' TERM; sleep 600"], grace="10m"))
    daemon.works("short", "work", 5)
    daemon.configure(stop="10m")
    daemon.start()
    daemon.submit("stays", "stays", ["a"])
    until(lambda: daemon.row("stays")["running"] and daemon.processes_of("stays"), "it runs")
    daemon.signal(signal.SIGTERM)
    until(lambda: "asked to stop" in daemon.said(), "it drains")
    daemon.kill()
    daemon.bury()
    assert 0 == daemon.fsck().returncode
    daemon.start()
    until(lambda: daemon.processes_of("stays"), "it goes on")
    assert json.loads(daemon.resumectl("show", "stays", "--json").stdout)["job"]["items"][0]["tries"] >= 2


def test_an_interrupt_is_a_stop(daemon: Daemon) -> None:
    """SIGINT from a terminal is a stop like SIGTERM (C41)."""
    daemon.start()
    code, _ = drain(daemon, signal.SIGINT)
    assert 0 == code
    assert "SIGINT" in daemon.said()
