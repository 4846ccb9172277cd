"""The service under a real systemd: activated, killed, hung, reloaded, cut off, and run for one user.

It boots a systemd of its own over this machine's root (`tests/systemd/lab.sh`), so it is for root and for
`./dev faults`; where a lab cannot be, root is told why by a failure.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import eventually

HOUSE = Path(__file__).resolve().parent.parent
LAB = HOUSE / "tests" / "systemd" / "lab.sh"
SOURCES = ("actors", "daemon", "front", "schemas", "store", "pyproject.toml", "README.md", "LICENSE")
CTL = "/opt/resumed/bin/resumectl"
FLOWS = {
    "quick": 'version = 1\n[[step]]\nname = "do"\nrun = ["id", "-un"]\nrepeatable = true\n',
    "slow": """
version = 1
[[step]]
name = "wait"
run = ["sh", "-c", "trap '' TERM; setsid sleep 600 & sleep 600"]
repeatable = true
grace = "1s"
""",
}

pytestmark = [pytest.mark.faults, pytest.mark.root, pytest.mark.timeout(300)]


class Lab:
    """One systemd and the service in it."""

    def __init__(self, place: Path, furnish: Path) -> None:
        self.place = place
        self.environ = {**os.environ, "LAB_FURNISH": str(furnish)}

    def do(self, verb: str, *words: str, code: int | None = 0) -> str:
        """One command of the lab's; what it printed."""
        ran = subprocess.run(
            ["bash", str(LAB), verb, str(self.place), *words],
            capture_output=True,
            text=True,
            timeout=120,
            env=self.environ,
        )
        assert code in (None, ran.returncode), f"{words}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def run(self, *words: str, code: int | None = 0) -> str:
        """One command inside, as root."""
        return self.do("in", *words, code=code)

    def run_as(self, user: str, *words: str, code: int | None = 0) -> str:
        """One command inside, as a user with its groups."""
        return self.run("runuser", "-u", user, "--", *words, code=code)

    def shows(self, name: str) -> str:
        """A property of the service."""
        return self.run("systemctl", "show", "resumed.service", "-P", name).strip()

    def pid(self) -> int:
        return int(self.shows("MainPID"))

    def house(self) -> dict[str, Any]:
        """The daemon's status."""
        found: dict[str, Any] = json.loads(self.run(CTL, "status", "--json"))["house"]
        return found

    def row(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run(CTL, "show", job, "--json"))["job"]["row"]
        return found

    def write(self, path: str, text: str) -> None:
        """A file inside, readable by all."""
        self.run("sh", "-c", 'mkdir -p "${1%/*}" && printf %s "$2" >"$1" && chmod 644 "$1"', "sh", path, text)

    def restarted(self, before: int) -> int:
        """The pid of the next daemon, once it is ready."""

        def look() -> int:
            assert "active" == self.run("systemctl", "is-active", "resumed", code=None).strip()
            assert before != self.pid()
            return self.pid()

        found: int = eventually(look, within=40)
        return found


