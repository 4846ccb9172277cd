"""The law of a job's course as a whole: time that passes, other jobs, the daemon's shutdown and trouble."""

from attrs import evolve

from resumed.schemas import events
from resumed.schemas.instant import reached
from resumed.schemas.job import Mark, StopReason
from resumed.schemas.ledger import Errand, ErrandKind

from . import approvals, clock, limits, questions, reviews, schedule, unsettled
from .draft import Draft
from .settle import settle
from .verdict import Unchanged


def tick(draft: Draft, event: events.Tick) -> str | Unchanged:
    """Limits that have lapsed become marks: a try's time, the job's deadline; waits that are over go."""
    del event
    marked, then = 0, draft.then
    for row in list(draft.tries.values()):
        if row.stop is None and reached(row.until, then):
            draft.mark_stop(row, StopReason.TIMEOUT)
            marked += 1
    late = [row for row in draft.errands.values() if row.stop is None and reached(row.until, then)]
    _stop(draft, late, StopReason.TIMEOUT)
    marked += len(late)
    deadline = limits.deadline(draft)
    if deadline is not None and not draft.stopping() and reached(deadline, then):
        draft.expiry = Mark(by="clock", at=draft.now, reason="its deadline has passed")
        draft.mark_all(StopReason.EXPIRE)
        marked += 1
    waited = not draft.stopping() and schedule.lapse(draft)
    asked = 0 if draft.stopping() else approvals.lapse(draft) + reviews.lapse(draft) + questions.lapse(draft)
    told = clock.settle(draft)
    held = limits.settle(draft)
    if not (marked or waited or asked or held or told):
        return Unchanged(reason="no limit has lapsed")
    settle(draft)
    if draft.expiry is not None:
        return "expired"
    if marked or waited:
        return "timeout" if marked else "its time has come"
    return told or ("asked anew" if asked else "at its limit")


def other_job(draft: Draft, event: events.OtherJob) -> str | Unchanged:
    """The job is told how one stands that it waits for."""
    choice = schedule.told(draft, event)
    settle(draft)
    return choice


def shutdown(draft: Draft, event: events.Shutdown) -> str | Unchanged:
    """The daemon drains: what runs is to be stopped, in good order."""
    del event
    asking = _asking(draft)
    if not asking and all(row.stop is not None for row in draft.tries.values()):
        return Unchanged(reason="nothing runs")
    draft.mark_all(StopReason.SHUTDOWN)
    _stop(draft, asking, StopReason.SHUTDOWN)
    return "stopping"


def _asking(draft: Draft) -> list[Errand]:
    """Open errands that send nothing: what is being sent may finish, since its answer settles it."""
    return [row for row in draft.errands.values() if row.stop is None and row.kind is not ErrandKind.SEND]


def _stop(draft: Draft, rows: list[Errand], reason: StopReason) -> None:
    marked = {row.effect: evolve(row, stop=reason) for row in rows}
    if marked:
        draft.errands = {**draft.errands, **marked}


def trouble(draft: Draft, event: events.Trouble) -> str | Unchanged:
    """The machine cannot go on with the job: held, and what runs is stopped."""
    before = draft.hold
    draft.set_hold(event.code, event.reason)
    if before is not None and draft.hold is before:
        if not unsettled.troubled(draft, event.reason):
            return Unchanged(reason=f"held already: {before.code}")
        return "asked in vain"
    draft.mark_all(StopReason.HOLD)
    _stop(draft, _asking(draft), StopReason.HOLD)
    unsettled.troubled(draft, event.reason)
    settle(draft)
    return "held"
