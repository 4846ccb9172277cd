"""The law of work: starts, answers and deaths.

Each function takes a draft and the event, lays its changes over the draft and returns the choice made; a
refusal or an Unchanged leaves the draft to be thrown away.
"""

from math import isnan

from attrs import evolve

from resumed.schemas import decisions, durations, events, strict
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import MICRO
from resumed.schemas.job import (
    Artifact,
    Budget,
    Each,
    Item,
    ItemState,
    StopReason,
    Try,
)
from resumed.schemas.records import replaced
from resumed.schemas.refusal import Refusal
from resumed.schemas.workflow import StepKind

from . import (
    breaker,
    effects,
    errands,
    handing,
    limits,
    outcomes,
    publishing,
    questions,
    reviews,
    sources,
    unsettled,
)
from .draft import NOT_GONE, Draft
from .due import SUSPECT_CRASHES as SUSPECT_CRASHES
from .due import wanted
from .ends import count_failure, cut_off, end_without_answer, hold_unit
from .settle import enter, settle
from .verdict import Unchanged

Choice = str | Refusal | Unchanged

# Tuples: a union is made anew each time it is written in a test, and asked more slowly than a tuple.
_OF_ITEMS = (decisions.NextStep, decisions.Accepted, decisions.LeftOut, decisions.SourceChanged)
_OF_THE_JOB = (decisions.GoTo, decisions.FanOut, decisions.Finished)
_BRINGS_ITEMS = (decisions.GoTo, decisions.FanOut)
_GOES_ON = (decisions.NextStep, decisions.GoTo, decisions.FanOut)

NEITHER = (
    *(decisions.TryAgain, decisions.CutOff, decisions.Later),
    *(decisions.Compared, decisions.SourceChanged),
)
"""Answers that end no row of failures: failures themselves, waits for a rate limit, and words on sources."""


def grant(draft: Draft, event: events.Grant) -> Choice:
    """A slot is given: the unit's try starts, if it still may; or an errand does."""
    if errands.is_errand(event.unit):
        return outcomes.grant(draft, event)
    if event.unit not in wanted(draft, draft.now, len(draft.items) + 1):
        return Unchanged(reason="the start is no longer wanted")
    unit = draft.unit(event.unit)
    assert unit is not None
    draft.start(unit, event.worker)
    return "started"


def _open_try(draft: Draft, unit: str, epoch: int, number: int) -> Try | None:
    row = draft.tries.get(unit)
    return row if row is not None and (row.epoch, row.number) == (epoch, number) else None


def returned(draft: Draft, event: events.Returned) -> Choice:
    """A handler answered. An answer for anything but the open try changes nothing."""
    if errands.is_errand(event.unit):
        return outcomes.returned(draft, event)
    row = _open_try(draft, event.unit, event.epoch, event.number)
    if row is None or event.late:
        return Unchanged(reason="stale: no such try is open")
    unit = draft.unit(event.unit)
    assert unit is not None
    worker = row.worker
    del draft.tries[unit.id]
    unit = replaced(unit, crashes=0, ended=draft.now)
    decided = event.answer.decided
    problem = (
        sources.problem(draft, decided, compares=row.compares)
        or _problem(draft, unit, decided)
        or effects.problem(draft, unit, decided, event.kept)
        or _text_problem(unit, event.answer)
        or publishing.problem(draft, unit, decided)
        or reviews.problem(draft, unit, decided, event.kept)
        or questions.problem(draft, unit, decided)
    )
    _spend(draft, event.answer.used)
    publishes = not problem and publishing.offered(decided) is not None
    if row.stop is StopReason.SKIP and not (publishes or isinstance(decided, decisions.Accepted)):
        choice = _left_out(draft, unit)
    elif problem:
        choice = count_failure(draft, unit, "author_error", problem)
    else:
        if unit.id == "":
            draft.state = dict(event.answer.state)
        if not isinstance(decided, NEITHER):
            breaker.close(draft)
        if publishes:
            choice = publishing.begin(draft, unit, event, row.stop is StopReason.SKIP)
        elif isinstance(decided, decisions.Performing):
            choice = effects.propose(draft, unit, decided, event.kept, event.policies)
        elif isinstance(decided, decisions.Reviewing):
            choice = reviews.begin(draft, unit, decided, event.kept, event.policies)
        elif isinstance(decided, decisions.Asking):
            choice = questions.begin(draft, unit, decided)
        else:
            choice = _decided(draft, unit, decided, event.output)
    settle(draft)
    if not event.slot:
        return choice
    if sent := effects.let_go(draft, unit.id, worker, event.facts):
        if sent != effects.SENT:
            settle(draft)
        return f"{choice}, {sent}"
    for name in wanted(draft, draft.now, 1):
        following = draft.unit(name)
        if following is not None and following.crashes < SUSPECT_CRASHES:
            draft.start(following, worker)
    return choice


