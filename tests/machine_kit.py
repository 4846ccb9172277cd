"""A small world for tests of the law: one workflow, one job, and a play that commits what the law answers.

play = Play.of("a", "b")
play.start("")
play.answer("", FanOut(start="read", then="close"))
"""

from typing import Any

from attrs import define, evolve, field

from resumed.actors.machine import due
from resumed.actors.machine.admission import first_line
from resumed.actors.machine.apply import apply
from resumed.actors.machine.transition import transition
from resumed.actors.machine.verdict import Unchanged, Verdict
from resumed.schemas import codec, decisions, events, limits, line_io
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.instant import Instant, later
from resumed.schemas.job import (
    Artifact,
    Budget,
    CodeVersion,
    Item,
    Job,
    Person,
    StopReason,
    Try,
)
from resumed.schemas.jobfile import FileItem
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import STATE_SCHEMA, Entry, Line, Snapshot
from resumed.schemas.workflow import Contract, OnChange, StepContract, StepKind

BOOT = "6f1c2b7a-0000-4000-8000-000000000001"
NEXT_BOOT = "6f1c2b7a-0000-4000-8000-000000000002"
ANNA = Person(uid=1000, name="anna")
WORKER = "worker-1"
TIMEOUT = 100.0
JOB, ITEM = StepKind.JOB, StepKind.ITEM


def step(name: str, kind: StepKind, *, repeatable: bool = True, tries: int = 3) -> StepContract:
    """A step whose try lasts 100 s, and that is tried again after 40 s at most."""
    return StepContract(
        name=name,
        kind=kind,
        repeatable=repeatable,
        tries=tries,
        timeout=TIMEOUT,
        backoff_first=30.0,
        backoff_max=40.0,
    )


CONTRACT = Contract(
    workflow="scan",
    version=3,
    start="open",
    steps=(
        step("open", JOB),
        step("ship", JOB, repeatable=False),
        step("close", JOB),
        step("read", ITEM),
        step("write", ITEM),
        step("post", ITEM, repeatable=False),
    ),
)
"""Job steps `open`, `ship` (not repeatable), `close`; item steps `read`, `write`, `post` (not repeatable)."""


def moment(seconds: float = 0.0, boot: str = BOOT) -> Instant:
    """An instant some seconds after the job came in."""
    return Instant(wall=1_795_000_000_000_000 + round(seconds * 1e6), boot=boot, up=round(seconds * 1e6))


def opening(
    *items: str,
    start: str = "open",
    deadline: float | None = None,
    after: tuple[str, ...] = (),
    not_before: float | None = None,
    on_change: OnChange = OnChange.HOLD,
    budget: Budget | None = None,
    contract: Contract | None = None,
) -> Line:
    """Line 1 of a job."""
    job = Job(
        id="harbour-7",
        tenant="",
        requester="ada",
        owner="anna",
        created=moment(),
        workflow="scan",
        version=3,
        deadline=None if deadline is None else moment(deadline),
        after=after,
        not_before=None if not_before is None else moment(not_before),
    )
    return first_line(
        job,
        evolve(contract or CONTRACT, start=start, on_change=on_change),
        tuple(FileItem(id=item) for item in items),
        CodeVersion(workflow="scan", version=3, contract="0" * 64, release="0.1.0"),
        "1" * 64,
        moment(),
        budget,
    )


def opened(line: Line) -> Snapshot:
    """The snapshot after line 1."""
    assert line.opening is not None
    return apply(line.opening, line)


def reread(line: Line) -> Line:
    """The line as it comes back from the disk."""
    payload = line_io.verified(line_io.spell_line(line)[0].rstrip(b"\n"))
    assert payload is not None
    return line_io.read_line(payload, STATE_SCHEMA, "cannot read a line")


