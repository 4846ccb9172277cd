"""A job's past as people are shown it: rows and events made from stored lines; pure, and never stored."""

from collections.abc import Iterable

from attrs import frozen

from resumed.schemas.instant import spell
from resumed.schemas.job import Item, Try
from resumed.schemas.snapshot import Entry, Line
from resumed.schemas.views import HistoryRow, WhyEvent

from .receipts import UNCHANGED

MOST_TEXT = 20_000
"""Characters of a reason or of evidence as told; the log has them whole."""
TRIES_END = frozenset({"returned", "raised", "gone", "placed"})
"""Transitions that end a try, or the publishing of what it made, and give its unit the reason of that."""
MOST_UNITS = 20
"""Units named in one row."""


def rows(lines: Iterable[Line], item: str = "") -> tuple[HistoryRow, ...]:
    """A row for each transition in the lines; with `item`, of those only that touched it."""
    return tuple(
        _row(line, entry) for line in lines for entry in line.entries if not item or _touches(entry, item)
    )


def _touches(entry: Entry, item: str) -> bool:
    changes = entry.changes
    named = (*(row.id for row in changes.items), *(row.item for row in changes.tries), *changes.ended)
    return item in named or unit_of(entry) == item


def unit_of(entry: Entry) -> str:
    """The item that a rule names, empty for the job's own position."""
    return entry.decision.rule.partition(" ")[2]


def _row(line: Line, entry: Entry) -> HistoryRow:
    decision = entry.decision
    return HistoryRow(
        sequence=line.sequence,
        at=spell(line.at.wall),
        epoch=line.epoch,
        by=decision.by,
        transition=entry.transition,
        rule=decision.rule,
        choice=decision.choice,
        reason=_cut(_reason(entry)),
        started=_units(row for row in entry.changes.tries if row.stop is None),
        stopped=_units(row for row in entry.changes.tries if row.stop is not None),
        evidence=_cut(entry.evidence),
    )


def _reason(entry: Entry) -> str:
    """The decision's own reason, else the one it gave to what it was about."""
    changes = entry.changes
    if entry.decision.reason:
        return entry.decision.reason
    if entry.decision.choice == "asked anew":
        return _asked_again(entry)
    row = _changed(entry, unit_of(entry)) if entry.transition in TRIES_END else None
    if row is not None and row.reason:
        return row.reason
    if changes.hold is not None:
        return changes.hold.reason
    return changes.outcome.reason if changes.outcome is not None else ""


def _units(tries: Iterable[Try]) -> tuple[str, ...]:
    names = [row.item or f"step {row.step}" for row in tries]
    more = len(names) - MOST_UNITS
    return (*names[:MOST_UNITS], *([f"and {more} more"] if more > 0 else []))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 3]}..."


# ---- events -----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Event:
    """What one transition means to a person, and whose it is."""

    told: WhyEvent
    unit: str
    """The item it is about, empty for the job itself."""
    routine: bool
    """Work going its way: it explains a job's standing only while nothing else does."""


ROUTINE = frozenset({"started", "done", "went on"})

ENDS = {
    # the choice that an end of a try led to -> the word for it
    "done": "done",
    "finished": "finished",
    "again": "failed",
    "failed": "failed",
    "held": "held",
    "later": "not now",
    "skipped": "left out",
}
PERSONS = {
    "pause": "paused",
    "resume": "continued",
    "cancel": "canceled",
    "retry": "retried",
    "skip": "left out",
    "reopen": "reopened",
    "extend": "extended",
    "approve": "approved",
    "deny": "denied",
    "send_back": "sent back",
    "revoke": "revoked",
    "answer": "answered",
    "settle": "settled",
}
"""Requests of persons -> the word for what they did."""


DECISIONS = ("approved", "denied", "sent back", "accepted", "edited", "refused")
"""How choices of people about calls and drafts begin: what they did, before what they did it to."""


def event(line: Line, entry: Entry) -> Event:
    """The transition in a word and a few more. A request that changed nothing explains nothing."""
    word, said = _told(entry)
    told = WhyEvent(at=spell(line.at.wall), word=word, said=said)
    repeated = entry.transition in PERSONS and entry.decision.choice == UNCHANGED
    return Event(told=told, unit=unit_of(entry), routine=repeated or word in ROUTINE)


def _decided(choice: str) -> tuple[str, str] | None:
    return next(
        ((word, choice.removeprefix(f"{word} ")) for word in DECISIONS if choice.startswith(f"{word} ")), None
    )


