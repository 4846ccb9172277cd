"""What people decide about drafts: accept, edit, send back, refuse; each is recorded once.

A decision names the sha256 of the revision that was looked at; another one is not accepted under it.
"""

from attrs import evolve

from resumed.schemas import events
from resumed.schemas.approvals import Facts
from resumed.schemas.askviews import AskKind
from resumed.schemas.instant import moment
from resumed.schemas.job import Artifact, Item, ItemState, Provenance
from resumed.schemas.ledger import Approval, Review
from resumed.schemas.records import replaced
from resumed.schemas.refusal import Refusal

from . import asks, deciders, reviews, rounds
from .deciders import refused
from .draft import Draft
from .handing import enter
from .requests import ended, stopping
from .settle import settle
from .verdict import Unchanged

Choice = str | Refusal | Unchanged
Event = rounds.Decision

PAST = {
    rounds.ACCEPT: "accepted",
    rounds.EDIT: "edited",
    rounds.SEND_BACK: "sent back",
    rounds.REFUSE: "refused",
}


def _decision(event: Event) -> str:
    if isinstance(event, events.Approve):
        edited = event.text is not None and event.text.sha256 != event.fingerprint
        return rounds.EDIT if edited else rounds.ACCEPT
    return rounds.REFUSE if isinstance(event, events.Deny) else rounds.SEND_BACK


def decide(draft: Draft, name: str, event: Event) -> Choice:
    """One person's decision on the draft of one item, as it was shown to them."""
    decision = _decision(event)
    verb = f"{decision.replace('_', ' ')} the draft of {name}"
    if (known := _known(draft, name, decision, event)) is not None:
        return known
    row, unit = draft.reviews.get(name), draft.items.get(name)
    if refusal := ended(draft, f"{verb} of") or stopping(draft, f"{verb} of"):
        return refusal
    if row is None or unit is None or not reviews.is_open(unit, row):
        return _decided(draft, verb, name)
    if event.fingerprint != row.draft.sha256:
        return _fingerprint(draft, verb, row, event.fingerprint)
    if decision == rounds.EDIT and not row.edit:
        return refused(draft, verb, "no_edit", "its workflow does not let a reviewer change the text")
    if refusal := deciders.objection(draft, verb, event.facts, event.by, yes=decision in rounds.YES):
        return refusal
    assert event.facts is not None
    row = _open_round(draft, row, event.facts)
    if decision in rounds.YES:
        return _yes(draft, unit, row, decision, event, event.facts)
    rounds.decided(draft, row.unit, row.gate, decision, event, event.facts, scope=rounds.DRAFT)
    if decision == rounds.SEND_BACK:
        unit = replaced(enter(unit, row.step, data=unit.data), note=event.reason)
    else:
        said = event.reason or f"its draft was refused by {event.by.name}"
        unit = replaced(unit, state=ItemState.FAILED, code="refused", reason=said)
    draft.put(unit)
    # Kept until the step has decided anew: the next draft is the next revision.
    reviews.put(draft, evolve(row, decision=decision, by=event.by.name, led=unit.occurrence))
    settle(draft)
    return f"{PAST[decision]} the draft of {name}"


def _open_round(draft: Draft, row: Review, facts: Facts) -> Review:
    """The round that a decision falls into."""
    given = rounds.given(draft.approvals_of(row.unit), row.gate)
    why = rounds.lapse_of(row.gate, given) if rounds.is_over(draft, row.gate) else ""
    if not why and any(each.policy_version != facts.policy for each in given):
        why = rounds.POLICY
    if not why:
        return row
    return evolve(row, gate=rounds.anew(draft, row.gate, why, facts.rule, facts.policy))


def _yes(draft: Draft, unit: Item, row: Review, decision: str, event: Event, facts: Facts) -> str:
    """One yes more; with enough of them the item goes on. What one of them changed, all others look at."""
    text = getattr(event, "text", None)
    if decision == rounds.EDIT and text is not None:
        if rounds.given(draft.approvals_of(row.unit), row.gate):
            row = evolve(row, gate=rounds.anew(draft, row.gate, rounds.EDITED, facts.rule, facts.policy))
        row = evolve(row, draft=_revision(draft, row, text, event.by.name), editor=event.by.name)
    accepted = row.draft.sha256
    rounds.decided(draft, row.unit, row.gate, decision, event, facts, scope=rounds.DRAFT, accepted=accepted)
    given = rounds.given(draft.approvals_of(row.unit), row.gate)
    gate = rounds.counted(draft, row.gate, facts.rule, given)
    row = evolve(row, gate=gate)
    count = len({each.uid for each in given})
    if gate.met is None:
        reviews.put(draft, row)
        settle(draft)
        return f"{PAST[decision]} the draft of {row.unit}, {count} of {facts.rule.quorum}"
    for each in given:
        draft.approvals[each.id] = evolve(each, spent=draft.now, operation_key=row.draft.sha256)
    word = rounds.EDIT if row.editor else rounds.ACCEPT
    row = evolve(row, decision=word, by=event.by.name)
    reviews.put(draft, row)
    reviews.led(draft, unit, row)
    settle(draft)
    return f"{PAST[decision]} the draft of {row.unit}"


def _revision(draft: Draft, row: Review, text: Artifact, editor: str) -> Artifact:
    """The edited text, as the next revision of the draft."""
    made = Provenance(job=draft.job.id, item=row.unit, step=row.step, attempt=draft.epoch, editor=editor)
    return evolve(text, name=row.draft.name, revision=row.draft.revision + 1, provenance=made)


def _known(draft: Draft, unit: str, decision: str, event: Event) -> Unchanged | None:
    """The answer to a decision that this person has made already about the same revision."""
    text: Artifact | None = getattr(event, "text", None)
    row, item = draft.reviews.get(unit), draft.items.get(unit)
    waits = row is not None and reviews.is_open(item, row)
    for each in reversed(draft.approvals_of(unit)):
        same = each.uid == event.by.uid and each.decision == decision
        if not same or not event.fingerprint or each.fingerprint != event.fingerprint:
            continue
        if decision == rounds.EDIT and (text is None or each.operation_key != text.sha256):
            continue
        if waits and row is not None and each.round != row.gate.round:
            return None
        return Unchanged(reason=f"the draft of {unit} is {_told(each, 'you')}")
    return None


def _told(row: Approval, by: str) -> str:
    return f"{PAST.get(row.decision, row.decision)} already by {by}, at {moment(row.given.wall)}"


def _decided(draft: Draft, verb: str, unit: str) -> Refusal:
    """It comes too late; who won is named."""
    rows = draft.approvals_of(unit)
    last = [each for each in rows if each.round == rows[-1].round]
    words = "; ".join(_told(each, f"{each.reviewer} (uid {each.uid})") for each in last)
    said = words or "no draft of it waits to be looked at"
    return refused(draft, verb, "decided", said, f"resumectl show {draft.job.id}")


def _fingerprint(draft: Draft, verb: str, row: Review, named: str) -> Refusal:
    what = f"what was looked at is not what is asked (got {named[:80]!r})"
    if not named or set(named) & set("*?%"):
        what = f"no fingerprint of what was shown was named (got {named[:80]!r})"
    reason = f"{what}; it asks now about revision {row.draft.revision}, fingerprint {row.draft.sha256}"
    now = asks.short(draft.job.id, AskKind.REVIEW, row.unit, row.gate.round)
    return refused(draft, verb, "fingerprint", reason, f"resumectl inbox {now}")
