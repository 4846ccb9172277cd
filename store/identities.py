"""Worker processes on record: `workers/<name>.json` says who was started, `<name>.gone` that all is dead.

An identity is durable before its worker gets a frame, and is never replaced. The keeper, a process of its
own, writes the `.gone` file by itself: create, sync, sync the folder.
"""

from pathlib import Path

from resumed.schemas import checked
from resumed.schemas.errors import FaultyInputError

from . import durable
from .layout import Layout

IDENTITY = ".json"
GONE = ".gone"
STDERR = ".stderr"
"""What a worker itself printed; no state."""


def identity_path(layout: Layout, name: str) -> Path:
    """The file that says who was started."""
    return layout.workers / f"{name}{IDENTITY}"


def gone_path(layout: Layout, name: str) -> Path:
    """The file whose being there says that nothing of that worker lives."""
    return layout.workers / f"{name}{GONE}"


def record(layout: Layout, name: str, raw: bytes) -> None:
    """Make an identity durable; FileExistsError when the name was used before."""
    target = identity_path(layout, name)
    with durable.writing("record the worker", target):
        durable.write_new(target, raw)


def read(layout: Layout, name: str) -> bytes:
    """The bytes of an identity."""
    target = identity_path(layout, name)
    with durable.reading(target):
        return durable.read_all(target)


def verify(path: Path) -> None:
    """FaultyInputError unless the file is what `record` wrote under its name; UnreadableError on EIO."""
    with durable.reading(path):
        raw = durable.read_all(path)
    what = f"cannot read the worker {path.name}"
    found = checked.read_plain(raw, what)
    if found.get("name") != path.stem and set(found) != {"boot", "pid"}:  # the shortest there ever was
        raise FaultyInputError(what, (f"it is the record of {found.get('name')!r} @ $.name",))


def gone(layout: Layout, name: str) -> bool:
    """True once the worker's whole tree is known to be dead."""
    target = gone_path(layout, name)
    with durable.reading(target):
        return durable.exists(target)


def mark_gone(layout: Layout, name: str) -> None:
    """Make durable that the worker's tree is dead; a second time changes nothing."""
    target = gone_path(layout, name)
    with durable.writing("record the end of", target):
        try:
            durable.close(durable.create(target))
        except FileExistsError:
            pass
        durable.sync_folder(layout.workers)


def names(layout: Layout) -> tuple[str, ...]:
    """All workers on record, gone or not."""
    with durable.reading(layout.workers):
        found = durable.names(layout.workers)
    return tuple(n.removesuffix(IDENTITY) for n in found if n.endswith(IDENTITY) and not n.startswith("."))


def forget(layout: Layout, name: str) -> None:
    """Drop a worker from the record, the identity first: a crash in between leaves none that looks alive."""
    for target in (identity_path(layout, name), gone_path(layout, name)):
        with durable.writing("forget the worker", target):
            if durable.exists(target):
                durable.unlink(target)
                # One by one: a power cut may keep the later of two unsynced changes and lose the first.
                durable.sync_folder(layout.workers)
