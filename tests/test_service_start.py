"""A daemon as a service: what it takes from the manager, when it is ready, how it is stopped and refused."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_kit import LOOPS, eventually
from service_kit import BOTH, Service

from resumed.actors import containment
from resumed.actors.containment import Identity
from resumed.daemon.client import Client
from resumed.schemas.instant import Instant
from resumed.store import layout

ENVIRON = """
version = 1
[[step]]
name = "env"
run = ["env"]
repeatable = true
"""


@pytest.fixture(params=BOTH)
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path, request.param)
    yield made
    made.kill()
    assert "Traceback" not in made.said()


def test_service_uses_what_the_manager_gave(service: Service) -> None:
    """Ready comes when the passed socket is served; the socket outlives us, and no child hears of it."""
    (service.workflows / "env.toml").write_text(ENVIRON)
    (service.workflows / "env.toml").chmod(0o644)
    service.listen()
    before = os.stat(service.socket)
    with Client(str(service.socket)) as early:  # in the queue of a socket that nobody serves yet
        process = service.serve(WATCHDOG_USEC="2000000")
        service.manager.until("READY=1")
        assert [] == early.call("List")["jobs"]
    ran = service.ask("submit", str(service.file("one", "env", {"a": ""})), "--wait")
    printed = service.ask("output", "one", "a").stdout
    service.manager.until("WATCHDOG=1")
    process.send_signal(signal.SIGTERM)
    service.manager.until("STOPPING=1")

    assert (0, 0) == (ran.returncode, process.wait(20))
    assert "NOTIFY_SOCKET" not in printed
    assert "LISTEN_" not in printed
    assert "WATCHDOG" not in printed
    assert (before.st_ino, before.st_ctime_ns) == (
        os.stat(service.socket).st_ino,
        os.stat(service.socket).st_ctime_ns,
    )
    assert not (service.root / "control.lock").exists()
    assert any(said.startswith("STATUS=0 open jobs, 0 at work, 0 workers") for said in service.manager.heard)
    ready = service.manager.heard.index("READY=1")
    assert any(said.startswith("EXTEND_TIMEOUT_USEC=") for said in service.manager.heard[:ready])
    assert not any(said.startswith("EXTEND_TIMEOUT_USEC=") for said in service.manager.heard[ready:])


def test_stop_is_heard_while_earlier_workers_are_settled(service: Service) -> None:
    """A start that waits for an earlier worker's keeper ends at once when it is asked to, with 0."""
    store = layout.create(service.state, "id", Instant(wall=1, boot="b", up=1))
    with subprocess.Popen(["sleep", "60"]) as earlier:
        identity = Identity(
            name="w-1",
            boot=containment.boot_id(),
            pid=earlier.pid,
            start=containment.start_time(earlier.pid) or 0,
            group=earlier.pid,
            workflow="flow",
            version=1,
        )
        containment.record(store.workers, identity)
        process = service.serve()
        service.manager.until("STATUS=starting")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait(20)
        took = time.monotonic() - began
        earlier.kill()

    assert 0 == code
    assert took < 5  # the keeper would have been waited for 10 s
    assert "READY=1" not in service.manager.heard
    assert "ready: " not in service.said()
    assert "The daemon stopped." in service.said()


