"""F: how often a second one caller can append 1 KiB to a preallocated, zero-filled file and flush it."""

import os
from pathlib import Path
from time import perf_counter

BLOCK = bytes(range(256)) * 4
ROOM = 64 * 1024 * 1024


def flushes_per_s(folder: Path, seconds: float) -> float:
    """Appends and flushes for about `seconds`; the file is filled and synced before the clock starts."""
    path = folder / "flushes"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        for offset in range(0, ROOM, 1024 * 1024):
            os.pwrite(descriptor, bytes(1024 * 1024), offset)
        os.fsync(descriptor)
        return _loop(descriptor, seconds)
    finally:
        os.close(descriptor)
        path.unlink()


def _loop(descriptor: int, seconds: float) -> float:
    begun = perf_counter()
    offset = 0
    while (passed := perf_counter() - begun) < seconds and offset < ROOM:
        os.pwrite(descriptor, BLOCK, offset)
        os.fdatasync(descriptor)
        offset += len(BLOCK)
    return offset / len(BLOCK) / passed
