"""What a try's program prints, appended live to its unit's log: bytes as they come, bounded.

The bound is the file's. A try that finds it half full starts it anew, so the newest is always to be seen.
"""

import contextlib
import os
from types import TracebackType

MOST = 16 * 1024 * 1024
"""Bytes of one file, whatever the number of tries in it."""
MASK = b"(a credential)"
"""What stands in place of a credential that a program printed."""
_SHORTEST = 4


class RunLog:
    """The log of one try, in a file of all tries. A disk that refuses loses log lines, never a result."""

    def __init__(self, path: str, header: str, most: int = MOST) -> None:
        self._left = most
        self._ends_line = True
        self._file = -1
        self._masks: tuple[bytes, ...] = ()
        self._waiting = b""
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._file = os.open(path, flags, 0o600)
            self._make_room(most)
        self._put(f"--- {header} ---\n".encode(errors="replace"))

    def _make_room(self, most: int) -> None:
        """Count what earlier tries left; where it leaves too little room, it goes."""
        size = os.fstat(self._file).st_size
        if size > most // 2:
            os.ftruncate(self._file, 0)
            size = 0
            self._put(b"--- what earlier tries printed is not kept: the log was full ---\n")
        self._left = most - size

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._flush()
        if not self._ends_line:
            self._put(b"\n")
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def write(self, raw: bytes) -> None:
        """Append what a program printed, up to the cap; the rest is counted as dropped by one line."""
        if self._masks:
            raw = self._masked(raw)
        self._write(raw)

    def mask(self, values: tuple[bytes, ...]) -> None:
        """From here on these bytes are not to be seen; those of under 4 would hide half of everything."""
        self._masks = tuple(value for value in values if len(value) >= _SHORTEST)

    def clean(self, raw: bytes) -> bytes:
        """What is printed, without what must not be seen."""
        for value in self._masks:
            raw = raw.replace(value, MASK)
        return raw

    def clean_text(self, text: str) -> str:
        """`clean` for a text."""
        return self.clean(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def _masked(self, raw: bytes) -> bytes:
        """What may be written by now: what could be the beginning of a masked value waits for the rest."""
        whole = self.clean(self._waiting + raw)
        kept = next(
            (
                n
                for n in range(min(len(whole), max(map(len, self._masks)) - 1), 0, -1)
                if any(value.startswith(whole[-n:]) for value in self._masks)
            ),
            0,
        )
        self._waiting = whole[len(whole) - kept :]
        return whole[: len(whole) - kept]

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, b""
        self._write(waiting)

    def _write(self, raw: bytes) -> None:
        if self._left <= 0 or not raw:
            return
        kept = raw[: self._left]
        self._left -= len(kept)
        self._put(kept)
        self._ends_line = kept.endswith(b"\n")
        if not self._left:
            self._put(b"\n--- more was printed, and is not kept: the log is full ---\n")
            self._ends_line = True

    def note(self, text: str) -> None:
        """Append a line of ours."""
        self._flush()
        self._put(f"{'' if self._ends_line else chr(10)}--- {text} ---\n".encode(errors="replace"))
        self._ends_line = True

    def _put(self, raw: bytes) -> None:
        left = memoryview(raw)
        with contextlib.suppress(OSError):
            while left and self._file >= 0:
                left = left[os.write(self._file, left) :]
