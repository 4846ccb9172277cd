"""The law of approvals: one decision on one effect, spent once, on one operation key.

It is judged when it comes in, and once more (`judge`) in the commit that lets the effect go. A yes that does
not hold any more sends the effect back to its gate; it is never stretched.
"""

from enum import StrEnum

from attrs import evolve, frozen

from resumed.schemas import conditions, keys
from resumed.schemas.approvals import ApprovalRule, Facts, Gate, Policy
from resumed.schemas.instant import Instant, reached
from resumed.schemas.ledger import Approval, Effect, EffectState, ToolContract
from resumed.schemas.snapshot import Snapshot

from . import deciders, reckoning, rounds
from .draft import Draft


class Word(StrEnum):
    """What becomes of an effect that is about to be let go."""

    GO = "go"
    """It may go: its approvals are to be spent in the same commit."""
    UNASKED = "unasked"
    """Nobody has allowed it yet; it stays as it is."""
    ANEW = "anew"
    """What allowed it does so no more: it is asked anew, `code` says why."""
    HOLD = "hold"
    """Nobody can tell now, or the requester may not any more; `code` and `reason` say what is held."""
    CHANGED = "changed"
    """It is not what its fingerprint says any more."""


@frozen(kw_only=True)
class Judgement:
    """The word, and for people why; `spends` are the approvals that let it go."""

    word: Word
    code: str = ""
    reason: str = ""
    spends: tuple[Approval, ...] = ()


# ---- the gate ---------------------------------------------------------------------------------------------


def rule_of(tool: ToolContract) -> ApprovalRule:
    """Who must allow a call of the tool, by its contract; of one that asks nobody, the rule for repeats."""
    return tool.approve or ApprovalRule()


def may_ask_nobody(tool: ToolContract) -> bool:
    """Whether its contract leaves a call of it that nobody is asked about."""
    return tool.approve is None or bool(tool.approve.when)


def gate_of(
    draft: Draft, tool: ToolContract, arguments: str, policies: tuple[Policy, ...] = (), again: str = ""
) -> Gate | None:
    """The first round for a new call; None where nobody is asked.

    A call that would repeat a confirmed one (`again`) is asked about whatever its contract says.
    """
    if not again and (tool.approve is None or not conditions.holds(tool.approve.when, arguments)):
        return None
    return rounds.begun(draft, *rounds.in_force(tool.tool, rule_of(tool), policies))


def is_met(effect: Effect) -> bool:
    """Whether nobody has to be asked any more, as far as the record can tell."""
    return effect.gate is None or effect.gate.met is not None


def ask_anew(draft: Draft, effect: Effect, why: str, reason: str = "", facts: Facts | None = None) -> Effect:
    """The effect back at its gate, in the next round, and laid over the draft; one without stays as it is."""
    if effect.gate is None:
        return effect
    rule, policy = (None, "") if facts is None or facts.problem else (facts.rule, facts.policy)
    gate = rounds.anew(draft, effect.gate, why, rule, policy)
    said = reason or rounds.WHYS.get(why, "")
    effect = evolve(effect, state=EffectState.PROPOSED, gate=gate, code=why, reason=said)
    draft.put_effect(effect)
    return effect


def _at_gate(standing: Snapshot | Draft) -> list[Effect]:
    """Effects that stand at a gate, met or not; in no order."""
    table = standing.effects
    rows = [table[name] for name in table.unsettled]
    return [row for row in rows if row.state is EffectState.PROPOSED and row.gate is not None]


def lapse(draft: Draft) -> int:
    """Every round whose time has passed is followed by another; how many there were."""
    count = 0
    for effect in sorted(_at_gate(draft), key=lambda row: row.id):
        if effect.gate is not None and rounds.is_over(draft, effect.gate):
            _renewed(draft, effect, effect.gate)
            count += 1
    return count


def _renewed(draft: Draft, effect: Effect, gate: Gate) -> Effect:
    rows = rounds.given(draft.approvals_of(effect.id), gate)
    return ask_anew(draft, effect, rounds.lapse_of(gate, rows))


def next_lapse(standing: Snapshot | Draft) -> Instant | None:
    """When the first of these rounds is over; None when none will be."""
    return standing.effects.first_lapse()


def extended(draft: Draft) -> None:
    """The job's limits were changed: what had been said yes to under the old ones is asked anew."""
    for effect in _at_gate(draft):
        if effect.gate is not None and rounds.given(draft.approvals_of(effect.id), effect.gate):
            ask_anew(draft, effect, rounds.EXTENDED)