def installed(place: Path) -> Path:
    """The project as the README installs it: a wheel in an environment of the system's interpreter."""
    source = place / "source"
    source.mkdir()
    for name in SOURCES:
        if (HOUSE / name).is_dir():
            shutil.copytree(HOUSE / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(HOUSE / name, source / name)
    made = place / "opt"
    environment = ["/usr/bin/python3", "-m", "venv", "--without-pip", str(made)]
    install = [sys.executable, "-m", "pip", "--quiet", f"--python={made}/bin/python", "install", str(source)]
    for command in (environment, install):
        ran = subprocess.run(command, capture_output=True, text=True, timeout=280)
        assert 0 == ran.returncode, ran.stderr
    for script in (made / "bin").glob("resum*"):
        script.write_text(script.read_text().replace(f"{made}/bin/", "/opt/resumed/bin/"))
    return made


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    place = tmp_path_factory.mktemp("lab")
    made = installed(place)
    flows = place / "flows"
    flows.mkdir()
    for name, text in FLOWS.items():
        (flows / f"{name}.toml").write_text(text)
    furnish = place / "furnish"
    units = HOUSE / "systemd"
    furnish.write_text(f"""#!/bin/sh -eu
root=$1
umask 022
[ -e "$root/opt/resumed" ] || cp -a {made} "$root/opt/resumed"
chown -R 0:0 "$root/opt/resumed"
mkdir -p "$root/etc/resumed/workflows.d" "$root/etc/systemd/system" "$root/etc/systemd/user"
cp {units}/resumed.service {units}/resumed.socket "$root/etc/systemd/system"
cp {units}/user/resumed.service {units}/user/resumed.socket "$root/etc/systemd/user"
cp {units}/sysusers.d/resumed.conf "$root/usr/lib/sysusers.d"
cp {units}/tmpfiles.d/resumed.conf "$root/usr/lib/tmpfiles.d"
cp {units}/resumed.toml "$root/etc/resumed"
cp {flows}/*.toml "$root/etc/resumed/workflows.d"
chmod 644 "$root"/etc/resumed/resumed.toml "$root"/etc/resumed/workflows.d/*
systemctl --root="$root" enable resumed.socket >/dev/null 2>&1
""")
    furnish.chmod(0o755)
    one = Lab(place / "it", furnish)
    one.do("up")
    one.run("useradd", "--create-home", "--groups", "resumed-ops", "anna")
    one.run("useradd", "--create-home", "--groups", "resumed-submit", "bo")
    one.run("useradd", "--create-home", "cy")
    yield one
    one.do("down")
    assert not one.place.exists()


def test_socket_activates_the_service(lab: Lab) -> None:
    """The first client starts the daemon, which is ready, says its state, and uses its control group."""
    assert "inactive" == lab.run("systemctl", "is-active", "resumed.service", code=3).strip()
    before = lab.run("stat", "-c", "%i %a %U:%G", "/run/resumed/control")
    house = lab.house()

    assert "660 resumed:resumed-ops" == before.strip().split(" ", 1)[1]
    assert "control group" == house["containment"]
    assert ("/var/lib/resumed", lab.pid()) == (house["store"], house["pid"])
    assert ["quick", "slow"] == house["workflows"]
    assert "0 open jobs, 0 at work, 0 workers" == lab.shows("StatusText")
    assert "active" == lab.run("systemctl", "is-active", "resumed.service").strip()
    assert "resumed" == lab.run("ps", "-o", "user=", "-p", str(lab.pid())).strip()


def test_people_reach_what_their_groups_give(lab: Lab) -> None:
    """Members of the group hand jobs in; others are refused by the kernel; programs run as the service."""
    lab.write("/tmp/one.json", json.dumps({"workflow": "quick", "id": "one", "items": ["a"]}))
    lab.run_as("cy", CTL, "status", code=3)
    lab.run_as("anna", CTL, "submit", "/tmp/one.json", "--wait")

    assert "resumed" == lab.run_as("anna", CTL, "output", "one", "a").strip()
    assert "anna" == lab.row("one")["owner"]


def test_dropped_file_is_taken_in_the_sandbox(lab: Lab) -> None:
    """A submitter's file is claimed by a rename inside the one writable mount; it is whose it was."""
    folder = lab.run("stat", "-c", "%a %U:%G", "/var/lib/resumed/incoming").strip()
    job = json.dumps({"workflow": "quick", "id": "dropped", "items": ["a"]})
    dropping = 'umask 027; cd /var/lib/resumed/incoming; printf %s "$1" >.new && mv .new dropped.json'
    lab.run_as("bo", "sh", "-c", dropping, "sh", job)
    lab.run_as("cy", "sh", "-c", dropping, "sh", job, code=2)

    def ended() -> None:
        assert "completed" == lab.row("dropped")["status"]

    eventually(ended)
    lab.run_as("bo", "ls", "/var/lib/resumed/incoming", code=2)

    assert "3730 resumed:resumed-submit" == folder
    assert "bo" == lab.row("dropped")["owner"]


def test_restart_refuses_no_client(lab: Lab) -> None:
    """While the service restarts, clients wait in the socket's queue, and every one is answered."""
    inode = lab.run("stat", "-c", "%i", "/run/resumed/control")
    script = f"for n in $(seq 30); do {CTL} list >/dev/null || exit 1; done"
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            lab.run("sh", "-c", script)
        except AssertionError as error:
            failed.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    before = lab.pid()
    lab.run("systemctl", "restart", "resumed.service")
    asking.join(60)

    assert [] == failed
    assert before != lab.pid()
    assert inode == lab.run("stat", "-c", "%i", "/run/resumed/control")


def begun(lab: Lab, job: str) -> None:
    """A job whose one item is at work, with a process that left its session."""
    lab.write(f"/tmp/{job}.json", json.dumps({"workflow": "slow", "id": job, "items": ["a"]}))
    lab.run(CTL, "submit", f"/tmp/{job}.json")

    def look() -> None:
        assert 1 == lab.row(job)["running"]
        assert 2 <= len(lab.run("pgrep", "-x", "sleep").split())

    eventually(look)


def test_killed_service_goes_on_by_itself(lab: Lab) -> None:
    """SIGKILL: systemd kills keepers and workers with it, the next daemon knows that, and no job is held."""
    begun(lab, "killed")
    sleepers = set(lab.run("pgrep", "-x", "sleep").split())
    before = lab.pid()
    lab.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "resumed.service")
    lab.restarted(before)

    def again() -> None:
        assert ("running", 2, 1) == tuple(lab.row("killed")[each] for each in ("status", "epoch", "running"))

    eventually(again)
    lab.run(CTL, "cancel", "killed")

    assert set() == sleepers & set(lab.run("pgrep", "-x", "sleep", code=None).split())


