"""What may have left: nobody can tell until its target, or a person, has said what happened.

Its time in flight runs from the moment its sender was known gone. The target is asked at once, and again with
a growing pause; only what is proven absent, or what the target itself deduplicates, goes again. What stays
unclear is held for a person, and is still asked about for some hours.
"""

from resumed.schemas.instant import Instant, later, reached
from resumed.schemas.job import Artifact, Hold
from resumed.schemas.ledger import Effect, EffectState, ToolContract, in_flight
from resumed.schemas.records import replaced

from . import reckoning
from .draft import Draft
from .errands import CONFLICT, UNCLEAR

FIRST, MOST = 30.0, 900.0
"""Seconds between look-ups that gave no answer: doubled each time up to the most."""
UNCLEAR_MOST = 3
"""So many in a row hold the effect for a person."""
SUSPECT = "suspect"
"""The code of a row that a lost line may have let go, and that nobody can be asked about."""
SENDS_FREE = 3
"""From this many sends on, the pause before the next one grows like that between look-ups."""


def backoff(count: int) -> float:
    """Seconds until it is asked again after the `count`-th time without an answer."""
    return min(FIRST * 2.0 ** min(count - 1, 16), MOST)


def landed_at(effect: Effect, contract: ToolContract) -> Instant | None:
    """From when on nothing of it is in flight any more; None where that never began."""
    return None if effect.since is None else later(effect.since, in_flight(contract))


def has_landed_or_not(draft: Draft, effect: Effect, contract: ToolContract) -> bool:
    """Whether surely nothing of it is in flight any more: then what the target says is final.

    Not while another boot's clock is all that says so, and is not believed.
    """
    at = landed_at(effect, contract)
    return at is not None and reached(at, draft.then) and _is_known(draft, at)


def _is_known(draft: Draft, limit: Instant) -> bool:
    return limit.boot == draft.now.boot or reckoning.sight(draft, draft.now).known


def is_deduplicated(draft: Draft, effect: Effect, contract: ToolContract, at: Instant) -> bool:
    """Whether a send at `at` would surely find its key still known to a target that knows keys.

    What is sent then may arrive as late as its timeout and its time in flight allow: the key's life, counted
    from the first send, must outlast that.
    """
    if contract.key_lifetime is None or effect.first_dispatch is None:
        return False
    end = later(effect.first_dispatch, contract.key_lifetime)
    arrives = later(at, contract.timeout + in_flight(contract))
    return not reached(end, arrives) and _is_known(draft, end)


# ---- becoming unknown, and what is asked ------------------------------------------------------------------


def lost(draft: Draft, effect: Effect, code: str, reason: str) -> None:
    """Its sender gave no answer that decides: it may have left. Its time in flight runs from now."""
    contract = draft.contract.tool(effect.tool)
    effect = replaced(
        effect,
        state=EffectState.UNKNOWN,
        since=draft.then,
        look_ups=0,
        unclear=0,
        absent=False,
        resend=False,
        not_before=None,
        hold=None,
        code=code,
        reason=reason,
    )
    if contract is None:
        effect = held(
            draft, effect, None, UNCLEAR, f"{reason}; its workflow knows no tool {effect.tool} any more"
        )
    elif not contract.look_up:
        effect = _without_look_up(draft, effect, contract)
    draft.put_effect(effect)


def doubt(draft: Draft, effect: Effect, contract: ToolContract) -> None:
    """A line that was lost may have let it go, or one like it under its key: its target is asked first, and
    not before that can have arrived."""
    effect = replaced(effect, suspect=True)
    if contract.look_up:
        said = f"a line of its job was lost, which may have let it go: {contract.target} is asked first"
        draft.put_effect(replaced(effect, not_before=later(draft.then, in_flight(contract)), reason=said))
    else:
        said = f"a line of its job was lost, and {contract.target} cannot be asked whether that let it go"
        draft.put_effect(held(draft, effect, contract, SUSPECT, said))


def _without_look_up(draft: Draft, effect: Effect, contract: ToolContract) -> Effect:
    """Nobody can be asked: it goes again where the target knows its key by then, else a person must say."""
    at = _next_send(draft, effect, contract)
    if is_deduplicated(draft, effect, contract, at):
        return replaced(effect, resend=True, not_before=at)
    said = f"{effect.reason}; {contract.target} cannot be asked about it, and knows no key of it"
    return held(draft, effect, contract, UNCLEAR, said)


def _next_send(draft: Draft, effect: Effect, contract: ToolContract) -> Instant:
    """When it may be sent again at the earliest, on the clocks that limits are kept by."""
    more = effect.dispatches - SENDS_FREE
    pause = max(in_flight(contract), backoff(more) if more > 0 else 0.0)
    at = later(effect.since or draft.then, pause)
    return draft.then if reached(at, draft.then) else at


