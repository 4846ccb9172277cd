"""Tells the service manager how the daemon is, as long as it lives; what is told is true when it is told.

Signs of life come from this task in the daemon's own loop, and only while the disk's threads move: a loop
that hangs says nothing, and of threads that hang it says nothing either.
"""

from collections.abc import Callable
from typing import Protocol

import anyio

from resumed.actors.house import Figures

from .notify import Notifier

LOOK_EVERY = 2.0
LOOKS = 4
"""Looks in one period of the watchdog: a sync may take up to half of it without costing us our life."""
START_STEP = 60.0
"""Seconds that a start which moves may still take, said anew at each look (systemd's own default is 90)."""
AFTERWARDS = 15.0
"""Seconds, past those a drain may take, until the process has ended."""


class Living(Protocol):
    """What the herald looks at."""

    def figures(self) -> Figures:
        """How the daemon is now."""

    def beats(self) -> bool:
        """Whether the disk's threads have moved since the last look."""


class Herald:
    """One daemon's herald; `run` it in the loop for as long as the daemon lives."""

    def __init__(
        self, notifier: Notifier, house: Living, unreachable: Callable[[], str] = lambda: ""
    ) -> None:
        self._notifier = notifier
        self._house = house
        self._unreachable = unreachable
        """Why nobody can ask the daemon itself, while that is so."""
        self._stage = "starting"
        watchdog = notifier.watchdog
        self.every = min(LOOK_EVERY, watchdog / LOOKS) if watchdog else LOOK_EVERY

    async def run(self) -> None:
        """Looks until cancelled."""
        while self._notifier:
            self.look()
            await anyio.sleep(self.every)

    def look(self) -> None:
        """One look, and what is to be said after it."""
        if self._house.beats():
            if self._stage == "starting":
                self._notifier.extend(START_STEP)
            elif self._notifier.watchdog:
                self._notifier.alive()
        self._notifier.status(self._sentence())

    def ready(self) -> None:
        """The doors are open."""
        self._stage = ""
        self._notifier.status(self._sentence())
        self._notifier.ready()

    def stopping(self, seconds: float) -> None:
        """A drain has begun that may take that long."""
        self._stage = "stopping"
        self._notifier.stopping(seconds + AFTERWARDS)
        self._notifier.status(self._sentence())

    def _sentence(self) -> str:
        now = self._house.figures()
        facts = [_count(now.open, "open job"), f"{now.at_work} at work", _count(now.workers, "worker")]
        if now.loading:
            facts.append(f"{now.loading} still to be read")
        said = ", ".join(facts)
        for before in (now.trouble, self._unreachable(), self._stage):
            said = f"{before}: {said}" if before else said
        return said


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
