"""Lanes to the threads that publish: one file system that hangs must not take all of them.

A call that was handed to a thread cannot be called back. So a file system has two of them at most, and a
second only while it leaves one free; who waits for a lane holds no thread, and loses nothing when canceled.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import anyio

from .disk import THREADS, Disk

T = TypeVar("T")

MOST = 2
"""Calls of one file system that are with the threads at a time."""


class Lanes:
    """The threads of one disk, by the file system that a call goes to; `device` is its number."""

    def __init__(self, disk: Disk, threads: int = THREADS) -> None:
        self._disk = disk
        self._threads = threads
        self._at_work: dict[int, int] = {}
        self._waiting: list[tuple[int, anyio.Event]] = []

    async def call(self, device: int, function: Callable[..., T], *args: Any) -> T:
        """The function's result or its error, once a thread had a lane for that file system."""
        await self._enter(device)
        try:
            return await self._disk.call(function, *args)
        finally:
            self._leave(device)

    async def _enter(self, device: int) -> None:
        if self._may(device) and not any(device == other for other, _ in self._waiting):
            self._take(device)
            return
        mine = device, anyio.Event()
        self._waiting.append(mine)
        try:
            await mine[1].wait()
        except BaseException:
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                self._leave(device)  # let in, and canceled before it knew
            raise

    def _may(self, device: int) -> bool:
        own, free = self._at_work.get(device, 0), self._threads - sum(self._at_work.values())
        return free > 0 if not own else own < MOST and free > 1

    def _take(self, device: int) -> None:
        self._at_work[device] = self._at_work.get(device, 0) + 1

    def _leave(self, device: int) -> None:
        """Whoever waits and may is let in, those who came first before others."""
        self._at_work[device] -= 1
        if not self._at_work[device]:
            del self._at_work[device]
        for mine in list(self._waiting):
            if self._may(mine[0]):
                self._waiting.remove(mine)
                self._take(mine[0])
                mine[1].set()