def folded(lines: list[Line]) -> Snapshot:
    """What recovery makes of the lines: the law is not asked."""
    first = reread(lines[0])
    snapshot = opened(first)
    for line in lines[1:]:
        snapshot = apply(snapshot, reread(line))
        snapshot.items.settle()
    return snapshot


FOUND = Artifact(name="card", sha256="a" * 64, size=2, text="{}")


@define(eq=False)
class Play:
    """A job, its committed lines, and the moment it is."""

    snapshot: Snapshot
    lines: list[Line] = field(factory=list)
    now: Instant = field(factory=moment)

    @classmethod
    def of(cls, *items: str, **more: Any) -> "Play":
        """A job just let in; `more` as `opening` takes it."""
        line = opening(*items, **more)
        return cls(opened(line), [line])

    @classmethod
    def fan_out(
        cls,
        *items: str,
        at: str = "read",
        parallel: int = 2,
        tries: int | None = None,
        **more: Any,
    ) -> "Play":
        """A job that stands in a fan-out over its items; nothing runs yet. `more` as `opening` takes it."""
        play = cls.of(*items, **more)
        play.start("")
        play.answer("", decisions.FanOut(start=at, then="close", parallel=parallel, tries=tries))
        return play

    def ask(self, event: events.Event) -> Verdict:
        """What the law answers, without committing it."""
        return transition(self.snapshot, event, self.now)

    def tell(self, event: events.Event) -> Verdict:
        """What the law answers; an entry is committed."""
        verdict = self.ask(event)
        if isinstance(verdict, Entry):
            self.commit(verdict)
        return verdict

    def commit(self, *entries: Entry) -> None:
        """Make the entries one line, and adopt the snapshot after it."""
        line = Line(
            sequence=self.snapshot.sequence + 1,
            epoch=self.snapshot.epoch,
            previous="",
            at=self.now,
            entries=entries,
        )
        self.snapshot = apply(self.snapshot, line)
        self.snapshot.items.settle()
        self.lines.append(line)

    def does(self, event: events.Event) -> str:
        """Commit what the event does, which must be something, and return the choice made."""
        verdict = self.tell(event)
        assert isinstance(verdict, Entry), verdict
        return verdict.decision.choice

    def refusal(self, event: events.Event) -> Refusal:
        """The refusal of an event, which must be refused."""
        verdict = self.ask(event)
        assert isinstance(verdict, Refusal), verdict
        return verdict

    def changes_nothing(self, event: events.Event) -> bool:
        """True when the law says so by value: nothing is to be committed."""
        return isinstance(self.ask(event), Unchanged)

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now = later(self.now, seconds)

    # ---- the parts that slots and workers play ----------------------------------------------------------

    def start(self, *units: str) -> None:
        """Slots are given to these units."""
        for unit in units:
            assert "started" == self.does(events.Grant(unit=unit, worker=WORKER))

    def row(self, unit: str) -> Try:
        """The unit's open try."""
        return self.snapshot.tries[unit]

    def returned(self, unit: str, decided: decisions.Decided, **more: Any) -> events.Returned:
        """The answer of the unit's open try; its slot is not used again unless `slot=True`."""
        row = self.row(unit)
        answer = decisions.Answer(decided=decided, state=more.pop("state", {}))
        return events.Returned(
            unit=unit, epoch=row.epoch, number=row.number, answer=answer, **{"slot": False, **more}
        )

    def answer(self, unit: str, decided: decisions.Decided, **more: Any) -> str:
        """The unit's handler answers."""
        return self.does(self.returned(unit, decided, **more))

    def raised(self, unit: str, error: str = "ValueError: no such page") -> events.Raised:
        """The error of the unit's open try."""
        row = self.row(unit)
        return events.Raised(unit=unit, epoch=row.epoch, number=row.number, error=error)

    def gone(self, unit: str, *, died: bool = True, began: bool = True) -> events.Gone:
        """The end of the unit's open try without an answer."""
        row = self.row(unit)
        return events.Gone(unit=unit, epoch=row.epoch, number=row.number, died=died, began=began)

    def stopped(self) -> list[str]:
        """Every stop that is due is carried out; returns the choices made."""
        return [
            self.does(self.gone(action.id, died=False))
            for action in due.due(self.snapshot, self.now)
            if action.kind is ActionKind.STOP
        ]

    def fail(self, unit: str, times: int = 3) -> None:
        """The unit fails so many times, each time as soon as it may be tried again."""
        for _ in range(times):
            self.wait(60.0)
            self.start(unit)
            self.does(self.raised(unit))

    # ---- looking at it -----------------------------------------------------------------------------------

    def unit(self, name: str) -> Item:
        """The item of that id, or the job's own position."""
        return self.snapshot.position if name == "" else self.snapshot.items[name]

    def due(self) -> list[Action]:
        """What is due now."""
        return due.due(self.snapshot, self.now)

    def starts(self) -> list[str]:
        """The units that want a slot now."""
        return [action.id for action in self.due() if action.kind is ActionKind.START]

    def code(self) -> str | None:
        """The code of the job's hold."""
        return self.snapshot.hold.code if self.snapshot.hold is not None else None


