"""A whole life of one job: it is dropped into a folder, its daemon is killed three times, and it is finished.

    demo.py [FOLDER]

Every module of this Python's standard library (or every file of FOLDER) is one item, four at a time. The
daemon runs with a state folder of its own under the temporary folder. The last line of the output is one
JSON object, counted from two things that are not ours: the folder of cards, and the witness file to which
every run of the program appends a line when it begins and one when its card is in place.

What `rerun_after_done` counts, and what it does not: a program that had ended, but whose end was not on the
disk yet when the daemon was killed, runs again; that is no broken promise, since nobody was told that the
item is done. So after each kill, while no daemon runs, the demo reads from the state folder which items
are done there. A run counts as a rerun after done when it begins after a run of the same item had ended,
unless a kill lies between them at which the item was not done on the disk.
"""

import hashlib
import json
import os
import shutil
import sys
import sysconfig
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import digest
from stage import Stage, tell, wait_for

from resumed.actors.machine.apply import apply
from resumed.schemas.job import ItemState
from resumed.store import recovery
from resumed.store.layout import Layout

HERE = Path(__file__).resolve().parent
JOB = "digest-demo"
SHARES = (0.25, 0.50, 0.75)
WITHIN = 120.0
ENOUGH = 60


class Kill(NamedTuple):
    """One kill: how much witness there was once all was dead, and what was done on the disk."""

    witness: int
    done: frozenset[str]


class Cards(Stage):
    """The folders of one demo."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.cards = root / "cards"
        self.witness = root / "witness"
        self.kills: list[Kill] = []
        self.cards.mkdir()
        self.witness.touch()
        places = {"python3": sys.executable, "/usr/share/resumed/digest/digest.py": str(HERE / "digest.py")}
        self.workflow(
            HERE / "digest.toml", {json.dumps(name): json.dumps(ours) for name, ours in places.items()}
        )

    def hand_in(self, items: list[tuple[str, Path]]) -> None:
        """The job, into the watched folder."""
        rest = 0 if len(items) >= ENOUGH else 1000 if len(items) < 12 else 200
        self.drop(
            {
                "workflow": "digest",
                "id": JOB,
                "title": f"digest cards of {len(items)} files",
                "items": [{"id": name, "source": str(path)} for name, path in items],
                "inputs": {"cards": str(self.cards), "witness": str(self.witness), "rest": rest},
            }
        )

    def done_on_disk(self) -> frozenset[str]:
        """Which items the state folder says are done, read while no daemon runs."""
        layout = Layout(self.state)
        for folder in (layout.job(JOB), layout.archived(JOB)):
            if folder.is_dir():
                items = recovery.load(folder, apply).snapshot.items
                return frozenset(item.id for item in items if item.state is ItemState.DONE)
        return frozenset()


def items_of(folder: Path | None) -> list[tuple[str, Path]]:
    """The files to read, by name."""
    if folder is None:
        library = Path(sysconfig.get_path("stdlib"))
        return sorted((path.name, path) for path in library.glob("*.py") if path.is_file())
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sorted((str(path.relative_to(folder)), path.resolve()) for path in found)


def play(stage: Cards, items: list[tuple[str, Path]]) -> dict[str, Any] | None:
    """The story itself; the job's last row, None when it did not end in time."""
    deadline = time.monotonic() + WITHIN
    tell(f"a daemon was started (process {stage.start()})")
    try:
        wait_for(stage.is_ready, deadline)
        stage.hand_in(items)
        tell(f"a job file with {len(items)} items was dropped into {stage.state / 'incoming'}")
        for share in SHARES:
            wanted = max(1, round(len(items) * share))
            wait_for(partial(has_cards, stage, wanted), deadline)
            kill_and_start(stage, len(items))
        row: dict[str, Any] | None = None
        while time.monotonic() < deadline:
            row = stage.row(JOB)
            if row is not None and (row["status"] in ("completed", "failed") or row["needs_person"]):
                break
            time.sleep(0.05)
        return row
    finally:
        tell(f"the daemon was asked to stop and ended with {stage.stop()}")


