"""The watched folder: how long one dropped file takes until its job is durable, and a burst of many."""

import json
import os
from pathlib import Path
from time import perf_counter, sleep

from running import Daemon

SLEEPING = """version = 1
[[step]]
name = "wait"
run = ["sleep", "3600"]
repeatable = true
"""
"""One job keeps the only worker busy, so that what is measured is the door and nothing behind it."""

LOOK_EVERY = 0.1
"""Seconds between two looks at what is left of a burst: seldom enough to cost nothing beside the daemon."""


def accept_ms(folder: Path, files: int) -> list[float]:
    """Milliseconds from the rename of each dropped file to the daemon's word that its job is durable."""
    with _daemon(folder) as daemon:
        daemon.start()
        found = []
        for number in range(files):
            name = f"one-{number}"
            beside = _write(daemon, name)
            begun = perf_counter()
            beside.rename(daemon.state / "incoming" / f"{name}.json")
            found.append((daemon.heard(f"'{name}.json' was admitted") - begun) * 1000)
            # Not in step with the daemon's own clock: people do not drop files at its moments.
            sleep(0.05 + number * 0.037 % 0.3)
        return found


def jobs_per_s(folder: Path, files: int) -> float:
    """Jobs a second while `files` files, renamed in as fast as that goes, become durable jobs."""
    with _daemon(folder) as daemon:
        daemon.start()
        waiting = [(_write(daemon, f"job-{number:05}"), f"job-{number:05}.json") for number in range(files)]
        begun = perf_counter()
        for beside, name in waiting:
            beside.rename(daemon.state / "incoming" / name)
        while _left(daemon.state):
            sleep(LOOK_EVERY)
        passed = perf_counter() - begun
        with daemon.client() as client:
            made = client.call("Status")["house"]["open"]
    if made != files:
        raise RuntimeError(f"{files} files became {made} jobs")
    return files / passed


def _daemon(folder: Path) -> Daemon:
    made = Daemon(folder, workers=1)
    made.workflow("sleeping", SLEEPING)
    return made


def _write(daemon: Daemon, name: str) -> Path:
    """A job file beside the watched folder, written as a careful writer does it."""
    place = daemon.root / "written"
    place.mkdir(exist_ok=True)
    path = place / f"{name}.json"
    path.write_bytes(json.dumps({"workflow": "sleeping", "id": name, "items": ["a"]}).encode())
    path.chmod(0o600)
    return path


def _left(state: Path) -> bool:
    """Whether a file is neither a job nor a refusal yet."""
    return any(os.listdir(state / place) for place in ("incoming", "claimed"))
