"""A target of this world: it remembers what landed by key, whoever lives or dies, and counts.

What happens to each send is scripted: it lands and says so, lands and says nothing, never arrives, and so on.
"""

from collections.abc import Callable
from enum import Enum

from attrs import define, evolve, field
from effects_kit import TOOL

from resumed.schemas import codec, decisions, frames
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.ledger import Effect, EffectState, ErrandKind, ToolContract
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.workflow import Contract

from .workers import Machine, Says

ASKED = evolve(TOOL, approve=ApprovalRule(not_requester=False))
"""The tool that nobody is asked about, and somebody must allow it."""


class Fate(Enum):
    """What becomes of one send."""

    LANDS = "lands"
    LOST_REPLY = "its reply is lost"
    LOST = "it never arrives"
    REFUSED = "refused"
    NOT_SENT = "not sent"
    DIES = "it lands, and its worker dies"
    HANGS = "it lands, and never answers"


SILENT = (Fate.LOST_REPLY, Fate.LOST)
ENDS = {Fate.DIES: "die", Fate.HANGS: "silent"}


@define
class Target:
    """Remembers what landed."""

    fates: list[Fate] = field(factory=list)
    """Of the sends to come, in order; after these all land."""
    knows_keys: bool = False
    """Whether it does nothing, and says the same, when a key comes again."""
    landed: dict[str, int] = field(factory=dict)
    """By operation key, how often."""
    sends: int = 0
    look_ups: int = 0
    checks: int = 0
    heard: list[frames.Run] = field(factory=list)
    most: int = 0
    """How many were under way at once, at most."""
    under_way: int = 0
    ending: dict[str, str] = field(factory=dict)
    """How the sender of a key ends that gives no answer."""
    said: dict[tuple[str, int, str, int, ErrandKind], decisions.Answer] = field(factory=dict)
    """What each errand came to."""
    lands: Callable[[str], None] = lambda key: None
    """Told of each landing, by its key."""
    watch: Callable[[frames.Run], None] = lambda frame: None
    """Told of each send before anything of it lands."""

    def over(self, machine: Machine) -> None:
        """Be what the errands of this machine's workers reach."""
        machine.says = self.says(machine.says)
        machine.began, machine.ends = self.begins, self.ends

    def begins(self, frame: frames.Run) -> None:
        """A worker has begun; a send is under way from here on."""
        if frame.call is not None and frame.call.kind is ErrandKind.SEND:
            self.under_way += 1
            self.most = max(self.most, self.under_way)

    def ends(self, frame: frames.Run) -> str:
        """How it ends without an answer, if it does."""
        return self.ending.pop(frame.call.operation_key, "") if frame.call is not None else ""

    def says(self, says: Says) -> Says:
        """The same handlers, and what this target makes of errands."""

        def speak(frame: frames.Run) -> decisions.Answer:
            if frame.call is None:
                return says(frame)
            # A worker that repeats or misplaces its answer has not called again.
            name = (frame.job, frame.epoch, frame.item, frame.number, frame.call.kind)
            if name not in self.said:
                self.said[name] = decisions.Answer(decided=self.errand(frame))
            return self.said[name]

        return speak

    def errand(self, frame: frames.Run) -> decisions.Decided:
        """What a worker answers that was sent here."""
        call = frame.call
        assert call is not None
        if call.kind is ErrandKind.LOOK_UP:
            self.look_ups += 1
            return self._found(call.operation_key)
        if call.kind is ErrandKind.CHECK:
            self.checks += 1
            found = self._found(call.operation_key) if call.first else None
            return decisions.Checked(found=getattr(found, "reference", None))
        self.sends += 1
        self.under_way -= 1
        self.heard.append(frame)
        self.watch(frame)
        fate = self.fates.pop(0) if self.fates else Fate.LANDS
        if fate is Fate.NOT_SENT:
            return decisions.NotSent(reason="no connection", seconds=5.0)
        if fate is Fate.REFUSED:
            return decisions.Refused(reason="not in this house")
        if fate is not Fate.LOST and not (self.knows_keys and call.operation_key in self.landed):
            self.landed[call.operation_key] = self.landed.get(call.operation_key, 0) + 1
            self.lands(call.operation_key)
        if fate in ENDS:
            self.ending[call.operation_key] = ENDS[fate]
        if fate in SILENT:
            return decisions.Unsure(reason="no reply")
        words = offer(b"201 created") if call.bodies else None
        return decisions.Landed(reference=f"r-{call.operation_key[:8]}", response=words)

    def _found(self, key: str) -> decisions.Landed | decisions.Absent:
        return decisions.Landed(reference=f"r-{key[:8]}") if key in self.landed else decisions.Absent()


def offer(raw: bytes, name: str = "response") -> decisions.Offer:
    """Bytes on their way."""
    return decisions.Offer(name=name, sha256=codec.digest(raw), size=len(raw), text=raw.decode())


BODY = b"a label"


def call(page: str, tool: str = "cms.publish", *, bare: bool = False) -> decisions.Call:
    """One call for a page, whose text goes by its digest; a `bare` one has none, and is answered so."""
    if bare:
        return decisions.Call(tool=tool, arguments=f'{{"page":"{page}"}}', business_object=page)
    body = f'{{"sha256":"{codec.digest(BODY)}","size":{len(BODY)}}}'
    return decisions.Call(
        tool=tool,
        arguments=f'{{"body":{body},"page":"{page}"}}',
        bodies=(offer(BODY, "body"),),
        business_object=page,
    )


def perform(*pages: str, then: str = "finish", otherwise: str = "") -> decisions.Performing:
    """The calls for these pages."""
    calls = tuple(call(page) for page in pages)
    return decisions.Performing(calls=calls, then=then, otherwise=otherwise)


def performing(*pages: str, otherwise: str = "") -> Says:
    """A job that asks for these calls at once, then ends."""

    def says(frame: frames.Run) -> decisions.Answer:
        if frame.step == "start":
            return decisions.Answer(decided=perform(*pages, otherwise=otherwise))
        return decisions.Answer(decided=decisions.Finished())

    return says


def each_performing(parallel: int = 1) -> Says:
    """A job whose items each ask for one call, and are done when it has landed."""

    def says(frame: frames.Run) -> decisions.Answer:
        decided: decisions.Decided = decisions.Finished()
        if frame.step == "start":
            decided = decisions.FanOut(start="work", then="finish", parallel=parallel)
        elif frame.step == "work":
            decided = perform(frame.item, then="check")
        elif frame.step == "check":
            decided = decisions.Accepted()
        return decisions.Answer(decided=decided)

    return says


def with_tools(contract: Contract, *tools: ToolContract) -> Contract:
    """The workflow, and what it may write to."""
    return evolve(contract, effects=tools or (TOOL,))


def broken(target: Target, snapshot: Snapshot) -> list[str]:
    """What the record says and the target does not, and the other way round."""
    faults = [f"{key[:8]} landed {count} times" for key, count in target.landed.items() if count > 1]
    keys = {row.operation_key: row for row in snapshot.effects}
    faults += [f"{key[:8]} landed, and no row says so" for key in target.landed if key not in keys]
    for row in snapshot.effects:
        there = row.operation_key in target.landed
        if row.state is EffectState.CONFIRMED and not there:
            faults.append(f"{row.id} is confirmed and did not land")
        if there and row.state in (EffectState.REJECTED, EffectState.WITHDRAWN):
            faults.append(f"{row.id} is {row.state} and landed")
    return faults


def is_gated(row: Effect) -> bool:
    """Whether somebody is asked to allow it."""
    return row.state is EffectState.PROPOSED and row.gate is not None and row.gate.met is None