def _spend(draft: Draft, used: Budget | None) -> None:
    """What a try spent counts whatever becomes of it, unless it cannot be added up."""
    if used is not None and not limits.fault_of(used):
        limits.spend(draft, used)


def _left_out(draft: Draft, unit: Item) -> str:
    draft.put(evolve(unit, state=ItemState.SKIPPED, code="skipped", reason="left out by a person"))
    return "skipped"


def _problem(draft: Draft, unit: Item, decided: decisions.Decided) -> str:
    """Why this decision cannot be carried out where it was made; empty when it can."""
    item = unit.id != ""
    if isinstance(decided, decisions.SAYS_OF_EFFECTS):
        return f"step {unit.at}: {type(decided).__name__} is no answer to a try of a step"
    if not item and isinstance(decided, _OF_ITEMS):
        return f"step {unit.at}: {type(decided).__name__} is a decision about an item, not about the job"
    if item and isinstance(decided, _OF_THE_JOB):
        return f"step {unit.at}: {type(decided).__name__} is a decision about the job, not about an item"
    wants: list[tuple[str, StepKind]] = []
    if isinstance(decided, decisions.NextStep):
        wants = [(decided.step, StepKind.ITEM)]
    elif isinstance(decided, decisions.GoTo):
        wants = [(decided.step, StepKind.JOB)]
    elif isinstance(decided, decisions.FanOut):
        wants = [(decided.start, StepKind.ITEM), (decided.then, StepKind.JOB)]
        if decided.parallel < 1 or (decided.tries is not None and decided.tries < 1):
            return f"step {unit.at}: a fan-out needs parallel and tries of at least 1"
    elif isinstance(decided, decisions.Later):
        seconds = decided.seconds if isnan(decided.seconds) else _pause(draft, decided)
        if not seconds <= durations.MOST:
            return f"step {unit.at}: cannot wait {seconds} seconds, the most is {durations.MOST:.0f}"
    if isinstance(decided, _BRINGS_ITEMS) and decided.items:
        names = [new.id for new in decided.items]
        if len(set(names)) < len(names) or "" in names:
            return f"step {unit.at} names an item twice, or by an empty name"
    for name, kind in wants:
        step = draft.contract.step(name)
        if step is None or step.kind is not kind:
            return f"step {unit.at} went to {name!r}, which is not a step of each {kind}"
    return ""


def _text_problem(unit: Item, answer: decisions.Answer) -> str:
    """Why the JSON texts of an answer cannot be kept; empty when they can."""
    what, name = "state field", ""
    try:
        for field, text in answer.state.items():
            name = field
            strict.check_json_text(text, "")
        if isinstance(answer.decided, decisions.NextStep):
            what, name = "data", ""
            strict.check_json_text(answer.decided.data, "")
        elif isinstance(answer.decided, _BRINGS_ITEMS):
            what = "inputs of"
            for new in answer.decided.items or ():
                name = new.id
                strict.check_json_text(new.inputs, "")
    except FaultyInputError as error:
        named = f"{what} {name}".strip()
        return str(FaultyInputError(f"step {unit.at}: cannot keep the {named}", error.problems))
    return ""


def placed(draft: Draft, event: events.Placed) -> Choice:
    """An attempt to publish an output, or to take it away, is over."""
    choice = publishing.came(draft, event, _decided)
    settle(draft)
    return choice


def _decided(draft: Draft, unit: Item, decided: decisions.Decided, output: Artifact | None) -> str:
    if isinstance(decided, decisions.Accepted):
        if output is not None and unit.output is not None:
            output = evolve(output, revision=unit.output.revision + 1)  # done once before, and begun again
        draft.put(evolve(unit, state=ItemState.DONE, output=output, outputs=(), code="", reason=""))
        return "done"
    if output is not None and isinstance(decided, _GOES_ON):
        unit = handing.keep(unit, output)
    if isinstance(decided, decisions.NextStep):
        if decided.waits and not handing.has_come(draft, decided.step):
            draft.put(handing.stand_by(unit, decided.data))
            return f"waits for {decided.step}"
        draft.put(enter(unit, decided.step, data=decided.data))
        return f"next {decided.step}"
    if isinstance(decided, decisions.GoTo):
        if decided.items:
            draft.put_many(handing.bring_in(draft, decided.items))
            sources.pinned(draft)
        draft.put(enter(unit, decided.step))
        return f"goto {decided.step}"
    if isinstance(decided, decisions.FanOut):
        return _fan_out(draft, unit, decided)
    if isinstance(decided, decisions.Finished):
        draft.put(evolve(unit, state=ItemState.DONE, code="", reason=""))
        return "finished"
    if isinstance(decided, decisions.Later):
        at = draft.ahead(_pause(draft, decided))
        draft.put(evolve(unit, state=ItemState.PENDING, not_before=at, code="later", reason=decided.reason))
        return "later"
    if isinstance(decided, decisions.HoldBack):
        hold_unit(draft, unit, decided.code, decided.reason)
        return "held"
    if isinstance(decided, decisions.LeftOut):
        draft.put(evolve(unit, state=ItemState.SKIPPED, code="left_out", reason=decided.reason))
        return "skipped"
    if isinstance(decided, decisions.CutOff):
        return cut_off(draft, unit, decided.code, decided.reason)
    if isinstance(decided, decisions.SourceChanged):
        return sources.changed(draft, unit, decided)
    if isinstance(decided, decisions.Compared):
        return sources.compared(draft, unit, decided)
    if isinstance(decided, decisions.TryAgain):
        return count_failure(draft, unit, decided.code, decided.reason)
    assert isinstance(decided, decisions.Failed)
    draft.put(evolve(unit, state=ItemState.FAILED, code="failed", reason=decided.reason))
    return "failed"


