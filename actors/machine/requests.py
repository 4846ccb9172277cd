"""The law of persons' requests: pause, resume, cancel, retry, skip, reopen; each is answered by value.

A request that finds the job as it wants it is Unchanged, not refused: asking twice is no fault.
"""

from attrs import evolve

from resumed.schemas import events
from resumed.schemas.job import Ending, Hold, Item, ItemState, Mark, Outcome, StopReason
from resumed.schemas.records import replaced
from resumed.schemas.refusal import Refusal

from . import breaker, clock, effects, errands, limits, publishing, reckoning, schedule, sources, unsettled
from .draft import NOT_GONE, Draft
from .settle import enter, settle
from .verdict import Unchanged

Choice = str | Refusal | Unchanged

ITEM_HOLDS = frozenset({"items_failed", "items_held"})
"""Codes of holds that only say that items need a person; lifted when those items are dealt with."""

REOPENED = "reopened"
"""The code of an item that a person had begin again, until it has been tried."""

_STUCK = (ItemState.FAILED, ItemState.HELD)


def ended(draft: Draft, verb: str) -> Refusal | None:
    return None if draft.outcome is None else _too_late(draft.job.id, verb, draft.outcome)


def _too_late(job: str, verb: str, outcome: Outcome) -> Refusal:
    return Refusal(
        code="ended",
        reason=f"cannot {verb} {job}: too late, it is {outcome.ending}",
        commands=(f"resumectl show {job}",),
    )


def stopping(draft: Draft, verb: str) -> Refusal | None:
    mark = draft.cancel or draft.expiry
    if mark is None:
        return None
    return Refusal(
        code="stopping",
        reason=f"cannot {verb} {draft.job.id}: it is being ended ({mark.reason or 'by ' + mark.by})",
        commands=(f"resumectl watch {draft.job.id}",),
    )


def pause(draft: Draft, event: events.Pause) -> Choice:
    """Nothing new starts; with `now`, what runs is stopped as well."""
    if refusal := ended(draft, "pause") or stopping(draft, "pause"):
        return refusal
    running = any(row.stop is None for row in draft.tries.values())
    if draft.pause is not None and not (event.now and running):
        return Unchanged(reason=f"{draft.job.id} is paused already, by {draft.pause.by}")
    if draft.pause is None or event.now:
        draft.pause = Mark(by=event.by.name, at=draft.now, reason=event.reason, now=event.now)
    if event.now:
        draft.mark_all(StopReason.PAUSE)
    settle(draft)
    return "paused"


def resume(draft: Draft, event: events.Resume) -> Choice:
    """Lifts a pause and a hold of the whole job; a job step that was held or failed is entered afresh."""
    if refusal := ended(draft, "resume"):
        return refusal
    # A person's word that nothing of the job runs any more is wanted of a job being ended, too.
    if not draft.is_unproven() and (refusal := stopping(draft, "resume")):
        return refusal
    if draft.pause is None and draft.hold is None:
        return Unchanged(reason=f"{draft.job.id} is not paused and not held: it goes on by itself")
    hold = draft.hold
    if hold is not None and hold.code == limits.BUDGET and limits.reached(draft, draft.now):
        if draft.pause is None:
            return _at_limit(draft, hold)
    elif hold is not None and draft.each is not None and hold.code in ITEM_HOLDS and _stuck(draft):
        if draft.pause is None:
            return _needs_items(draft, hold.reason)
    else:
        if hold is not None and hold.code == schedule.AFTER:
            schedule.go_on(draft)
        if hold is not None and hold.code == breaker.BREAKER:
            breaker.close(draft)
        if hold is not None and hold.code == reckoning.CLOCK:
            clock.accept(draft)
        if hold is not None and hold.code == NOT_GONE:
            unsettled.proven(draft)
        if hold is not None and hold.code in errands.JOB_HOLDS:
            refusal = unsettled.resumed(draft)
            if refusal is not None and draft.pause is None:
                return refusal
        draft.hold = None
        if draft.position.state is ItemState.HELD:
            draft.put(_afresh(draft, draft.position))
    draft.pause = None
    settle(draft)
    return "resumed"


