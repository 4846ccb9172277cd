"""Files dropped while nobody looks, and kills in mid-claim: each becomes one job or one refusal."""

import json
import os
import random
from pathlib import Path

import pytest

from .kit import Daemon, command, pass_by, until

FILES = 2000


def fill(daemon: Daemon, count: int) -> tuple[set[str], set[str]]:
    """Job files in the watched folder, every tenth a bad one; the ids, and the names of the bad ones."""
    good, bad = set(), set()
    incoming = daemon.state / "incoming"
    for number in range(count):
        name = f"f{number:04}.json"
        job = {"workflow": "later", "id": f"job-{number:04}", "items": ["a"]}
        if number % 10 == 9:
            job |= [{"id": number}, {"itmes": ["a"]}, {"workflow": "nobody"}, {"items": ["a", "a"]}][
                number // 10 % 4
            ]
            bad.add(name)
        else:
            good.add(f"job-{number:04}")
        path = incoming / name
        path.write_bytes(json.dumps(job).encode())
        path.chmod(0o600)
        # Written long ago, so that nobody waits for the writer to go on.
        os.utime(path, (1, 1))
    return good, bad


def pending(daemon: Daemon) -> list[str]:
    """What is neither a job nor a refusal yet."""
    return [path.name for name in ("incoming", "claimed") for path in (daemon.state / name).iterdir()]


def check(daemon: Daemon, good: set[str], bad: set[str]) -> None:
    """Every good file is one job, under its id; every bad one lies whole in `rejected/` with its reason."""
    jobs = daemon.jobs_on_disk()
    rejected = daemon.state / "rejected"
    kept = {path.name for path in rejected.iterdir() if not path.name.endswith(".reason.json")}
    reasons = {path.name for path in rejected.iterdir() if path.name.endswith(".reason.json")}

    assert sorted(good) == jobs
    assert bad == kept
    assert {f"{name}.reason.json" for name in bad} == reasons
    for name in bad:
        reason = json.loads((rejected / f"{name}.reason.json").read_bytes())
        assert reason["reason"].startswith("cannot admit") or reason["problems"], reason
        assert json.loads((rejected / name).read_bytes())["workflow"]
    assert [] == pending(daemon)


def prepared(daemon: Daemon) -> None:
    """A store that is there, with a workflow that nobody runs far: its jobs stay open for a while."""
    daemon.workflow("later", command(["sh", "-c", "exit 75"]))
    daemon.configure(workers=1)
    daemon.start()
    assert 0 == daemon.stop()


@pytest.mark.timeout(600)
def test_files_dropped_while_the_daemon_is_down_are_all_taken(daemon: Daemon, faults_scale: float) -> None:
    """C29: each of many files that were dropped while no daemon ran becomes one job, or one refused file with
    its reason; no further file has to arrive."""
    prepared(daemon)
    good, bad = fill(daemon, round(FILES * faults_scale))
    daemon.start()
    until(lambda: not pending(daemon), "all files are taken", within=300, every=0.05)
    assert len(good) == daemon.ask("Status")["house"]["open"] + daemon.ask("Status")["house"]["ended"]
    daemon.kill()
    daemon.bury()
    check(daemon, good, bad)
    assert 0 == daemon.fsck().returncode


@pytest.mark.timeout(600)
def test_kills_in_the_middle_of_claims_lose_and_double_nothing(daemon: Daemon, faults_scale: float) -> None:
    """C01: a daemon killed again and again while it takes in files has in the end made each of them one job,
    or one refused file with its reason."""
    prepared(daemon)
    good, bad = fill(daemon, round(FILES * faults_scale / 2))
    chance = random.Random(7)
    total = len(good) + len(bad)
    half_way = 0
    for _ in range(max(4, round(40 * faults_scale))):
        left = _left(daemon.state)
        if not left:
            break
        daemon.start(ready=False)
        step = chance.randrange(1, max(2, total // 6))
        until(
            lambda left=left, step=step: _left(daemon.state) <= max(0, left - step),
            "files are taken",
            every=0.0005,
        )
        pass_by(chance.uniform(0, 0.003))
        daemon.kill()
        daemon.bury()
        half_way += bool(list((daemon.state / "claimed").iterdir()))
    daemon.start()
    until(lambda: not pending(daemon), "all files are taken", within=300, every=0.05)
    daemon.kill()
    daemon.bury()

    check(daemon, good, bad)
    assert half_way > 0
    assert 0 == daemon.fsck().returncode


def _left(state: Path) -> int:
    return len(os.listdir(state / "incoming"))
