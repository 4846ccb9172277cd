"""The open log of one job: one line a commit, rotation, checkpoints, and what a failed sync means."""

import errno
import fcntl
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attrs import evolve
from faults import world
from faults.seam import Fail, Seam

from resumed.schemas import line_io
from resumed.schemas.errors import CommitError, DamagedError
from resumed.store import durable, files, journal, log, recovery


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job that was just admitted."""
    return world.admit(world.store(tmp_path / "store"))


@pytest.fixture
def opened(folder: Path) -> Iterator[journal.Journal]:
    """The same, open for writing."""
    found = world.open_job(folder)
    yield found
    found.close()


def logs(folder: Path) -> list[str]:
    """The logs in a folder."""
    return [str(one) for one in files.listing(folder).logs]


def checkpoints(folder: Path) -> list[int]:
    """The sequences of the checkpoints in a folder."""
    return [one.sequence for one in files.listing(folder).checkpoints]


def loaded(folder: Path) -> int:
    """How many lines recovery finds."""
    return recovery.load(folder, world.apply).sequence


def test_commit_is_one_write_and_one_sync(opened: journal.Journal) -> None:
    """A line costs one write and one data sync, and nothing else."""
    with Seam() as seam:
        world.append(opened)

    assert ["pwrite", "sync_data"] == seam.names()
    assert 2 == opened.sequence == loaded(opened.folder)


def test_line_that_does_not_fit_doubles_the_free_space_in_the_same_sync(opened: journal.Journal) -> None:
    """A long line and the zeros behind it are one write: still one sync a line."""
    path = opened.folder / "1.1.log"
    before = path.stat().st_size
    with Seam() as seam:
        world.append(opened, text="x" * 20_000)

    assert (journal.FILL, 2 * journal.FILL) == (before, path.stat().st_size)
    assert ["pwrite", "sync_data"] == seam.names()


def test_free_space_grows_by_a_bounded_step(opened: journal.Journal) -> None:
    """Doubling ends at a mebibyte a step: a long log does not cost as much again in zeros."""
    world.append(opened, text="x" * 5_000_000)
    path = opened.folder / "1.1.log"

    assert path.stat().st_size - 5_000_000 <= journal.MOST_FILL + 64 * 1024


def test_line_out_of_order_is_ours(opened: journal.Journal) -> None:
    """A sequence that is not the next one is a mistake of the caller's and writes nothing."""
    with Seam() as seam, pytest.raises(ValueError, match="line 3 after line 1"):
        opened.append(b"x\n", 3, "")

    assert ([], False) == (seam.calls, opened.failed)


@pytest.mark.parametrize("call", [0, 1], ids=["write", "sync"])
def test_failed_commit_refuses_all_further_ones(opened: journal.Journal, call: int) -> None:
    """After a failed write or sync nothing is written to that file again; the sync is not tried again."""
    with Seam(Fail(call, errno.EIO)) as seam, pytest.raises(CommitError) as raised:
        world.append(opened)
    with Seam() as after:
        for _ in range(2):
            with pytest.raises(CommitError):
                world.append(opened)
        with pytest.raises(CommitError):
            opened.rotate("a test")
        opened.close()

    assert (True, True, errno.EIO) == (seam.hit, opened.failed, raised.value.errno)
    assert [] == after.calls
    assert 1 == opened.sequence


def test_log_after_a_failed_sync_seals_the_old_one_at_its_last_synced_line(folder: Path) -> None:
    """The line whose sync failed does not exist once the new log stands, though its bytes are there."""
    opened = world.open_job(folder)
    world.append(opened, 2)
    with Seam(Fail(1, errno.EIO)), pytest.raises(CommitError):
        world.append(opened, text="lost")
    opened.reopen_after_failure()
    found = recovery.load(folder, world.apply)
    world.append(opened, text="again")
    opened.close()

    assert (3, 4, 0) == (found.sequence, found.first, found.k)
    assert b'"lost' in (folder / "1.1.log").read_bytes()
    assert ('"again"', 4) == (
        recovery.load(folder, world.apply).snapshot.state["text"],
        loaded(folder),
    )


