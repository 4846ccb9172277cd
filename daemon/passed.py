"""Listening sockets that the service manager passed on: checked, used, and never bound or unlinked by us.

The order that must hold: close-on-exec first, then a look at what it is. The variables are removed, so that
no child takes our sockets for its own.
"""

import os
import socket
import stat
from collections.abc import MutableMapping
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint

from resumed.schemas.errors import FaultyInputError

from .socket import Stream

FIRST = 3
"""The first passed descriptor (sd_listen_fds(3))."""
MOST = 64
"""More than anybody passes; past it the number is taken for a mistake."""
VARIABLES = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")
WHAT = "cannot use the socket that was passed on (LISTEN_FDS)"


def take(environ: MutableMapping[str, str], pid: int) -> "PassedSeat | None":
    """The one socket passed to this process, None when there is none; FaultyInputError for any other."""
    whose, count, names = (environ.pop(name, "") for name in VARIABLES)
    if whose != str(pid) or count in ("", "0"):
        return None
    if not (count.isascii() and count.isdigit()) or int(count) > MOST:
        raise FaultyInputError(WHAT, (f"expected a number up to {MOST}, got {count!r} @ LISTEN_FDS",))
    descriptors = range(FIRST, FIRST + int(count))
    for descriptor in descriptors:
        try:
            os.set_inheritable(descriptor, False)
        except OSError as error:
            raise FaultyInputError(WHAT, (f"descriptor {descriptor}: {error.strerror}",)) from None
    if len(descriptors) > 1:
        raise FaultyInputError(WHAT, (f"expected one socket, got {count}: {names or 'without names'}",))
    return PassedSeat(_listening(FIRST))


def _listening(descriptor: int) -> socket.socket:
    """The descriptor as a listening Unix stream socket."""
    if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        raise FaultyInputError(WHAT, (f"descriptor {descriptor} is no socket",))
    found = socket.socket(fileno=descriptor)
    wanted = found.family == socket.AF_UNIX and found.type == socket.SOCK_STREAM
    if not wanted or not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        kind = f"{found.family.name} {found.type.name}"
        found.detach()
        raise FaultyInputError(WHAT, (f"expected a listening Unix stream socket, got {kind}",))
    found.setblocking(False)
    return found


class PassedSeat:
    """The place of a control socket that the service manager keeps."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        name = listener.getsockname()
        self.path = Path(f"@{os.fsdecode(name[1:])}" if isinstance(name, bytes) else name)

    async def accept(self) -> Stream:
        """The next connection; OSError with an errno of OVERLOAD is the caller's to wait out."""
        while True:
            try:
                accepted, _ = self._listener.accept()
            except BlockingIOError:
                await anyio.wait_readable(self._listener)
            except (ConnectionAbortedError, InterruptedError):
                await checkpoint()
            else:
                return Stream(accepted)

    def look(self) -> bool:
        """Nothing is bound anew here: the socket is the service manager's."""
        return False

    def leave(self) -> None:
        """Lets our descriptor go; the path stays, and whoever connects meanwhile waits for the next one."""
        self._listener.close()