# ---- judged again, in the commit that lets it go ----------------------------------------------------------


def judge(draft: Draft, effect: Effect, facts: Facts | None) -> Judgement:
    """What becomes of an effect that is about to be let go, or sent again, as far as people have a say in it.

    Approvals spent on this very operation key count again. Sources, deadline, cancel and what the target
    looks like are not judged here.
    """
    tool = draft.contract.tool(effect.tool)
    if tool is None or keys.fingerprint(effect, tool) != effect.fingerprint:
        said = f"{effect.tool} is not what it was when {effect.id} was asked for"
        return Judgement(word=Word.CHANGED, code="changed", reason=said)
    if facts is None or facts.problem:
        return _unknown(facts.problem if facts is not None else "nobody could say who may")
    if facts.requester is None:
        return _unknown("nobody can tell now whether its requester may still hand in such a job")
    if not facts.requester:
        said = f"{draft.job.requester}, who asked for it, may not hand in such a job any more"
        return Judgement(word=Word.HOLD, code="access", reason=said)
    if effect.gate is None:
        return Judgement(word=Word.GO)
    if effect.gate.met is None:
        return Judgement(word=Word.UNASKED, code="approval", reason=f"{effect.id} is not approved")
    return _judged(draft, effect, effect.gate, facts)


def _unknown(reason: str) -> Judgement:
    return Judgement(word=Word.HOLD, code=deciders.NAMES, reason=reason)


def _anew(code: str, reason: str = "") -> Judgement:
    return Judgement(word=Word.ANEW, code=code, reason=reason or rounds.WHYS[code])


def _judged(draft: Draft, effect: Effect, gate: Gate, facts: Facts) -> Judgement:
    rows = [
        row
        for row in rounds.given(draft.approvals_of(effect.id), gate)
        if row.fingerprint == effect.fingerprint
        and (row.spent is None or row.operation_key == effect.operation_key)
    ]
    ends = [row.valid_until for row in rows if row.valid_until is not None]
    if any(reached(end, draft.then) for end in ends) or _is_out_of_sight(draft, ends):
        return _anew(rounds.EXPIRED)
    if doubt := _doubt(draft, ends):
        return Judgement(word=Word.HOLD, code=reckoning.CLOCK, reason=doubt)
    if any(row.policy_version != facts.policy for row in rows):
        return _anew(rounds.POLICY)
    code, said = deciders.fallen(facts, [row.uid for row in rows])
    if code == deciders.NAMES:
        return _unknown(said)
    if code:
        return _anew(code, said)
    if len({row.uid for row in rows}) < facts.rule.quorum:
        return _anew(rounds.POLICY)
    return Judgement(word=Word.GO, spends=tuple(rows))


def _is_out_of_sight(draft: Draft, ends: list[Instant]) -> bool:
    """Whether a person has said to go on without knowing the time, in another boot than a yes was given in:
    no override stands in for an approval (DESIGN.md section 2)."""
    clocks = reckoning.observed(draft, draft.now) or draft.clocks
    if clocks is None or not clocks.accepted or reckoning.sight(draft, draft.now).known:
        return False
    return any(end.boot != draft.now.boot for end in ends)


def _doubt(draft: Draft, ends: list[Instant]) -> str:
    """Why the clocks do not say that a yes is still good; empty when they do."""
    clocks = reckoning.observed(draft, draft.now) or draft.clocks
    if not ends or (clocks is not None and clocks.accepted):
        return ""
    seen = reckoning.sight(draft, draft.now)
    if not seen.known:
        return "nobody can tell whether its approval is still good: this boot's wall clock is behind"
    if seen.ahead > 0 and any(draft.now.wall >= end.wall for end in ends):
        return "only a wall clock that was set forward says that its approval is good no longer"
    return ""


def spend(draft: Draft, effect: Effect, judgement: Judgement) -> None:
    """The approvals are spent on the effect's operation key; those that are already, stay as they are."""
    for row in judgement.spends:
        if row.spent is None:
            draft.approvals[row.id] = evolve(row, spent=draft.now, operation_key=effect.operation_key)


def unspend(draft: Draft, effect: Effect) -> None:
    """Surely nothing was sent: what was spent on this key may let it go once more, and is judged again."""
    for row in draft.approvals_of(effect.id):
        if row.spent is not None and row.operation_key == effect.operation_key and is_of(row, effect):
            draft.approvals[row.id] = evolve(row, spent=None, operation_key="")


def is_of(row: Approval, effect: Effect) -> bool:
    """Whether a decision is of the round that stands now."""
    return effect.gate is not None and row.round == effect.gate.round
