"""fsck --repair: what is damaged is moved, nothing is deleted, and a repair that was killed is made again."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import harbour, world
from faults.harbour import JOBS, folder_of, judge
from faults.seam import Fail, Kill, Killed, Seam

from resumed.actors.machine.apply import apply
from resumed.daemon import check, main
from resumed.schemas.errors import CommitError, NewerSchemaError
from resumed.store import fsck, layout, lock, names, quarantine, repair

NOW = world.moment(90)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with every kind of file."""
    return harbour.build(tmp_path_factory.mktemp("built") / "store").root


@pytest.fixture
def place(built: Path, ram: Path) -> layout.Layout:
    """A copy of it."""
    return layout.Layout(shutil.copytree(built, ram / "store"))


def mend(place: layout.Layout) -> repair.Repair:
    """One repair, always at the same moment."""
    return repair.repair(place, apply, NOW, "another")


def spoil(path: Path) -> None:
    """Change a byte in the middle."""
    raw = path.read_bytes()
    middle = len(raw.rstrip(b"\0")) // 2
    path.write_bytes(raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :])


def only(folder: Path, pattern: str, number: int = 0) -> Path:
    """One of the files that fit a pattern."""
    return sorted(folder.glob(pattern))[number]


def contents(root: Path) -> dict[str, bytes]:
    """All files below a folder, but for the lock."""
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    found.pop("lock", None)
    return found


HARM: dict[str, tuple[Callable[[layout.Layout], object], dict[str, str], int]] = {
    # what was done: (how, what was moved where ("" stands for a file written new), fsck's verdict then)
    "a job's newest log rotten": (
        lambda p: spoil(p.job("pier") / "1.0.log"),
        {"jobs/*/pier": "quarantine/pier"},
        0,
    ),
    "job.json gone": (
        lambda p: (p.job("harbour") / "job.json").unlink(),
        {"jobs/*/harbour": "quarantine/harbour"},
        0,
    ),
    "an ended job rotten": (
        lambda p: spoil(p.archived("quay") / "job.json"),
        {"archive/*/quay": "quarantine/quay"},
        0,
    ),
    "the newest checkpoint rotten": (
        lambda p: spoil(only(p.job("harbour"), "*.checkpoint.json", 1)),
        {"jobs/*/harbour/3-*.checkpoint.json": "lost/jobs/*/harbour/3-*.checkpoint.json"},
        0,
    ),
    "the older checkpoint rotten": (
        lambda p: spoil(only(p.job("harbour"), "*.checkpoint.json", 0)),
        {"jobs/*/harbour/2-*.checkpoint.json": "lost/jobs/*/harbour/2-*.checkpoint.json"},
        0,
    ),
    "history rotten": (
        lambda p: spoil(p.job("harbour") / "1.1.log"),
        {"jobs/*/harbour/1.1.log": "lost/jobs/*/harbour/1.1.log"},
        0,
    ),
    "an artifact rotten": (
        lambda p: spoil(only(p.job("harbour") / "artifacts", "*")),
        {"jobs/*/harbour/artifacts/*": "lost/jobs/*/harbour/artifacts/*"},
        1,
    ),
    "an artifact gone": (lambda p: only(p.job("harbour") / "artifacts", "*").unlink(), {}, 1),
    "a job in another's shard": (
        lambda p: [(p.jobs / "zz").mkdir(exist_ok=True), p.job("pier").rename(p.jobs / "zz" / "pier")],
        {"jobs/zz/pier": "jobs/*/pier"},
        0,
    ),
    "a job under another name": (
        lambda p: p.job("pier").rename(p.job("pier").with_name("mole")),
        {"jobs/*/mole": "jobs/*/pier"},
        0,
    ),
    "a copy of a job": (
        lambda p: shutil.copytree(p.job("pier"), p.job("pier").with_name("mole")),
        {"jobs/*/mole": "quarantine/mole"},
        0,
    ),
    "a second job to be set aside under one id": (
        lambda p: [
            world.admit(p, "mole"),
            (p.quarantine / "mole").mkdir(),
            quarantine.reason_path(p, "mole").write_bytes(
                quarantine.reason_path(p, "wreck").read_bytes().replace(b"wreck", b"mole")
            ),
            spoil(p.job("mole") / "job.json"),
        ],
        {
            "jobs/*/mole": "lost/jobs/*/mole",
            "quarantine/mole.reason.json": "lost/quarantine/mole.reason.json",
            "": "quarantine/mole.reason.json",
        },
        0,
    ),
    "store.json rotten": (
        lambda p: spoil(p.store_file),
        {"store.json": "lost/store.json", "": "store.json"},
        0,
    ),
    "store.json gone": (lambda p: p.store_file.unlink(), {"": "store.json"}, 0),
    "a folder gone": (lambda p: p.scratch.rmdir(), {"": "scratch"}, 0),
    "a reason rotten": (
        lambda p: spoil(quarantine.reason_path(p, "wreck")),
        {
            "quarantine/wreck.reason.json": "lost/quarantine/wreck.reason.json",
            "": "quarantine/wreck.reason.json",
        },
        0,
    ),
    "a reason gone": (
        lambda p: quarantine.reason_path(p, "wreck").unlink(),
        {"": "quarantine/wreck.reason.json"},
        0,
    ),
    "a refused file rotten": (
        lambda p: spoil(p.rejected / "refused-1.json"),
        {
            f"rejected/{name}": f"lost/rejected/{name}"
            for name in ("refused-1.json.reason.json", "refused-1.json")
        },
        0,
    ),
    "a refused file without its reason": (
        lambda p: (p.rejected / "refused-1.json.reason.json").unlink(),
        {"rejected/refused-1.json": "lost/rejected/refused-1.json"},
        0,
    ),
    "a name rotten": (lambda p: spoil(only(p.names, "*")), {}, 1),
    "a name gone": (
        lambda p: (p.names / names.spell("key", 1000, "invoice-1")).unlink(),
        {"": "names/*"},
        0,
    ),
    "a worker's record rotten": (lambda p: spoil(p.workers / "w-2.json"), {}, 1),
    "a left-over of a crash": (lambda p: (p.names / ".x.0123456789ab.tmp").write_bytes(b""), {}, 0),
    "a file of somebody's": (lambda p: (p.root / "core").write_bytes(b"x"), {}, 0),
}


