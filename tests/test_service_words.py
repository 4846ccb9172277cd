"""What the service manager is told, and what it gives: each word by itself, without a daemon."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from service_kit import Manager

from resumed.actors.disk import ThreadDisk
from resumed.actors.house import Figures
from resumed.actors.pulse import Pulse
from resumed.daemon import notify, passed
from resumed.daemon.herald import Herald
from resumed.daemon.notify import Notifier
from resumed.schemas.errors import FaultyInputError


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Manager]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@resumed-test-{os.getpid()}"
    made = Manager(address)
    yield made
    made.close()


def test_words_arrive_in_order(manager: Manager) -> None:
    """Each word is one datagram, at a path and at an abstract address alike."""
    told = Notifier(manager.address)
    told.status("two\nlines")
    told.ready()
    told.alive()
    told.stopping(2.5)

    assert ["STATUS=two lines", "READY=1", "WATCHDOG=1", "STOPPING=1\nEXTEND_TIMEOUT_USEC=2500000"] == [
        manager.hear() for _ in range(4)
    ]


def test_status_is_said_when_it_changes(manager: Manager) -> None:
    """A sentence that is still true is not said again."""
    told = Notifier(manager.address)
    for sentence in ("a", "a", "b", "b", "a"):
        told.status(sentence)
    told.ready()
    manager.until("READY=1")

    assert ["STATUS=a", "STATUS=b", "STATUS=a", "READY=1"] == manager.heard


def test_reloading_carries_the_managers_clock(manager: Manager) -> None:
    """A manager that waits for a reload orders its end by its own clock, so that goes along."""
    Notifier(manager.address).reloading()
    first, second = manager.hear().split("\n")

    assert "RELOADING=1" == first
    assert second.removeprefix("MONOTONIC_USEC=").isdigit()


def test_ready_is_kept_for_a_manager_that_is_busy(manager: Manager) -> None:
    """A full socket costs a sign of life, never the word that we are ready, and nobody waits."""
    told = Notifier(manager.address)
    for _ in range(2000):  # more than a datagram socket queues
        told.alive()
    told.ready()
    manager.socket.setblocking(False)
    queued = []
    try:
        while True:
            queued.append(manager.socket.recv(100))
    except BlockingIOError:
        pass
    told.alive()

    assert {b"WATCHDOG=1"} == set(queued)
    assert len(queued) < 2000
    assert [b"READY=1", b"WATCHDOG=1"] == [manager.socket.recv(100) for _ in range(2)]


def test_manager_that_is_gone_disturbs_nobody(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Nobody at the address is said once in the log, and is no error of ours."""
    told = Notifier(str(tmp_path / "nobody"))
    for _ in range(3):
        told.alive()

    assert 1 == len(caplog.records)


WATCHDOGS = {
    "ours": ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "7"}, 3.0),
    "anybody's": ({"WATCHDOG_USEC": "3000000"}, 3.0),
    "another's": ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "8"}, 0.0),
    "none": ({}, 0.0),
    "no number": ({"WATCHDOG_USEC": "soon"}, 0.0),
}


@pytest.mark.parametrize("case", WATCHDOGS)
def test_watchdog_is_taken_when_it_is_ours(case: str) -> None:
    """A watchdog that watches another process is no affair of ours, and no child hears of any."""
    given, seconds = WATCHDOGS[case]
    environ = {"NOTIFY_SOCKET": "/run/notify", "HOME": "/", **given}
    told = notify.take(environ, 7)

    assert (seconds, True, {"HOME": "/"}) == (told.watchdog, bool(told), environ)


def test_address_that_is_no_unix_socket_is_not_used() -> None:
    """What we cannot speak to is said in the log and left alone."""
    assert not notify.take({"NOTIFY_SOCKET": "vsock:2:9"}, 7)
    assert not notify.take({}, 7)


# ---- passed sockets -------------------------------------------------------------------------------------


def test_socket_passed_to_another_process_is_not_ours() -> None:
    """The variables name a process, and are removed whoever it is."""
    environ = {"LISTEN_PID": "8", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "control", "HOME": "/"}

    assert passed.take(environ, 7) is None
    assert {"HOME": "/"} == environ


@pytest.mark.parametrize("count", ["-1", "x", "65", "١"])
def test_number_of_sockets_is_a_number(count: str) -> None:
    """What is no small number is refused before any descriptor is touched."""
    with pytest.raises(FaultyInputError, match="expected a number up to 64"):
        passed.take({"LISTEN_PID": "7", "LISTEN_FDS": count}, 7)


