"""The clock seam: the one place where this process asks what time it is, and waits for time to pass."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

import anyio

from resumed.schemas.instant import Instant


class Clock(Protocol):
    """What the loop needs of time; tests bring their own."""

    def now(self) -> Instant:
        """This moment, on the wall clock and on the boot clock."""
        ...

    async def wait(self, seconds: float) -> None:
        """Return after about `seconds`."""
        ...


async def within(clock: Clock, seconds: float, wait: Callable[[], Awaitable[None]]) -> None:
    """Wait for `wait`, but no longer than `seconds` of this clock."""
    async with anyio.create_task_group() as group:

        async def give_up() -> None:
            await clock.wait(seconds)
            group.cancel_scope.cancel()

        group.start_soon(give_up)
        await wait()
        group.cancel_scope.cancel()


class SystemClock:
    """The machine's clocks: UTC, and the boot clock that runs through a suspend."""

    def __init__(self) -> None:
        self._boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()

    def now(self) -> Instant:
        """This moment."""
        up = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
        return Instant(wall=time.time_ns() // 1000, boot=self._boot, up=up)

    async def wait(self, seconds: float) -> None:
        """Sleep; a suspend of the machine may stretch it, so nobody sleeps longer than a coarse tick."""
        await anyio.sleep(seconds)


def monotonic() -> int:
    """Microseconds of CLOCK_MONOTONIC, the clock by which a service manager orders what it is told."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
