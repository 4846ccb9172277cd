"""Deaths of actors: counted, their causes kept, and what the next actor of the job does first.

A death is contained and recorded; it loses no report, leaves no request unanswered, and ends in a hold.
"""

import logging

import anyio

from resumed.schemas import events, strict
from resumed.schemas.errors import CommitError

from .entry import JobEntry
from .mailbox import Message, Offered
from .workshop import Workshop

logger = logging.getLogger(__name__)

MOST = 3
"""Deaths of one job's actor in a row, without a commit between, after which the job is held."""


def record(entry: JobEntry, error: BaseException) -> None:
    """Note a death: reports in hand are decided again, requests in hand are answered."""
    entry.crashes += 1
    said = text(error)
    logger.error("the actor of %s died (%d in a row): %s", entry.id, entry.crashes, said)
    back = entry.box.again(CommitError(f"the actor of {entry.id} died, so the outcome is unknown: ask again"))
    entry.blamed = back[0] if len(back) == 1 else None
    entry.trouble = entry.death = said


def too_many(entry: JobEntry) -> bool:
    """True when not even a hold can be committed."""
    return entry.crashes > 2 * MOST


def first_message(entry: JobEntry, workshop: Workshop) -> Message | None:
    """What the next actor decides first: to hold a job whose actors keep dying, whatever they died over."""
    if entry.crashes < MOST:
        return None
    blamed, entry.blamed = entry.blamed, None
    if blamed is not None:
        _take_out(entry, blamed, workshop)
    reason = f"its actor died {entry.crashes} times in a row: {entry.death}"
    return Message(events.Trouble(code="actor_died", reason=reason))


def _take_out(entry: JobEntry, blamed: Message, workshop: Workshop) -> None:
    """The report that the actors died over is not decided again as it is; the end of a try always is."""
    event = blamed.event
    if isinstance(event, events.Returned):
        # Its try is over either way; an answer that cannot be decided is a failure of it.
        blamed.event = events.Raised(
            unit=event.unit,
            epoch=event.epoch,
            number=event.number,
            error=f"its answer could not be decided: {entry.death}",
            late=event.late,
        )
    elif isinstance(event, Offered):
        entry.box.drop(blamed)
        workshop.decline(entry, event.worker)
    elif not isinstance(event, events.Raised | events.Gone):
        entry.box.drop(blamed)


def is_cancellation(error: BaseException) -> bool:
    """True for a group that holds our own cancellation: that is never contained."""
    if not isinstance(error, BaseExceptionGroup):
        return False
    return error.subgroup(anyio.get_cancelled_exc_class()) is not None


def text(error: BaseException) -> str:
    """What an error says, fit to be stored; making it never fails."""
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an error whose text cannot be made must not end us
        said = f"{type(error).__name__} (its text cannot be printed)"
    return strict.plain(said[:2000])
