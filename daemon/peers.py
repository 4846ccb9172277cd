"""Who is at the other end: a peer as the kernel named it at accept, and the roles it has.

Nothing here is read from a request.
"""

from enum import StrEnum

from attrs import frozen

from resumed.schemas.job import Person

ROOT = 0


class Role(StrEnum):
    """What a peer may do; each method of the socket names the one it needs."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    APPROVER = "approver"
    AUDITOR = "auditor"


@frozen(kw_only=True)
class Peer:
    """A peer as it was at accept: process, user and groups. `name` is the user's, or its number as text."""

    pid: int
    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str

    @property
    def person(self) -> Person:
        """The peer as a command names who gave it."""
        return Person(uid=self.uid, name=self.name, via="socket")


def roles_of(peer: Peer, own_uid: int) -> frozenset[Role]:
    """The roles of a peer: all for root and the daemon's own user, none for anybody else.

    A process in a user namespace may call itself 0; the kernel gives its number as seen from here.
    """
    return frozenset(Role) if peer.uid in (ROOT, own_uid) else frozenset()