def _told(entry: Entry) -> tuple[str, str]:
    decision, changes = entry.decision, entry.changes
    reason, units = _reason(entry), ", ".join(_units(changes.tries))
    match entry.transition:
        case "admit":
            items = decision.choice.removeprefix("admitted with 0 items").removeprefix("admitted ")
            return "admitted", f"{items}, for {decision.by}" if items else f"for {decision.by}"
        case name if name in PERSONS:
            word, what = _decided(decision.choice) or (PERSONS[name], decision.choice.partition(" ")[2])
            return word, _joined(f"{what + ' ' if what else ''}by {_person(decision.by)}", reason)
        case "start":
            return "started", ", ".join(_try(row) for row in changes.tries) or unit_of(entry)
        case "returned" | "raised" | "gone" | "placed":
            return _end(entry, reason)
        case "effect":
            return _effect(entry)
        case "wake":
            cut = ", ".join(changes.ended[:MOST_UNITS])
            parts = ("the daemon had ended", f"cut off: {cut}" if any(changes.ended) else "", reason)
            return "woke", "; ".join(part for part in parts if part)
        case "tick":
            words = {"expired": ("expired", reason), "timeout": ("time over", units or _called_off(entry))}
            words["asked anew"] = ("asked again", reason)
            return words.get(decision.choice, ("time went by", _joined(decision.choice, reason)))
        case "other_job":
            return "told", _joined(decision.choice, reason)
        case "shutdown":
            return "stopping", _joined("the daemon was told to end", units)
        case "trouble":
            return "held", reason
        case "stale":
            return "stale", _joined("an answer changed nothing and was kept", reason.removeprefix("stale: "))
        case other:
            return other, _joined(decision.choice, reason)


def _end(entry: Entry, reason: str) -> tuple[str, str]:
    """How a try ended; a death that cost nothing is no failure."""
    choice, unit = entry.decision.choice, unit_of(entry)
    row = _changed(entry, unit)
    name = unit or (f"step {row.at}" if row is not None and row.at else "the job")
    if row is not None and row.tries and choice not in ("done", "finished"):
        name += f", try {row.tries}"
    if choice in ENDS:
        cut_off = choice == "again" and entry.transition == "gone" and row is not None and not row.not_before
        word = "cut off" if cut_off else ENDS[choice]
        return word, _joined(name, reason)
    kind, _, where = choice.partition(" ")
    moves = {"next": f"{unit} to {where}", "goto": f"to step {where}", "each": f"with {where}"}
    return ("went on", moves[kind]) if kind in moves else (choice, _joined(name, reason))


EFFECTS = {
    # the choice -> the word for what happened to an effect
    "sent": "sent",
    "sent again": "sent again",
    "confirmed": "confirmed",
    "rejected": "refused",
    "unknown": "no reply",
    "not sent": "not sent",
    "look_up": "asks about it",
    "check": "looks first",
    "absent": "looked up",
    "unclear": "looked up",
    "checked": "looked",
    "not checked": "looked",
}


def _effect(entry: Entry) -> tuple[str, str]:
    """What happened to an effect, by the row that came of it."""
    choice, name = entry.decision.choice, unit_of(entry)
    row = next((each for each in entry.changes.effects if each.id == name), None)
    word = EFFECTS.get(choice, choice.partition(":")[0])
    if row is None:
        return word, name
    if row.reference:
        return word, f"{name} as {row.reference}"
    return word, _joined(f"{name} to {row.target}" if word.startswith("sent") else name, row.reason)


def _called_off(entry: Entry) -> str:
    """The effects whose errands are being stopped."""
    return ", ".join([row.effect for row in entry.changes.errands if row.stop is not None][:MOST_UNITS])


def _asked_again(entry: Entry) -> str:
    """What nobody had decided in time, or whose yes was good no longer."""
    changes = entry.changes
    named = [_joined(row.id, row.reason) for row in changes.effects]
    named += [f"the draft of {row.unit}" for row in changes.reviews]
    named += [f"{row.text!r}" for row in changes.questions or () if row.widened and row.answered is None]
    more = len(named) - MOST_UNITS
    return ", ".join([*named[:MOST_UNITS], *([f"and {more} more"] if more > 0 else [])])


def _changed(entry: Entry, unit: str) -> Item | None:
    if unit == "":
        return entry.changes.position
    return next((row for row in entry.changes.items if row.id == unit), None)


def _try(row: Try) -> str:
    return f"{row.item or f'step {row.step}'}, try {row.number}"


def _person(by: str) -> str:
    """The name in `uid:1000 anna`."""
    return by.partition(" ")[2] or by


def _joined(first: str, second: str) -> str:
    return f"{first}: {second}" if first and second else first or second
