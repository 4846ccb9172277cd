"""What must stay known for ever: business keys, request ids, ids of pruned jobs; a name is never replaced.

A name is the file `names/<sha256 of kind, uid, value>`; what it holds is the caller's, and stands in it
beside the name itself, under a digest. Files of the first release hold `{"job": ID}` alone.
"""

import hashlib
from pathlib import Path

from attrs import frozen

from resumed.schemas import checked
from resumed.schemas.errors import DamagedError, FaultyInputError

from . import durable


@frozen(kw_only=True)
class Name:
    """What a name's file holds: the file's own name, and the caller's bytes as text."""

    name: str
    holds: str


def spell(kind: str, uid: int, value: str) -> str:
    """The file name of one known thing; `kind` holds no NUL."""
    return hashlib.sha256(f"{kind}\0{uid}\0{value}".encode("utf-8", "surrogatepass")).hexdigest()


def known(folder: Path, kind: str, uid: int, value: str) -> bool:
    """True once the name was kept."""
    target = folder / spell(kind, uid, value)
    with durable.reading(target):
        return durable.exists(target)


def keep(folder: Path, kind: str, uid: int, value: str, raw: bytes) -> bytes:
    """Make a name durable and return what it holds: `raw` (UTF-8), or the bytes of whoever came first.

    DamagedError when whoever came first left bytes that fail their digest.
    """
    target = folder / spell(kind, uid, value)
    try:
        with durable.writing("keep the name", target):
            durable.write_new(target, checked.spell(Name(name=target.name, holds=raw.decode())))
    except FileExistsError:
        with durable.writing("keep the name", target):
            # The first writer may have died before it synced the folder.
            durable.sync_folder(folder)
        return read(folder, kind, uid, value) or raw
    return raw


def read(folder: Path, kind: str, uid: int, value: str) -> bytes | None:
    """What a name holds, None when it was never kept; DamagedError when its bytes fail their digest."""
    target = folder / spell(kind, uid, value)
    with durable.reading(target):
        if not durable.exists(target):
            return None
    return read_file(target)


def read_file(path: Path) -> bytes:
    """What the name in a file holds; DamagedError when its bytes fail their digest, or are another name's."""
    with durable.reading(path):
        raw = durable.read_all(path)
    what = f"cannot read the name {path.name}"
    try:
        value = checked.read_plain(raw, what)
        if set(value) == {"job"} and checked.KEY.encode() not in raw:
            return raw
        found = checked.read(raw, Name, what)
    except FaultyInputError as error:
        raise DamagedError(str(error), path=str(path)) from None
    if found.name != path.name:
        raise DamagedError(f"{what}: it is the name {found.name}", path=str(path))
    return found.holds.encode()


def drop(folder: Path, kind: str, uid: int, value: str) -> None:
    """Give a name up: only for one that nobody was ever told of, or whose holder is gone for good."""
    target = folder / spell(kind, uid, value)
    with durable.writing("give up the name", target):
        if durable.exists(target):
            durable.unlink(target)
        durable.sync_folder(folder)
