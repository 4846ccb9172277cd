"""What the supervisor keeps of one job, whether or not an actor lives: its mailbox, its keys and its place.

Keys and mailbox outlive the actor: a successor finds the work that still runs, and what is not yet decided.
"""

from collections import OrderedDict
from enum import StrEnum
from pathlib import Path

import anyio
from attrs import define, field

from resumed.schemas.decisions import Answer
from resumed.schemas.instant import Instant
from resumed.schemas.ledger import Wait
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import JobRow

from .machine import due
from .mailbox import Mailbox, Message


class Stage(StrEnum):
    """Where a job is in this process; durable nowhere."""

    ADMITTING = "admitting"
    LOADING = "loading"
    PARKED = "parked"
    ACTIVE = "active"
    UNREADABLE = "unreadable"
    """It is tried again."""
    ASIDE = "aside"
    """Set aside in its place: nothing tries again before the next start."""
    ENDED = "ended"
    """Its outcome is durable; it is on its way to the archive."""


@define(eq=False)
class JobEntry:
    """One open job of the store."""

    id: str
    folder: Path
    stage: Stage = Stage.LOADING
    box: Mailbox = field(factory=Mailbox)
    snapshot: Snapshot | None = None
    """The last adopted snapshot, while an actor lives."""
    uid: int = -1
    """Who handed it in, as its admission says; -1 while that was not read."""
    row: JobRow | None = None
    """The row a parked job is listed by."""
    digest: str = ""
    """The contract digest: which pool runs it."""
    running: dict[tuple[str, int], str] = field(factory=dict)
    """Tries handed to a worker (unit, number) -> its name; taken until their end is adopted."""
    folders: dict[tuple[str, int], tuple[str, bool]] = field(factory=dict)
    """Scratch folders of running tries, and whether we made them."""
    stopping: set[tuple[str, int]] = field(factory=set)
    """Tries whose stop has been asked for."""
    placing: set[tuple[str, int]] = field(factory=set)
    """Attempts to publish an output (unit, number), taken until their end is adopted."""
    answers: OrderedDict[tuple[str, int], Answer] = field(factory=OrderedDict)
    """The last answers of tries, so that an identical repeat is known."""
    epoch: int = 0
    """The last epoch that this process opened."""
    scheduled: int | None = None
    """When the timers look at it next, in microseconds of the boot clock."""
    next_due: Instant | None = None
    waits: tuple[Wait, ...] = ()
    """What the job waits for, by the last snapshot that was adopted."""
    crashes: int = 0
    """Actor deaths in a row, cleared by an adopted commit."""
    blamed: Message | None = None
    """The report that its actor died over last, if it was one alone."""
    death: str = ""
    """What its actor died of last."""
    trouble: str = ""
    """Why it cannot be read now, when it cannot."""
    moving: bool = False
    """It is on its way to the quarantine."""
    since: Instant | None = None
    watchers: list[anyio.Event] = field(factory=list)
    admitted: anyio.Event | None = None

    def changed(self) -> None:
        """Wake whoever watches the job."""
        watchers, self.watchers = self.watchers, []
        for watcher in watchers:
            watcher.set()


def has_work(snapshot: Snapshot, now: Instant) -> bool:
    """True when a job needs an actor at once: an attempt is open, an output is to be published, or it has
    ended and is not archived.
    """
    at_work = snapshot.attempt is not None or bool(snapshot.tries) or snapshot.outcome is not None
    return at_work or bool(due.placings(snapshot, now))
