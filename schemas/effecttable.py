"""The effect table: a persistent mapping of effects in the order they were asked for, by id.

`put` returns a new table and leaves the old one as it was. Tables share what is old: the newest rows lie in a
small layer over it, which is folded in from time to time, so that a change costs the same however many there
are. What is still open is indexed, so that looking for what is due does not go through what is over, nor
through what waits for people.
"""

from collections.abc import Collection, Iterable, Iterator

from .instant import Instant
from .ledger import SETTLED, Effect, EffectState

FOLDED = 64
"""Rows of the upper layer from which on it is folded in."""


def is_live(effect: Effect) -> bool:
    """Whether something may be due about it: it may have left, or nobody is asked about it any more."""
    if effect.state is EffectState.PROPOSED:
        return effect.gate is None or effect.gate.met is not None
    return effect.state not in SETTLED


def lapse(effect: Effect) -> Instant | None:
    """When the round in which it is asked about is over; None where that is no matter of time."""
    if effect.state is not EffectState.PROPOSED or effect.gate is None:
        return None
    return effect.gate.until


def _earlier(one: Instant | None, other: Instant | None) -> Instant | None:
    if one is None or other is None:
        return other if one is None else one
    return other if other.wall < one.wall else one


def _with(names: frozenset[str], name: str, wanted: bool) -> frozenset[str]:
    if (name in names) is wanted:
        return names
    return names | {name} if wanted else names - {name}


class EffectTable:
    """Effects by id, in order. Never mutated after creation."""

    __slots__ = ("_base", "_first", "_is_known", "_live", "_new", "_over", "_places", "held", "unsettled")

    def __init__(self, effects: Iterable[Effect] = ()) -> None:
        self._base: dict[str, Effect] = {}
        """Shared with other tables, never changed."""
        self._places: list[dict[str, int]] = []
        """Where each stands in it, once somebody wanted to know; shared like it."""
        for effect in effects:
            if effect.id in self._base:
                raise ValueError(f"effect {effect.id!r} stands twice in the table")
            self._base[effect.id] = effect
        self._over: dict[str, Effect] = {}
        """In place of those below, or after them."""
        self._new = 0
        """How many of these stand after those below."""
        self.unsettled = frozenset(row.id for row in self._base.values() if row.state not in SETTLED)
        """The ids of those that are proposed, dispatching or unknown."""
        self.held = frozenset(row.id for row in self._base.values() if row.hold is not None)
        """The ids of those that a person must say something about, whatever their state."""
        self._live = frozenset(row.id for row in self._base.values() if is_live(row))
        self._first: Instant | None = None
        """When the first of the rounds is over, where that is known."""
        self._is_known = False

    def __len__(self) -> int:
        return len(self._base) + self._new

    def __contains__(self, name: object) -> bool:
        return name in self._over or name in self._base

    def __getitem__(self, name: str) -> Effect:
        row = self._over.get(name)
        return self._base[name] if row is None else row

    def __iter__(self) -> Iterator[Effect]:
        over, base = self._over, self._base
        if not over:
            return iter(base.values())
        rows = [over.get(name, row) for name, row in base.items()]
        return iter(rows + [row for name, row in over.items() if name not in base])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EffectTable) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # compared by content, never a key

    def get(self, name: str) -> Effect | None:
        """The effect of that id, or None."""
        row = self._over.get(name)
        return self._base.get(name) if row is None else row

    def open(self) -> list[Effect]:
        """Those that are not settled, in order."""
        return self._in_order(self.unsettled)

    def live(self) -> list[Effect]:
        """Those about which something may be due (`is_live`), in order."""
        return self._in_order(self._live)

    def first_lapse(self) -> Instant | None:
        """When the first round in which one of them is asked about is over; None when none will be. It is
        looked for through all that are open only after the first one has changed."""
        if self._is_known:
            return self._first
        first: Instant | None = None
        for name in self.unsettled:
            first = _earlier(first, lapse(self[name]))
        # In this order, and whole: another thread may look at the same table.
        self._first = first
        self._is_known = True
        return first

    def is_live_only_in(self, names: Collection[str]) -> bool:
        """Whether all that something may be due about are among these."""
        return all(name in names for name in self._live)

    def _in_order(self, names: frozenset[str]) -> list[Effect]:
        if len(names) < 2:
            return [self[name] for name in names]
        if not self._places:
            self._places.append({name: at for at, name in enumerate(self._base)})
        places = self._places[0]
        above = [name for name in self._over if name in names and name not in places]
        below = sorted((name for name in names if name in places), key=places.__getitem__)
        return [self[name] for name in (*below, *above)]

    def put(self, effects: Iterable[Effect]) -> "EffectTable":
        """A table with these rows in place of (or after) the present ones."""
        new = EffectTable.__new__(EffectTable)
        base, over, count = self._base, dict(self._over), self._new
        unsettled, held, live = self.unsettled, self.held, self._live
        first, is_known = self._first, self._is_known
        for effect in effects:
            name = effect.id
            if is_known:
                before, now = over.get(name) or base.get(name), lapse(effect)
                was = None if before is None else lapse(before)
                # The first one may be over: the next is looked for when it is asked for.
                is_known = was is None or was is not first or was is now
                first = _earlier(first, now)
            count += name not in over and name not in base
            over[name] = effect
            unsettled = _with(unsettled, name, effect.state not in SETTLED)
            held = _with(held, name, effect.hold is not None)
            live = _with(live, name, is_live(effect))
        if len(over) > FOLDED:
            base, over, count = {**base, **over}, {}, 0
        new._base, new._over, new._new = base, over, count
        new._places = self._places if base is self._base else []
        new.unsettled, new.held, new._live = unsettled, held, live
        new._first, new._is_known = first, is_known
        return new
