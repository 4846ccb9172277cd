"""`./dev bench`: measures the disk, the store, the whole daemon and the command line; README.md says how."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import bare_disk
import bars
import measures
from report import is_quiet, say

SIZES = (1, 64, 1_000)


class Place:
    """Where this run measures: a fresh folder for each measurement, F beside it, and stores made once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = 0

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder of its own.

        Nothing is removed before the end of the run: without a journal, ext4 spends most of a file's creation
        on stepping over what was removed in the last minutes.
        """
        self._count += 1
        folder = self._root / str(self._count)
        folder.mkdir()
        yield folder

    def flushes(self, seconds: float = 0.5) -> float:
        """F, now."""
        with self.folder() as folder:
            return bare_disk.flushes_per_s(folder, seconds)

    def kept(self, name: str) -> Path:
        """A folder that lasts as long as the run."""
        return self._root / name


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="bench", description=__doc__)
    names = ", ".join(measures.KNOWN)
    made.add_argument("names", nargs="*", metavar="NAME", help=f"{names}; all when none is named")
    made.add_argument("--quick", action="store_true", help="one short run of each: that it works, no figures")
    made.add_argument("--large", action="store_true", help="also 100,000 parked jobs: minutes to make them")
    made.add_argument("--runs", type=int, default=3, help="runs of each measurement; the median counts (3)")
    made.add_argument("--jobs", type=int, nargs="+", default=list(SIZES), help="how many jobs (1 64 1000)")
    made.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio", help="the daemon's loop")
    made.add_argument("--folder", default="/var/tmp", help="where to write: on the disk that is meant")
    return made


def main(argv: list[str]) -> int:
    """Measure what is named; figures go to stdout as JSON lines, everything else to stderr."""
    asked = parser().parse_args(argv)
    unknown = [name for name in asked.names if name not in measures.KNOWN]
    if unknown:
        say(f"bench: no measurement named {', '.join(unknown)}; there are {', '.join(measures.KNOWN)}")
        return 2
    root = Path(tempfile.mkdtemp(prefix="resumed-bench-", dir=asked.folder))
    is_quiet()
    try:
        for name in asked.names or measures.KNOWN:
            (root / name).mkdir()
            measures.KNOWN[name](Place(root / name), asked)
        is_quiet()
        bars.table()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
