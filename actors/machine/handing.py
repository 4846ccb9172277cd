"""What a step hands on: its output to the steps after it, and its items to the fan-out they wait for."""

from collections.abc import Mapping

from attrs import evolve

from resumed.schemas import decisions
from resumed.schemas.job import Artifact, Item, ItemState, Source
from resumed.schemas.records import replaced

from .draft import Draft

_NO_PINS: Mapping[str, Source] = {}


def keep(unit: Item, output: Artifact | None) -> Item:
    """The unit with what its step made, for the steps after it; the last of one name counts."""
    if output is None:
        return unit
    return evolve(unit, outputs=(*(one for one in unit.outputs if one.name != output.name), output))


def enter(unit: Item, step: str, data: str = "{}") -> Item:
    """The unit at another step: a new occurrence with a fresh set of tries."""
    return replaced(
        unit,
        state=ItemState.PENDING,
        at=step,
        occurrence=unit.occurrence + 1,
        failures=0,
        crashes=0,
        not_before=None,
        data=data,
        code="",
        reason="",
        note="",
        torn=False,
    )


def has_come(draft: Draft, step: str) -> bool:
    """Whether the fan-out that begins at `step`, or a later one, is running: then it waits for nothing.

    Later in the order the workflow declares its steps in: an item that was left behind catches up.
    """
    if draft.each is None:
        return False
    order = [each.name for each in draft.contract.steps]
    return order.index(draft.each.start) >= order.index(step)


def stand_by(unit: Item, data: str) -> Item:
    """The item without a step: it waits for the next fan-out, as every item did before the first."""
    return evolve(
        unit,
        state=ItemState.PENDING,
        at="",
        failures=0,
        crashes=0,
        not_before=None,
        data=data,
        code="",
        reason="",
    )


def bring_in(
    draft: Draft, items: tuple[decisions.NewItem, ...], pins: Mapping[str, Source] = _NO_PINS
) -> list[Item]:
    """The rows of the items named, in order, missing ones made; without what is done or left out.

    `pins` are their sources, by item, where those were pinned apart from them.
    """
    found: list[Item] = []
    size = len(draft.items)
    for new in items:
        old = draft.items.get(new.id)
        if old is None:
            old = Item(id=new.id, ordinal=size, inputs=new.inputs)
            size += 1
        if old.state not in (ItemState.DONE, ItemState.SKIPPED):
            source = pins.get(new.id, new.source)
            found.append(old if source is None else evolve(old, source=source))
    return found
