"""The socket's methods about the daemon itself: its status, its workflows, what it set aside."""

import os

from attrs import frozen

from resumed.actors.once import Ask
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import HouseView, Quarantined

from .desk import Desk, Reloaded, WorkflowRow
from .grants import Role
from .peers import Peer


@frozen(kw_only=True)
class Nothing:
    """No parameters."""


@frozen(kw_only=True)
class ReloadAsked:
    """Under a `request` id it is done once, and answered so for seven days."""

    request: str = ""


@frozen(kw_only=True)
class Held:
    """A role, and over what: no `workflows` named are all of them; `own` is over own jobs only."""

    role: str
    workflows: tuple[str, ...]
    own: bool


@frozen(kw_only=True)
class You:
    """Whoever asks: who the kernel says it is, and the roles it has.

    `same_user` says that jobs run under this very user, so that what a job does cannot always be told from
    what its user does.
    """

    name: str
    uid: int
    roles: tuple[Held, ...]
    same_user: bool


@frozen(kw_only=True)
class StatusAnswer:
    """How the daemon is, and who asks."""

    house: HouseView
    you: You


@frozen(kw_only=True)
class WorkflowsAnswer:
    """The workflows in force, and why other files are not."""

    workflows: tuple[WorkflowRow, ...]
    problems: tuple[str, ...]


@frozen(kw_only=True)
class QuarantinedAnswer:
    """The jobs set aside."""

    jobs: tuple[Quarantined, ...]


async def status(desk: Desk, peer: Peer, _asked: Nothing) -> StatusAnswer:
    """How the daemon is; open jobs are counted as far as the peer may see them."""
    you = You(
        name=peer.name,
        uid=peer.uid,
        roles=tuple(
            Held(role=each.role.value, workflows=tuple(sorted(each.workflows or ())), own=each.own)
            for each in peer.permit.scopes
        ),
        same_user=peer.uid == os.geteuid(),
    )
    return StatusAnswer(house=desk.jobs.house(peer.permit), you=you)


async def workflows(desk: Desk, peer: Peer, _asked: Nothing) -> WorkflowsAnswer:
    """Which workflows a job file may name, and which the peer may watch over."""
    permit = peer.permit
    rows = tuple(row for row in desk.shelf.rows() if any(permit.of_workflow(role, row.name) for role in Role))
    return WorkflowsAnswer(workflows=rows, problems=desk.shelf.problems if permit.everything else ())


async def quarantined(desk: Desk, peer: Peer, _asked: Nothing) -> QuarantinedAnswer:
    """The jobs that were set aside, and why."""
    return QuarantinedAnswer(jobs=tuple(await desk.jobs.quarantined(peer.permit)))


async def reload(desk: Desk, peer: Peer, asked: ReloadAsked) -> Reloaded | Refusal:
    """Reads the configuration and the workflows again; answers when that is done."""
    if not asked.request:
        return await desk.reload()

    async def act() -> tuple[tuple[str, ...], tuple[str, ...]]:
        done = await desk.reload()
        return done.said, done.problems

    found = await desk.jobs.once.tell(
        Ask(uid=peer.uid, request=asked.request, method="Reload", content=""), act
    )
    if isinstance(found, Refusal):
        return found
    said, problems, known = found
    return Reloaded(said=said, problems=problems, known=known)
