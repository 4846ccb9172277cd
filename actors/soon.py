"""Doing something once what is ready now has run: the loop's next turn, on either loop; waits for nothing."""

import asyncio
from collections.abc import Callable


def soon(function: Callable[[], None]) -> None:
    """Call the function in the loop's next turn; it must not raise."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio.lowlevel  # only where its loop runs: it costs a tenth of a second

        trio.lowlevel.current_trio_token().run_sync_soon(function)
        return
    loop.call_soon(function)
