"""The law of asking for effects: one row for each call, and where its unit goes once all of them are settled.

A call is stored before anything is done about it, with the key it goes under; what is sent later is made of
that row alone. A step that asks anew in the same occurrence finds its rows again by their fingerprints: what
it asks for otherwise takes the place of what it had asked for, under the next ordinal.
"""

from resumed.schemas import decisions, jcs, keys
from resumed.schemas.approvals import Facts, Policy
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Artifact, Item, ItemState
from resumed.schemas.ledger import SETTLED, Effect, EffectState, ErrandKind, Performance, ToolContract
from resumed.schemas.records import replaced
from resumed.schemas.refusal import Refusal
from resumed.schemas.workflow import StepKind

from . import approvals, dispatch, errands, reconcile, reconciling
from .draft import Draft
from .handing import enter
from .verdict import Unchanged

CODE = "effect"
"""The code of a unit that waits for effects of its own."""
SUPERSEDED, SKIPPED = "superseded", "skipped"
REPLACED = "its step asks for something else by now"
SENT = "sent"
"""Of a call: nothing follows from that in the same line."""


# ---- what is asked for ------------------------------------------------------------------------------------


def problem(draft: Draft, unit: Item, decided: decisions.Decided, kept: tuple[Artifact, ...]) -> str:
    """Why these calls cannot be carried out; empty when they can, or none are asked for."""
    if not isinstance(decided, decisions.Performing):
        return ""
    if not decided.calls:
        return f"step {unit.at} asks for no effect at all"
    if len(kept) != len(decisions.offers(decided)):
        return f"step {unit.at}: the bytes that come with its calls were not kept"
    kind = StepKind.ITEM if unit.id else StepKind.JOB
    for name in (decided.then, decided.otherwise, decided.back):
        step = draft.contract.step(name) if name else None
        if name and (step is None or step.kind is not kind):
            return f"step {unit.at} went to {name!r}, which is not a step of each {kind}"
    for call in decided.calls:
        contract = draft.contract.tool(call.tool)
        if contract is None:
            return f"step {unit.at} asks for {call.tool!r}, which its workflow does not declare"
        try:
            jcs.read(call.unbound, "")
            keys.fingerprint(_drawn(unit, call, contract, ()), contract)
        except FaultyInputError as error:
            return str(
                FaultyInputError(f"step {unit.at}: cannot keep the call of {call.tool}", error.problems)
            )
    return ""


def shown_target(contract: ToolContract) -> str:
    """Where calls of a tool go, as a reviewer is shown it."""
    at = [contract.target]
    at += [f"at {contract.address}"] if contract.address else []
    at += [f"as {contract.account}"] if contract.account else []
    return " ".join(at)


def _drawn(unit: Item, call: decisions.Call, contract: ToolContract, bodies: tuple[Artifact, ...]) -> Effect:
    """The row of a call, without its place, key and fingerprint."""
    return Effect(
        id="",
        state=EffectState.PROPOSED,
        item=unit.id,
        business_object=call.business_object,
        operation_key="",
        fingerprint="",
        tool=call.tool,
        version=contract.version,
        target=shown_target(contract),
        arguments=call.arguments,
        unbound=call.unbound,
        expected_result=call.expected_result,
        step=unit.at,
        occurrence=unit.occurrence,
        bodies=bodies,
        observed=call.observed,
        sources=call.sources,
    )


def propose(
    draft: Draft,
    unit: Item,
    decided: decisions.Performing,
    kept: tuple[Artifact, ...],
    policies: tuple[Policy, ...],
) -> str:
    """The rows are written, and the unit waits for them without a try."""
    before = _of_occurrence(draft, unit)
    chosen: list[str] = []
    bodies = iter(kept)
    dealt = [tuple(next(bodies) for _ in call.bodies) for call in decided.calls]
    shown = [next(bodies) if call.shown is not None else None for call in decided.calls]
    for call, own, seen in zip(decided.calls, dealt, shown, strict=True):
        contract = draft.contract.tool(call.tool)
        assert contract is not None
        row = replaced(_drawn(unit, call, contract, own), shown=seen)
        row = replaced(row, fingerprint=keys.fingerprint(row, contract))
        found = next((each for each in before if _is_same(each, row) and each.id not in chosen), None)
        chosen.append(found.id if found is not None else _new(draft, row, contract, unit, chosen, policies))
    for each in before:
        if each.id not in chosen and each.state is EffectState.PROPOSED:
            dispatch.falls(draft, each, SUPERSEDED, REPLACED)
    row_of_unit = Performance(
        unit=unit.id,
        step=unit.at,
        occurrence=unit.occurrence,
        effects=tuple(chosen),
        then=decided.then,
        otherwise=decided.otherwise,
        back=decided.back,
    )
    draft.performances = {**draft.performances, unit.id: row_of_unit}
    said = f"it waits for {chosen[0]}" + (f" and {len(chosen) - 1} more" if len(chosen) > 1 else "")
    draft.put(replaced(unit, state=ItemState.IN_PROGRESS, not_before=None, code=CODE, reason=said))
    _go_on(draft, row_of_unit)
    return f"asks for {len(chosen)} effect{'' if len(chosen) == 1 else 's'}"


