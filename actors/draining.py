"""The end of a supervisor in good order: what runs is stopped and every job is parked, within a time."""

from typing import Protocol

from resumed.schemas import events

from .clock import Clock, within
from .entry import JobEntry, Stage
from .mailbox import Message
from .workshop import Workshop

TAIL_MOST, HURRIED = 5.0, 2.0
"""Seconds of a drain for killing what did not stop, a quarter of it at most; and of a hurried one."""


class House(Protocol):
    """What is asked of the supervisor."""

    clock: Clock
    workshop: Workshop
    entries: dict[str, JobEntry]

    def post(self, entry: JobEntry, message: Message) -> None:
        """Put a message in the job's box."""
        ...

    async def until_parked(self) -> None:
        """Return when no job has an actor."""
        ...


async def drain(house: House, seconds: float) -> None:
    """Stop what runs, then kill what did not stop; returns within `seconds`, whatever is left by then."""
    slots = house.workshop.slots
    slots.draining = True
    for entry in list(house.entries.values()):
        if entry.stage is Stage.ACTIVE:
            house.post(entry, Message(events.Shutdown()))
    tail = min(TAIL_MOST, seconds / 4) or HURRIED
    await within(house.clock, max(0.0, seconds - tail), house.until_parked)
    for name in list(slots.hands):
        slots.kill(name)
    await within(house.clock, tail / 2, house.until_parked)
    await within(house.clock, tail / 2, slots.until_empty)
