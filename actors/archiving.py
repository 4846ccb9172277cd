"""The end of one job: its folder goes to the archive, in as many tries as it takes, and all are answered."""

import logging
from typing import Protocol

from resumed.schemas.errors import StoreError
from resumed.schemas.snapshot import Snapshot
from resumed.store import archive, files
from resumed.store.layout import Layout

from . import scratch, views
from .clock import Clock
from .disk import Disk
from .entry import JobEntry, Stage
from .mailbox import Message
from .roll import Roll
from .sequels import Sequels

logger = logging.getLogger(__name__)

RETRY_FIRST = 0.5
RETRY_MOST = 30.0
"""Seconds between two tries."""


class House(Protocol):
    """What is asked of the supervisor."""

    layout: Layout
    clock: Clock
    disk: Disk
    sequels: Sequels
    roll: Roll

    def turn_away(self, entry: JobEntry, message: Message) -> None:
        """Answer a message that no actor reads any more."""
        ...


async def move(house: House, entry: JobEntry, snapshot: Snapshot) -> None:
    """Move a job that has ended; a crash leaves it to the next start.

    From here on its outcome is final: requests are answered by the law, without an actor.
    """
    entry.snapshot, entry.stage = snapshot, Stage.ENDED
    house.sequels.gone(entry.id)
    entry.row = views.row(snapshot, house.clock.now())
    logger.info("job %s ended: %s", entry.id, entry.row.status)
    wait = RETRY_FIRST
    while True:
        for message in entry.box.take(1_000_000):
            house.turn_away(entry, message)
        entry.box.adopted()
        try:
            # First: what programs kept may be large, and means nothing any more.
            await house.disk.call(scratch.remove, entry.folder / files.KEPT)
            await house.disk.call(archive.move, house.layout, entry.id)
            break
        except StoreError as error:
            logger.warning("job %s ended and could not be archived: %s", entry.id, error)
            entry.trouble = str(error)
        await house.clock.wait(wait)
        wait = min(wait * 2, RETRY_MOST)
    house.roll.note_end(house.clock.now().wall)