def a_pipe() -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


def not_listening() -> int:
    return socket.socket(socket.AF_UNIX).detach()


def of_another_family() -> int:
    made = socket.socket(socket.AF_INET)
    made.bind(("127.0.0.1", 0))
    made.listen()
    return made.detach()


def of_datagrams() -> int:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach()


STRANGERS = {
    "a pipe": (a_pipe, "descriptor [0-9]+ is no socket"),
    "not listening": (not_listening, "expected a listening Unix stream socket, got AF_UNIX SOCK_STREAM"),
    "TCP": (of_another_family, "expected a listening Unix stream socket, got AF_INET SOCK_STREAM"),
    "datagrams": (of_datagrams, "expected a listening Unix stream socket, got AF_UNIX SOCK_DGRAM"),
}


@pytest.mark.parametrize("case", STRANGERS)
def test_what_is_no_listening_unix_stream_is_refused(case: str) -> None:
    """A passed descriptor is looked at before it is used, and left open for whoever gave it."""
    make, why = STRANGERS[case]
    descriptor = make()
    with pytest.raises(FaultyInputError, match=why):
        passed._listening(descriptor)
    os.close(descriptor)


@pytest.mark.anyio
async def test_passed_seat_accepts_and_leaves_the_path(tmp_path: Path) -> None:
    """Connections made before and after are accepted; when we leave, the path and its queue stay."""
    path = tmp_path / "control"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen()
        seat = passed.PassedSeat(passed._listening(os.dup(listener.fileno())))
        first.connect(str(path))
        accepted = await seat.accept()
        with socket.socket(socket.AF_UNIX) as second:
            async with anyio.create_task_group() as group:
                group.start_soon(anyio.to_thread.run_sync, second.connect, str(path))
                other = await seat.accept()
            other.close()
        accepted.close()
        seat.leave()

        assert path == seat.path
        assert not seat.look()
        assert path.is_socket()


# ---- signs of life --------------------------------------------------------------------------------------


class Living:
    """A daemon that a test sets."""

    def __init__(self) -> None:
        self.now = Figures(open=2, at_work=1, workers=1, loading=0)
        self.moves = True

    def figures(self) -> Figures:
        return self.now

    def beats(self) -> bool:
        return self.moves


def test_herald_tells_what_is_true(tmp_path: Path) -> None:
    """A start that moves is extended; of threads that hang no sign of life is given; the state is said."""
    manager, living = Manager(str(tmp_path / "notify")), Living()
    herald = Herald(Notifier(manager.address, watchdog=4.0), living)
    herald.look()
    herald.ready()
    herald.look()
    living.moves = False
    living.now = Figures(open=1, at_work=0, workers=2, loading=7, trouble="the disk is full")
    herald.look()
    herald.stopping(20)
    manager.until("STOPPING=1")
    manager.close()

    assert 1.0 == herald.every
    assert [
        "EXTEND_TIMEOUT_USEC=60000000",
        "STATUS=starting: 2 open jobs, 1 at work, 1 worker",
        "STATUS=2 open jobs, 1 at work, 1 worker",
        "READY=1",
        "WATCHDOG=1",
        "STATUS=the disk is full: 1 open job, 0 at work, 2 workers, 7 still to be read",
        "STOPPING=1\nEXTEND_TIMEOUT_USEC=35000000",
    ] == manager.heard


@pytest.mark.anyio
async def test_pulse_stops_with_the_threads() -> None:
    """Threads that hang have no pulse, however alive the loop is; one that moves is enough for its pool."""
    disk, other = ThreadDisk(threads=2), ThreadDisk(threads=1)
    free = threading.Event()
    inside = [threading.Event(), threading.Event()]
    beats = []

    def hang(entered: threading.Event) -> None:
        entered.set()
        free.wait(20)

    async with anyio.create_task_group() as group:
        await group.start(disk.run)
        await group.start(other.run)
        pulse = Pulse(disk, other)

        async def look() -> None:
            await other.call(int)
            beats.append(pulse.beats(group))

        await look()
        await disk.call(int)
        await look()
        for entered in inside:
            group.start_soon(disk.call, hang, entered)
            await anyio.to_thread.run_sync(entered.wait)
        pulse.beats(group)
        for _ in range(3):
            await look()
        free.set()
        await disk.call(int)
        await look()
        disk.close()
        other.close()

    assert [True, True, False, False, False, True] == beats
