"""Syncs at the one door to the disk, counted or made slower: what is counted is what the store asks for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from time import sleep
from typing import Any

from resumed.store import durable

Sync = Callable[[Any], None]
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
    with _each(lambda primitive: _counting(primitive, counter)):
        yield counter


@contextmanager
def slowed(seconds: float) -> Iterator[None]:
    """Each sync of the store takes `seconds` longer inside the block, as on a slower disk."""

    def slower(primitive: Sync) -> Sync:
        def slow(target: Any) -> None:
            primitive(target)
            sleep(seconds)

        return slow

    with _each(slower) if seconds else nullcontext():
        yield


@contextmanager
def left_out() -> Iterator[None]:
    """No sync of the store reaches the kernel inside the block."""
    with _each(lambda _: lambda target: None):
        yield


@contextmanager
def _each(change: Callable[[Sync], Sync]) -> Iterator[None]:
    before = {name: getattr(durable, name) for name in SYNCS}
    for name, primitive in before.items():
        setattr(durable, name, change(primitive))
    try:
        yield
    finally:
        for name, primitive in before.items():
            setattr(durable, name, primitive)


def _counting(primitive: Sync, counter: Counter) -> Sync:
    tick = counter.tick

    def counting(target: Any) -> None:
        tick()
        primitive(target)

    return counting
