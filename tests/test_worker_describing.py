"""A Python workflow's contract, asked of a worker of its own."""

from pathlib import Path

import pytest
from worker_kit import python_contract

from resumed.actors import containment, describing
from resumed.actors.containment import Containment
from resumed.schemas.errors import AuthorError

pytestmark = pytest.mark.anyio


async def test_contract_is_asked_of_a_worker(tmp_path: Path) -> None:
    """The daemon learns what a class declares without importing it, and nothing of the asking stays."""
    workers = tmp_path / "workers"
    workers.mkdir()
    asked = python_contract("author_flow:Flow", "author", 3)
    found = await describing.describe(asked, name="d1", workers=workers, contained=Containment())

    assert ("begin", 16, asked.definition) == (found.start, found.slots, found.definition)
    assert [] == list(workers.iterdir())


@pytest.mark.parametrize("entry", ["slow_flow:Flow", "loud_flow:Flow", "gone_flow:Flow"])
async def test_module_that_will_not_load_is_the_authors_error(
    entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that hangs, exits or breaks the wire at its import gives a reason, and ends."""
    (tmp_path / "slow_flow.py").write_text("import threading\nthreading.Event().wait()\n")
    (tmp_path / "loud_flow.py").write_text("import os\nos.write(3, b'hello\\n')\nos._exit(0)\n")
    (tmp_path / "gone_flow.py").write_text(
        "import os, sys\nsys.stderr.write('no licence')\nsys.stderr.flush()\nos._exit(3)\n"
    )
    workers = tmp_path / "workers"
    workers.mkdir()
    monkeypatch.setattr("worker_kit.HERE", tmp_path)
    expected = {
        "slow_flow:Flow": "its worker said nothing within 1.5 s",
        "loud_flow:Flow": "cannot read a worker's frame",
        "gone_flow:Flow": "no licence",
    }
    with pytest.raises(AuthorError, match=expected[entry]):
        await describing.describe(
            python_contract(entry, "author", 3),
            name="d1",
            workers=workers,
            contained=Containment(),
            limit=1.5,
        )
    assert () == containment.remains_of("d1")
