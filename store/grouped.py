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
import threading
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
_RINGS = 1
"""The flag of a block (IOCB_FLAG_RESFD) whose end rings an eventfd."""
_BLOCK = struct.Struct("<QIiHhIQQqQII")
"""`struct iocb` of linux/aio_abi.h on a little-endian machine: data, key, rw_flags, opcode, priority,
descriptor, address, length, offset, reserved, flags, eventfd."""
_PAIR = struct.Struct(_BLOCK.format + _BLOCK.format[1:])
"""Two blocks, one behind the other."""
_EVENT = struct.Struct("<QQqq")
"""`struct io_event`: data, address of the block, result, second result."""
_PLAIN = (errno.EAGAIN, errno.EINVAL)
"""Said before anything was begun: no room for a request, or a file system without it."""


class Group:
    """The means of one user at a time; at most MOST_PARTS parts at a time, of MOST_BYTES together."""

    def __init__(self) -> None:
        """OSError where the kernel has no such calls, or no room for another user of them."""
        numbers = _NUMBERS.get(platform.machine())
        if numbers is None or sys.byteorder != "little" or not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "unknown system calls")
        setup, destroy, self._submit_number, self._events_number = numbers
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        # For calls that never wait: giving the interpreter lock away and taking it back costs more than they.
        self._glance = ctypes.PyDLL(None, use_errno=True).syscall
        self._call.restype = self._glance.restype = ctypes.c_long
        self._context = ctypes.c_ulong(0)
        if self._call(setup, 2 * MOST_PARTS, ctypes.byref(self._context)) != 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        # Its owner's end is the end of the group: the kernel lends only so many of them.
        weakref.finalize(self, self._call, destroy, self._context)
        self._bytes, self._bytes_at = _area(MOST_BYTES)
        self._blocks, blocks_at = _area(2 * MOST_PARTS * _BLOCK.size)
        self._events, events_at = _area(2 * MOST_PARTS * _EVENT.size)
        self._events_at = ctypes.c_void_p(events_at)
        pointers = [blocks_at + place * _BLOCK.size for place in range(2 * MOST_PARTS)]
        self._pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        self._pointers_at = ctypes.addressof(self._pointers)
        self._at_once = (ctypes.c_long * 2)(0, 0)
        self._sizes: list[int] = []
        self._open: list[int] = []
        """How many requests of each part have not come to their end."""
        self._refused: list[tuple[int, int]] = []
        """Those that did not begin, by their part, and why."""
        self.found: list[int | None] = []
        """What became of each part that was begun, as `run` says it."""
        self.left = 0
        """How many parts are not over."""

    def run(self, parts: Sequence[Part]) -> list[int | None]:
        """Write and then sync each part; returns when all are over, with an errno for each that failed.

        -1 stands for a part that must be done again with plain calls: the kernel took less than all of it,
        or would not begin.
        """
        self._lay_out(parts, flags=0, bell=0)
        found: list[int | None] = [None] * len(parts)
        begun = self._begin_all(2 * len(parts), found)
        self._collect(begun, [len(raw) for _, raw, _ in parts], found)
        return found

    def prepare(self, parts: Sequence[Part], bell: int) -> None:
        """Lay out the writes and syncs of these parts, all that were begun before being over.

        `begin` follows, in any thread. The eventfd `bell` is rung for each part that comes to its end;
        `collect` tells which, and `found` how.
        """
        self._lay_out(parts, flags=_RINGS, bell=bell)
        self._sizes = [len(raw) for _, raw, _ in parts]
        self._open = [2] * len(parts)
        self.left = len(parts)
        self.found = [None] * len(parts)
        self._refused = []

    def begin(self) -> bool:
        """Begin what was laid out; it may wait for the disk. True when `collect` is to be asked, since some
        did not begin."""
        refused: list[tuple[int, int]] = []
        self._submit(2 * len(self._open), refused)
        if refused:
            # Told in one step, since somebody collects meanwhile. Without any, all may be over by now, and
            # these means in other hands.
            self._refused = refused
        return bool(refused)

    def collect(self, *, wait: bool = False) -> list[int]:
        """The numbers of the parts that have come to their end since the last time; it waits only if told to.

        In one thread, which need not be that of `begin`. OSError when the kernel does not say: then nobody
        can tell which of the others are durable.
        """
        ended: list[int] = []
        refused, self._refused = self._refused, []
        for number, why in refused:
            _note(self.found, number, why)
            ended.append(number)
        call, at_once = (self._call, None) if wait else (self._glance, ctypes.byref(self._at_once))
        least, most = ctypes.c_long(1 if wait and not ended else 0), 2 * len(self._open)
        got = call(self._events_number, self._context, least, most, self._events_at, at_once)
        if got < 0 and ctypes.get_errno() != errno.EINTR:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        ended += self._note_events(got, self._sizes, self.found)
        over = []
        for number in ended:
            self._open[number] -= 1
            if not self._open[number]:
                over.append(number)
        self.left -= len(over)
        return over

    def _lay_out(self, parts: Sequence[Part], *, flags: int, bell: int) -> None:
        """The blocks of a write and a sync for each part, and the bytes they write."""
        at = self._bytes_at
        place = name = 0
        pack, blocks, half = _PAIR.pack_into, self._blocks, _BLOCK.size
        for fd, raw, offset in parts:
            size = len(raw)
            self._bytes[place : place + size] = raw
            pack(
                blocks,
                half * name,
                *(name, 0, 0, _PWRITE, 0, fd, at + place, size, offset, 0, 0, 0),
                *(name + 1, 0, 0, _FDSYNC, 0, fd, 0, 0, 0, 0, flags, bell),
            )
            place += size
            name += 2

    def sync(self, fds: Sequence[int]) -> list[int | None]:
        """Sync each open file or folder, MOST_PARTS at most; the answer is that of `run`."""
        for number, fd in enumerate(fds):
            # Named as the second request of its part is in `run`: it has no size to compare.
            name = 2 * number + 1
            _BLOCK.pack_into(self._blocks, number * 64, name, 0, 0, _FSYNC, 0, fd, 0, 0, 0, 0, 0, 0)
        found: list[int | None] = [None] * len(fds)
        self._collect(self._begin_all(len(fds), found, each=1), [], found)
        return found

    def _begin_all(self, wanted: int, found: list[int | None], *, each: int = 2) -> int:
        """Begin all requests; what does not begin is noted. Returns how many are to come to their end."""
        refused: list[tuple[int, int]] = []
        begun = self._submit(wanted, refused, each=each)
        for number, why in refused:
            _note(found, number, why)
        return begun

    def _submit(self, wanted: int, refused: list[tuple[int, int]], *, each: int = 2) -> int:
        """Begin all requests, `each` of them a part, in order: a write has run when its call returns, a sync
        goes on by itself. Those that do not begin are added to `refused`."""
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
            refused.append((place // each, -1 if why in _PLAIN else why))
            place += 1
        return begun

    def _collect(self, begun: int, sizes: list[int], found: list[int | None]) -> None:
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
            self._note_events(got, sizes, found)

    def _note_events(self, got: int, sizes: list[int], found: list[int | None]) -> list[int]:
        """Note what so many requests came to; returns the numbers of their parts."""
        ended: list[int] = []
        for request, _, result, _ in _EVENT.iter_unpack(self._events[: max(0, got) * _EVENT.size]):
            number = request >> 1
            ended.append(number)
            if result < 0:
                _note(found, number, -result)
            elif not request & 1 and result != sizes[number]:
                _note(found, number, -1)
        return ended


def _note(found: list[int | None], number: int, why: int) -> None:
    """An error stands over the word that the part is to be done again."""
    if found[number] is None or found[number] == -1:
        found[number] = why


def own_group() -> Group | None:
    """This thread's means for groups; None where the kernel has none."""
    try:
        return _threads.group  # type: ignore[no-any-return]  # a thread's own name has no type
    except AttributeError:
        pass
    try:
        _threads.group = Group()
    except OSError:
        _threads.group = None
    return own_group()


_threads = threading.local()


def _area(size: int) -> tuple[mmap.mmap, int]:
    """Memory that does not move, and its address."""
    area = mmap.mmap(-1, size)
    return area, ctypes.addressof(ctypes.c_char.from_buffer(area))
