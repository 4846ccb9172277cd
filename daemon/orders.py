"""What signals ask of the daemon: to stop, to hurry, to read its configuration again; it carries out nothing.

From the first line of `serve` on a signal is heard: before the loop runs it ends the start where it stands,
which leaves nothing half done that the next start would not find; in the loop it is an event.
"""

import logging
import signal
from collections.abc import AsyncIterator, Callable

import anyio

log = logging.getLogger(__name__)

STOP = (signal.SIGTERM, signal.SIGINT)
RELOAD = signal.SIGHUP
SIGNALS = (*STOP, RELOAD)


class EarlyStop(SystemExit):
    """Asked to stop before the loop ran: the start ends, and the exit code is that of a clean end."""


def hear_early() -> None:
    """Hear signals until the loop does."""

    def stop(number: int, _frame: object) -> None:
        raise EarlyStop(0)

    for each in STOP:
        signal.signal(each, stop)
    # What is to be read again has not been read yet. A handler, since a child would inherit SIG_IGN.
    signal.signal(RELOAD, lambda *_: None)


class Orders:
    """What was asked so far. `reload` is called for each time the configuration is to be read again."""

    def __init__(self, reload: Callable[[], None]) -> None:
        self._reload = reload
        self.opening = anyio.CancelScope()
        """What only goes on until somebody asks to stop."""
        self.hurry = anyio.Event()
        self.asked = ""
        """The signal that asked to stop."""

    async def hear(self, signals: AsyncIterator[signal.Signals]) -> None:
        """Take signals as they come; the second one to stop hurries, and later ones change nothing."""
        async for each in signals:
            if each == RELOAD:
                self._reload()
            elif not self.asked:
                self.asked = each.name
                self.opening.cancel()
            elif not self.hurry.is_set():
                log.warning("The daemon was asked again to stop (%s), and hurried.", each.name)
                self.hurry.set()
