"""A file that a person asked for: written beside its place, whole and synced, and never over another one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


class TakenError(Exception):
    """There is a file of that name, and it stays."""


class Kept:
    """A file on its way. Until `publish` there is nothing under its name."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._temp = os.path.join(
            os.path.dirname(path), f".{os.path.basename(path)[:200]}.{os.getpid()}.part"
        )
        self._fd = os.open(self._temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)

    def write(self, chunk: bytes) -> None:
        """Take all of these bytes."""
        left = memoryview(chunk)
        while left:
            left = left[os.write(self._fd, left) :]

    def publish(self) -> None:
        """Give the file its name; TakenError when somebody took it meanwhile."""
        os.fsync(self._fd)
        try:
            try:
                os.link(self._temp, self.path)
            except PermissionError:  # a file system that knows no links
                if os.path.lexists(self.path):
                    raise FileExistsError from None
                os.rename(self._temp, self.path)
        except FileExistsError:
            raise TakenError(self.path) from None

    def close(self) -> None:
        """Leave nothing beside the file."""
        os.close(self._fd)
        try:
            os.unlink(self._temp)
        except FileNotFoundError:
            pass


@contextmanager
def file(path: str) -> Iterator[Kept]:
    """A file to write and publish; TakenError when its name is taken, OSError when it cannot be written."""
    if os.path.lexists(path):
        raise TakenError(path)
    kept = Kept(path)
    try:
        yield kept
    finally:
        kept.close()