def test_first_commit_that_fails_is_sealed_off_under_the_next_k(opened: journal.Journal) -> None:
    """Where the failed log holds no synced line, the new one has the same first line and a higher k."""
    world.append(opened)
    opened.rotate("a test")
    with Seam(Fail(1, errno.EIO)), pytest.raises(CommitError):
        world.append(opened)
    opened.reopen_after_failure()
    world.append(opened)

    assert ["1.1.log", "3.0.log", "3.1.log"] == logs(opened.folder)
    assert 3 == loaded(opened.folder)


def test_openings_leave_one_log(folder: Path) -> None:
    """However often a job is opened, one log of its first line is there: without it nothing is read."""
    for _ in range(25):
        world.open_job(folder).close()
    again = world.open_job(folder)
    world.append(again)
    again.close()

    assert ["1.26.log"] == logs(folder)
    assert 2 == loaded(folder)


def test_reopening_that_fails_can_be_tried_again(opened: journal.Journal) -> None:
    """As long as the disk refuses, the journal stays failed; when it works again, work goes on by itself."""
    with Seam(Fail(1, errno.EIO)), pytest.raises(CommitError):
        world.append(opened)
    with Seam() as rehearsal:
        opened.reopen_after_failure()
    opened.failed = True
    for at in range(len(rehearsal.calls)):
        with Seam(Fail(at, errno.ENOSPC)) as seam, pytest.raises(CommitError):
            opened.reopen_after_failure()
        assert (True, True) == (seam.hit, opened.failed)
    opened.reopen_after_failure()
    world.append(opened)

    assert 2 == loaded(opened.folder)


def test_rotation_that_got_no_name_leaves_the_journal_usable(opened: journal.Journal) -> None:
    """A full disk at a rotation does not stop commits that still fit in the present log."""
    world.append(opened)
    with Seam(Fail(1, errno.ENOSPC)) as seam, pytest.raises(CommitError):
        opened.rotate("a test")
    world.append(opened)

    assert (True, False) == (seam.hit, opened.failed)
    assert ["1.1.log"] == logs(opened.folder)
    assert 3 == loaded(opened.folder)


def test_rotation_cuts_the_old_log_and_seals_it(opened: journal.Journal) -> None:
    """The old log ends with its last line; the new one says which line that is, and why it was begun."""
    world.append(opened, 2)
    opened.rotate("outweighed")
    raw = (opened.folder / "1.1.log").read_bytes()
    seal = (opened.folder / "4.0.log").read_bytes()

    assert raw.endswith(b"}\n")
    assert b'"seal":3' in seal
    assert b'"why":"outweighed"' in seal
    assert opened.digest.encode() in seal


def test_rotation_without_a_line_does_nothing(opened: journal.Journal) -> None:
    """An empty log is never followed by another: parking twice leaves no trace."""
    world.append(opened)
    opened.rotate("park")
    with Seam() as seam:
        opened.rotate("park")

    assert [] == seam.calls


def test_checkpoint_comes_after_its_rotation(opened: journal.Journal) -> None:
    """A checkpoint of a line that no log continues is refused: its name would vouch for a missing log."""
    world.append(opened)
    with pytest.raises(ValueError, match="no log begins at line 3"):
        opened.write_checkpoint(b"{}", 2)

    assert [] == checkpoints(opened.folder)


def test_two_checkpoints_are_kept_and_all_history(opened: journal.Journal) -> None:
    """A third checkpoint removes the first and superseded logs; history stays until a policy says prune."""
    for _ in range(3):
        world.append(opened)
        world.checkpoint(opened)

    assert [3, 4] == checkpoints(opened.folder)
    assert ["1.1.log", "3.0.log", "4.0.log", "5.0.log"] == logs(opened.folder)


