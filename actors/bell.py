"""A bell for one waiter, rung once: an `anyio.Event` for the places where every step of a job waits.

On asyncio the waiter awaits the loop's own future. An event costs a look for the running library, three
objects and two calls more, each time it is made and waited for (`docs/adr/0016`).
"""

import asyncio

import anyio


class Bell:
    """Made and rung in the loop, once or more often; one task waits, and again if it was cut off."""

    __slots__ = ("_event", "_future", "rung")

    def __init__(self) -> None:
        self.rung = False
        self._event: anyio.Event | None = None
        self._future: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Wake the waiter, now or when it comes."""
        self.rung = True
        if self._future is not None:
            if not self._future.done():
                self._future.set_result(None)
        elif self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Return once it has rung."""
        if self.rung:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._event = anyio.Event()
            await self._event.wait()
            return
        self._future = loop.create_future()
        await self._future
