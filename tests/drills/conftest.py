"""The drills' daemon: on one loop in the normal run, on both under `faults`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

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
