"""Room kept for a full disk: a file of zeros, given up so that outcomes, cancels and settles still fit.

Whether a disk works again is asked here too: by writing, never by its own word alone.
"""

import errno

from resumed.schemas.errors import StoreError

from . import durable
from .layout import Layout

SIZE = 4 * 1024 * 1024
"""Bytes kept: a new log of 16 KiB for each of 256 jobs."""
SPARE = 1024 * 1024
"""Bytes that must be free beside it before it is made anew: made of the last block, it would go at once."""
NAME = "reserve"
TRIAL = b"\0" * 4096


def keep(layout: Layout, size: int = SIZE) -> bool:
    """Make the reserve unless it is there; False when the disk has no room for it."""
    target = layout.root / NAME
    with durable.reading(target):
        if durable.exists(target):
            return True
        # Asked first: an attempt that fails half way would for a moment take the room that was given up.
        if durable.space(layout.root)[0] < size + SPARE:
            return False
    try:
        # Written, not only sized: an empty range would hold no blocks.
        durable.write_new(target, bytes(size))
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def give_up(layout: Layout) -> bool:
    """Remove the reserve; False when there was none left to give."""
    target = layout.root / NAME
    with durable.writing("give up", target):
        if not durable.exists(target):
            return False
        durable.unlink(target)
        durable.sync_folder(layout.root)
    return True


def trial(layout: Layout) -> int:
    """0 when the disk took and synced a small file and the reserve is there, else why not, as an errno."""
    temp = durable.temporary(layout.root / NAME)
    try:
        try:
            durable.new_file(temp, TRIAL)
        finally:
            durable.discard(temp)
        durable.sync_folder(layout.root)
        return 0 if keep(layout) else errno.ENOSPC
    except OSError as error:
        return error.errno or errno.EIO
    except StoreError as error:
        return error.errno or errno.EIO