def _pause(draft: Draft, decided: decisions.Later) -> float:
    """Seconds until a unit that asked for a later time may be tried again."""
    until = 0.0 if decided.until is None else (decided.until - draft.then.wall) / MICRO
    return max(0.0, decided.seconds, until)


def _fan_out(draft: Draft, position: Item, decided: decisions.FanOut) -> str:
    """Items enter their first step; those named that do not exist are made, in the order they are named.

    What is done stays done, and what a person left out stays left out, whoever names it.
    """
    draft.each = Each(start=decided.start, then=decided.then, parallel=decided.parallel, tries=decided.tries)
    chosen: list[Item] = []
    if decided.items is None:
        # Those that ran in an earlier fan-out bring along what they were handed there.
        for item in draft.items:
            if item.state is ItemState.PENDING:
                item = replaced(item, source=decided.pins.get(item.id, item.source))
                chosen.append(enter(item, decided.start, data=item.data))
    else:
        chosen = [enter(item, decided.start) for item in handing.bring_in(draft, decided.items, decided.pins)]
    draft.put_many(chosen)
    draft.put(evolve(position, state=ItemState.PENDING, failures=0, not_before=None, code="", reason=""))
    if decided.items is not None or decided.pins:
        sources.pinned(draft)
    return f"each {len(chosen)} items from {decided.start}"


def raised(draft: Draft, event: events.Raised) -> Choice:
    """A handler ended with an error of its own: a failed try."""
    if errands.is_errand(event.unit):
        return outcomes.raised(draft, event)
    row = _open_try(draft, event.unit, event.epoch, event.number)
    if row is None or event.late:
        return Unchanged(reason="stale: no such try is open")
    unit = draft.unit(event.unit)
    assert unit is not None
    del draft.tries[unit.id]
    unit = evolve(unit, crashes=0, ended=draft.now)
    if row.stop is StopReason.SKIP:
        choice = _left_out(draft, unit)
    else:
        choice = count_failure(draft, unit, "raised", event.error)
    settle(draft)
    return choice


def gone(draft: Draft, event: events.Gone) -> Choice:
    """The tree of a try is known dead and gave no answer."""
    if errands.is_errand(event.unit):
        return outcomes.gone(draft, event)
    row = _open_try(draft, event.unit, event.epoch, event.number)
    if row is None:
        return Unchanged(reason="stale: no such try is open")
    unit = draft.unit(event.unit)
    assert unit is not None
    _spend(draft, event.used)
    choice = end_without_answer(
        draft, unit, row.stop, died=event.died, began=event.began, reason=event.reason
    )
    settle(draft)
    return choice


def woke(draft: Draft, event: events.Woke) -> Choice:
    """Loaded with an attempt open: its tries are interrupted, and what is not proven dead holds the job."""
    doubted = event.torn and draft.effects.unsettled
    if draft.attempt is None and not (draft.tries or draft.errands or doubted):
        return Unchanged(reason="no attempt was open")
    end = limits.last_known(draft)
    lets_go = draft.contract.slots == 1 and any(map(errands.may_go_at_once, draft.contract.effects))
    for row in list(draft.tries.values())[: event.most]:
        unit = draft.unit(row.item)
        assert unit is not None
        if event.torn and lets_go:
            unit = replaced(unit, torn=True)
        end_without_answer(draft, unit, row.stop, died=True, reason="")
    if draft.effects.unsettled:
        unsettled.woke(draft, event)
    if not draft.tries:
        limits.close_attempt(draft, end)
    if event.unproven:
        names = ", ".join(event.unproven)
        draft.set_hold(NOT_GONE, f"nobody can tell that these workers ended: {names}. {event.detail}".strip())
    settle(draft)
    return "woke"
