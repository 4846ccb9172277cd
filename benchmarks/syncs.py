"""Syncs at the one door to the disk, counted or made slower: what is counted is what the store asks for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from time import sleep
from typing import Any

from resumed.store import durable

Sync = Callable[..., Any]
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
    """Count every sync of the store inside the block, those of a group each for itself."""
    counter = Counter()
    tick = counter.tick

    def counting(primitive: Sync) -> Sync:
        def count_one(target: Any) -> Any:
            tick()
            return primitive(target)

        return count_one

    def counting_each(primitive: Sync) -> Sync:
        def count_each(parts: Any, *means: Any) -> Any:
            found = primitive(parts, *means)
            if found if means else len(parts) > 1:  # begun; one alone comes to a plain sync
                for _ in parts:
                    tick()
            return found

        return count_each

    with _changed(counting, counting_each):
        yield counter


@contextmanager
def slowed(seconds: float) -> Iterator[None]:
    """Each sync of the store takes `seconds` longer inside the block, as on a slower disk; those of a group
    take it side by side."""

    def slower(primitive: Sync) -> Sync:
        def slow(target: Any) -> Any:
            found = primitive(target)
            sleep(seconds)
            return found

        return slow

    def slower_each(primitive: Sync) -> Sync:
        slow = slower(primitive)

        def slow_each(parts: Any, *means: Any) -> Any:
            if means:
                return False  # nothing is begun: it is done in a thread, which may sleep
            return slow(parts) if len(parts) > 1 else primitive(parts)

        return slow_each

    with _changed(slower, slower_each) if seconds else nullcontext():
        yield


@contextmanager
def left_out() -> Iterator[None]:
    """No sync of the store reaches the kernel inside the block."""

    def written_only(parts: Any, *means: Any) -> Any:
        if means:
            return False  # nothing is begun
        for part in parts:
            if isinstance(part, tuple):  # else a folder
                durable.write_at(*part)
        return [None] * len(parts)

    with _changed(lambda _: lambda target: None, lambda _: written_only):
        yield


@contextmanager
def _changed(one: Callable[[Sync], Sync], group: Callable[[Sync], Sync]) -> Iterator[None]:
    before = {name: getattr(durable, name) for name in (*SYNCS, *durable.GROUPED)}
    for name, primitive in before.items():
        setattr(durable, name, (group if name in durable.GROUPED else one)(primitive))
    try:
        yield
    finally:
        for name, primitive in before.items():
            setattr(durable, name, primitive)
