"""The workshop: what a try needs before it is sent, and what is said of one whose end nobody knows."""

import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve
from loop import cases, clock, world

pytestmark = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Faults on purpose need no log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_a_try_without_a_folder_is_a_failed_try(backend: str) -> None:
    """A try whose scratch folder cannot be made is never sent: it failed, naming the folder and why."""

    async def case(root: Path) -> None:
        programs = evolve(world.contract(), definition="{}", entry="")
        async with cases.made(root, contracts=[programs]) as one:
            await one.start()
            shutil.rmtree(one.layout.scratch, ignore_errors=True)
            one.layout.scratch.touch()
            await one.admit("harbour", ["a"])
            assert await one.until(lambda: one.rests("harbour"))
            ended = one.snapshot("harbour")
            said = str(ended.hold or ended.outcome)

            assert f"cannot make the folder {one.layout.scratch}/" in said
            assert os.strerror(20) in said
            assert [] == one.witness.ran
            one.layout.scratch.unlink()

    with world.folder() as root:
        clock.run(backend, 1, lambda: case(root))  # type: ignore[arg-type, return-value]