def test_stop_before_the_loop_ends_the_start(tmp_path: Path) -> None:
    """Asked to stop while it still looks at its premises, the daemon ends with 0 and leaves no store."""
    code = (
        "import os, signal, sys\n"
        "from resumed.daemon import main, premises\n"
        "premises.look = lambda *a, **k: os.kill(os.getpid(), signal.SIGTERM)\n"
        f"sys.exit(main.main(['serve', '--state={tmp_path}/s', '--socket={tmp_path}/c']))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)

    assert (0, "resumed: asked to stop while starting\n") == (ran.returncode, ran.stderr)
    assert [] == list(tmp_path.iterdir())


REFUSALS_OF_A_DISK = {
    "full, at the lock": ("open_lock", "ENOSPC", 75),
    "failing, at the list of jobs": ("names", "EIO", 75),
    "not ours to write": ("open_lock", "EACCES", 78),
}


@pytest.mark.parametrize("case", REFUSALS_OF_A_DISK)
def test_what_a_disk_refuses_for_now_is_tried_again(case: str, tmp_path: Path) -> None:
    """A start that a full or failing disk refuses ends with 75 and one sentence, wherever it had come to."""
    call, number, code = REFUSALS_OF_A_DISK[case]
    layout.create(tmp_path / "state", "id", Instant(wall=1, boot="b", up=1))
    (tmp_path / "state" / "jobs" / "ab").mkdir()
    program = (
        "import errno, os, sys\n"
        "from resumed.daemon import main\n"
        "from resumed.store import durable\n"
        f"real = durable.{call}\n"
        "def refuse(path):\n"
        f"    if {call!r} == 'names' and path.name != 'jobs':\n"
        "        return real(path)\n"
        f"    raise OSError(errno.{number}, os.strerror(errno.{number}), str(path))\n"
        f"durable.{call} = refuse\n"
        f"places = ['--state={tmp_path}/state', '--socket={tmp_path}/c', '--workflows={tmp_path}']\n"
        "sys.exit(main.main(['serve', *places]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    said = [line for line in ran.stderr.splitlines() if line.startswith("resumed: ")]

    assert code == ran.returncode, ran.stderr
    assert 1 == len(said)
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize("service", LOOPS, indirect=True)
def test_everything_is_read_again_at_a_signal_or_a_request(service: Service) -> None:
    """New workflows and what may change take effect at once; what may not is named with what to do."""
    settings = service.root / "resumed.toml"
    process = service.up()
    assert "nothing had changed\n" == reload(service).stdout
    settings.write_text('workers = 0\nstop_timeout = "3s"\n')
    settings.chmod(0o600)
    faulty = reload(service)
    bounds = "[approvals]\nquorum = 2\n"
    settings.write_text(f'workers = 2\nstop_timeout = "3s"\nincoming = "elsewhere"\n{bounds}')
    (service.workflows / "env.toml").write_text(ENVIRON)
    (service.workflows / "env.toml").chmod(0o644)
    changed = reload(service)
    process.send_signal(signal.SIGHUP)
    service.manager.until("RELOADING=1")
    service.manager.until("READY=1")
    service.end()

    assert (1, "nothing had changed\n") == (faulty.returncode, faulty.stdout)
    assert "expected 1 to 1000, got 0 @ $.workers" in faulty.stderr
    assert 1 == changed.returncode
    assert {
        "stop_timeout now: 3.0",
        "workers now: 2",
        "approvals now: 2 must say yes at least",
        "the workflows were read again: deaf, env, say, slow",
    } == set(changed.stdout.splitlines())
    assert f"! incoming stays {service.state}/incoming until the daemon is restarted\n" == changed.stderr
    assert "has 3 seconds" in service.said()


def reload(service: Service) -> "subprocess.CompletedProcess[str]":
    """What `resumed reload` says."""
    command = [sys.executable, "-m", "resumed.daemon.main", "reload", f"--socket={service.socket}"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    service.manager.until("RELOADING=1")
    service.manager.until("READY=1")
    return ran


@pytest.mark.parametrize("service", LOOPS, indirect=True)
def test_refused_start_leaves_nothing(service: Service) -> None:
    """A second daemon on a held store is refused with 75, and has made neither socket, lock nor folder."""
    service.up()
    other = service.root / "other"
    other.mkdir()
    command = service.command(f"--socket={other}/run/control")
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20)
    service.end()

    assert 75 == ran.returncode
    assert f"pid {service.process.pid if service.process else 0} holds its lock" in ran.stderr
    assert [] == list(other.iterdir())


REFUSED = {
    "a configuration": "resumed.toml: unknown key 'stat' @ $",
    "a store that others may write": "others may write it (mode 0770): chmod go-w",
    "a store that is a file": "it is no folder",
    "a later store": f"written by schema 99, this daemon reads up to {layout.FORMAT}",
    "jobs without their store": "it holds jobs, but store.json is missing",
    "a place of no socket": "something that is no socket stands there",
    "a socket below a file": "Not a directory",
    "an absent watched folder": "No such file or directory",
}


def spoil(case: str, service: Service) -> None:
    """Make one thing so that a start must be refused."""
    state = service.state
    if case == "a configuration":
        (service.root / "resumed.toml").write_text("stat = 1\n")
        (service.root / "resumed.toml").chmod(0o600)
    elif case == "a store that others may write":
        state.mkdir()
        state.chmod(0o770)
    elif case == "a store that is a file":
        state.touch(mode=0o600)
    elif case == "a later store":
        state.mkdir(mode=0o700)
        (state / "store.json").write_text('{"format": 99}')
    elif case == "jobs without their store":
        (state / "jobs" / "ab").mkdir(parents=True)
        state.chmod(0o700)
    elif case == "a place of no socket":
        service.socket.mkdir()
    elif case == "a socket below a file":
        service.socket.touch()
        service.socket = service.socket / "control"
    else:
        (service.root / "resumed.toml").write_text('incoming = "absent"\n')
        (service.root / "resumed.toml").chmod(0o600)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Service]:
    """A daemon whose loop does not matter."""
    made = Service(tmp_path, "asyncio")
    yield made
    made.kill()


@pytest.mark.parametrize("case", REFUSED)
def test_what_serve_refuses_check_config_refuses(case: str, made: Service, tmp_path: Path) -> None:
    """Both refuse with 78 and the same sentence, and neither has changed anything."""
    service = made
    spoil(case, service)
    before = tree(tmp_path)
    serve = service.command()[service.command().index("serve") + 1 :]
    code = "import sys; from resumed.daemon.main import main; print(main(sys.argv[1:]), flush=True)"
    both = f"{code}; sys.stderr.write(chr(0)); print(main(['check-config', *sys.argv[2:]]))"
    environ = {**os.environ, "CONFIGURATION_DIRECTORY": str(tmp_path)}
    command = [sys.executable, "-c", both, "serve", *serve]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environ)
    first, second = ran.stderr.split("\0")

    assert "78\n78\n" == ran.stdout
    assert first == second
    assert REFUSED[case] in first
    assert before == tree(tmp_path)


