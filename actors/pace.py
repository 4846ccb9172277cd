"""When a running fan-out is expected to be through, from what is on record of its items.

Pure, asked when somebody looks, and stored nowhere.
"""

from resumed.schemas.instant import MICRO, Instant, seconds_between
from resumed.schemas.job import Item, ItemState
from resumed.schemas.snapshot import Snapshot

LEAST = 5
"""Items that must be done before anything is said: fewer say too little of the others."""
MOST = 128
"""Items that are looked at, so that a job of many costs a list no more than a job of few."""
_TRIED = (ItemState.DONE, ItemState.FAILED, ItemState.HELD, ItemState.SKIPPED)


def expected(snapshot: Snapshot, now: Instant) -> int:
    """The wall instant at which the last item of the fan-out will have ended, 0 while nobody can tell.

    The pace is that of the items which this attempt has started last and which have ended: so many in the
    time since the first of them was started. Where the next ends are overdue by that pace, the time that went
    by without them counts too; so the instant never lies in the past, and moves away while nothing ends.
    """
    attempt, running = snapshot.attempt, len(snapshot.tries)
    if attempt is None or not running or not _goes_on(snapshot):
        return 0
    ended = [item for item in snapshot.items.lately(MOST) if _of(item, attempt.opened, now)]
    if sum(item.state is ItemState.DONE for item in ended) < LEAST:
        return 0
    first = min((item.started for item in ended if item.started is not None), key=lambda at: at.up)
    last = max((item.ended for item in ended if item.ended is not None), key=lambda at: at.up)
    since = seconds_between(first, now)
    pace = max(seconds_between(first, last) / len(ended), since / (len(ended) + running))
    return now.wall + round(((len(ended) + _left(snapshot)) * pace - since) * MICRO)


def _goes_on(snapshot: Snapshot) -> bool:
    """False where items wait for more than a free place: a person, another fan-out, the end of the job."""
    marks = (snapshot.hold, snapshot.pause, snapshot.cancel, snapshot.expiry)
    return snapshot.each is not None and not any(marks) and not snapshot.items.outside


def _of(item: Item, opened: Instant, now: Instant) -> bool:
    """Whether this attempt has tried the item to its end, by the clock that runs now."""
    return (
        item.state in _TRIED
        and item.started is not None
        and item.ended is not None
        and item.started.boot == now.boot == opened.boot
        and item.started.up >= opened.up
    )


def _left(snapshot: Snapshot) -> int:
    """Items that have not ended and go on by themselves."""
    return sum(map(snapshot.items.count, (ItemState.PENDING, ItemState.IN_PROGRESS, ItemState.REVIEW)))
