"""Outputs, beside the loop: kept before a line names them, published when that is due, and told of.

It decides nothing and commits nothing. An attempt has its own key, which is taken until a snapshot is adopted
in which that attempt is over; so a rename and the removal of the same staged file never run at once.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from resumed.schemas import events
from resumed.schemas.events import Placing
from resumed.schemas.snapshot import Snapshot
from resumed.store import publish

from . import outputs
from .disk import Disk
from .entry import JobEntry
from .lanes import Lanes
from .mailbox import Message

STORE = -1
"""The lane of the store's own file system, which has the number of no other."""
LARGE = 1024 * 1024
"""Bytes of an output that is copied beside the threads that commit."""

logger = logging.getLogger(__name__)


class Desk(Protocol):
    """What the publisher asks of the supervisor."""

    def post(self, entry: JobEntry, message: Message) -> None:
        """Put a message in the job's box and see that somebody reads it."""
        ...

    def start_soon(self, function: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run a task of the supervisor's."""
        ...


class Publisher:
    """Outputs on their way, of all jobs.

    `disk` is where they are made durable in the store, `places` where they are published: a place that hangs
    must take no thread that commits or reads, and not all that publish.
    """

    def __init__(self, desk: Desk, disk: Disk, places: Disk) -> None:
        self._desk = desk
        self._disk = disk
        self._places = Lanes(places)

    async def keep(self, entry: JobEntry, event: events.Returned) -> events.Returned | events.Raised:
        """The answer with its bytes made durable."""
        # What takes long to copy must not take a thread that commits.
        if sum(offer.size for offer in outputs.offers_of(event)) > LARGE:
            return await self._places.call(STORE, outputs.keep, entry.folder, entry.id, event)
        return await self._disk.call(outputs.keep, entry.folder, entry.id, event)

    def start(self, entry: JobEntry, snapshot: Snapshot, unit: str) -> None:
        """Begin what is due of the unit's publication, unless an attempt of that number is under way."""
        row = snapshot.publications[unit]
        if (unit, row.number) not in entry.placing:
            entry.placing.add((unit, row.number))
            self._desk.start_soon(self._run, entry, snapshot, unit)

    @staticmethod
    def adopted(entry: JobEntry, snapshot: Snapshot) -> None:
        """Free the keys of attempts that are over."""
        for unit, number in list(entry.placing):
            row = snapshot.publications.get(unit)
            if row is None or row.number != number:
                entry.placing.discard((unit, number))

    async def _run(self, entry: JobEntry, snapshot: Snapshot, unit: str) -> None:
        row = snapshot.publications[unit]
        act = publish.place if row.stop is None else publish.withdraw
        try:
            came = await self._places.call(row.device, act, row)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job hears of it
            came = publish.Came(Placing.REFUSED, f"cannot publish {row.destination}: {error}")
        if came.reason:
            logger.warning("%s, for %s of %s", came.reason, unit or "a step", entry.id)
        event = events.Placed(
            unit=unit,
            number=row.number,
            outcome=came.outcome,
            reason=came.reason,
            device=came.device,
            inode=came.inode,
        )
        self._desk.post(entry, Message(event))
