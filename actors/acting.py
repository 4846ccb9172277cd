"""Acting: what a snapshot in force wants done is begun, and what it no longer wants is ended.

Level-triggered: it may be called again at any time, and begins nothing twice.
"""

from typing import Protocol

from resumed.schemas.actions import ActionKind
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import Snapshot

from . import opened
from .entry import JobEntry
from .machine import due
from .publisher import Publisher
from .workshop import Workshop


class House(Protocol):
    """What is asked of the supervisor."""

    workshop: Workshop
    publisher: Publisher
    draining: bool
    """True once the daemon ends: an attempt without open tries may be left to the next start."""

    def want(self, entry: JobEntry, snapshot: Snapshot) -> None:
        """The job wants a slot."""
        ...


def act(house: House, entry: JobEntry, snapshot: Snapshot, now: Instant) -> bool:
    """Start what is due and not running, stop what is no longer to run, free what is over; STOP before RUN.

    True when the job wants a slot.
    """
    starts = False
    actions = due.due(snapshot, now)
    for action in actions:
        key = (action.id, action.n)
        if action.kind is ActionKind.STOP and key not in entry.stopping:
            house.workshop.stop(entry, snapshot, action.id)
            entry.stopping.add(key)
    for action in actions:
        key = (action.id, action.n)
        if action.kind is ActionKind.RUN and key not in entry.running:
            house.workshop.run(entry, snapshot, action.id)
        elif action.kind is ActionKind.START:
            starts = True
        elif action.kind in (ActionKind.PUBLISH, ActionKind.WITHDRAW) and not house.draining:
            house.publisher.start(entry, snapshot, action.id)
    if entry.placing:
        house.publisher.adopted(entry, snapshot)
    for unit, number in list(entry.running):
        row = opened.row(snapshot, unit)
        if row is None or row.number != number:
            house.workshop.ended(entry, unit, number)
    house.workshop.sends.settle(entry, snapshot)
    if starts:
        house.want(entry, snapshot)
    claims = not house.draining and house.workshop.sends.claim(entry, snapshot, now)
    return starts or claims
