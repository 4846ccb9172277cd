"""Starts: from kill -9 to READY over stores of parked jobs, until every job was read, and the memory then."""

from pathlib import Path
from time import perf_counter, sleep

from attrs import frozen
from running import Daemon

LOOK_EVERY = 0.1
"""Seconds between two looks whether all are read: seldom enough to cost nothing."""
SETTLE = 1.0
"""Seconds after the last job was read in which what the reading took is given back."""


@frozen
class Start:
    """One start: seconds until READY and until every job was read, and the PSS in MiB afterwards."""

    ready: float
    loaded: float
    pss: float


def cold(folder: Path) -> float:
    """Seconds from nothing at all to READY: no store, no folder."""
    with Daemon(folder) as daemon:
        return daemon.start()


def after_kill(folder: Path, store: Path | None, runs: int) -> list[Start]:
    """A daemon over the store (None: an empty one) is killed and started again `runs` times."""
    found = []
    with Daemon(folder, store) as daemon:
        daemon.start()
        _until_loaded(daemon)
        for _ in range(runs):
            begun = perf_counter()
            ready = daemon.restart()
            _until_loaded(daemon)
            loaded = perf_counter() - begun
            sleep(SETTLE)
            found.append(Start(ready, loaded, daemon.pss_mib()))
    return found


def _until_loaded(daemon: Daemon) -> None:
    with daemon.client() as client:
        while client.call("Status")["house"]["loading"]:
            sleep(LOOK_EVERY)
