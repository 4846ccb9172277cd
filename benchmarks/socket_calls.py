"""Calls on an open connection: how long the daemon takes for a read, and for a command it makes durable.

The caller is a bare socket with its bytes spelled beforehand: hardly anything but the daemon is timed.
"""

import json
import os
import select
import socket
from pathlib import Path
from time import perf_counter, sleep

import parked_store
from attrs import frozen
from running import Daemon

JOBS = 100
"""Parked jobs in the store that is asked."""
TOGETHER = 16
"""Connections that read at the same time when reads a second are counted."""

IDLE = """version = 1
[[step]]
name = "wait"
run = ["sleep", "3600"]
repeatable = true
"""


@frozen(kw_only=True)
class Calls:
    """Milliseconds of each call, and reads a second over several connections."""

    reads: dict[str, list[float]]
    reads_per_s: float
    on_living: list[float]
    """Commands to a job that has an actor: one commit each."""
    on_parked: list[float]
    """Commands to a parked job: it is read, opened for writing, and parked again."""


def measure(folder: Path, calls: int) -> Calls:
    """Read and command `calls` times each."""
    parked_store.make(folder / "state", JOBS)
    with Daemon(folder, workers=1) as daemon:
        daemon.workflow("idle", IDLE)
        daemon.start()
        first = parked_store.name(0)
        with Caller(daemon.socket) as caller:
            reads = {
                "Status": caller.timed([_call("Status")], calls),
                "List": caller.timed([_call("List")], calls),
                "Show": caller.timed([_call("Show", job=first)], calls),
            }
            living = _living(daemon)
            on_living = caller.timed([_call("Pause", job=living), _call("Resume", job=living)], calls)
            on_parked = []
            for verb in ["Resume" if number % 2 == 0 else "Pause" for number in range(max(10, calls // 10))]:
                on_parked += caller.timed([_call(verb, job=first)], 1)
                sleep(0.03)  # until it has been parked again
        rate = _reads_per_s(daemon.socket, calls)
    return Calls(reads=reads, reads_per_s=rate, on_living=on_living, on_parked=on_parked)


def _living(daemon: Daemon) -> str:
    """A job with a program that runs, so that its actor stays."""
    with daemon.client() as client:
        file = {"workflow": "idle", "id": "living", "items": ["a"]}
        client.call("Submit", file=json.dumps(file))
        while client.call("Show", job="living")["job"]["row"]["status"] != "running":
            sleep(0.02)
    return "living"


def _call(method: str, **parameters: str) -> bytes:
    asked = {"method": f"org.resumed.Control.{method}", "parameters": parameters}
    return json.dumps(asked).encode() + b"\0"


class Caller:
    """One connection; an error answer is a RuntimeError."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(path))

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """For `select`."""
        return self._socket.fileno()

    def send(self, raw: bytes) -> None:
        """Send one call."""
        self._socket.sendall(raw)

    def receive(self) -> None:
        """Take one whole answer."""
        answer = self._socket.recv(1 << 20)
        while not answer.endswith(b"\0"):
            more = self._socket.recv(1 << 20)
            if not more:
                raise RuntimeError("the daemon closed the connection")
            answer += more
        if b'"error"' in answer[:40]:
            raise RuntimeError(answer.decode())

    def timed(self, raws: list[bytes], count: int) -> list[float]:
        """Milliseconds of `count` calls, one after the other, in turn."""
        found = []
        for number in range(count):
            begun = perf_counter()
            self.send(raws[number % len(raws)])
            self.receive()
            found.append((perf_counter() - begun) * 1000)
        return found


def _reads_per_s(path: Path, count: int) -> float:
    """`Status` over several connections at once, each asking again when it was answered."""
    raw, left = _call("Status"), count * 4
    callers = [Caller(path) for _ in range(TOGETHER)]
    poll = select.epoll()
    by_number = {caller.fileno(): caller for caller in callers}
    begun = perf_counter()
    for caller in callers:
        poll.register(caller.fileno(), select.EPOLLIN)
        caller.send(raw)
    taken = 0
    while taken < left:
        for number, _ in poll.poll():
            by_number[number].receive()
            by_number[number].send(raw)
            taken += 1
    passed = perf_counter() - begun
    poll.close()
    for caller in callers:
        os.close(caller._socket.detach())
    return taken / passed
