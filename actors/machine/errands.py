"""Errands: what a worker could be sent to do about an effect now, and when that is to be asked again.

Pure questions. An errand is claimed like a try, under a name of its own; what comes of it is `outcomes`.
"""

from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.instant import Instant, later, reached
from resumed.schemas.job import ItemState
from resumed.schemas.ledger import ERRAND, Effect, EffectState, ErrandKind, ToolContract
from resumed.schemas.limits import OnFailed
from resumed.schemas.snapshot import Snapshot

from .approvals import is_met, may_ask_nobody
from .draft import NOT_GONE
from .limits import Standing
from .reckoning import trusted

UNCLEAR, CONFLICT = "unclear", "conflict"
"""Codes of a row that a person must say something about: nobody can tell whether it landed; and what is said
of it, by its target or by its own record, does not agree."""
JOB_HOLDS = frozenset({"effect_unknown", CONFLICT, "effect_held"})
"""Codes of holds that only say that effects need a person; lifted when none does any more."""
ASKED_STILL = 6 * 3600.0
"""Seconds for which a target is still asked about what is held for a person."""
MOST = 64
"""Errands of one job that are claimed at a time, at most."""


def name_of(effect: str) -> str:
    """The name of an effect's errand, where a try has its unit's."""
    return ERRAND + effect


def is_errand(unit: str) -> bool:
    """Whether this is an errand's name, and not a unit's."""
    return unit.startswith(ERRAND)


def effect_of(unit: str) -> str:
    """The effect that an errand of this name is about."""
    return unit[len(ERRAND) :]


def stops(standing: Standing) -> bool:
    """True once an item of a job has failed that starts nothing more then."""
    failed = standing.each is not None and standing.items.count(ItemState.FAILED)
    return bool(failed) and standing.contract.on_failed is OnFailed.STOP


def wants_word(effect: Effect) -> bool:
    """Whether only a person can say what became of an effect, or has to know of a landing."""
    if effect.hold is None:
        return False
    return effect.state is EffectState.UNKNOWN or effect.suspect or effect.hold.code == CONFLICT


def may_begin(standing: Standing, effect: Effect) -> bool:
    """Whether it may be let go, or checked, as far as the job goes. What holds the job by itself may be tried
    again, to see whether it still does."""
    if standing.outcome is not None or standing.pause is not None:
        return False
    if standing.cancel is not None or standing.expiry is not None or standing.waits or stops(standing):
        return False
    return standing.hold is None or (effect.hold is not None and standing.hold.code in JOB_HOLDS)


def is_checked(effect: Effect, contract: ToolContract) -> bool:
    """Whether something has to be found out just before it is let go."""
    if effect.sources or contract.observe:
        return True
    return contract.check_first and contract.look_up and effect.dispatches == 0


def may_go_at_once(contract: ToolContract) -> bool:
    """Whether a call of the tool may go in the line that asks for it, as far as its contract says."""
    checked = contract.observe or (contract.check_first and contract.look_up)
    return may_ask_nobody(contract) and not checked


def is_given_up(effect: Effect, now: Instant) -> bool:
    """Whether nobody is asked any more about what is held for a person."""
    return effect.hold is not None and reached(later(effect.hold.since, ASKED_STILL), now)


def needed(standing: Standing, effect: Effect, now: Instant) -> ErrandKind | None:
    """The errand that an effect wants at `now`, which is on the clocks that limits are kept by; or None."""
    contract = standing.contract.tool(effect.tool)
    if contract is None or effect.id in standing.errands:
        return None
    if effect.not_before is not None and not reached(effect.not_before, now):
        return None
    return wants(standing, effect, contract, now)


