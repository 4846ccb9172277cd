"""The worker's end of its socket: raw non-blocking reads and writes, many frames a read, no streams.

The loop watches the descriptor all the time, so that a frame costs no call to the kernel but its own.
"""

import asyncio
import socket
from collections.abc import Callable

_READ = 64 * 1024  # for more, each read would have its memory mapped and unmapped
_WRITE = 256 * 1024


class Wire:
    """Frames over the inherited socket. `on_line` gets each line; `on_end` is called once, at the end.

    With `gather`, what is sent before the loop's next turn leaves in one call.
    """

    def __init__(
        self, connection: socket.socket, on_line: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> None:
        connection.setblocking(False)
        self.gather = False
        self._socket = connection
        self._on_line = on_line
        self._on_end = on_end
        self._received = bytearray()
        self._waiting = bytearray()
        self._sent = asyncio.Event()
        self._sent.set()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection, self._read)

    def close(self) -> None:
        """Stop watching, and close the socket."""
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()

    def _read(self) -> None:
        try:
            raw = self._socket.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            raw = b""
        if not raw:
            self._loop.remove_reader(self._socket)
            self._on_end()
            return
        if b"\n" not in raw:
            self._received += raw  # looked through once it is whole
            return
        *lines, rest = raw.split(b"\n")
        lines[0] = bytes(self._received) + lines[0]
        self._received = bytearray(rest)
        for line in lines:
            self._on_line(line)

    def send(self, raw: bytes) -> None:
        """Send the bytes of a frame now, at the loop's next turn, or when the daemon has read enough."""
        idle = not self._waiting
        self._waiting += raw
        if not idle:
            return
        if self.gather:
            self._sent.clear()
            self._loop.call_soon(self._write)
        elif not self._send_now():
            self._sent.clear()
            self._loop.add_writer(self._socket, self._write)

    async def sent(self) -> None:
        """Wait until everything is sent."""
        await self._sent.wait()

    def _write(self) -> None:
        if self._send_now():
            self._loop.remove_writer(self._socket)
            self._sent.set()
        else:
            self._loop.add_writer(self._socket, self._write)

    def _send_now(self) -> bool:
        """Send what waits; True when nothing is left."""
        try:
            while self._waiting:
                with memoryview(self._waiting) as waiting:
                    sent = self._socket.send(waiting[:_WRITE])
                del self._waiting[:sent]
        except BlockingIOError:
            return False
        except OSError:
            self._waiting.clear()  # nobody listens any more; `on_end` says so
        return True
