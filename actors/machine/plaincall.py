"""The plain call: a step of the job asks for one call that nobody is asked about, which lands, and the job
goes on. Both turns of it are decided in one go; it is no law of its own.

As with the plain step (`plain`): where it answers it answers what the law at large would, in a fraction of
the time, and the tests ask both wherever they decide anything. It answers only while every field that it does
not know holds its default.
"""

from attrs import frozen

from resumed.schemas import decisions, events, jcs, keys, strict
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant, later, reached
from resumed.schemas.job import Item, ItemState, Next, Try
from resumed.schemas.ledger import ERRAND, Effect, EffectState, Errand, ErrandKind, Performance, ToolContract
from resumed.schemas.records import others, replaced
from resumed.schemas.snapshot import Changes, Decision, Entry, Snapshot
from resumed.schemas.workflow import StepKind

from . import effects, errands, limits, plain

_of_job, _FREE = others(Snapshot, *plain.KNOWN, "errands", "performances")
_of_asking, _ALLOWED = others(events.Returned, "unit", "epoch", "number", "answer", "facts", "policies")
_of_performing, _ONE = others(decisions.Performing, "calls", "then", "otherwise", "back")
_of_call, _BARE = others(decisions.Call, "tool", "arguments", "unbound", "business_object", "expected_result")
_of_landed, _WITHOUT_WORDS = others(decisions.Landed, "reference")
_of_errand, _GOES = others(Errand, *("effect", "kind", "epoch", "number", "started", "until", "worker"))
KNOWN = (
    *("id", "state", "item", "business_object", "operation_key", "fingerprint", "tool", "target"),
    *("arguments", "expected_result", "reference", "confirmed_by", "version", "step", "occurrence"),
    *("unbound", "proposed", "errands", "dispatches", "first_dispatch", "settled"),
)
"""Fields of the row of a plain call that may differ from their defaults."""
_of_effect, _LET_GO = others(Effect, *(each for each in KNOWN if each not in ("reference", "confirmed_by")))
_of_position, _SETTLED = others(
    Item,
    *("id", "ordinal", "state", "at", "occurrence", "tries", "started", "ended", "code", "reason"),
    *("inputs", "source", "seen", "output", "publishes", "outputs", "begun", "failures"),
)


@frozen(slots=False)  # made at every step and soon gone: quicker so
class Calling:
    """What a plain call comes to when it is asked for: the position that waits for it, its row, let go, the
    errand that it goes on, where its unit goes then, and the fields of the state that are new."""

    position: Item
    effect: Effect
    errand: Errand
    performance: Performance
    state: dict[str, str]
    contract: ToolContract


@frozen(slots=False)
class Landing:
    """What its landing comes to: the position in the step that follows, its open try, what is permitted next
    where that is another step, the row, and what the step is given."""

    position: Item
    row: Try
    permitted: Next | None
    effect: Effect
    performance: Performance


def step(snapshot: Snapshot, event: events.Returned, now: Instant) -> Entry | None:
    """The entry for an answer that is a plain call, or the landing of one, in the slot that is kept; None
    where anything else is to be considered."""
    kind = type(event.answer.decided)
    if kind is decisions.Performing:
        calling = find_call(snapshot, event, now)
        return None if calling is None else _called(calling)
    if kind is decisions.Landed:
        landing = find_landing(snapshot, event, now)
        return None if landing is None else _landed(landing)
    return None


def _called(calling: Calling) -> Entry:
    return Entry(
        transition="returned",
        decision=Decision(by="author", rule="returned", choice=CALLED),
        changes=Changes(
            ended=("",),
            position=calling.position,
            state=dict(calling.state),
            effects=(calling.effect,),
            errands=(calling.errand,),
            performances=(calling.performance,),
        ),
    )


CALLED, LANDED = f"asks for 1 effect, {effects.SENT}", "confirmed"
"""The choices that are recorded."""


