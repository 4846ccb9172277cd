"""The effect table: a persistent mapping of effects in the order they were asked for, by id.

`put` returns a new table and leaves the old one as it was; what is still open is indexed, so that looking for
what is due does not go through what is over, nor through what waits for people.
"""

from collections.abc import Iterable, Iterator

from .ledger import SETTLED, Effect, EffectState


def is_live(effect: Effect) -> bool:
    """Whether something may be due about it: it may have left, or nobody is asked about it any more."""
    if effect.state is EffectState.PROPOSED:
        return effect.gate is None or effect.gate.met is not None
    return effect.state not in SETTLED


class EffectTable:
    """Effects by id, in order. Never mutated after creation."""

    __slots__ = ("_at", "_live", "_rows", "held", "unsettled")

    def __init__(self, effects: Iterable[Effect] = ()) -> None:
        self._rows: dict[str, Effect] = {}
        for effect in effects:
            if effect.id in self._rows:
                raise ValueError(f"effect {effect.id!r} stands twice in the table")
            self._rows[effect.id] = effect
        self.unsettled = frozenset(row.id for row in self._rows.values() if row.state not in SETTLED)
        """The ids of those that are proposed, dispatching or unknown."""
        self.held = frozenset(row.id for row in self._rows.values() if row.hold is not None)
        """The ids of those that a person must say something about, whatever their state."""
        self._live = frozenset(row.id for row in self._rows.values() if is_live(row))
        self._at = {name: at for at, name in enumerate(self._rows)}

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

    def live(self) -> list[Effect]:
        """Those about which something may be due (`is_live`), in order."""
        return [self._rows[name] for name in sorted(self._live, key=self._at.__getitem__)]

    def put(self, effects: Iterable[Effect]) -> "EffectTable":
        """A table with these rows in place of (or after) the present ones."""
        new = EffectTable.__new__(EffectTable)
        new._rows = dict(self._rows)
        new._at = self._at
        left, held, live = set(self.unsettled), set(self.held), set(self._live)
        for effect in effects:
            if effect.id not in new._rows:
                new._at = {**new._at, effect.id: len(new._rows)}
            new._rows[effect.id] = effect
            (left.discard if effect.state in SETTLED else left.add)(effect.id)
            (held.discard if effect.hold is None else held.add)(effect.id)
            (live.add if is_live(effect) else live.discard)(effect.id)
        new.unsettled, new.held, new._live = frozenset(left), frozenset(held), frozenset(live)
        return new
