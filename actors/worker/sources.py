"""Sources: what an item's input is known by. It reads, and changes nothing.

Nothing but a regular file is ever opened for reading: opening a device may already do something.
"""

import hashlib
import os

from attrs import evolve

from resumed.schemas import strict
from resumed.schemas.job import PinKind, Source
from resumed.schemas.workflow import Pinning

from . import offers

HASHED = 64 * 1024 * 1024
"""Above this `auto` pins by size, mtime and inode instead of the sha256."""
_AT_ONCE = 1024 * 1024


def pin(path: str, pinning: Pinning = Pinning.AUTO) -> Source:
    """A source and what it is known by; OSError when it is no regular file that can be read."""
    with offers.open_regular(path) as file:
        if pinning is Pinning.NONE:
            return Source(path=path)
        status = os.fstat(file.fileno())
        seen = Source(
            path=path,
            size=status.st_size,
            mtime=status.st_mtime_ns // 1000,
            inode=status.st_ino & strict.MAX_INT,
        )
        if pinning is Pinning.STAT or (pinning is Pinning.AUTO and status.st_size > HASHED):
            return evolve(seen, pin=PinKind.STAT)
        digest = hashlib.sha256()
        while piece := file.read(_AT_ONCE):
            digest.update(piece)
        after = os.fstat(file.fileno())
        if (after.st_size, after.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
            raise OSError("it changed while it was read")
        return evolve(seen, pin=PinKind.SHA256, sha256=digest.hexdigest())