def _landed(landing: Landing) -> Entry:
    effect = landing.effect
    return Entry(
        transition="effect",
        decision=Decision(by="machine", rule=f"effect {effect.id}", choice=LANDED),
        changes=Changes(
            tries=(landing.row,),
            position=landing.position,
            next=landing.permitted,
            effects=(effect,),
            returned=(effect.id,),
            performances=(landing.performance,),
        ),
    )


# ---- asked for, and let go --------------------------------------------------------------------------------


def is_bare(decided: object) -> bool:
    """Whether a decision asks for one call that brings no bytes, and nothing to be compared."""
    return type(decided) is decisions.Performing and len(decided.calls) == 1 and _is_bare(decided.calls[0])


def _is_bare(call: decisions.Call) -> bool:
    found: bool = _of_call(call) == _BARE
    return found


def find_call(snapshot: Snapshot, event: events.Returned, now: Instant) -> Calling | None:
    """What a step comes to that asks for a plain call."""
    answer, facts = event.answer, event.facts
    decided = answer.decided
    row = snapshot.tries.get("")
    table = snapshot.effects
    if (
        type(decided) is not decisions.Performing
        or event.unit != ""
        or row is None
        or (row.epoch, row.number) != (event.epoch, event.number)
        or len(snapshot.tries) != 1
        or snapshot.errands
        or len(decided.calls) != 1
        or not decided.then
        or _of_performing(decided) != _ONE
        or facts is None
        or facts.problem
        or facts.requester is not True
        or _of_asking(event) != _ALLOWED
        or plain.of_answer(answer) != plain.SPENT_NOTHING
        or plain.of_try(row) != plain.RUNS
        or table.unsettled
        or table.held
        or not _goes_on(snapshot, now)
    ):
        return None
    contract, position, call = snapshot.contract, snapshot.position, decided.calls[0]
    tool = contract.tool(call.tool)
    if (
        tool is None
        or tool.approve is not None
        or not errands.may_go_at_once(tool)
        or tool.at_once < 1
        or contract.slots != 1
        or position.begun
        or position.torn
        or position.state is not ItemState.IN_PROGRESS
        or snapshot.next.step != position.at
        or not _is_bare(call)
        or not all(_is_step(snapshot, name) for name in (decided.then, decided.otherwise, decided.back))
        or any(f"job/{each.tool}/{position.occurrence}.0" in table for each in contract.effects)
    ):
        return None
    try:
        fingerprint = keys.fingerprint_of(tool, call.arguments)
        jcs.read(call.unbound, "")
        for text in answer.state.values():
            strict.check_json_text(text, "")
    except FaultyInputError:
        return None
    return _calling(snapshot, decided, tool, fingerprint, row.worker, now, answer.state)


def _calling(
    snapshot: Snapshot,
    decided: decisions.Performing,
    tool: ToolContract,
    fingerprint: str,
    worker: str,
    now: Instant,
    state: dict[str, str],
) -> Calling:
    """The position waits, and its call goes."""
    job, before, call = snapshot.job, snapshot.position, decided.calls[0]
    name = f"job/{call.tool}/{before.occurrence}.0"
    position = replaced(
        before,
        crashes=0,
        ended=now,
        not_before=None,
        code=effects.CODE,
        reason=f"it waits for {name}",
    )
    effect = Effect(
        id=name,
        state=EffectState.DISPATCHING,
        item="",
        business_object=call.business_object,
        operation_key=keys.operation_key(job.id, job.sha256, "", before.occurrence, call.tool, 0),
        fingerprint=fingerprint,
        tool=call.tool,
        target=effects.shown_target(tool),
        arguments=call.arguments,
        expected_result=call.expected_result,
        version=tool.version,
        step=before.at,
        occurrence=before.occurrence,
        unbound=call.unbound,
        proposed=now,
        errands=1,
        dispatches=1,
        first_dispatch=now,
    )
    errand = Errand(
        effect=name,
        kind=ErrandKind.SEND,
        epoch=snapshot.epoch,
        number=1,
        started=now,
        until=later(now, tool.timeout),
        worker=worker,
    )
    performance = Performance(
        unit="",
        step=before.at,
        occurrence=before.occurrence,
        effects=(name,),
        then=decided.then,
        otherwise=decided.otherwise,
        back=decided.back,
    )
    return Calling(position, effect, errand, performance, state, tool)


