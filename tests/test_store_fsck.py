"""fsck: every stored file is looked at, what is wrong is named with its owner, and nothing is changed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import story, world
from faults.disk import Disk
from faults.seam import FailLook, Seam

from resumed.store import archive, artifacts, fsck, layout, quarantine

NOW = world.moment(60)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store after the whole story, with one more job under way."""
    disk = Disk(root=tmp_path_factory.mktemp("told"))
    with disk:
        story.run(disk)
    folder = world.admit(layout.Layout(disk.root), "pier")
    opened = world.open_job(folder)
    for _ in range(3):
        world.append(opened, 2)
        world.checkpoint(opened)
    artifacts.put(folder, b"a draft")
    opened.close()
    return disk.root


@pytest.fixture
def place(told: Path, ram: Path) -> layout.Layout:
    """A copy of it."""
    return layout.Layout(shutil.copytree(told, ram / "store"))


def spoil(path: Path) -> None:
    """Change a byte in the middle."""
    raw = path.read_bytes()
    middle = len(raw) // 2
    path.write_bytes(raw[:middle] + bytes([raw[middle] ^ 1]) + raw[middle + 1 :])


def add(path: Path, raw: bytes) -> None:
    """Put bytes behind a file's own."""
    path.write_bytes(path.read_bytes() + raw)


def only(folder: Path, pattern: str, number: int = 0) -> Path:
    """One of the files that fit a pattern."""
    return sorted(folder.glob(pattern))[number]


def test_sound_store_has_no_findings(place: layout.Layout) -> None:
    """After everything that the store does, all files verify; the counts say how much was looked at."""
    report = fsck.check(place.root, world.apply)

    assert () == report.findings
    assert (True, 2, 1, 1) == (report.sound, report.jobs, report.archived, report.set_aside)


HARM: dict[str, tuple[Callable[[layout.Layout], object], str, str]] = {
    # what was done: (how, the job it is found under, the finding's code)
    "older checkpoint rotten": (lambda p: spoil(only(p.job("pier"), "5-*")), "pier", "damaged"),
    "newer checkpoint rotten": (lambda p: spoil(only(p.job("pier"), "7-*")), "pier", "damaged"),
    "history rotten": (lambda p: spoil(p.job("pier") / "1.1.log"), "pier", "damaged"),
    "history cut": (lambda p: (p.job("pier") / "4.0.log").write_bytes(b""), "pier", "damaged"),
    "history of the archive rotten": (
        lambda p: spoil(p.archived("harbour") / "1.1.log"),
        "harbour",
        "damaged",
    ),
    "archived job.json rotten": (lambda p: spoil(p.archived("harbour") / "job.json"), "harbour", "damaged"),
    "artifact rotten": (lambda p: spoil(only(p.job("pier") / "artifacts", "*")), "pier", "damaged"),
    "newest log gone": (lambda p: (p.job("pier") / "8.0.log").unlink(), "pier", "damaged"),
    "newest log torn": (
        lambda p: add(p.job("pier") / "8.0.log", b"half"),
        "pier",
        "torn",
    ),
    "job.json gone": (lambda p: (p.job("pier") / "job.json").unlink(), "pier", "damaged"),
    "a temp file in a job": (
        lambda p: (p.job("pier") / ".9.0.log.0123456789ab.tmp").write_bytes(b""),
        "pier",
        "temporary",
    ),
    "a temp artifact": (
        lambda p: (p.job("pier") / "artifacts" / ".a.0123456789ab.tmp").write_bytes(b""),
        "pier",
        "temporary",
    ),
    "a stray file in a job": (lambda p: (p.job("pier") / "notes").write_bytes(b""), "pier", "stray"),
    "a stray artifact": (
        lambda p: (p.job("pier") / "artifacts" / "notes").write_bytes(b""),
        "pier",
        "stray",
    ),
    "a job under another name": (
        lambda p: p.job("pier").rename(p.job("pier").with_name("jetty")),
        "jetty",
        "misplaced",
    ),
    "a job in another shard": (
        lambda p: [(p.jobs / "zz").mkdir(), p.job("pier").rename(p.jobs / "zz" / "pier")],
        "pier",
        "misplaced",
    ),
    "a half made admission": (lambda p: (p.jobs / "aa" / ".x.0123456789ab.tmp").mkdir(), "", "temporary"),
    "a file among the shards": (lambda p: (p.jobs / "x").write_bytes(b""), "", "stray"),
    "a file among the jobs": (lambda p: (p.jobs / "aa" / "x").write_bytes(b""), "", "stray"),
    "store.json gone": (lambda p: p.store_file.unlink(), "", "missing"),
    "store.json rotten": (lambda p: p.store_file.write_bytes(b"{"), "", "damaged"),
    "store.json of a later format": (
        lambda p: p.store_file.write_bytes(p.store_file.read_bytes().replace(b'"format": 2', b'"format": 3')),
        "",
        "newer",
    ),
    "a stray file beside the folders": (lambda p: (p.root / "core").write_bytes(b""), "", "stray"),
    "a temp file beside the folders": (
        lambda p: (p.root / ".store.json.0123456789ab.tmp").write_bytes(b""),
        "",
        "temporary",
    ),
    "quarantine without its reason": (
        lambda p: quarantine.reason_path(p, "unfit").unlink(),
        "unfit",
        "missing",
    ),
    "a reason without its quarantine": (
        lambda p: quarantine.reason_path(p, "other").write_bytes(b"{}"),
        "",
        "unfinished",
    ),
    "a refused file without its reason": (
        lambda p: only(p.rejected, "*.reason.json").unlink(),
        "",
        "missing",
    ),
    "a reason without its file": (lambda p: only(p.rejected, "*.json").unlink(), "", "unfinished"),
    "a claimed file": (lambda p: (p.claimed / "a").write_bytes(b""), "", "unfinished"),
    "a name that is none": (lambda p: (p.names / "a").write_bytes(b""), "", "stray"),
    "a stray file among the workers": (lambda p: (p.workers / "a").write_bytes(b""), "", "stray"),
    "a folder gone": (lambda p: p.workers.rmdir(), "", "unreadable"),
}


