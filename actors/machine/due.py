"""What a snapshot wants done and when to look again: pure, level-triggered, the only source of actions.

A try that is open wants to run until it is marked to stop, then it wants to be stopped, until its end is
committed. Neither key comes back: a mark is cleared by the committed end alone, and each start takes a new
number. A `start` is a claim on a slot, not a task: it may lapse (a pause) and return.
"""

from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.instant import Instant, later, reached, seconds_until
from resumed.schemas.job import ItemState
from resumed.schemas.snapshot import Snapshot

from . import approvals, breaker, clock, errands, limits, pins, questions, reckoning, reviews
from .errands import stops as stops
from .limits import Standing
from .reckoning import trusted

NEAR_SECONDS = 60.0
"""A job whose next instant is nearer than this keeps its attempt and does not park (DESIGN.md section 3)."""
SUSPECT_CRASHES = 2
"""From this many deaths in a row on, a unit starts alone, store-wide (DESIGN.md section 3)."""
BEHIND = 64
"""How many items may wait for a step that runs as many tries as it may, before the steps ahead of it wait."""


def blocked(standing: Standing) -> bool:
    """True when nothing new may start: ended, held, paused, or told to end."""
    return not (
        standing.outcome is None
        and standing.hold is None
        and standing.pause is None
        and standing.cancel is None
        and standing.expiry is None
    )


def room(standing: Standing) -> int:
    """How many more tries the position allows beside the open ones."""
    if standing.each is None or breaker.alone(standing):
        return 0 if standing.tries else 1
    return max(0, standing.each.parallel - len(standing.tries))


def wanted(standing: Standing, now: Instant, most: int) -> list[str]:
    """Up to `most` units whose next try may start now, in order, within what the position allows."""
    if most <= 0 or standing.waits or blocked(standing) or stops(standing):
        return []
    most = min(most, room(standing))
    if most <= 0:
        return []
    now = trusted(standing, now)
    if standing.each is None:
        return [""] if _is_ready(standing, now) else []
    items = standing.items
    found = [
        name for name in items.delayed if (at := items[name].not_before) is not None and reached(at, now)
    ]
    found.sort(key=lambda name: items[name].ordinal)
    limited = {step.name: step.parallel for step in standing.contract.steps if step.parallel is not None}
    if len(limited) > 1:
        found = _within(standing, limited, found, most)
    elif len(found) < most:
        # One limited step is held to its number by the fan-out's own.
        found += items.fresh(most - len(found))
    if found and pins.is_due(standing):
        return [""] if not standing.tries and _is_ready(standing, now) else []
    return found[:most]


def _within(standing: Standing, limited: dict[str, int], delayed: list[str], most: int) -> list[str]:
    """Up to `most` units, none beyond what its step allows at once.

    No more than `BEHIND` are looked at that must wait for their step: something of that step runs then, and
    goes on. So the steps before it wait, too, instead of making ever more that nobody takes.
    """
    items, left = standing.items, dict(limited)
    for row in standing.tries.values():
        if row.step in left:
            left[row.step] -= 1
    found: list[str] = []
    for name in (*delayed, *items.fresh(most + BEHIND)):
        step = items[name].at
        if left.get(step, 1) > 0:
            left[step] = left.get(step, most) - 1
            found.append(name)
            if len(found) == most:
                break
    return found


def _is_ready(standing: Standing, now: Instant) -> bool:
    """Whether the job's own unit may start now."""
    position = standing.position
    at = position.not_before
    return position.state is ItemState.PENDING and (at is None or reached(at, now))


def due(snapshot: Snapshot, now: Instant) -> list[Action]:
    """Everything that is due: open tries to run or stop, and starts that want a slot."""
    actions = [
        Action(ActionKind.RUN if row.stop is None else ActionKind.STOP, unit, row.number)
        for unit, row in snapshot.tries.items()
    ]
    actions += placings(snapshot, now)
    if snapshot.errands or snapshot.effects.unsettled:
        actions += errands.actions(snapshot, now)
    for unit in wanted(snapshot, now, room(snapshot)):
        row = snapshot.position if unit == "" else snapshot.items[unit]
        actions.append(Action(ActionKind.START, unit, row.tries + 1))
    return actions


def placings(standing: Standing, now: Instant) -> list[Action]:
    """Outputs to be published, or to be taken away again: begun already, whatever holds or pauses the job."""
    if not standing.publications:
        return []
    now = trusted(standing, now)
    return [
        Action(ActionKind.PUBLISH if row.stop is None else ActionKind.WITHDRAW, unit, row.number)
        for unit, row in standing.publications.items()
        if not (row.blocked and row.stop is None) and (row.not_before is None or reached(row.not_before, now))
    ]


