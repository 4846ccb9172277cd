"""Commits of many files in one group: what a plain write and sync would do to each, and nothing else."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from faults import world

from resumed.actors import disk as disks
from resumed.actors.bell import Bell
from resumed.actors.disk import ThreadDisk
from resumed.schemas import line_io
from resumed.schemas.errors import CommitError
from resumed.store import durable, grouped, recovery
from resumed.store.journal import Journal

AGAIN = -1
GROUPS = (
    pytest.param(True, id="grouped"),
    pytest.param(False, id="plain"),
)


def no_means() -> None:
    """What a kernel without asynchronous I/O says."""
    raise OSError(errno.ENOSYS, "no such call")


@pytest.fixture(params=GROUPS)
def by_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Once with the kernel's groups, once on a machine that has none."""
    wanted: bool = request.param
    if not wanted:
        monkeypatch.setattr(durable, "_own_group", lambda: None)
        monkeypatch.setattr(disks, "Group", no_means)
    elif durable._own_group() is None:
        pytest.skip("this kernel has no asynchronous I/O")
    return wanted


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[list[int]]:
    """Descriptors of 150 empty files: more than two groups."""
    found = [durable.create(tmp_path / f"{number}") for number in range(150)]
    yield found
    for fd in found:
        try:
            os.close(fd)
        except OSError:
            pass  # closed by the test


def test_each_part_is_written_where_it_belongs(by_kernel: bool, opened: list[int]) -> None:
    """Any number of parts, of any size, at any offset: every file holds its own bytes."""
    parts = [(fd, bytes([number]) * (number * 97), number) for number, fd in enumerate(opened)]
    parts[7] = (opened[7], b"x" * (grouped.MOST_BYTES + 5), 3)

    found = durable.write_and_sync_each(parts)

    assert [None] * len(parts) == found
    for fd, raw, offset in parts:
        assert bytes(offset if raw else 0) + raw == os.pread(fd, len(raw) + offset + 1, 0)


def test_one_that_fails_costs_no_other(by_kernel: bool, opened: list[int], tmp_path: Path) -> None:
    """A closed descriptor, one that only reads, a pipe: each has its own error, and others are done."""
    os.close(opened[1])
    reader = durable.open_read(tmp_path / "3")
    pipe, into = os.pipe()
    parts = [(fd, b"line", 0) for fd in opened[:6]]
    parts[3] = (reader, b"line", 0)
    parts[4] = (into, b"line", 0)
    try:
        found = durable.write_and_sync_each(parts)
    finally:
        for fd in (reader, pipe, into):
            os.close(fd)

    assert [None, errno.EBADF, None, errno.EBADF, errno.ESPIPE, None] == [
        None if error is None else error.errno for error in found
    ]
    assert [b"line"] * 3 == [os.pread(fd, 9, 0) for fd in (opened[0], opened[2], opened[5])]


def test_a_full_disk_is_said_of_the_part_it_hit(by_kernel: bool, opened: list[int]) -> None:
    """/dev/full takes nothing: its part fails with ENOSPC, the others are durable."""
    full = os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)
    try:
        found = durable.write_and_sync_each([(opened[0], b"a", 0), (full, b"b", 0), (opened[1], b"c", 0)])
    finally:
        os.close(full)

    assert [None, errno.ENOSPC, None] == [None if error is None else error.errno for error in found]


def test_what_was_begun_is_told_as_it_ends(opened: list[int], tmp_path: Path) -> None:
    """Begun in one thread and told in another: each part once, with its own error, and the bell was rung."""
    try:
        group = grouped.Group()
    except OSError:
        pytest.skip("this kernel has no asynchronous I/O")
    bell = os.eventfd(0, os.EFD_CLOEXEC)
    full = os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)
    pipe, into = os.pipe()
    os.close(opened[1])
    for turn in range(3):
        parts = [(fd, b"line %d" % turn, 7 * turn) for fd in opened[:40]]
        parts[2], parts[3] = (full, b"a", 0), (into, b"line", 0)
        ready = threading.Event()
        told: list[int] = []
        begun = threading.Thread(target=durable.begin_each, args=(parts, group, bell, ready.set))
        begun.start()
        assert ready.wait(30)
        while group.left:
            os.eventfd_read(bell)
            told += group.collect()
        begun.join()

        assert list(range(40)) == sorted(told)
        assert [None, errno.EBADF, AGAIN, AGAIN, *[None] * 36] == group.found
        assert b"line %d" % turn == os.pread(opened[39], 99, 7 * turn)
    for fd in (bell, full, pipe, into):
        os.close(fd)


