"""The shipped units, users and folders, as systemd itself reads them; nothing of this host is changed."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from resumed.daemon import config

UNITS = Path(__file__).resolve().parent.parent / "systemd"
SERVICES = {"system": UNITS, "user": UNITS / "user"}
DROP_INS = sorted((UNITS / "drop-ins").glob("*.conf"))
NEWER = {"10-systemd254.conf": 254}
"""Drop-ins that need more than the floor, systemd 252."""


@pytest.fixture(autouse=True)
def systemd() -> int:
    """The version there is; without any the tests are skipped, and fail where root could have brought it."""
    if shutil.which("systemd-analyze") is None:
        if os.geteuid() == 0:
            pytest.fail("systemd-analyze is not there: apt-get install systemd")
        pytest.skip("systemd-analyze is not there (package systemd)")
    said = subprocess.run(["systemd-analyze", "--version"], capture_output=True, text=True).stdout
    return int(said.split()[1])


def placed(kind: str, folder: Path, *drop_ins: Path) -> list[str]:
    """The units of a kind in a folder, with a program that is there in place of ours."""
    for unit in ("resumed.service", "resumed.socket"):
        text = (SERVICES[kind] / unit).read_text()
        text = re.sub(r"(/opt/resumed|%h/\.local)/bin/resumed", "/bin/true", text)
        (folder / unit).write_text(text)
    beside = folder / "resumed.service.d"
    beside.mkdir()
    for each in drop_ins:
        shutil.copy(each, beside)
    return [str(folder / unit) for unit in ("resumed.service", "resumed.socket")]


def analyze(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "SYSTEMD_COLORS": "0"}
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, timeout=60, env=environ
    )


@pytest.mark.parametrize("kind", SERVICES)
def test_units_verify(kind: str, tmp_path: Path) -> None:
    """Every directive is known to the systemd that is here, and nothing is said about any."""
    ran = analyze(
        f"--{kind}", "verify", "--man=no", "--recursive-errors=yes", *placed(kind, tmp_path), folder=tmp_path
    )

    assert (0, "") == (ran.returncode, ran.stderr)


@pytest.mark.parametrize("drop_in", DROP_INS, ids=lambda path: path.stem)
def test_drop_ins_verify(drop_in: Path, systemd: int, tmp_path: Path) -> None:
    """Each documented drop-in goes with the unit, on a systemd that is new enough for it."""
    if systemd < NEWER.get(drop_in.name, 0):
        pytest.skip(f"needs systemd {NEWER[drop_in.name]}, this is {systemd}")
    units = placed("system", tmp_path, drop_in)
    ran = analyze("verify", "--man=no", "--recursive-errors=yes", *units, folder=tmp_path)

    assert (0, "") == (ran.returncode, ran.stderr)


def test_a_misspelt_directive_would_be_found(tmp_path: Path) -> None:
    """The check itself can fail."""
    units = placed("system", tmp_path)
    text = (tmp_path / "resumed.service").read_text().replace("Restart=always", "Restrat=always")
    (tmp_path / "resumed.service").write_text(text)
    ran = analyze("verify", "--man=no", "--recursive-errors=yes", *units, folder=tmp_path)

    assert 0 != ran.returncode
    assert "Restrat" in ran.stderr


def test_exposure_is_at_most_two(tmp_path: Path) -> None:
    """The service is exposed by 2.0 of 10 at most, as systemd reckons it."""
    unit = placed("system", tmp_path)[0]
    held = analyze("security", "--offline=yes", "--threshold=20", "--no-pager", unit, folder=tmp_path)
    bare = tmp_path / "bare.service"
    bare.write_text("[Service]\nExecStart=/bin/true\n")
    open_wide = analyze(
        "security", "--offline=yes", "--threshold=20", "--no-pager", str(bare), folder=tmp_path
    )

    assert (0, 1) == (held.returncode, open_wide.returncode), held.stdout


def test_folders_of_the_unit_are_those_of_the_daemon() -> None:
    """The socket, the users' files and the watched folder stand where the daemon and its client look."""
    given = {"STATE_DIRECTORY": "/var/lib/resumed", "CONFIGURATION_DIRECTORY": "/etc/resumed"}
    found = config.load(None, {}, {**given, "HOME": "/var/lib/resumed"}, 990)
    listens = re.search(r"ListenStream=(\S+)", (UNITS / "resumed.socket").read_text())
    folders = (UNITS / "tmpfiles.d" / "resumed.conf").read_text()

    assert listens is not None
    assert listens[1] == str(config.load(None, {}, {}, 0).socket)
    assert f"d {found.incoming} 3730 resumed resumed-submit -" in folders
    assert f"d {found.workflows} 0755 root root -" in folders
    assert config.own_home(found, {"HOME": "/var/lib/resumed"}, 990) is None


def test_shipped_configuration_is_read(tmp_path: Path) -> None:
    """The example for a host of several people passes the strict door."""
    file = tmp_path / "resumed.toml"
    file.write_bytes((UNITS / "resumed.toml").read_bytes())
    file.chmod(0o644)
    found = config.load(file, {}, {}, 990)

    assert 60.0 == found.stop_timeout
    assert {"operator", "submitter"} == {grant.role.value for grant in found.grants}


@pytest.mark.root
def test_users_and_folders_are_made(tmp_path: Path) -> None:
    """In an empty root systemd makes our user, its groups, and the folders with their owners and modes."""
    for kind in ("sysusers.d", "tmpfiles.d"):
        place = tmp_path / "usr/lib" / kind
        place.mkdir(parents=True)
        shutil.copy(UNITS / kind / "resumed.conf", place)
    (tmp_path / "etc").mkdir()
    for command in ("systemd-sysusers", "systemd-tmpfiles --create"):
        ran = subprocess.run(
            [*command.split(), f"--root={tmp_path}", "resumed.conf"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert 0 == ran.returncode, ran.stderr
    users = dict(line.split(":", 1) for line in (tmp_path / "etc/passwd").read_text().splitlines())
    groups = {
        line.split(":")[0]: (int(line.split(":")[2]), line.split(":")[3])
        for line in (tmp_path / "etc/group").read_text().splitlines()
    }
    uid = int(users["resumed"].split(":")[1])
    state, incoming = (os.stat(tmp_path / "var/lib/resumed" / each) for each in (".", "incoming"))

    assert users["resumed"].endswith(":/var/lib/resumed:/usr/sbin/nologin")
    assert {"resumed", "resumed-ops", "resumed-submit"} <= set(groups)
    assert "resumed" == groups["resumed-submit"][1]
    assert (0o751, uid) == (stat.S_IMODE(state.st_mode), state.st_uid)
    assert (0o3730, uid, groups["resumed-submit"][0]) == (
        stat.S_IMODE(incoming.st_mode),
        incoming.st_uid,
        incoming.st_gid,
    )
