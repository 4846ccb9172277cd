"""The plain step: a step of the job that goes on to another, decided in one go; it is no law of its own.

Where it answers, it answers what the law at large would, in a third of the time; the tests ask both wherever
they decide anything. It answers only while every field that it does not know, of the job and of the event,
holds its default: a rule that brings fields of its own need not know of it.

The same holds for what follows from it: the snapshot after it, and when to look again.
"""

from attrs import frozen

from resumed.schemas import decisions, events, strict
from resumed.schemas.durations import MOST
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant, later
from resumed.schemas.job import Item, ItemState, Next, Try
from resumed.schemas.records import others, replaced
from resumed.schemas.snapshot import Changes, Decision, Entry, Snapshot
from resumed.schemas.workflow import StepContract, StepKind

from . import limits, reckoning

KNOWN = (
    *(
        "job",
        "contract",
        "code_version",
        "sequence",
        "epoch",
        "newest",
        "last_transition",
        "position",
        "next",
    ),
    *("state", "items", "attempt", "tries", "budget", "used", "clocks", "effects", "receipts"),
)
"""Fields of a job that a plain step knows, or need not know."""
_of_job, _FREE = others(Snapshot, *KNOWN)
of_event, BARE = others(events.Returned, "unit", "epoch", "number", "answer")
of_answer, SPENT_NOTHING = others(decisions.Answer, "decided", "state")
_of_goto, _ALONE = others(decisions.GoTo, "step")
of_try, RUNS = others(Try, *("epoch", "item", "number", "step", "occurrence", "started", "until", "worker"))


@frozen(slots=False)  # made at every step and soon gone: quicker so
class Going:
    """What a plain step comes to: the position in the step it goes on at, its open try, what is permitted
    next where that is another step, and the fields of the state that are new."""

    position: Item
    row: Try
    permitted: Next | None
    state: dict[str, str]


def step(snapshot: Snapshot, event: events.Returned, now: Instant) -> Entry | None:
    """The entry for a handler's answer that the job goes on at another of its own steps, in the slot that the
    try held; None where anything else is to be considered."""
    found = find(snapshot, event, now)
    if found is None:
        return None
    return Entry(
        transition="returned",
        decision=Decision(by="author", rule="returned", choice=f"goto {found.row.step}"),
        changes=Changes(
            tries=(found.row,), position=found.position, next=found.permitted, state=dict(found.state)
        ),
    )


def find(snapshot: Snapshot, event: events.Returned, now: Instant) -> Going | None:
    """The same before it is an entry."""
    answer = event.answer
    decided = answer.decided
    row = snapshot.tries.get("")
    if (
        type(decided) is not decisions.GoTo
        or event.unit != ""
        or row is None
        or (row.epoch, row.number) != (event.epoch, event.number)
        or len(snapshot.tries) != 1
        or _of_goto(decided) != _ALONE
        or of_event(event) != BARE
        or of_answer(answer) != SPENT_NOTHING
        or of_try(row) != RUNS
        or len(snapshot.effects)
        or _of_job(snapshot) != _FREE
    ):
        return None
    contract = snapshot.contract.step(decided.step)
    if (
        contract is None
        or contract.kind is not StepKind.JOB
        or snapshot.position.torn
        or snapshot.position.note
        or not is_steady(snapshot, now)
    ):
        return None
    try:
        for text in answer.state.values():
            strict.check_json_text(text, "")
    except FaultyInputError:
        return None
    return going(snapshot, answer.state, contract, row.worker, now)


def is_steady(snapshot: Snapshot, now: Instant) -> bool:
    """Whether the clocks are believed, an attempt is open, and no limit is reached: asked for both kinds of
    quick turns."""
    clocks = snapshot.clocks
    return not (
        clocks is None
        or clocks.jumped is not None
        or clocks.floor
        or not reckoning.agree(clocks.known, now)
        or snapshot.attempt is None
        or limits.reached(snapshot, now)
    )


def going(
    snapshot: Snapshot, state: dict[str, str], contract: StepContract, worker: str, now: Instant
) -> Going:
    """The position enters the step of this contract and its next try starts."""
    name = contract.name
    before = snapshot.position
    occurrence, number = before.occurrence + 1, before.tries + 1
    position = replaced(
        before,
        state=ItemState.IN_PROGRESS,
        at=name,
        occurrence=occurrence,
        tries=number,
        failures=0,
        crashes=1,
        not_before=None,
        started=now,
        ended=None,
        data="{}",
        code="",
        reason="",
    )
    started = Try(
        epoch=snapshot.epoch,
        item="",
        number=number,
        step=name,
        occurrence=occurrence,
        started=now,
        until=later(now, min(contract.timeout, MOST)),
        worker=worker,
    )
    permitted = None if snapshot.next.step == name else replaced(snapshot.next, step=name)
    return Going(position, started, permitted, state)


def after(snapshot: Snapshot, found: Going, sequence: int, at: Instant) -> Snapshot:
    """The snapshot after the line `sequence` that says so, written at `at`, as `apply.after` makes it."""
    return replaced(
        snapshot,
        sequence=sequence,
        newest=at if at.wall >= snapshot.newest.wall else snapshot.newest,
        last_transition="returned",
        position=found.position,
        next=snapshot.next if found.permitted is None else found.permitted,
        state={**snapshot.state, **found.state} if found.state else snapshot.state,
        tries={"": found.row},
    )


def is_timed(snapshot: Snapshot) -> bool:
    """False where the next instant to look at the job after a plain step is the end of its try: nothing
    else of it is a matter of time."""
    budget = snapshot.budget
    return not (budget.active_seconds is None and budget.deadline is None and snapshot.job.deadline is None)
