"""Who is at the other end: a peer as the kernel named it at accept, and what it may do.

Nothing here is read from a request.
"""

from attrs import frozen

from resumed.schemas.job import Person

from .grants import NO_PERMIT, Permit


@frozen(kw_only=True)
class Peer:
    """A peer as it was at accept: process, user and groups. `name` is the user's, or its number as text."""

    pid: int
    """0 for a process outside our own namespace of processes."""
    start: int | None = None
    """When the process that connected started (clock ticks of this boot): with `pid` it is no other one.
    None when it had ended before it was looked at, or the kernel does not tell."""
    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    permit: Permit = NO_PERMIT

    @property
    def person(self) -> Person:
        """The peer as a command names who gave it."""
        return Person(
            uid=self.uid,
            name=self.name,
            via="socket",
            gid=self.gid,
            groups=self.groups,
            pid=self.pid,
            start=self.start,
        )
