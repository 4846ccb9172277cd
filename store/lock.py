"""The only fence between daemons: a held lock on the store; it never waits and never takes over.

The lock is the kernel's, on an open file; what stands in the file only tells who holds it.
"""

from collections.abc import Mapping
from typing import Any

from resumed.schemas import codec, strict
from resumed.schemas.errors import BusyError, FaultyInputError

from . import durable
from .layout import Layout

WIDTH = 255
"""Bytes of an identity before its newline, more than one ever has."""


class Lock:
    """A held lock; it ends with `release` or with the process."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    def close(self) -> None:
        """The same as `release`, for `contextlib.closing`."""
        self.release()

    def release(self) -> None:
        """Give the lock up; a second call does nothing."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            durable.close(fd)


def hold(layout: Layout, identity: Mapping[str, Any]) -> Lock:
    """Take the lock and write who holds it (`boot`, `pid`, `start`); BusyError names the holder's pid."""
    with durable.writing("lock", layout.lock_file):
        fd = durable.open_lock(layout.lock_file)
        try:
            if not durable.lock(fd):
                raise BusyError(
                    f"cannot open the store {layout.root}: {_spell(holder(layout))} holds its lock"
                )
            # No sync: after a power cut nobody holds the lock. Written over what stands there, in a fixed
            # width, so that it takes no room on a disk that is full.
            durable.write_at(fd, codec.dump_plain(dict(identity)).ljust(WIDTH) + b"\n", 0)
        except BaseException:
            durable.close(fd)
            raise
    return Lock(fd)


def holder(layout: Layout) -> dict[str, Any]:
    """Who wrote itself into the lock file last; empty when that cannot be told."""
    try:
        value = strict.parse(durable.read_all(layout.lock_file), "lock")
    except (OSError, FaultyInputError):
        return {}
    return value if isinstance(value, dict) else {}


def _spell(identity: Mapping[str, Any]) -> str:
    pid = identity.get("pid")
    return f"pid {pid}" if isinstance(pid, int) else "another process"
