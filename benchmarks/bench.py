"""`./dev bench`: measures the disk, the store, the whole daemon and the command line; README.md says how."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bare_disk
import bare_store
import command_line
import whole_daemon
from report import against, figure, is_quiet, middle, percentile, say

SIZES = (1, 64, 1_000)
COMMITS = {1: 4_000, 64: 400, 1_000: 30}
"""Commits a job in one run of the store."""
STORE_MUST = {1: 0.4, 64: 0.8, 1_000: 0.8}
DAEMON_MUST = {1: 1_000 / 7_500, 64: 4_500 / 7_500, 1_000: 4_500 / 7_500}
"""As multiples of F: the bars in steps a second hold where F is about 7,500."""


class Bench:
    """One round of measurements in one folder; F is measured anew beside each of them."""

    def __init__(self, root: Path, asked: argparse.Namespace) -> None:
        self._root = root
        self._asked = asked
        self._runs = 1 if asked.quick else asked.runs
        self._seconds = 0.5 if asked.quick else 3.0
        self._count = 0
        self._quiet = is_quiet()

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        self._count += 1
        folder = self._root / str(self._count)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def _flushes(self, seconds: float = 0.5) -> float:
        with self._folder() as folder:
            return bare_disk.flushes_per_s(folder, seconds)

    def disk(self) -> None:
        """F alone."""
        say("disk: append 1 KiB to a preallocated, zero-filled file, flush, again")
        found = [self._flushes(self._seconds / 2) for _ in range(max(3, self._runs))]
        figure("disk.flushes_per_s", middle(found, "F", "flushes/s"), "1/s")

    def store(self) -> None:
        """The store's transitions."""
        for size in self._asked.jobs:
            say(f"store, {size} jobs")
            rates, syncs, flushes = [], [], []
            for _ in range(self._runs):
                flushes.append(self._flushes())
                with self._folder() as folder:
                    rate, each = bare_store.measure(folder, size, self._commits(size))
                rates.append(rate)
                syncs.append(each)
            rate = middle(rates, "transitions", "1/s")
            figure("store.transitions_per_s", rate, "1/s", jobs=size)
            each = middle(syncs, "syncs a transition", "")
            figure("store.syncs_per_transition", each, "syncs", jobs=size)
            against(
                "transitions",
                rate,
                middle(flushes, "F beside it", "1/s"),
                STORE_MUST.get(size, 0.8),
                quiet=self._quiet,
            )

    def _commits(self, size: int) -> int:
        commits = COMMITS.get(size, max(20, 20_000 // size))
        return max(10, commits // 10) if self._asked.quick else commits

    def daemon(self) -> None:
        """Steps through daemon and worker."""
        for size in self._asked.jobs:
            say(f"daemon, {size} jobs in one worker of {size} slots")
            runs, flushes = [], []
            for _ in range(self._runs):
                flushes.append(self._flushes())
                with self._folder() as folder:
                    runs.append(whole_daemon.measure(folder, size, self._seconds, self._asked.backend))
            rate = middle([run.steps_per_s for run in runs], "steps", "1/s")
            figure("daemon.steps_per_s", rate, "1/s", jobs=size)
            each = middle([run.syncs_per_step for run in runs], "syncs a step", "")
            figure("daemon.syncs_per_step", each, "syncs", jobs=size)
            each = middle([run.cpu_us for run in runs], "the daemon's CPU a step", "us")
            figure("daemon.cpu_us_per_step", each, "us", jobs=size)
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                found = middle([percentile(run.gaps, share) for run in runs], f"step {name}", "ms")
                figure(f"daemon.step_ms_{name}", found, "ms", jobs=size)
            against(
                "steps",
                rate,
                middle(flushes, "F beside it", "1/s"),
                DAEMON_MUST.get(size, 0.6),
                quiet=self._quiet,
            )

    def cli(self) -> None:
        """A whole `resumectl status`, and the interpreter's share of it."""
        runs = 5 if self._asked.quick else 40
        say("cli: whole processes, one after the other")
        starts = command_line.python_start_ms(runs)
        with self._folder() as folder:
            found = command_line.status_ms(folder, runs)
        figure("cli.python_start_ms", middle(starts, "python alone", "ms"), "ms")
        figure("cli.status_ms", middle(found, "resumectl status", "ms"), "ms")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="bench", description=__doc__)
    made.add_argument(
        "names", nargs="*", metavar="NAME", help="disk, store, daemon, cli; all when none is named"
    )
    made.add_argument("--quick", action="store_true", help="one short run of each: that it works, no figures")
    made.add_argument("--runs", type=int, default=3, help="runs of each measurement; the median counts (3)")
    made.add_argument("--jobs", type=int, nargs="+", default=list(SIZES), help="how many jobs (1 64 1000)")
    made.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio", help="the daemon's loop")
    made.add_argument("--folder", default="/var/tmp", help="where to write: on the disk that is meant")
    return made


def main(argv: list[str]) -> int:
    """Measure what is named; figures go to stdout as JSON lines, everything else to stderr."""
    asked = parser().parse_args(argv)
    root = Path(tempfile.mkdtemp(prefix="resumed-bench-", dir=asked.folder))
    bench = Bench(root, asked)
    known: dict[str, Callable[[], None]] = {
        "disk": bench.disk,
        "store": bench.store,
        "daemon": bench.daemon,
        "cli": bench.cli,
    }
    try:
        unknown = [name for name in asked.names if name not in known]
        if unknown:
            say(f"bench: no measurement named {', '.join(unknown)}; there are {', '.join(known)}")
            return 2
        for name in asked.names or known:
            known[name]()
        is_quiet()
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
