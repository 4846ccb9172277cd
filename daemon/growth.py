"""Growth: who follows files that others write hears when a folder's files grow; it reads none of them.

One inotify descriptor serves all who follow. It is a hint: where the kernel gives none, or forgets events,
whoever follows looks again after a while.
"""

import ctypes
import logging
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from attrs import define, field

from resumed.actors import readable

LOOK_EVERY = 5.0
"""Seconds after which whoever follows looks without having heard anything."""
LOOK_UNHEARD = 1.0
"""The same where the kernel tells nothing."""
_MODIFY, _MOVED_TO, _CREATE, _OVERFLOW, _IGNORED = 0x2, 0x80, 0x100, 0x4000, 0x8000  # linux/inotify.h
_CLOEXEC, _NONBLOCK, _ONLYDIR = os.O_CLOEXEC, os.O_NONBLOCK, 0x01000000
_HEADER = struct.Struct("iIII")
_AT_ONCE = 64 * 1024

log = logging.getLogger(__name__)


@define(eq=False)
class Ear:
    """One follower's: which files of its folder have grown since it asked last; None means any of them."""

    heard: bool
    """False when the kernel tells nothing of this folder."""
    names: set[str] | None = field(factory=set)
    bell: anyio.Event = field(factory=anyio.Event)

    def ring(self, name: str | None) -> None:
        """A file has grown, or nobody knows which."""
        if name is None:
            self.names = None
        elif self.names is not None:
            self.names.add(name)
        self.bell.set()

    def take(self) -> set[str] | None:
        """The files that have grown, None for all; from here on anew."""
        names, self.names = self.names, set() if self.heard else None
        self.bell = anyio.Event()
        return names

    async def wait(self) -> None:
        """Return when a file may have grown."""
        with anyio.move_on_after(LOOK_EVERY if self.heard else LOOK_UNHEARD) as scope:
            await self.bell.wait()
        if scope.cancelled_caught:
            self.ring(None)


class Growth:
    """The ears of all followers, and the one descriptor that they hear by."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(_CLOEXEC | _NONBLOCK)
        if self._descriptor < 0:
            log.warning("Files are followed by looking: %s.", os.strerror(ctypes.get_errno()))
        self._ears: dict[int, list[Ear]] = {}

    async def run(self) -> None:
        """Hear until cancelled; without a descriptor there is nothing to hear."""
        if self._descriptor < 0:
            return
        try:
            await readable.watch(self._descriptor, self._hear)
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextmanager
    def follow(self, folder: Path) -> Iterator[Ear]:
        """An ear for the files of a folder, which must be there; it follows the folder where it is moved."""
        watch = self._watch(folder)
        ear = Ear(heard=watch >= 0)
        ear.ring(None)
        if watch >= 0:
            self._ears.setdefault(watch, []).append(ear)
        try:
            yield ear
        finally:
            self._forget(watch, ear)

    def _watch(self, folder: Path) -> int:
        if self._descriptor < 0:
            return -1
        mask = _MODIFY | _MOVED_TO | _CREATE | _ONLYDIR
        # The same folder has the same number, however often it is followed.
        return int(self._libc.inotify_add_watch(self._descriptor, os.fsencode(folder), mask))

    def _forget(self, watch: int, ear: Ear) -> None:
        ears = self._ears.get(watch, [])
        if ear in ears:
            ears.remove(ear)
        if not ears and self._ears.pop(watch, None) is not None and self._descriptor >= 0:
            self._libc.inotify_rm_watch(self._descriptor, watch)

    def _hear(self) -> bool:
        try:
            raw = os.read(self._descriptor, _AT_ONCE)
        except BlockingIOError:
            return True
        place = 0
        while place < len(raw):
            watch, mask, _, length = _HEADER.unpack_from(raw, place)
            name = raw[place + _HEADER.size : place + _HEADER.size + length].rstrip(b"\0")
            place += _HEADER.size + length
            if mask & _OVERFLOW:
                self._ring_all()
            for ear in self._ears.get(watch, ()):
                ear.ring(None if mask & _IGNORED else os.fsdecode(name))
        return True

    def _ring_all(self) -> None:
        for ears in self._ears.values():
            for ear in ears:
                ear.ring(None)
