"""A listening socket over one fake job, and what a test says and hears there."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from attrs import evolve

from resumed.actors.finder import Located
from resumed.actors.outputs import Piece
from resumed.actors.placing import OUTSIDE, Placement
from resumed.actors.printed import Printed, Unit
from resumed.actors.sight import EVERYTHING, Sight, Whose
from resumed.daemon import conversation
from resumed.daemon.answers import Answers
from resumed.daemon.connections import Doorman
from resumed.daemon.desk import Desk, WorkflowRow
from resumed.daemon.grants import Grant, Grants
from resumed.daemon.growth import Growth
from resumed.daemon.socket import Seat
from resumed.schemas import codec, control
from resumed.schemas.askviews import AskKind, AskRow, AskView, ToolRow
from resumed.schemas.errors import CommitError, FaultyInputError
from resumed.schemas.events import Pause
from resumed.schemas.job import Artifact, Status
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import (
    HouseView,
    ItemRow,
    JobRow,
    JobView,
    Possible,
    PreviewView,
    Quarantined,
    Told,
    WhyView,
)
from resumed.schemas.workflow import Contract, Programs

STATUS = {"method": f"{control.INTERFACE}.Status"}


def row(sequence: int = 1, status: Status = Status.RUNNING) -> JobRow:
    return JobRow(
        id="attic", status=status, workflow="x", version=1, title="", owner="anna", done=1, total=3,
        failed=0, held=0, running=1, since=1, created=1, sequence=sequence,
    )  # fmt: skip


ASK = AskRow(
    id="b7k2m9",
    kind=AskKind.APPROVE,
    job="attic",
    subject="a/push/1.0",
    item="a",
    what="git.push org/web",
    asked=1,
    fingerprint="f" * 64,
)


class FakeJobs:
    """One job named attic, whose row moves when `move` is called; remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.row = row()
        self.moved = anyio.Event()
        self.watchers = 0
        self.prints = Printed(
            folder=Path("/nowhere"), units=(Unit("a", "a.log", True),), sequence=1, over=True
        )
        self.uid = 1
        """Who handed the job in."""
        self.placement = OUTSIDE
        """Where whoever asks stands to what the job runs."""
        self.items: tuple[ItemRow, ...] = (ItemRow(id="a", state="done", at="", tries=1, failures=0),)

    def move(self, status: Status) -> None:
        self.row = row(self.row.sequence + 1, status)
        self.moved.set()
        self.moved = anyio.Event()

    async def submit(self, raw: bytes, **how: Any) -> Told | Refusal:
        self.asked.append(raw)
        if not how["may"]("x"):
            return Refusal(code="not_permitted", reason="not of that workflow")
        raise FaultyInputError("cannot admit a.json", ("expected int, got string @ $.items",))

    async def rehearse(self, raw: bytes, **how: Any) -> PreviewView | Refusal:
        self.asked.append(raw)
        if not how["may"]("x"):
            return Refusal(code="not_permitted", reason="not of that workflow")
        return PreviewView(job="attic", workflow="x", version=1)

    async def tell(self, job: str, request: Any) -> Told | Refusal:
        self.asked.append(request)
        if isinstance(request, Pause) and request.reason == "disk":
            raise CommitError("a sync failed")
        if isinstance(request, Pause) and request.reason == "crash":
            raise ZeroDivisionError
        return Told(row=self.row, said="attic is paused")

    def inbox(self, sight: Sight) -> list[tuple[AskRow, Whose]]:
        whose = Whose("x", self.uid)
        return [(ASK, whose)] if sight.sees(whose) else []

    async def asked_of(self, job: str, subject: str) -> AskView | Refusal:
        return AskView(row=ASK)

    async def revision(self, job: str, subject: str, text: str) -> Artifact | Refusal:
        return Artifact(name="draft", sha256=codec.digest(text.encode()), size=len(text), text=text)

    async def tools(self) -> tuple[tuple[ToolRow, ...], tuple[str, ...]]:
        return (), ()

    async def locate(self, name: str, sight: Sight) -> Located | Refusal:
        whose = Whose("x", self.uid)
        if "attic".startswith(name) and sight.sees(whose):
            return Located("attic", whose)
        return Refusal(code="no_such_job", reason=f"there is no job {name}")

    async def placed(self, pid: int, start: int | None, uid: int) -> Placement:
        return self.placement

    def rows(self, sight: Sight) -> list[JobRow]:
        return [self.row] if sight.sees(Whose("x", self.uid)) else []

    async def ended(self, sight: Sight) -> list[JobRow]:
        return []

    def ended_since(self, since: int) -> int:
        return 0

    async def view(self, job: str) -> JobView | Refusal:
        return JobView(row=self.row, requester="anna", objective="", items=self.items)

    async def why(self, job: str) -> WhyView | Refusal:
        commands = (Possible(command="resumectl pause attic", means=""),)
        return WhyView(row=self.row, reason="it runs", commands=commands)

    async def contract(self, job: str) -> tuple[Contract, str] | Refusal:
        return Contract(workflow="x", version=1, start="", steps=()), "0" * 64

    async def left(self, uid: int, request: str, name: str) -> str:
        return ""

    async def log_file(self, job: str, item: str) -> Path | None:
        return None

    async def printed(self, job: str, only: str | None) -> Printed | Refusal | None:
        if only is None:
            return self.prints
        units = tuple(unit for unit in self.prints.units if unit.item == only)
        return evolve(self.prints, units=units) if units else None

    async def output(self, job: str, item: str, offset: int, most: int) -> Piece | None:
        raw = b"x" * 600_000
        content = raw[offset : offset + most]
        return Piece(offset, content, len(raw), codec.digest(raw)) if item == "a" else None

    async def quarantined(self, sight: Sight) -> list[Quarantined]:
        return []

    def house(self, sight: Sight = EVERYTHING) -> HouseView:
        return HouseView(
            release="1", store="/s", pid=1, backend="asyncio", uptime=1, containment="keeper", open=1,
            running=1, held=0, quarantined=0, ended=0, workers=1, loading=0,
        )  # fmt: skip

    async def changed(self, job: str, sequence: int) -> JobRow | None:
        self.watchers += 1
        try:
            while self.row.sequence <= sequence:
                await self.moved.wait()
        finally:
            self.watchers -= 1
        return self.row


