"""The law of changed sources: an item is held, or pinned anew, or left as it is; nobody else decides it.

What is done stays done unless its workflow says `reopen`. What a person takes up again after a hold goes on
with the source that the hold was told with; if it has changed once more, it is held once more.
"""

from resumed.schemas import decisions, instant
from resumed.schemas.job import Item, ItemState, PinKind, Source, SourceReport
from resumed.schemas.records import replaced
from resumed.schemas.workflow import OnChange, StepKind

from . import pins
from .draft import Draft
from .ends import count_failure, hold_unit
from .settle import enter

CHANGED = "source_changed"
"""The code of an item that is held, or was entered again, because of its source."""


def pinned(draft: Draft) -> None:
    """The sources of a fan-out have just been pinned: nothing of them is compared in this attempt."""
    if draft.contract.on_change is OnChange.IGNORE:
        return
    if any(pins.is_pinned(item.source) for item in draft.items):
        draft.sources = SourceReport(epoch=draft.epoch, at=draft.now, through=len(draft.items), over=True)


def problem(draft: Draft, decided: decisions.Decided, *, compares: bool) -> str:
    """Why an answer is not what was asked for; empty when it is."""
    if isinstance(decided, decisions.Compared) != compares:
        return f"{type(decided).__name__} is no answer to {'a comparison' if compares else 'a step'}"
    if isinstance(decided, decisions.Compared):
        first, most = pins.through(draft), len(draft.items)
        if not (first < decided.through <= most or first == decided.through == most):
            return f"a comparison of the items from {first} came up to {decided.through} of {most}"
    return ""


def compared(draft: Draft, position: Item, decided: decisions.Compared) -> str:
    """A piece of a comparison is over: each source that changed is judged, and how far it came is kept."""
    before, counts = draft.sources, {"held": 0, "reopened": 0, "kept": 0}
    for seen in decided.changed:
        item = draft.items.get(seen.item)
        if item is not None and item.source is not None and item.state in (ItemState.PENDING, ItemState.DONE):
            counts[_judged(draft, item, seen.source, seen.reason)] += 1
    goes_on = before is not None and pins.through(draft) > 0
    old = before if goes_on and before is not None else SourceReport(epoch=draft.epoch, at=draft.now)
    draft.sources = replaced(
        old,
        at=draft.now,
        through=decided.through,
        over=decided.through >= len(draft.items),
        compared=old.compared + decided.sources,
        held=old.held + counts["held"],
        reopened=old.reopened + counts["reopened"],
        kept=old.kept + counts["kept"],
        unreadable=old.unreadable + decided.unreadable,
    )
    draft.put(replaced(position, state=ItemState.PENDING, failures=0, code="", reason=""))
    found = [f"{count} {word}" for word, count in counts.items() if count]
    found += [f"{decided.unreadable} cannot be read for now"] if decided.unreadable else []
    return f"compared {decided.sources} sources: {', '.join(found) or 'none has changed'}"


def changed(draft: Draft, item: Item, decided: decisions.SourceChanged) -> str:
    """A try found its source changed before its step began."""
    if item.source is None:
        return count_failure(draft, item, "author_error", "it has no source that could have changed")
    return _judged(draft, item, decided.source, decided.reason)


def _judged(draft: Draft, item: Item, now: Source | None, reason: str) -> str:
    """What becomes of an item, as one of the counts of a report."""
    assert item.source is not None
    said = _said(item.source, now, reason)
    reopens = draft.contract.on_change is OnChange.REOPEN and now is not None
    if item.state is ItemState.DONE and not reopens:
        return "kept"
    if not reopens or now is None:
        hold_unit(draft, replaced(item, seen=now), CHANGED, said)
        return "held"
    return _begun_again(draft, item, now, said)


def _begun_again(draft: Draft, item: Item, now: Source, said: str) -> str:
    """The item is pinned anew and begins again; one that finds it changed twice in a row counts a failure."""
    again = item.code == CHANGED and item.state is ItemState.IN_PROGRESS
    item, first = replaced(item, source=now), first_step(draft)
    if item.state is ItemState.DONE or item.at != first or item.data != "{}" or item.outputs:
        item = begun(enter(replaced(item, outputs=()), first))
    if again:
        count_failure(draft, item, CHANGED, f"it changes while it is waited for; {said}")
    else:
        draft.put(replaced(item, state=ItemState.PENDING, code=CHANGED, reason=said))
    return "reopened"


def first_step(draft: Draft) -> str:
    """Where an item begins that is begun again: with the first step that the workflow has for items.

    A Python class has its steps in no order, so there it is the one that the present fan-out enters by.
    """
    assert draft.each is not None
    if draft.contract.entry:
        return draft.each.start
    steps = draft.contract.steps
    return next((step.name for step in steps if step.kind is StepKind.ITEM), draft.each.start)


def taken_up(draft: Draft, item: Item) -> Item | None:
    """An item held for its source that a person takes up again: with the source as it was found then, from
    its first step on. None when that is not what it was held for, or there was no source to be found."""
    if item.code != CHANGED or item.seen is None:
        return None
    return begun(enter(replaced(item, source=item.seen, seen=None, outputs=()), first_step(draft)))


def begun(item: Item) -> Item:
    """The item, begun again in this occurrence: what it had written before may be written once more."""
    return replaced(item, begun=item.occurrence)


def _said(old: Source, now: Source | None, reason: str) -> str:
    if now is None:
        return f"its source {old.path} is gone ({reason}); it was pinned as {_mark(old)}"
    return f"its source {old.path} changed: {_mark(old)} -> {_mark(now)}"


def _mark(source: Source) -> str:
    if source.pin is PinKind.SHA256:
        return f"sha256 {source.sha256[:16]}, {source.size} bytes"
    return f"{source.size} bytes of {instant.spell(source.mtime)}, inode {source.inode}"
