"""Many hands at once on a real daemon: what each is told is what happens, and what happens happens once."""

import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually

from resumed.daemon.client import CallError, Client, UnreachableError
from resumed.schemas import control

TELLING = '''
version = 1
[[step]]
name = "tell"
run = ["sh", "-c", """
  echo start $RESUMED_JOB $RESUMED_ITEM >> $RESUMED_INPUTS_WITNESS
  sleep $RESUMED_INPUTS_REST
  echo end $RESUMED_JOB $RESUMED_ITEM >> $RESUMED_INPUTS_WITNESS
"""]
repeatable = true
[inputs]
witness = { type = "path", roots = ["/"] }
rest = { type = "decimal" }
'''


@pytest.fixture(scope="module", params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    made = Daemon(tmp_path_factory.mktemp("daemon"), request.param)
    (made.workflows / "tell.toml").write_text(TELLING)
    (made.workflows / "tell.toml").chmod(0o644)
    made.start()
    yield made
    made.end()
    assert "Traceback" not in made.said()


def submit(daemon: Daemon, name: str, items: int, rest: str) -> None:
    """A job whose items each write two lines into the witness."""
    job = {
        "workflow": "tell",
        "id": name,
        "items": [f"{name}-{number}" for number in range(items)],
        "inputs": {"witness": str(daemon.root / "witness"), "rest": rest},
    }
    call(daemon, "Submit", file=json.dumps(job))


def call(daemon: Daemon, method: str, **parameters: Any) -> dict[str, Any]:
    with Client(str(daemon.socket)) as client:
        return client.call(method, **parameters)


def row(daemon: Daemon, job: str) -> dict[str, Any]:
    found: dict[str, Any] = call(daemon, "Show", job=job)["job"]["row"]
    return found


def last_row(daemon: Daemon, job: str) -> dict[str, Any]:
    """The row a job ends with."""
    with Client(str(daemon.socket)) as client:
        *_, last = client.stream("Watch", job=job)
    ended: dict[str, Any] = last["row"]
    return ended


def witnessed(daemon: Daemon, job: str) -> Counter[str]:
    """How often each line of a job stands in the witness."""
    path = Path(daemon.root / "witness")
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter(line for line in lines if line.split()[1] == job)


def at_once(daemon: Daemon, hands: int, method: str, **parameters: Any) -> list[dict[str, Any] | Exception]:
    """The answers of some clients that call together."""
    barrier = threading.Barrier(hands)
    answers: list[dict[str, Any] | Exception] = []

    def one() -> None:
        try:
            barrier.wait(30)
            with Client(str(daemon.socket)) as client:
                answers.append(client.call(method, **parameters))
        except (CallError, UnreachableError) as error:
            answers.append(error)

    threads = [threading.Thread(target=one) for _ in range(hands)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


def paused(daemon: Daemon, job: str) -> dict[str, Any]:
    """The row once a paused job has come to rest."""
    call(daemon, "Pause", job=job)

    def look() -> dict[str, Any]:
        found = row(daemon, job)
        assert "paused" == found["status"]
        assert 0 == found["running"]
        return found

    found: dict[str, Any] = eventually(look)
    return found


def test_c15_twenty_resumes_start_one_attempt(daemon: Daemon, faults_scale: float) -> None:
    """Twenty that resume a paused job together are told of one attempt, and each item runs once (C15)."""
    for run in range(max(3, round(100 * faults_scale))):
        job = f"twenty-{run}"
        submit(daemon, job, 3, "0.05")
        before = paused(daemon, job)
        answers = at_once(daemon, 20, "Resume", job=job)
        ended = last_row(daemon, job)

        attempts = {
            answer["told"]["attempt"] if isinstance(answer, dict) else repr(answer) for answer in answers
        }
        assert {before["epoch"] + 1} == attempts
        assert ("completed", 3, before["epoch"] + 1) == (ended["status"], ended["done"], ended["epoch"])
        assert {1} == set(witnessed(daemon, job).values())
        assert 6 == len(witnessed(daemon, job))


def test_c15_killed_in_the_burst(daemon: Daemon, faults_scale: float) -> None:
    """A daemon killed among twenty resumes leaves a job that goes on as those were told who were told."""
    for run in range(max(1, round(10 * faults_scale))):
        job = f"burst-{run}"
        submit(daemon, job, 3, "0.05")
        paused(daemon, job)
        killer = threading.Timer(0.01 * (run % 4), daemon.end, [signal.SIGKILL])
        killer.start()
        answers = at_once(daemon, 20, "Resume", job=job)
        killer.join()
        daemon.start()
        told = [answer for answer in answers if isinstance(answer, dict)]
        if row(daemon, job)["status"] == "paused":
            assert [] == told
            call(daemon, "Resume", job=job)
        ended = last_row(daemon, job)

        assert ("completed", 3) == (ended["status"], ended["done"])
        ends = {line: count for line, count in witnessed(daemon, job).items() if line.startswith("end")}
        assert 3 == len(ends)


def test_c17_cancel_agrees_with_what_happened(daemon: Daemon, faults_scale: float) -> None:
    """A cancel that meets a job's end is told who won, and that stays so (C17)."""
    told: dict[str, str] = {}
    ended: dict[str, str] = {}
    lines: dict[str, Counter[str]] = {}
    runs = max(20, round(500 * faults_scale))
    for run in range(runs):
        job = f"race-{run}"
        submit(daemon, job, 2, "0.02")
        with Client(str(daemon.socket)) as watching:
            for answer in watching.stream("Watch", job=job):
                if answer["row"]["done"] >= 1:
                    break
        threading.Event().wait(0.06 * run / runs)
        told[job] = cancel(daemon, job)
        ended[job] = last_row(daemon, job)["status"]
        lines[job] = witnessed(daemon, job)
    daemon.end(signal.SIGKILL)
    daemon.start()

    assert {"canceled", "completed"} == set(told.values())
    assert told == ended == {job: row(daemon, job)["status"] for job in told}
    assert lines == {job: witnessed(daemon, job) for job in told}


def cancel(daemon: Daemon, job: str) -> str:
    """What a job's end is, as the answer to a cancel tells it."""
    try:
        call(daemon, "Cancel", job=job)
    except CallError as error:
        return "completed" if error.name == control.ERROR_REFUSED else error.name
    return "canceled"


def test_every_client_is_served_beside_a_watcher_crowd(daemon: Daemon) -> None:
    """A hundred that watch one job do not keep anybody else waiting, and all see its end."""
    submit(daemon, "crowd", 4, "0.2")
    ends: list[str] = []

    def look() -> None:
        ends.append(last_row(daemon, "crowd")["status"])

    threads = [threading.Thread(target=look) for _ in range(100)]
    for thread in threads:
        thread.start()
    statuses = [call(daemon, "Status")["house"]["open"] for _ in range(20)]
    for thread in threads:
        thread.join(60)

    assert ["completed"] * 100 == ends
    assert 20 == len(statuses)


def test_s15_flood_does_not_reach_others(daemon: Daemon, faults_scale: float) -> None:
    """Silent, hasty and boundless peers cost a caller no answer and little time, and us no memory (S15)."""
    process = daemon.process
    assert process is not None
    before = resident(process.pid), descriptors(process.pid)
    over = threading.Event()
    slowest: list[float] = []

    def ask() -> None:
        while not over.is_set():
            began = time.monotonic()
            call(daemon, "Status")
            slowest.append(time.monotonic() - began)

    asking = threading.Thread(target=ask)
    asking.start()
    held = [knock(daemon) for _ in range(round(2000 * faults_scale))]
    for _ in range(round(20_000 * faults_scale)):
        knock(daemon).close()
    for _ in range(round(1000 * faults_scale)):
        peer = knock(daemon)
        try:
            peer.sendall(b"x" * (control.MAX_MESSAGE + 1))
        except OSError:
            pass
        peer.close()
    over.set()
    asking.join(60)
    for peer in held:
        peer.close()

    def calm() -> None:
        assert descriptors(process.pid) <= before[1] + 2

    eventually(calm)
    assert len(slowest) > 10
    assert sorted(slowest)[int(len(slowest) * 0.99)] < 1.0
    assert resident(process.pid) - before[0] < 48 * 1024


def knock(daemon: Daemon) -> socket.socket:
    """A connection that says nothing; a full backlog is waited out."""
    while True:
        peer = socket.socket(socket.AF_UNIX)
        try:
            peer.connect(str(daemon.socket))
        except BlockingIOError:
            peer.close()
            threading.Event().wait(0.0005)  # spinning here would starve our own caller
            continue
        return peer


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident(pid: int) -> int:
    """Resident memory in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


@pytest.mark.root
def test_s14_other_users_reach_nothing(daemon: Daemon) -> None:
    """Another user cannot connect; and if somebody opened the socket to it, it may not do anything (S14)."""
    os.chmod(daemon.root, 0o755)
    for parent in daemon.root.parents:
        if parent.name.startswith("pytest-"):
            os.chmod(parent, 0o755)
    first = as_nobody(daemon)
    os.chmod(daemon.socket, 0o666)
    second = as_nobody(daemon)
    os.chmod(daemon.socket, 0o600)

    assert "refused" == first
    assert control.ERROR_NOT_PERMITTED == second


def as_nobody(daemon: Daemon) -> str:
    """What the user nobody hears when it asks for the status."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = "crashed"
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str(daemon.socket))
                peer.sendall(json.dumps({"method": f"{control.INTERFACE}.Status"}).encode() + b"\0")
                said = json.loads(peer.recv(65536)[:-1]).get("error", "answered")
        except PermissionError:
            said = "refused"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as heard:
        return heard.read()
