"""The folders of a store: made, locked, and what moves between them, whole and never over another."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from faults import world
from faults.seam import Fail, FailLook, Kill, Killed, Seam

from resumed.schemas.errors import (
    BusyError,
    CommitError,
    DamagedError,
    NewerSchemaError,
    StoreError,
    UnreadableError,
)
from resumed.schemas.instant import Instant
from resumed.store import (
    admission,
    archive,
    durable,
    files,
    fsck,
    identities,
    layout,
    lock,
    names,
    quarantine,
    recovery,
    reserve,
)

NOW: Instant = world.moment(60)


@pytest.fixture
def place(tmp_path: Path) -> layout.Layout:
    """An empty store."""
    return world.store(tmp_path / "deep" / "store")


def tree(root: Path) -> dict[str, bytes | None]:
    """Everything below a folder."""
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in root.rglob("*")}


# ---- the store itself -------------------------------------------------------------------------------------


def test_store_is_made_for_its_owner_alone(place: layout.Layout) -> None:
    """Every folder has mode 0700 and every file 0600, whatever the umask lets through."""
    folders = [place.root, *(place.root / name for name in layout.FOLDERS)]

    assert {0o700} == {stat.S_IMODE(folder.stat().st_mode) for folder in folders}
    assert 0o600 == stat.S_IMODE(place.store_file.stat().st_mode)


def test_store_that_is_there_keeps_its_id(place: layout.Layout) -> None:
    """Opening a store makes what is missing and changes nothing else."""
    place.workers.rmdir()
    before = place.store_file.read_bytes()
    again = layout.create(place.root, "another", NOW)

    assert (before, True) == (place.store_file.read_bytes(), place.workers.is_dir())
    assert "store-1" == (layout.read(again) or pytest.fail("no store")).id


UNFIT = {
    "a later format": (b'{"format": 3, "id": "s", "mood": "calm"}', NewerSchemaError),
    "an unknown key": (b'{"format": 1, "id": "s", "mood": "calm"}', DamagedError),
    "text for a number": (b'{"format": "1", "id": "s"}', DamagedError),
    "a bool for a number": (b'{"format": true, "id": "s"}', DamagedError),
    "a fraction": (b'{"format": 1.0, "id": "s"}', DamagedError),
    "a key twice": (b'{"format": 1, "format": 1, "id": "s"}', DamagedError),
    "nothing": (b"", DamagedError),
    "a list": (b"[]", DamagedError),
    "not JSON": (b"\x00\x00", DamagedError),
}


@pytest.mark.parametrize("case", UNFIT)
def test_unfit_store_is_refused_before_any_side_effect(case: str, tmp_path: Path) -> None:
    """A store of a later format, or whose store.json does not hold (C27), is left as it is."""
    raw, kind = UNFIT[case]
    (tmp_path / "store.json").write_bytes(raw)
    before = tree(tmp_path)
    with Seam() as seam, pytest.raises(kind, match="cannot open the store"):
        layout.create(tmp_path, "s", NOW)

    assert ([], before) == (seam.calls, tree(tmp_path))


def test_jobs_without_a_store_file_are_refused(place: layout.Layout) -> None:
    """A store that lost its store.json is not taken for a new one."""
    world.admit(place)
    place.store_file.unlink()
    with pytest.raises(DamagedError, match=r"store\.json is missing"):
        layout.create(place.root, "s", NOW)

    assert not place.store_file.exists()


def test_store_that_cannot_be_read_is_not_made_anew(place: layout.Layout) -> None:
    """A failed look at store.json is no proof that it is missing."""
    with Seam(FailLook(0, errno.EIO)) as seam, pytest.raises(UnreadableError):
        layout.create(place.root, "s", NOW)

    assert [] == seam.calls


# ---- the lock ---------------------------------------------------------------------------------------------


def test_second_holder_is_told_who_is_first(place: layout.Layout) -> None:
    """One store has one daemon; the refusal names its pid."""
    held = lock.hold(place, {"boot": "b", "pid": 4711, "start": 9})
    with pytest.raises(BusyError, match="pid 4711"):
        lock.hold(place, {"boot": "b", "pid": 1, "start": 9})
    assert {"boot": "b", "pid": 4711, "start": 9} == lock.holder(place)
    held.release()
    held.release()

    lock.hold(place, {"pid": 1}).release()
    assert {"pid": 1} == lock.holder(place)


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'{"pid": "x"}'])
def test_lock_file_that_says_nothing_locks_all_the_same(place: layout.Layout, raw: bytes) -> None:
    """The lock is the kernel's; what stands in the file is for people."""
    held = lock.hold(place, {"pid": 1})
    place.lock_file.write_bytes(raw)
    with pytest.raises(BusyError, match="another process holds"):
        lock.hold(place, {"pid": 2})
    held.release()


