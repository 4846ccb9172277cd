"""The router of the law: event in, entry to commit out; every kind of event has its row."""

from collections.abc import Callable
from typing import Any

from attrs import evolve, fields

from resumed.schemas import codec, decisions, events, strict
from resumed.schemas.instant import Instant
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Changes, Decision, Entry, Snapshot

from . import (
    course,
    errands,
    extend,
    hearing,
    outcomes,
    plain,
    plaincall,
    receipts,
    reckoning,
    requests,
    unsettled,
    work,
)
from .draft import Draft
from .verdict import Unchanged, Verdict

ROUTES: dict[type[Any], tuple[str, str, Callable[[Draft, Any], str | Refusal | Unchanged]]] = {
    # event -> the transition's name, who decides, and the law
    events.Pause: ("pause", "person", requests.pause),
    events.Resume: ("resume", "person", requests.resume),
    events.Cancel: ("cancel", "person", requests.cancel),
    events.Retry: ("retry", "person", requests.retry),
    events.Skip: ("skip", "person", requests.skip),
    events.Reopen: ("reopen", "person", requests.reopen),
    events.Extend: ("extend", "person", extend.extend),
    events.Approve: ("approve", "person", hearing.approve),
    events.Deny: ("deny", "person", hearing.deny),
    events.SendBack: ("send_back", "person", hearing.send_back),
    events.Revoke: ("revoke", "person", hearing.revoke),
    events.Reply: ("answer", "person", hearing.reply),
    events.Settle: ("settle", "person", unsettled.say),
    events.Grant: ("start", "machine", work.grant),
    events.Returned: ("returned", "author", work.returned),
    events.Raised: ("raised", "author", work.raised),
    events.Gone: ("gone", "machine", work.gone),
    events.Placed: ("placed", "machine", work.placed),
    events.Woke: ("wake", "machine", work.woke),
    events.Tick: ("tick", "clock", course.tick),
    events.OtherJob: ("other_job", "machine", course.other_job),
    events.Shutdown: ("shutdown", "machine", course.shutdown),
    events.Trouble: ("trouble", "machine", course.trouble),
}


def transition(snapshot: Snapshot, event: events.Event, now: Instant) -> Verdict:
    """What `event` does to the job at `now`: an entry to commit, a refusal, or nothing.

    Pure: the snapshot is not touched, and the same three arguments always give the same answer.
    """
    if isinstance(event, events.Returned):
        entry = plain.step(snapshot, event, now) or plaincall.step(snapshot, event, now)
        if entry is not None:
            return entry
    return at_large(snapshot, event, now)


def at_large(snapshot: Snapshot, event: events.Event, now: Instant) -> Verdict:
    """The same by the whole law, for any event."""
    name, decider, law = ROUTES[type(event)]
    event = _legible(event)
    if decider == "person" and (answered := receipts.known(snapshot, event, now)) is not None:
        return answered
    draft = Draft(snapshot, now)
    if snapshot.outcome is not None and decider != "person":
        choice: str | Refusal | Unchanged = Unchanged(reason=f"{snapshot.job.id} has ended")
        if isinstance(event, events.Returned) and errands.is_errand(event.unit):
            outcomes.stale(draft, event)  # changes no status, but somebody has to know of a landing
    elif snapshot.outcome is None and getattr(event, "record", 0) not in (0, snapshot.sequence):
        choice = _moved(snapshot, name, event)
    else:
        choice = law(draft, event)
    if isinstance(choice, Unchanged) and isinstance(event, events.Returned):
        return _evidence(event, choice, draft.changes())
    if not isinstance(choice, str):
        return choice
    if isinstance(event, events.Returned) and isinstance(event.answer.decided, decisions.SAYS_OF_SOURCES):
        name, decider = "sources", "machine"  # no author has said anything
    if (clocks := reckoning.observed(draft, now)) is not None:
        draft.clocks = clocks
    unit = getattr(event, "unit", None)
    if unit is not None and errands.is_errand(unit):
        name, decider, unit = "effect", "machine", errands.effect_of(unit)
    by = f"uid:{event.by.uid} {event.by.name}" if hasattr(event, "by") else decider
    return Entry(
        transition=name,
        decision=Decision(
            by=by,
            rule=name if not unit else f"{name} {unit}",
            choice=choice,
            reason=getattr(event, "reason", "") or getattr(event, "detail", ""),
        ),
        changes=draft.changes(),
    )


def _named(unit: str) -> str:
    """A unit's name, or the effect's that an errand is about."""
    return errands.effect_of(unit) if errands.is_errand(unit) else unit


def _moved(snapshot: Snapshot, verb: str, event: Any) -> Refusal:
    """The request was meant for another record than the present one."""
    job = snapshot.job.id
    return Refusal(
        code="moved",
        reason=f"cannot {verb} {job}: it has moved on from record {event.record} to {snapshot.sequence}",
        commands=(f"resumectl why {job}",),
    )


def _evidence(event: events.Returned, why: Unchanged, changes: Changes) -> Entry:
    """A stale or second answer is kept: what it said, and whose it was. It changes nothing, but that a person
    is asked about an effect that cannot have become what is on record."""
    return Entry(
        transition="stale",
        decision=Decision(
            by="author", rule=f"returned {_named(event.unit)}".strip(), choice="kept", reason=why.reason
        ),
        changes=changes,
        evidence=codec.encode(
            {
                "unit": _named(event.unit),
                "epoch": event.epoch,
                "number": event.number,
                "answer": codec.to_plain(event.answer),
            }
        ).decode(),
    )


_TEXTS = {
    kind: tuple(
        each.name
        for each in fields(kind)
        if each.name in ("reason", "detail", "error", "answer") and each.type is str
    )
    for kind in ROUTES
}
"""What an event carries of others' words."""


def _legible(event: Any) -> Any:
    """The event with texts that can be stored: what programs and systems say may hold anything."""
    names = _TEXTS[type(event)]
    if not names:
        return event
    texts = {name: getattr(event, name) for name in names}
    plain = {name: strict.plain(text) for name, text in texts.items()}
    return event if plain == texts else evolve(event, **plain)
