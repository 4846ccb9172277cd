"""The effect table: a persistent mapping of effects in the order they were asked for, by id.

`put` returns a new table and leaves the old one as it was; what is still open is indexed, so that looking for
what is due does not go through what is over.
"""

from collections.abc import Iterable, Iterator

from .ledger import SETTLED, Effect


class EffectTable:
    """Effects by id, in order. Never mutated after creation."""

    __slots__ = ("_rows", "unsettled")

    def __init__(self, effects: Iterable[Effect] = ()) -> None:
        self._rows: dict[str, Effect] = {}
        for effect in effects:
            if effect.id in self._rows:
                raise ValueError(f"effect {effect.id!r} stands twice in the table")
            self._rows[effect.id] = effect
        self.unsettled = frozenset(row.id for row in self._rows.values() if row.state not in SETTLED)
        """The ids of those that are proposed, dispatching or unknown."""

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __getitem__(self, name: str) -> Effect:
        return self._rows[name]

    def __iter__(self) -> Iterator[Effect]:
        return iter(self._rows.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EffectTable) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # compared by content, never a key

    def get(self, name: str) -> Effect | None:
        """The effect of that id, or None."""
        return self._rows.get(name)

    def open(self) -> list[Effect]:
        """Those that are not settled, in order."""
        if not self.unsettled:
            return []
        return [row for name, row in self._rows.items() if name in self.unsettled]

    def put(self, effects: Iterable[Effect]) -> "EffectTable":
        """A table with these rows in place of (or after) the present ones."""
        new = EffectTable.__new__(EffectTable)
        new._rows = dict(self._rows)
        left = set(self.unsettled)
        for effect in effects:
            new._rows[effect.id] = effect
            if effect.state in SETTLED:
                left.discard(effect.id)
            else:
                left.add(effect.id)
        new.unsettled = frozenset(left)
        return new
