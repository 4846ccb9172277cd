"""Places where workers of this world publish: what a real one stages before it answers, and what is left."""

from collections.abc import Callable
from pathlib import Path

from attrs import evolve

from resumed.schemas import codec, decisions, frames, strict

from .workers import Says


def raw_of(item: str) -> bytes:
    """What a step makes of an item, always the same."""
    return f"the output of {item}\n".encode() * 20


def publishes(
    says: Says,
    folder: Path,
    *,
    reference: bool = False,
    name: Callable[[frames.Run], str] = lambda frame: frame.item,
) -> Says:
    """The same handlers, but that items which are accepted have an output staged in `folder`."""

    def speak(frame: frames.Run) -> decisions.Answer:
        answer = says(frame)
        if not frame.item or not isinstance(answer.decided, decisions.Accepted):
            return answer
        return evolve(answer, decided=decisions.Accepted(output=stage(folder, name(frame), reference)))

    return speak


def several(says: Says, folder: Path) -> Says:
    """The same for several jobs whose items bear the same names; some are kept by reference."""
    of_files = publishes(says, folder, name=lambda frame: f"{frame.job}-{frame.item}")
    by_reference = publishes(says, folder, name=lambda frame: f"{frame.job}-{frame.item}", reference=True)
    return lambda frame: (by_reference if len(frame.item) % 2 else of_files)(frame)


def stage(folder: Path, item: str, reference: bool) -> decisions.Offer:
    """The offer of an item's output, its bytes staged as `actors.worker.staging` leaves them."""
    raw = raw_of(item)
    temp = folder / f".resumed-{item}.tmp"
    temp.unlink(missing_ok=True)
    temp.write_bytes(raw)
    found = temp.stat()
    staged = decisions.Staged(
        destination=str(folder / item),
        temp=temp.name,
        device=found.st_dev & strict.MAX_INT,
        inode=found.st_ino & strict.MAX_INT,
    )
    return decisions.Offer(
        name="output",
        sha256=codec.digest(raw),
        size=len(raw),
        text=None if reference else raw.decode(),
        publish=staged,
        reference=reference,
    )


def broken(folder: Path, done: set[str]) -> list[str]:
    """What is wrong with a folder: items that are done have their output there, and nothing else is."""
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    faults = [f"{item} is done and not published" for item in done if found.get(item) != raw_of(item)]
    return faults + [f"left over: {name}" for name in found if name not in done]
