"""Who may do what: the administrator's grants, and the permit that one user has under them.

A permit is made of numbers that the kernel gave (uid, gids); nothing of it is read from a request. Root and
the daemon's own user have every role everywhere, since both could read and write the store itself.
"""

import grp
import logging
import os
import pwd
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

from anyio import to_thread
from attrs import frozen

from resumed.actors.sight import Whose
from resumed.schemas.jobfile import ID

ROOT = 0

log = logging.getLogger(__name__)


class Role(StrEnum):
    """What a peer may do; each method of the socket names the one it needs."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    APPROVER = "approver"
    AUDITOR = "auditor"


INCLUDES = {
    Role.VIEWER: frozenset({Role.VIEWER}),
    Role.SUBMITTER: frozenset({Role.SUBMITTER}),
    Role.OPERATOR: frozenset({Role.OPERATOR, Role.VIEWER}),
    Role.APPROVER: frozenset({Role.APPROVER, Role.VIEWER}),
    Role.AUDITOR: frozenset({Role.AUDITOR, Role.VIEWER}),
}
"""Who steers, decides or audits must see what it is about. A submitter sees its own jobs, as all do."""


@frozen(kw_only=True)
class Grant:
    """One `[[grant]]` of the configuration: a role for users and groups, over all workflows or some."""

    role: Role
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    workflows: tuple[str, ...] | None = None
    own: bool = False
    """Only over the jobs that its holder handed in."""


@frozen
class Scope:
    """One role, and where it holds: None for all workflows; `own` for the holder's own jobs only."""

    role: Role
    workflows: frozenset[str] | None = None
    own: bool = False

    def covers(self, whose: Whose, uid: int) -> bool:
        """Whether the job is within it, for the user of that number."""
        if self.own and whose.uid != uid:
            return False
        return self.workflows is None or whose.workflow in self.workflows


@frozen
class Permit:
    """What one user may do. It is its sight as well: its own jobs, and those it may look at by a role."""

    uid: int
    scopes: tuple[Scope, ...] = ()

    def _with(self, role: Role) -> Iterator[Scope]:
        return (each for each in self.scopes if role in INCLUDES[each.role])

    def anywhere(self, role: Role) -> bool:
        """Whether it has the role over anything at all; whoever has any role may look around."""
        return bool(self.scopes) if role is Role.VIEWER else any(self._with(role))

    def everywhere(self, role: Role) -> bool:
        """Whether it has the role over every job of every workflow."""
        return any(each.workflows is None and not each.own for each in self._with(role))

    def over(self, role: Role, whose: Whose) -> bool:
        """Whether it has the role over this job; everybody may look at what is its own."""
        if role is Role.VIEWER and whose.uid == self.uid:
            return True
        return any(each.covers(whose, self.uid) for each in self._with(role))

    def of_workflow(self, role: Role, workflow: str) -> bool:
        """Whether it has the role over its own jobs, at least, of this workflow."""
        return any(each.covers(Whose(workflow, self.uid), self.uid) for each in self._with(role))

    @property
    def everything(self) -> bool:
        """Whether it sees every job."""
        return self.everywhere(Role.VIEWER)

    @property
    def others(self) -> bool:
        """Whether it sees jobs of others."""
        return any(not each.own for each in self._with(Role.VIEWER))

    def sees(self, whose: Whose) -> bool:
        """Whether it sees this job."""
        return self.over(Role.VIEWER, whose)


NO_PERMIT = Permit(-2)
"""Of nobody: no user has this number, and no job."""


def problems_of(grants: Iterable[Grant], path: str) -> Iterator[str]:
    """What is wrong with grants as written, each with its path."""
    for place, each in enumerate(grants):
        at = f"{path}[{place}]"
        if not each.users and not each.groups:
            yield f"it names nobody: expected users or groups @ {at}"
        for kind in ("users", "groups"):
            for number, name in enumerate(getattr(each, kind)):
                if not _NAME.match(name):
                    said = f"expected a name or number of {kind}, got {name!r}"
                    yield f"{said} @ {at}.{kind}[{number}]"
        if each.workflows == ():
            yield f"it names no workflow: leave the key out for all of them @ {at}.workflows"
        for number, name in enumerate(each.workflows or ()):
            if not ID.match(name):
                yield f"expected a workflow's name, got {name!r} @ {at}.workflows[{number}]"


