"""The judgement in the commit that lets an effect go: everything that allows it is looked at once more.

What is judged is the stored row, never what a worker says of it. Nothing is sent before this commit is
durable; a kill right after it leaves a row that is `dispatching`, which is unknown at the next wake.
"""

from resumed.schemas import decisions, keys
from resumed.schemas.approvals import Facts
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import reached
from resumed.schemas.job import Source, StopReason
from resumed.schemas.ledger import Effect, EffectState, Errand, ErrandKind, ToolContract
from resumed.schemas.records import replaced

from . import approvals, errands, limits, reconcile
from .approvals import Word
from .draft import Draft
from .verdict import Unchanged

CHECKS = 3
"""What a check does at most, each within the contract's timeout: compare, observe, look up."""
NAMES_AGAIN = 60.0
"""Seconds until what could not be judged is judged again."""
CHANGED = "changed"


def let_go(draft: Draft, effect: Effect, worker: str, facts: Facts | None) -> str | Unchanged:
    """Judge the effect; let it go where all of it holds, in the slot given, else say what becomes of it."""
    contract = draft.contract.tool(effect.tool)
    if contract is None:
        return Unchanged(reason=f"the workflow knows no tool {effect.tool}")
    if said := _fault(draft, effect, contract):
        draft.put_effect(reconcile.held(draft, effect, contract, errands.CONFLICT, said))
        return "held"
    if code := _ended(draft):
        return falls(draft, effect, code, "the job was ended before it was let go")
    if _is_forgotten(draft, effect, contract):
        said = f"{contract.target} may have forgotten its key by now"
        draft.put_effect(_not_again(draft, effect, contract, said))
        return "not sent again"
    judgement = approvals.judge(draft, effect, facts)
    if judgement.word is Word.GO:
        approvals.spend(draft, effect, judgement)
        _send(draft, effect, contract, worker)
        return "sent again" if effect.dispatches else "sent"
    if judgement.word is Word.UNASKED:
        return Unchanged(reason=judgement.reason)
    if judgement.word is Word.HOLD:
        held = reconcile.held(draft, effect, contract, judgement.code, judgement.reason)
        draft.put_effect(replaced(held, not_before=draft.ahead(NAMES_AGAIN)))
        return f"held: {judgement.code}"
    if judgement.word is Word.CHANGED:
        return falls(draft, effect, CHANGED, judgement.reason)
    if effect.state is EffectState.UNKNOWN:
        return falls(draft, effect, judgement.code, judgement.reason)
    effect = replaced(effect, hold=None, not_before=None)
    approvals.ask_anew(draft, effect, judgement.code, judgement.reason, facts)
    return f"asked anew: {judgement.code}"


def _fault(draft: Draft, effect: Effect, contract: ToolContract) -> str:
    """Why the stored row is not what it says it is; empty when it is."""
    try:
        covered = keys.fingerprint(effect, contract)
    except FaultyInputError as error:
        return f"its arguments cannot be read: {error}"
    if covered != effect.fingerprint:
        return f"its fingerprint is {effect.fingerprint[:16]}, and what it would send has {covered[:16]}"
    job, item = draft.job, effect.item
    key = keys.operation_key(job.id, job.sha256, item, effect.occurrence, effect.tool, effect.ordinal)
    if key != effect.operation_key:
        return f"its operation key is {effect.operation_key[:16]}, and it is for {key[:16]}"
    return ""


def _is_forgotten(draft: Draft, effect: Effect, contract: ToolContract) -> bool:
    """Whether it would go again by the target's word that it knows keys, and this key's life is over."""
    if effect.state is not EffectState.UNKNOWN or effect.absent:
        return False
    return not reconcile.is_deduplicated(draft, effect, contract, draft.then)


def _ended(draft: Draft) -> str:
    """The code of what ended the job; empty while it goes on."""
    if draft.cancel is not None:
        return "canceled"
    deadline = limits.deadline(draft)
    if draft.expiry is not None or (deadline is not None and reached(deadline, draft.then)):
        return "expired"
    return ""


def _send(draft: Draft, effect: Effect, contract: ToolContract, worker: str) -> None:
    maybe = effect.state is EffectState.UNKNOWN and not effect.absent
    effect = replaced(
        effect,
        state=EffectState.DISPATCHING,
        dispatches=effect.dispatches + 1,
        first_dispatch=effect.first_dispatch or draft.then,
        not_before=None,
        since=None,
        absent=False,
        resend=False,
        unproven=effect.unproven or maybe,
        hold=None,
        look_ups=0,
        unclear=0,
        code="",
        reason="",
    )
    open_errand(draft, effect, contract, ErrandKind.SEND, worker)


def open_errand(draft: Draft, effect: Effect, contract: ToolContract, kind: ErrandKind, worker: str) -> None:
    """A worker is sent on an errand; an attempt is opened for it if there is none."""
    draft.open_attempt()
    number = effect.errands + 1
    seconds = contract.timeout * (CHECKS if kind is ErrandKind.CHECK else 1)
    draft.put_effect(replaced(effect, errands=number))
    draft.errands = {
        **draft.errands,
        effect.id: Errand(
            effect=effect.id,
            kind=kind,
            epoch=draft.epoch,
            number=number,
            started=draft.now,
            until=draft.ahead(seconds),
            worker=worker,
        ),
    }


