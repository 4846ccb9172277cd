"""Effects of a Python workflow through the whole daemon: real workers, a daemon killed while one sends."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually

MODULE = '''
"""One file in a folder, by a sender that stops where it is told to."""

import asyncio
from pathlib import Path

from attrs import frozen

from resumed import Absent, Call, Done, Fail, Job, JobDecision, Landed, Perform, effect, step, workflow


async def gate(folder: str, name: str) -> None:
    """Say that it is here, and go on once it may."""
    Path(folder, f"{name}.here").touch()
    while not Path(folder, name).exists():
        await asyncio.sleep(0.02)


@effect(
    "shelf.put",
    version=1,
    target="shelf",
    approve=False,
    in_flight="0s",
    absent_is_final=True,
    check_first=False,
)
class Put:
    """Lines that count what landed."""

    folder: str
    text: bytes

    async def send(self, call: Call) -> Landed:
        await gate(self.folder, "before")
        with open(Path(self.folder, "landed"), "ab") as file:
            file.write(f"{call.key} {self.text.decode()}\\n".encode())
        await gate(self.folder, "after")
        return Landed(call.key[:8])

    async def look_up(self, call: Call) -> Landed | Absent:
        landed = Path(self.folder, "landed")
        there = landed.exists() and call.key in landed.read_text()
        return Landed(call.key[:8]) if there else Absent()


@frozen
class State:
    reference: str = ""


@workflow("shelf", version=1, state=State, slots=8)
class Shelf:
    @step(start=True)
    async def put(self, job: Job, state: State) -> JobDecision:
        return Perform(Put(folder=job.inputs["folder"], text=b"a label"), then="told", otherwise="not_told")

    @step
    async def told(self, job: Job, state: State, landed: Landed) -> JobDecision:
        return Done(State(landed.reference))

    @step
    async def not_told(self, job: Job, state: State, outcome: object) -> JobDecision:
        return Fail(repr(outcome))
'''
FILE = """
version = 1
python = { entry = "shelf:Shelf" }
inputs.folder = { type = "string" }
"""


@pytest.fixture(params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with the workflow on its shelf."""
    made = Daemon(tmp_path, request.param)
    for name, text in (("shelf.py", MODULE), ("shelf.toml", FILE)):
        (made.workflows / name).write_text(text)
        (made.workflows / name).chmod(0o644)
    made.start()
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end(signal.SIGKILL)


def handed_in(daemon: Daemon, folder: Path) -> None:
    """One job that writes to this folder."""
    path = daemon.root / "one.json"
    path.write_text(json.dumps({"workflow": "shelf", "id": "one", "inputs": {"folder": str(folder)}}))
    path.chmod(0o600)
    answer = daemon.ask("submit", str(path))
    assert answer.returncode == 0, answer.stderr


def completed(daemon: Daemon) -> dict[str, Any]:
    """The job's row, once it has ended well."""
    row = daemon.row("one")
    assert row["status"] == "completed", row
    return row


def archived(daemon: Daemon) -> dict[str, Any]:
    """The job as its last checkpoint has it, once it is in the archive."""
    sealed = daemon.state.glob("archive/*/one/*.checkpoint.json")
    written = [(path.stat().st_mtime_ns, path) for path in sealed]
    assert written
    found: dict[str, Any] = json.loads(max(written)[1].read_bytes())["snapshot"]
    return found


@pytest.mark.timeout(60)
@pytest.mark.parametrize("where", ["before", "after"])
def test_a_send_is_cut_off_with_its_daemon_and_lands_once(where: str, daemon: Daemon, tmp_path: Path) -> None:
    """The daemon is killed while a send is about to land, or has landed unheard: the shelf counts one."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    if where == "after":
        (folder / "before").touch()
    handed_in(daemon, folder)
    eventually((folder / f"{where}.here").stat)
    daemon.end(signal.SIGKILL)
    for name in ("before", "after"):
        (folder / name).touch()
    daemon.start()
    eventually(lambda: completed(daemon))
    key, *text = (folder / "landed").read_text().split()
    [row] = eventually(lambda: archived(daemon))["effects"]

    assert ["a", "label"] == text
    assert (key, "confirmed", key[:8]) == (row["operation_key"], row["state"], row["reference"])
    assert ("look_up" if where == "after" else "send") == row["confirmed_by"]
