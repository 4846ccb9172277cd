"""The law of questions to people: one is asked, somebody answers it, and the unit goes on with the answer.

A question that nobody it was put to answers in time goes to the operators; no answer is ever made up.
"""

from attrs import evolve

from resumed.schemas import decisions, durations, frames
from resumed.schemas.instant import Instant, reached
from resumed.schemas.job import Item, ItemState
from resumed.schemas.ledger import Question
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.workflow import StepKind

from .draft import Draft

CODE = "question"
"""The code of a unit that waits for an answer."""


def problem(draft: Draft, unit: Item, decided: decisions.Decided) -> str:
    """Why a question cannot be asked; empty when it can, or there is none."""
    if not isinstance(decided, decisions.Asking):
        return ""
    kind = StepKind.ITEM if unit.id else StepKind.JOB
    step = draft.contract.step(decided.then)
    if step is None or step.kind is not kind:
        return f"step {unit.at} went to {decided.then!r}, which is not a step of each {kind}"
    if not decided.text.strip():
        return f"step {unit.at} asks a question without words"
    if decided.of and not decided.of.startswith(("user:", "group:")):
        return f"step {unit.at} asks {decided.of!r}, expected user:NAME or group:NAME"
    if decided.within is not None and not 0 < decided.within <= durations.MOST:
        return f"step {unit.at}: expected a time of more than 0 s and {durations.MOST:.0f} s at most"
    return ""


def begin(draft: Draft, unit: Item, decided: decisions.Asking) -> str:
    """The question is asked, and the unit waits for its answer without a try."""
    row = Question(
        id=f"{unit.id or 'job'}/question/{unit.occurrence}.{unit.tries}",
        text=decided.text,
        choices=decided.choices,
        asked_of=decided.of,
        deadline=None if decided.within is None else draft.ahead(decided.within),
        unit=unit.id,
        then=decided.then,
        asked=draft.now,
        occurrence=unit.occurrence,
    )
    draft.questions = (*(each for each in draft.questions if each.unit != unit.id), row)
    draft.put(evolve(unit, state=ItemState.IN_PROGRESS, not_before=None, code=CODE, reason=decided.text))
    return "asks a question"


def put(draft: Draft, row: Question) -> None:
    """Lay one question over the present ones."""
    draft.questions = tuple(row if each.id == row.id else each for each in draft.questions)


def waits(unit: Item | None, row: Question) -> bool:
    """Whether it still waits for its answer."""
    return (
        row.answered is None
        and unit is not None
        and unit.state is ItemState.IN_PROGRESS
        and unit.occurrence == row.occurrence
    )


def _is_of_use(unit: Item, row: Question) -> bool:
    if waits(unit, row):
        return True
    return row.answered is not None and unit.state is not ItemState.DONE and unit.occurrence == row.led


def settle(draft: Draft) -> None:
    """What is of no more use goes: its unit was left out, or the step that it led to has decided."""
    if not draft.questions:
        return
    changed = {unit.id: unit for unit in draft.changed_units()}
    left = tuple(
        row for row in draft.questions if row.unit not in changed or _is_of_use(changed[row.unit], row)
    )
    if len(left) < len(draft.questions):
        draft.questions = left


def lapse(draft: Draft) -> int:
    """What nobody it was put to has answered in time goes to the operators; how many there were."""
    count = 0
    for row in draft.questions:
        if _lapses(draft, row) and row.deadline is not None and reached(row.deadline, draft.then):
            put(draft, evolve(row, widened=True))
            count += 1
    return count


def _lapses(standing: Snapshot | Draft, row: Question) -> bool:
    unit = standing.position if row.unit == "" else standing.items.get(row.unit)
    return row.deadline is not None and not row.widened and waits(unit, row)


def next_lapse(standing: Snapshot | Draft) -> Instant | None:
    """When the first of them goes to the operators; None when none will."""
    ends = [row.deadline for row in standing.questions if _lapses(standing, row) and row.deadline is not None]
    return min(ends, key=lambda at: at.wall, default=None)


def who(owner: str) -> str:
    """An owner as rules name people: a bare name is a user's."""
    return owner if owner.startswith(("user:", "group:")) else f"user:{owner}"


def asked_of(question: Question, owner: str) -> str:
    """Whom a question was put to: whom it names, else the job's owner."""
    return question.asked_of or who(owner)


def given(snapshot: Snapshot, unit: str) -> frames.Given | None:
    """What the step is given that an answer led to; None where none did."""
    item = snapshot.position if unit == "" else snapshot.items.get(unit)
    for row in snapshot.questions:
        if row.unit == unit and row.answered is not None and item is not None and row.led == item.occurrence:
            return frames.Given(answer=row.answer, by=row.answered_by)
    return None
