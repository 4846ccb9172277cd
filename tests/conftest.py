"""What every test may ask for: the scale of the fault drills, and a skip where root is needed."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from resumed.actors.machine import plain
from resumed.actors.machine.transition import at_large
from resumed.schemas import events
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import Entry, Snapshot

_step = plain.step


@pytest.fixture(autouse=True)
def plain_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Entry]]:
    """Wherever the plain step answers, in any test, the law at large is asked too and says the same."""
    given: list[Entry] = []
    wrong: list[tuple[Entry, object]] = []

    def asked_twice(snapshot: Snapshot, event: events.Returned, now: Instant) -> Entry | None:
        entry = _step(snapshot, event, now)
        if entry is not None:
            given.append(entry)
            if entry != (other := at_large(snapshot, event, now)):
                wrong.append((entry, other))
        return entry

    monkeypatch.setattr(plain, "step", asked_twice)
    yield given
    assert [] == wrong


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `root` is skipped, with the reason, for everybody else."""
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs to run as root"))


@pytest.fixture(scope="session")
def faults_scale() -> float:
    """The share of its full count a fault drill runs: 0.1 in `./dev test`, 1 in `./dev faults`."""
    return float(os.environ.get("RESUMED_FAULTS_SCALE", "0.1"))


@pytest.fixture
def quiet() -> Iterator[None]:
    """Faults and damage on purpose need no log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def ram(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of small stores come and go."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    root = Path(tempfile.mkdtemp(prefix="resumed-test-", dir="/dev/shm"))
    yield root
    shutil.rmtree(root)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter and read."""
    root = Path(tempfile.mkdtemp(prefix="resumed-open-", dir="/tmp"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)