@pytest.mark.parametrize("case", HARM)
def test_damage_is_moved_and_nothing_is_lost(case: str, place: layout.Layout) -> None:
    """What was done is said; every file's bytes are still there; jobs that loaded load the same."""
    harm, wanted, verdict = HARM[case]
    harm(place)
    before = contents(place.root)
    right = {job: judge(folder_of(place, job)) for job in JOBS}
    done = mend(place)
    steps = {place_of(place, step.source): place_of(place, step.target) for step in done.steps}

    assert wanted == {shape(source): shape(target) for source, target in steps.items()}
    assert verdict == check.verdict_of(done.report.findings), done.report.findings
    assert Counter(before.values()) <= Counter(contents(place.root).values())
    for job, one in right.items():
        if not one.found:
            assert one == judge(folder_of(place, job)), job
    assert bool(done.left) == bool(verdict)
    assert () == mend(place).steps


def place_of(place: layout.Layout, path: str) -> str:
    """A path below the store; empty stays empty."""
    return str(Path(path).relative_to(place.root)) if path else ""


def shape(path: str) -> str:
    """A path without what differs from one store to the next: shards but for `aa`, and digests."""
    parts = path.split("/")
    for place in ("jobs", "archive"):
        if place in parts and parts[parts.index(place) + 1] != "zz":
            parts[parts.index(place) + 1] = "*"
    return re.sub(r"[0-9a-f]{64}", "*", "/".join(parts))


def test_sound_store_is_left_alone(place: layout.Layout) -> None:
    """Nothing is written where nothing is wrong."""
    with Seam() as seam:
        done = mend(place)

    assert ((), (), []) == (done.steps, done.left, seam.calls)


