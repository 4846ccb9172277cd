"""A start over fifty jobs of which one is garbage and one cannot be read: the others go on."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .kit import FINAL, ITEM, Daemon, program, until

JOBS = [f"job-{number:02}" for number in range(50)]
DAMAGED, UNREADABLE = "job-07", "job-23"
NO_OVERRIDE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
"""Root without the right to read what the mode bits forbid."""


def half_way(daemon: Daemon, jobs: list[str]) -> None:
    """Jobs with one item done and one begun, paused."""
    size = daemon.witness.size()
    for job in jobs:
        daemon.submit(job, "gated", ["a", "b"])
    for job in jobs:
        until(lambda job=job: daemon.witness.lines(job, "b", "start", size), f"{job} is half way")
        daemon.ask("Pause", job=job, now=True)
    for job in jobs:
        daemon.wait_status(job, "paused")


def folder_of(daemon: Daemon, job: str) -> Path:
    """Where an open job lies."""
    found: Path = next((daemon.state / "jobs").glob(f"*/{job}"))
    return found


def test_one_damaged_and_one_unreadable_job_hold_up_no_other(daemon: Daemon) -> None:
    """C19: of 50 jobs paused half way 48 go on, the garbage one is quarantined with its reason, the one that
    cannot be read is shown as set aside, stays where it is, and goes on by itself once it can be read."""
    gate = daemon.root / "gate"
    daemon.workflow("gated", _gated(daemon, gate))
    if os.geteuid() == 0:
        if not shutil.which("setpriv") or subprocess.run([*NO_OVERRIDE, "true"]).returncode:
            pytest.fail("root may read everything here: the drill needs setpriv (Debian: util-linux)")
        daemon.prefix = NO_OVERRIDE
    daemon.start()
    for first in range(0, len(JOBS), 4):  # as many as there are workers
        half_way(daemon, JOBS[first : first + 4])
    assert 0 == daemon.stop()
    gate.touch()
    logs = folder_of(daemon, DAMAGED).glob("*.log")
    newest = max(logs, key=lambda path: int(path.name.split(".")[0]))
    newest.write_bytes(os.urandom(newest.stat().st_size))
    shut = folder_of(daemon, UNREADABLE) / "job.json"
    shut.chmod(0)
    tried = subprocess.run([*daemon.prefix, "cat", str(shut)], capture_output=True)
    assert b"Permission denied" in tried.stderr, "the fault is not in force"

    daemon.start()
    until(lambda: not daemon.ask("Status")["house"]["loading"], "all jobs were looked at")
    good = [job for job in JOBS if job not in (DAMAGED, UNREADABLE)]
    assert good == [row["id"] for row in daemon.ask("List")["jobs"] if row["status"] == "paused"]
    for job in good:
        daemon.ask("Resume", job=job)
    aside = {each["id"]: each for each in daemon.ask("Quarantined")["jobs"]}
    listed = daemon.resumectl("quarantine", "list").stdout.decode()

    assert {DAMAGED, UNREADABLE} == set(aside)
    assert (True, "damaged") == (aside[DAMAGED]["moved"], aside[DAMAGED]["reason"])
    assert newest.name in aside[DAMAGED]["detail"]
    assert (False, "unreadable") == (aside[UNREADABLE]["moved"], aside[UNREADABLE]["reason"])
    assert "Permission denied" in aside[UNREADABLE]["detail"]
    assert DAMAGED in listed
    assert UNREADABLE in listed
    assert (daemon.state / "quarantine" / DAMAGED / newest.name).exists()
    assert shut.exists()

    shut.chmod(0o600)
    for job in good:
        row = daemon.wait_status(job, *FINAL)
        assert (2, "completed") == (row["done"], row["status"])
    until(lambda: len(daemon.ask("Quarantined")["jobs"]) == 1, "the job is read again", within=60, every=0.05)
    assert "paused" == daemon.row(UNREADABLE)["status"]
    daemon.ask("Resume", job=UNREADABLE)
    assert "completed" == daemon.wait_status(UNREADABLE, *FINAL)["status"]
    for job in (*good, UNREADABLE):
        assert 1 == len(daemon.witness.lines(job, "a", "start")), job
    house = daemon.ask("Status")["house"]
    assert 50 == house["ended"] + house["open"] + house["quarantined"]
    assert [] == daemon.witness.overlaps()


def test_a_job_whose_file_cannot_be_read_at_all_is_shown_and_kept(daemon: Daemon) -> None:
    """C19: a folder in a file's place is a read error, never a verdict: shown, not moved, tried again."""
    daemon.works("short", "work", 1)
    daemon.start()
    daemon.submit("harbour", "short", ["a"])
    daemon.ask("Pause", job="harbour", now=True)
    daemon.wait_status("harbour", "paused")
    assert 0 == daemon.stop()
    own = folder_of(daemon, "harbour") / "job.json"
    kept = own.rename(daemon.root / "kept")
    own.mkdir()
    with pytest.raises(IsADirectoryError):
        own.read_bytes()
    daemon.start()
    aside = until(lambda: daemon.ask("Quarantined")["jobs"], "it is shown as set aside")
    assert [("harbour", False)] == [(each["id"], each["moved"]) for each in aside]
    answer = daemon.resumectl("resume", "harbour")
    assert (1, True) == (answer.returncode, b"harbour is set aside" in answer.stderr)
    own.rmdir()
    kept.rename(own)
    until(lambda: not daemon.ask("Quarantined")["jobs"], "it is read again", within=60, every=0.05)
    daemon.ask("Resume", job="harbour")
    assert "completed" == daemon.wait_status("harbour", *FINAL)["status"]


def _gated(daemon: Daemon, gate: Path) -> str:
    """A workflow whose item `b` waits for the gate; `a` does not."""
    script = daemon.root / "gated.py"
    script.write_text(
        "import os, runpy, sys\n"
        "verb = ['gate', sys.argv[3]] if os.environ['RESUMED_ITEM'] == 'b' else ['work', '1']\n"
        "sys.argv = [sys.argv[1], sys.argv[2], *verb]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    return program([script, ITEM, daemon.witness.path, gate], parallel=1, grace="0s")