class FakeShelf:
    problems: tuple[str, ...] = ()

    def rows(self) -> list[WorkflowRow]:
        return []

    def declared(self, name: str) -> Programs | None:
        return None


class House:
    """A listening socket over one fake job."""

    def __init__(self, path: Path, jobs: FakeJobs, doorman: Doorman, growth: Growth) -> None:
        self.path = path
        self.growth = growth
        self.jobs = jobs
        self.doorman = doorman

    async def connect(self) -> anyio.abc.SocketStream:
        return await anyio.connect_unix(self.path)

    async def call(self, message: Any) -> dict[str, Any]:
        async with await self.connect() as stream:
            await say(stream, message)
            return (await hear(stream))[0]


@asynccontextmanager
async def house(folder: Path, granted: tuple[Grant, ...] = (), mode: int = 0o600) -> AsyncIterator[House]:
    jobs = FakeJobs()
    growth = Growth()
    answers = Answers(Desk(jobs=jobs, shelf=FakeShelf(), growth=growth), "0.0.test")
    seat = Seat(folder / "control", mode=mode)
    grants = Grants(os.geteuid(), granted)
    grants.look_up()
    doorman = Doorman(seat, lambda connection: conversation.hold(connection, answers), grants)
    try:
        async with anyio.create_task_group() as tasks:
            await tasks.start(doorman.run)
            tasks.start_soon(growth.run)
            with anyio.fail_after(30):
                yield House(folder / "control", jobs, doorman, growth)
            tasks.cancel_scope.cancel()
    finally:
        seat.leave()


async def say(stream: anyio.abc.ByteSendStream, message: Any) -> None:
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    await stream.send(raw + b"\0")


async def hear(stream: anyio.abc.ByteReceiveStream, count: int = 1) -> list[dict[str, Any]]:
    """The next answers; fewer when the daemon hung up."""
    held = b""
    while held.count(b"\0") < count:
        try:
            held += await stream.receive()
        except anyio.EndOfStream:
            break
    return [json.loads(part) for part in held.split(b"\0") if part]


async def hear_out(stream: anyio.abc.ByteReceiveStream) -> list[dict[str, Any]]:
    """The answers to one call, to the last."""
    held, answers = b"", [{"continues": True}]
    while answers[-1].get("continues"):
        while b"\0" not in held:
            held += await stream.receive(1_000_000)
        raw, _, held = held.partition(b"\0")
        answers.append(json.loads(raw))
    return answers[1:]


async def silent(stream: anyio.abc.ByteReceiveStream) -> bool:
    """Whether the daemon hung up without a word."""
    try:
        await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True
    return False


def control_call(name: str, /, **parameters: Any) -> dict[str, Any]:
    return {"method": f"{control.INTERFACE}.{name}", "parameters": parameters}
