"""What is open of a job in workers' hands: tries and errands, by the names that workers know them by."""

from resumed.schemas.job import Try
from resumed.schemas.ledger import Errand
from resumed.schemas.snapshot import Snapshot

from .machine import errands

GRACE = 5.0
"""Seconds that a program on an errand has to end by itself when it is stopped."""


def row(snapshot: Snapshot, unit: str) -> Try | Errand | None:
    """The open try of a unit, or the open errand of that name."""
    if unit and errands.is_errand(unit):
        return snapshot.errands.get(errands.effect_of(unit))
    return snapshot.tries.get(unit)


def name_of(row: Try | Errand) -> str:
    """The name that it goes by."""
    return errands.name_of(row.effect) if isinstance(row, Errand) else row.item


def grace(snapshot: Snapshot, row: Try | Errand) -> float:
    """Seconds that it has to end by itself."""
    if isinstance(row, Errand):
        return GRACE
    step = snapshot.contract.step(row.step)
    return step.grace if step is not None else 0.0


def workers(snapshot: Snapshot) -> set[str]:
    """The names of the workers that they are in the hands of."""
    found = {row.worker for row in snapshot.tries.values()}
    return found | {row.worker for row in snapshot.errands.values()}
