"""The socket's methods that look back: a job's past, piece by piece, and why it stands as it does."""

from attrs import evolve, frozen

from resumed.actors.finder import Located
from resumed.actors.possible import STEERING
from resumed.actors.sight import Whose
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import HistoryRow, WhyCheck, WhyView

from . import pinned
from .api_jobs import FINAL, JobAsked
from .desk import Desk
from .grants import Role
from .peers import Peer


@frozen(kw_only=True)
class HistoryAsked:
    """A job; the sequence to go on after (negative: so many lines before the end); one item of it, or all."""

    job: str
    after: int = 0
    item: str = ""


@frozen(kw_only=True)
class HistoryAnswer:
    """A piece of a job's past: `next` is what to go on after, 0 when nothing follows now."""

    job: str
    rows: tuple[HistoryRow, ...]
    next: int
    notes: tuple[str, ...]
    """What of the past cannot be told, and why."""


@frozen(kw_only=True)
class WhyAnswer:
    """Why a job stands as it does, and what may be done about it."""

    why: WhyView
    role: str
    """The role that the commands which change something need, empty when there are none."""
    yours: bool
    """Whether who asks has that role over the job."""


async def history(desk: Desk, _peer: Peer, asked: HistoryAsked) -> HistoryAnswer | Refusal:
    """What happened to a job, transition by transition, oldest first."""
    piece = await desk.jobs.history(asked.job, asked.after, asked.item)
    if isinstance(piece, Refusal):
        return piece
    return HistoryAnswer(job=asked.job, rows=piece.rows, next=piece.following, notes=piece.notes)


async def why(desk: Desk, peer: Peer, asked: JobAsked) -> WhyAnswer | Refusal:
    """Why a job stands as it does: what led to it, what was checked, what it waits for, what may be done."""
    found = await desk.jobs.why(asked.job)
    if isinstance(found, Refusal):
        return found
    changes = any(each.command.split()[1] in STEERING for each in found.commands)
    where = await desk.jobs.locate(asked.job, peer.permit)
    whose = where.whose if isinstance(where, Located) else None
    yours = peer.permit.everywhere(Role.OPERATOR) or (
        whose is not None and peer.permit.over(Role.OPERATOR, whose)
    )
    found = evolve(
        found, checks=pinned.in_order((*found.checks, *await _of_today(desk, asked.job, found, whose)))
    )
    return WhyAnswer(why=found, role=Role.OPERATOR.value if changes else "", yours=yours)


async def _of_today(desk: Desk, job: str, found: WhyView, whose: Whose | None) -> tuple[WhyCheck, ...]:
    """What it was admitted with against what is in force; of a job that has ended nothing runs any more."""
    if found.row.status in FINAL:
        return ()
    contract = await desk.jobs.contract(job)
    if isinstance(contract, Refusal):
        return ()
    workflow = contract[0].workflow
    permit = await desk.permit_of(whose.uid) if whose is not None and whose.uid >= 0 else None
    may = None if permit is None else permit.of_workflow(Role.SUBMITTER, workflow)
    return pinned.checks(contract[0], desk.shelf.declared(workflow), may)