def test_lock_that_the_disk_refuses_is_not_held(place: layout.Layout) -> None:
    """A failed call while the lock is taken gives it back."""
    for at in range(2):
        with Seam(Fail(at, errno.EIO)) as seam, pytest.raises(CommitError):
            lock.hold(place, {"pid": 1})
        assert seam.hit
    lock.hold(place, {"pid": 2}).release()


def test_lock_does_not_outlive_the_daemon_in_a_child(place: layout.Layout) -> None:
    """A child that inherits every descriptor it can does not hold the lock after the daemon's end."""
    held = lock.hold(place, {"pid": 1})
    child = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
    )
    assert child.stdout is not None
    child.stdout.read(1)  # it runs: until then the kernel may not have closed its descriptors yet
    held.release()
    try:
        lock.hold(place, {"pid": 2}).release()
    finally:
        child.communicate(b"\n")


# ---- admission --------------------------------------------------------------------------------------------


def test_admitted_job_loads(place: layout.Layout) -> None:
    """A job's folder is complete by itself: job.json, and a log whose seal and line 1 carry its digest."""
    folder = world.admit(place)
    found = recovery.load(folder, world.apply)

    assert ["1.0.log", "job.json"] == sorted(os.listdir(folder))
    assert (1, 1, 0, 0) == (found.sequence, found.first, found.k, found.checkpoint)
    assert world.opening("harbour-7").job == found.snapshot.job
    assert admission.job_digest(world.admission_of("harbour-7")) == found.job == found.before


TAKEN = {
    "jobs": world.admit,
    "archive": lambda place: [world.admit(place), archive.move(place, "harbour-7")],
    "quarantine": lambda place: [world.admit(place), aside(place)],
    "names": lambda place: names.keep(place.names, "id", 0, "harbour-7", b""),
}


def aside(place: layout.Layout) -> Path:
    """Set the job aside."""
    return quarantine.set_aside(place, "harbour-7", "damaged", "line 3 is broken", NOW)


@pytest.mark.parametrize("case", TAKEN)
def test_id_is_taken_wherever_it_is_known(case: str, place: layout.Layout) -> None:
    """An id that jobs, archive, quarantine or names bears is refused, and nothing is written."""
    assert not layout.taken(place, "harbour-7")
    TAKEN[case](place)
    before = tree(place.root)

    assert layout.taken(place, "harbour-7")
    with pytest.raises(FileExistsError):
        world.admit(place)
    assert before == tree(place.root)


def test_id_is_not_free_because_a_look_failed(place: layout.Layout) -> None:
    """Only an answer of the disk frees an id, never a failed look."""
    with Seam(FailLook(1, errno.EIO)), pytest.raises(UnreadableError):
        layout.taken(place, "harbour-7")


@pytest.mark.parametrize("job_id", ["", ".", "..", "../x", "a/b", "/etc", "a\0"])
def test_id_that_is_no_name_forms_no_path(job_id: str, place: layout.Layout) -> None:
    """Whatever a door let through, no id leads out of its folder."""
    for ask in (place.job, place.archived, lambda one: layout.taken(place, one)):
        with pytest.raises(ValueError, match="not a job id"):
            ask(job_id)


def test_admission_never_replaces_one_that_came_between(place: layout.Layout) -> None:
    """Two admissions of one id in a race: the rename decides, and the loser leaves nothing behind."""
    first = world.admission_of("harbour-7")
    with Seam() as seam:
        seam.before("rename_new", lambda source, target: target.mkdir())
        with pytest.raises(FileExistsError):
            admission.admit(place, first, world.first_line("harbour-7"))

    assert [] == os.listdir(place.job("harbour-7"))
    assert ["harbour-7"] == os.listdir(place.job("harbour-7").parent)


def test_line_that_does_not_begin_the_job_is_ours(place: layout.Layout) -> None:
    """Line 1 must carry the opening snapshot and job.json's digest; anything else is the caller's mistake."""
    with Seam() as seam, pytest.raises(ValueError, match="line 1 needs"):
        admission.admit(place, world.admission_of("harbour-7"), world.next_line(1, "0" * 64))

    assert [] == seam.calls


def test_left_over_admissions_are_removed_at_start(place: layout.Layout) -> None:
    """A kill anywhere in an admission leaves a temp folder at most, and `clean` removes it."""
    with Seam() as rehearsal:
        world.admit(place, "rehearsal")
    for at in range(len(rehearsal.calls)):
        job_id = f"j{at}"
        with Seam(Kill(at)) as seam, pytest.raises(Killed):
            world.admit(place, job_id)
        assert seam.hit
        admission.clean(place)
        there = place.job(job_id).exists()
        assert [] == [p for p in place.jobs.rglob("*") if durable.is_temporary(p.name)]
        assert there == (at == len(rehearsal.calls) - 1)


