"""How effects hold their job: derived from their rows in every commit, and lifted as soon as none does."""

from attrs import evolve

from resumed.schemas.job import Hold, ItemState
from resumed.schemas.ledger import SETTLED, Effect, EffectState
from resumed.schemas.workflow import OnUnknown

from . import errands
from .draft import Draft


def settle(draft: Draft) -> None:
    """Hold the job where a person must say something of an effect; let it go where nobody must any more."""
    if not draft.effects.held and draft.hold is None:
        return
    wanted = _hold(draft)
    if draft.hold is not None and draft.hold.code in errands.JOB_HOLDS:
        if wanted is None:
            draft.hold = None
        elif (wanted.code, wanted.reason) != (draft.hold.code, draft.hold.reason):
            draft.hold = evolve(wanted, since=draft.hold.since)
    elif wanted is not None and draft.hold is None:
        draft.hold = wanted


def _hold(draft: Draft) -> Hold | None:
    rows = [draft.effects[name] for name in sorted(draft.effects.held)]
    rows = [row for row in rows if not _is_left_out(draft, row)]
    if not rows or (
        _may_go_on(draft) and all(row.hold and row.hold.code != errands.CONFLICT for row in rows)
    ):
        return None
    first = rows[0]
    assert first.hold is not None
    more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
    code = "effect_held"
    if first.hold.code == errands.CONFLICT:
        code = errands.CONFLICT
    elif first.state is EffectState.UNKNOWN:
        code = "effect_unknown"
    return Hold(
        code=code,
        reason=f"{first.id}: {first.hold.reason}{more}",
        owner=first.hold.owner,
        since=draft.now,
    )


def _is_left_out(draft: Draft, row: Effect) -> bool:
    """Whether the item was left out: its effect keeps the job open, and does not keep the others."""
    item = draft.items.get(row.item) if row.item else None
    if item is None or item.state is not ItemState.SKIPPED or row.state in SETTLED:
        return False
    return not (draft.stopping() or draft.position.state in (ItemState.DONE, ItemState.FAILED))


def _may_go_on(draft: Draft) -> bool:
    """Whether others go on meanwhile, as the workflow says, and there is something that does."""
    if draft.contract.on_unknown is not OnUnknown.CONTINUE or draft.each is None or draft.stopping():
        return False
    pending = draft.items.count(ItemState.PENDING) - draft.items.outside
    if draft.tries or pending or draft.items.count(ItemState.REVIEW):
        return True
    return bool(draft.effects.unsettled - draft.effects.held)