def text(snapshot: Snapshot) -> bytes:
    """All of a snapshot, for comparing."""
    return codec.encode(snapshot)


def in_words(words: str) -> events.Request | events.Settle:
    """The request that a command line such as `resumectl skip harbour-7 a` makes."""
    _, verb, _, *items = words.split()
    if verb == "settle":
        effect, _, reference = " ".join(items).partition(" --landed ")
        said = reference.partition(" ")[0] or None
        return events.Settle(by=ANNA, subject=effect.partition(" --")[0], reference=said)
    if verb == "extend":
        readers: dict[str, Any] = {"active_time": limits.span, "tokens": int, "turns": int}
        raised: dict[str, Any] = {}
        for name, value in zip(items[::2], items[1::2], strict=True):
            key = name[2:].replace("-", "_")
            raised[key] = readers.get(key, str)(value)
        return events.Extend(by=ANNA, **raised)
    kinds: dict[str, Any] = {
        "pause": events.Pause,
        "resume": events.Resume,
        "cancel": events.Cancel,
        "retry": events.Retry,
        "skip": events.Skip,
        "reopen": events.Reopen,
    }
    request: events.Request = kinds[verb](by=ANNA, **({"items": tuple(items)} if items else {}))
    return request


REQUESTS: dict[str, events.Request] = {
    "pause": events.Pause(by=ANNA),
    "pause --now": events.Pause(by=ANNA, now=True),
    "resume": events.Resume(by=ANNA),
    "cancel": events.Cancel(by=ANNA),
    "retry": events.Retry(by=ANNA),
    "skip": events.Skip(by=ANNA),
}
REOPEN = events.Reopen(by=ANNA, items=("a",), reason="wrong page")
EXTEND = events.Extend(by=ANNA, usd="100", active_time=9e6)

STOPS: dict[StopReason, Any] = {
    StopReason.PAUSE: lambda play, unit: play.does(events.Pause(by=ANNA, now=True)),
    StopReason.CANCEL: lambda play, unit: play.does(events.Cancel(by=ANNA)),
    StopReason.EXPIRE: lambda play, unit: (play.wait(50.0), play.does(events.Tick())),
    StopReason.SKIP: lambda play, unit: play.does(events.Skip(by=ANNA, items=(unit,))),
    StopReason.TIMEOUT: lambda play, unit: (play.wait(TIMEOUT), play.does(events.Tick())),
    StopReason.HOLD: lambda play, unit: play.does(events.Trouble(code="worker", reason="it cannot start")),
    StopReason.SHUTDOWN: lambda play, unit: play.does(events.Shutdown()),
}
"""How each reason to stop a try comes about; for EXPIRE the job needs a deadline of 50 s."""
