"""The item table against a plain dict, also beside sibling tables that were never adopted."""

import json

import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st

from resumed.schemas import codec
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.job import Item, ItemState
from resumed.schemas.table import ItemTable

WHEN = Instant(wall=1_795_000_000_000_000, boot="one", up=1)
SHAPES: tuple[dict[str, object], ...] = (
    {"state": ItemState.PENDING, "at": ""},
    {"state": ItemState.PENDING, "at": "read"},
    {"state": ItemState.PENDING, "at": "read"},
    {"state": ItemState.PENDING, "at": "read", "not_before": WHEN},
    {"state": ItemState.IN_PROGRESS, "at": "read"},
    {"state": ItemState.DONE, "at": "read"},
    {"state": ItemState.FAILED, "at": "read"},
)


def row(ordinal: int, shape: int, stamp: int = 0) -> Item:
    """An item in one of the shapes."""
    return Item(id=f"i{ordinal}", ordinal=ordinal, tries=stamp, **SHAPES[shape % len(SHAPES)])  # type: ignore[arg-type]  # a table of fields


def agrees(table: ItemTable, model: dict[str, Item]) -> None:
    """The table shows what the model holds, in order, with every index right."""
    rows = list(model.values())

    assert rows == list(table)
    assert len(rows) == len(table)
    assert all(item is not None and item == table[name] == table.get(name) for name, item in model.items())
    assert all(name in table for name in model)
    assert "nobody" not in table
    assert None is table.get("nobody")
    for state in ItemState:
        assert sum(item.state is state for item in rows) == table.count(state)
    pending = [item for item in rows if item.state is ItemState.PENDING]
    fresh = [item.id for item in pending if item.at and item.not_before is None]
    for most in (0, 1, 2, 99):
        assert fresh[:most] == table.fresh(most)
    assert {item.id for item in pending if item.not_before is not None} == table.delayed
    assert sum(item.at == "" for item in pending) == table.outside
    assert all(model[name].ordinal >= table.low for name in fresh)
    behind = [item for item in reversed(rows) if item.ordinal < table.low]
    for most in (0, 1, 2, 99):
        assert behind[:most] == list(table.lately(most))
    assert table == ItemTable(rows)


@define(eq=False)
class Family:
    """The adopted table, its model, and tables beside it that may still be adopted."""

    table: ItemTable
    model: dict[str, Item]
    branches: list[tuple[ItemTable, dict[str, Item]]] = field(factory=list)

    def put(self, picks: list[tuple[int, int]], on: int) -> None:
        """A new table from the adopted one or from a branch of it; nothing is adopted."""
        bases = [(self.table, self.model), *self.branches[-1:]]
        table, model = bases[on % len(bases)]
        after = dict(model)
        rows = []
        for place, shape in picks:
            ordinal = place % (len(after) + 1)
            rows.append(row(ordinal, shape, shape))
            after[rows[-1].id] = rows[-1]
        made = table.put(rows)

        agrees(made, after)
        self.branches.append((made, after))

    def adopt(self) -> None:
        """The last table made becomes the one in force; the others are never looked at again."""
        self.table, self.model = self.branches[-1]
        self.branches = []
        self.table.settle()


rounds = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), min_size=0, max_size=5),
        st.integers(0, 1),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=400, derandomize=True, deadline=None, database=None)
@given(st.lists(st.integers(0, 6), max_size=6), rounds)
def test_table_is_a_dict_with_indexes(
    shapes: list[int], turns: list[tuple[list[tuple[int, int]], int, bool]]
) -> None:
    """Whatever is put, branched off, adopted or forgotten, the adopted table shows what a dict would."""
    rows = [row(ordinal, shape) for ordinal, shape in enumerate(shapes)]
    family = Family(ItemTable(rows), {item.id: item for item in rows})
    for picks, on, adopted in turns:
        family.put(picks, on)
        # Without an adoption (a commit that failed) the table in force is untouched by its siblings.
        if adopted:
            family.adopt()
        agrees(family.table, family.model)


def test_a_sibling_that_was_never_adopted_leaves_no_trace() -> None:
    """New items of a line whose commit failed are not there, and their places are free for others."""
    table = ItemTable([row(0, 1)])
    table.put([row(1, 1), row(2, 1)])
    other = table.put([evolve(row(1, 3), id="other")])
    other.settle()

    assert ["i0", "other"] == [item.id for item in other]
    agrees(other, {item.id: item for item in other})


@pytest.mark.parametrize(
    "items",
    [
        [row(1, 1)],
        [row(0, 1), evolve(row(1, 1), id="i0")],
        [row(0, 1), row(0, 1)],
        [row(0, 1), row(2, 1)],
    ],
)
def test_a_table_out_of_order_is_refused(items: list[Item]) -> None:
    """Ordinals count from 0 without a gap, and no id stands twice: in memory and at the door."""
    with pytest.raises(ValueError, match="out of order or twice"):
        ItemTable(items)
    plain = json.loads(codec.dump_plain([codec.to_plain(item) for item in items]))
    with pytest.raises(FaultyInputError):
        codec.from_plain(plain, ItemTable, "cannot read")


def test_a_new_item_follows_the_last() -> None:
    """A row with a new id takes the next ordinal or none."""
    with pytest.raises(ValueError, match="has ordinal 5, expected 1"):
        ItemTable([row(0, 1)]).put([row(5, 1)])


def test_equal_tables_are_equal_however_they_were_made() -> None:
    """Two tables with the same rows are the same, settled or not; a list is not a table."""
    rows = [row(0, 1), row(1, 3)]
    made = ItemTable([]).put(rows)

    assert made == ItemTable(rows)
    assert made != ItemTable(rows[:1])
    assert made != rows
