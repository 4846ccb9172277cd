"""Where a try works and what it prints to: the names of its folders.

Three folders: `scratch`, gone with the try; `kept`, the unit's own, which outlives tries, crashes and
restarts, and goes when the unit is done or left out, at the latest when the job ends; `logs`, which stays.
`kept` lies in the job's folder, so that it is set aside, copied and taken away with it; nobody vouches for
what is in it.
"""

from functools import lru_cache
from pathlib import Path

from resumed.schemas import codec
from resumed.schemas.job import ItemState, Try
from resumed.schemas.ledger import Errand
from resumed.schemas.snapshot import Snapshot
from resumed.store import files

_OVER = (ItemState.DONE, ItemState.SKIPPED)


def runs_programs(snapshot: Snapshot) -> bool:
    """True for a workflow of programs."""
    return bool(snapshot.contract.definition and not snapshot.contract.entry)


def is_over(snapshot: Snapshot, unit: str) -> bool:
    """True when nothing of the unit's kept folder is wanted any more."""
    item = snapshot.items.get(unit) if unit else snapshot.position
    return item is not None and item.state in _OVER and runs_programs(snapshot)


def scratch_folder(root: Path, job: str, unit: str, row: Try | Errand) -> str:
    """The own folder of a try, or of the errand that goes by the name `unit`: in the one of its worker."""
    # Texts, not paths: this is made for every try.
    return f"{root}/{row.worker}/{_place_name(job, unit)}-{row.epoch}-{row.number}"


def kept_folder(folder: Path, unit: str) -> str:
    """The unit's own folder, in that of its job."""
    return f"{folder}/{files.KEPT}/{_name(unit)}"


def log_file(folder: Path, unit: str) -> str:
    """Where a unit's programs' output is appended; named by a digest, since item names may be anything."""
    return f"{folder}/{files.LOGS}/{_name(unit)}.log"


@lru_cache(maxsize=4096)
def _place_name(job: str, unit: str) -> str:
    return codec.digest(f"{job}\n{unit}".encode())[:20]


@lru_cache(maxsize=4096)
def _name(unit: str) -> str:
    return codec.digest(unit.encode())[:16]
