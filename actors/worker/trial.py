"""One try that is running in this worker: how it is asked to end, and how long that may take."""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio


class TryStoppedError(Exception):
    """The try was ended on request, and gave no answer."""


class Trial:
    """A running try. A handler of ours is cancelled; a program is asked by its own runner."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.asked = anyio.Event()
        self.grace = 0.0
        self._ends_itself = False

    def stop(self, grace: float) -> None:
        """Ask the try to end within `grace` seconds; the first request counts."""
        if self.asked.is_set():
            return
        self.grace = grace
        self.asked.set()
        if not self._ends_itself:
            self.scope.cancel()

    @contextmanager
    def ending_itself(self) -> Iterator[None]:
        """Inside, `stop` cancels nothing: whoever entered watches `asked`."""
        self._ends_itself = True
        try:
            yield
        finally:
            self._ends_itself = False
