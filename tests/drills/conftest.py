"""The drills' daemon: on one loop in the normal run, on both under `faults`."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from target import Target

from .kit import Daemon


@pytest.fixture(params=["asyncio", pytest.param("trio", marks=pytest.mark.faults)])
def backend(request: pytest.FixtureRequest) -> str:
    """Which loop the daemon runs on."""
    name: str = request.param
    return name


@pytest.fixture
def daemon(ram: Path, backend: str) -> Iterator[Daemon]:
    """A daemon that is not started yet; at the end nothing of it is left, and it has logged no traceback."""
    made = Daemon(ram, backend)
    try:
        yield made
    finally:
        made.end()
    assert "Traceback" not in made.log.read_text(errors="replace")


@pytest.fixture
def cms_folder(tmp_path: Path) -> Iterator[Path]:
    """For content systems: in memory where that can be had, and apart from the daemon's folder, whose name
    marks what is the daemon's."""
    memory = os.access("/dev/shm", os.W_OK)
    with tempfile.TemporaryDirectory(prefix="resumed-cms-", dir="/dev/shm" if memory else tmp_path) as root:
        yield Path(root)


@pytest.fixture
def target(cms_folder: Path) -> Iterator[Target]:
    """A content system at work; it ends with the test."""
    made = Target(cms_folder)
    made.start()
    try:
        yield made
    finally:
        made.kill()
