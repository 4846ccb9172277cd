"""What a person waits for: a whole `resumectl status` against a daemon that is up, and Python alone."""

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from running import PROGRAMS, Daemon


def python_start_ms(runs: int) -> list[float]:
    """The interpreter alone, as `resumectl` starts it: nothing is imported but what it imports itself."""
    return _timed([sys.executable, "-c", "pass"], runs, dict(os.environ))


def status_ms(folder: Path, runs: int) -> list[float]:
    """The whole process of `resumectl status` on an empty store."""
    with Daemon(folder) as daemon:
        daemon.start()
        environment = {**os.environ, "RESUMED_SOCKET": str(daemon.socket)}
        return _timed([str(PROGRAMS / "resumectl"), "status"], runs, environment)


def _timed(command: list[str], runs: int, environment: dict[str, str]) -> list[float]:
    found = []
    for _ in range(runs):
        begun = perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        found.append((perf_counter() - begun) * 1000)
    return found
