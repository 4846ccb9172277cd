"""Watching one descriptor for long: a callback each time it can be read, or what it brings, on either loop.

On asyncio the loop keeps the descriptor registered and calls back directly. Waiting anew each time costs two
system calls and the wake-up of a task: about 40 us of a step that waits for nothing else (measured).
"""

import asyncio
from collections.abc import Callable

import anyio
from anyio.lowlevel import checkpoint


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


class Chunks:
    """What comes at a descriptor, for one reader at a time; it takes one chunk before it is asked, no more.

    `read` gives the next bytes, b"" at the end, None when there are none now.
    """

    __slots__ = ("_chunk", "_descriptor", "_loop", "_read", "_waiter")

    def __init__(self, descriptor: int, read: Callable[[], bytes | None]) -> None:
        self._descriptor = descriptor
        self._read = read
        self._chunk: bytes | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where the descriptor is registered."""
        self._waiter: asyncio.Future[None] | None = None

    async def next(self) -> bytes:
        """The next bytes; none at the end, however often. Whoever is cut off while it waits lost nothing."""
        if self._chunk is not None or (self._loop is None and not await self._begin()):
            # Who always has more to say must not keep the loop.
            await checkpoint()
        else:
            assert self._loop is not None
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        chunk = self._chunk
        assert chunk is not None
        self._chunk = None if chunk else chunk
        return chunk

    async def _begin(self) -> bool:
        """True when the loop calls us from now on; on trio there is a chunk instead."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            while (chunk := self._read()) is None:
                await anyio.wait_readable(self._descriptor)
            self._chunk = chunk
            return False
        self._loop = loop
        loop.add_reader(self._descriptor, self._hear)
        return True

    def _hear(self) -> None:
        if self._chunk is not None:
            # Nobody takes it for now: what else comes waits in the kernel.
            self.close()
        elif (chunk := self._read()) is not None:
            self._chunk = chunk
            if not chunk:
                self.close()
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    def close(self) -> None:
        """The descriptor is not watched any more, before it is closed at the latest."""
        if self._loop is not None:
            self._loop.remove_reader(self._descriptor)
            self._loop = None
