"""Faults from the field, each by its number: what happened to others must not happen here."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import story, world
from faults.disk import Disk
from faults.seam import Seam

from resumed.schemas import codec, strict
from resumed.schemas.errors import DamagedError, FaultyInputError, StoreError, UnreadableError
from resumed.store import durable, files, journal, layout, quarantine, recovery

GOLDEN = Path(__file__).parent / "golden" / "level-1"


def checkpointed(root: Path) -> tuple[Path, str]:
    """A job with two checkpoints and lines after them; its folder and the newer checkpoint's name."""
    folder = world.admit(world.store(root))
    opened = world.open_job(folder)
    world.append(opened, 2)
    world.checkpoint(opened)
    world.append(opened, 2)
    name = world.checkpoint(opened)
    world.append(opened, 1)
    opened.close()
    return folder, name


# ---- C33: rename without sync -----------------------------------------------------------------------------


def test_c33_checkpoint_is_synced_renamed_and_synced_again(tmp_path: Path) -> None:
    """C33: temp in the same folder, write, sync, rename, sync of the folder, and only then is it told."""
    opened = world.open_job(world.admit(world.store(tmp_path)))
    world.append(opened)
    opened.rotate("a test")
    found = recovery.load(opened.folder, world.apply)
    raw = world.checkpoint_of(found.snapshot, found.digest, found.job)
    made: list[Path] = []
    with Seam() as seam:
        seam.before("create", made.append)
        name = opened.write_checkpoint(raw, 2)
    opened.close()

    assert ["create", "pwrite", "sync_file", "rename_new", "sync_folder"] == seam.names()
    assert f"{made[0].name} -> {name}" == seam.calls[3].about
    assert (opened.folder, True) == (made[0].parent, durable.is_temporary(made[0].name))


def renames(disk: Disk) -> list[tuple[int, str, str]]:
    """The renames of a story that publish a file: call number, from, to."""
    found = []
    for call in disk.calls:
        source, _, target = call.about.partition(" -> ")
        if call.name == "rename_new" and durable.is_temporary(source):
            found.append((call.number, source, target))
    return found


def test_c33_nothing_is_published_without_both_syncs(tmp_path: Path) -> None:
    """C33: in all that the store does, a published name had its bytes synced before and its folder after."""
    disk = Disk(root=tmp_path)
    with disk:
        story.run(disk)
    published = renames(disk)
    for number, source, target in published:
        before = [call for call in disk.calls[:number] if call.about.split(" ")[0] == source]
        after = disk.calls[number + 1]
        told = [at for at, what in disk.told if at > number]

        assert before[-1].name in ("sync_file", "sync_folder"), target
        assert "sync_folder" == after.name, target
        assert all(at >= number + 2 for at in told), target
    assert len(published) > 15


def test_c33_new_folder_is_synced_into_its_parent(tmp_path: Path) -> None:
    """C33: a folder's name is durable before anything in it is relied on."""
    disk = Disk(root=tmp_path)
    with disk:
        story.run(disk)
    for call in disk.calls:
        if call.name == "make_folder" and not durable.is_temporary(call.about):
            later = [one.name for one in disk.calls[call.number + 1 :]]
            assert "sync_folder" == next(name for name in later if name != "make_folder"), call


IMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "empty": lambda raw: b"",
    "4 KiB of NUL": lambda raw: bytes(4096),
    "as long as it was, all NUL": lambda raw: bytes(len(raw)),
    "NUL to the block behind half of it": lambda raw: raw[: len(raw) // 2].ljust(4096, b"\0"),
    "gone": lambda raw: None,
    **{f"cut at {tenth}0%": lambda raw, t=tenth: raw[: len(raw) * t // 10] for tenth in range(1, 10)},
}


@pytest.mark.parametrize("case", IMAGES)
def test_c33_unsynced_checkpoint_costs_nothing_but_a_note(case: str, ram: Path) -> None:
    """C33: whatever a lost sync made of the newest checkpoint, the one before and the logs hold all lines."""
    folder, name = checkpointed(ram)
    sound = recovery.load(folder, world.apply)
    left = IMAGES[case]((folder / name).read_bytes())
    (folder / name).unlink() if left is None else (folder / name).write_bytes(left)
    found = recovery.load(folder, world.apply)

    assert sound.snapshot == found.snapshot
    assert (5, 3) == (sound.checkpoint, found.checkpoint)
    assert ([] if left is None else [f"{name} fails its digest"]) == [*found.notes]


def test_c33_temp_files_are_never_loaded_and_are_cleaned(ram: Path) -> None:
    """C33: a temp file with good bytes under a better name is left unread, and gone once the job is open."""
    folder, name = checkpointed(ram)
    good = (folder / name).read_bytes()
    (folder / f".{name}.0123456789ab.tmp").write_bytes(good)
    (folder / name).unlink()
    found = recovery.load(folder, world.apply)
    world.open_job(folder).close()

    assert 3 == found.checkpoint
    assert () == files.listing(folder).temporary


TRACED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from faults import world
opened = world.open_job(world.admit(world.store(Path(sys.argv[1]))))
world.append(opened)
world.checkpoint(opened)
opened.close()
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_c33_system_calls_are_what_the_seam_says(tmp_path: Path) -> None:
    """C33: a system-call trace shows the sync, the rename without replacing, and the sync of the folder."""
    trace = tmp_path / "trace"
    calls = "openat,pwrite64,fsync,fdatasync,renameat2,unlink"
    subprocess.run(
        [
            *("strace", "-y", "-s", "0", "-e", f"trace={calls}", "-o", str(trace)),
            *(sys.executable, "-c", TRACED, str(tmp_path / "store"), str(Path(__file__).parent)),
        ],
        check=True,
        capture_output=True,
    )
    lines = [line for line in trace.read_text().splitlines() if "/store" in line and " = -1" not in line]
    at = next(n for n, line in enumerate(lines) if ".checkpoint.json." in line and "O_CREAT" in line)
    seen = [line.partition("(")[0] for line in lines[at : at + 6]]

    assert ["openat", "pwrite64", "fsync", "renameat2", "openat", "fsync"] == seen
    assert "RENAME_NOREPLACE" in lines[at + 3]
    assert "O_DIRECTORY" in lines[at + 4]
    assert all("O_CLOEXEC" in line for line in lines if line.startswith("openat"))
    assert any(line.startswith("fdatasync") and "1.1.log" in line for line in lines)


# ---- C27: "false" means yes -------------------------------------------------------------------------------

VALUES: dict[str, Any] = {
    "false in quotes": "false",
    "no in quotes": "no",
    "zero": 0,
    "one": 1,
    "null": None,
    "an object": {},
    "a denial": {"status": "denied"},
    "a number in quotes": "3",
    "a fraction": 3.7,
    "a bool": True,
    "text for a list": "abc",
    "a list": [1],
}
Place = Callable[[dict[str, Any]], dict[str, Any]]
FIELDS: dict[str, tuple[Place, type]] = {
    # where it stands in a snapshot: (its owner, the one type it may have)
    "repeatable": (lambda s: s["contract"]["steps"][0], bool),
    "now": (lambda s: s["pause"], bool),
    "tool_calls": (lambda s: s["budget"], int),
    "attempts": (lambda s: s["budget"], int),
    "tries": (lambda s: s["contract"]["steps"][0], int),
    "uid": (lambda s: s["approvals"][0], int),
    "groups": (lambda s: s["approvals"][0], list),
    "decision": (lambda s: s["approvals"][0], str),
    "state": (lambda s: s["effects"][0], str),
}
OPTIONAL = ("tool_calls", "attempts")


@pytest.mark.parametrize("field", FIELDS)
def test_c27_wrong_value_in_a_checkpoint_is_refused(field: str, ram: Path) -> None:
    """C27: no wrong value reads as approved, repeatable, or a larger limit, though the digest fits it."""
    shutil.copytree(GOLDEN, ram / "store")
    folder = layout.Layout(ram / "store").job("harbour-7")
    name = files.listing(folder).checkpoints[-1]
    good = (folder / str(name)).read_bytes()
    (folder / str(name)).unlink()
    accepted = []
    for what, value in VALUES.items():
        if type(value) is FIELDS[field][1] or (value is None and field in OPTIONAL):
            continue
        plain = strict.parse(good, "a checkpoint")
        FIELDS[field][0](plain["snapshot"])[field] = value
        raw = codec.dump_plain(plain)
        path = folder / f"7-{codec.digest(raw)}.checkpoint.json"
        path.write_bytes(raw)
        if field not in refusal(folder):
            accepted.append(what)
        path.unlink()

    assert [] == accepted


def refusal(folder: Path) -> str:
    """Why a job does not load; empty when it does."""
    try:
        recovery.load(folder, world.apply)
    except DamagedError as error:
        return str(error)
    return ""


# ---- C25: output that cannot be encoded -------------------------------------------------------------------


def test_c25_line_that_cannot_be_spelled_never_reaches_the_disk(tmp_path: Path) -> None:
    """C25: a lone surrogate is refused before the write; the journal is as usable as before."""
    opened = world.open_job(world.admit(world.store(tmp_path)))
    with Seam() as seam, pytest.raises((FaultyInputError, TypeError)):
        world.append(opened, text="\ud83d")
    world.append(opened, text="ok \ufffd")
    opened.close()

    assert ([], False) == (seam.calls, opened.failed)
    assert 2 == recovery.load(opened.folder, world.apply).sequence


# ---- C19: one bad record, or one bad second, during recovery ----------------------------------------------


def test_c19_bad_jobs_stop_no_other(ram: Path) -> None:
    """C19: of fifty jobs 46 load at once, two when the disk answers again, two are set aside."""
    place = world.store(ram)
    ids = [f"job-{number:02}" for number in range(50)]
    for job_id in ids:
        opened = world.open_job(world.admit(place, job_id))
        world.append(opened)
        opened.close()
    (place.job("job-07") / "1.1.log").write_bytes(os.urandom(3000))
    (place.job("job-08") / "job.json").write_bytes(b"{}")
    slow = {str(place.job(job_id) / "job.json") for job_id in ("job-20", "job-21")}

    def refuse(path: Path) -> None:
        if str(path) in slow:
            raise OSError(errno.EIO, "a bad second")

    with Seam() as seam:
        seam.before("open_read", refuse)
        verdicts = {job_id: verdict(place, job_id) for job_id in ids}
    for job_id, found in verdicts.items():
        if found == "DamagedError":
            quarantine.set_aside(place, job_id, "damaged", "a drill", world.moment(1))
    again = [verdict(place, job_id) for job_id, found in verdicts.items() if found == "UnreadableError"]

    assert 46 == list(verdicts.values()).count("2")
    assert ["2", "2"] == again
    assert ["job-07", "job-08"] == [one.id for one in quarantine.entries(place)]


def verdict(place: layout.Layout, job_id: str) -> str:
    """How many lines a job has, or why that cannot be said."""
    try:
        return str(recovery.load(place.job(job_id), world.apply).sequence)
    except StoreError as error:
        return type(error).__name__


# ---- C01: one ordered commit ------------------------------------------------------------------------------


def test_c01_result_and_next_position_are_one_line(tmp_path: Path) -> None:
    """C01: a line is wholly there or wholly absent at every length that a crash may leave of it."""
    opened = world.open_job(world.admit(world.store(tmp_path)))
    world.append(opened)
    start = opened._end
    world.append(opened, text="the result and the next position")
    end = opened._end
    path = opened.folder / "1.1.log"
    raw = path.read_bytes()
    for length in range(start, end + 1):
        path.write_bytes(raw[:length] + bytes(len(raw) - length))
        found = recovery.load(opened.folder, world.apply)

        assert (3 if length == end else 2) == found.sequence, length
        assert str(found.sequence) == found.snapshot.state["last"]
    opened.close()


def test_opened_copy_leaves_the_first_alone(tmp_path: Path) -> None:
    """A job's folder is complete by itself: a copy of it loads elsewhere, to the same snapshot."""
    folder, _ = checkpointed(tmp_path / "one")
    copy = shutil.copytree(folder, tmp_path / "two" / "jobs" / "aa" / "harbour-7")
    opened = journal.open_for_writing(copy, recovery.load(copy, world.apply))
    opened.close()

    assert recovery.load(folder, world.apply).snapshot == recovery.load(copy, world.apply).snapshot
    with pytest.raises(UnreadableError):
        recovery.peek(tmp_path / "three")
