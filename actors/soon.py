"""Doing something once what is ready now has run: the loop's next turn, on either loop; waits for nothing."""

import asyncio
from collections.abc import Callable

import anyio.abc


def soon(group: anyio.abc.TaskGroup, function: Callable[[], None]) -> None:
    """Call the function in the loop's next turn; it must not raise. On asyncio no task is made for it."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        group.start_soon(_call, function)
        return
    loop.call_soon(function)


async def _call(function: Callable[[], None]) -> None:
    function()