@pytest.mark.parametrize("case", HARM)
def test_harm_is_named_with_its_owner(case: str, place: layout.Layout) -> None:
    """Each kind of harm is found, once under the job it belongs to, and no other job is blamed."""
    harm, job, code = HARM[case]
    (place.jobs / "aa").mkdir(exist_ok=True)
    harm(place)
    report = fsck.check(place.root, world.apply)

    assert (job, code) in {(one.job, one.code) for one in report.findings}, report.findings
    assert {job} == {one.job for one in report.findings}
    assert all(one.detail and one.path.startswith(str(place.root)) for one in report.findings)


FATAL = {
    "newest log gone": True,
    "job.json gone": True,
    "history rotten": False,
    "newer checkpoint rotten": False,
    "artifact rotten": False,
    "newest log torn": False,
}


@pytest.mark.parametrize("case", FATAL)
def test_fatal_is_what_sets_a_job_aside(case: str, place: layout.Layout) -> None:
    """fsck and recovery agree: fatal findings are those that stop a job from loading."""
    HARM[case][0](place)

    assert FATAL[case] == any(one.fatal for one in fsck.check(place.root, world.apply).findings)


def test_fsck_changes_nothing(place: layout.Layout) -> None:
    """Not one call that changes the disk, whatever is wrong."""
    for harm, _, _ in (HARM["newest log torn"], HARM["older checkpoint rotten"]):
        harm(place)
    with Seam() as seam:
        fsck.check(place.root, world.apply)

    assert [] == seam.calls


def test_fsck_outlives_every_failed_look(place: layout.Layout) -> None:
    """A disk that refuses one read gives a finding, never an end of the check."""
    with Seam() as rehearsal:
        fsck.check(place.root, world.apply)
    for at in range(0, rehearsal.looks, 3):
        with Seam(FailLook(at, 5)) as seam:
            report = fsck.check(place.root, world.apply)
        assert seam.hit
        assert "unreadable" in {one.code for one in report.findings}, at


def test_empty_folder_is_no_store(tmp_path: Path) -> None:
    """Asked about a folder that is no store, fsck says so."""
    report = fsck.check(tmp_path, world.apply)

    assert "missing" == report.findings[0].code
    assert not report.sound


def test_archive_of_a_job_under_way_is_not_expected(place: layout.Layout) -> None:
    """Moving the job changes where it is counted, not what is found."""
    archive.move(place, "pier")
    report = fsck.check(place.root, world.apply)

    assert (1, 2, ()) == (report.jobs, report.archived, report.findings)
