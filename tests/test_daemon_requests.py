"""Commands whose answer never came, on a real daemon: asked again under their id they took effect once."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually

from resumed.daemon import client as clients
from resumed.daemon.client import CallError, Client, UnreachableError
from resumed.schemas import control


@pytest.fixture(scope="module", params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    made = Daemon(tmp_path_factory.mktemp("daemon"), request.param)
    made.socket = made.root / f"control-{os.getpid()}"
    made.start()
    yield made
    assert made.process is not None
    if made.process.poll() is None:
        made.end()
    assert "Traceback" not in made.said()


def ask(daemon: Daemon, method: str, **parameters: Any) -> dict[str, Any]:
    """One call as any client makes it: no second try."""
    with Client(str(daemon.socket)) as client:
        return client._ask(method, parameters)


def say_and_leave(daemon: Daemon, method: str, **parameters: Any) -> None:
    """A call whose caller is gone before the answer comes."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(daemon.socket))
        call = {"method": f"{control.INTERFACE}.{method}", "parameters": parameters}
        peer.sendall(json.dumps(call).encode() + b"\0")


def choices(daemon: Daemon, job: str) -> list[str]:
    """The decisions of persons about a job, each with its choice."""
    rows = ask(daemon, "History", job=job)["rows"]
    return [row["choice"] for row in rows if row["by"].startswith("uid:")]


def slow_file(name: str, **more: Any) -> str:
    return json.dumps({"workflow": "slow", "id": name, "items": [{"id": "a", "source": "/dev/null"}], **more})


def setup(daemon: Daemon, method: str, job: str) -> dict[str, Any]:
    """What the call is about, so that it has something to do; returns its parameters."""
    if method == "Submit":
        return {"file": slow_file(job, key=f"key of {job}")}
    ask(daemon, "Submit", file=slow_file(job))
    if method == "Resume":
        ask(daemon, "Pause", job=job)
    return {"job": job, "reason": "once"}