def let_go(draft: Draft, unit: str, worker: str, facts: Facts | None) -> str:
    """What the unit has just asked for, and nobody is asked about, goes in the same line, in the slot of its
    try; what became of it, empty where nothing of it may.

    A crash before this line is durable leaves a try that gave no answer, one after it a row that is being
    sent. Where the line is lost though it was durable, `Item.torn` says so of what is asked for next.
    """
    performance = draft.performances.get(unit)
    if performance is None or facts is None or draft.contract.slots != 1:
        return ""
    for effect, kind in errands.wanted(draft, draft.now):
        if kind is ErrandKind.SEND and effect.gate is None and effect.id in performance.effects:
            sent = dispatch.let_go(draft, effect, worker, facts)
            return "" if isinstance(sent, Unchanged) else sent
    return ""


def _is_same(old: Effect, new: Effect) -> bool:
    """Whether what is asked for is there already: waiting, under way, or confirmed."""
    if old.state in (EffectState.REJECTED, EffectState.WITHDRAWN):
        return False
    return old.tool == new.tool and old.fingerprint == new.fingerprint


def _prefix(unit: Item, tool: str) -> str:
    return f"{unit.id or 'job'}/{tool}/{unit.occurrence}."


def _of_occurrence(draft: Draft, unit: Item) -> list[Effect]:
    """What the unit has asked for in this occurrence so far, in order."""
    found: list[Effect] = []
    for contract in draft.contract.effects:
        count = 0
        while (row := draft.effects.get(f"{_prefix(unit, contract.tool)}{count}")) is not None:
            if row.item == unit.id:
                found.append(row)
            count += 1
    return found


def _new(
    draft: Draft,
    row: Effect,
    contract: ToolContract,
    unit: Item,
    chosen: list[str],
    policies: tuple[Policy, ...],
) -> str:
    """Write the row under the next ordinal; those of an item named `job` and of the job itself share them."""
    prefix, ordinal = _prefix(unit, row.tool), 0
    while f"{prefix}{ordinal}" in draft.effects:
        ordinal += 1
    job = draft.job
    again = _repeated(draft, unit, row, chosen)
    key = keys.operation_key(job.id, job.sha256, unit.id, unit.occurrence, row.tool, ordinal)
    row = replaced(
        row,
        id=f"{prefix}{ordinal}",
        ordinal=ordinal,
        operation_key=key,
        proposed=draft.now,
        again=again,
        gate=approvals.gate_of(draft, contract, row.arguments, policies, again),
    )
    draft.put_effect(row)
    if unit.torn and errands.may_go_at_once(contract):
        # A line that is gone may have asked for one like it, and let it go at once, under this very key.
        reconcile.doubt(draft, replaced(row, renewed=True), contract)
    return f"{prefix}{ordinal}"


def _repeated(draft: Draft, unit: Item, row: Effect, chosen: list[str]) -> str:
    """The reference of what is confirmed already of the unit, where this call may repeat it: since its item
    was begun again, or since its step asks anew for what it had been given."""
    confirmed = [each for each in _of_occurrence(draft, unit) if each.id not in chosen]
    if unit.begun:
        confirmed += [each for each in draft.effects if each.item == unit.id and each.occurrence < unit.begun]
    found = [each for each in confirmed if each.state is EffectState.CONFIRMED]
    same = [each for each in found if each.tool == row.tool] or found
    return (same[-1].reference or same[-1].id) if same else ""


# ---- where its unit goes ----------------------------------------------------------------------------------


def settle(draft: Draft) -> None:
    """What follows in the same commit: units whose effects are settled go on, what a unit was given goes once
    its step has decided, and the end of a job withdraws what was not let go."""
    if draft.effects.unsettled and draft.stopping():
        _withdraw_all(draft)
    for row in draft.changed_effects():
        if row.state not in SETTLED and _is_left_out(draft, row):
            _withdraw(draft, row, SKIPPED, "its item was left out")
        elif row.state is EffectState.UNKNOWN and row.absent and _is_superseded(draft, row):
            dispatch.withdraw(draft, row, SUPERSEDED, REPLACED)
    over = [draft.effects[name] for name in draft.closed_errands()]
    for name in dict.fromkeys(row.item for row in (*draft.changed_effects(), *over)):
        performance = draft.performances.get(name)
        if performance is not None and not performance.over:
            _go_on(draft, performance)
    if draft.performances:
        for unit in draft.changed_units():
            given = draft.performances.get(unit.id)
            if given is not None and given.over and _has_decided(unit, given):
                _drop(draft, unit.id)


def _has_decided(unit: Item, given: Performance) -> bool:
    return unit.state is ItemState.DONE or unit.occurrence > given.led


def _drop(draft: Draft, unit: str) -> None:
    draft.performances = {name: row for name, row in draft.performances.items() if name != unit}


def _withdraw_all(draft: Draft) -> None:
    code = "canceled" if draft.cancel is not None else "expired"
    for row in draft.effects.open():
        _withdraw(draft, row, code, "the job was ended before it was let go")


