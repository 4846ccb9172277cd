"""Records with fields replaced: what `attrs.evolve` gives, for every stored record that the law replaces."""

import attrs
import pytest

from resumed.schemas.instant import Instant
from resumed.schemas.job import Item, ItemState, Next
from resumed.schemas.records import replaced


@attrs.frozen(slots=False)
class Loose:
    """A record without slots, as events are."""

    unit: str = "a"
    number: int = 0


MOMENT = Instant(wall=1, boot="b", up=2)
RECORDS = (MOMENT, Item(id="a", ordinal=0, at="draft"), Next(step="draft"), Loose())


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_replaced_is_evolve(record: object) -> None:
    """Each field alone: the new record equals the one attrs makes, and the old one is untouched."""
    before = attrs.asdict(record)  # type: ignore[arg-type]  # every one of them is an attrs class
    for name in before:
        new = replaced(record, **{name: "other"})

        assert attrs.evolve(record, **{name: "other"}) == new  # type: ignore[misc]
        assert hash(attrs.evolve(record, **{name: "other"})) == hash(new)  # type: ignore[misc]
    assert before == attrs.asdict(record)  # type: ignore[arg-type]
    assert replaced(record) == record
    assert replaced(record) is not record


def test_replaced_knows_the_names() -> None:
    """A field that the record does not have is an error, not a new field."""
    with pytest.raises(TypeError, match="stat"):
        replaced(RECORDS[1], stat=ItemState.DONE)


def test_none_is_a_value() -> None:
    """A field can be emptied."""
    assert replaced(replaced(RECORDS[1], not_before=MOMENT), not_before=None) == RECORDS[1]
