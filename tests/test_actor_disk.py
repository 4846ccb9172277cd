"""The disk threads: every call handed over is answered, however many end at once."""

import anyio
import pytest

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