def test_history_is_pruned_by_policy_only(opened: journal.Journal) -> None:
    """With the policy, logs that the older checkpoint does not need go; the rest still loads from it."""
    for _ in range(3):
        world.append(opened)
        world.checkpoint(opened)
    world.append(opened)
    opened.rotate("a test")
    found = recovery.load(opened.folder, world.apply)
    raw = world.checkpoint_of(found.snapshot, found.digest, found.job)
    name = opened.write_checkpoint(raw, 5, prune_history=True)
    (opened.folder / name).write_bytes(b"rotten")

    assert ["5.0.log", "6.0.log"] == logs(opened.folder)
    assert (4, 5) == ((again := recovery.load(opened.folder, world.apply)).checkpoint, again.sequence)


def test_pinned_checkpoint_stays(opened: journal.Journal) -> None:
    """The checkpoint before a migration stays with the logs it needs until nobody pins it."""
    world.append(opened)
    world.checkpoint(opened)
    for _ in range(3):
        world.append(opened)
        opened.rotate("a test")
        found = recovery.load(opened.folder, world.apply)
        raw = world.checkpoint_of(found.snapshot, found.digest, found.job)
        opened.write_checkpoint(raw, found.sequence, prune_history=True, pinned=frozenset({2}))

    assert [2, 4, 5] == checkpoints(opened.folder)
    assert "3.0.log" in logs(opened.folder)


def test_rotten_checkpoint_is_neither_counted_nor_removed(folder: Path) -> None:
    """A checkpoint that failed its digest is evidence: it stays, and two good ones are kept beside it."""
    opened = world.open_job(folder)
    for _ in range(2):
        world.append(opened)
        world.checkpoint(opened)
    opened.close()
    (folder / str(files.listing(folder).checkpoints[-1])).write_bytes(b"rotten")
    again = world.open_job(folder)
    for _ in range(2):
        world.append(again)
        world.checkpoint(again)
    again.close()

    assert [3, 4, 5] == checkpoints(folder)
    assert 5 == loaded(folder)


def test_same_checkpoint_again_is_the_same_file(opened: journal.Journal) -> None:
    """A checkpoint's name is its content: writing it again replaces nothing."""
    world.append(opened)
    name = world.checkpoint(opened)
    inode = (opened.folder / name).stat().st_ino

    assert name == world.checkpoint(opened)
    assert inode == (opened.folder / name).stat().st_ino


def test_checkpoint_that_fails_is_no_failed_commit(opened: journal.Journal) -> None:
    """A full disk while a checkpoint is written leaves the log as it is; the lines stay safe in it."""
    world.append(opened)
    opened.rotate("a test")
    with Seam(Fail(1, errno.ENOSPC)), pytest.raises(CommitError):
        world.checkpoint(opened)
    world.append(opened)

    assert ([], False, 3) == (checkpoints(opened.folder), opened.failed, loaded(opened.folder))
    assert () == files.listing(opened.folder).temporary


def test_checkpoint_is_wanted_when_the_log_outweighs_it(opened: journal.Journal) -> None:
    """The lines since the last checkpoint are weighed against its size, and against 256 KiB at least."""
    assert not opened.wants_checkpoint(10)
    world.append(opened, 3, text="x" * 90_000)

    assert opened.wants_checkpoint(10)
    assert not opened.wants_checkpoint(1_000_000)
    world.checkpoint(opened)
    assert (0, False) == (opened.size_since_checkpoint, opened.wants_checkpoint(10))


def test_size_since_the_checkpoint_is_the_same_after_a_restart(folder: Path) -> None:
    """What counts is what a recovery would replay, whoever wrote it."""
    opened = world.open_job(folder)
    world.append(opened, 2)
    world.checkpoint(opened)
    world.append(opened, 2)
    opened.rotate("a test")
    world.append(opened)
    before = opened.size_since_checkpoint
    opened.close()
    again = world.open_job(folder)

    assert before == again.size_since_checkpoint == recovery.load(folder, world.apply).size
    again.close()


