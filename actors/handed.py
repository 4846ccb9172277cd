"""What a worker was handed: the tries it may speak of, how often it may, and when it has spoken out of turn.

It decides nothing about a job and ends no worker.
"""

from collections import OrderedDict
from enum import StrEnum

from attrs import define, field

REMEMBERED = 4096
"""Answered tries a worker may still repeat itself about; a real one answers each once."""
MOST_FAULTS = 16
"""Frames out of turn after which a worker is faulty beyond doubt."""
Name = tuple[str, int, str, int]
"""(job, epoch, item, number)"""


class Heard(StrEnum):
    """What a frame about a try is worth."""

    ANSWER = "answer"
    """The first word on a try in hand."""
    EVIDENCE = "evidence"
    """A second word: it changes nothing, and is kept."""
    FAULT = "fault"
    """A further word, or one on a try that this worker was never handed."""


@define(eq=False)
class Handed:
    """One worker's tries."""

    open: set[Name] = field(factory=set)
    answered: OrderedDict[Name, bool] = field(factory=OrderedDict)
    """Tries it has answered, and whether it has spoken of them a second time."""
    faults: int = 0

    def hand(self, name: Name) -> None:
        """The try is in the worker's hands; handing it over again changes nothing."""
        if name not in self.answered:
            self.open.add(name)

    def hear(self, name: Name) -> Heard:
        """The worker has spoken of a try."""
        if name in self.open:
            self.open.discard(name)
            self.answered[name] = False
            if len(self.answered) > REMEMBERED:
                self.answered.popitem(last=False)
            return Heard.ANSWER
        if self.answered.get(name, True):
            self.faults += 1
            return Heard.FAULT
        self.answered[name] = True
        return Heard.EVIDENCE

    def is_faulty(self) -> bool:
        """True once it has spoken out of turn too often."""
        return self.faults >= MOST_FAULTS