def _at_limit(draft: Draft, hold: Hold) -> Refusal:
    job = draft.job.id
    return Refusal(
        code=limits.BUDGET,
        reason=f"cannot resume {job}: {hold.reason}",
        commands=(*limits.commands(draft, hold.since), f"resumectl cancel {job}"),
    )


def _needs_items(draft: Draft, reason: str) -> Refusal:
    job = draft.job.id
    return Refusal(
        code="items_failed",
        reason=f"cannot resume {job}: {reason}",
        commands=(f"resumectl retry {job}", f"resumectl skip {job}", f"resumectl cancel {job}"),
    )


def cancel(draft: Draft, event: events.Cancel) -> Choice:
    """The job ends: nothing new starts, what runs is stopped, and it is canceled when all of that is gone."""
    if draft.outcome is not None:
        if draft.outcome.ending is Ending.CANCELED:
            return Unchanged(reason=f"{draft.job.id} is canceled already")
        return _too_late(draft.job.id, "cancel", draft.outcome)
    mark = draft.cancel or draft.expiry
    if mark is not None:
        return Unchanged(reason=f"{draft.job.id} is being ended already, by {mark.by}")
    draft.cancel = Mark(by=event.by.name, at=draft.now, reason=event.reason)
    draft.mark_all(StopReason.CANCEL)
    settle(draft)
    return "canceled" if draft.has_ended() else "canceling"


def _stuck(draft: Draft) -> list[Item]:
    if not (draft.items.count(ItemState.FAILED) or draft.items.count(ItemState.HELD)):
        return []
    return [item for item in draft.items if item.state in _STUCK]


def _chosen(
    draft: Draft, names: tuple[str, ...], verb: str, states: tuple[ItemState, ...]
) -> list[Item] | Refusal:
    """The items named (or all that are stuck), each in one of `states`; else a refusal naming the first."""
    if not names:
        return _stuck(draft)
    found: list[Item] = []
    for name in dict.fromkeys(names):
        item = draft.items.get(name)
        if item is None:
            return Refusal(
                code="no_such_item",
                reason=f"cannot {verb} {name}: {draft.job.id} has no item of that name",
                commands=(f"resumectl show {draft.job.id}",),
            )
        if item.state not in states:
            return Refusal(
                code="item_state",
                reason=f"cannot {verb} {name} of {draft.job.id}: it is {item.state}, "
                f"expected {' or '.join(states)}",
                commands=(f"resumectl show {draft.job.id}",),
            )
        found.append(item)
    return found


def _taken_up(draft: Draft, item: Item, start: str) -> Item:
    found = sources.taken_up(draft, item)
    if found is not None:
        return found
    return _afresh(draft, item) if item.at else enter(item, start, data=item.data)


def _afresh(draft: Draft, unit: Item) -> Item:
    """The unit with a fresh set of tries; what is staged already is published, not made again."""
    if (renewed := publishing.renewed(draft, unit)) is not None:
        return renewed
    return evolve(unit, state=ItemState.PENDING, failures=0, crashes=0, not_before=None, code="", reason="")


def retry(draft: Draft, event: events.Retry) -> Choice:
    """Failed and held items (or those named, skipped ones too) get a fresh set of tries."""
    if refusal := ended(draft, "retry") or stopping(draft, "retry"):
        return refusal
    chosen = _chosen(draft, event.items, "retry", (*_STUCK, ItemState.SKIPPED))
    if isinstance(chosen, Refusal):
        return chosen
    if refusal := effects.unsettled(draft, "retry", chosen):
        return refusal
    own = not event.items and draft.position.state is ItemState.HELD
    if not chosen and not own:
        return Unchanged(reason=f"nothing of {draft.job.id} has failed or is held")
    if chosen and draft.each is None:
        return Refusal(
            code="fan_out_over",
            reason=f"cannot retry items of {draft.job.id}: it stands at step {draft.position.at}, "
            "where no items run",
            commands=(f"resumectl show {draft.job.id}",),
        )
    if draft.each is not None:
        start = draft.each.start
        draft.put_many([_taken_up(draft, item, start) for item in chosen])
    if own:
        draft.put(_afresh(draft, draft.position))
    _lift_item_hold(draft, own=own)
    settle(draft)
    return f"retried {_items(len(chosen))}" if chosen else f"retried step {draft.position.at}"