def test_hung_service_is_ended_by_its_watchdog(lab: Lab) -> None:
    """A daemon that does not move gives no sign of life, is ended, tells where it stood, and comes back."""
    drop_in = "/run/systemd/system/resumed.service.d/test.conf"
    lab.write(drop_in, "[Service]\nWatchdogSec=2s\nTimeoutAbortSec=3s\n")
    lab.run("systemctl", "daemon-reload")
    lab.run("systemctl", "restart", "resumed.service")
    alive = lab.pid()
    threading.Event().wait(5)  # two and a half periods
    stays = lab.pid()
    lab.run("kill", "-STOP", str(alive))
    lab.restarted(alive)
    journal = lab.run("journalctl", "--unit=resumed.service", "--output=cat", "--no-pager")
    lab.run("rm", drop_in)
    lab.run("systemctl", "daemon-reload")
    lab.run("systemctl", "restart", "resumed.service")

    assert alive == stays
    assert "watchdog" in journal.lower()


def test_stray_signal_and_reexec_cost_nothing(lab: Lab) -> None:
    """A SIGTERM from nowhere ends in a restart; a new manager still hears the daemon it has."""
    before = lab.pid()
    lab.run("kill", "-TERM", str(before))
    after = lab.restarted(before)
    lab.run("systemctl", "daemon-reexec")
    lab.run("systemctl", "reload", "resumed.service")

    assert after == lab.pid()


def test_reload_waits_until_all_is_read(lab: Lab) -> None:
    """When `systemctl reload` returns, the new workflow is in force, and the daemon is the same."""
    before = lab.pid()
    lab.write("/etc/resumed/workflows.d/third.toml", FLOWS["quick"])
    lab.run("systemctl", "reload", "resumed.service")

    assert "third" in lab.house()["workflows"]
    assert before == lab.pid()


