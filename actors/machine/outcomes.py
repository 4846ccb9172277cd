"""What comes of errands: a slot is given for one, a worker answers, or it ends without an answer.

The first answer of an open errand counts. Every other one is evidence: it changes nothing but that a job with
a landing on record that cannot be true together with the rest is held.
"""

from resumed.schemas import decisions, events
from resumed.schemas.job import StopReason
from resumed.schemas.ledger import Effect, EffectState, Errand, ErrandKind
from resumed.schemas.records import replaced

from . import dispatch, due, errands, limits, reconcile
from .draft import Draft
from .settle import settle
from .verdict import Unchanged

Choice = str | Unchanged

QUIET = frozenset({StopReason.SHUTDOWN, StopReason.HOLD, StopReason.PAUSE, StopReason.CANCEL})
"""Why an errand was stopped that says nothing about its target."""
_STANDS = {ErrandKind.CHECK: EffectState.PROPOSED, ErrandKind.SEND: EffectState.DISPATCHING}
"""How an effect stands while such an errand about it is open."""


def _is_awaited(effect: Effect, row: Errand) -> bool:
    """Whether the effect stands as it did when the errand was opened: where it does not, a person, or the
    end of the job, has settled it meanwhile."""
    if row.kind is ErrandKind.LOOK_UP:
        return effect.state is EffectState.UNKNOWN or effect.suspect
    return effect.state is _STANDS[row.kind]


def grant(draft: Draft, event: events.Grant) -> Choice:
    """A slot is given: the errand starts, if it still may; a send is judged in this commit."""
    name = errands.effect_of(event.unit)
    found = [each for each in errands.wanted(draft, draft.now) if each[0].id == name]
    if not found:
        return Unchanged(reason="the errand is no longer wanted")
    effect, kind = found[0]
    if kind is ErrandKind.SEND:
        choice = dispatch.let_go(draft, effect, event.worker, event.facts)
    else:
        contract = draft.contract.tool(effect.tool)
        assert contract is not None
        dispatch.open_errand(draft, effect, contract, kind, event.worker)
        choice = kind.value
    settle(draft)
    return choice


def _closed(draft: Draft, unit: str, epoch: int, number: int) -> tuple[Effect, Errand] | None:
    """The effect and its open errand, which is closed; None when no such errand is open."""
    name = errands.effect_of(unit)
    row, effect = draft.errands.get(name), draft.effects.get(name)
    if row is None or effect is None or (row.epoch, row.number) != (epoch, number):
        return None
    draft.errands = {each: open_ for each, open_ in draft.errands.items() if each != name}
    return effect, row


def returned(draft: Draft, event: events.Returned) -> Choice:
    """A worker answered an errand."""
    found = None if event.late else _closed(draft, event.unit, event.epoch, event.number)
    if found is None:
        return stale(draft, event)
    effect, row = found
    used = event.answer.used
    if used is not None and not limits.fault_of(used):
        limits.spend(draft, used)
    decided = event.answer.decided
    if not _is_awaited(effect, row):
        contradicts(draft, effect, decided)
        settle(draft)
        return Unchanged(reason=f"{effect.id} is {effect.state} by now")
    effect = reconcile.kept(effect, event.kept[0] if event.kept else None)
    slot = row.worker if event.slot else ""
    if row.kind is ErrandKind.SEND:
        choice: Choice = _sent(draft, effect, decided)
    elif row.kind is ErrandKind.LOOK_UP:
        choice = _looked_up(draft, effect, decided)
    elif isinstance(decided, decisions.Checked):
        choice = dispatch.checked(draft, effect, decided, slot, event.facts)
    else:
        choice = dispatch.failed_check(draft, effect, f"it answered {type(decided).__name__}")
    settle(draft)
    # A workflow whose workers hold several tries has workers of their own for errands.
    if slot and effect.id not in draft.errands and draft.contract.slots == 1:
        _follow(draft, row.worker)
    return choice


def _follow(draft: Draft, worker: str) -> None:
    """The slot that is free now takes the job's next try."""
    for name in due.wanted(draft, draft.now, 1):
        unit = draft.unit(name)
        if unit is not None and unit.crashes < due.SUSPECT_CRASHES:
            draft.start(unit, worker)


def _sent(draft: Draft, effect: Effect, decided: decisions.Decided) -> str:
    """What its target answered to a send; all that is not surely one thing is unknown."""
    if isinstance(decided, decisions.Landed) and decided.reference == effect.foreign:
        # Its target knows the key of what lay there before: this call was taken for that one.
        said = f"its target answered with {decided.reference}, which was there before and is not of it"
        reconcile.lost(draft, effect, "unsure", said)
        contract, effect = draft.contract.tool(effect.tool), draft.effects[effect.id]
        effect = reconcile.held(draft, replaced(effect, resend=False), contract, errands.CONFLICT, said)
        draft.put_effect(effect)
        return "held: conflict"
    if isinstance(decided, decisions.Landed):
        reconcile.found(draft, effect, decided.reference, "send")
        return "confirmed"
    if isinstance(decided, decisions.Refused) and not effect.unproven:
        draft.put_effect(
            replaced(
                effect,
                state=EffectState.REJECTED,
                settled=draft.now,
                code="refused",
                reason=decided.reason or "its target refused it",
            )
        )
        return "rejected"
    if isinstance(decided, decisions.NotSent):
        dispatch.not_sent(draft, effect, decided.reason, decided.seconds)
        return "not sent"
    said = getattr(decided, "reason", "") or f"its sender answered {type(decided).__name__}"
    if isinstance(decided, decisions.Refused):
        said = f"refused ({said}); an earlier send of it may have landed"
    reconcile.lost(draft, effect, "unsure", said)
    return "unknown"


