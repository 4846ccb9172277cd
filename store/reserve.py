"""Room kept for a full disk: a file of zeros, given up so that outcomes, cancels and settles still fit."""

from . import durable
from .layout import Layout

SIZE = 4 * 1024 * 1024
"""Bytes kept: a new log of 16 KiB for each of 256 jobs."""
NAME = "reserve"


def keep(layout: Layout, size: int = SIZE) -> bool:
    """Make the reserve unless it is there; False when the disk has no room for it."""
    target = layout.root / NAME
    with durable.reading(target):
        if durable.exists(target):
            return True
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
