"""The names service, beside the loop: asked on threads of its own, and given up on after a few seconds.

A directory that hangs must hold no job up for long, and no thread that commits; what it does not say in time
is not known, and never a yes.
"""

from collections.abc import Callable, Iterable

from .disk import ThreadDisk
from .hostnames import Looked, look

SECONDS = 3.0
"""How long an answer is waited for."""
THREADS = 2


class Names:
    """The host's users and groups; `run` must be running for anything to be answered."""

    def __init__(self, seconds: float = SECONDS, ask: Callable[..., Looked] = look) -> None:
        self._seconds = seconds
        self._ask = ask
        self._threads = ThreadDisk(THREADS, waits=False)
        self.run = self._threads.run
        self.close = self._threads.close

    async def look(self, whom: Iterable[str], uids: Iterable[int], gids: Iterable[int]) -> Looked:
        """What the host says now; with a problem when it does not say it in time."""
        found = await self._threads.call_within(self._seconds, self._ask, whom, uids, gids)
        if found is not None:
            return found
        return Looked(problem=f"this host did not say within {self._seconds:g} s who its users are")