def test_refused_admission_leaves_nothing(place: layout.Layout) -> None:
    """Where the disk refuses before the folder has its name, nothing of it stays."""
    with Seam() as rehearsal:
        world.admit(place, "rehearsal")
    for at in range(len(rehearsal.calls) - 1):
        with Seam(Fail(at, errno.ENOSPC)) as seam, pytest.raises(CommitError) as raised:
            world.admit(place, "harbour-7")
        assert (True, errno.ENOSPC) == (seam.hit, raised.value.errno)
        assert not layout.taken(place, "harbour-7")
    assert () == admission.clean(place)


# ---- archive and quarantine -------------------------------------------------------------------------------


def test_archived_job_is_whole_and_known(place: layout.Layout) -> None:
    """A finished job's folder moves as it is; moving it again changes nothing."""
    folder = world.admit(place)
    before = tree(folder)
    moved = archive.move(place, "harbour-7")

    assert moved == archive.move(place, "harbour-7") == place.archived("harbour-7")
    assert (before, False) == (tree(moved), folder.exists())
    assert ("harbour-7",) == archive.ids(place)


def test_archive_replaces_nothing(place: layout.Layout) -> None:
    """Two jobs of one id, or none, move nothing."""
    with pytest.raises(StoreError, match="no such job"):
        archive.move(place, "harbour-7")
    world.admit(place)
    place.archived("harbour-7").mkdir(parents=True)
    before = tree(place.root)
    with pytest.raises(StoreError, match="already holds"):
        archive.move(place, "harbour-7")

    assert before == tree(place.root)


def test_job_set_aside_is_untouched_and_has_its_reason(place: layout.Layout) -> None:
    """The quarantined folder is byte for byte what it was; who asks is told why, and since when."""
    folder = world.admit(place)
    (folder / "1.0.log").write_bytes(b"rotten")
    before = tree(folder)
    moved = aside(place)
    found = quarantine.entries(place)

    assert (before, False) == (tree(moved), folder.exists())
    assert [("harbour-7", "damaged", "line 3 is broken", NOW)] == [
        (one.id, one.reason, one.detail, one.at) for one in found
    ]


def test_quarantine_keeps_the_first_reason(place: layout.Layout) -> None:
    """A move that a kill cut short is finished at the next start, under the reason given first."""
    world.admit(place)
    with Seam() as rehearsal:
        world.admit(place, "other")
        before = len(rehearsal.calls)
        quarantine.set_aside(place, "other", "newer", "x", NOW)
    move = rehearsal.names()[before:].index("rename_new", 4)
    with Seam(Kill(move)) as seam, pytest.raises(Killed):
        aside(place)
    assert seam.hit
    assert ["other"] == [one.id for one in quarantine.entries(place)]
    quarantine.set_aside(place, "harbour-7", "newer", "found again", NOW)

    assert ["damaged", "newer"] == [one.reason for one in quarantine.entries(place)]


def test_quarantine_replaces_nothing(place: layout.Layout) -> None:
    """Two jobs of one id, or none, move nothing."""
    with pytest.raises(StoreError, match="no such job"):
        aside(place)
    world.admit(place)
    (place.quarantine / "harbour-7").mkdir()
    before = tree(place.root)
    with pytest.raises(StoreError, match="already holds"):
        aside(place)

    assert before == tree(place.root)


def test_job_in_quarantine_without_a_reason_is_listed(place: layout.Layout) -> None:
    """A folder that somebody put there by hand, or whose reason rotted, is shown with an unknown reason."""
    odd = os.fsdecode(b"caf\xe9")
    for job_id in ("by-hand.reason.json", "bare", odd, "folder", "rotten"):
        (place.quarantine / job_id).mkdir()
    quarantine.reason_path(place, "folder").mkdir()
    quarantine.reason_path(place, "rotten").write_bytes(b"{")
    quarantine.reason_path(place, "by-hand.reason.json").write_bytes(b"{}")

    listed = ["bare", "by-hand.reason.json", r"caf\xe9", "folder", "folder.reason.json", "rotten"]
    assert [(job_id, "unknown") for job_id in listed] == [
        (one.id, one.reason) for one in quarantine.entries(place)
    ]
    assert ["bare", None] == [
        each and each.id for each in (quarantine.find(place, x) for x in ("bare", "no"))
    ]