def test_refused_configuration_stays_down(lab: Lab) -> None:
    """78 is not tried again; the check says what is wrong beforehand; mended, it starts."""
    good = (HOUSE / "systemd" / "resumed.toml").read_text()
    lab.write("/etc/resumed/resumed.toml", 'workers = "many"\n')
    check = ["env", "STATE_DIRECTORY=/var/lib/resumed", "CONFIGURATION_DIRECTORY=/etc/resumed"]
    check += ["/opt/resumed/bin/resumed", "check-config", "--passed"]
    lab.run_as("resumed", *check, code=78)
    lab.run("systemctl", "restart", "resumed.service", code=1)
    down = lab.shows("ActiveState"), lab.shows("ExecMainStatus"), lab.shows("NRestarts")
    lab.write("/etc/resumed/resumed.toml", good)
    lab.run_as("resumed", *check)
    lab.run("systemctl", "reset-failed", "resumed.service", "resumed.socket")
    lab.run("systemctl", "start", "resumed.service")

    assert ("failed", "78", "0") == down
    assert "control group" == lab.house()["containment"]


def test_power_cut_and_boot(lab: Lab) -> None:
    """Everything ends at once; after the boot a client wakes the daemon, and the job goes on, once more."""
    begun(lab, "cut")
    boot = lab.run("cat", "/proc/sys/kernel/random/boot_id")
    lab.do("cut")
    lab.do("up")

    def again() -> None:
        assert ("running", 2, 1) == tuple(lab.row("cut")[each] for each in ("status", "epoch", "running"))

    eventually(again)

    assert boot != lab.run("cat", "/proc/sys/kernel/random/boot_id")
    assert "completed" == lab.row("one")["status"]


def test_stop_is_in_good_order(lab: Lab) -> None:
    """Stopped with its socket, the service drains what runs, ends well, and leaves nothing."""
    before = lab.pid()
    lab.run("systemctl", "stop", "resumed.socket", "resumed.service")
    journal = lab.run("journalctl", f"_PID={before}", "--output=cat", "--no-pager")

    assert ("inactive", "success") == (lab.shows("ActiveState"), lab.shows("Result"))
    assert "The daemon stopped." in journal
    assert "" == lab.run("pgrep", "-x", "sleep", code=1)
    lab.run("stat", "/run/resumed/control", code=1)


def test_user_unit_lives_on_without_a_login(lab: Lab) -> None:
    """With linger one user's own daemon runs from its own folders, and answers that user."""
    lab.run("loginctl", "enable-linger", "anna")
    lab.run_as("anna", "mkdir", "-p", "/home/anna/.local/bin", "/home/anna/.config/resumed/workflows.d")
    lab.run_as("anna", "ln", "-s", "/opt/resumed/bin/resumed", "/home/anna/.local/bin/resumed")
    uid = lab.run("id", "-u", "anna").strip()

    def as_anna(*words: str, code: int | None = 0) -> str:
        environ = [f"XDG_RUNTIME_DIR=/run/user/{uid}", "HOME=/home/anna"]
        return lab.run_as("anna", "env", *environ, *words, code=code)

    eventually(lambda: as_anna("systemctl", "--user", "is-system-running"))
    as_anna("systemctl", "--user", "start", "resumed.service")
    house = json.loads(as_anna(CTL, "status", "--json"))["house"]
    shown = as_anna("systemctl", "--user", "show", "resumed.service", "-P", "StatusText").strip()
    as_anna("systemctl", "--user", "reload", "resumed.service")
    socket = Path(f"/run/user/{uid}/resumed/control")
    mode = as_anna("stat", "-c", "%a %U", str(socket)).strip()
    as_anna("systemctl", "--user", "stop", "resumed.socket", "resumed.service")

    assert "/home/anna/.local/state/resumed" == house["store"]
    assert "control group" == house["containment"]
    assert "0 open jobs, 0 at work, 0 workers" == shown
    assert f"{stat.S_IRUSR | stat.S_IWUSR:o} anna" == mode
