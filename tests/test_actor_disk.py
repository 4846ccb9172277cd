"""The disk threads: every call handed over is answered, however many end at once."""

import os
import socket

import anyio
import anyio.lowlevel
import pytest

from resumed.actors import readable
from resumed.actors.disk import ThreadDisk


@pytest.mark.anyio
async def test_disk_answers_every_call() -> None:
    """Calls that end while the bell is being heard are answered too: none waits for ever."""
    disk = ThreadDisk()
    answered = 0

    async def ask() -> None:
        nonlocal answered
        for number in range(200):
            one = await disk.call(pow, number, 0)
            answered += one

    with anyio.fail_after(60):
        async with anyio.create_task_group() as outer:
            await outer.start(disk.run)
            async with anyio.create_task_group() as group:
                for _ in range(32):
                    group.start_soon(ask)
            disk.close()

    assert 32 * 200 == answered


@pytest.mark.anyio
async def test_disk_raises_where_it_is_waited_for() -> None:
    """An error of a call is raised at its caller, and the threads go on."""
    disk = ThreadDisk()
    async with anyio.create_task_group() as outer:
        await outer.start(disk.run)
        with pytest.raises(ZeroDivisionError):
            await disk.call(divmod, 1, 0)

        assert (3, 1) == await disk.call(divmod, 10, 3)

        disk.close()


@pytest.mark.anyio
async def test_watch_raises_what_its_callback_raises() -> None:
    """An error of the callback ends the watch, where it is waited for."""
    bell = os.eventfd(1, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    try:
        with pytest.raises(ZeroDivisionError), anyio.fail_after(10):
            await readable.watch(bell, lambda: 1 // 0 == 0)
    finally:
        os.close(bell)


@pytest.mark.anyio
async def test_watch_ends_with_its_scope() -> None:
    """A watch that is canceled lets go of its descriptor."""
    bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    heard = 0

    def hear() -> bool:
        nonlocal heard
        heard += 1
        return True

    try:
        with anyio.move_on_after(0):
            await readable.watch(bell, hear)
        os.eventfd_write(bell, 1)
        await anyio.wait_readable(bell)
    finally:
        os.close(bell)

    assert 0 == heard


@pytest.mark.anyio
async def test_chunks_lose_nothing() -> None:
    """What came while nobody waited, or to one who was cut off, is the next one's; of a peer that says ever
    more no more than one chunk is taken before it is asked for; the end is told each time."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    taken: list[bytes] = []

    def read() -> bytes | None:
        try:
            taken.append(ours.recv(4))
        except BlockingIOError:
            return None
        return taken[-1]

    chunks = readable.Chunks(ours.fileno(), read)
    with anyio.fail_after(10):
        with anyio.move_on_after(0):
            await chunks.next()
        theirs.send(b"one.two.three.")
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert len(taken) <= 1
        found = [await chunks.next() for _ in range(3)]
        theirs.send(b"more")
        theirs.close()
        found += [await chunks.next() for _ in range(4)]
    chunks.close()
    ours.close()

    assert b"one.two.three.more" == b"".join(found)
    assert [b"", b""] == found[-2:]