def wreck_all(place: layout.Layout) -> None:
    """Several things at once, of every kind that is repaired."""
    for case in (
        "a job's newest log rotten",
        "an ended job rotten",
        "the older checkpoint rotten",
        "an artifact rotten",
        "store.json rotten",
        "a folder gone",
        "a reason rotten",
        "a refused file rotten",
        "a name rotten",
    ):
        HARM[case][0](place)
    place.job("pending-2").rename(place.job("pending-2").with_name("mole"))


def test_repair_killed_anywhere_is_made_again(place: layout.Layout, ram: Path, faults_scale: float) -> None:
    """Whatever call a kill hits, the next repair ends where an undisturbed one does."""
    wreck_all(place)
    with Seam() as rehearsal:
        mend(layout.Layout(shutil.copytree(place.root, ram / "whole")))
    wanted = contents(ram / "whole")
    assert 1 == check.verdict_of(fsck.check(ram / "whole", apply).findings)
    every = max(1, round(0.6 / faults_scale) - 1)
    for call in rehearsal.calls[::every]:
        for moment in ("before", "half", "after"):
            if moment == "half" and call.name != "pwrite":
                continue
            again = layout.Layout(shutil.copytree(place.root, ram / "again"))
            with Seam(Kill(call.number, moment)) as seam, pytest.raises(Killed):
                mend(again)
            assert seam.hit
            mend(again)
            found = {name: raw for name, raw in contents(again.root).items() if not name.endswith(".tmp")}

            assert wanted == found, (call, moment)
            shutil.rmtree(again.root)


def test_refusing_disk_ends_a_repair_and_loses_nothing(place: layout.Layout, ram: Path) -> None:
    """Whatever call fails, every file's bytes are still there, and the repair can be made again."""
    wreck_all(place)
    before = Counter(contents(place.root).values())
    with Seam() as rehearsal:
        mend(layout.Layout(shutil.copytree(place.root, ram / "whole")))
    for call in rehearsal.calls[::5]:
        again = layout.Layout(shutil.copytree(place.root, ram / "again"))
        with Seam(Fail(call.number, 5)):
            try:
                mend(again)
            except CommitError:
                pass
        assert before <= Counter(contents(again.root).values()), call
        mend(again)
        assert set(contents(ram / "whole")) == {
            name for name in contents(again.root) if not name.endswith(".tmp")
        }
        shutil.rmtree(again.root)


def test_store_of_a_later_format_is_not_touched(place: layout.Layout) -> None:
    """What a later release wrote is no damage, and nothing of it is known here."""
    place.store_file.write_bytes(b'{"format": 99, "moods": []}')
    before = contents(place.root)
    with pytest.raises(NewerSchemaError):
        mend(place)

    assert before == contents(place.root)


def test_held_store_is_not_repaired(place: layout.Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """While a daemon holds the lock a repair is refused, with who holds it; looking is possible."""
    HARM["a job's newest log rotten"][0](place)
    before = contents(place.root)
    held = lock.hold(place, {"boot": "b", "pid": 4321, "start": 1})
    refused, looked = (main.main(["fsck", *words, str(place.root)]) for words in (["--repair"], []))
    held.release()

    assert (75, 1) == (refused, looked)
    assert "pid 4321 holds its lock" in capsys.readouterr().err
    assert before == contents(place.root)


def test_repair_says_what_it_moved_where(place: layout.Layout, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a step, one for each thing that was left and why, then what fsck says now, as its status."""
    HARM["history rotten"][0](place)
    HARM["a name rotten"][0](place)
    said = []
    for words in ([], ["--json"]):
        assert 1 == main.main(["fsck", "--repair", str(place.root), *words])
        said.append(capsys.readouterr().out)

    moved, left = said[0].splitlines()[:2]
    assert moved.startswith("> moved jobs/")
    assert "1.1.log to lost/jobs/" in moved
    assert left.startswith("= left names/")
    assert "stays taken" in left
    assert [] == json.loads(said[1])["steps"]
    only(place.names, "*").unlink()
    for expected in ("> wrote names/", "nothing to repair"):
        assert 0 == main.main(["fsck", "--repair", str(place.root)])
        assert expected in capsys.readouterr().out
    assert 2 == main.main(["fsck", "--repair", "/dev"])
