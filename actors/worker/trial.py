"""One try that is running in this worker: how it is asked to end, and how long that may take."""

import asyncio
from collections.abc import Callable

from resumed.schemas.job import Budget


class TryStoppedError(Exception):
    """The try was ended on request, and gave no answer."""


class Trial:
    """A running try. A handler is cancelled; a program is asked by its own runner, through `on_stop`."""

    __slots__ = ("asked", "grace", "on_stop", "started", "task", "used")

    def __init__(self) -> None:
        self.asked = False
        self.started = False
        self.grace = 0.0
        self.on_stop: Callable[[], None] | None = None
        self.task: asyncio.Task[None] | None = None
        self.used: Budget | None = None
        """What its program said that it spent; it counts however the try ends."""

    def stop(self, grace: float) -> None:
        """Ask the try to end within `grace` seconds; the first request counts."""
        if self.asked:
            return
        self.asked = True
        self.grace = grace
        if self.on_stop is not None:
            self.on_stop()
        elif self.task is not None:
            self.task.cancel()
