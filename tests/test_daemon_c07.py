"""One store under two environments whose encoders spell numbers differently: nobody is asked twice (C07)."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually

from resumed.actors.machine.apply import apply
from resumed.store import layout, recovery

ME = f"user:{pwd.getpwuid(os.geteuid()).pw_name}"
OTHER = Path(sys.prefix) / "other-orjson"
MODULE = f'''
"""One call with the numbers that encoders spell differently."""

from pathlib import Path

from attrs import frozen

from resumed import Absent, Call, Done, Job, JobDecision, Landed, Perform, by, effect, step, workflow


@effect(
    "ledger.book",
    version=1,
    target="ledger",
    approve=by("{ME}", not_requester=False),
    in_flight="0s",
    absent_is_final=True,
    check_first=False,
)
class Book:
    """The arguments of the case, and where it is written."""

    folder: str
    z: float
    limit: float
    name: str
    a: float

    async def send(self, call: Call) -> Landed:
        line = f"{{call.key}} {{self.z!r}} {{self.limit!r}} {{self.name}} {{self.a!r}}\\n"
        with open(Path(self.folder, "landed"), "a", encoding="utf-8") as file:
            file.write(line)
        return Landed(call.key[:8])

    async def look_up(self, call: Call) -> Landed | Absent:
        landed = Path(self.folder, "landed")
        there = landed.exists() and call.key in landed.read_text(encoding="utf-8")
        return Landed(call.key[:8]) if there else Absent()


@frozen
class State:
    """A number of the same kind, in the job's own state."""

    most: float = 0.0


@workflow("ledger", version=1, state=State)
class Ledger:
    @step(start=True)
    async def ask(self, job: Job, state: State) -> JobDecision:
        call = Book(folder=job.inputs["folder"], z=1.0, limit=1e16, name="caf\\u00e9", a=-0.0)
        return Perform(call, then="end", state=State(1e16))

    @step
    async def end(self, job: Job, state: State) -> JobDecision:
        return Done(State(state.most + 1.0))
'''
FILE = """
version = 1
python = { entry = "ledger:Ledger" }
inputs.folder = { type = "string" }
"""


def spelled(python: str) -> str:
    """How that environment's encoder writes the number of the case."""
    words = "import orjson; print(orjson.__version__, orjson.dumps(1e16).decode())"
    return subprocess.run([python, "-c", words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of another environment: this one's packages, but for its encoder."""
    assert OTHER.is_dir(), f"{OTHER} is missing: ./dev test makes it"
    place = tmp_path_factory.mktemp("other")
    venv.create(place, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    for each in OTHER.iterdir():
        if each.is_dir():
            shutil.copytree(each, packages / each.name)
    ours = sysconfig.get_path("purelib")
    (packages / "all-others.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    return str(place / "bin" / "python")


@pytest.fixture(params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with the workflow on its shelf."""
    made = Daemon(tmp_path, request.param)
    for name, text in (("ledger.py", MODULE), ("ledger.toml", FILE)):
        (made.workflows / name).write_text(text)
        (made.workflows / name).chmod(0o644)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end()


def asked(daemon: Daemon, job: str) -> dict[str, Any]:
    """What is asked about the job."""

    def look() -> dict[str, Any]:
        asks = json.loads(daemon.ask("inbox", "--json").stdout)["asks"]
        rows: list[dict[str, Any]] = [row for row in asks if row["job"] == job]
        assert 1 == len(rows)
        return rows[0]

    row: dict[str, Any] = eventually(look)
    return row


def kept(daemon: Daemon, job: str) -> Any:
    """The effect on the disk."""
    store = layout.Layout(daemon.state)
    place = layout.where(store, job)
    assert place is not None
    [row] = recovery.load(place, apply).snapshot.effects
    return row


@pytest.mark.parametrize("first", ["ours", "other"])
def test_c07_a_question_stands_across_environments(daemon: Daemon, other: str, first: str) -> None:
    """Asked under one encoder, approved under the other, and ended under the first again: one question, one
    key, the call as it was shown, once at its target; both read all that the other wrote."""
    pythons = [sys.executable, other] if first == "ours" else [other, sys.executable]
    one, two = map(spelled, pythons)
    assert one.split()[1] != two.split()[1], "the two must spell it differently, or nothing is shown"
    folder = daemon.root / "target"
    folder.mkdir()
    daemon.python = pythons[0]
    daemon.start()
    job = daemon.root / "nov.json"
    job.write_text(json.dumps({"workflow": "ledger", "id": "nov", "inputs": {"folder": str(folder)}}))
    assert 0 == daemon.ask("submit", str(job)).returncode
    before = asked(daemon, "nov")
    assert 0 == daemon.end()
    row = kept(daemon, "nov")

    daemon.python = pythons[1]
    daemon.start()
    after = asked(daemon, "nov")
    assert before == after
    said = daemon.ask("approve", after["id"], "--fingerprint", before["fingerprint"])
    assert 0 == said.returncode, said.stderr
    eventually((folder / "landed").read_text)
    assert 0 == daemon.ask("watch", "nov", "--timeout", "30s").returncode
    assert 0 == daemon.end()

    daemon.python = pythons[0]
    daemon.start()
    assert "completed" == daemon.row("nov")["status"]
    assert [] == json.loads(daemon.ask("inbox", "--json").stdout)["asks"]
    assert 0 == daemon.end()
    over = kept(daemon, "nov")
    assert (row.operation_key, row.fingerprint, row.arguments) == (
        over.operation_key,
        over.fingerprint,
        over.arguments,
    )
    assert (1, 1) == (over.dispatches, over.gate.round)
    assert f"{row.operation_key} 1.0 1e+16 caf\u00e9 0.0\n" == (folder / "landed").read_text(encoding="utf-8")
    for python in pythons:
        command = [python, "-m", "resumed.daemon.main", "fsck", str(daemon.state)]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert 0 == checked.returncode, checked.stdout + checked.stderr
