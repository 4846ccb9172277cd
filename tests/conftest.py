"""What every test may ask for: the scale of the fault drills, and a skip where root is needed."""

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import both_ways
import pytest

from resumed.actors import onward
from resumed.schemas import frames
from resumed.schemas.snapshot import Entry


@pytest.fixture(autouse=True)
def plain_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Entry]]:
    """Wherever the plain step answers, in any test, the law at large is asked too and says the same."""
    yield from both_ways.of_steps(monkeypatch).told()


@pytest.fixture(autouse=True)
def plain_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Entry]]:
    """The same of a plain call, and of its landing."""
    yield from both_ways.of_calls(monkeypatch).told()


@pytest.fixture(autouse=True)
def onward_turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[onward.Turn]]:
    """The same of turns that are drawn up in one go."""
    yield from both_ways.of_turns(monkeypatch).told()


@pytest.fixture(autouse=True)
def plain_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[frames.Run]]:
    """Wherever a `run` is written without the converter, in any test, the converter writes the same."""
    yield from both_ways.of_runs(monkeypatch).told()


@pytest.fixture(autouse=True)
def plain_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Wherever a frame is read without the converter, in any test, the converter reads the same."""
    yield from both_ways.of_reads(monkeypatch).told()


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
