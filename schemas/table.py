"""The item table: a persistent mapping of items in their order, with the indexes that keep `due` cheap.

`put` returns a new table in time proportional to the change; `settle` folds the overlay of an adopted
table into the shared base, after which older tables of the same family must not be read any more.
"""

from collections.abc import Iterable, Iterator

from .job import Item, ItemState

_PENDING = ItemState.PENDING
_NONE: frozenset[str] = frozenset()
"""One for all tables: Python makes each empty one anew, and it weighs more than an item."""


def _is_fresh(item: Item) -> bool:
    return item.state is _PENDING and item.not_before is None and item.at != ""


def _is_outside(item: Item) -> bool:
    return item.state is _PENDING and item.at == ""


class ItemTable:
    """Items by id, in admission order. Never mutated after creation, except by `settle`."""

    __slots__ = ("_base", "_order", "_over", "counts", "delayed", "low", "outside")

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._base: dict[str, Item] = {}
        self._order: list[str] = []
        self._over: dict[str, Item] = {}
        self.counts: dict[ItemState, int] = {}
        """How many items stand in each state; states with none may be absent."""
        self.delayed: frozenset[str] = _NONE
        """Pending items that have a `not_before`."""
        self.low = 0
        """No item before this ordinal is fresh."""
        self.outside = 0
        """Pending items that have entered no step: they wait for a fan-out that takes them in."""
        for item in items:
            if item.id in self._base or item.ordinal != len(self._order):
                raise ValueError(f"item {item.id!r} is out of order or twice in the table")
            self._base[item.id] = item
            self._order.append(item.id)
            self.counts[item.state] = self.counts.get(item.state, 0) + 1
            self.outside += _is_outside(item)
        late = [i.id for i in self._base.values() if i.state is _PENDING and i.not_before]
        self.delayed = frozenset(late) if late else _NONE

    def __len__(self) -> int:
        return len(self._base) + sum(1 for name in self._over if name not in self._base)

    def __contains__(self, name: object) -> bool:
        return name in self._over or name in self._base

    def __getitem__(self, name: str) -> Item:
        found = self._over.get(name)
        return found if found is not None else self._base[name]

    def get(self, name: str) -> Item | None:
        """The item of that id, or None."""
        found = self._over.get(name)
        return found if found is not None else self._base.get(name)

    def __iter__(self) -> Iterator[Item]:
        """All items in order."""
        for name in self._order[: len(self)]:
            yield self[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ItemTable) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # compared by content, never a key

    def count(self, state: ItemState) -> int:
        """How many items stand in `state`."""
        return self.counts.get(state, 0)

    def put(self, items: Iterable[Item]) -> "ItemTable":
        """A table with these rows in place of (or after) the present ones."""
        new = ItemTable.__new__(ItemTable)
        new._base, new._order = self._base, self._order
        new._over = dict(self._over)
        new.counts, new.low, new.outside = dict(self.counts), self.low, self.outside
        delayed = self.delayed
        size = len(self)
        for item in items:
            old = new.get(item.id)
            if old is None:
                if item.ordinal != size:
                    raise ValueError(f"item {item.id!r} has ordinal {item.ordinal}, expected {size}")
                # A sibling table that was never adopted may have written past our end.
                del new._order[size:]
                new._order.append(item.id)
                size += 1
            else:
                new.counts[old.state] -= 1
                new.outside -= _is_outside(old)
            new._over[item.id] = item
            new.counts[item.state] = new.counts.get(item.state, 0) + 1
            new.outside += _is_outside(item)
            if item.state is _PENDING and item.not_before is not None:
                delayed = delayed | {item.id}
            else:
                if item.id in delayed:
                    delayed = delayed - {item.id} or _NONE
                if _is_fresh(item) and item.ordinal < new.low:
                    new.low = item.ordinal
        new.delayed = delayed
        return new

    def fresh(self, most: int) -> list[str]:
        """Up to `most` items, in order, that are pending at a step without a `not_before`."""
        found: list[str] = []
        size = len(self)
        position = self.low
        while position < size and len(found) < most:
            item = self[self._order[position]]
            if _is_fresh(item):
                found.append(item.id)
            position += 1
        return found

    def lately(self, most: int) -> Iterator[Item]:
        """Up to `most` items before the first fresh one, the last of them first: those started last."""
        for name in reversed(self._order[max(0, self.low - most) : self.low]):
            yield self[name]

    def settle(self) -> None:
        """Fold the overlay into the base and move `low` up; call on the adopted table only."""
        if self._over:
            self._base.update(self._over)
            self._over = {}
        size = len(self._base)
        low = self.low
        while low < size:
            if _is_fresh(self._base[self._order[low]]):
                break
            low += 1
        self.low = low
