"""What the supervisor keeps of one job, whether or not an actor lives: its mailbox, its keys and its place.

Keys and mailbox outlive the actor: a successor finds the work that still runs, and what is not yet decided.
"""

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

import anyio
from attrs import define, field

from resumed.schemas.askviews import AskRow
from resumed.schemas.decisions import Answer
from resumed.schemas.instant import Instant
from resumed.schemas.ledger import Wait
from resumed.schemas.records import replaced
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import JobRow
from resumed.store.layout import Layout

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
    """One open job of the store.

    A store may hold a hundred thousand parked ones: what only a job at work needs is made when it is asked
    for, and dropped again by `rest`.
    """

    id: str
    layout: Layout
    stage: Stage = Stage.LOADING
    folder: Path = field(init=False)
    box: Mailbox = field(init=False)
    snapshot: Snapshot | None = None
    """The last adopted snapshot, while an actor lives."""
    uid: int = -1
    """Who handed it in, as its admission says; -1 while that was not read."""
    named: bool = False
    """This process has made the names of its folder and shard durable."""
    row: JobRow | None = None
    """The row a parked job is listed by."""
    asks: tuple[AskRow, ...] = ()
    """What a parked job asks of people."""
    digest: str = ""
    """The contract digest: which pool runs it."""
    running: dict[tuple[str, int], str] = field(init=False)
    """Tries handed to a worker (unit, number) -> its name; taken until their end is adopted."""
    folders: dict[tuple[str, int], tuple[str, bool]] = field(init=False)
    """Scratch folders of running tries, and whether we made them."""
    stopping: set[tuple[str, int]] = field(init=False)
    """Tries whose stop has been asked for."""
    placing: set[tuple[str, int]] = field(init=False)
    """Attempts to publish an output (unit, number), taken until their end is adopted."""
    answers: dict[tuple[str, int], Answer] = field(init=False)
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
    watchers: list[anyio.Event] = field(init=False)
    admitted: anyio.Event | None = None
    _made: tuple[str, ...] = ()
    """The names of what was made and not dropped."""

    def __getattr__(self, name: str) -> Any:
        """Asked only for what is not there: it is made now."""
        make = _MADE.get(name)
        if make is None:
            raise AttributeError(f"a job's entry has no {name}")
        made = make(self)
        setattr(self, name, made)
        self._made = (*self._made, name)
        return made

    def keep_row(self, row: JobRow, asks: tuple[AskRow, ...] = ()) -> None:
        """Be listed by this row, and by these in the inbox; texts that many jobs share are kept once."""
        self.asks = asks
        names = ("workflow", "title", "owner", "needs")
        self.row = replaced(row, id=self.id, **{name: sys.intern(getattr(row, name)) for name in names})

    def there(self, name: str) -> Any:
        """What was made of this name, None when nothing was: it is not made by looking."""
        return getattr(self, name) if name in self._made else None

    @property
    def has_mail(self) -> bool:
        """True when a message waits in the box."""
        return bool(self.there("box"))

    def rest(self) -> None:
        """The job is parked: what nobody needs until it wakes is dropped.

        That goes for answers, too: the tree of each try is gone, and nobody is left who could repeat one.
        """
        self.stage = Stage.PARKED
        self._drop(_FORGOTTEN)

    def slim(self) -> None:
        """Its actor sleeps: what is empty is dropped, and the row of before, since there is a snapshot."""
        self._drop(_EMPTY_ONLY)
        self.row = None

    def _drop(self, forgotten: frozenset[str]) -> None:
        kept = []
        for name in self._made:
            if name not in forgotten and getattr(self, name):
                kept.append(name)
            else:
                delattr(self, name)
        self._made = tuple(kept)

    def hold(self) -> str:
        """The code of the hold that the job stands under, as far as this process knows."""
        if self.snapshot is not None:
            return self.snapshot.hold.code if self.snapshot.hold is not None else ""
        return self.row.hold if self.row is not None else ""

    def changed(self) -> None:
        """Wake whoever watches the job."""
        watchers = self.there("watchers")
        if watchers:
            self.watchers = []
            for watcher in watchers:
                watcher.set()


_FORGOTTEN = frozenset({"answers", "folder"})
_EMPTY_ONLY: frozenset[str] = frozenset()
_MADE: dict[str, Callable[[JobEntry], Any]] = {
    "folder": lambda entry: entry.layout.job(entry.id),
    "box": lambda _: Mailbox(),
    "running": lambda _: {},
    "folders": lambda _: {},
    "stopping": lambda _: set(),
    "placing": lambda _: set(),
    "answers": lambda _: {},
    "watchers": lambda _: [],
}


def has_work(snapshot: Snapshot, now: Instant) -> bool:
    """True when a job needs an actor at once: an attempt is open, an output is to be published, or it has
    ended and is not archived.
    """
    at_work = snapshot.attempt is not None or bool(snapshot.tries or snapshot.errands)
    at_work = at_work or snapshot.outcome is not None
    return at_work or bool(due.placings(snapshot, now))
