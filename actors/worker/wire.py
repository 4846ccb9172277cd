"""The worker's end of its socket: raw non-blocking reads and writes, many frames a read, no streams."""

import socket

import anyio
import anyio.abc

_AT_ONCE = 256 * 1024


class Wire:
    """Frames over the inherited socket. `lines` waits; `send` never does."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._received = b""
        self._waiting = bytearray()

    async def lines(self) -> list[bytes] | None:
        """Every whole line that has come, at least one; None once the daemon has closed its end."""
        while True:
            try:
                raw = self._socket.recv(_AT_ONCE)
            except BlockingIOError:
                await anyio.wait_readable(self._socket)
                continue
            except OSError:
                return None
            if not raw:
                return None
            *lines, self._received = (self._received + raw if self._received else raw).split(b"\n")
            if lines:
                return lines

    def send(self, raw: bytes, group: anyio.abc.TaskGroup) -> None:
        """Send the bytes of a frame now, or in a task of `group` when the socket is full."""
        sent = 0
        if not self._waiting:
            try:
                sent = self._socket.send(raw)
            except BlockingIOError:
                pass
            except OSError:
                return  # nobody listens any more; the end of `lines` says so
            if sent == len(raw):
                return
            group.start_soon(self.flush)
        self._waiting += raw[sent:]

    async def flush(self) -> None:
        """Send what had to wait; returns when all of it is sent."""
        while self._waiting:
            await anyio.wait_writable(self._socket)
            try:
                sent = self._socket.send(memoryview(self._waiting)[:_AT_ONCE])
            except BlockingIOError:
                continue
            except OSError:
                self._waiting.clear()
                return
            del self._waiting[:sent]
