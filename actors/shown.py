"""Which items a job step is shown in its frame, and how much of their outputs."""

from attrs import evolve

from resumed.schemas.job import Item
from resumed.schemas.snapshot import Snapshot

INLINE_MOST = 4 * 1024 * 1024
"""Bytes of outputs that travel inside one frame; past it each is known by its digest and size only."""


def items(snapshot: Snapshot) -> tuple[Item, ...]:
    """The items for the job's own step; a workflow of programs needs them where it lists them only."""
    contract = snapshot.contract
    programs = contract.definition and not contract.entry
    if programs and snapshot.position.at != contract.start:
        return ()
    found = tuple(snapshot.items)
    weight = sum(item.output.size for item in found if item.output is not None and _is_inline(item))
    return found if weight <= INLINE_MOST else tuple(_by_reference(item) for item in found)


def _is_inline(item: Item) -> bool:
    return item.output is not None and (item.output.text is not None or item.output.base64 is not None)


def _by_reference(item: Item) -> Item:
    if item.output is None or not _is_inline(item):
        return item
    return evolve(item, output=evolve(item.output, text=None, base64=None))
