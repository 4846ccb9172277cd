"""What must stay known for ever: business keys, request ids, ids of pruned jobs; a name is never replaced.

A name is the file `names/<sha256 of kind, uid, value>`; what it holds is the caller's.
"""

import hashlib
from pathlib import Path

from . import durable


def spell(kind: str, uid: int, value: str) -> str:
    """The file name of one known thing; `kind` holds no NUL."""
    return hashlib.sha256(f"{kind}\0{uid}\0{value}".encode("utf-8", "surrogatepass")).hexdigest()


def known(folder: Path, kind: str, uid: int, value: str) -> bool:
    """True once the name was kept."""
    target = folder / spell(kind, uid, value)
    with durable.reading(target):
        return durable.exists(target)


def keep(folder: Path, kind: str, uid: int, value: str, raw: bytes) -> bytes:
    """Make a name durable and return what it holds: `raw`, or the bytes of whoever came first."""
    target = folder / spell(kind, uid, value)
    try:
        with durable.writing("keep the name", target):
            durable.write_new(target, raw)
    except FileExistsError:
        with durable.writing("keep the name", target):
            # The first writer may have died before it synced the folder.
            durable.sync_folder(folder)
        return read(folder, kind, uid, value) or raw
    return raw


def read(folder: Path, kind: str, uid: int, value: str) -> bytes | None:
    """What a name holds, None when it was never kept."""
    target = folder / spell(kind, uid, value)
    with durable.reading(target):
        return durable.read_all(target) if durable.exists(target) else None
