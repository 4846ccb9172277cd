"""One call, draft or question whole, as a person is shown it before deciding; pure.

All that a yes covers is here, and what it does not cover stands apart; `inbox` adds what lies in files.
"""

from collections.abc import Iterable

from resumed.schemas import jcs
from resumed.schemas.askviews import (
    AskKind,
    AskRow,
    AskView,
    BodyView,
    ChangedText,
    DecisionRow,
    NamedText,
)
from resumed.schemas.instant import moment
from resumed.schemas.job import Artifact, Source
from resumed.schemas.ledger import Approval, Effect, Review
from resumed.schemas.snapshot import Snapshot

from . import toolrows

DECIDED = {"approve": "approved", "deny": "denied", "send_back": "sent back"}
"""Decisions that say something about the arguments, and how that is said."""
_OF_DRAFTS = {"accept": "accepted", "edit": "edited", "refuse": "refused"}


def view(snapshot: Snapshot, row: AskRow) -> AskView:
    """All of what a row of the inbox is about."""
    if row.kind is AskKind.ANSWER:
        question = next(one for one in snapshot.questions if one.id == row.subject)
        return AskView(row=row, text=question.text, choices=question.choices)
    if row.kind is AskKind.REVIEW:
        return _review(snapshot, row, snapshot.reviews[row.subject])
    return _effect(snapshot, row, snapshot.effects[row.subject])


def _review(snapshot: Snapshot, row: AskRow, review: Review) -> AskView:
    before = [one for one in snapshot.approvals if one.effect == row.subject]
    return AskView(
        row=row,
        text=_inline(review.draft),
        edit=review.edit,
        shown="" if review.shown is None else _inline(review.shown),
        decisions=decisions(before),
    )


def _effect(snapshot: Snapshot, row: AskRow, effect: Effect) -> AskView:
    tool = snapshot.contract.tool(effect.tool)
    changed, since = changes(snapshot, effect)
    return AskView(
        row=row,
        tool=effect.tool,
        version=effect.version,
        target=effect.target,
        business_object=effect.business_object,
        expected=effect.expected_result,
        arguments=_named(effect.arguments),
        unbound=_named(effect.unbound),
        bodies=tuple(
            BodyView(name=body.name, sha256=body.sha256, size=body.size, text=_inline(body))
            for body in effect.bodies
        ),
        observed=effect.observed,
        shown="" if effect.shown is None else _inline(effect.shown),
        sources=tuple(NamedText(name=one.path, value=_pinned(one)) for one in effect.sources),
        changed=changed,
        since=since,
        holds=() if tool is None else toolrows.holds(tool),
        undo="" if tool is None else tool.undo,
        irreversible=tool is not None and tool.irreversible,
        again=effect.again,
        reason=effect.hold.reason if effect.hold is not None else "",
        key=effect.operation_key,
        decisions=decisions(one for one in snapshot.approvals if one.effect == effect.id),
    )


def _inline(artifact: Artifact) -> str:
    return artifact.text or "" if artifact.base64 is None else ""


def _named(text: str) -> tuple[NamedText, ...]:
    """The members of a JSON object, texts as they are, all else as JSON; another value under no name."""
    value = jcs.read(text, "cannot show what is asked")
    pairs = value.items() if isinstance(value, dict) else [("", value)]
    return tuple(NamedText(name=name, value=_spelled(one)) for name, one in pairs)


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else jcs.spell(value).decode()


def _pinned(source: Source) -> str:
    if source.sha256:
        return f"sha256 {source.sha256}"
    return f"{source.size} bytes, as it lay there" if source.size or source.mtime else "not compared"


def past(row: Approval) -> str:
    """What was decided, as something that is over."""
    return DECIDED.get(row.decision) or _OF_DRAFTS.get(row.decision, row.decision)


def decisions(rows: Iterable[Approval]) -> tuple[DecisionRow, ...]:
    """What was decided so far, oldest first."""
    return tuple(
        DecisionRow(
            by=row.reviewer,
            at=row.given.wall,
            decision=row.decision,
            round=row.round,
            reason=row.reason,
            until=row.valid_until.wall if row.valid_until is not None else 0,
            spent=row.spent.wall if row.spent is not None else 0,
            revoked=row.revoked.wall if row.revoked is not None else 0,
            same_user=row.same_user,
        )
        for row in rows
    )


def changes(snapshot: Snapshot, effect: Effect) -> tuple[tuple[ChangedText, ...], str]:
    """What of a call is not as it was in the last one of the same tool and item that was decided, and which
    that is, in words; nothing and no words where none was."""
    known = {
        one.id: one
        for one in snapshot.effects
        if one.tool == effect.tool and one.item == effect.item and one.id != effect.id
    }
    for row in reversed(snapshot.approvals):
        before = known.get(row.effect)
        if before is not None and row.decision in DECIDED:
            when = moment(row.given.wall)
            return tuple(_changed(before, effect)), f"{DECIDED[row.decision]} by {row.reviewer} at {when}"
    return (), ""


def _changed(before: Effect, after: Effect) -> list[ChangedText]:
    old, new = _whole(before), _whole(after)
    return [
        ChangedText(name=name, before=old.get(name, ""), after=new.get(name, ""))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]


def _whole(effect: Effect) -> dict[str, str]:
    """All of a call that may differ, each under a name of its own."""
    said = {"target": effect.target, "tool version": str(effect.version), "as seen": effect.observed}
    said |= {one.name: one.value for one in _named(effect.arguments)}
    said |= {f"{one.name} (not covered)": one.value for one in _named(effect.unbound)}
    return said | {f"sends {body.name}": _inline(body) or body.sha256 for body in effect.bodies}
