"""A Python workflow's contract, asked of a worker of its own."""

from pathlib import Path

import anyio
import pytest
from worker_kit import python_contract

from resumed.actors import containment, describe
from resumed.actors.clock import SystemClock
from resumed.actors.containment import Containment
from resumed.actors.describe import Describer
from resumed.schemas.errors import AuthorError
from resumed.schemas.workflow import Contract

pytestmark = pytest.mark.anyio


async def asked(contract: Contract, folder: Path) -> Contract | str:
    """What a worker says of a contract without steps, or why it says nothing."""
    workers = folder / "workers"
    workers.mkdir()
    describer = Describer(workers, Containment(), SystemClock(), lambda: "d1")
    async with anyio.create_task_group() as group:
        describer.group = group
        try:
            return await describer.whole(contract)
        except AuthorError as error:
            return str(error)


async def test_contract_is_asked_of_a_worker(tmp_path: Path) -> None:
    """The daemon learns what a class declares without importing it, and nothing of the asking stays."""
    contract = python_contract("author_flow:Flow", "author", 3)
    found = await asked(contract, tmp_path)

    assert isinstance(found, Contract)
    assert ("begin", 16, contract.definition) == (found.start, found.slots, found.definition)
    assert [] == list((tmp_path / "workers").iterdir())


async def test_module_that_hangs_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one module hangs at its import others are asked; who waits for the same one hears the same."""
    (tmp_path / "workers").mkdir()
    (tmp_path / "bad_flow.py").write_text(MODULES["hangs"][0])
    monkeypatch.setattr(describe, "PATIENCE", 3.0)
    names = (f"d{number}" for number in range(9))
    used: list[str] = []

    def name() -> str:
        used.append(next(names))
        return used[-1]

    describer = Describer(tmp_path / "workers", Containment(), SystemClock(), name)
    good = python_contract("author_flow:Flow", "author", 3)
    monkeypatch.setattr("worker_kit.HERE", tmp_path)
    hanging = python_contract("bad_flow:Flow", "author")
    ended: list[str] = []

    async def ask(contract: Contract) -> None:
        try:
            await describer.whole(contract)
            ended.append("good")
        except AuthorError:
            ended.append("hanging")

    async with anyio.create_task_group() as group:
        describer.group = group
        async with anyio.create_task_group() as askers:
            for contract in (hanging, hanging, good):
                askers.start_soon(ask, contract)

    assert ["good", "hanging", "hanging"] == ended
    assert 2 == len(used)


MODULES = {
    "hangs": ("import threading\nthreading.Event().wait()\n", "it took longer than 1.5 s to import"),
    "breaks the wire": ("import os\nos.write(3, b'hello\\n')\nos._exit(0)\n", "cannot read a worker's frame"),
    "exits": ("import os\nos._exit(3)\n", "its worker ended: it ended with status 3"),
    "raises SystemExit": ("raise SystemExit('no licence')\n", "SystemExit: no licence"),
}


@pytest.mark.parametrize("case", MODULES)
async def test_module_that_will_not_load_is_the_authors_error(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that hangs, exits or breaks the wire at its import gives a reason, and ends."""
    source, expected = MODULES[case]
    (tmp_path / "bad_flow.py").write_text(source)
    monkeypatch.setattr("worker_kit.HERE", tmp_path)
    if case == "hangs":
        monkeypatch.setattr(describe, "PATIENCE", 1.5)
    said = await asked(python_contract("bad_flow:Flow", "author"), tmp_path)

    assert expected in str(said)
    assert () == containment.remains_of("d1")


LIMITS = {
    "no slots": ("slots=0", "", "cannot load bad_flow:Flow: slots is a whole number of at least 1, got 0"),
    "slots of another type": ("slots=True", "", "slots is a whole number of at least 1, got True"),
    "no tries": ("", "tries=0", "cannot load step begin: tries is a whole number of at least 1, got 0"),
    "half a try": ("", "tries=1.5", "tries is a whole number of at least 1, got 1.5"),
    "no time": ("", "timeout=0", "cannot load step begin: timeout is more than 0 seconds, got 0"),
    "no number": ("", "timeout=float('nan')", "cannot load step begin: timeout"),
    "no grace": ("", "grace='0s'", "cannot load step begin: grace is more than 0 seconds, got '0s'"),
    "nonsense": ("", "grace=None", "cannot load step begin: grace is a duration, got None"),
    "no pause": ("", "backoff=(0, 5)", "cannot load step begin: backoff is more than 0 seconds, got 0"),
    "half a pause": ("", "backoff='30s'", "cannot load step begin: backoff is two durations, got '30s'"),
    "a falling pause": ("", "backoff=(9, 5)", "backoff is the first and the longest, got (9, 5)"),
}
DECLARED = """
from resumed import Done, step, workflow
@workflow("author", version=1, {whole})
class Flow:
    @step(start=True, {step})
    async def begin(self, job, state): return Done()
"""


@pytest.mark.parametrize("case", LIMITS)
async def test_limits_that_let_nothing_run_are_the_authors_error(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit under which nothing could ever run is refused where it is declared, by its step's name."""
    whole, step, expected = LIMITS[case]
    (tmp_path / "bad_flow.py").write_text(DECLARED.format(whole=whole, step=step))
    monkeypatch.setattr("worker_kit.HERE", tmp_path)

    assert expected in await asked(python_contract("bad_flow:Flow", "author"), tmp_path)