def skip(draft: Draft, event: events.Skip) -> Choice:
    """Items are left out: those that run are stopped, those that wait or failed are skipped at once."""
    if refusal := ended(draft, "skip") or stopping(draft, "skip"):
        return refusal
    states = (ItemState.PENDING, ItemState.IN_PROGRESS, ItemState.REVIEW, *_STUCK, ItemState.SKIPPED)
    chosen = _chosen(draft, event.items, "skip", states)
    if isinstance(chosen, Refusal):
        return chosen
    chosen = [item for item in chosen if not _is_left_out(draft, item)]
    if not chosen:
        return Unchanged(reason=f"nothing of {draft.job.id} is left to skip")
    reason = event.reason or f"left out by {event.by.name}"
    out: list[Item] = []
    for item in chosen:
        row = draft.tries.get(item.id)
        if row is not None:
            draft.mark_stop(row, StopReason.SKIP)
        elif not publishing.leave_out(draft, item):
            effects.leave_out(draft, item)
            out.append(evolve(item, state=ItemState.SKIPPED, not_before=None, code="skipped", reason=reason))
    draft.put_many(out)
    _lift_item_hold(draft, own=False)
    settle(draft)
    return f"skipped {_items(len(chosen))}"


def reopen(draft: Draft, event: events.Reopen) -> Choice:
    """Settled items begin again from their first step, also those that are done: a person's own decision.

    What was accepted before stays where it was put, and in the job's history; the next output of the item is
    another revision. Staged outputs are for `retry` and `skip`, which publish them or take them away.
    """
    job = draft.job.id
    if refusal := ended(draft, "reopen") or stopping(draft, "reopen"):
        return refusal
    if not event.items or not event.reason.strip():
        what = "name its items" if not event.items else "say why"
        return Refusal(
            code="incomplete",
            reason=f"cannot reopen items of {job}: {what}",
            commands=(f"resumectl show {job}",),
        )
    states = (ItemState.DONE, *_STUCK, ItemState.SKIPPED)
    named = tuple(name for name in event.items if not _is_begun_again(draft, name))
    chosen = _chosen(draft, named, "reopen", states) if named else []
    if isinstance(chosen, Refusal):
        return chosen
    if not chosen:
        return Unchanged(reason=f"nothing of {job} is left to reopen: it has been begun again already")
    if draft.each is None:
        return Refusal(
            code="fan_out_over",
            reason=f"cannot reopen items of {job}: it stands at step {draft.position.at}, and its items are "
            "over; hand them in again as a job of their own",
            commands=(f"resumectl show {job}",),
        )
    staged = next((item for item in chosen if item.id in draft.publications), None)
    if staged is not None:
        return Refusal(
            code="publishing",
            reason=f"cannot reopen {staged.id} of {job}: an output of it waits to be published; retry or "
            "skip it first",
            commands=(f"resumectl show {job}",),
        )
    if refusal := effects.unsettled(draft, "reopen", chosen):
        return refusal
    draft.put_many([_begun_again(draft, item, event.reason) for item in chosen])
    _lift_item_hold(draft, own=False)
    settle(draft)
    return f"reopened {_items(len(chosen))}"


def _is_begun_again(draft: Draft, name: str) -> bool:
    item = draft.items.get(name)
    return item is not None and item.state is ItemState.PENDING and item.code == REOPENED


def _begun_again(draft: Draft, item: Item, reason: str) -> Item:
    """The item at its first step; one that was held for its source, with the source as it was found then."""
    first = sources.taken_up(draft, item)
    if first is None:
        first = sources.begun(enter(replaced(item, outputs=()), sources.first_step(draft)))
    return replaced(first, code=REOPENED, reason=reason)


def _items(count: int) -> str:
    return f"{count} item" if count == 1 else f"{count} items"


def _is_left_out(draft: Draft, item: Item) -> bool:
    row = draft.tries.get(item.id) or draft.publications.get(item.id)
    return item.state is ItemState.SKIPPED or (row is not None and row.stop is StopReason.SKIP)


def _lift_item_hold(draft: Draft, *, own: bool) -> None:
    """A hold that says what was dealt with is over; one that says that trees may be alive is not."""
    if draft.hold is None or draft.is_unproven():
        return
    if own or (draft.hold.code in ITEM_HOLDS and draft.each is not None):
        draft.hold = None
