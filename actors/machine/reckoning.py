"""Reckoning: what time it is for a job, and what nobody can tell (DESIGN.md section 8).

A job keeps the last moment at which its two clocks were believed together. From there the boot clock, which
nobody sets and which runs through a suspend, carries the time on: a limit lapses by that. A wall clock that
has moved alone since is noted and not believed: what only it would decide holds the job. In another boot the
wall is believed when it is not behind the newest record and the time since that boot began; until then its
time is the least that it can be, and work that is allowed only because time has not passed is held.
"""

from typing import Protocol

from attrs import evolve, frozen

from resumed.schemas.durations import spell
from resumed.schemas.instant import MICRO, Instant, later, reached
from resumed.schemas.job import Clocks, Job
from resumed.schemas.ledger import Wait, WaitKind

CLOCK = "clock"
"""The code of a hold that only says that nobody can tell what time it is."""
TOLERANCE = 2 * MICRO
"""Microseconds that both clocks may differ by unexplained: a leap second, and the second that a machine's
own clock is kept by."""


class Timed(Protocol):
    """A snapshot, or a draft: what is known of time in it."""

    @property
    def clocks(self) -> Clocks | None: ...
    @property
    def newest(self) -> Instant: ...


@frozen
class Sight:
    """What the clocks say at one moment: the wall that is reckoned with, whether it is known (else it is the
    least that it can be), and by how much the wall clock is ahead of it (0 where the two agree)."""

    wall: int
    known: bool = True
    ahead: int = 0


def sight(timed: Timed, now: Instant) -> Sight:
    """What to make of the clocks."""
    clocks = timed.clocks
    known = clocks.known if clocks is not None else timed.newest
    if known.boot != now.boot:
        least = _least(timed, now)
        if now.wall >= least - TOLERANCE:
            return Sight(now.wall)
        return Sight(least, known=False, ahead=now.wall - least)
    wall = known.wall + now.up - known.up
    ahead = now.wall - wall
    if clocks is not None and clocks.floor:
        return Sight(wall, known=False, ahead=ahead) if ahead < -TOLERANCE else Sight(now.wall)
    return Sight(now.wall) if abs(ahead) <= TOLERANCE else Sight(wall, ahead=ahead)


def _least(timed: Timed, now: Instant) -> int:
    """The least that the wall can be in another boot: the newest record's, and all of this boot on top."""
    clocks, newest = timed.clocks, timed.newest
    if newest.boot == now.boot:
        return newest.wall + now.up - newest.up
    wall = newest.wall
    if clocks is not None and clocks.jumped is not None and newest.boot == clocks.known.boot:
        # Its wall was not believed when it was written.
        wall = clocks.known.wall + newest.up - clocks.known.up
    return max(wall, clocks.known.wall if clocks is not None else wall) + now.up


def trusted(timed: Timed, now: Instant) -> Instant:
    """This moment on the clocks that limits are kept by: `now` itself while both are believed."""
    clocks = timed.clocks
    if clocks is not None and not clocks.floor and agree(clocks.known, now):
        return now  # the usual case, decided without a record: it is asked for in every step
    wall = sight(timed, now).wall
    return now if wall == now.wall else Instant(wall=wall, boot=now.boot, up=now.up)


def agree(known: Instant, now: Instant) -> bool:
    """True when both clocks have gone the same way since `known`, in one boot."""
    return known.boot == now.boot and -TOLERANCE <= now.wall - now.up - known.wall + known.up <= TOLERANCE


def observed(timed: Timed, now: Instant) -> Clocks | None:
    """What is to be recorded of the clocks with this moment; None when all of it is on record."""
    clocks = timed.clocks
    if clocks is not None and clocks.jumped is None and not clocks.floor and agree(clocks.known, now):
        return None  # the usual case, decided without a record
    seen = sight(timed, now)
    here = Instant(wall=seen.wall, boot=now.boot, up=now.up)
    if clocks is None or clocks.known.boot != now.boot:
        jumped = now if seen.known and seen.ahead else None
        return Clocks(known=here, floor=not seen.known, jumped=jumped)
    if clocks.floor:
        return Clocks(known=here) if seen.known else None
    if not seen.ahead:
        return None if clocks.jumped is None else evolve(clocks, jumped=None, accepted=False)
    before = clocks.jumped
    if before is not None and abs((before.wall - before.up) - (now.wall - now.up)) <= TOLERANCE:
        return None
    return evolve(clocks, jumped=now, accepted=False)


def is_unread(timed: Timed, now: Instant) -> bool:
    """True while nothing of this boot's clocks is on record: a jump would pass for the truth."""
    return timed.clocks is None or timed.clocks.known.boot != now.boot


# ---- what nobody can tell ---------------------------------------------------------------------------------


def doubt(timed: Timed, now: Instant, deadline: Instant | None, waits: tuple[Wait, ...]) -> str:
    """Why the clocks hold a job with these limits; empty when they do not, or a person has said to go on."""
    if deadline is None and not waits:
        return ""  # no moment that a clock would decide about
    clocks = observed(timed, now) or timed.clocks
    if clocks is not None and clocks.accepted:
        return ""
    seen = sight(timed, now)
    then = trusted(timed, now)
    if not seen.known:
        if deadline is None or reached(deadline, then):
            return ""
        gap = spell(-seen.ahead / MICRO)
        return (
            f"nobody can tell whether its deadline has passed: in this boot the wall clock shows {gap} less "
            "than it must"
        )
    if seen.ahead <= 0:
        return ""
    for limit, said in moments(deadline, waits):
        if now.wall >= limit.wall and not reached(limit, then):
            left = spell((limit.wall - then.wall) / MICRO)
            return (
                f"only a wall clock that was set forward by {spell(seen.ahead / MICRO)} says that {said}: "
                f"by the time that went by, that is {left} away"
            )
    return ""


def moments(deadline: Instant | None, waits: tuple[Wait, ...]) -> list[tuple[Instant, str]]:
    """The moments that were set by the wall clock, each with what is so once it has come; waits that failures
    make are spans, and only spans."""
    ends = [] if deadline is None else [(deadline, "its deadline has passed")]
    timers = [row.deadline for row in waits if row.kind is WaitKind.TIMER and row.deadline is not None]
    return [*ends, *((at, "it may start") for at in timers)]


# ---- when to look again -----------------------------------------------------------------------------------


def look(timed: Timed, now: Instant, limit: Instant) -> Instant:
    """When the clocks of this boot will have reached a limit, as a timer can be set to: the limit itself,
    unless the wall clock is not believed now."""
    then = trusted(timed, now)
    if then is now:
        return limit
    left = limit.wall - then.wall
    if limit.boot == now.boot:
        left = min(left, limit.up - now.up)
    return later(now, left / MICRO)


def look_by_wall(timed: Timed, now: Instant, limit: Instant) -> Instant | None:
    """When a wall clock that is ahead of the time will show a limit: that is to be held then; None when it
    is not ahead."""
    if not sight(timed, now).known or sight(timed, now).ahead <= 0:
        return None
    return later(now, max(0, limit.wall - now.wall) / MICRO)


def created(job: Job) -> Clocks:
    """What a job that comes in knows: its two clocks are believed then."""
    return Clocks(known=job.created)
