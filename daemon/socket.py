"""The control socket's place in the file system and its accepted connections; knows no message.

A seat is held by a lock file beside the socket, never by the socket itself: only who holds the lock
replaces, binds or unlinks it. The order that must hold: lock, then look at what stands there, then bind
under a temporary name with its final permissions, then rename over the old one.
"""

import errno
import fcntl
import os
import socket
import stat
import struct
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint

from resumed.actors.containment import start_time
from resumed.actors.readable import Chunks
from resumed.schemas.errors import BusyError, StoreError

from .peers import Peer

CHUNK = 64 * 1024
BACKLOG = 128
OVERLOAD = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""What accept() fails with while the process or the host is short of something (trio names the same)."""
SO_PEERGROUPS = 59
"""Linux 4.13 and later; the socket module does not name it."""
SO_PEERPIDFD = 77
"""Linux 6.5 and later."""
MOST_GROUPS = 256
"""getsockopt() of the socket module takes 1,024 bytes at most."""


PRIVATE = 0o600


class Stream:
    """One accepted connection: bytes in, whole messages out."""

    def __init__(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        self._socket = accepted
        self._chunks = Chunks(accepted.fileno(), self._read)

    def _read(self) -> bytes | None:
        try:
            return self._socket.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""

    async def receive(self) -> bytes:
        """The next bytes; none when the peer is gone."""
        return await self._chunks.next()

    def send_some(self, message: bytes) -> int:
        """How many bytes of it the kernel took at once; -1 when the peer is gone."""
        try:
            return self._socket.send(message, socket.MSG_NOSIGNAL)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            return -1

    async def send(self, message: bytes) -> bool:
        """Sends all of it, as fast as the peer reads; False when the peer is gone."""
        while (sent := self.send_some(message)) < len(message):
            if sent < 0:
                return False
            message = message[sent:]
            await anyio.wait_writable(self._socket)
        return True

    def close(self) -> None:
        """Ends the connection; what was sent still arrives."""
        self._chunks.close()
        self._socket.close()

    def peer(self) -> Peer:
        """Who connected, as the kernel noted it then; the name is still the number."""
        raw = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        pid, uid, gid = struct.unpack("iII", raw)
        start = self._start(pid)
        return Peer(pid=pid, start=start, uid=uid, gid=gid, groups=self._groups(), name=str(uid))

    def _start(self, pid: int) -> int | None:
        """When the process that connected started; None when it is gone, whoever has its number by now.

        A kernel before 6.5 gives no pidfd; there, a process that ended between its connect and our accept
        could be taken for the next one of its number.
        """
        try:
            pidfd = self._socket.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
        except OSError as error:
            return start_time(pid) if error.errno == errno.ENOPROTOOPT else None
        try:
            start = start_time(pid)
            # Looked at after the start time: while the descriptor names the process, so does its number.
            return start if _pid_of(pidfd) == pid else None
        finally:
            os.close(pidfd)

    def _groups(self) -> tuple[int, ...]:
        try:
            raw = self._socket.getsockopt(socket.SOL_SOCKET, SO_PEERGROUPS, 4 * MOST_GROUPS)
        except OSError:  # an older kernel, or more groups than fit: none is known, so none gives a role
            return ()
        return struct.unpack(f"{len(raw) // 4}I", raw)


class Seat:
    """The place of the control socket, held while this object lives."""

    def __init__(self, path: Path, mode: int = PRIVATE, group: int | None = None) -> None:
        """Takes the seat; BusyError when another daemon has it, StoreError when the place cannot be used."""
        self.path = path
        self._mode = mode
        self._group = group
        self._place = _Place(path, mode, group)

    async def accept(self) -> Stream:
        """The next connection; OSError with an errno of OVERLOAD is the caller's to wait out."""
        while True:
            listener = self._place.listener
            try:
                accepted, _ = listener.accept()
            except BlockingIOError:
                try:
                    await anyio.wait_readable(listener)
                except (anyio.ClosedResourceError, anyio.BusyResourceError):
                    await checkpoint()  # bound anew meanwhile
            except (ConnectionAbortedError, InterruptedError):
                await checkpoint()
            else:
                return Stream(accepted)

    def look(self) -> bool:
        """Binds anew when what stands under the name is no longer ours; True when it did.

        BusyError when the lock file was replaced and another daemon holds the new one: the seat is lost.
        """
        if self._place.is_there():
            return self._place.look()
        # The whole folder was swept, and the lock with it: nobody else can come at the socket of before.
        old, self._place = self._place, _Place(self.path, self._mode, self._group)
        anyio.notify_closing(old.listener)
        old.leave()
        return True

    def leave(self) -> None:
        """Gives the seat up: unlinks the socket if it is ours, then lets the lock go."""
        self._place.leave()