MADE = {"Pause": {"paused"}, "Resume": {"resumed"}, "Cancel": {"canceled", "canceling"}}
"""What each command chooses when it takes effect."""
CUTS = ["the caller leaves", "the daemon is killed"]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("method", ["Submit", "Pause", "Resume", "Cancel"])
def test_c37_command_whose_answer_was_lost(
    method: str, cut: str, daemon: Daemon, faults_scale: float
) -> None:
    """Asked again under its id, on the spot or after a kill, a command has its first outcome: one job, one
    decision; another content under that id is a conflict that names the first (C37)."""
    runs = max(2, round(20 * faults_scale))
    for run in range(runs if cut == CUTS[0] else max(1, runs // 2)):
        job = f"c37-{method.lower()}-{CUTS.index(cut)}-{run}"
        parameters = setup(daemon, method, job)
        say_and_leave(daemon, method, request=f"r-{job}", **parameters)
        if cut == CUTS[1]:
            time.sleep(0.001 * (run % 5))
            daemon.end(signal.SIGKILL)
            daemon.start()
        first = ask(daemon, method, request=f"r-{job}", **parameters)["told"]
        second = ask(daemon, method, request=f"r-{job}", **parameters)["told"]
        other = {**parameters, "reason": "twice"} if method != "Submit" else {"file": slow_file(f"{job}-x")}
        with pytest.raises(CallError) as caught:
            ask(daemon, method, request=f"r-{job}", **other)
        if cut == CUTS[0] and run == 0:
            daemon.end()
            daemon.start()
        after = ask(daemon, method, request=f"r-{job}", **parameters)["told"]
        listed = [row["id"] for row in ask(daemon, "List", all=True)["jobs"]]

        words = ("said", "attempt", "repeated")
        assert [first[word] for word in words] == [second[word] for word in words]
        assert [first[word] for word in words] == [after[word] for word in words]
        assert (True, True) == (second["known"], after["known"])
        assert "request_conflict" == caught.value.parameters["code"]
        assert job in str(caught.value)
        if method == "Submit":
            by_key = ask(daemon, "Submit", file=slow_file(f"{job}-y", key=f"key of {job}"))["told"]

            assert (1, 0, job) == (listed.count(job), listed.count(f"{job}-x"), by_key["row"]["id"])
        else:
            made = [choice for choice in choices(daemon, job) if choice in MADE[method]]

            assert 1 == len(made)
        if method != "Cancel":
            ask(daemon, "Cancel", job=job)


IDS = {
    "a_b": True,
    "a.b": True,
    "a-b": True,
    "a/b": False,
    "A_B": False,
    "../a": False,
    ".": False,
    "x" * 300: False,
    "caf\u00e9": False,
    "cafe\u0301": False,
}


def test_c37_ids_are_never_merged(daemon: Daemon) -> None:
    """Ids that look alike are different jobs or are refused, and none leads out of the store (C37)."""
    before = set(daemon.root.iterdir())
    bodies = {name: f"body {place}" for place, name in enumerate(IDS)}
    for name, taken in IDS.items():
        if taken:
            ask(daemon, "Submit", file=slow_file(name, title=bodies[name]))
            continue
        with pytest.raises(CallError) as caught:
            ask(daemon, "Submit", file=slow_file(name, title=bodies[name]))

        assert control.ERROR_FAULTY == caught.value.name
        assert "@ $.id" in caught.value.parameters["problems"][0]
    titles = {
        name: ask(daemon, "Show", job=name)["job"]["row"]["title"] for name, taken in IDS.items() if taken
    }

    assert {name: bodies[name] for name in titles} == titles
    assert before == set(daemon.root.iterdir())
    for name in titles:
        ask(daemon, "Cancel", job=name)


def test_client_asks_again_by_itself(daemon: Daemon, tmp_path: Path) -> None:
    """`resumectl` whose daemon is killed under it waits for the next one, and reports the first outcome."""
    ask(daemon, "Submit", file=slow_file("again"))
    done: dict[str, Any] = {}

    def pause() -> None:
        done["pause"] = daemon.ask("pause", "again", "--reason", "once")

    asking = threading.Thread(target=pause)
    # A stopped daemon takes the connection and answers nothing; then it is killed.
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGSTOP)
    before = ends_at(daemon.socket)
    asking.start()
    eventually(lambda: waits_at(daemon.socket, before))
    daemon.end(signal.SIGKILL)
    daemon.start()
    asking.join(60)
    told = choices(daemon, "again")
    ask(daemon, "Cancel", job="again")

    assert (0, True) == (done["pause"].returncode, " again is paused" in done["pause"].stdout), done
    assert 1 == told.count("paused")


def ends_at(path: Path) -> int:
    """How many sockets the kernel has under the name that ours was bound with."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return sum(line.endswith(f"/.{path.name}.new") for line in lines)


def waits_at(path: Path, before: int) -> None:
    """AssertionError until one more has connected."""
    assert ends_at(path) > before


class Server:
    """A socket that answers each connection with the next of some scripts, and remembers the calls."""

    def __init__(self, path: Path, *scripts: bytes | None) -> None:
        self.calls: list[dict[str, Any]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, args=(scripts,))
        self._thread.start()

    def _serve(self, scripts: tuple[bytes | None, ...]) -> None:
        for script in scripts:
            with self._listener.accept()[0] as peer:
                held = b""
                while not held.endswith(b"\0"):
                    held += peer.recv(65536)
                self.calls.append(json.loads(held[:-1]))
                if script:
                    peer.sendall(script)
        self._listener.close()

    def ended(self) -> list[dict[str, Any]]:
        self._thread.join(20)
        return self.calls


TOLD = json.dumps({"parameters": {"told": "it"}}).encode() + b"\0"
UNKNOWN = json.dumps(
    {"error": control.ERROR_UNKNOWN_OUTCOME, "parameters": {"reason": "a failed sync"}}
).encode()


def test_client_repeats_a_command_under_one_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer the same call goes out again, under the same id; the user hears the first outcome."""
    monkeypatch.setattr(clients, "PAUSE_FIRST", 0.01)
    server = Server(tmp_path / "s", None, b'{"par', TOLD)
    with Client(str(tmp_path / "s")) as client:
        told = client.call("Pause", job="a")
    calls = server.ended()

    assert {"told": "it"} == told
    assert 3 == len(calls)
    assert 1 == len({call["parameters"]["request"] for call in calls})
    assert all(call == calls[0] for call in calls)


def test_client_draws_an_id_for_each_command(tmp_path: Path) -> None:
    """Two commands are two requests; what only looks carries none, and is not repeated."""
    server = Server(tmp_path / "s", TOLD, TOLD, TOLD)
    for method in ("Pause", "Pause", "Show"):
        with Client(str(tmp_path / "s")) as client:
            client.call(method, job="a")
    first, second, look = [call["parameters"].get("request") for call in server.ended()]

    assert first != second
    assert (32, None) == (len(first), look)
    server = Server(tmp_path / "t", None)
    with pytest.raises(UnreachableError), Client(str(tmp_path / "t")) as client:
        client.call("Show", job="a")
    server.ended()


def test_client_gives_up_in_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the daemon stays away the user hears that the outcome is open; so when it stays unknown."""
    monkeypatch.setattr(clients, "AGAIN_WITHIN", 0.3)
    monkeypatch.setattr(clients, "PAUSE_FIRST", 0.05)
    monkeypatch.setattr(clients, "PAUSE_MOST", 0.05)
    server = Server(tmp_path / "s", None)
    with (
        pytest.raises(UnreachableError, match="may or may not be in force"),
        Client(str(tmp_path / "s")) as client,
    ):
        client.call("Cancel", job="a")
    server.ended()
    unknown = Server(tmp_path / "t", b"\0".join([UNKNOWN] * 20) + b"\0")
    with Client(str(tmp_path / "t")) as client, pytest.raises(CallError) as caught:
        client.call("Cancel", job="a")
    unknown.ended()

    assert control.ERROR_UNKNOWN_OUTCOME == caught.value.name


def test_a_command_that_no_job_keeps_is_answered_once(daemon: Daemon) -> None:
    """A prune whose answer was lost is answered as done after a kill, though no job of that name is left,
    also under the prefix that was typed; a reload under its id reads once, and says what it said."""
    ask(daemon, "Submit", file=slow_file("to-prune-1"))
    ask(daemon, "Cancel", job="to-prune-1")
    eventually(lambda: _has_ended(daemon, "to-prune-1"))
    say_and_leave(daemon, "Prune", job="to-prune", reason="old", request="p-1")
    eventually(lambda: _is_gone(daemon, "to-prune-1"))
    (daemon.workflows / "later.toml").write_text((daemon.workflows / "say.toml").read_text())
    (daemon.workflows / "later.toml").chmod(0o644)
    reloaded = ask(daemon, "Reload", request="p-2")
    daemon.end(signal.SIGKILL)
    daemon.start()
    again = ask(daemon, "Prune", job="to-prune", reason="old", request="p-1")
    told = ask(daemon, "Reload", request="p-2")
    with pytest.raises(CallError) as other:
        ask(daemon, "Prune", job="to-prune", reason="another", request="p-1")
    with pytest.raises(CallError) as new:
        ask(daemon, "Prune", job="to-prune-1", reason="old", request="p-3")

    assert {"job": "to-prune-1", "known": True} == again
    assert (False, True, reloaded["said"]) == (reloaded["known"], told["known"], told["said"])
    assert "request_conflict" == other.value.parameters["code"]
    assert control.ERROR_NO_SUCH == new.value.name


def _has_ended(daemon: Daemon, job: str) -> None:
    assert [job] == [row["id"] for row in ask(daemon, "Ended", jobs=[job])["jobs"]]


def _is_gone(daemon: Daemon, job: str) -> None:
    assert [] == ask(daemon, "Ended", jobs=[job])["jobs"]


def test_changing_methods_are_those_with_an_id() -> None:
    """The client's list of commands is what the method table says takes a request id."""
    from resumed.daemon.methods import METHODS

    takes = {name for name, method in METHODS.items() if hasattr(method.takes, "request")}

    assert takes == set(control.CHANGING)
