"""Onward: the turn of a plain step, or of a plain call, drawn up, spelled and acted upon in one go, without
the records between.

It decides nothing that the law does not (`machine/plain.py`, `machine/plaincall.py`). Where anything else is
to be considered it leaves the turn to the actor's own code, and whatever it does is held by the tests to what
that would do: line by line, to the byte.
"""

from attrs import frozen

from resumed.schemas import decisions, events
from resumed.schemas.instant import Instant, reached
from resumed.schemas.job import Try
from resumed.schemas.ledger import Errand
from resumed.schemas.snapshot import Snapshot

from . import acting, opened, plainlines, verdicts
from .entry import JobEntry
from .machine import due, plain, plaincall
from .sends import Sends


@frozen(slots=False)  # made at every step and soon gone: quicker so
class Onward:
    """The line of such a turn, spelled, the try or the errand that it starts, and when to look at the job
    again."""

    sequence: int
    raw: bytes
    digest: str
    row: Try | Errand
    until: Instant | None


Turn = tuple[Onward, Snapshot]
"""What is drawn up, and the snapshot after it."""


def draw(
    sends: Sends, entry: JobEntry, snapshot: Snapshot, event: events.Returned, previous: str, now: Instant
) -> Turn | None:
    """The line for this answer after the line of digest `previous`, and the snapshot after it; None where
    more is to be considered."""
    limit = entry.next_due
    if limit is not None and reached(limit, now):
        return None
    kind = type(event.answer.decided)
    if kind is decisions.GoTo:
        turn = _step(snapshot, event, previous, now)
    elif kind is decisions.Performing:
        turn = _call(sends, entry, snapshot, event, previous, now)
    elif kind is decisions.Landed:
        turn = _landing(snapshot, event, previous, now)
    else:
        return None
    if turn is not None:
        verdicts.remember(entry, (event.unit, event.number), event.answer)
    return turn


def _step(snapshot: Snapshot, event: events.Returned, previous: str, now: Instant) -> Turn | None:
    going = plain.find(snapshot, event, now)
    if going is None:
        return None
    sequence = snapshot.sequence + 1
    spelled = plainlines.spell(going, sequence, snapshot.epoch, previous, now)
    if spelled is None:
        return None
    after = plain.after(snapshot, going, sequence, now)
    return Onward(sequence, *spelled, going.row, _until(after, going.row, now)), after


def _call(
    sends: Sends, entry: JobEntry, snapshot: Snapshot, event: events.Returned, previous: str, now: Instant
) -> Turn | None:
    calling = plaincall.find_call(snapshot, event, now)
    if calling is None or not sends.has_room(entry, calling.contract):
        return None  # where there is no place at its target, the law says what becomes of it
    sequence = snapshot.sequence + 1
    spelled = plainlines.spell(calling, sequence, snapshot.epoch, previous, now)
    if spelled is None:
        return None
    sends.place(entry, calling.errand, calling.contract)
    after = plaincall.after_call(snapshot, calling, sequence, now)
    return Onward(sequence, *spelled, calling.errand, _until(after, calling.errand, now)), after


def _landing(snapshot: Snapshot, event: events.Returned, previous: str, now: Instant) -> Turn | None:
    landing = plaincall.find_landing(snapshot, event, now)
    if landing is None:
        return None
    sequence = snapshot.sequence + 1
    spelled = plainlines.spell(landing, sequence, snapshot.epoch, previous, now)
    if spelled is None:
        return None
    after = plaincall.after_landing(snapshot, landing, sequence, now)
    return Onward(sequence, *spelled, landing.row, _until(after, landing.row, now)), after


def _until(after: Snapshot, row: Try | Errand, now: Instant) -> Instant | None:
    """When to look again, as `due.next_due` says: the end of what runs, where nothing else is timed."""
    return due.next_due(after, now) if plain.is_timed(after) else row.until


def go_on(house: acting.House, entry: JobEntry, snapshot: Snapshot, row: Try | Errand, now: Instant) -> bool:
    """What `acting.act` does once such a line is in force, where what it ended is all that runs."""
    running, workshop = entry.running, house.workshop
    if len(running) != 1 or entry.placing or entry.stopping:
        return acting.act(house, entry, snapshot, now)
    (before,) = running
    name = opened.name_of(row)
    if before != (name, row.number):
        workshop.run(entry, snapshot, name)
        workshop.ended(entry, *before)
    workshop.sends.settle(entry, snapshot)
    return not house.draining and workshop.sends.claim(entry, snapshot, now)
