"""Published outputs through kills and races: each place bears one whole output, and nothing else is left."""

import random
from pathlib import Path

import pytest

from .kit import FINAL, Daemon, command, pass_by, until


def places(daemon: Daemon, script: str, *words: str, name: str = "{item}.out", **step: object) -> Path:
    """The workflow `put`, whose step publishes below a folder of its own; returns that folder."""
    out = daemon.root / "out"
    out.mkdir(exist_ok=True)
    output = {"publish": f"{out}/{name}", **step.pop("output", {})}  # type: ignore[dict-item]
    argv = ["sh", "-c", script, "sh", *words]
    daemon.workflow("put", command(argv, output=output, **{"tries": 9, "parallel": 4, **step}))
    return out


@pytest.mark.timeout(300)
@pytest.mark.parametrize("keep", ["copy", pytest.param("reference", marks=pytest.mark.faults)])
def test_every_output_is_published_once_through_kills(daemon: Daemon, keep: str, faults_scale: float) -> None:
    """Killed again and again while outputs get their names: in the end each item is done, each place bears
    its whole output, what was published before a kill was not made again, and no staged file is left."""
    made = daemon.root / "made"
    script = 'echo "$1" >> "$2"; for n in 1 2 3 4 5 6 7 8 9; do echo "$1 $n"; done; sleep 0.02'
    out = places(daemon, script, "{item}", str(made), name="{item}/deep/{item}", output={"keep": keep})
    names = [f"n{number:02}" for number in range(round(12 + 24 * faults_scale))]
    chance = random.Random(5)
    daemon.start()
    daemon.submit("put", "put", names)
    published: dict[str, int] = {}
    for _ in range(max(2, round(12 * faults_scale))):
        more = min(len(names), len(published) + 1)
        until(lambda more=more: len(list(out.glob("*/deep/n*"))) >= more, "one more")
        pass_by(chance.random() * 0.15)
        daemon.kill()
        daemon.bury()
        runs = made.read_text().split()
        published |= {path.name: runs.count(path.name) for path in out.glob("*/deep/n*")}
        daemon.start()
    row = daemon.wait_status("put", *FINAL)

    assert ("completed", len(names)) == (row["status"], row["done"])
    for name in names:
        whole = "".join(f"{name} {n}\n" for n in range(1, 10))
        assert whole == (out / name / "deep" / name).read_text()
        assert whole.encode() == daemon.resumectl("output", "put", name).stdout
    runs = made.read_text().split()
    assert published == {name: runs.count(name) for name in published}
    assert [] == list(out.rglob(".*"))
    assert 0 == daemon.fsck().returncode


@pytest.mark.parametrize("same", [False, True])
def test_two_jobs_publish_to_one_place_at_once(daemon: Daemon, same: bool) -> None:
    """One of them has the place; the other is held as `output_exists`, or done too where the bytes are the
    same. Left out, what it had staged goes; the place is never replaced."""
    gate = daemon.root / "gate"
    script = 'while ! test -e "$2"; do sleep 0.005; done; echo "$1"'
    out = places(daemon, script, "one" if same else "{job}", str(gate), name="a.out")
    daemon.start()
    for job in ("left", "right"):
        daemon.submit(job, "put", ["a"])
    until(lambda: 2 == sum(daemon.row(job)["running"] for job in ("left", "right")), "both run")
    gate.touch()
    rows = {job: daemon.wait_status(job, "held", *FINAL) for job in ("left", "right")}
    statuses = sorted(row["status"] for row in rows.values())
    assert (["completed"] * 2 if same else ["completed", "held"]) == statuses
    if same:
        assert ["a.out"] == [path.name for path in out.iterdir()]
        return
    winner, loser = sorted(rows, key=lambda job: rows[job]["status"])
    item = daemon.items(loser)["a"]
    said = f"cannot publish {out}/a.out: something else is there already"
    assert ("held", "output_exists", said) == (item["state"], item["code"], item["reason"])
    assert f"{winner}\n" == (out / "a.out").read_text()
    daemon.ask("Retry", job=loser)
    until(lambda: daemon.items(loser)["a"]["state"] == "held", "held again")
    daemon.ask("Skip", job=loser, items=["a"])
    assert "completed" == daemon.wait_status(loser, *FINAL)["status"]
    assert {"a.out": f"{winner}\n"} == {path.name: path.read_text() for path in out.iterdir()}


def test_held_output_is_published_when_its_place_is_free(daemon: Daemon) -> None:
    """A person moves away what was there: retried, the same output is published and nothing is run."""
    made = daemon.root / "made"
    out = places(daemon, 'echo ran >> "$1"; echo ours', str(made), name="a.out")
    (out / "a.out").write_text("theirs")
    daemon.start()
    daemon.submit("put", "put", ["a"])
    daemon.wait_status("put", "held")
    (out / "a.out").rename(out / "theirs")
    daemon.ask("Retry", job="put")
    daemon.wait_status("put", *FINAL)

    found = {path.name: path.read_text() for path in out.iterdir()}
    assert {"a.out": "ours\n", "theirs": "theirs"} == found
    assert "ran\n" == made.read_text()


def test_canceled_job_leaves_nothing_beside_the_place(daemon: Daemon) -> None:
    """What was staged for a place that was taken is gone when the job is canceled, also over a restart."""
    out = places(daemon, "echo ours", name="a.out")
    (out / "a.out").write_text("theirs")
    daemon.start()
    daemon.submit("put", "put", ["a"])
    daemon.wait_status("put", "held")
    assert 2 == len(list(out.iterdir()))
    daemon.kill()
    daemon.bury()
    daemon.start()
    daemon.ask("Cancel", job="put")
    daemon.wait_status("put", *FINAL)

    assert ["a.out"] == [path.name for path in out.iterdir()]
