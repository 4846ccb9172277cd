"""The way to the disk: calls of the store run on a few long-lived threads, several jobs' syncs at once.

A call that was handed over always runs to its end and is always waited for; cancellation never splits one.
Threads tell the loop through one eventfd, so many completions cost one wake-up, on either backend. So does
the kernel of commits that were begun together: a thread begins them and waits for none (`docs/adr/0016`).
"""

import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import anyio
import anyio.abc

from resumed.schemas.errors import CommitError, GoneError
from resumed.store import durable
from resumed.store.grouped import MOST_BYTES, MOST_PARTS, Group
from resumed.store.journal import Journal

from . import readable
from .bell import Bell
from .flights import Commit, Done, Flight

T = TypeVar("T")
THREADS = 4
MOST_FLIGHTS = 2
"""Groups of commits that the kernel may be at work on at once. What comes meanwhile makes the next one
larger: with 16 they were so small that handing them over cost a third of the rate (`docs/adr/0016`)."""
LEFT_AFTER = 0.2
"""Seconds after which a thread that hangs is left at the end, where nothing depends on it."""


class Disk(Protocol):
    """Runs blocking calls of the store for the loop."""

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """The function's result (or its error); shielded from cancellation."""
        ...

    async def append(self, journal: Journal, raw: bytes, sequence: int, digest: str) -> None:
        """`journal.append`, side by side with other jobs' commits; shielded from cancellation."""
        ...

    def submit(self, journal: Journal, raw: bytes, sequence: int, digest: str, done: Done) -> None:
        """Begin what `append` does; `done` is called in the loop once it has ended, and must not raise."""
        ...


class InlineDisk:
    """Runs each call at once in the loop: for tests in virtual time, and for work that must not overlap."""

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """The function's result."""
        return function(*args)

    async def append(self, journal: Journal, raw: bytes, sequence: int, digest: str) -> None:
        """The line is durable, or CommitError."""
        journal.append(raw, sequence, digest)

    def submit(self, journal: Journal, raw: bytes, sequence: int, digest: str, done: Done) -> None:
        """The line is durable, or CommitError, before this returns."""
        error: CommitError | None = None
        try:
            journal.append(raw, sequence, digest)
        except CommitError as found:
            error = found
        done(error)


class _Call:
    __slots__ = ("args", "done", "error", "function", "result")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args
        self.done = Bell()
        self.result: Any = None
        self.error: BaseException | None = None

    def end(self) -> None:
        """In the loop: whoever waits goes on."""
        self.done.ring()