class _Place:
    """One folder in which the socket lies: the folder itself, the lock in it, and what listens there."""

    def __init__(self, path: Path, mode: int, group: int | None) -> None:
        self.path = path
        self._mode = mode
        self._group = group
        try:
            # Whoever may connect must be able to get there; a folder that is there keeps its mode.
            path.parent.mkdir(0o700 if mode == PRIVATE else 0o755, parents=True, exist_ok=True)
            self._folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from None
        held: list[int] = [self._folder]
        try:
            self._lock = self._take_lock()
            held.append(self._lock)
            self.listener = self._listen()
        except (OSError, BusyError, StoreError) as error:
            for each in held:
                os.close(each)
            if isinstance(error, OSError):
                raise _unusable(path, error.strerror or str(error)) from None
            raise

    def is_there(self) -> bool:
        """Whether the folder is still the one under its name."""
        try:
            return _identity_of(os.stat(self.path.parent)) == _identity_of(os.fstat(self._folder))
        except FileNotFoundError:
            return False

    def look(self) -> bool:
        """Binds anew what was swept in the folder; True when it did. BusyError when the seat is lost."""
        if not self._lock_is_ours():
            old, self._lock = self._lock, self._take_lock()
            os.close(old)
        if self._stands() == self._bound:
            return False
        old_listener, self.listener = self.listener, self._listen()
        anyio.notify_closing(old_listener)
        old_listener.close()
        return True

    def leave(self) -> None:
        """Unlinks the socket if it is ours, then lets the lock go."""
        self.listener.close()
        if self._lock_is_ours() and self._stands() == self._bound:
            os.unlink(self.path.name, dir_fd=self._folder)
        os.close(self._lock)
        os.close(self._folder)

    def _take_lock(self) -> int:
        name = self._lock_name()
        while True:
            held = os.open(
                name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=self._folder
            )
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(held, 32, 0).decode("ascii", "replace").strip() or "unknown"
                os.close(held)
                raise BusyError(
                    f"cannot listen at {self.path}: another daemon does (process {holder})"
                ) from None
            if self._identity(name) == _identity_of(os.fstat(held)):
                os.ftruncate(held, 0)
                os.pwrite(held, f"{os.getpid()}\n".encode(), 0)
                return held
            os.close(held)  # replaced between open and lock

    def _lock_is_ours(self) -> bool:
        return self._identity(self._lock_name()) == _identity_of(os.fstat(self._lock))

    def _lock_name(self) -> str:
        return f"{self.path.name}.lock"

    def _identity(self, name: str) -> tuple[int, int] | None:
        try:
            return _identity_of(os.stat(name, dir_fd=self._folder, follow_symlinks=False))
        except FileNotFoundError:
            return None

    def _stands(self) -> tuple[int, int] | None:
        return self._identity(self.path.name)

    def _listen(self) -> socket.socket:
        """A listening socket under the name; only ever called with the lock held."""
        self._refuse_strangers()
        temporary = f".{self.path.name}.new"
        if self._identity(temporary):
            os.unlink(temporary, dir_fd=self._folder)  # left by a crash between bind and rename
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            os.fchmod(listener.fileno(), self._mode)  # bind() makes the node with the socket's own mode
            listener.bind(f"/proc/self/fd/{self._folder}/{temporary}")  # no limit of 107 bytes on the path
            if self._group is not None:
                os.chown(temporary, -1, self._group, dir_fd=self._folder)
            os.chmod(temporary, self._mode, dir_fd=self._folder)
            listener.listen(BACKLOG)
            listener.setblocking(False)
            os.rename(temporary, self.path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            listener.close()
            raise
        self._bound = self._stands()
        return listener

    def _refuse_strangers(self) -> None:
        """What stands there must be nothing, or a socket that nobody answers at."""
        try:
            there = os.stat(self.path.name, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if not stat.S_ISSOCK(there.st_mode):
            raise _unusable(self.path, "something that is no socket stands there")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            try:
                probe.connect(f"/proc/self/fd/{self._folder}/{self.path.name}")
            except ConnectionRefusedError:
                return
            except BlockingIOError:
                pass  # its backlog is full: somebody is there
        raise BusyError(f"cannot listen at {self.path}: a program that does not use our lock answers there")


def _pid_of(pidfd: int) -> int:
    """The number of the process behind a descriptor; -1 once it has ended."""
    with open(f"/proc/self/fdinfo/{pidfd}", "rb") as told:
        return next((int(line.split()[1]) for line in told if line.startswith(b"Pid:")), -1)


def _identity_of(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _unusable(path: Path, why: str) -> StoreError:
    return StoreError(f"cannot listen at {path}: {why}", path=str(path))
