"""Verdicts: what the law says of one message, after what only this process knows of it was looked at.

That is: which start an offered slot is used for, whether an answer was heard before, and whether a target has
room for what a verdict lets go. Nothing here is durable, and nothing is started.
"""

from typing import Protocol

from attrs import evolve

from resumed.schemas import events
from resumed.schemas.decisions import Answer
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.job import Try
from resumed.schemas.ledger import Errand, ErrandKind
from resumed.schemas.records import replaced
from resumed.schemas.snapshot import Entry, Snapshot

from . import opened
from .entry import JobEntry
from .machine import errands, reckoning
from .machine.transition import transition
from .machine.verdict import Unchanged, Verdict
from .mailbox import Offered
from .workshop import Workshop

REMEMBERED = 16
"""The last answers of one job that an identical repeat is known by."""


class House(Protocol):
    """What is asked of the supervisor."""

    workshop: Workshop


def verdict(
    house: House,
    entry: JobEntry,
    adopted: Snapshot,
    tentative: Snapshot,
    event: events.Event | Offered,
    now: Instant,
) -> Verdict:
    """What the law says of `event` after the messages before it; `adopted` is what is durable."""
    if isinstance(event, Offered):
        unit = house.workshop.choose(entry, adopted, tentative, event.worker, now)
        if unit is None:
            return Unchanged(reason="no start is wanted in this slot")
        facts = event.facts.get(errands.effect_of(unit)) if errands.is_errand(unit) else None
        if facts is None and _is_send(tentative, unit, now):
            # Another one would be let go than was looked at: the next slot is for it.
            return Unchanged(reason="what lets it go was not found out yet")
        event = events.Grant(unit=unit, worker=event.worker, facts=facts)
    elif isinstance(event, events.Returned):
        row = opened.row(tentative, event.unit)
        is_open = row is not None and row.number == event.number
        key = (event.unit, event.number)
        if not is_open and entry.answers.get(key) == event.answer:
            return Unchanged(reason="an identical repeat of an answer already decided")
        remember(entry, key, event.answer)
        durable = not errands.is_errand(event.unit) or errands.is_durable(adopted, tentative, event.unit)
        if event.slot and not durable:
            event = replaced(event, slot=False)
    found = transition(tentative, event, now)
    if not (isinstance(found, Entry) and found.changes.errands):
        return found
    if house.workshop.sends.reserve(entry, tentative, event, found) or not isinstance(event, events.Returned):
        return found
    # Its target has no room: what would be let go in the slot that is kept waits for its turn there.
    return transition(tentative, replaced(event, slot=False), now)


def offer_used(house: House, entry: JobEntry, worker: str, found: Verdict) -> None:
    """The slot that was offered is in use by what the verdict starts; else it goes back."""
    rows: tuple[Try | Errand, ...] = ()
    if isinstance(found, Entry):
        rows = (*found.changes.tries, *found.changes.errands)
    for row in rows:
        house.workshop.take(entry, row)
    if not rows:
        # Refused, or judged and not let go: nothing runs in it.
        house.workshop.decline(entry, worker)


def smaller(event: events.Event | Offered, snapshot: Snapshot, error: FaultyInputError) -> events.Event:
    """What is decided in place of one whose line would be too long; `error` is raised where there is nothing
    less."""
    if isinstance(event, events.Woke):
        half = (event.most or len(snapshot.tries)) // 2
        if half < 1:
            raise error
        return evolve(event, most=half)
    if isinstance(event, events.Returned):
        return events.Raised(
            unit=event.unit, epoch=event.epoch, number=event.number, error=str(error), late=event.late
        )
    if isinstance(event, events.Trouble):
        raise error
    return events.Trouble(code="too_large", reason=str(error))


def _is_send(tentative: Snapshot, unit: str, now: Instant) -> bool:
    """Whether this is an errand's name that lets an effect go."""
    effect = tentative.effects.get(errands.effect_of(unit)) if errands.is_errand(unit) else None
    if effect is None:
        return False
    return errands.needed(tentative, effect, reckoning.trusted(tentative, now)) is ErrandKind.SEND


def remember(entry: JobEntry, key: tuple[str, int], answer: Answer) -> None:
    """The answer is kept for a while, so that an identical repeat is known."""
    entry.answers[key] = answer
    while len(entry.answers) > REMEMBERED:
        del entry.answers[next(iter(entry.answers))]
