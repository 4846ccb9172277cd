"""Words to the service manager: the datagrams of `sd_notify(3)`; knows nothing of jobs and never waits.

What must be heard (ready, stopping, reloading) is kept until the manager's socket took it; a status or a sign
of life that finds the socket full is dropped, since the next one says more. Without `NOTIFY_SOCKET` every
word goes nowhere.
"""

import logging
import socket
from collections import deque
from collections.abc import MutableMapping

from resumed.actors.clock import monotonic

log = logging.getLogger(__name__)

ADDRESS = "NOTIFY_SOCKET"
PERIOD, WATCHED = "WATCHDOG_USEC", "WATCHDOG_PID"
MILLION = 1_000_000


class Notifier:
    """The way to one service manager; after `watchdog` seconds of silence it acts, 0 stands for never."""

    def __init__(self, address: str = "", watchdog: float = 0.0) -> None:
        self.watchdog = watchdog
        self._address = address
        self._owed: deque[bytes] = deque()
        self._status = ""
        self._failed = ""

    def __bool__(self) -> bool:
        """True when somebody listens."""
        return bool(self._address)

    def ready(self) -> None:
        """The daemon is up, or has finished to read its configuration again."""
        self._owe("READY=1")

    def reloading(self) -> None:
        """The configuration is being read again, as of now on the manager's clock."""
        self._owe(f"RELOADING=1\nMONOTONIC_USEC={monotonic()}")

    def stopping(self, seconds: float) -> None:
        """The daemon ends, and may take that long for it."""
        self._owe(f"STOPPING=1\nEXTEND_TIMEOUT_USEC={int(seconds * MILLION)}")

    def extend(self, seconds: float) -> None:
        """The start goes on, and the next word comes within that time."""
        self._say(f"EXTEND_TIMEOUT_USEC={int(seconds * MILLION)}".encode())

    def alive(self) -> None:
        """The watchdog may rest for one period."""
        self._say(b"WATCHDOG=1")

    def status(self, sentence: str) -> None:
        """How the daemon is, on one line; said once for as long as it stays true."""
        if sentence != self._status and self._say(b"STATUS=" + " ".join(sentence.split()).encode()):
            self._status = sentence

    def _owe(self, words: str) -> None:
        self._owed.append(words.encode())
        self._pay()

    def _pay(self) -> bool:
        """Says what must be heard, in order; True when nothing is left of it."""
        while self._owed and self._send(self._owed[0]):
            self._owed.popleft()
        return not self._owed

    def _say(self, words: bytes) -> bool:
        return self._pay() and self._send(words)

    def _send(self, words: bytes) -> bool:
        """One datagram; the socket is opened for each, since a manager may bind its own anew."""
        if not self._address:
            return True
        # `@` stands for the zero byte of an abstract address.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        try:
            with socket.socket(socket.AF_UNIX, kind) as way:
                way.sendto(words, address)
        except BlockingIOError:
            return False
        except OSError as error:
            self._complain(error)
            return False
        self._failed = ""
        return True

    def _complain(self, error: OSError) -> None:
        said = error.strerror or str(error)
        if said != self._failed:
            log.warning("The service manager at %s could not be told: %s.", self._address, said)
        self._failed = said


def take(environ: MutableMapping[str, str], pid: int) -> Notifier:
    """The notifier that the environment names; its variables are removed, so that no child hears of them.

    A watchdog is ours only when `WATCHDOG_PID` names us or nobody (sd_watchdog_enabled(3)).
    """
    address = environ.pop(ADDRESS, "")
    period, watched = environ.pop(PERIOD, ""), environ.pop(WATCHED, "")
    if address and not address.startswith(("/", "@")):
        log.warning("The address %r of the service manager is no Unix socket and is not used.", address)
        address = ""
    ours = watched in ("", str(pid)) and period.isascii() and period.isdigit()
    return Notifier(address, int(period) / MILLION if address and ours else 0.0)
