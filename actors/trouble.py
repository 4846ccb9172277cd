"""Trouble of the whole disk: known by its errno, eased by giving the reserve up, over once the disk works.

While it lasts nothing new is taken in and no try is started, so that what room is left goes to outcomes,
cancels and settles; the reserve is given up for a commit alone, never for what can wait. It retries nobody's
call and decides nothing about a job: a failed commit keeps the rule of its own log. A read that fails is the
affair of one file.
"""

import errno
import logging
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from resumed.schemas.errors import CommitError, GoneError, StoreError
from resumed.store import reserve
from resumed.store.journal import Journal
from resumed.store.layout import Layout

from .clock import Clock
from .disk import Disk
from .flights import Done

logger = logging.getLogger(__name__)

T = TypeVar("T")
Ease = Callable[[StoreError], Awaitable[bool]]
"""Makes room for a commit that was refused; true when another try at once is worth it."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
SAYS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EIO: "the disk fails",
}
"""What each errno says of the disk as a whole; every other one is the affair of one call."""
FIRST = 1.0
MOST = 15.0
"""Seconds between two looks whether the disk works again."""


async def nothing_to_give(_: StoreError) -> bool:
    """Where there is no reserve."""
    return False


class DiskTrouble:
    """The state of one store's disk. `changed` is told true when trouble begins, and false at its end."""

    def __init__(self, layout: Layout, clock: Clock, disk: Disk, changed: Callable[[bool], None]) -> None:
        self._layout = layout
        self._clock = clock
        self._disk = disk
        self._changed = changed
        self._begun = anyio.Event()
        self.said = ""
        """What is wrong, in a few words; "" while nothing is."""

    def line(self) -> tuple[str, ...]:
        """What is wrong, and what follows, for people."""
        if not self.said:
            return ()
        what = f"{self.said} ({self._layout.root}): nothing new is taken in or started"
        return (f"{what}; it goes on by itself once the disk works",)

    def noticed(self, error: Exception) -> bool:
        """Takes note of a refusal of the disk; true when it is trouble of the whole disk."""
        said = SAYS.get(_errno_of(error), "")
        if not said:
            return False
        if said != self.said:
            logger.error("%s: %s; nothing new is taken in or started.", said, error)
        first, self.said = not self.said, said
        if first:
            self._begun.set()
            self._changed(True)
        return True

    async def ease(self, error: StoreError) -> bool:
        """Makes room for the commit that this error refused; true when another try at once is worth it."""
        if not isinstance(error, CommitError) or error.errno not in FULL:
            return False
        try:
            eased = await self._disk.call(reserve.give_up, self._layout)
        except (StoreError, OSError, GoneError) as trouble:
            logger.error("the reserve could not be given up: %s", trouble)
            return False
        if eased:
            logger.warning("the reserve of %d bytes was given up.", reserve.SIZE)
        return eased

    async def prepare(self) -> None:
        """Makes the reserve; a disk that refuses it is in trouble from the start."""
        if why := await self._disk.call(reserve.trial, self._layout):
            self.noticed(OSError(why, f"a trial was refused: {os.strerror(why)}"))

    async def run(self) -> None:
        """Looks from time to time, while there is trouble, whether it is over."""
        while True:
            await self._begun.wait()
            wait = FIRST
            while self.said:
                await self._clock.wait(wait)
                wait = min(wait * 2, MOST)
                why = await self._disk.call(reserve.trial, self._layout)
                if why:
                    self.noticed(OSError(why, f"a trial was refused: {os.strerror(why)}"))
                else:
                    self._over()

    def _over(self) -> None:
        logger.warning("the disk works again.")
        self.said, self._begun = "", anyio.Event()
        self._changed(False)


class WatchedDisk:
    """A disk whose refusals are taken note of before its callers hear them."""

    def __init__(self, disk: Disk, trouble: DiskTrouble) -> None:
        self._disk = disk
        self._trouble = trouble

    async def call(self, function: Callable[..., T], *args: object) -> T:
        """The function's result or its error."""
        try:
            return await self._disk.call(function, *args)
        except (CommitError, OSError) as error:
            self._trouble.noticed(error)
            raise

    async def append(self, log: Journal, raw: bytes, sequence: int, digest: str) -> None:
        """The line is durable, or CommitError."""
        try:
            await self._disk.append(log, raw, sequence, digest)
        except CommitError as error:
            self._trouble.noticed(error)
            raise

    def submit(self, log: Journal, raw: bytes, sequence: int, digest: str, done: Done) -> None:
        """Begin what `append` does."""

        def noticed(error: BaseException | None) -> None:
            if isinstance(error, CommitError):
                self._trouble.noticed(error)
            done(error)

        try:
            self._disk.submit(log, raw, sequence, digest, noticed)
        except CommitError as error:
            self._trouble.noticed(error)
            raise


def _errno_of(error: Exception) -> int:
    return getattr(error, "errno", 0) or 0