def _withdraw(draft: Draft, row: Effect, code: str, reason: str) -> None:
    """An effect that is not wanted any more: over, where surely nothing of it has landed; else it is only
    asked about from here on."""
    if row.state is EffectState.PROPOSED or (row.state is EffectState.UNKNOWN and row.resend):
        dispatch.falls(draft, row, code, reason)


def _is_superseded(draft: Draft, row: Effect) -> bool:
    """Whether its unit has asked for something else in its place."""
    performance = draft.performances.get(row.item)
    if performance is None or performance.occurrence != row.occurrence:
        return False
    return row.id not in performance.effects


def _is_left_out(draft: Draft, row: Effect) -> bool:
    """Whether its item was left out while it was on its way."""
    item = draft.items.get(row.item) if row.item else None
    return item is not None and item.state is ItemState.SKIPPED


def _go_on(draft: Draft, performance: Performance) -> None:
    """The unit goes on once all that it asked for is settled."""
    rows = [draft.effects[name] for name in performance.effects]
    if any(row.state not in SETTLED or row.id in draft.errands for row in rows):
        return  # also while a sender of one that a person has settled may be alive
    unit = draft.unit(performance.unit)
    assert unit is not None
    if unit.state is not ItemState.IN_PROGRESS or unit.occurrence != performance.occurrence:
        _drop(draft, performance.unit)  # its unit has left it behind
        return
    unit = _led(draft, unit, performance, rows)
    draft.put(unit)
    leads = unit.occurrence != performance.occurrence
    if unit.state is ItemState.PENDING and leads:
        row = replaced(performance, over=True, led=unit.occurrence)
        draft.performances = {**draft.performances, unit.id: row}
    else:
        _drop(draft, unit.id)


def _led(draft: Draft, unit: Item, performance: Performance, rows: list[Effect]) -> Item:
    """The unit where its outcomes lead it."""
    bad = [row for row in rows if row.state is not EffectState.CONFIRMED]
    if not bad:
        return enter(unit, performance.then, unit.data) if performance.then else _done(unit)
    if draft.stopping():
        code = "canceled" if draft.cancel is not None else "expired"
        said = "the job was ended before all that it asked for was done"
        return replaced(unit, state=ItemState.PENDING, code=code, reason=said)
    back = next((row for row in bad if row.code == "sent_back"), None)
    if back is not None:
        step = performance.back or performance.otherwise or unit.at
        return replaced(enter(unit, step, unit.data), note=back.reason)
    if performance.otherwise:
        return enter(unit, performance.otherwise, unit.data)
    return _without_otherwise(draft, unit, bad)


def _without_otherwise(draft: Draft, unit: Item, bad: list[Effect]) -> Item:
    """What a workflow that says nothing of it makes of the worst outcome."""
    for row in bad:
        if row.code == "denied":
            said = row.reason or "it was denied"
            return replaced(unit, state=ItemState.FAILED, code="denied", reason=said)
    for row in bad:
        if row.state is EffectState.REJECTED:
            return replaced(unit, state=ItemState.FAILED, code="refused", reason=row.reason)
    first = bad[0]
    if unit.id and all(row.code == SKIPPED for row in bad):
        return replaced(unit, state=ItemState.SKIPPED, code=SKIPPED, reason=first.reason)
    # What allowed it, or what it relied on, is not so any more: the same step asks anew, the first time at
    # once, and ever more slowly where what it asks for never stands.
    before = sum(row.state is EffectState.WITHDRAWN for row in _of_occurrence(draft, unit))
    at = draft.ahead(reconcile.backoff(before - 1)) if before > 1 else None
    said = f"{first.id}: {first.reason}"
    return replaced(unit, state=ItemState.PENDING, not_before=at, code=first.code, reason=said)


def _done(unit: Item) -> Item:
    """Done with the newest of what its steps made."""
    output = unit.outputs[-1] if unit.outputs else unit.output
    return replaced(unit, state=ItemState.DONE, output=output, outputs=(), code="", reason="")


def leave_out(draft: Draft, unit: Item) -> bool:
    """A person leaves the unit out: what it asked for and was not let go is withdrawn; what may have left is
    still asked about, and keeps the job open. False when it asked for nothing."""
    performance = draft.performances.get(unit.id)
    if performance is None or performance.over:
        return False
    for name in performance.effects:
        _withdraw(draft, draft.effects[name], SKIPPED, "left out by a person")
    _drop(draft, unit.id)
    return True


def unsettled(draft: Draft, verb: str, items: list[Item]) -> Refusal | None:
    """Why items may not begin again: something of them may have left, and nobody knows yet."""
    if not draft.effects.unsettled:
        return None
    names = {item.id for item in items}
    found = next((row for row in draft.effects.open() if row.item in names and row.item), None)
    if found is None:
        return None
    job = draft.job.id
    return Refusal(
        code="unsettled",
        reason=f"cannot {verb} {found.item} of {job}: nobody can tell yet what became of {found.id}",
        commands=reconciling.settling(job, found),
    )
