"""The threads of the disk: every call that was handed over is answered."""

import anyio
import pytest

from resumed.actors.disk import ThreadDisk


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_every_call_is_answered_however_its_end_meets_the_bell(anyio_backend: str) -> None:
    """A call that ends just while the loop answers another is answered too: none waits for a later one."""
    disk = ThreadDisk(2)
    answered = 0

    async def ask(count: int) -> None:
        nonlocal answered
        for number in range(count):
            assert number == await disk.call(int, number)
            answered += 1

    async with anyio.create_task_group() as group:
        await group.start(disk.run)
        with anyio.move_on_after(60) as patience:
            async with anyio.create_task_group() as asking:
                for _ in range(3):
                    asking.start_soon(ask, 3000)
        disk.close()

    assert (9000, False) == (answered, patience.cancelled_caught)
