"""The law of one request: a person lets a job use more than so far, within what its workflow allows."""

from collections.abc import Iterator
from typing import Any

from attrs import evolve, frozen

from resumed.schemas import events, times
from resumed.schemas.durations import exact
from resumed.schemas.instant import later, spell
from resumed.schemas.limits import exceeds
from resumed.schemas.refusal import Refusal

from . import approvals, limits
from .draft import Draft
from .requests import ended, stopping
from .settle import settle
from .verdict import Unchanged


@frozen
class _Raise:
    """One limit that is to be raised: the field of the budget, its key in files, and both values as texts."""

    field: str
    key: str
    value: Any
    text: str


def extend(draft: Draft, event: events.Extend) -> str | Refusal | Unchanged:
    """Raise what is named; a hold that only said that a limit is reached is over when none is any more, and
    what was allowed under the old limits is asked anew."""
    if refusal := ended(draft, "extend") or stopping(draft, "extend"):
        return refusal
    wanted: list[_Raise] = []
    for found in _wanted(draft, event):
        if isinstance(found, Refusal):
            return found
        if found is not None:
            wanted.append(found)
    if not wanted:
        return _nothing(draft, event)
    draft.budget = evolve(draft.budget, **{each.field: each.value for each in wanted})
    if draft.hold is not None and draft.hold.code == limits.BUDGET:
        draft.hold = None  # set again at once where another limit is still reached
    approvals.extended(draft)
    settle(draft)
    return f"extended {', '.join(f'{each.key} to {each.text}' for each in wanted)}"


def _nothing(draft: Draft, event: events.Extend) -> Refusal | Unchanged:
    job = draft.job.id
    if all(getattr(event, key) is None for key in (*limits.OPTIONS.values(), "deadline")):
        return _refused(draft, "no_limit", f"cannot extend {job}: no limit was named")
    return Unchanged(reason=f"{job} may use as much already")


def _wanted(draft: Draft, event: events.Extend) -> Iterator[_Raise | Refusal | None]:
    """What each limit that is named becomes; None where it stands so already."""
    for field, key in limits.OPTIONS.items():
        value = getattr(event, key)
        if value is not None:
            yield _judged(draft, event, field, key, value)
    if event.deadline is not None:
        yield _deadline(draft, event)


def _judged(draft: Draft, event: events.Extend, field: str, key: str, value: Any) -> _Raise | Refusal | None:
    job, most = draft.job.id, getattr(draft.budget, field)
    if most is None:
        return _refused(draft, "no_limit", f"cannot extend {job}: it has no limit of {key}")
    if not exceeds(key, value, most):
        if exceeds(key, most, value):
            texts = limits.text(key, value), limits.text(key, most)
            reason = f"cannot extend {job} to {texts[0]} of {key}: it may use {texts[1]} already"
            return _refused(draft, "not_more", reason)
        return None
    if (top := most_allowed(draft, event, key)) is not None and exceeds(key, value, top):
        return _above(draft, key, limits.text(key, value), limits.text(key, top))
    return _Raise(field, key, value, limits.text(key, value))


def _deadline(draft: Draft, event: events.Extend) -> _Raise | Refusal | None:
    assert event.deadline is not None
    job, before = draft.job.id, limits.deadline(draft)
    if before is None:
        return _refused(draft, "no_limit", f"cannot extend {job}: it has no deadline")
    try:
        value = times.instant(times.read(event.deadline), draft.then)
    except ValueError as error:
        return _refused(draft, "no_time", f"cannot extend {job}: {error}")
    if value.wall < before.wall:
        reason = f"cannot extend {job} to {spell(value.wall)}: its deadline is {spell(before.wall)}"
        return _refused(draft, "not_more", reason)
    if value.wall == before.wall:
        return None
    span = most_allowed(draft, event, "deadline")
    if span is not None and value.wall > (latest := later(draft.job.created, span)).wall:
        return _above(draft, "deadline", spell(value.wall), f"{exact(span)}, until {spell(latest.wall)}")
    return _Raise("deadline", "deadline", value, spell(value.wall))


def most_allowed(draft: Draft, event: events.Extend, key: str) -> Any:
    """What the workflow allows, as the job keeps it or, where that is more, as it says today; None: all."""
    kept = getattr(draft.contract.limits, key)
    today = kept if event.allowed is None else getattr(event.allowed, key)
    if kept is None or today is None:
        return None
    return today if exceeds(key, today, kept) else kept


def _above(draft: Draft, key: str, value: str, top: str) -> Refusal:
    flow = draft.contract.workflow
    reason = (
        f"cannot extend {draft.job.id} to {value} of {key}: its workflow {flow} allows {top}; "
        f"whoever runs the host may raise limits.{key} in {flow}.toml"
    )
    return _refused(draft, "above_workflow", reason)


def _refused(draft: Draft, code: str, reason: str) -> Refusal:
    return Refusal(code=code, reason=reason, commands=(f"resumectl show {draft.job.id}",))
