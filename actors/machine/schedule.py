"""The law of schedules: what a job waits for before anything of it starts, and what ends such a wait.

A wait is a row: the instant before which the job must not start, or another job that must have completed.
While a row is there nothing starts. A row goes when its instant has come or its job has completed; a row
whose job will not complete by itself holds the job until it is told otherwise, or a person lets it go on.
"""

from attrs import evolve

from resumed.schemas import events, times
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant, reached, spell
from resumed.schemas.job import Job
from resumed.schemas.jobfile import JobFile
from resumed.schemas.ledger import Obstacle, Wait, WaitKind
from resumed.schemas.snapshot import Snapshot

from .draft import Draft
from .verdict import Unchanged

AFTER = "after"
"""The code of a hold that only says that another job will not complete by itself."""

SAID: dict[Obstacle, str] = {
    Obstacle.FAILED: "which failed",
    Obstacle.CANCELED: "which was canceled",
    Obstacle.EXPIRED: "which was ended by its deadline",
    Obstacle.UNKNOWN: "and there is no job of that name",
    Obstacle.SET_ASIDE: "whose files are set aside",
    Obstacle.CIRCLE: "which waits for this one itself",
}
"""What is said of a job that will not complete by itself, after its name."""
PASSING = frozenset({Obstacle.UNKNOWN, Obstacle.SET_ASIDE, Obstacle.CIRCLE})
"""Obstacles that may go away: the job is told, and the hold lifts by itself."""


def instants(file: JobFile, now: Instant, what: str) -> tuple[Instant | None, Instant | None]:
    """When a job that is admitted now may start and when it ends; FaultyInputError (begun by `what`).

    Spans count from now; from here on they are instants like all others.
    """
    found: dict[str, Instant | None] = {}
    problems: list[str] = []
    for key, text in (("not_before", file.not_before), ("deadline", file.deadline)):
        found[key] = None
        try:
            found[key] = times.instant(times.read(text), now) if text else None
        except ValueError as error:
            problems.append(f"{error} @ $.{key}")
    start, end = found["not_before"], found["deadline"]
    if end is not None and reached(end, now):
        problems.append(f"the deadline has passed: {file.deadline} @ $.deadline")
    if problems:
        raise FaultyInputError(what, tuple(problems))
    return start, end


def opening(job: Job, now: Instant) -> tuple[Wait, ...]:
    """The waits that a job comes in with."""
    waits: list[Wait] = []
    if job.not_before is not None and not reached(job.not_before, now):
        waits.append(Wait(id="not_before", kind=WaitKind.TIMER, deadline=job.not_before, owner=job.owner))
    waits += [
        Wait(id=f"after {other}", kind=WaitKind.OTHER_JOB, event=other, owner=job.owner)
        for other in job.after
    ]
    return tuple(waits)


def told(draft: Draft, event: events.OtherJob) -> str | Unchanged:
    """The job is told of another one: it has completed, or it will (or will not) by itself."""
    row = next((each for each in draft.waits if each.event == event.job), None)
    if row is None:
        return Unchanged(reason=f"{draft.job.id} does not wait for {event.job}")
    if event.completed:
        draft.waits = tuple(each for each in draft.waits if each is not row)
    elif row.obstacle is event.obstacle:
        return Unchanged(reason=f"{draft.job.id} knows already how {event.job} stands")
    else:
        changed = evolve(row, obstacle=event.obstacle)
        draft.waits = tuple(changed if each is row else each for each in draft.waits)
    if draft.hold is not None and draft.hold.code == AFTER and draft.hold.reason != _reason(draft):
        draft.hold = None
    if event.completed:
        return f"{event.job} has completed"
    return f"{event.job}: {event.obstacle}" if event.obstacle is not None else f"{event.job} goes on"


def lapse(draft: Draft) -> bool:
    """Take out the rows whose instant has come; True when there were some."""
    then = draft.then
    left = tuple(row for row in draft.waits if row.deadline is None or not reached(row.deadline, then))
    if len(left) == len(draft.waits):
        return False
    draft.waits = left
    return True


def settle(draft: Draft) -> None:
    """A job that waits for one that will not complete by itself is held, unless it is held already."""
    if draft.hold is None and not draft.stopping() and (reason := _reason(draft)):
        draft.set_hold(AFTER, reason)


def go_on(draft: Draft) -> None:
    """A person lets it go on without the jobs that will not complete by themselves."""
    draft.waits = tuple(row for row in draft.waits if row.obstacle is None)


def start_by_wall(draft: Draft) -> None:
    """A person lets it start at a time that only the wall clock says has come."""
    wall = draft.now.wall
    draft.waits = tuple(
        row
        for row in draft.waits
        if row.kind is not WaitKind.TIMER or row.deadline is None or row.deadline.wall > wall
    )


def _reason(draft: Draft) -> str:
    """Why its waits hold the job; empty when none does."""
    blocked = [f"{row.event}, {SAID[row.obstacle]}" for row in draft.waits if row.obstacle is not None]
    return f"it starts after {'; and after '.join(blocked)}" if blocked else ""


def said(snapshot: Snapshot) -> str:
    """What a job that has waits waits for."""
    waits = snapshot.waits
    others = [row.event for row in waits if row.kind is WaitKind.OTHER_JOB]
    parts = [f"until {spell(row.deadline.wall)}" for row in waits if row.deadline is not None]
    if snapshot.breaker is not None and any(row.kind is WaitKind.BREAKER for row in waits):
        most = snapshot.contract.limits.failures_in_a_row
        parts[-1] += f", since {most} tries in a row failed with one reason: {snapshot.breaker.reason}"
    if others:
        shown = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
        parts.append(f"for {shown} to complete")
    return f"waiting {' and '.join(parts)}"
