"""A Python workflow for tests that writes to another system: a folder that remembers what landed."""

import os
from decimal import Decimal
from pathlib import Path
from typing import assert_never

from attrs import frozen

from resumed import (
    Absent,
    Accept,
    Artifact,
    Ask,
    Call,
    Changed,
    Denied,
    Done,
    Each,
    Fail,
    Goto,
    Hold,
    Item,
    ItemDecision,
    Job,
    JobDecision,
    Landed,
    Lapsed,
    Next,
    NotSent,
    Perform,
    Refused,
    Review,
    SentBack,
    Unlanded,
    Withdrawn,
    by,
    effect,
    step,
    workflow,
)


@frozen
class Shown:
    """What the job was told."""

    told: tuple[str, ...] = ()
    answer: str = ""


@effect(
    "folder.put",
    version=2,
    target="folder",
    address="file:///shelf",
    account="house",
    approve=False,
    in_flight="0s",
    absent_is_final=True,
    timeout="20s",
    at_once=3,
    unbound=("sent_by",),
    undo="remove the file by hand",
    owner="group:curators",
    about="page",
    expects="the page bears this body",
    check_first=False,
)
class Put:
    """One file in the folder named: what is there already is never written over."""

    folder: str
    page: str
    body: bytes
    price: Decimal = Decimal("1.50")
    copies: int = 1
    draft: bool = False
    weight: float = 0.5
    sent_by: str = "nobody"

    async def send(self, call: Call) -> Landed | Refused | NotSent:
        """Write it under its key."""
        if not os.path.isdir(self.folder):
            return NotSent("there is no such folder", wait="5s")
        if self.page == "forbidden":
            return Refused("not in this house", response=b"403\xff")
        path = Path(self.folder, call.key)
        with open(path, "xb") as file:
            file.write(self.body)
        return Landed(path.name, response=f"attempt {call.attempt} of {self.page}")

    async def look_up(self, call: Call) -> Landed | Absent:
        """Whether the key is there."""
        path = Path(self.folder, call.key)
        return Landed(path.name) if path.exists() else Absent()

    async def observe(self, call: Call) -> str:
        """How many files there are."""
        assert call.attempt == 0 or call.key
        return str(len(os.listdir(self.folder)))

    def show(self) -> str:
        """The page, for a reviewer."""
        return f"{self.page}: {self.body!r}"


@effect(
    "mail.tell", version=1, target="mail", approve=by("group:curators", "user:lee", quorum=2, via=("cli",))
)
class Tell:
    """A message that nobody can look up."""

    text: Artifact

    async def send(self, call: Call) -> Landed:
        """It always lands."""
        return Landed(f"{len(call.body(self.text))} bytes")


@workflow("effects", version=1, state=Shown, slots=16)
class Effects:
    """The job publishes, asks and ends; its items are reviewed."""

    @step(start=True)
    async def start(self, job: Job, state: Shown) -> JobDecision:
        """Publish one page."""
        folder, page = str(job.inputs["folder"]), str(job.inputs["page"])
        effects = [Put(folder=folder, page=page, body=b"text\xff", sent_by=job.id)]
        effects += [Put(folder=folder, page="second", body=b"two")] if page == "both" else []
        return Perform(*effects, then="landed", otherwise="unlanded")

    @step
    async def landed(self, job: Job, state: Shown, given: Landed | tuple[Landed, ...]) -> JobDecision:
        """It is there."""
        references = [each.reference for each in (given if isinstance(given, tuple) else (given,))]
        return Ask(
            "go on?",
            then="answered",
            choices=("yes", "no"),
            of="user:lee",
            within="2h",
            state=Shown(tuple(references)),
        )

    @step
    async def unlanded(self, job: Job, state: Shown, outcome: Unlanded) -> JobDecision:
        """It is not."""
        match outcome:
            case Refused(reason=reason) | Denied(reason=reason) | Lapsed(reason=reason):
                return Fail(reason)
            case SentBack(note=note):
                return Hold(note)
            case Changed():
                return Goto("start")
            case Withdrawn(code=code):
                return Hold(code)
            case _:
                assert_never(outcome)

    @step
    async def answered(self, job: Job, state: Shown, answer: str) -> JobDecision:
        """A person has answered."""
        if answer == "no":
            return Done(Shown(state.told, answer))
        return Each(job.items, start="write", then="end")

    @step(item=True)
    async def write(self, job: Job, item: Item) -> ItemDecision:
        """A draft for a person."""
        return Review(
            f"draft of {item.id} {item.note}".strip(), by="group:curators", then="written", show="as it is"
        )

    @step(item=True)
    async def written(self, job: Job, item: Item, text: str) -> ItemDecision:
        """What the person made of it."""
        return Accept(text) if text else Next("write")

    @step
    async def end(self, job: Job, state: Shown) -> JobDecision:
        """Nothing is left."""
        return Done()