def held(draft: Draft, effect: Effect, contract: ToolContract | None, code: str, reason: str) -> Effect:
    """The effect, held for whoever handles what is unclear; what holds it already stays."""
    owner = (contract.unclear_owner if contract is not None else "") or draft.job.owner
    if effect.hold is not None and effect.hold.code == code:
        return replaced(effect, reason=reason)
    return replaced(effect, hold=Hold(code=code, reason=reason, owner=owner, since=draft.now), reason=reason)


# ---- what a look-up found ---------------------------------------------------------------------------------


def another(draft: Draft, effect: Effect, reference: str) -> None:
    """The target has something under its key that a line let go which is lost: whether it is this call, or
    another that its step had asked for then, only a person can tell."""
    contract = draft.contract.tool(effect.tool)
    said = f"its target has {reference} under its key, sent by a line that was lost: it may be another call"
    effect = held(draft, replaced(effect, found=reference), contract, CONFLICT, said)
    draft.put_effect(replaced(effect, not_before=draft.ahead(MOST)))


def found(draft: Draft, effect: Effect, reference: str, by: str) -> None:
    """The target, or a person, says that it landed."""
    draft.put_effect(
        replaced(
            effect,
            state=EffectState.CONFIRMED,
            reference=reference,
            confirmed_by=by,
            settled=draft.now,
            hold=None,
            not_before=None,
            suspect=False,
            renewed=False,
            resend=False,
            code="",
            reason="",
        )
    )


def absent(draft: Draft, effect: Effect) -> None:
    """The target has nothing under its key. That counts once nothing can be in flight any more, and only
    where its contract says that it is final."""
    contract = draft.contract.tool(effect.tool)
    if contract is None:
        unclear(draft, effect, "its tool is not known any more")
        return
    effect = replaced(effect, look_ups=effect.look_ups + 1)
    if not has_landed_or_not(draft, effect, contract):
        at = landed_at(effect, contract)
        if at is None or reached(at, draft.then):
            at = draft.ahead(FIRST)  # over by a clock that is not believed
        said = "its target does not have it yet, and it may still be on its way"
        draft.put_effect(replaced(effect, unclear=0, not_before=at, code="absent_yet", reason=said))
    elif contract.absent_is_final:
        draft.put_effect(
            replaced(
                effect,
                unclear=0,
                absent=True,
                resend=True,
                unproven=False,
                renewed=False,
                hold=None,
                not_before=_next_send(draft, effect, contract),
                code="absent",
                reason="its target has nothing of it",
            )
        )
    else:
        _asked(draft, effect, contract, f"{contract.target} does not have it, which is no proof")


def unclear(draft: Draft, effect: Effect, reason: str) -> None:
    """A look-up gave no answer that decides, or none at all."""
    contract = draft.contract.tool(effect.tool)
    effect = replaced(effect, look_ups=effect.look_ups + 1)
    if contract is None:
        draft.put_effect(held(draft, effect, None, UNCLEAR, reason))
    elif effect.state is EffectState.PROPOSED:
        effect = replaced(effect, unclear=effect.unclear + 1, code=UNCLEAR, reason=reason)
        draft.put_effect(asked_again(draft, effect, contract, UNCLEAR))
    else:
        _asked(draft, effect, contract, reason)


def _asked(draft: Draft, effect: Effect, contract: ToolContract, reason: str) -> None:
    """It was asked about in vain: it goes again where the target knows its key, else it is asked again."""
    effect = replaced(effect, unclear=effect.unclear + 1, code=UNCLEAR, reason=reason)
    at = _next_send(draft, effect, contract)
    if is_deduplicated(draft, effect, contract, at):
        if has_landed_or_not(draft, effect, contract):
            draft.put_effect(replaced(effect, resend=True, hold=None, not_before=at))
            return
        again = draft.ahead(backoff(effect.unclear))
        draft.put_effect(replaced(effect, not_before=min(again, at, key=lambda each: each.wall)))
        return
    draft.put_effect(asked_again(draft, effect, contract, UNCLEAR))


def asked_again(draft: Draft, effect: Effect, contract: ToolContract, code: str) -> Effect:
    """The effect after one more question without an answer: asked again later, from the third on held."""
    if effect.hold is None and effect.unclear < UNCLEAR_MOST:
        return replaced(effect, not_before=draft.ahead(backoff(effect.unclear)))
    said = effect.reason
    if effect.hold is None:
        said = f"asked {effect.unclear} times in vain; last: {effect.reason}"
    effect = held(draft, effect, contract, code, said) if effect.hold is None else effect
    return replaced(effect, not_before=draft.ahead(MOST))


def kept(effect: Effect, response: Artifact | None) -> Effect:
    """The effect with the target's last answer, whatever it said."""
    return effect if response is None else replaced(effect, response=response.sha256, answer=response)