# ---- names and workers ------------------------------------------------------------------------------------


def test_name_holds_what_its_first_writer_said(place: layout.Layout) -> None:
    """A name is never replaced: whoever comes second is given what the first one kept."""
    assert b"one" == names.keep(place.names, "key", 7, "invoice-1", b"one")
    assert b"one" == names.keep(place.names, "key", 7, "invoice-1", b"two")
    assert b"two" == names.keep(place.names, "key", 8, "invoice-1", b"two")

    assert b"one" == names.read(place.names, "key", 7, "invoice-1")
    assert None is names.read(place.names, "key", 7, "invoice-2")


def test_identity_of_a_worker_is_never_replaced(place: layout.Layout) -> None:
    """A worker's identity is written once; that it is gone is a second file."""
    identities.record(place, "w-1", b'{"pid":9}')
    with pytest.raises(FileExistsError):
        identities.record(place, "w-1", b'{"pid":10}')
    before = identities.gone(place, "w-1")
    identities.mark_gone(place, "w-1")
    identities.mark_gone(place, "w-1")

    assert (False, True) == (before, identities.gone(place, "w-1"))
    assert (b'{"pid":9}', ("w-1",)) == (identities.read(place, "w-1"), identities.names(place))
    identities.forget(place, "w-1")
    identities.forget(place, "w-1")
    assert ((), []) == (identities.names(place), os.listdir(place.workers))


def test_forgetting_a_worker_never_brings_it_back_to_life(place: layout.Layout) -> None:
    """A kill while a worker is forgotten never leaves an identity without its end."""
    for at in range(4):
        identities.record(place, f"w-{at}", b"{}")
        identities.mark_gone(place, f"w-{at}")
        with Seam(Kill(at, "after")), pytest.raises(Killed):
            identities.forget(place, f"w-{at}")

        assert all(identities.gone(place, name) for name in identities.names(place))


# ---- the rename -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("supported", [True, False], ids=["renameat2", "link"])
def test_rename_replaces_nothing(supported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A taken name is refused for files and folders, also where the kernel or file system lacks the call."""
    if not supported:
        monkeypatch.setattr(durable, "_renameat2", lambda: None)
    for name, make in (("file", Path.touch), ("folder", Path.mkdir)):
        source, target, free = (tmp_path / f"{name}-{n}" for n in ("source", "target", "free"))
        make(source)
        make(target)
        with pytest.raises(FileExistsError):
            durable.rename_new(source, target)
        assert source.exists()
        durable.rename_new(source, free)

        assert (False, True) == (source.exists(), free.exists())
        with pytest.raises(FileNotFoundError):
            durable.rename_new(source, tmp_path / "nowhere")


def test_free_space_is_told(place: layout.Layout) -> None:
    """The disk's free bytes and file entries are numbers above nothing on a disk that just took a store."""
    free, entries = durable.space(place.root)

    assert free > 0
    assert entries >= 0


def test_names_of_files_are_strict() -> None:
    """A log or checkpoint name has one spelling; nothing that only looks like one is loaded."""
    good = f"7-{'a' * 64}.checkpoint.json"

    assert (7, "a" * 64) == ((c := files.parse_checkpoint(good)) and c.sequence, c and c.digest)
    for name in (
        "0.0.log",
        "01.0.log",
        "1.00.log",
        "1.log",
        "1.0.log\n",
        "1.0.log.tmp",
        ".1.0.log",
        "-1.0.log",
    ):
        assert None is files.parse_log(name), name
    for name in (good.upper(), f"{good}\n", f"0{good}", good.replace("a" * 64, "a" * 63), f".{good}.tmp"):
        assert None is files.parse_checkpoint(name), name


# ---- the reserve ------------------------------------------------------------------------------------------


def test_reserve_is_room_that_can_be_given_up_once(place: layout.Layout) -> None:
    """The reserve holds real blocks, is made again when the disk has room, and fsck knows it."""
    assert [True, True] == [reserve.keep(place, 65536), reserve.keep(place, 65536)]
    blocks = (place.root / reserve.NAME).stat().st_blocks
    findings = fsck.check(place.root, world.apply).findings

    assert (True, ()) == (blocks * 512 >= 65536, findings)
    assert [True, False] == [reserve.give_up(place), reserve.give_up(place)]


def test_full_disk_is_no_error_of_the_reserve(place: layout.Layout) -> None:
    """Where there is no room for the reserve, the store says so and leaves nothing behind."""
    for at in range(3):
        with Seam(Fail(at, errno.ENOSPC)) as seam:
            assert not reserve.keep(place, 65536)
        assert seam.hit
    assert () == admission.clean(place)