@pytest.mark.anyio
async def test_disk_does_again_what_the_kernel_would_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that the kernel has no room for, or took a part of, are written and synced by plain calls."""
    journals = opened_jobs(tmp_path, 4)
    begun: list[int] = []
    again: list[int] = []

    class Poor(grouped.Group):
        """Means that say of the second and the third part that they are to be done again."""

        def collect(self, *, wait: bool = False) -> list[int]:
            over = super().collect(wait=wait)
            for number in over:
                if number in (1, 2):
                    self.found[number] = -1
                    again.append(number)
            return over

    def begin(parts: Any, group: Any, bell: int, ready: Any) -> bool:
        begun.append(len(parts))
        return real(parts, group, bell, ready)

    real = durable.begin_each
    monkeypatch.setattr(durable, "begin_each", begin)
    monkeypatch.setattr(disks, "Group", Poor)
    disk = ThreadDisk(threads=1)
    async with anyio.create_task_group() as outer:
        await outer.start(disk.run)
        async with anyio.create_task_group() as group:
            for journal in journals:
                group.start_soon(commit, disk, journal)
        disk.close()
    for journal in journals:
        journal.close()

    assert [2] * 4 == [recovery.load(journal.folder, world.apply).sequence for journal in journals]
    assert again


def test_no_parts_are_no_error(by_kernel: bool) -> None:
    """Nothing asked, nothing done."""
    assert [] == durable.write_and_sync_each([])


def opened_jobs(root: Path, count: int) -> list[Journal]:
    """So many jobs, open for writing."""
    place = world.store(root / "store")
    return [world.open_job(world.admit(place, f"job-{number}")) for number in range(count)]


async def commit(disk: ThreadDisk, journal: Journal) -> None:
    """One more line."""
    raw, digest = line_io.spell_line(world.next_line(journal.sequence + 1, journal.digest))
    await disk.append(journal, raw, journal.sequence + 1, digest)


@pytest.mark.anyio
async def test_disk_commits_jobs_side_by_side(by_kernel: bool, tmp_path: Path) -> None:
    """Lines of many journals, handed over at once, stand in their logs; each knows its own sequence."""
    journals = opened_jobs(tmp_path, 20)
    disk = ThreadDisk()
    async with anyio.create_task_group() as outer:
        await outer.start(disk.run)
        for _ in range(3):
            async with anyio.create_task_group() as group:
                for journal in journals:
                    group.start_soon(commit, disk, journal)
        disk.close()
    for journal in journals:
        journal.close()

    assert [4] * 20 == [recovery.load(journal.folder, world.apply).sequence for journal in journals]


@pytest.mark.anyio
async def test_disk_says_which_commit_failed(by_kernel: bool, tmp_path: Path) -> None:
    """A journal whose descriptor is gone fails alone, and takes no further line."""
    journals = opened_jobs(tmp_path, 3)
    failed: list[int] = []
    log = journals[1]._log
    assert log is not None
    os.close(log.fd)
    disk = ThreadDisk(threads=1)

    async def try_one(number: int) -> None:
        try:
            await commit(disk, journals[number])
        except CommitError:
            failed.append(number)

    async with anyio.create_task_group() as outer:
        await outer.start(disk.run)
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(try_one, number)
        disk.close()
    for number in (0, 2):
        journals[number].close()

    assert [1] == failed
    assert [False, True, False] == [journal.failed for journal in journals]


@pytest.mark.anyio
async def test_nobody_can_tell_is_a_failure_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that does not say what became of a group: each of its lines has failed, and no means are used
    again of which nobody knows what they hold."""
    journals = opened_jobs(tmp_path, 3)

    class Mute(grouped.Group):
        """Means that say nothing."""

        def collect(self, *, wait: bool = False) -> list[int]:
            raise OSError(errno.EIO, "cannot tell")

    monkeypatch.setattr(disks, "Group", Mute)
    disk = ThreadDisk(threads=1)
    failed: list[Journal] = []

    async def try_one(journal: Journal) -> None:
        try:
            await commit(disk, journal)
        except CommitError:
            failed.append(journal)

    async with anyio.create_task_group() as outer:
        await outer.start(disk.run)
        async with anyio.create_task_group() as group:
            for journal in journals:
                group.start_soon(try_one, journal)
        disk.close()

    assert failed
    assert all(journal.failed == (journal in failed) for journal in journals)
    for journal in journals:
        journal.close()


@pytest.mark.anyio
async def test_bell_wakes_its_waiter_whenever_it_rings() -> None:
    """Rung before, while, or after the waiter was cut off: it returns once it has rung."""
    early, meanwhile, late = Bell(), Bell(), Bell()
    early.ring()
    await early.wait()
    with anyio.move_on_after(0):
        await late.wait()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(meanwhile.wait)
            group.start_soon(late.wait)
            await anyio.lowlevel.checkpoint()
            meanwhile.ring()
            late.ring()
            late.ring()

    assert [True] * 3 == [early.rung, meanwhile.rung, late.rung]


def rings() -> int:
    """How many rings of asynchronous I/O this process holds: the kernel maps each as `/[aio]`."""
    return Path("/proc/self/maps").read_text("ascii", "replace").count("/[aio]")


def test_a_threads_means_end_with_it(by_kernel: bool, opened: list[int]) -> None:
    """Threads that come and go leave nothing of their groups behind."""
    if not by_kernel:
        return
    before, during = rings(), []

    def work() -> None:
        durable.write_and_sync_each([(fd, b"x", 0) for fd in opened[:4]])
        during.append(rings())

    for _ in range(5):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert [before + 1] * 5 == during
    assert before == rings()
