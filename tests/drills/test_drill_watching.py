"""Files that come while nobody looks, and files that are written as people and programs really write them."""

import json
import os
import random
import signal
from pathlib import Path

import pytest

from .kit import Daemon, command, pass_by, until

FILES, BUSY = 12_000, 2_000
STARTS = 100


def prepared(daemon: Daemon) -> None:
    """A daemon with a workflow whose jobs stay open: one program that is not done for long."""
    daemon.workflow("later", command(["sleep", "600"]))
    daemon.configure(workers=1)
    daemon.start()


def job(name: str, item: str = "a") -> bytes:
    """The text of a job file."""
    return json.dumps({"workflow": "later", "id": name, "items": [item]}).encode()


def place(daemon: Daemon, name: str, raw: bytes) -> None:
    """A file renamed into the watched folder, as a careful writer does it."""
    beside = daemon.root / f".{name}"
    beside.write_bytes(raw)
    beside.chmod(0o600)
    beside.rename(daemon.state / "incoming" / name)


def left(daemon: Daemon) -> int:
    """How many files are neither a job nor a refusal yet."""
    return sum(len(os.listdir(daemon.state / name)) for name in ("incoming", "claimed"))


def items_of(daemon: Daemon, name: str) -> list[str]:
    """The items of a job."""
    return list(daemon.items(name))


@pytest.mark.timeout(1800)
def test_files_of_a_burst_that_nobody_saw_are_all_taken(daemon: Daemon, faults_scale: float) -> None:
    """C29: however many files are renamed in while the daemon is stopped, and again while it is busy with
    them: each becomes exactly one job, without a restart and without a further file."""
    prepared(daemon)
    stopped, busy = round(FILES * faults_scale), round(BUSY * faults_scale)
    daemon.signal(signal.SIGSTOP)
    for number in range(stopped):
        place(daemon, f"{number}.json", job(f"n{number}"))
    daemon.signal(signal.SIGCONT)
    until(lambda: left(daemon) < stopped, "it has begun", within=60)
    for number in range(stopped, stopped + busy):
        place(daemon, f"{number}.json", job(f"n{number}"))
    until(lambda: left(daemon) == 0, "all files are taken", within=60 + (stopped + busy) / 20, every=0.05)
    made = daemon.jobs_on_disk()

    assert sorted(f"n{number}" for number in range(stopped + busy)) == made
    assert stopped + busy == daemon.ask("Status")["house"]["open"]
    assert [] == os.listdir(daemon.state / "rejected")


def test_file_that_is_written_in_two_halves_is_one_whole_job(daemon: Daemon) -> None:
    """C31 (a): a half that is closed, and finished a second later, is not refused, nor taken for all."""
    prepared(daemon)
    raw = job("x", "whole")
    path = daemon.state / "incoming" / "x.json"
    path.touch(mode=0o600)
    path.write_bytes(raw[: len(raw) // 2])
    where = [daemon.state / name / "x.json" for name in ("incoming", "claimed")]
    pass_by(1.0)
    half = next(each for each in where if each.exists())
    with half.open("ab") as writer:
        writer.write(raw[len(raw) // 2 :])
    until(lambda: left(daemon) == 0, "it is taken", every=0.01)

    assert ["whole"] == items_of(daemon, "x")
    assert [] == os.listdir(daemon.state / "rejected")


def test_file_that_an_editor_saves_is_one_job(daemon: Daemon) -> None:
    """C31 (b), (c): saved by way of a backup and a rename, touched and chmodded, it is one job."""
    prepared(daemon)
    folder = daemon.state / "incoming"
    (folder / "x.json~").write_bytes(job("x", "old"))
    place(daemon, ".x.json.swp", job("x", "new"))
    (folder / ".x.json.swp").rename(folder / "x.json")
    for _ in range(3):
        try:
            os.utime(folder / "x.json")
            (folder / "x.json").chmod(0o600)
        except FileNotFoundError:
            break  # it was claimed meanwhile
    until(lambda: "x" in daemon.jobs_on_disk() and left(daemon) == 1, "it is taken", every=0.01)

    assert ["new"] == items_of(daemon, "x")
    assert ["x"] == daemon.jobs_on_disk()
    assert ["x.json~"] == os.listdir(folder)


@pytest.mark.timeout(900)
def test_files_from_before_and_during_the_start_are_taken(daemon: Daemon, faults_scale: float) -> None:
    """C31 (d): a file that was there before the start, and one that comes at any moment of it, are one job
    each."""
    prepared(daemon)
    chance = random.Random(31)
    rounds = max(4, round(STARTS * (faults_scale if faults_scale >= 1 else faults_scale / 2)))
    for number in range(rounds):
        daemon.kill()
        daemon.bury()
        place(daemon, "y.json", job(f"y{number}"))
        daemon.start(ready=False)
        pass_by(chance.uniform(0, 0.2) + 0.3 * (number % 2))
        place(daemon, "z.json", job(f"z{number}"))
        daemon.wait_ready()
        until(lambda: left(daemon) == 0, "both are taken", every=0.01)

    assert sorted(f"{name}{n}" for name in "yz" for n in range(rounds)) == daemon.jobs_on_disk()


def test_claimed_job_is_not_changed_by_its_file(daemon: Daemon) -> None:
    """C31 (e): written once more with other items after it was claimed, it is a conflict; the job stays."""
    prepared(daemon)
    place(daemon, "x.json", job("x", "first"))
    until(lambda: left(daemon) == 0, "it is taken", every=0.01)
    place(daemon, "x.json", job("x", "second"))
    reason: Path = daemon.state / "rejected" / "x.json.reason.json"
    until(reason.exists, "it is refused", every=0.01)

    assert "id_taken" == json.loads(reason.read_bytes())["code"]
    assert ["first"] == items_of(daemon, "x")