def wants(standing: Standing, effect: Effect, contract: ToolContract, now: Instant) -> ErrandKind | None:
    """The errand that an effect wants once its time has come; None where it wants none."""
    if effect.state is EffectState.UNKNOWN:
        if effect.resend:
            return ErrandKind.SEND if is_met(effect) and may_begin(standing, effect) else None
        return ErrandKind.LOOK_UP if contract.look_up and not is_given_up(effect, now) else None
    if effect.state is not EffectState.PROPOSED:
        return None
    if effect.suspect:
        if effect.renewed and effect.hold is not None and effect.hold.code == CONFLICT:
            return None  # found already; it is for a person to say what
        return ErrandKind.LOOK_UP if contract.look_up and not is_given_up(effect, now) else None
    if not is_met(effect) or not may_begin(standing, effect):
        return None
    if effect.hold is not None and (effect.hold.code == CONFLICT or is_given_up(effect, now)):
        return None
    return ErrandKind.CHECK if is_checked(effect, contract) else ErrandKind.SEND


def wanted(standing: Standing, now: Instant, most: int = MOST) -> list[tuple[Effect, ErrandKind]]:
    """Up to `most` errands that a slot may be claimed for: what may have left is asked about first, and no
    more are under way to one target than its contract allows."""
    if not standing.effects.unsettled or standing.outcome is not None or _is_unproven(standing):
        return []
    if standing.effects.is_live_only_in(standing.errands):
        return []  # errands of all of them are open
    now = trusted(standing, now)
    found = [
        (effect, kind)
        for effect in standing.effects.live()
        if (kind := needed(standing, effect, now)) is not None
    ]
    if not found:
        return []
    found.sort(key=lambda each: each[0].state is not EffectState.UNKNOWN)
    busy: dict[str, int] = {}
    for name in standing.errands:
        target = standing.effects[name].target
        busy[target] = busy.get(target, 0) + 1
    chosen: list[tuple[Effect, ErrandKind]] = []
    for effect, kind in found:
        contract = standing.contract.tool(effect.tool)
        assert contract is not None
        if busy.get(effect.target, 0) < contract.at_once:
            busy[effect.target] = busy.get(effect.target, 0) + 1
            chosen.append((effect, kind))
            if len(chosen) == most:
                break
    return chosen


def _is_unproven(standing: Standing) -> bool:
    return standing.hold is not None and standing.hold.code == NOT_GONE


def is_durable(adopted: Snapshot, tentative: Snapshot, unit: str) -> bool:
    """Whether an errand of this name rests on what is durable already, not on the line being drawn up.

    No line both allows an effect and lets it go, and only the answer of a step asks for one and lets it go
    (`effects.let_go`): so a line that is lost can have let go only what stood there, allowed, before it, and
    what a try that was open asked for (`unsettled.torn`). Whoever draws up a line must see to it.
    """
    name = effect_of(unit)
    return adopted.effects.get(name) == tentative.effects.get(name)


def actions(standing: Standing, now: Instant) -> list[Action]:
    """What is due about effects: open errands to run or to stop, and claims for new ones."""
    found = [
        Action(ActionKind.RUN if row.stop is None else ActionKind.STOP, name_of(name), row.number)
        for name, row in standing.errands.items()
    ]
    for effect, _ in wanted(standing, now):
        found.append(Action(ActionKind.ERRAND, name_of(effect.id), effect.errands + 1))
    return found


def next_moment(standing: Standing, now: Instant) -> Instant | None:
    """When the next effect that waits for a time wants an errand; None when none waits."""
    if not standing.effects.unsettled or _is_unproven(standing):
        return None
    if standing.effects.is_live_only_in(standing.errands):
        return None
    now = trusted(standing, now)
    found: Instant | None = None
    for effect in standing.effects.live():
        at, contract = effect.not_before, standing.contract.tool(effect.tool)
        if at is None or contract is None or reached(at, now) or effect.id in standing.errands:
            continue
        if wants(standing, effect, contract, at) is not None and (found is None or at.wall < found.wall):
            found = at
    return found


def next_end(standing: Standing) -> Instant | None:
    """When the first open errand has taken too long; None when none is open, or they are being stopped."""
    ends = [row.until for row in standing.errands.values() if row.stop is None]
    return min(ends, key=lambda at: at.wall) if ends else None
