"""Sequels: which jobs wait for which others, and telling each what has become of those it waits for.

Nobody is asked again and again: a job is looked at when it begins to wait, and told when the other one ends,
comes in, is set aside or comes back. What it knows is in its own records; whatever differs is told again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Protocol

from attrs import define, field

from resumed.schemas import events
from resumed.schemas.errors import NewerSchemaError, StoreError, UnreadableError
from resumed.schemas.job import Ending, Outcome
from resumed.schemas.ledger import Obstacle, WaitKind
from resumed.schemas.snapshot import Snapshot
from resumed.store import layout
from resumed.store.layout import Layout
from resumed.store.recovery import Recovered

from .clock import Clock
from .disk import Disk
from .entry import JobEntry, Stage
from .mailbox import Message

logger = logging.getLogger(__name__)

RETRY_FIRST = 0.5
RETRY_MOST = 30.0
"""Seconds between two looks for a job whose place cannot be read."""

_ENDED: dict[Ending, Obstacle | None] = {
    Ending.COMPLETED: None,
    Ending.FAILED: Obstacle.FAILED,
    Ending.CANCELED: Obstacle.CANCELED,
    Ending.EXPIRED: Obstacle.EXPIRED,
}


@define(eq=False)
class _Waiting:
    """A job that waits, as it was adopted last: the others' ids, and what it was told of each."""

    entry: JobEntry
    told: dict[str, Obstacle | None] = field(factory=dict)


class House(Protocol):
    """What is asked of the supervisor."""

    layout: Layout
    clock: Clock
    reads: Disk

    def entry(self, job: str) -> JobEntry | None:
        """The open job of that id."""
        ...

    def load(self, folder: Path) -> Recovered:
        """A job as its files tell it."""
        ...

    def post(self, entry: JobEntry, message: Message) -> None:
        """Put a message in the job's box and see that somebody reads it."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run a task of the supervisor's."""
        ...


class Sequels:
    """All waits for other jobs of one store."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._waiting: dict[str, _Waiting] = {}
        self._behind: dict[str, dict[str, None]] = {}
        """By the job that is waited for: those that wait for it, in the order they came."""
        self._looking: set[str] = set()

    # ---- what is heard --------------------------------------------------------------------------------

    def note(self, entry: JobEntry, snapshot: Snapshot) -> None:
        """The job's waits as they are now in force; it is told at once of what it does not know."""
        entry.waits = snapshot.waits
        told = {row.event: row.obstacle for row in snapshot.waits if row.kind is WaitKind.OTHER_JOB}
        before = self._waiting.pop(entry.id, None)
        for other in set(before.told if before is not None else ()) - set(told):
            self._leave(entry.id, other)
        if told and snapshot.outcome is None:
            self._waiting[entry.id] = _Waiting(entry, told)
            for other in told:
                self._behind.setdefault(other, {})[entry.id] = None
            # Also after each thing it heard: something else may have become of the other one meanwhile.
            self._look(entry.id)
        if set(told) != set(before.told if before is not None else ()):
            self._circles(entry.id)

    def gone(self, job: str) -> None:
        """The job has ended, or is out of our hands: it waits no longer, and whoever waits for it is told."""
        before = self._waiting.pop(job, None)
        for other in before.told if before is not None else ():
            self._leave(job, other)
        if before is not None:
            self._circles(job)
        self.heard(job)

    def heard(self, other: str) -> None:
        """Something has become of this job: whoever waits for it is told."""
        for job in list(self._behind.get(other, ())):
            self._look(job, (other,))

    def _leave(self, job: str, other: str) -> None:
        behind = self._behind.get(other, {})
        behind.pop(job, None)
        if not behind:
            self._behind.pop(other, None)

    # ---- what is told ---------------------------------------------------------------------------------

    def _look(self, job: str, others: Iterable[str] | None = None) -> None:
        """Tell the job what it does not know of those it waits for."""
        waiting = self._waiting[job]
        for other in list(waiting.told if others is None else others):
            entry = self._house.entry(other)
            if entry is None:
                self._look_for(other)
            else:
                self._say(waiting, other, *self._standing(job, entry))

    def _standing(self, job: str, other: JobEntry) -> tuple[bool, Obstacle | None]:
        """How an open job stands to one that waits for it: whether it has completed, and what hinders it."""
        if other.stage is Stage.ENDED and other.snapshot is not None:
            return _ended(other.snapshot.outcome)
        if other.stage is Stage.ASIDE:
            return False, Obstacle.SET_ASIDE
        return False, Obstacle.CIRCLE if self._reaches(other.id, job) else None

    def _say(self, waiting: _Waiting, other: str, completed: bool, obstacle: Obstacle | None) -> None:
        if other in waiting.told and (completed or waiting.told[other] is not obstacle):
            event = events.OtherJob(job=other, completed=completed, obstacle=obstacle)
            self._house.post(waiting.entry, Message(event))

    # ---- circles --------------------------------------------------------------------------------------

    def _reaches(self, start: str, goal: str) -> bool:
        """True when `start` waits for `goal`, itself or by way of others."""
        seen, rest = {start}, [start]
        while rest:
            waiting = self._waiting.get(rest.pop())
            for other in waiting.told if waiting is not None else ():
                if other == goal:
                    return True
                if other not in seen:
                    seen.add(other)
                    rest.append(other)
        return False

    def _circles(self, job: str) -> None:
        """The waits of one job have changed: those behind it may stand in a circle now, or no longer."""
        in_circle = self._reaches(job, job)
        seen, rest = {job}, [job]
        while rest:
            for behind in self._behind.get(rest.pop(), ()):
                if behind in seen:
                    continue
                seen.add(behind)
                rest.append(behind)
                if in_circle or Obstacle.CIRCLE in self._waiting[behind].told.values():
                    self._look(behind)

    # ---- jobs that are not open -----------------------------------------------------------------------

    def _look_for(self, other: str) -> None:
        """Find out beside the loop what became of a job that is not open here; once at a time."""
        if other not in self._looking:
            self._looking.add(other)
            self._house.start_soon(self._find, other)

    async def _find(self, other: str) -> None:
        wait = RETRY_FIRST
        while True:
            try:
                completed, obstacle = await self._house.reads.call(self._found, other)
                break
            except UnreadableError as error:
                logger.warning("cannot tell yet what became of %s, which others wait for: %s", other, error)
            await self._house.clock.wait(wait)
            wait = min(wait * 2, RETRY_MOST)
        self._looking.discard(other)
        for job in list(self._behind.get(other, ())):
            if self._house.entry(other) is None:
                self._say(self._waiting[job], other, completed, obstacle)
            else:
                self._look(job, (other,))  # it came in meanwhile

    def _found(self, other: str) -> tuple[bool, Obstacle | None]:
        """On a thread that reads: where it lies, and how it ended if it did."""
        lies = layout.where(self._house.layout, other)
        if lies is None:
            return False, Obstacle.UNKNOWN
        if lies == self._house.layout.job(other):
            return False, None  # the roll has not called it up yet
        if lies != self._house.layout.archived(other):
            return False, Obstacle.SET_ASIDE
        try:
            return _ended(self._house.load(lies).snapshot.outcome)
        except UnreadableError:
            raise
        except (StoreError, NewerSchemaError):
            return False, Obstacle.SET_ASIDE


def _ended(outcome: Outcome | None) -> tuple[bool, Obstacle | None]:
    if outcome is None:
        return False, None
    return outcome.ending is Ending.COMPLETED, _ENDED[outcome.ending]
