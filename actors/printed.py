"""What a job's programs print: which files it goes to, whose they are, and whether more may come."""

from pathlib import Path

from attrs import frozen

from resumed.schemas.job import Item, ItemState
from resumed.schemas.snapshot import Snapshot

from . import places

_TO_COME = (ItemState.PENDING, ItemState.IN_PROGRESS, ItemState.REVIEW)


@frozen
class Unit:
    """One item's log, or with "" that of the job's own steps: its file, and whether no more will come."""

    item: str
    file: str
    over: bool


@frozen(kw_only=True)
class Printed:
    """What a job's programs have printed so far, as of line `sequence`; `over` once the job has ended."""

    folder: Path
    units: tuple[Unit, ...]
    sequence: int
    over: bool


def printed(snapshot: Snapshot, folder: Path, only: str | None) -> Printed | None:
    """The logs of all that was started, or of one item; None when there is no such item."""
    if only is None:
        items = [item for item in (snapshot.position, *snapshot.items) if item.tries]
    else:
        found = snapshot.items.get(only) if only else snapshot.position
        if found is None:
            return None
        items = [found]
    return Printed(
        folder=Path(places.log_file(folder, "")).parent,
        units=tuple(_unit(snapshot, folder, item) for item in items),
        sequence=snapshot.sequence,
        over=snapshot.outcome is not None,
    )


def _unit(snapshot: Snapshot, folder: Path, item: Item) -> Unit:
    """The job's own position goes on from step to step, so its log is over with the job alone."""
    over = snapshot.outcome is not None or (bool(item.id) and item.state not in _TO_COME)
    return Unit(item.id, Path(places.log_file(folder, item.id)).name, over)
