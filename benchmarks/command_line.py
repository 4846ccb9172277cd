"""What a person waits for: a whole `resumectl status` against a daemon that is up, and Python alone."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep

PROGRAMS = Path(sys.executable).parent
PATIENCE = 20.0


def python_start_ms(runs: int) -> list[float]:
    """The interpreter alone, as `resumectl` starts it: nothing is imported but what it imports itself."""
    return _timed([sys.executable, "-c", "pass"], runs, dict(os.environ))


def status_ms(folder: Path, runs: int) -> list[float]:
    """The whole process of `resumectl status` on an empty store."""
    with _daemon(folder) as environment:
        return _timed([str(PROGRAMS / "resumectl"), "status"], runs, environment)


def _timed(command: list[str], runs: int, environment: dict[str, str]) -> list[float]:
    found = []
    for _ in range(runs):
        begun = perf_counter()
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        found.append((perf_counter() - begun) * 1000)
    return found


@contextmanager
def _daemon(folder: Path) -> Iterator[dict[str, str]]:
    """A daemon of its own in `folder`; yields the environment in which `resumectl` finds it."""
    environment = {**os.environ, "RESUMED_SOCKET": str(folder / "socket")}
    (folder / "workflows").mkdir(parents=True)
    command = [str(PROGRAMS / "resumed"), "serve", "--socket", str(folder / "socket")]
    command += ["--state", str(folder / "state"), "--workflows", str(folder / "workflows")]
    with open(folder / "log", "wb") as log:
        daemon = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _until_up(daemon, environment, folder / "log")
        yield environment
    finally:
        daemon.terminate()
        daemon.wait(PATIENCE)


def _until_up(daemon: "subprocess.Popen[bytes]", environment: dict[str, str], log: Path) -> None:
    until = perf_counter() + PATIENCE
    command = [str(PROGRAMS / "resumectl"), "status"]
    while subprocess.run(command, env=environment, capture_output=True, check=False).returncode != 0:
        if daemon.poll() is not None or perf_counter() > until:
            raise RuntimeError(f"the daemon did not come up: {log.read_text(errors='replace')[-2000:]}")
        sleep(0.05)