def falls(draft: Draft, effect: Effect, code: str, reason: str) -> str:
    """It may not go (any more): withdrawn where surely nothing of it has landed, else a person must say; what
    a lost line may have let go is looked into as if that had."""
    if effect.state is EffectState.PROPOSED and effect.suspect:
        said = f"{reason}; a line of its job was lost, which may have let it go"
        reconcile.lost(draft, replaced(effect, suspect=False), code, said)
        return f"looked into: {code}"
    if effect.state is EffectState.PROPOSED and not effect.unproven:
        withdraw(draft, effect, code, reason)
        return f"withdrawn: {code}"
    if effect.state is EffectState.UNKNOWN and effect.absent:
        withdraw(draft, effect, code, reason)
        return f"withdrawn: {code}"
    contract = draft.contract.tool(effect.tool)
    assert contract is not None
    draft.put_effect(_not_again(draft, effect, contract, reason))
    return f"not sent again: {code}"


def _not_again(draft: Draft, effect: Effect, contract: ToolContract, reason: str) -> Effect:
    """What may have landed, and may not be sent again: it is only asked about, and held for a person."""
    effect = replaced(effect, state=EffectState.UNKNOWN, resend=False, reason=reason)
    effect = reconcile.held(draft, effect, contract, errands.UNCLEAR, reason)
    return replaced(effect, not_before=draft.ahead(reconcile.MOST) if contract.look_up else None)


def withdraw(draft: Draft, effect: Effect, code: str, reason: str) -> None:
    """Surely nothing of it has landed, and nothing will: it is over."""
    draft.put_effect(
        replaced(
            effect,
            state=EffectState.WITHDRAWN,
            settled=draft.now,
            not_before=None,
            resend=False,
            suspect=False,
            renewed=False,
            hold=None,
            code=code,
            reason=reason,
        )
    )
    if (row := draft.errands.get(effect.id)) is not None and row.stop is None:
        draft.errands = {**draft.errands, effect.id: replaced(row, stop=StopReason.CANCEL)}


def not_sent(draft: Draft, effect: Effect, reason: str, seconds: float) -> None:
    """Surely nothing of this send reached the target: it waits, allowed as it was, and is judged again.

    Where an earlier send of it may have landed, that is as unknown as before.
    """
    if effect.unproven:
        reconcile.lost(draft, effect, "not_sent", f"{reason}; an earlier send of it may have landed")
        return
    approvals.unspend(draft, effect)
    draft.put_effect(
        replaced(
            effect,
            state=EffectState.PROPOSED,
            not_before=draft.ahead(seconds) if seconds > 0 else None,
            code="not_sent",
            reason=reason,
        )
    )


# ---- what a check found -----------------------------------------------------------------------------------


def checked(
    draft: Draft, effect: Effect, answer: decisions.Checked, worker: str, facts: Facts | None
) -> str | Unchanged:
    """What was found just before it would go: let go in the same commit (`worker`, where the slot is kept),
    withdrawn where what it relies on has changed, or held where its target has it already."""
    contract = draft.contract.tool(effect.tool)
    assert contract is not None
    if answer.problem or (contract.observe and answer.observed is None):
        return failed_check(draft, effect, answer.problem or "it observed nothing", answer.seconds)
    if answer.found is not None and answer.found != effect.foreign:
        effect = replaced(effect, found=answer.found)
        said = f"{contract.target} has {answer.found} under its key already, and it was never sent"
        draft.put_effect(reconcile.held(draft, effect, contract, errands.CONFLICT, said))
        return "held: conflict"
    if said := _changed(effect, contract, answer):
        return falls(draft, effect, CHANGED, said)
    begins = errands.may_begin(draft, effect)
    effect = replaced(effect, unclear=0, hold=None, not_before=None, found=None)
    draft.put_effect(effect)
    if not (worker and facts is not None and begins):
        return "checked"
    judged = let_go(draft, effect, worker, facts)
    return "checked" if isinstance(judged, Unchanged) else judged


def failed_check(draft: Draft, effect: Effect, reason: str, seconds: float = 0.0) -> str:
    """Nothing was found out: checked again later, from the third time in a row on held as well."""
    contract = draft.contract.tool(effect.tool)
    assert contract is not None
    effect = replaced(effect, unclear=effect.unclear + 1, reason=reason, code="check")
    effect = reconcile.asked_again(draft, effect, contract, "check")
    if seconds > 0 and effect.hold is None:
        effect = replaced(effect, not_before=draft.ahead(min(max(seconds, reconcile.FIRST), reconcile.MOST)))
    draft.put_effect(effect)
    return "not checked"


def _changed(effect: Effect, contract: ToolContract, answer: decisions.Checked) -> str:
    """What the call relies on that is not what it was; empty when all of it is."""
    said = [
        f"{seen.item} changed: {_mark(_source(effect, seen.item))} -> {_mark(seen.source, seen.reason)}"
        for seen in answer.changed
    ]
    if contract.observe and answer.observed != effect.observed:
        said.append(f"{contract.target} has {answer.observed!r} now, it had {effect.observed!r}")
    return "; ".join(said)


def _source(effect: Effect, path: str) -> Source | None:
    return next((source for source in effect.sources if source.path == path), None)


def _mark(source: Source | None, reason: str = "") -> str:
    if source is None:
        return reason or "nothing"
    return source.sha256[:16] or f"{source.size} bytes, inode {source.inode}"
