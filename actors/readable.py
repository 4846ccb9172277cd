"""Watching one descriptor for long: a callback each time it can be read, on either loop; it reads nothing.

On asyncio the loop keeps the descriptor registered and calls back directly. Waiting anew each time costs two
system calls and the wake-up of a task: about 40 us of a step that waits for nothing else (measured).
"""

import asyncio
from collections.abc import Callable

import anyio


async def watch(descriptor: int, heard: Callable[[], bool]) -> None:
    """Call `heard` each time the descriptor can be read, until it returns False; what it raises is raised."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        await anyio.wait_readable(descriptor)
        while heard():
            await anyio.wait_readable(descriptor)
        return
    over: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, _hear, heard, over)
    try:
        await over
    finally:
        loop.remove_reader(descriptor)


def _hear(heard: Callable[[], bool], over: "asyncio.Future[None]") -> None:
    if over.done():
        return
    try:
        more = heard()
    except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
        over.set_exception(error)
        return
    if not more:
        over.set_result(None)