def next_placing(standing: Standing, now: Instant) -> Instant | None:
    """When an output that waits for a time is tried again; None when none waits."""
    found: Instant | None = None
    now = trusted(standing, now)
    for row in standing.publications.values():
        at = row.not_before
        if at is not None and not reached(at, now) and not (row.blocked and row.stop is None):
            found = _earlier(found, at)
    return found


def _earlier(one: Instant | None, other: Instant) -> Instant:
    return other if one is None or other.wall < one.wall else one


def _last_wait(standing: Standing) -> Instant | None:
    """When the last of its waits is over; None when that is no matter of time."""
    found: Instant | None = None
    for row in standing.waits:
        if row.deadline is None:
            return None
        found = row.deadline if found is None or row.deadline.wall > found.wall else found
    return found


def next_start(standing: Standing, now: Instant) -> Instant | None:
    """When a unit that waits for a time could start; None when none waits (or none could start then).

    A time that has come is no longer waited for: such a unit is `wanted`, and waits for a slot.
    """
    if blocked(standing) or stops(standing):
        return None
    if standing.waits:
        return _last_wait(standing)
    now = trusted(standing, now)
    if standing.each is None:
        at = standing.position.not_before if standing.position.state is ItemState.PENDING else None
        return at if at is not None and not reached(at, now) else None
    found: Instant | None = None
    at = standing.position.not_before
    if at is not None and pins.is_due(standing) and not reached(at, now):
        found = at
    for name in standing.items.delayed:
        at = standing.items[name].not_before
        if at is not None and not reached(at, now):
            found = _earlier(found, at)
    return found


def left(standing: Standing, limit: Instant, now: Instant) -> float:
    """Seconds until a limit lapses, on the clocks that limits are kept by."""
    return seconds_until(limit, trusted(standing, now))


def next_due(snapshot: Snapshot, now: Instant) -> Instant | None:
    """The instant at which to look again, parked or not; None when only an event can change anything.

    It is one that this boot's clocks will come to, also while the wall clock is not believed.
    """
    if snapshot.outcome is not None:
        return None
    found = next_start(snapshot, now) if room(snapshot) > 0 else None
    if snapshot.publications and (at := next_placing(snapshot, now)) is not None:
        found = _earlier(found, at)
    for row in snapshot.tries.values():
        if row.stop is None:
            found = _earlier(found, row.until)
    if snapshot.effects.unsettled:
        for at in (errands.next_moment(snapshot, now), errands.next_end(snapshot)):
            found = found if at is None else _earlier(found, at)
    if snapshot.expiry is not None or snapshot.cancel is not None:
        return found if found is None else reckoning.look(snapshot, now, found)
    if snapshot.hold is None and (at := limits.next_reached(snapshot, now)) is not None:
        found = _earlier(found, at)
    if snapshot.effects or snapshot.reviews or snapshot.questions:
        for asking in (approvals, reviews, questions):
            if (at := asking.next_lapse(snapshot)) is not None:
                found = _earlier(found, at)
    moments = [wait.deadline for wait in snapshot.waits if wait.deadline is not None]
    if (deadline := limits.deadline(snapshot)) is not None:
        moments.append(deadline)
    if moments and (reckoning.is_unread(snapshot, now) or clock.is_unsettled(snapshot, now)):
        return now
    for moment in moments:
        # Also while it is held or paused: that its time has come is recorded when it comes.
        found = _earlier(found, moment)
    found = found if found is None else reckoning.look(snapshot, now, found)
    if snapshot.hold is None and moments and (at := _by_wall(snapshot, now)) is not None:
        found = at if found is None or at.up < found.up else found
    return found


def _by_wall(snapshot: Snapshot, now: Instant) -> Instant | None:
    """When a wall clock that is ahead of the time will show a moment that holds the job then."""
    moments = reckoning.moments(limits.deadline(snapshot), snapshot.waits)
    if not moments or (snapshot.clocks is not None and snapshot.clocks.accepted):
        return None
    return reckoning.look_by_wall(snapshot, now, min((at for at, _ in moments), key=lambda at: at.wall))


def is_near(standing: Standing, now: Instant) -> bool:
    """True while the attempt is worth keeping: something runs, may start, or may start within the minute."""
    if standing.tries or wanted(standing, now, 1):
        return True
    at = next_start(standing, now)
    if standing.effects.unsettled:
        if errands.wanted(standing, now, 1):
            return True
        other = errands.next_moment(standing, now)
        at = other if at is None else at if other is None else _earlier(at, other)
    return at is not None and reached(at, later(trusted(standing, now), NEAR_SECONDS))