def tree(root: Path) -> dict[str, tuple[int, int]]:
    """All that lies below, with what a change of it would change."""
    return {str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in root.rglob("*")}


def test_check_config_names_workflows_that_are_not_in_force(made: Service, tmp_path: Path) -> None:
    """A faulty workflow file stops no start: it is named, and the check ends with 0, having made nothing."""
    service = made
    (service.workflows / "bad.toml").write_text("version = 0\n")
    (service.workflows / "bad.toml").chmod(0o644)
    before = tree(tmp_path)
    command = [word if word != "serve" else "check-config" for word in service.command()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20)

    assert (0, "") == (ran.returncode, ran.stderr)
    assert "! cannot load bad.toml: expected at least 1, got 0 @ $.version" in ran.stdout
    assert "workflows deaf, say, slow: nothing is refused" in ran.stdout
    assert before == tree(tmp_path)


def test_second_signal_hurries(service: Service) -> None:
    """Asked twice, the daemon does not wait for programs that take their grace, and the job goes on later."""
    process = service.up()
    service.ask("submit", str(service.file("deaf", "deaf", {"a": ""})))

    def at_work() -> None:
        assert 1 == json.loads(service.ask("show", "deaf", "--json").stdout)["job"]["row"]["running"]
        assert (service.root / "deaf.files" / "a.up").exists()

    eventually(at_work)
    process.send_signal(signal.SIGTERM)
    service.manager.until("STOPPING=1")
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code = process.wait(20)

    assert 0 == code
    assert time.monotonic() - began < 8  # its grace alone is 10 s
