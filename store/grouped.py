"""Several files' writes and syncs in two calls of the kernel's asynchronous I/O, for `durable` alone.

Python's own calls take the interpreter lock three times a commit; these hold no lock while they run, and the
kernel syncs the files side by side (`docs/adr/0016`). A group behaves as `pwrite` and `fdatasync` on each of
its files would; where the kernel has no such calls there is no `Group`.
"""

import ctypes
import errno
import mmap
import os
import platform
import struct
import sys
import weakref
from collections.abc import Sequence

MOST_PARTS = 64
MOST_BYTES = 1024 * 1024
"""What one group holds; its owner splits what is more."""

Part = tuple[int, bytes, int]
"""A descriptor, the bytes, and the offset they belong at."""

_NUMBERS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}
"""The system calls io_setup, io_destroy, io_submit, io_getevents by machine (the kernel's tables): no libc
names them."""
_PWRITE, _FSYNC, _FDSYNC = 1, 2, 3
_BLOCK = struct.Struct("<QIiHhIQQqQII")
"""`struct iocb` of linux/aio_abi.h on a little-endian machine: data, key, rw_flags, opcode, priority,
descriptor, address, length, offset, reserved, flags, eventfd."""
_EVENT = struct.Struct("<QQqq")
"""`struct io_event`: data, address of the block, result, second result."""
_PLAIN = (errno.EAGAIN, errno.EINVAL)
"""Said before anything was begun: no room for a request, or a file system without it."""


class Group:
    """The means of one thread; at most MOST_PARTS parts at a time, of MOST_BYTES together."""

    def __init__(self) -> None:
        """OSError where the kernel has no such calls, or no room for another user of them."""
        numbers = _NUMBERS.get(platform.machine())
        if numbers is None or sys.byteorder != "little" or not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "unknown system calls")
        setup, destroy, self._submit_number, self._events_number = numbers
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long
        self._context = ctypes.c_ulong(0)
        if self._call(setup, 2 * MOST_PARTS, ctypes.byref(self._context)) != 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        # The thread's end is the end of its group: the kernel lends only so many of them.
        weakref.finalize(self, self._call, destroy, self._context)
        self._bytes, self._bytes_at = _area(MOST_BYTES)
        self._blocks, blocks_at = _area(2 * MOST_PARTS * _BLOCK.size)
        self._events, events_at = _area(2 * MOST_PARTS * _EVENT.size)
        self._events_at = ctypes.c_void_p(events_at)
        pointers = [blocks_at + place * _BLOCK.size for place in range(2 * MOST_PARTS)]
        self._pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        self._pointers_at = ctypes.addressof(self._pointers)

    def run(self, parts: Sequence[Part]) -> list[int | None]:
        """Write and then sync each part; returns when all are over, with an errno for each that failed.

        -1 stands for a part that must be done again with plain calls: the kernel took less than all of it,
        or would not begin.
        """
        at = self._bytes_at
        place = 0
        for number, (fd, raw, offset) in enumerate(parts):
            size = len(raw)
            self._bytes[place : place + size] = raw
            _BLOCK.pack_into(
                self._blocks,
                2 * number * 64,
                2 * number,
                0,
                0,
                _PWRITE,
                0,
                fd,
                at + place,
                size,
                offset,
                0,
                0,
                0,
            )
            _BLOCK.pack_into(
                self._blocks, (2 * number + 1) * 64, 2 * number + 1, 0, 0, _FDSYNC, 0, fd, 0, 0, 0, 0, 0, 0
            )
            place += size
        found: list[int | None] = [None] * len(parts)
        begun = self._submit(2 * len(parts), found)
        self._collect(begun, parts, found)
        return found

    def sync(self, fds: Sequence[int]) -> list[int | None]:
        """Sync each open file or folder, MOST_PARTS at most; the answer is that of `run`."""
        for number, fd in enumerate(fds):
            # Named as the second request of its part is in `run`: it has no size to compare.
            name = 2 * number + 1
            _BLOCK.pack_into(self._blocks, number * 64, name, 0, 0, _FSYNC, 0, fd, 0, 0, 0, 0, 0, 0)
        found: list[int | None] = [None] * len(fds)
        self._collect(self._submit(len(fds), found, each=1), (), found)
        return found

    def _submit(self, wanted: int, found: list[int | None], *, each: int = 2) -> int:
        """Begin all requests, `each` of them a part, in order: a write has run when its call returns, a sync
        goes on by itself."""
        begun = place = 0
        while place < wanted:
            taken = self._call(
                self._submit_number,
                self._context,
                ctypes.c_long(wanted - place),
                ctypes.c_void_p(self._pointers_at + place * ctypes.sizeof(ctypes.c_void_p)),
            )
            if taken > 0:
                begun += taken
                place += taken
                continue
            why = ctypes.get_errno() if taken < 0 else errno.EAGAIN
            _note(found, place // each, -1 if why in _PLAIN else why)
            place += 1
        return begun

    def _collect(self, begun: int, parts: Sequence[Part], found: list[int | None]) -> None:
        while begun > 0:
            got = self._call(
                self._events_number,
                self._context,
                ctypes.c_long(begun),
                ctypes.c_long(begun),
                self._events_at,
                None,
            )
            if got < 0:
                if ctypes.get_errno() == errno.EINTR:
                    continue
                # Nobody could tell which of them are durable.
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            begun -= got
            for place in range(got):
                request, _, result, _ = _EVENT.unpack_from(self._events, place * _EVENT.size)
                number, is_sync = divmod(request, 2)
                if result < 0:
                    _note(found, number, -result)
                elif not is_sync and result != len(parts[number][1]):
                    _note(found, number, -1)


def _note(found: list[int | None], number: int, why: int) -> None:
    """An error stands over the word that the part is to be done again."""
    if found[number] is None or found[number] == -1:
        found[number] = why


def _area(size: int) -> tuple[mmap.mmap, int]:
    """Memory that does not move, and its address."""
    area = mmap.mmap(-1, size)
    return area, ctypes.addressof(ctypes.c_char.from_buffer(area))
