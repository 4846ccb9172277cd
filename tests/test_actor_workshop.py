"""The workshop: what a try needs before it is sent, and what is said of one whose end nobody knows."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve
from loop import cases, clock, world
from loop.workers import Manners

from resumed.actors import containment, scratch
from resumed.actors.workers import PATH

pytestmark = [pytest.mark.parametrize("backend", ["asyncio", "trio"]), pytest.mark.usefixtures("quiet")]


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


@contextmanager
def marked(name: str) -> Iterator[int]:
    """A process that bears a worker's mark."""
    with subprocess.Popen(
        ["sh", "-c", "echo up; read word"],
        env={containment.MARK: name, "PATH": PATH},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert b"up\n" == process.stdout.readline()
        yield process.pid


def test_a_worker_not_known_gone_holds_the_job_and_keeps_its_folder(backend: str) -> None:
    """The hold names the processes that still bear the worker's mark, and their folder stays."""

    async def case(root: Path) -> None:
        programs = evolve(world.contract(), definition="{}", entry="")
        async with cases.made(root, contracts=[programs]) as one:
            one.machine.lasts = lambda run: 60.0
            one.machine.manners = Manners(unproven=1.0)
            await one.start()
            await one.admit("harbour", ["a"])
            await one.until(lambda: any(each.open for each in one.machine.living()))
            (worker,) = one.machine.living()
            with marked(worker.name) as pid:
                worker.kill()
                await one.until(lambda: one.rests("harbour"))
            hold = one.snapshot("harbour").hold

            assert hold is not None
            assert "not_gone" == hold.code
            assert f"processes that bear its mark: {pid} sh -c echo up; read word" in hold.reason
            assert [worker.name] == [each.name for each in one.layout.scratch.iterdir()]
            assert 1 == len(list((one.layout.scratch / worker.name).iterdir()))

    with world.folder() as root:
        clock.run(backend, 1, lambda: case(root))  # type: ignore[arg-type, return-value]


def test_a_start_keeps_folders_of_workers_not_known_gone(backend: str, tmp_path: Path) -> None:
    """What an earlier daemon left goes, but for what a worker that may live still works in."""
    del backend
    for name in ("w-1", "w-2"):
        scratch.make(tmp_path / name / "try")
    scratch.empty(tmp_path, frozenset({"w-2"}))

    assert ["w-2"] == [each.name for each in tmp_path.iterdir()]
    assert (tmp_path / "w-2" / "try").is_dir()
