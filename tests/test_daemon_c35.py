"""The socket that was swept, and the second daemon (C35), each letter of it with real daemons."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually

from resumed.daemon import serve
from resumed.daemon.client import Client
from resumed.store import lock


def made(root: Path, backend: str) -> Daemon:
    """A daemon that is not started yet, with a folder of its own for its socket."""
    daemon = Daemon(root, backend)
    daemon.socket = root / "run" / "control"
    return daemon


@pytest.fixture(params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    found = made(tmp_path, request.param)
    yield found
    if found.process is not None and found.process.poll() is None:
        found.end()


@pytest.fixture(scope="module", params=LOOPS)
def serving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    found = made(tmp_path_factory.mktemp("c35"), request.param)
    found.start()
    yield found
    found.end()


def status(daemon: Daemon) -> dict[str, Any]:
    """How the daemon at the socket is; OSError-like while nobody answers there."""
    try:
        with Client(str(daemon.socket)) as client:
            house: dict[str, Any] = client.call("Status")["house"]
            return house
    except Exception as error:
        raise OSError(str(error)) from error


def refused(daemon: Daemon, *more: str) -> subprocess.CompletedProcess[str]:
    """A start that is to be refused."""
    return subprocess.run(daemon.command(*more), capture_output=True, text=True, timeout=60)


def test_c35a_swept_socket_is_bound_anew_and_jobs_go_on(serving: Daemon) -> None:
    """A socket that was removed, or its folder with it, is there again within seconds; jobs hear nothing of
    it, and a second daemon does not get in between (C35 a)."""
    with Client(str(serving.socket)) as client:
        client.call("Submit", file=serving.file("goes-on", "slow", {"a": ""}).read_text())
        started = eventually(lambda: _running(client, "goes-on"))
        serving.socket.unlink()
        second = refused(serving)
        first = eventually(lambda: status(serving), 8)
        shutil.rmtree(serving.socket.parent)
        again = eventually(lambda: status(serving), 8)
        # The connection of before was never cut.
        still = _running(client, "goes-on")
        client.call("Cancel", job="goes-on")

    assert serving.process is not None
    assert [serving.process.pid] * 2 == [first["pid"], again["pid"]]
    assert (75, True) == (second.returncode, f"pid {serving.process.pid}" in second.stderr)
    assert started == still
    assert 2 == serving.said().count("had been replaced and was bound anew")


def _running(client: Client, job: str) -> tuple[int, int]:
    (item,) = client.call("Show", job=job)["job"]["items"]

    assert "in_progress" == item["state"]
    return item["tries"], item["started"]


def test_c35b_second_daemon_names_the_first(serving: Daemon) -> None:
    """The same store with another socket, and the same socket with another store, are refused with 75 and the
    holder's name; the first is undisturbed, and nothing was made (C35 b)."""
    before = status(serving)
    store = refused(serving, f"--socket={serving.root / 'other'}")
    place = refused(serving, f"--state={serving.root / 'other-state'}")

    assert [75, 75] == [store.returncode, place.returncode]
    assert f"pid {before['pid']}" in store.stderr
    assert f"process {before['pid']}" in place.stderr
    assert not (serving.root / "other").exists()
    assert not (serving.root / "other-state").exists()
    assert before["pid"] == status(serving)["pid"]


def test_c35c_stale_socket_is_taken_over(serving: Daemon) -> None:
    """What a killed daemon left at the path keeps the next one out for no moment (C35 c)."""
    killed = status(serving)["pid"]
    serving.end(signal.SIGKILL)
    left = serving.socket.exists()
    serving.start()

    assert left
    assert killed != status(serving)["pid"]


def test_c35d_socket_path_that_is_too_long_is_refused(daemon: Daemon) -> None:
    """A long folder is no hindrance, for the daemon and its client; a name that fits no socket is refused at
    the start, with the path, and nothing was made (C35 d)."""
    daemon.socket = daemon.root / ("x" * 120) / "control"
    daemon.start()
    served = status(daemon)
    daemon.end()
    shutil.rmtree(daemon.state)
    name = daemon.root / ("y" * 120)
    ran = refused(daemon, f"--socket={name}")

    assert "pid" in served
    assert (78, True) == (ran.returncode, str(name) in ran.stderr), ran
    assert not daemon.state.exists()


@pytest.mark.timeout(900)
def test_c35e_of_two_starts_at_one_instant_one_survives(daemon: Daemon, faults_scale: float) -> None:
    """Two that start together, on a store of before or on none, are one daemon that serves and one that ends
    with 75 (C35 e)."""
    for run in range(max(4, round(100 * faults_scale))):
        both = [
            subprocess.Popen(daemon.command(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
            for _ in range(2)
        ]
        try:
            lost = eventually(lambda both=both: _lost(both), 30)
            (kept,) = [each for each in both if each is not lost]
            pid = eventually(lambda: status(daemon)["pid"], 30)

            assert (75, kept.pid) == (lost.returncode, pid), lost.stderr.read()
        finally:
            for each in both:
                each.kill()
                each.wait()
                assert each.stderr is not None
                each.stderr.close()
        if run % 2:
            shutil.rmtree(daemon.state)
            shutil.rmtree(daemon.socket.parent)


def _lost(both: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """The one that has ended; both of them never."""
    ended = [each for each in both if each.poll() is not None]

    assert ended
    return ended[0]


def test_lock_of_a_store_just_made_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another that starts at the same instant may hold the new store's lock for a moment; whoever has the
    seat waits for it to give way, so that one of both is left."""
    made = serve._made

    def made_and_locked(config: Any, clock: Any) -> Any:
        layout = made(config, clock)
        held = lock.hold(layout, {"boot": "b", "pid": 1, "start": 1})
        threading.Timer(0.1, held.release).start()
        return layout

    monkeypatch.setattr(serve, "_made", made_and_locked)
    (tmp_path / "workflows.d").mkdir()
    from resumed.daemon.config import Config
    from resumed.daemon.notify import Notifier

    config = Config(
        state=tmp_path / "state",
        socket=tmp_path / "control",
        workflows=tmp_path / "workflows.d",
        incoming=tmp_path / "state" / "incoming",
    )
    start = serve.Start(config=config, again=lambda: config, release="1", notifier=Notifier(), seat=None)
    with serve.taken(start) as had:
        assert (tmp_path / "control").exists()
        assert json.loads((had.layout.root / "lock").read_text())["pid"] == os.getpid()
