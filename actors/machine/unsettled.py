"""What is not settled: what a wake makes of it, what a person says of it, and how it holds its job.

A wake never takes a send for granted either way. A person's word is one way to settle what nobody else can;
it is bound to the row as it was shown, and it is recorded who said it.
"""

from attrs import evolve

from resumed.schemas import events
from resumed.schemas.askviews import AskKind
from resumed.schemas.ledger import SETTLED, Effect, EffectState, ErrandKind
from resumed.schemas.refusal import Refusal

from . import approvals, asks, dispatch, errands, outcomes, reconcile, reconciling
from .draft import Draft
from .settle import settle
from .verdict import Unchanged

# ---- at a wake --------------------------------------------------------------------------------------------


def woke(draft: Draft, event: events.Woke) -> None:
    """Nobody works on the job any more: open errands are over, and what was being sent may have left."""
    for name, row in draft.errands.items():
        draft.errands = {each: open_ for each, open_ in draft.errands.items() if each != name}
        reason = "the daemon, or the machine, ended while it was under way"
        outcomes.ended(draft, draft.effects[name], row, reason, quiet=False, began=True)
    for effect in draft.effects.open():
        if effect.state is EffectState.DISPATCHING:  # also one without an errand, whatever has become of it
            reconcile.lost(draft, effect, "no_answer", "its sender is gone")
    if event.torn:
        torn(draft)


def torn(draft: Draft) -> None:
    """A line may have been lost. It can have let go what stood here with all gates met, or sent anew what was
    unknown: nothing of it is sent before its target was asked, and not before it can have arrived. What a try
    that was open asks for next, the same line can have asked for, and let go at once: its unit bears a mark.
    """
    for effect in draft.effects.live():
        contract = draft.contract.tool(effect.tool)
        if contract is None:
            continue
        if effect.state is EffectState.UNKNOWN:
            reconcile.lost(draft, effect, effect.code, effect.reason or "a line of its job was lost")
        else:
            reconcile.doubt(draft, effect, contract)


def proven(draft: Draft) -> None:
    """A person says that nothing of the job runs any more: only now does the time in flight begin."""
    for effect in draft.effects.live():
        if effect.state is EffectState.UNKNOWN:
            reconcile.lost(draft, effect, effect.code, effect.reason)


def troubled(draft: Draft, reason: str) -> int:
    """No worker can be had: what would be asked about now was asked about in vain, so that it is not asked
    again at once. How many there were."""
    found = errands.wanted(draft, draft.now)
    for effect, kind in found:
        if kind is ErrandKind.LOOK_UP:
            reconcile.unclear(draft, effect, reason)
        elif kind is ErrandKind.CHECK:
            dispatch.failed_check(draft, effect, reason)
        else:
            draft.put_effect(evolve(effect, not_before=draft.ahead(reconcile.FIRST)))
    return len(found)


# ---- a person's word --------------------------------------------------------------------------------------


def say(draft: Draft, event: events.Settle) -> str | Refusal | Unchanged:
    """A person says what became of an effect: it landed, or it never arrived."""
    effect = draft.effects.get(event.subject)
    if effect is None:
        meant = asks.resolve(draft, "settle", event.subject, frozenset({AskKind.SETTLE}))
        if isinstance(meant, Refusal):
            return meant
        effect = draft.effects[meant.subject]
    by = f"{event.by.name} (uid {event.by.uid})"
    if effect.state is EffectState.CONFIRMED and effect.hold is None and effect.reference == event.reference:
        return Unchanged(
            reason=f"{effect.id} is confirmed already as {effect.reference}, by {effect.confirmed_by}"
        )
    if effect.state in SETTLED and effect.hold is not None:
        draft.put_effect(evolve(effect, hold=None))
        if not draft.has_ended():
            settle(draft)
        return "settled: taken note of"
    if event.reference == "":
        return _refused(draft, effect, "no_reference", "say under which reference of its target it landed")
    if not _is_open(effect):
        return _refused(
            draft, effect, "effect_state", f"it is {effect.state}, expected unknown or dispatching"
        )
    if event.reference is not None:
        reconcile.found(draft, effect, event.reference, by)
        choice = "landed"
    else:
        if effect.state is EffectState.DISPATCHING:
            return _refused(
                draft, effect, "under_way", "it is being sent now; its answer, or its time limit, comes"
            )
        _never_arrived(draft, effect, by)
        choice = "absent"
    settle(draft)
    return f"settled: {choice}"


def _is_open(effect: Effect) -> bool:
    """Whether a person's word is wanted: it may have left, or what is said of it does not agree."""
    if effect.state in (EffectState.UNKNOWN, EffectState.DISPATCHING):
        return True
    return effect.state is EffectState.PROPOSED and (effect.suspect or errands.wants_word(effect))


def _never_arrived(draft: Draft, effect: Effect, by: str) -> None:
    """It is as if it had never been sent, under the same key; where people are asked, they are asked anew.

    What lay under its key before it was ever sent is another's, by this word, and holds it no more.
    """
    effect = evolve(
        effect,
        state=EffectState.PROPOSED,
        hold=None,
        not_before=None,
        absent=False,
        resend=False,
        unproven=False,
        suspect=False,
        renewed=False,
        foreign=effect.foreign if effect.found is None else effect.found,
        found=None,
        unclear=0,
        code="absent",
        reason=f"{by} said that it never arrived",
    )
    draft.put_effect(effect)
    approvals.ask_anew(draft, effect, "absent", effect.reason)


def _refused(draft: Draft, effect: Effect, code: str, reason: str) -> Refusal:
    job = draft.job.id
    said = f"cannot settle {effect.id} of {job}: {reason}"
    return Refusal(code=code, reason=said, commands=(f"resumectl show {job}",))


def resumed(draft: Draft) -> Refusal | None:
    """A person lets the job go on: what was held without having left is tried again, and evidence is taken
    note of. Refused where all that holds the job is what may have left."""
    found = reconciling.resumable(draft)
    for effect in found:
        draft.put_effect(evolve(effect, hold=None, not_before=None, unclear=0))
    if found or not draft.effects.held:
        return None
    job, name = draft.job.id, min(draft.effects.held)
    effect = draft.effects[name]
    return Refusal(
        code="unsettled",
        reason=f"cannot resume {job}: nobody can tell yet what became of {name}",
        commands=reconciling.settling(job, effect),
    )
