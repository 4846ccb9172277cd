"""Commits of many files in one group: what a plain write and sync would do to each, and nothing else."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from faults import world

from resumed.actors.bell import Bell
from resumed.actors.disk import ThreadDisk
from resumed.schemas import line_io
from resumed.schemas.errors import CommitError
from resumed.store import durable, grouped, recovery
from resumed.store.journal import Journal

GROUPS = (
    pytest.param(True, id="grouped"),
    pytest.param(False, id="plain"),
)


@pytest.fixture(params=GROUPS)
def by_kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Once with the kernel's groups, once on a machine that has none."""
    wanted: bool = request.param
    if not wanted:
        monkeypatch.setattr(durable, "_own_group", lambda: None)
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
