"""What follows of itself in the same commit, whatever was decided: the end of a fan-out, of the job, of the
attempt; and what holds a job by its own records.
"""

from resumed.schemas.job import Ending, ItemState, Outcome, StopReason
from resumed.schemas.limits import OnFailed

from . import clock, effects, holding, limits, questions, reviews, schedule
from .draft import Draft
from .due import is_near, stops
from .handing import enter as enter


def settle(draft: Draft) -> None:
    """Carry out all of it."""
    if draft.outcome is None:
        reviews.settle(draft)
        questions.settle(draft)
        if draft.performances or draft.effects.unsettled or draft.effects.held or draft.hold is not None:
            effects.settle(draft)
            holding.settle(draft)
        schedule.settle(draft)
        clock.settle(draft)
        _settle_position(draft)
        _settle_fan_out(draft)
        _settle_job(draft)
        limits.settle(draft)
    at_work = draft.tries or draft.errands
    if draft.attempt is not None and not at_work and not is_near(draft, draft.now):
        limits.close_attempt(draft, draft.now)


def _settle_position(draft: Draft) -> None:
    """A step of the job that is held holds the job: also when another hold stood before it, and is over."""
    position = draft.position
    if position.state is ItemState.HELD and draft.hold is None and not draft.stopping():
        draft.set_hold(position.code, f"step {position.at}: {position.reason}")


def _settle_fan_out(draft: Draft) -> None:
    each = draft.each
    if each is None or draft.tries or draft.stopping():
        return
    count = draft.items.count
    failed, held = count(ItemState.FAILED), count(ItemState.HELD)
    pending = count(ItemState.PENDING) - draft.items.outside
    if (pending or count(ItemState.IN_PROGRESS) or count(ItemState.REVIEW)) and not stops(draft):
        return
    if draft.contract.on_failed is OnFailed.CONTINUE:
        failed = 0  # left behind
    if failed or held:
        if draft.hold is None:
            draft.set_hold(*_items_hold(draft, failed, held))
        return
    draft.each = None
    draft.position = enter(draft.position, each.then)


def _items_hold(draft: Draft, failed: int, held: int) -> tuple[str, str]:
    states = (ItemState.FAILED, ItemState.HELD) if failed else (ItemState.HELD,)
    bad = [item for item in draft.items if item.state in states]
    first = bad[0]
    parts = [f"{failed} failed" if failed else "", f"{held} held" if held else ""]
    said = " and ".join(part for part in parts if part)
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    reason = f"{said} of {len(draft.items)} items; {first.id}: {first.reason}{more}"
    return ("items_failed" if failed else "items_held"), reason


def _settle_job(draft: Draft) -> None:
    if draft.publications and draft.position.state in (ItemState.DONE, ItemState.FAILED):
        # Of items that were left held: nobody will publish them any more.
        for row in [row for row in draft.publications.values() if row.blocked]:
            draft.mark_withdrawn(row, StopReason.HOLD)
    if draft.tries or draft.publications or draft.errands or draft.is_unproven():
        return
    if draft.effects.unsettled:
        return  # what may have left is settled first (DESIGN.md, I7)
    if draft.stopping():
        mark = draft.cancel or draft.expiry
        assert mark is not None
        ending = Ending.CANCELED if draft.cancel is not None else Ending.EXPIRED
        draft.outcome = Outcome(ending=ending, at=draft.now, reason=mark.reason)
    elif draft.position.state is ItemState.DONE:
        draft.outcome = Outcome(ending=Ending.COMPLETED, at=draft.now)
    elif draft.position.state is ItemState.FAILED:
        draft.outcome = Outcome(ending=Ending.FAILED, at=draft.now, reason=draft.position.reason)