MOST_GIVEN = 256
"""Permits that are kept, one for each user and its groups."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,255}\$?\Z")


class Grants:
    """The grants in force, and which of their names the host knows, as numbers.

    A name that the host does not know gives nothing to anybody, and is asked for again at each look-up: a
    directory service that comes up late must keep nothing from starting.
    """

    def __init__(self, own_uid: int, grants: tuple[Grant, ...] = ()) -> None:
        self.ours = frozenset({ROOT, own_uid})
        """Those who may do everything."""
        self.grants = grants
        self._users: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._said: tuple[str, ...] = ()
        self._given: dict[tuple[int, tuple[int, ...]], Permit] = {}
        """What was worked out since the grants and the numbers behind their names last changed."""

    def replace(self, grants: tuple[Grant, ...]) -> None:
        """These are in force from the next call on; their names that are not known yet, once looked up."""
        self.grants = grants
        self._given = {}

    def look_up(self) -> None:
        """Ask the host for the names that are not known yet; that may take time: call it beside the loop."""
        if not self.unknown:
            return
        for name in self._unknown("users", self._users):
            if (uid := _user(name)) is not None:
                self._users[name] = uid
        for name in self._unknown("groups", self._groups):
            if (gid := _group(name)) is not None:
                self._groups[name] = gid
        self._given = {}
        if self.unknown and self.unknown != self._said:
            log.warning("Grants name %s: not known to this host.", ", ".join(self.unknown))
        self._said = self.unknown

    @property
    def unknown(self) -> tuple[str, ...]:
        """Who is named and not known to the host, a phrase each: their grants give nothing to anybody."""
        users = [f"the user {name}" for name in self._unknown("users", self._users)]
        return (*users, *(f"the group {name}" for name in self._unknown("groups", self._groups)))

    def _unknown(self, kind: str, known: dict[str, int]) -> list[str]:
        named = dict.fromkeys(name for each in self.grants for name in getattr(each, kind))
        return [name for name in named if name not in known]

    def permit(self, uid: int, gids: Iterable[int]) -> Permit:
        """What a user in these groups may do."""
        key = uid, tuple(gids)
        given = self._given
        if (found := given.get(key)) is None:
            if len(given) >= MOST_GIVEN:
                given.clear()
            # Where a look-up beside the loop ends meanwhile, this goes into the table that it has put away.
            found = given[key] = self._permit(*key)
        return found

    def _permit(self, uid: int, gids: tuple[int, ...]) -> Permit:
        if uid in self.ours:
            return Permit(uid, tuple(Scope(role) for role in Role))
        groups = frozenset(gids)
        return Permit(
            uid,
            tuple(
                Scope(each.role, None if each.workflows is None else frozenset(each.workflows), each.own)
                for each in self.grants
                if any(self._users.get(name) == uid for name in each.users)
                or any(self._groups.get(name, -1) in groups for name in each.groups)
            ),
        )

    async def permit_of(self, uid: int) -> Permit:
        """What a user may do, by the groups the host knows it in; looked up beside the loop."""
        if uid in self.ours:
            return self.permit(uid, ())
        return await to_thread.run_sync(self.permit_of_owner, uid)

    def is_ours(self, uid: int) -> bool:
        """Whether that user may do everything."""
        return uid in self.ours

    def roles(self, uid: int, gids: Iterable[int], whose: Whose) -> tuple[str, ...]:
        """The roles that a user in these groups has over a job."""
        permit = self.permit(uid, gids)
        return tuple(role.value for role in Role if permit.over(role, whose))

    def may_ask(self, uid: int, gids: Iterable[int], workflow: str) -> bool:
        """Whether a user in these groups may hand in jobs of the workflow."""
        return self.permit(uid, gids).of_workflow(Role.SUBMITTER, workflow)

    def permit_of_owner(self, uid: int) -> Permit:
        """What the owner of a file may do, by the groups the host knows it in; may take time."""
        self.look_up()
        try:
            found = pwd.getpwuid(uid)
            groups = os.getgrouplist(found.pw_name, found.pw_gid)
        except (KeyError, OSError):
            groups = []
        return self.permit(uid, groups)


def _user(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, OSError):
        return int(name) if name.isdecimal() else None


def _group(name: str) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except (KeyError, OSError):
        return int(name) if name.isdecimal() else None
