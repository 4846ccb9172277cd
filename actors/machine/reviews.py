"""The law of drafts that wait for a person: when they are laid before one, and when that is over.

What a person decides about one is `drafts`. A draft is bytes by their sha256; an edit makes another revision.
"""

from attrs import evolve

from resumed.schemas import decisions, frames, strict
from resumed.schemas.approvals import Policy
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.job import Artifact, Item, ItemState
from resumed.schemas.ledger import Review
from resumed.schemas.records import replaced
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.workflow import StepKind

from . import rounds
from .draft import Draft
from .handing import enter, keep

CODE = "review"
"""The code of an item whose draft waits to be looked at."""
TOOL = ""
"""Where a rule is looked for that is in force for drafts."""


def problem(draft: Draft, unit: Item, decided: decisions.Decided, kept: tuple[Artifact, ...]) -> str:
    """Why a draft cannot be laid before people; empty when it can, or there is none."""
    if not isinstance(decided, decisions.Reviewing):
        return ""
    if unit.id == "":
        return f"step {unit.at}: Reviewing is a decision about an item, not about the job"
    if len(kept) != len(decisions.offers(decided)):
        return f"step {unit.at}: the bytes that come with its draft were not kept"
    step = draft.contract.step(decided.then) if decided.then else None
    if decided.then and (step is None or step.kind is not StepKind.ITEM):
        return f"step {unit.at} went to {decided.then!r}, which is not a step of each {StepKind.ITEM}"
    if decided.rule.quorum < 1 or not (decided.rule.decide_within > 0 and decided.rule.valid_for > 0):
        return f"step {unit.at}: a review needs a quorum of at least 1, and times above 0"
    try:
        strict.check_json_text(decided.data, "")
    except FaultyInputError as error:
        return str(FaultyInputError(f"step {unit.at}: cannot keep the data", error.problems))
    return ""


def begin(
    draft: Draft,
    unit: Item,
    decided: decisions.Reviewing,
    kept: tuple[Artifact, ...],
    policies: tuple[Policy, ...] = (),
) -> str:
    """The draft is laid before people, and the item waits for them without a try."""
    before = draft.reviews.get(unit.id)
    text = kept[0]
    if before is not None and before.draft.name == text.name:
        text = evolve(text, revision=before.draft.revision + 1)
    gate = rounds.begun(draft, *rounds.in_force(TOOL, decided.rule, policies))
    first = 1 + max((row.round for row in draft.approvals_of(unit.id)), default=0)
    row = Review(
        unit=unit.id,
        step=unit.at,
        occurrence=unit.occurrence,
        draft=text,
        rule=decided.rule,
        gate=evolve(gate, round=first),
        edit=decided.edit,
        then=decided.then,
        data=decided.data,
        shown=kept[1] if len(kept) > 1 else None,
    )
    put(draft, row)
    said = f"revision {text.revision} waits to be looked at"
    draft.put(evolve(unit, state=ItemState.REVIEW, not_before=None, code=CODE, reason=said))
    return f"review of revision {text.revision}"


def put(draft: Draft, row: Review) -> None:
    """Lay one review over the table."""
    draft.reviews = {**draft.reviews, row.unit: row}


def is_open(unit: Item | None, row: Review) -> bool:
    """Whether the draft still waits to be looked at."""
    waits = unit is not None and unit.state is ItemState.REVIEW and unit.occurrence == row.occurrence
    return waits and not row.decision


def _is_of_use(unit: Item, row: Review) -> bool:
    """Whether the step that it led to has not decided yet, or it waits."""
    if is_open(unit, row):
        return True
    return bool(row.decision) and unit.state is not ItemState.DONE and unit.occurrence == row.led


def settle(draft: Draft) -> None:
    """What is of no more use goes: its item was left out, or the step that it led to has decided."""
    if not draft.reviews:
        return
    gone = {
        unit.id
        for unit in draft.changed_units()
        if (row := draft.reviews.get(unit.id)) is not None and not _is_of_use(unit, row)
    }
    if gone:
        draft.reviews = {name: row for name, row in draft.reviews.items() if name not in gone}


def lapse(draft: Draft) -> int:
    """Every round whose time has passed is followed by another; how many there were."""
    count = 0
    for row in list(draft.reviews.values()):
        if is_open(draft.items.get(row.unit), row) and rounds.is_over(draft, row.gate):
            why = rounds.lapse_of(row.gate, rounds.given(draft.approvals_of(row.unit), row.gate))
            put(draft, evolve(row, gate=rounds.anew(draft, row.gate, why)))
            count += 1
    return count


def next_lapse(standing: Snapshot | Draft) -> Instant | None:
    """When the first of these rounds is over; None when none will be."""
    ends = [
        row.gate.until
        for row in standing.reviews.values()
        if row.gate.until is not None and is_open(standing.items.get(row.unit), row)
    ]
    return min(ends, key=lambda at: at.wall, default=None)


def given(snapshot: Snapshot, unit: str) -> frames.Given | None:
    """What the step is given that a draft led to; None where none did."""
    row, item = snapshot.reviews.get(unit), snapshot.items.get(unit)
    if row is None or item is None or row.led != item.occurrence or row.decision not in rounds.YES:
        return None
    return frames.Given(text=row.draft, editor=row.editor, by=row.by)


def led(draft: Draft, unit: Item, row: Review) -> None:
    """The item is done with the text, or goes on with it."""
    if row.then:
        if row.draft.name == row.step:
            # A program's output, named by its step: what later steps find is the text that was accepted.
            unit = keep(unit, row.draft)
        unit = enter(unit, row.then, data=row.data)
        put(draft, evolve(row, led=unit.occurrence))
    else:
        unit = replaced(unit, state=ItemState.DONE, output=row.draft, outputs=(), code="", reason="")
    draft.put(unit)