def test_opening_publishes_the_lines_it_read_under_the_next_k(folder: Path) -> None:
    """Nothing is appended to a file of another process: the verified lines are written and synced anew."""
    for k in (1, 2, 3):
        opened = world.open_job(folder)
        world.append(opened)
        opened.close()
        assert f"1.{k}.log" == logs(folder)[-1]

    assert 4 == loaded(folder)
    assert b'"why":"opened"' in (folder / "1.3.log").read_bytes()
    assert b'"through":3' in (folder / "1.3.log").read_bytes()


def test_opening_removes_what_a_crash_left(folder: Path) -> None:
    """Temp files are never loaded, and are gone once the job is open."""
    (folder / "artifacts").mkdir()
    left = [folder / ".2.0.log.0123456789ab.tmp", folder / "artifacts" / ".x.0123456789ab.tmp"]
    for path in left:
        path.write_bytes(b"x")
    world.open_job(folder).close()

    assert [False, False] == [path.exists() for path in left]


@pytest.mark.parametrize("how", ["asked", "closed", "at a checkpoint"])
def test_the_log_that_a_copy_stands_for_goes_when_nobody_waits(folder: Path, how: str) -> None:
    """Whoever opens a job to answer somebody unlinks it later: in the end it is gone, whatever comes next."""
    opened = journal.open_for_writing(folder, recovery.load(folder, world.apply), later=True)
    world.append(opened)
    assert ["1.0.log", "1.1.log"] == logs(folder)
    assert 2 == loaded(folder)
    if how == "asked":
        opened.drop_superseded()
    elif how == "at a checkpoint":
        world.checkpoint(opened)
        assert opened.superseded is None
    else:
        opened.close()

    assert "1.0.log" not in logs(folder)
    assert 2 == loaded(folder)
    opened.close()


def test_opening_syncs_the_names_above_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder's and the shard's names are made durable by a process that has not done so yet."""
    synced: list[Path] = []
    real = durable.sync_folder
    monkeypatch.setattr(durable, "sync_folder", lambda path: (synced.append(path), real(path)))
    journal.open_for_writing(folder, recovery.load(folder, world.apply)).close()
    first, synced[:] = [*synced], []
    journal.open_for_writing(folder, recovery.load(folder, world.apply), named=True).close()

    assert [folder, folder.parent, folder.parent.parent] == first
    assert [folder] == synced


def test_opening_that_fails_leaves_the_job_as_it_was(folder: Path) -> None:
    """Whichever call fails while a job is opened, it loads the same afterwards."""
    recovered = recovery.load(folder, world.apply)
    with Seam() as rehearsal:
        journal.open_for_writing(folder, recovered).close()
    for at in (call.number for call in rehearsal.calls if call.name not in ("unlink", "truncate")):
        recovered = recovery.load(folder, world.apply)
        with Seam(Fail(at, errno.EIO)) as seam, pytest.raises(CommitError):
            journal.open_for_writing(folder, recovered)
        assert seam.hit
        assert recovered.snapshot == recovery.load(folder, world.apply).snapshot


def test_closing_cuts_the_free_space_once(opened: journal.Journal) -> None:
    """A parked job holds no descriptor and no zeros; closing it twice does nothing."""
    world.append(opened)
    with Seam() as seam:
        opened.close()
        opened.close()

    assert ["truncate"] == seam.names()
    assert (opened.folder / "1.1.log").read_bytes().endswith(b"}\n")
    with pytest.raises(CommitError, match="it is closed"):
        world.append(opened)


def test_every_descriptor_is_closed_on_exec(opened: journal.Journal, tmp_path: Path) -> None:
    """No descriptor of the store reaches a child process: a worker never holds a log or the lock."""
    made = [
        durable.create(tmp_path / "a"),
        durable.open_lock(tmp_path / "b"),
        durable.open_read(tmp_path / "a"),
    ]
    for fd in (int(name) for name in os.listdir("/proc/self/fd")):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if str(tmp_path) in target:
            assert fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC, target
    for fd in made:
        durable.close(fd)


def test_journals_of_several_jobs_commit_at_once(tmp_path: Path) -> None:
    """Each journal is one thread's at a time, and several commit side by side without touching each other."""
    place = world.store(tmp_path / "store")
    jobs = [world.open_job(world.admit(place, f"job-{number}")) for number in range(6)]
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(world.append, one, 15) for one in jobs]:
            done.result()
        for done in [pool.submit(world.checkpoint, one) for one in jobs]:
            done.result()
    for one in jobs:
        one.close()

    assert [(16, 16)] * 6 == [
        ((found := recovery.load(one.folder, world.apply)).sequence, found.checkpoint) for one in jobs
    ]


