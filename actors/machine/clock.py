"""The law of the clocks: a job that nobody can tell the time for is held, and goes on once that is known."""

from attrs import evolve

from resumed.schemas.instant import Instant

from . import limits, reckoning, schedule
from .draft import Draft


def settle(draft: Draft) -> str:
    """Hold what only a doubtful clock would decide, and let go what was held for that once it is known; what
    was done in a few words, empty when nothing was."""
    if draft.outcome is not None or draft.stopping():
        return ""
    if is_unsettled(draft, draft.now):
        if draft.hold is None:
            draft.set_hold(reckoning.CLOCK, _doubt(draft, draft.now))
            return "held for the clock"
        draft.hold = None
        return "the clock is known"
    if has_limits(draft) and reckoning.is_unread(draft, draft.now):
        return "the clock was read"
    return ""


def is_unsettled(standing: limits.Standing, now: Instant) -> bool:
    """True for a job that is to be held for its clocks and is not, or is and is not to be any longer."""
    if standing.hold is None:
        return bool(_doubt(standing, now))
    return standing.hold.code == reckoning.CLOCK and not _doubt(standing, now)


def _doubt(standing: limits.Standing, now: Instant) -> str:
    return reckoning.doubt(standing, now, limits.deadline(standing), standing.waits)


def has_limits(standing: limits.Standing) -> bool:
    """True for a job with a moment that no retry made: a jump of the wall clock would decide about it."""
    return limits.deadline(standing) is not None or any(row.deadline for row in standing.waits)


def accept(draft: Draft) -> None:
    """A person lets the job go on by the time that went by, and start at a time that the wall clock shows."""
    clocks = reckoning.observed(draft, draft.now) or draft.clocks
    assert clocks is not None
    draft.clocks = evolve(clocks, accepted=True)
    schedule.start_by_wall(draft)