def after_call(snapshot: Snapshot, calling: Calling, sequence: int, at: Instant) -> Snapshot:
    """The snapshot after the line `sequence` that says so, written at `at`, as `apply.after` makes it."""
    effect = calling.effect
    return replaced(
        snapshot,
        sequence=sequence,
        newest=at if at.wall >= snapshot.newest.wall else snapshot.newest,
        last_transition="returned",
        position=calling.position,
        state={**snapshot.state, **calling.state} if calling.state else snapshot.state,
        tries={},
        effects=snapshot.effects.put((effect,)),
        errands={effect.id: calling.errand},
        performances={**snapshot.performances, "": calling.performance},
    )


# ---- landed -----------------------------------------------------------------------------------------------


def find_landing(snapshot: Snapshot, event: events.Returned, now: Instant) -> Landing | None:
    """What it comes to that a plain call has landed: the job enters the step that follows."""
    decided, name = event.answer.decided, event.unit.removeprefix(ERRAND)
    row, effect = snapshot.errands.get(name), snapshot.effects.get(name)
    performance, position = snapshot.performances.get(""), snapshot.position
    if (
        type(decided) is not decisions.Landed
        or not event.unit.startswith(ERRAND)
        or row is None
        or effect is None
        or performance is None
        or (row.epoch, row.number) != (event.epoch, event.number)
        or len(snapshot.errands) != 1
        or snapshot.tries
        or _of_landed(decided) != _WITHOUT_WORDS
        or plain.of_event(event) != plain.BARE
        or plain.of_answer(event.answer) != plain.SPENT_NOTHING
        or event.answer.state
        or _of_errand(row) != _GOES
        or row.kind is not ErrandKind.SEND
        or effect.state is not EffectState.DISPATCHING
        or effect.item != ""
        or effect.proposed is None
        or effect.first_dispatch is None
        or _of_effect(effect) != _LET_GO
        or snapshot.effects.held
        or len(snapshot.effects.unsettled) != 1
        or performance.effects != (name,)
        or performance.over
        or performance.occurrence != position.occurrence
        or not performance.then
        or position.state is not ItemState.IN_PROGRESS
        or _of_position(position) != _SETTLED
        or snapshot.contract.slots != 1
        or not _goes_on(snapshot, now)
    ):
        return None
    contract = snapshot.contract.step(performance.then)
    if contract is None:
        return None
    going = plain.going(snapshot, {}, contract, row.worker, now)
    effect = replaced(
        effect,
        state=EffectState.CONFIRMED,
        reference=decided.reference,
        confirmed_by="send",
        settled=now,
    )
    given = replaced(performance, over=True, led=going.position.occurrence)
    return Landing(going.position, going.row, going.permitted, effect, given)


def after_landing(snapshot: Snapshot, landing: Landing, sequence: int, at: Instant) -> Snapshot:
    """The snapshot after the line `sequence` that says so, written at `at`, as `apply.after` makes it."""
    return replaced(
        snapshot,
        sequence=sequence,
        newest=at if at.wall >= snapshot.newest.wall else snapshot.newest,
        last_transition="effect",
        position=landing.position,
        next=snapshot.next if landing.permitted is None else landing.permitted,
        tries={"": landing.row},
        effects=snapshot.effects.put((landing.effect,)),
        errands={},
        performances={**snapshot.performances, "": landing.performance},
    )


# ---- both -------------------------------------------------------------------------------------------------


def _goes_on(snapshot: Snapshot, now: Instant) -> bool:
    """Whether nothing stands in the job's way."""
    if _of_job(snapshot) != _FREE or not plain.is_steady(snapshot, now):
        return False
    deadline = limits.deadline(snapshot)
    return deadline is None or not reached(deadline, now)


def _is_step(snapshot: Snapshot, name: str) -> bool:
    """Whether it is a step of the job, or none is named."""
    step = snapshot.contract.step(name) if name else None
    return not name or (step is not None and step.kind is StepKind.JOB)