def test_no_descriptor_is_left_open(folder: Path) -> None:
    """Failures and closings give back what they opened."""
    before = len(os.listdir("/proc/self/fd"))
    opened = world.open_job(folder)
    world.append(opened)
    world.checkpoint(opened)
    with Seam(Fail(1, errno.EIO)), pytest.raises(CommitError):
        world.append(opened)
    with Seam(Fail(2, errno.EIO)), pytest.raises(CommitError):
        opened.reopen_after_failure()
    opened.reopen_after_failure()
    opened.close()

    assert before == len(os.listdir("/proc/self/fd"))


# ---- what tells that a log is missing ------------------------------------------------------------------


def test_log_that_another_followed_says_so(opened: journal.Journal) -> None:
    """A rotated log ends in a line that names its last one: without the log after it, the job is damaged."""
    world.append(opened, 2)
    opened.rotate("a test")
    world.append(opened)
    opened.close()
    raw = (opened.folder / "1.1.log").read_bytes()
    *_, last, end = log.lines(raw, 0)
    (opened.folder / "4.0.log").unlink()

    assert line_io.is_end(end.payload)
    assert (3, last.digest) == line_io.read_end(end.payload, "it")
    with pytest.raises(DamagedError, match="the log from line 4 on is missing"):
        loaded(opened.folder)


def test_end_that_could_not_be_written_is_not_needed(opened: journal.Journal) -> None:
    """It tells of a missing log, no more: a disk that refuses it stops nothing."""
    world.append(opened)
    with Seam() as rehearsal:
        opened.rotate("a test")
    world.append(opened)
    ends = [call.number for call in rehearsal.calls if call.name == "pwrite"][-1]
    with Seam(Fail(ends, errno.ENOSPC)) as seam:
        opened.rotate("a test")
    world.append(opened)

    assert seam.hit
    assert 4 == loaded(opened.folder)


def test_torn_log_is_kept_under_a_name_that_nobody_reads(folder: Path) -> None:
    """Its bytes are evidence as long as the suspicion stands, and go with it."""
    opened = world.open_job(folder)
    world.append(opened)
    opened.close()
    torn = (folder / "1.1.log").read_bytes() + b"half a line"
    (folder / "1.1.log").write_bytes(torn)
    opened = world.open_job(folder)
    world.append(opened)
    world.checkpoint(opened)
    kept = (folder / "1.1.torn").read_bytes()
    opened.torn = ()
    world.append(opened)
    world.checkpoint(opened)

    assert torn == kept
    assert not (folder / "1.1.torn").exists()
    assert 4 == loaded(folder)


def test_log_that_is_superseded_meanwhile_is_read_where_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that listed the folder before an opening, and reads it after, looks again."""
    look = files.listing
    looks = iter([look(folder)])
    opened = world.open_job(folder)
    world.append(opened)
    monkeypatch.setattr(files, "listing", lambda at: next(looks, None) or look(at))

    assert 2 == loaded(folder)


def test_list_that_misses_a_log_between_two_names_is_made_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that misses a log under both its names is no verdict; the same said twice is one."""
    opened = world.open_job(folder)
    world.append(opened, 3)
    opened.close()
    listing, blind = files.listing, [1]

    def racing(path: Path) -> files.Listing:
        found = listing(path)
        blind[0] -= 1
        return evolve(found, logs=()) if blind[0] >= 0 else found

    monkeypatch.setattr(files, "listing", racing)
    sequence = loaded(folder)
    blind[0] = 100
    with pytest.raises(DamagedError):
        loaded(folder)

    assert 4 == sequence
    assert 98 == blind[0]
