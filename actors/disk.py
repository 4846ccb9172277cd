"""The way to the disk: calls of the store run on a few long-lived threads, several jobs' syncs at once.

A call that was handed over always runs to its end and is always waited for; cancellation never splits one.
Threads tell the loop through one eventfd, so many completions cost one wake-up, on either backend.
"""

import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import anyio
import anyio.abc

from resumed.schemas.errors import GoneError

from . import readable

T = TypeVar("T")


class Disk(Protocol):
    """Runs blocking calls of the store for the loop."""

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """The function's result (or its error); shielded from cancellation."""
        ...


class InlineDisk:
    """Runs each call at once in the loop: for tests in virtual time, and for work that must not overlap."""

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """The function's result."""
        return function(*args)


class _Call:
    __slots__ = ("args", "done", "error", "function", "result")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args
        self.done = anyio.Event()
        self.result: Any = None
        self.error: BaseException | None = None


class ThreadDisk:
    """A small pool of threads; `run` must be running for calls to be answered."""

    def __init__(self, threads: int = 4) -> None:
        self._calls: deque[_Call | None] = deque()
        self._sleepers: deque[None] = deque()
        self._tokens: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._finished: deque[_Call] = deque()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._threads = [
            threading.Thread(target=self._work, name=f"disk-{number}", daemon=True)
            for number in range(threads)
        ]
        self._rung = False
        self._open = True
        self._closing = False
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (call := self._next()) is not None:
            try:
                call.result = call.function(*call.args)
            except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
                call.error = error
            # The order that must hold: the call is there, then the mark is looked at.
            # One ring serves all calls that end before it is heard.
            self._finished.append(call)
            if not self._rung:
                self._rung = True
                os.eventfd_write(self._bell, 1)

    def _next(self) -> _Call | None:
        """The next call; sleeps while there is none. A thread that is at work is not woken for the next one.

        The order that must hold: on the list of sleepers, then one more look. Entries and tokens together
        are as many as the threads on their way to sleep, so whoever finds no entry to take back has a token.
        """
        while True:
            try:
                return self._calls.popleft()
            except IndexError:
                self._sleepers.append(None)
            if self._calls:
                try:
                    self._sleepers.pop()
                    continue
                except IndexError:
                    pass
            self._tokens.get()

    def _hand_over(self, call: _Call | None) -> None:
        self._calls.append(call)
        try:
            self._sleepers.pop()
        except IndexError:
            return
        self._tokens.put(None)

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """The function's result or its error, once a thread has run it."""
        if not self._open:
            raise GoneError("cannot reach the disk: its threads have ended")
        call = _Call(function, args)
        self._hand_over(call)
        try:
            await call.done.wait()
        except anyio.get_cancelled_exc_class():
            # A scope for each call would cost as much as the rest of this function.
            with anyio.CancelScope(shield=True):
                await call.done.wait()
            raise
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Answer finished calls until `close`, then end the threads; shielded, since others wait for it."""
        task_status.started()
        try:
            with anyio.CancelScope(shield=True):
                await readable.watch(self._bell, self._hear)
        finally:
            self._open = False
            for _ in self._threads:
                self._hand_over(None)
            for thread in self._threads:
                thread.join()
            self._ring()
            os.close(self._bell)

    def close(self) -> None:
        """End `run` once what was handed over is done."""
        self._closing = True
        os.eventfd_write(self._bell, 1)

    def _hear(self) -> bool:
        self._ring()
        return not self._closing

    def _ring(self) -> None:
        # Emptied first: were the mark cleared before, a bell rung in between would be emptied with it, the
        # mark would stand without a bell, and no call would ever be heard again.
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            pass
        self._rung = False
        while self._finished:
            self._finished.popleft().done.set()