class ThreadDisk:
    """A small pool of threads; `run` must be running for calls to be answered.

    At its end it waits for what its threads do, unless it is told not to (`waits`): one that hangs is left.
    """

    def __init__(self, threads: int = THREADS, *, waits: bool = True) -> None:
        self._waits = waits
        self._calls: deque[_Call | None] = deque()
        self._commits: deque[Commit] = deque()
        self._sleepers: deque[None] = deque()
        self._tokens: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._finished: deque[_Call | Commit] = deque()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._threads = [
            threading.Thread(target=self._work, name=f"disk-{number}", daemon=True)
            for number in range(threads)
        ]
        self._flights: list[Flight] = []
        self._spare: list[Group] = []
        self._groups = 0
        self._rung = False
        self.finished = 0
        """Calls that came back, for whoever watches that the threads do not hang."""
        self._open = True
        self._closing = False
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (work := self._next()) is not None:
            if isinstance(work, list):
                if self._begin(work):
                    continue
                self._commit(work)
                self._finished.extend(work)
            else:
                try:
                    work.result = work.function(*work.args)
                except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
                    work.error = error
                self._finished.append(work)
            # The order that must hold: the work is there, then the mark is looked at.
            # One ring serves all that ends before it is heard.
            if not self._rung:
                self._rung = True
                os.eventfd_write(self._bell, 1)

    def _begin(self, commits: list[Commit]) -> bool:
        """Have the kernel begin them; it rings the bell itself. False where they are to be done here."""
        if len(commits) == 1 and not self._flights:
            return False  # nobody else is at work: plain calls are as quick, and need no look afterwards
        parts, size = [], 0
        for each in commits:
            if each.plain:
                return False
            parts.append(each.part)
            size += len(each.part[1])
        if size > MOST_BYTES:
            return False
        group = self._means()
        if group is None:
            return False
        flight = Flight(group, commits)
        # It is known before it is begun: else the loop would hear of it only when this thread gets the
        # interpreter's lock again.
        if durable.begin_each(parts, group, self._bell, lambda: self._flights.append(flight)):
            return True
        self._spare.append(group)
        return False

    def _means(self) -> Group | None:
        """Means that nobody uses; None when there are no more."""
        try:
            return self._spare.pop()
        except IndexError:
            pass
        if self._groups >= MOST_FLIGHTS:
            return None
        self._groups += 1
        try:
            return Group()
        except OSError:
            self._groups = MOST_FLIGHTS  # not here, or not now: others may be given back
            return None

    @staticmethod
    def _commit(commits: list[Commit]) -> None:
        found: list[OSError | None]
        try:
            found = durable.write_and_sync_each([each.part for each in commits])
        except OSError as error:
            found = [error] * len(commits)
        for each, failed in zip(commits, found, strict=True):
            each.error = failed

    def _next(self) -> _Call | list[Commit] | None:
        """All commits that wait, as far as a group holds them, else the next call; sleeps while there is
        none. A thread that is at work is not woken for the next one.

        The order that must hold: on the list of sleepers, then one more look. Entries and tokens together
        are as many as the threads on their way to sleep, so whoever finds no entry to take back has a token.
        """
        while True:
            if self._has_room() and (commits := self._waiting_commits()):
                return commits
            try:
                return self._calls.popleft()
            except IndexError:
                self._sleepers.append(None)
            if self._calls or (self._commits and self._has_room()):
                try:
                    self._sleepers.pop()
                    continue
                except IndexError:
                    pass
            self._tokens.get()

    def _has_room(self) -> bool:
        """True while another group may be begun."""
        return len(self._flights) < MOST_FLIGHTS

    def _waiting_commits(self) -> list[Commit]:
        found: list[Commit] = []
        try:
            while len(found) < MOST_PARTS:
                found.append(self._commits.popleft())
        except IndexError:
            pass
        return found

    def _hand_over(self, call: _Call | None) -> None:
        self._calls.append(call)
        self._wake_one()

    def _wake_one(self) -> None:
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

    async def call_within(self, seconds: float, function: Callable[..., T], *args: Any) -> T | None:
        """The function's result or its error; None when no thread had it within so many seconds.

        It is let go then, and runs to its end for nobody: only for what changes nothing.
        """
        if not self._open:
            raise GoneError("cannot reach the disk: its threads have ended")
        call = _Call(function, args)
        self._hand_over(call)
        with anyio.move_on_after(seconds):
            await call.done.wait()
            if call.error is not None:
                raise call.error
            result: T = call.result
            return result
        with suppress(ValueError):
            self._calls.remove(call)
        return None

    async def append(self, journal: Journal, raw: bytes, sequence: int, digest: str) -> None:
        """The line is durable, or CommitError, once a thread has seen to it."""
        over = Bell()
        found: BaseException | None = None

        def done(error: BaseException | None) -> None:
            nonlocal found
            found = error
            over.ring()

        self.submit(journal, raw, sequence, digest, done)
        try:
            await over.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await over.wait()
            raise
        if found is not None:
            raise found

    def submit(self, journal: Journal, raw: bytes, sequence: int, digest: str, done: Done) -> None:
        """Hand the line over to a thread; CommitError when the journal takes none."""
        if not self._open:
            raise GoneError("cannot reach the disk: its threads have ended")
        self._commits.append(Commit(journal.begin_append(raw, sequence), journal, raw, digest, done))
        self._wake_one()

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Answer finished calls until `close`, then end the threads; shielded, since others wait for it."""
        task_status.started()
        try:
            with anyio.CancelScope(shield=True):
                await readable.watch(self._bell, self._hear)
        finally:
            self._open = False
            while self._flights:
                self._land(self._flights[0], wait=True)
            for _ in self._threads:
                self._hand_over(None)
            for thread in self._threads:
                thread.join(None if self._waits else LEFT_AFTER)
            if not any(thread.is_alive() for thread in self._threads):
                # Else the number stays taken: one that hangs still rings it when it ends.
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
            self.finished += 1
            self._finished.popleft().end()
        for flight in self._flights[:]:
            self._land(flight)

    def _land(self, flight: Flight, *, wait: bool = False) -> None:
        """End the commits of a flight that have come to their end."""
        for commit in flight.landed(wait=wait):
            if commit.plain:
                self._commits.append(commit)
                self._wake_one()
            else:
                self.finished += 1
                commit.end()
        if flight.is_over():
            self._flights.remove(flight)
            if self._commits:
                self._wake_one()
            if flight.group.left:
                self._groups -= 1  # it does not say what it holds, and is not used again
            else:
                self._spare.append(flight.group)
