"""The accept loop and its bounds: who may hold how many connections, and who gives way.

A peer over its bound costs only peers of the same user: its own oldest connection without a call in
progress is closed for the new one. Places come in kinds, so that no one kind can take another's: root and the
daemon's own user, those who steer and decide, others with a role, and strangers.
"""

import logging
import pwd
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import StrEnum

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from attrs import define, evolve, field, frozen

from resumed.schemas.errors import BusyError, StoreError

from .grants import Grants, Role
from .passed import PassedSeat
from .peers import Peer
from .socket import OVERLOAD, Seat, Stream

MOST_OF_OURS = 128


@frozen
class Places:
    """How many connections one user of a kind may hold, and all users of it together."""

    each: int
    together: int


class Kind(StrEnum):
    """What sort of peer a connection is kept for."""

    OURS = "ours"
    STEERING = "steering"
    GRANTED = "granted"
    STRANGERS = "strangers"


PLACES = {
    Kind.OURS: Places(MOST_OF_OURS, 2 * MOST_OF_OURS),
    Kind.STEERING: Places(32, 64),
    Kind.GRANTED: Places(16, 64),
    Kind.STRANGERS: Places(4, 16),
}
"""400 descriptors at most."""
MANY = 32
OVERLOAD_PAUSE = 0.1
EVICTION_PAUSE = 0.001
"""Seconds: with 128 places, each connection has at least an eighth of a second to say something."""
LOOK_EVERY = 2.0
"""Seconds after which a socket that was swept is bound anew, and who is silent too long is shown out."""

log = logging.getLogger(__name__)


@define(eq=False)
class Connection:
    """One connection in hand. `busy` is true while a call of it is being answered."""

    stream: Stream
    peer: Peer
    kind: Kind
    permitted: Callable[[Peer], Peer]
    busy: bool = False
    scope: anyio.CancelScope = field(factory=anyio.CancelScope)
    looks: int = 1
    """The doorman's looks that are left until it must have said something."""

    def asker(self) -> Peer:
        """The peer with what it may do now: grants may be taken back while it is connected."""
        self.peer = self.permitted(self.peer)
        return self.peer

    def expect(self, seconds: float) -> None:
        """It must say something within that time; while it is busy no time passes."""
        self.looks = int(seconds / LOOK_EVERY) + 1

    def look(self) -> None:
        """One look went by without a word from it."""
        if not self.busy:
            self.looks -= 1
            if self.looks < 0:
                self.scope.cancel()


Serve = Callable[[Connection], Awaitable[None]]


class Doorman:
    """Accepts connections at a seat and serves each in a task of its own."""

    def __init__(self, seat: Seat | PassedSeat, serve: Serve, grants: Grants) -> None:
        self._seat = seat
        self._serve = serve
        self._grants = grants
        self._held: list[Connection] = []
        self._names: dict[int, str] = {}
        self._overloaded = False
        self.trouble = ""
        """Why nobody can connect, while that is so."""

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Accepts until cancelled; every error but the overload ones is a crash."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._look_around)
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

    async def _look_around(self) -> None:
        """After the seat, and for who says nothing."""
        while True:
            await anyio.sleep(LOOK_EVERY)
            for each in self._held:
                each.look()
            try:
                if self._seat.look():
                    log.warning("The socket %s had been replaced and was bound anew.", self._seat.path)
                self.trouble = ""
            except (BusyError, StoreError, OSError) as error:
                said = f"the socket cannot be bound anew: {error}"
                if said != self.trouble:
                    log.error("%s%s; jobs go on.", said[0].upper(), said[1:])
                self.trouble = said

    def _admit(self, stream: Stream, tasks: TaskGroup) -> bool:
        """Takes a connection in, or shows it out; true when one of ours had to give way for it."""
        try:
            peer = stream.peer()
        except OSError:
            stream.close()
            return False
        peer = self.permitted(peer)
        connection = Connection(stream=stream, peer=peer, kind=self._kind_of(peer), permitted=self.permitted)
        count = len(self._held)
        if not self._make_room(connection):
            stream.close()
            return False
        pressed = len(self._held) < count and connection.kind is Kind.OURS
        self._held.append(connection)
        tasks.start_soon(self._hold, connection)
        return pressed

    def _make_room(self, coming: Connection) -> bool:
        """Whether there is a place, after an idle connection gave way: the user's own oldest, or where all
        places of the kind are taken, the oldest of who holds the most of them and more than this user."""
        places, uid = PLACES[coming.kind], coming.peer.uid
        alike = [each for each in self._held if each.kind is coming.kind]
        held = Counter(each.peer.uid for each in alike)
        if held[uid] < places.each and len(alike) < places.together:
            return True
        giving = uid
        if held[uid] < places.each:
            giving = max(held, key=lambda each: (held[each], each == uid))
            if held[giving] <= max(1, held[uid]):
                giving = uid
        oldest = self._oldest_idle([each for each in alike if each.peer.uid == giving])
        if oldest is None:
            return False
        self._held.remove(oldest)
        oldest.scope.cancel()
        return True

    def _kind_of(self, peer: Peer) -> Kind:
        if peer.uid in self._grants.ours:
            return Kind.OURS
        if peer.permit.anywhere(Role.OPERATOR) or peer.permit.anywhere(Role.APPROVER):
            return Kind.STEERING
        return Kind.GRANTED if peer.permit.scopes else Kind.STRANGERS

    @staticmethod
    def _oldest_idle(connections: list[Connection]) -> Connection | None:
        return next((each for each in connections if not each.busy), None)

    async def _hold(self, connection: Connection) -> None:
        try:
            with connection.scope:
                connection.peer = await self._known(connection.peer)
                connection.kind = self._kind_of(connection.peer)
                await self._serve(connection)
        finally:
            connection.stream.close()
            if connection in self._held:
                self._held.remove(connection)

    async def _known(self, peer: Peer) -> Peer:
        """The peer with its user's name; and names of grants that the host did not know are asked for again.

        Beside the loop, and once for what is known, since a directory service may take its time.
        """
        if peer.uid not in self._names and (found := await to_thread.run_sync(_name_of, peer.uid)):
            self._names[peer.uid] = found
        if self._grants.unknown and peer.uid not in self._grants.ours:
            await to_thread.run_sync(self._grants.look_up)
        return self.permitted(evolve(peer, name=self._names.get(peer.uid, str(peer.uid))))

    def permitted(self, peer: Peer) -> Peer:
        """The peer with what it may do by the grants in force now."""
        permit = self._grants.permit(peer.uid, (peer.gid, *peer.groups))
        return peer if peer.permit is permit else evolve(peer, permit=permit)


def _name_of(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None
