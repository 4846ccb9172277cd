"""The roll: which jobs the store holds, read shard by shard; a shard that cannot be listed stops no other.

It reads names only, no job. A failed look is no verdict: the shard is looked at again until it answers.
"""

import logging
from bisect import bisect_left, insort
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from resumed.schemas.errors import UnreadableError
from resumed.schemas.instant import MICRO
from resumed.store import archive
from resumed.store.layout import Layout

from .clock import Clock
from .disk import Disk

logger = logging.getLogger(__name__)

RETRY_FIRST = 0.5
RETRY_MOST = 30.0
"""Seconds between two looks at a shard that cannot be listed."""
LATELY = 2 * 86_400 * MICRO
"""Microseconds for which it is remembered when a job ended: long enough for any clock's today."""
AT_A_TIME = 32
"""Shards that are listed in one call of the disk: a call for each took longer than the listing."""
T = TypeVar("T")


class Roll:
    """The names of one store's jobs. `found` is told of those that came late."""

    def __init__(
        self,
        layout: Layout,
        *,
        clock: Clock,
        reads: Disk,
        start_soon: Callable[..., None],
        found: Callable[[str], None],
    ) -> None:
        self._layout = layout
        self._clock = clock
        self._reads = reads
        self._start_soon = start_soon
        self._found = found
        self.troubles: dict[str, str] = {}
        """Shards that cannot be listed now, and why."""
        self.ended = 0
        """Jobs in the archive, as far as it could be listed."""
        self._lately: list[int] = []
        """When jobs ended in the last days, as wall microseconds, in order."""

    async def call_up(self) -> list[str]:
        """The ids of all open jobs that can be listed now; UnreadableError when not even the shards can."""
        names: list[str] = []
        shards = await self._reads.call(archive.shards, self._layout.jobs)
        for at in range(0, len(shards), AT_A_TIME):
            some = shards[at : at + AT_A_TIME]
            found = await self._reads.call(_names, self._layout.jobs, some)
            for shard, there in zip(some, found, strict=True):
                if isinstance(there, UnreadableError):
                    self._start_soon(self._again, shard, there)
                else:
                    names += there
        return names

    async def _again(self, shard: str, error: UnreadableError) -> None:
        wait = RETRY_FIRST
        names: tuple[str, ...] | None = None
        while names is None:
            logger.error("jobs/%s could not be listed: %s", shard, error)
            self.troubles[shard] = f"jobs/{shard} cannot be listed, its jobs wait: {error}"
            await self._clock.wait(wait)
            wait = min(wait * 2, RETRY_MOST)
            try:
                names = await self._reads.call(archive.names, self._layout.jobs / shard)
            except UnreadableError as again:
                error = again
        self.troubles.pop(shard, None)
        for name in names:
            self._found(name)

    async def count_ended(self) -> None:
        """Count the archive; a shard of it that cannot be listed is left out, and said."""
        place = self._layout.archive
        since = self._clock.now().wall - LATELY
        for shard in await self._listed(archive.shards, place):
            self.ended += len(await self._listed(archive.names, place / shard))
            self._lately = sorted([*self._lately, *await self._listed(archive.ends, place / shard, since)])

    async def _listed(self, look: Callable[..., tuple[T, ...]], *args: object) -> tuple[T, ...]:
        try:
            return await self._reads.call(look, *args)
        except UnreadableError as error:
            logger.error("the archive could not be counted whole: %s", error)
            return ()

    def note_end(self, at: int) -> None:
        """One more job is in the archive, since that wall instant."""
        self.ended += 1
        insort(self._lately, at)
        del self._lately[: bisect_left(self._lately, at - LATELY)]

    def ended_since(self, since: int) -> int:
        """How many jobs ended at that wall instant or later, of the last days."""
        return len(self._lately) - bisect_left(self._lately, since)


def _names(jobs: Path, shards: tuple[str, ...]) -> list[tuple[str, ...] | UnreadableError]:
    """What each of the shards holds, or why that one cannot be listed."""
    found: list[tuple[str, ...] | UnreadableError] = []
    for shard in shards:
        try:
            found.append(archive.names(jobs / shard))
        except UnreadableError as error:
            found.append(error)
    return found
