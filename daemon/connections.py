"""The accept loop and its bounds: who may hold how many connections, and who gives way.

A peer over its bound costs only peers of the same user: its own oldest connection without a call in
progress is closed for the new one. Root and the daemon's own user have places of their own.
"""

import logging
import pwd
from collections.abc import Awaitable, Callable

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from attrs import define, evolve, field

from resumed.schemas.errors import BusyError, StoreError

from .passed import PassedSeat
from .peers import ROOT, Peer
from .socket import OVERLOAD, Seat, Stream

MOST_OF_OURS = 128
MOST_OF_ANOTHER = 8
MOST_OF_OTHERS = 64
"""Connections of one user with a role, of one without, of all without: 2 × 128 + 64 descriptors at most."""
MANY = 32
OVERLOAD_PAUSE = 0.1
EVICTION_PAUSE = 0.001
"""Seconds: with 128 places, each connection has at least an eighth of a second to say something."""
LOOK_EVERY = 5.0

log = logging.getLogger(__name__)


@define(eq=False)
class Connection:
    """One connection in hand. `busy` is true while a call of it is being answered."""

    stream: Stream
    peer: Peer
    busy: bool = False
    scope: anyio.CancelScope = field(factory=anyio.CancelScope)


Serve = Callable[[Connection], Awaitable[None]]


class Doorman:
    """Accepts connections at a seat and serves each in a task of its own."""

    def __init__(self, seat: Seat | PassedSeat, serve: Serve, own_uid: int) -> None:
        self._seat = seat
        self._serve = serve
        self._ours = frozenset({ROOT, own_uid})
        self._held: list[Connection] = []
        self._names: dict[int, str] = {}
        self._overloaded = False

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Accepts until cancelled; every error but the overload ones is a crash."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._look_after_the_seat)
            task_status.started()
            while True:
                try:
                    stream = await self._seat.accept()
                except OSError as error:
                    if error.errno not in OVERLOAD:
                        raise
                    await self._wait_out(error)
                else:
                    self._overloaded = False
                    # Who connects without end must not keep the others from being heard.
                    await anyio.sleep(EVICTION_PAUSE if self._admit(stream, tasks) else 0)

    async def _wait_out(self, error: OSError) -> None:
        if not self._overloaded:
            log.warning("The daemon could not accept a connection: %s.", error.strerror)
        self._overloaded = True
        # Few connections are not what is short; of many, those that say nothing give way.
        if len(self._held) > MANY and (silent := self._oldest_idle(self._held)):
            silent.scope.cancel()
        await anyio.sleep(OVERLOAD_PAUSE)

    async def _look_after_the_seat(self) -> None:
        while True:
            await anyio.sleep(LOOK_EVERY)
            try:
                if self._seat.look():
                    log.warning("The socket %s had been replaced and was bound anew.", self._seat.path)
            except (BusyError, StoreError, OSError) as error:
                log.error("The socket could not be bound anew: %s.", error)

    def _admit(self, stream: Stream, tasks: TaskGroup) -> bool:
        """Takes a connection in, or shows it out; true when one of ours had to give way for it."""
        try:
            connection = Connection(stream=stream, peer=stream.peer())
        except OSError:
            stream.close()
            return False
        count = len(self._held)
        if not self._make_room(connection.peer):
            stream.close()
            return False
        pressed = len(self._held) < count and connection.peer.uid in self._ours
        self._held.append(connection)
        tasks.start_soon(self._hold, connection)
        return pressed

    def _make_room(self, peer: Peer) -> bool:
        """Whether there is a place for the peer, after its own oldest idle connection gave way."""
        mine = [each for each in self._held if each.peer.uid == peer.uid]
        if peer.uid in self._ours:
            full = len(mine) >= MOST_OF_OURS
        else:
            others = [each for each in self._held if each.peer.uid not in self._ours]
            full = len(mine) >= MOST_OF_ANOTHER or len(others) >= MOST_OF_OTHERS
        if not full:
            return True
        oldest = self._oldest_idle(mine)
        if oldest is None:
            return False
        self._held.remove(oldest)
        oldest.scope.cancel()
        return True

    @staticmethod
    def _oldest_idle(connections: list[Connection]) -> Connection | None:
        return next((each for each in connections if not each.busy), None)

    async def _hold(self, connection: Connection) -> None:
        try:
            with connection.scope:
                name = await self._name_of(connection.peer.uid)
                connection.peer = evolve(connection.peer, name=name)
                await self._serve(connection)
        finally:
            connection.stream.close()
            if connection in self._held:
                self._held.remove(connection)

    async def _name_of(self, uid: int) -> str:
        """The user's name; asked once, since a directory service may take its time."""
        if uid not in self._names:
            self._names[uid] = await to_thread.run_sync(_look_up_name, uid)
        return self._names[uid]


def _look_up_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
