"""What people decide about effects: allow, deny, send back, take back; each is recorded once.

Whoever comes too late is told who won. The same decision made again gets the answer that it had.
"""

from attrs import evolve

from resumed.schemas import events
from resumed.schemas.approvals import Facts, Gate
from resumed.schemas.askviews import AskKind
from resumed.schemas.instant import moment
from resumed.schemas.ledger import Approval, Effect, EffectState
from resumed.schemas.refusal import Refusal

from . import asks, deciders, rounds
from .approvals import ask_anew, is_of
from .deciders import refused
from .draft import Draft
from .requests import ended, stopping
from .settle import settle
from .verdict import Unchanged

Choice = str | Refusal | Unchanged

WITHDRAWN_BY = {rounds.DENY: "denied", rounds.SEND_BACK: "sent_back"}
"""Decisions that withdraw an effect, and the code that it bears then."""
PAST = {rounds.APPROVE: "approved", rounds.DENY: "denied", rounds.SEND_BACK: "sent back"}


def decide(draft: Draft, effect: Effect, decision: str, event: rounds.Decision) -> Choice:
    """One person's decision on one effect, as it was shown to them."""
    verb = f"{decision.replace('_', ' ')} {effect.id}"
    if refusal := _fingerprint(draft, verb, effect, event.fingerprint):
        return _decided(draft, verb, effect) or refusal  # what is asked no more asks for nothing else either
    if (known := _known(draft, effect, decision, event.by.uid)) is not None:
        return known
    if (
        refusal := ended(draft, f"{verb} of")
        or _decided(draft, verb, effect)
        or stopping(draft, f"{verb} of")
    ):
        return refusal
    gate = effect.gate
    if gate is None:
        return refused(draft, verb, "not_asked", "its contract asks nobody")
    if isinstance(event, events.Approve) and event.text is not None:
        said = "a call is allowed as it is, or not: send it back to have it made anew"
        return refused(draft, verb, "no_edit", said)
    yes = decision in rounds.YES
    if refusal := deciders.objection(draft, verb, event.facts, event.by, yes=yes):
        return refusal
    facts = event.facts
    assert facts is not None
    effect, gate = _open_round(draft, effect, gate, facts)
    rounds.decided(draft, effect.id, gate, decision, event, facts, scope=rounds.EFFECT)
    if yes:
        rows = rounds.given(draft.approvals_of(effect.id), gate)
        gate = rounds.counted(draft, gate, facts.rule, rows)
        draft.put_effect(evolve(effect, gate=gate, code="", reason=""))
        settle(draft)
        count = len({each.uid for each in rows})
        return f"approved {effect.id}" + ("" if gate.met else f", {count} of {facts.rule.quorum}")
    draft.put_effect(
        evolve(
            effect,
            state=EffectState.WITHDRAWN,
            settled=draft.now,
            hold=None,
            suspect=False,
            renewed=False,
            code=WITHDRAWN_BY[decision],
            reason=event.reason,
        )
    )
    settle(draft)
    return f"{PAST[decision]} {effect.id}"


def _open_round(draft: Draft, effect: Effect, gate: Gate, facts: Facts) -> tuple[Effect, Gate]:
    """The round that a decision falls into: the next one where this one's time is over, or where a yes in it
    was given under another rule."""
    rows = rounds.given(draft.approvals_of(effect.id), gate)
    if rounds.is_over(draft, gate):
        effect = ask_anew(draft, effect, rounds.lapse_of(gate, rows), "", facts)
    elif any(row.policy_version != facts.policy for row in rows):
        effect = ask_anew(draft, effect, rounds.POLICY, "", facts)
    assert effect.gate is not None
    return effect, effect.gate


def _fingerprint(draft: Draft, verb: str, effect: Effect, named: str) -> Refusal | None:
    """Why the fingerprint that a decision names is not the one of what is asked; None when it is."""
    if named == effect.fingerprint:
        return None
    said = f"no fingerprint of what was shown was named (got {named[:80]!r})"
    if named and not set(named) & set("*?%"):
        said = f"what was decided on is not what is asked (got {named[:80]!r})"
    asked = f"{effect.tool} to {effect.target} with {effect.arguments[:400]}"
    reason = f"{said}; it asks now for {asked}, fingerprint {effect.fingerprint}"
    now = asks.short(draft.job.id, AskKind.APPROVE, effect.id, effect.gate.round if effect.gate else 0)
    return refused(
        draft, verb, "fingerprint", reason, f"resumectl inbox {now}" if effect.gate else "resumectl inbox"
    )