def kill_and_start(stage: Cards, count: int) -> None:
    """SIGKILL, a look at what is on the disk, and a new daemon."""
    stage.kill()
    size = quiet_size(stage.witness)
    stage.kills.append(Kill(size, stage.done_on_disk()))
    tell(
        f"{cards_in(stage)} of {count} cards: the daemon was killed with SIGKILL; "
        f"{len(stage.kills[-1].done)} items are done on the disk"
    )
    tell(f"a daemon was started again (process {stage.start()}), and nobody said anything to it")


def quiet_size(witness: Path) -> int:
    """The witness's size once nothing appends to it any more: keepers end the dead daemon's programs."""
    size = -1
    while size != (size := witness.stat().st_size):
        time.sleep(0.1)
    return size


def has_cards(stage: Cards, wanted: int) -> bool:
    """Whether so many cards are made."""
    return cards_in(stage) >= wanted


def cards_in(stage: Cards) -> int:
    """How many cards lie in their folder."""
    return sum(1 for name in os.listdir(stage.cards) if not name.startswith("."))


def count(stage: Cards, items: list[tuple[str, Path]]) -> dict[str, Any]:
    """The numbers, from the cards and the witness (and, for what was promised, the disk at each kill)."""
    good = 0
    for name, path in items:
        try:
            card = json.loads((stage.cards / digest.card_name(name)).read_bytes())
        except (OSError, ValueError):
            continue
        good += card["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    runs, broken = read_witness(stage)
    return {
        "demo": "digest",
        "items": len(items),
        "cards": good if good == cards_in(stage) else -1,
        "runs": runs,
        "rerun_after_done": broken,
        "kills": len(stage.kills),
    }


def read_witness(stage: Cards) -> tuple[int, int]:
    """How many runs began, and how many of them after their item was done."""
    runs = broken = place = 0
    ended: dict[str, int] = {}
    for raw in stage.witness.read_bytes().splitlines(keepends=True):
        said = json.loads(raw)
        item = said["item"]
        if said["event"] == "end":
            ended[item] = place
        else:
            runs += 1
            if item in ended and not excused(stage.kills, item, ended[item], place):
                broken += 1
        place += len(raw)
    return runs, broken


def excused(kills: list[Kill], item: str, ended: int, began: int) -> bool:
    """Whether a kill lies between end and new beginning at which the item was not done on the disk."""
    between = [kill for kill in kills if ended < kill.witness <= began]
    return any(item not in kill.done for kill in between)


def main() -> int:
    """0 when everything was done once and for all, 1 when the counts disagree."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    items = items_of(folder)
    if not items:
        print(f"demo: there is no file in {folder}", file=sys.stderr)
        return 2
    root = Path(tempfile.mkdtemp(prefix="resumed-demo-"))
    stage = Cards(root)
    began = time.monotonic()
    try:
        row = play(stage, items)
    except TimeoutError:
        row = None
    counted = count(stage, items)
    status = row["status"] if row else "not finished"
    tell(f"the job is {status} after {time.monotonic() - began:.1f} s")
    again = counted["runs"] - counted["items"]
    print(
        f"{counted['cards']} cards for {counted['items']} files, in {counted['runs']} runs: {again} were "
        f"cut off by a kill, or had ended without anybody being told, and were made again.\n"
        f"{counted['rerun_after_done']} items were run again after they were done."
    )
    good = status == "completed" and counted["cards"] == counted["items"] and counted["kills"] == len(SHARES)
    good = good and counted["rerun_after_done"] == 0 and again >= 0
    if good:
        shutil.rmtree(root)
    else:
        print(f"something is wrong: look at {root} (state, daemon.log, witness)")
    print(json.dumps(counted, separators=(",", ":")))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
