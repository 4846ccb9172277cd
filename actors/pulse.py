"""The pulse of the disk's threads: whether each pool still finishes what it is given; it decides nothing.

It counts and asks no clock: how long between two looks is long, the one who looks knows.
"""

import anyio.abc

from resumed.schemas.errors import GoneError

from .disk import ThreadDisk


class Pulse:
    """Looks at some pools; their tasks run in `group`."""

    def __init__(self, *disks: ThreadDisk) -> None:
        self._disks = disks
        self._seen = [-1] * len(disks)
        self._asking: set[int] = set()

    def beats(self, group: anyio.abc.TaskGroup) -> bool:
        """True when every pool has finished a call since the last look; each look hands one in to all.

        A pool with a long queue is alive as long as it moves, and an idle one answers at once.
        """
        moved = [disk.finished != seen for disk, seen in zip(self._disks, self._seen, strict=True)]
        self._seen = [disk.finished for disk in self._disks]
        for place in range(len(self._disks)):
            if place not in self._asking:
                self._asking.add(place)
                group.start_soon(self._ask, place)
        return all(moved)

    async def _ask(self, place: int) -> None:
        try:
            await self._disks[place].call(int)
        except GoneError:
            pass  # the threads have ended, and we with them
        finally:
            self._asking.discard(place)
