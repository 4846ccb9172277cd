"""Rounds of asking: a gate is asked at one instant, stands for so long, and is asked anew when it is over.

A yes is good in its own round alone. Nothing here is ever granted by time: a round that is over is followed
by another one, with the reason.
"""

from attrs import evolve

from resumed.schemas import events, keys
from resumed.schemas.approvals import ApprovalRule, Facts, Gate, Policy
from resumed.schemas.instant import Instant, reached
from resumed.schemas.ledger import Approval

from .draft import Draft

APPROVE, DENY, SEND_BACK, ACCEPT, EDIT, REFUSE = "approve", "deny", "send_back", "accept", "edit", "refuse"
YES = frozenset({APPROVE, ACCEPT, EDIT})
"""Decisions that count towards a quorum; each other one ends the question at once."""

Decision = events.Approve | events.Deny | events.SendBack
"""What a person says of one effect or draft."""
EFFECT, DRAFT = "effect", "draft"
"""What one decision covers: one effect, or one draft."""
LAPSED, EXPIRED, REVOKED, POLICY = "lapsed", "expired", "revoked", "policy"
MEMBER, EXTENDED, ABSENT, EDITED = "member", "extended", "absent", "edited"
WHYS: dict[str, str] = {
    LAPSED: "nobody had decided in time",
    EXPIRED: "the yes that was given was good no longer",
    REVOKED: "the yes was taken back",
    POLICY: "the rule of who may allow it has changed",
    MEMBER: "who had said yes may not decide any more",
    EXTENDED: "the job's limits were changed after the yes",
    ABSENT: "a person said that it never arrived, and it would be sent again",
    EDITED: "the draft was edited after a yes",
}
"""Why a question is asked anew, for people."""


def in_force(
    tool: str, stated: ApprovalRule | None, policies: tuple[Policy, ...]
) -> tuple[ApprovalRule, str]:
    """The rule for one tool and its digest: as it is in force, else as its contract states it."""
    for each in policies:
        if each.tool == tool:
            return each.rule, each.policy
    rule = stated or ApprovalRule()
    return rule, keys.policy(rule)


def begun(draft: Draft, rule: ApprovalRule, policy: str) -> Gate:
    """The first round."""
    return Gate(
        asked=draft.now,
        policy=policy,
        within=rule.decide_within,
        until=draft.ahead(rule.decide_within),
    )


def anew(draft: Draft, gate: Gate, why: str, rule: ApprovalRule | None = None, policy: str = "") -> Gate:
    """The next round; by the rule in force now, as far as it is known, else for as long as the last one."""
    within = gate.within if rule is None else rule.decide_within
    return Gate(
        round=gate.round + 1,
        asked=draft.now,
        policy=policy or gate.policy,
        why=why,
        within=within,
        until=draft.ahead(within),
    )


def is_over(draft: Draft, gate: Gate) -> bool:
    """Whether the time of the round has passed, on the clocks that limits are kept by."""
    return gate.until is not None and reached(gate.until, draft.then)


def lapse_of(gate: Gate, given: list[Approval]) -> str:
    """Why a round whose time has passed is over."""
    return EXPIRED if gate.met is not None or given else LAPSED


def given(rows: list[Approval], gate: Gate) -> list[Approval]:
    """What was said yes to in this round and not taken back."""
    return [row for row in rows if row.round == gate.round and row.decision in YES and row.revoked is None]


def decided(
    draft: Draft,
    subject: str,
    gate: Gate,
    decision: str,
    event: Decision,
    facts: Facts,
    *,
    scope: str,
    accepted: str = "",
) -> None:
    """The row of one decision in this round, laid over the draft. The event's fingerprint was found to be the
    one of what is asked; `accepted` is the sha256 of the revision of a draft that it is a yes to."""
    by = event.by
    row = Approval(
        id=f"{subject}/{gate.round}/{by.uid}",
        effect=subject,
        fingerprint=event.fingerprint,
        reviewer=by.name,
        uid=by.uid,
        groups=facts.names,
        via=by.via,
        decision=decision,
        scope=scope,
        policy_version=facts.policy,
        given=draft.now,
        valid_until=draft.ahead(facts.rule.valid_for) if decision in YES else None,
        reason=event.reason,
        shown=getattr(event, "shown", ""),
        round=gate.round,
        operation_key=accepted,
        same_user=by.uid == facts.jobs_uid,
    )
    draft.approvals[row.id] = row


def counted(draft: Draft, gate: Gate, rule: ApprovalRule, rows: list[Approval]) -> Gate:
    """The gate after one more yes: met when enough different people have said so, and over when the first of
    their words is good no longer."""
    ends = [row.valid_until for row in rows if row.valid_until is not None]
    is_met = len({row.uid for row in rows}) >= rule.quorum
    limits = ends if is_met or gate.until is None else [*ends, gate.until]
    until: Instant | None = min(limits, key=lambda at: at.wall) if limits else None
    return evolve(gate, met=draft.now if is_met else None, until=until)
