"""Virtual time: it passes only when every task waits, and then jumps to the next moment waited for."""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.lowlevel
import sniffio
import trio.testing
from attrs import define

from resumed.schemas.instant import MICRO, Instant

START = 1_795_000_000 * MICRO
BOOT = "6f1c2b7a-0000-4000-8000-000000000001"


@define(eq=False)
class Sleeper:
    """One task that waits for a moment."""

    event: anyio.Event
    awake: bool = False


class VirtualClock:
    """A clock that stands still until `advance`."""

    def __init__(self) -> None:
        self.micro = 0
        """Microseconds that really went by since the beginning."""
        self.set_by = 0
        """By how much the wall clock is ahead of the truth."""
        self.boots = 0
        self._booted = 0
        self._sleepers: list[tuple[int, int, Sleeper]] = []
        self._count = itertools.count()

    def now(self) -> Instant:
        """This moment."""
        boot = f"{BOOT}{self.boots or ''}"
        return Instant(wall=START + self.micro + self.set_by, boot=boot, up=self.micro - self._booted)

    def jump(self, seconds: float) -> None:
        """Somebody sets the wall clock; no time goes by."""
        self.set_by += round(seconds * MICRO)

    def reboot(self, seconds: float) -> None:
        """The machine is off for so long, and comes back in another boot."""
        self.micro += round(seconds * MICRO)
        self.boots += 1
        self._booted = self.micro - 20 * MICRO

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return self.micro / MICRO

    async def wait(self, seconds: float) -> None:
        """Return once that much time has passed."""
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return
        sleeper = Sleeper(anyio.Event())
        at = self.micro + max(1, round(seconds * MICRO))
        heapq.heappush(self._sleepers, (at, next(self._count), sleeper))
        try:
            await sleeper.event.wait()
        finally:
            sleeper.awake = True

    def next_at(self) -> int | None:
        """The next moment somebody waits for."""
        while self._sleepers and self._sleepers[0][2].awake:
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def advance(self, most: int | None = None) -> bool:
        """Go to the next moment (but no further than `most`); False when nobody was woken."""
        at = self.next_at()
        if at is None or (most is not None and at > most):
            if most is not None:
                self.micro = max(self.micro, most)
            return False
        self.micro = max(self.micro, at)  # a machine that was off has slept through it
        while self.next_at() == at:
            sleeper = heapq.heappop(self._sleepers)[2]
            sleeper.awake = True
            sleeper.event.set()
        return True


async def settle() -> None:
    """Return when every other task waits for something."""
    if sniffio.current_async_library() == "trio":
        await trio.testing.wait_all_tasks_blocked()
        return
    ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]
    quiet = 0
    # anyio calls itself again for as long as a cancelled task is shielded, and must be let do so once more
    # after everybody else has stopped: only then does a task that left its shield hear of it.
    while quiet < 3:
        await asyncio.sleep(0)
        alone = all(getattr(each._callback, "__name__", "") == "_deliver_cancellation" for each in ready)
        quiet = quiet + 1 if alone and ready else 3 if alone else 0


def run(backend: str, seed: int, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `main` so that one seed always schedules tasks in one order."""
    if backend == "trio":
        trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[attr-defined]
        trio._core._run._r.seed(seed)  # type: ignore[attr-defined]
    anyio.run(main, backend=backend)
