"""Counting syncs at the one door to the disk; what is counted is what the store asks of the kernel."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from resumed.store import durable

SYNCS = ("sync_data", "sync_file", "sync_folder")


class Counter:
    """Counts calls from any thread; looking at it is itself counted, and taken off again."""

    def __init__(self) -> None:
        self._calls = count()
        self._looks = 0
        self.tick = self._calls.__next__

    def value(self) -> int:
        """The calls so far."""
        found = next(self._calls) - self._looks
        self._looks += 1
        return found


@contextmanager
def counted() -> Iterator[Counter]:
    """Count every sync of the store inside the block."""
    counter = Counter()
    before = {name: getattr(durable, name) for name in SYNCS}
    for name, primitive in before.items():
        setattr(durable, name, _counting(primitive, counter))
    try:
        yield counter
    finally:
        for name, primitive in before.items():
            setattr(durable, name, primitive)


def _counting(primitive: Callable[[Any], None], counter: Counter) -> Callable[[Any], None]:
    tick = counter.tick

    def counting(target: Any) -> None:
        tick()
        primitive(target)

    return counting