def _looked_up(draft: Draft, effect: Effect, decided: decisions.Decided) -> str:
    if isinstance(decided, decisions.Landed) and decided.reference == effect.foreign:
        # It lay there before, and a person has said that it is another's: whether ours landed it cannot tell.
        said = f"its target has {decided.reference}, which was there before and is not of it"
        reconcile.unclear(draft, effect, said)
        return "unclear"
    if isinstance(decided, decisions.Landed) and effect.renewed:
        reconcile.another(draft, effect, decided.reference)
        return "held: conflict"
    if isinstance(decided, decisions.Landed):
        reconcile.found(draft, effect, decided.reference, "look_up")
        return "confirmed"
    if isinstance(decided, decisions.Absent):
        contract = draft.contract.tool(effect.tool)
        if effect.state is EffectState.PROPOSED and (contract is None or not contract.absent_is_final):
            said = "its target does not have it, which is no proof that a lost line has not let it go"
            reconcile.unclear(draft, effect, said)
            return "unclear"
        if effect.state is EffectState.PROPOSED:  # a lost line has not let it go
            draft.put_effect(
                replaced(
                    effect,
                    suspect=False,
                    renewed=False,
                    hold=None,
                    not_before=None,
                    unclear=0,
                    reason="",
                )
            )
        else:
            reconcile.absent(draft, effect)
        return "absent"
    said = getattr(decided, "reason", "") or f"the look-up answered {type(decided).__name__}"
    reconcile.unclear(draft, effect, said)
    return "unclear"


def raised(draft: Draft, event: events.Raised) -> Choice:
    """A worker's errand ended with an error of its author's."""
    return _without_answer(draft, event, event.error, quiet=False) if not event.late else _nothing()


def gone(draft: Draft, event: events.Gone) -> Choice:
    """The tree of an errand is known dead, and it gave no answer."""
    row = draft.errands.get(errands.effect_of(event.unit))
    stop = row.stop if row is not None else None
    if event.used is not None and not limits.fault_of(event.used):
        limits.spend(draft, event.used)
    said = event.reason or ("it took too long" if stop is StopReason.TIMEOUT else "its worker ended")
    return _without_answer(draft, event, said, quiet=stop in QUIET, began=event.began)


def _nothing() -> Unchanged:
    return Unchanged(reason="stale: no such errand is open")


def _without_answer(
    draft: Draft, event: events.Raised | events.Gone, reason: str, *, quiet: bool, began: bool = True
) -> Choice:
    found = _closed(draft, event.unit, event.epoch, event.number)
    if found is None:
        return _nothing()
    effect, row = found
    choice = ended(draft, effect, row, reason, quiet=quiet, began=began)
    settle(draft)
    return choice


def ended(draft: Draft, effect: Effect, row: Errand, reason: str, *, quiet: bool, began: bool) -> str:
    """An errand, closed already, gave no answer: a send may have landed, unless it never began."""
    if not _is_awaited(effect, row):
        return "over"
    if row.kind is ErrandKind.SEND:
        if not began:
            dispatch.not_sent(draft, effect, reason, 0.0)
            return "not sent"
        reconcile.lost(draft, effect, "no_answer", reason)
        return "unknown"
    if quiet or not began:
        return "again"
    if row.kind is ErrandKind.LOOK_UP:
        reconcile.unclear(draft, effect, reason)
        return "unclear"
    return dispatch.failed_check(draft, effect, reason)


# ---- evidence ---------------------------------------------------------------------------------------------


def stale(draft: Draft, event: events.Returned) -> Unchanged:
    """An answer that nobody waits for: kept, and looked at for what cannot be true together with the rest."""
    effect = draft.effects.get(errands.effect_of(event.unit))
    if effect is not None:
        contradicts(draft, effect, event.answer.decided)
        if not draft.has_ended():
            settle(draft)
    return _nothing()


def contradicts(draft: Draft, effect: Effect, decided: decisions.Decided) -> None:
    """A landing that nobody waits for, of an effect that is not known to have landed so, needs a person."""
    if not isinstance(decided, decisions.Landed):
        return
    if effect.state is EffectState.CONFIRMED and decided.reference in (effect.reference, ""):
        return
    how = f"as {effect.reference}" if effect.state is EffectState.CONFIRMED else ""
    said = f"a late answer says that it landed as {decided.reference}; on record it is {effect.state} {how}"
    contract = draft.contract.tool(effect.tool)
    effect = replaced(effect, hold=None, resend=False)
    draft.put_effect(reconcile.held(draft, effect, contract, errands.CONFLICT, said.strip()))