def _known(draft: Draft, effect: Effect, decision: str, uid: int) -> Unchanged | None:
    """The answer to a decision that this person has made already, and that stands or was spent."""
    mine = [
        row
        for row in draft.approvals_of(effect.id)
        if row.uid == uid and row.decision == decision and row.fingerprint == effect.fingerprint
    ]
    if not mine or mine[-1].revoked is not None:
        return None
    row, gate = mine[-1], effect.gate
    waits = effect.state is EffectState.PROPOSED and gate is not None
    if waits and gate is not None and (row.round != gate.round or rounds.is_over(draft, gate)):
        return None  # its round is over: it is asked anew, and may be allowed anew
    return Unchanged(reason=f"{effect.id} is {_told(row, 'you')}{_became(row, effect)}")


def _told(row: Approval, by: str) -> str:
    return f"{PAST.get(row.decision, row.decision)} already by {by}, at {moment(row.given.wall)}"


def _became(row: Approval, effect: Effect) -> str:
    """What came of a yes, for whoever gives it again."""
    if row.spent is None:
        return ""
    said = f"; spent on key {row.operation_key[:16]} at {moment(row.spent.wall)}, {effect.state}"
    return f"{said} as {effect.reference}" if effect.reference else said


def _decided(draft: Draft, verb: str, effect: Effect) -> Refusal | None:
    """Why a decision comes too late, naming what was decided; None when it is still asked."""
    gate = effect.gate
    if effect.state is EffectState.PROPOSED and (
        gate is None or gate.met is None or rounds.is_over(draft, gate)
    ):
        return None
    rows = [row for row in draft.approvals_of(effect.id) if is_of(row, effect) and row.revoked is None]
    words = "; ".join(_told(row, f"{row.reviewer} (uid {row.uid})") + _became(row, effect) for row in rows)
    if effect.state is EffectState.WITHDRAWN and not any(row.decision in WITHDRAWN_BY for row in rows):
        words = f"it was withdrawn ({effect.code}): {effect.reason}".rstrip(": ")
    return refused(draft, verb, "decided", words or f"it is {effect.state}", f"resumectl show {draft.job.id}")


def revoke(draft: Draft, effect: Effect, event: events.Revoke) -> Choice:
    """A yes is taken back before it is spent, by who gave it or by an operator: it is asked anew."""
    verb = f"revoke the approval of {effect.id}"
    rows = draft.approvals_of(effect.id)
    mine = [row for row in rows if row.uid == event.by.uid]
    gate = effect.gate
    live = [] if gate is None else rounds.given(rows, gate)
    if effect.state is not EffectState.PROPOSED or any(row.spent is not None for row in live):
        return _decided(draft, verb, effect) or refused(draft, verb, "decided", f"it is {effect.state}")
    if refusal := deciders.unplaced(draft, verb, event.facts, event.by):
        return refusal
    assert event.facts is not None
    own = [row for row in live if row.uid == event.by.uid]
    if not own:
        if mine and mine[-1].revoked is not None and not live:
            return Unchanged(reason=f"your yes to {effect.id} is taken back already")
        if refusal := _no_operator(draft, verb, event.facts, event, live):
            return refusal
    if refusal := ended(draft, f"{verb} of") or stopping(draft, f"{verb} of"):
        return refusal
    for row in own or live:
        draft.approvals[row.id] = evolve(row, revoked=draft.now)
    ask_anew(draft, effect, rounds.REVOKED, event.reason, event.facts)
    settle(draft)
    return f"revoked the approval of {effect.id}"


def _no_operator(
    draft: Draft, verb: str, facts: Facts, event: events.Revoke, live: list[Approval]
) -> Refusal | None:
    if not live:
        return refused(draft, verb, "not_approved", "nobody has approved it in this round", "resumectl inbox")
    today = deciders.standing_of(facts, event.by.uid)
    if today is None or today.roles is None:
        return refused(
            draft, verb, deciders.NAMES, "nobody can tell now whether you are an operator; ask again"
        )
    if deciders.OPERATOR not in today.roles:
        names = ", ".join(f"{row.reviewer} (uid {row.uid})" for row in live)
        return refused(draft, verb, "not_yours", f"it was given by {names}; only they or an operator may")
    return None
