"""Laws that hold in every history: random events against the law, with workers and slots played by the test.

The driver commits as the loop does: one line holds one or two entries, each decided on top of the one before;
the line goes through the disk's spelling before it is applied, and a restart reads all lines again.
"""

from collections import Counter
from typing import Any

import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_kit import (
    ANNA,
    CONTRACT,
    FOUND,
    NEXT_BOOT,
    WORKER,
    folded,
    in_words,
    moment,
    opened,
    opening,
    reread,
    text,
)

from resumed.actors.machine import asks, due, pins, standing
from resumed.actors.machine.apply import apply
from resumed.actors.machine.transition import transition
from resumed.actors.machine.verdict import Verdict
from resumed.schemas import events
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.decisions import (
    Accepted,
    Answer,
    Compared,
    Decided,
    Failed,
    FanOut,
    Finished,
    GoTo,
    HoldBack,
    Later,
    NewItem,
    NextStep,
    Offer,
    Seen,
    SourceChanged,
    Staged,
    TryAgain,
)
from resumed.schemas.events import Placing
from resumed.schemas.instant import Instant, later, reached
from resumed.schemas.job import Budget, ItemState, PinKind, Source, Status, Try
from resumed.schemas.ledger import Obstacle, WaitKind
from resumed.schemas.limits import Limits, OnFailed
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Changes, Entry, Line, Snapshot
from resumed.schemas.workflow import OnChange

ITEMS = ("a", "b", "c")
NEW = (NewItem(id="b"), NewItem(id="x"), NewItem(id="a"))
PIN, OTHER = (Source(path="/x", pin=PinKind.SHA256, sha256=letter * 64, size=1) for letter in ("1", "2"))
PINNED = tuple(NewItem(id=name, source=PIN) for name in ("b", "x", "a"))
CHANGED = (
    (),
    (Seen(item="a", source=OTHER),),
    (Seen(item="b"), Seen(item="x", source=OTHER), Seen(item="nobody", source=OTHER)),
    (Seen(item="a"), Seen(item="x"), Seen(item="c")),
)
OFFER = Offer(
    name="card",
    sha256="a" * 64,
    size=2,
    text="{}",
    publish=Staged(destination="/srv/x", temp=".t", device=1, inode=2),
)
ITEM_SAYS: tuple[Decided, ...] = (
    Accepted(),
    Accepted(),
    NextStep(step="write"),
    NextStep(step="post"),
    TryAgain(reason="busy"),
    Later(seconds=5.0),
    Later(seconds=500.0),
    Failed(reason="no such page"),
    HoldBack(code="unsure", reason="two Lis"),
    HoldBack(code="unsure", reason="two Lis"),
    Finished(),
    NextStep(step="nowhere"),
    SourceChanged(source=OTHER),
    SourceChanged(reason="No such file"),
)
ITEM_PUBLISHES: tuple[Decided, ...] = (
    Accepted(output=OFFER),
    NextStep(step="write", output=OFFER),
    *ITEM_SAYS[:12],
)
JOB_SAYS: tuple[Decided, ...] = (
    FanOut(start="read", then="close", parallel=2),
    FanOut(start="read", then="open", parallel=3),
    FanOut(start="read", then="ship", parallel=3),
    FanOut(start="post", then="close", parallel=3, tries=1),
    FanOut(start="read", then="ship", parallel=3, tries=1),
    FanOut(start="post", then="open", parallel=1),
    FanOut(start="read", then="close", parallel=2, items=NEW),
    FanOut(start="write", then="open", items=()),
    FanOut(start="read", then="close", parallel=2, items=PINNED),
    FanOut(start="read", then="ship", parallel=2, items=PINNED),
    FanOut(start="read", then="ship", parallel=1, pins={"a": PIN, "c": PIN}),
    GoTo(step="close"),
    Finished(),
    TryAgain(reason="busy"),
    Later(seconds=90.0),
    Failed(reason="nothing to do"),
    HoldBack(code="", reason=""),
    Accepted(),
    FanOut(start="read", then="close", items=(NewItem(id="x"), NewItem(id="x"))),
)
JOB_PUBLISHES: tuple[Decided, ...] = (
    GoTo(step="close", output=OFFER),
    FanOut(start="read", then="close", parallel=2, output=OFFER),
    *JOB_SAYS[:12],
)
WAITS = (0.0, 1.0, 20.0, 45.0, 61.0, 120.0, 700.0)
JUMPS = (-7200.0, 7200.0, 3600.0, -3600.0, 90.0, -90.0, 1.0)
"""Seconds by which the wall clock is set."""
NAMES: tuple[tuple[str, ...], ...] = ((), ("a",), ("b",), ("a", "x"), ("nobody",))

Step = tuple[int, int, int]


@define(eq=False)
class History:
    """One job's life; `now` moves on with it."""

    snapshot: Snapshot
    lines: list[Line]
    now: Instant = field(factory=moment)
    boots: int = 0
    answered: list[events.Returned] = field(factory=list)
    due_once: set[Action] = field(factory=set)
    over: set[Action] = field(factory=set)
    left_out: set[str] = field(factory=set)
    reopened: set[str] = field(factory=set)
    """Items that a person has begin again in the line at hand."""
    seen: Counter[tuple[str, str]] = field(factory=Counter)
    publishes: bool = False
    """Whether its steps have outputs to be published."""

    # ---- what can happen --------------------------------------------------------------------------------

    def happens(self, kind: int, one: int, two: int) -> events.Event | None:
        """The event that these numbers stand for where the job is now."""
        tries = list(self.snapshot.tries.values())
        row = tries[one % len(tries)] if tries else None
        if kind >= 26 and self.snapshot.publications:
            return self._placed(one, two)
        if kind in (30, 31):
            return self._told(one, two)
        if kind == 34:
            return events.Reopen(by=ANNA, items=NAMES[one % len(NAMES)], reason="it was wrong" if two else "")
        if kind == 33:
            return None
        if kind == 32:
            return events.Extend(
                by=ANNA,
                usd=("5", "9", "30", None)[one % 4],
                tokens=(None, 900, 10**6)[two % 3],
                active_time=(None, 2e3, 9e9)[one % 3],
                deadline=(None, "2h", "1s")[two % 3] if one % 5 == 0 else None,
            )
        if kind < 8 or kind > 17:
            return self._work(kind % 9 % 8, row, two)
        names = NAMES[one % len(NAMES)]
        if kind == 13 and row is not None and row.item and two % 2:
            names = (row.item,)
        table: dict[int, events.Event] = {
            8: events.Tick(),
            9: events.Pause(by=ANNA, now=one % 2 == 1),
            10: events.Resume(by=ANNA),
            11: events.Resume(by=ANNA),
            12: events.Retry(by=ANNA, items=names),
            13: events.Skip(by=ANNA, items=names),
            14: events.Shutdown(),
            15: self._trouble(one),
            16: events.Woke(unproven=("w-9",) if one % 8 == 0 else ()),
            17: events.Cancel(by=ANNA) if one == 11 else events.Retry(by=ANNA),
        }
        return table[kind]

    @staticmethod
    def _told(one: int, two: int) -> events.Event:
        obstacles = (None, *Obstacle)
        return events.OtherJob(
            job=("p", "q", "nobody")[one % 3],
            completed=two % 3 == 0,
            obstacle=obstacles[two % len(obstacles)],
        )

    def _placed(self, one: int, two: int) -> events.Event:
        """What came of an attempt to publish or to take away: of the one that is due, or of another."""
        rows = list(self.snapshot.publications.values())
        row = rows[one % len(rows)]
        outcome = Placing.REFUSED if one > 5 else list(Placing)[two % len(Placing)]
        if outcome is Placing.WITHDRAWN and row.stop is None:
            outcome = Placing.PUBLISHED  # nothing is taken away that was not told to be
        number = row.number - (two % 9 == 8)
        return events.Placed(unit=row.unit, number=number, outcome=outcome, reason="it is so")

    @staticmethod
    def _trouble(one: int) -> events.Event:
        if one % 3 == 0:
            return events.Shutdown()
        return events.Trouble(code="not_gone" if one % 4 == 1 else "worker", reason="it cannot start")

    def _work(self, kind: int, row: Try | None, two: int) -> events.Event | None:
        if kind < 3:
            wanted = due.wanted(self.snapshot, self.now, 9)
            units = [*wanted, *wanted, "", *(item.id for item in self.snapshot.items)]
            return events.Grant(unit=units[two % len(units)], worker=WORKER)
        if row is None:
            return self.answered[two % len(self.answered)] if self.answered and kind == 7 else None
        if kind < 6:
            says = self._compared(two) if row.compares else self._says(row)
            state = {} if row.item else {"page": str(two)}
            used = Budget(usd="1.5", tokens=7) if two % 4 == 0 else None
            said = Answer(decided=says[two % len(says)], state=state, used=used)
            answer = events.Returned(
                unit=row.item, epoch=row.epoch, number=row.number, answer=said, slot=kind > 3, output=FOUND
            )
            self.answered.append(answer)
            return answer
        if kind == 6:
            return events.Raised(unit=row.item, epoch=row.epoch, number=row.number, error="ValueError")
        died = row.stop is None or two % 3 == 0
        return events.Gone(unit=row.item, epoch=row.epoch, number=row.number, died=died)

    def _says(self, row: Try) -> tuple[Decided, ...]:
        if self.publishes:
            return ITEM_PUBLISHES if row.item else JOB_PUBLISHES
        return ITEM_SAYS if row.item else JOB_SAYS

    def _compared(self, two: int) -> tuple[Decided, ...]:
        """Answers to a comparison: it comes one item further, to the end, or nowhere."""
        first, most = pins.through(self.snapshot), len(self.snapshot.items)
        changed = CHANGED[two % len(CHANGED)]
        return tuple(
            Compared(through=through, sources=2, changed=changed)
            for through in (min(first + 1, most), most, most, most, most + 1)
        )

    # ---- committing, as the loop does -------------------------------------------------------------------

    def turn(self, steps: list[Step]) -> None:
        """Events that came together are entries of one line."""
        self.pass_time(steps)
        tentative, entries = self.snapshot, []
        for kind, one, two in steps:
            event = self.happens(kind, one, two)
            if event is None:
                continue
            verdict = self.decide(tentative, event)
            if isinstance(verdict, Entry):
                entries.append(verdict)
                tentative = apply(tentative, self.line(tentative, verdict))
        if entries:
            self.adopt(tentative, self.line(tentative, *entries))

    def pass_time(self, steps: list[Step]) -> None:
        """Ticks come after some time, and a wake may come in the next boot."""
        for kind, one, two in steps:
            if kind == 8:
                self.now = later(self.now, WAITS[one % len(WAITS)])
            elif kind == 16 and two % 2:
                self.boots += 1
                self.now = evolve(self.now, boot=f"{NEXT_BOOT}{self.boots}", up=0)
            elif kind == 33:
                self.now = evolve(self.now, wall=self.now.wall + round(JUMPS[one % len(JUMPS)] * 1e6))

    def line(self, tentative: Snapshot, *entries: Entry) -> Line:
        """The line that commits these entries."""
        number = self.snapshot.sequence + 1
        return Line(sequence=number, epoch=tentative.epoch, previous="", at=self.now, entries=entries)

    def decide(self, tentative: Snapshot, event: events.Event) -> Verdict:
        """The law asked twice: it touches nothing and answers the same."""
        looked = self.seen.total() % 8 == 0  # spelling a snapshot takes longer than all else here
        before = text(tentative) if looked else b""
        verdict = transition(tentative, event, self.now)

        assert verdict == transition(tentative, event, self.now)
        assert before == (text(tentative) if looked else b"")
        self.seen[type(event).__name__, type(verdict).__name__] += 1
        if tentative.outcome is not None and isinstance(verdict, Entry):
            # What is said of an effect after the end is evidence, and somebody takes note of it.
            known = verdict.changes
            assert evolve(Changes(), effects=known.effects, clocks=known.clocks) == known
            assert verdict.transition in ("stale", "settle")
        if isinstance(verdict, Entry):
            self.acknowledged(tentative, event, verdict)
        if isinstance(verdict, Refusal):
            assert isinstance(event, events.Request | events.Deciding)  # nobody else is refused anything
            assert verdict.code
            assert verdict.reason
            for command in verdict.commands:
                self.is_possible(tentative, command)
        return verdict

    def acknowledged(self, before: Snapshot, event: events.Event, entry: Entry) -> None:
        """An answer says what is so: a resume has lifted something, and a tree in doubt holds the job."""
        after = apply(before, self.line(before, entry))
        if isinstance(event, events.Skip):
            self.left_out |= set(event.items)
        elif isinstance(event, events.Retry):
            self.left_out -= set(event.items)
        elif isinstance(event, events.Reopen):
            self.left_out -= set(event.items)
            self.reopened |= set(event.items)
        elif isinstance(event, events.Resume):
            held = [None if one.hold is None else (one.hold.code, one.hold.reason) for one in (before, after)]
            assert before.pause is not None or held[0] != held[1]
        doubt = isinstance(event, events.Woke) and event.unproven
        if doubt or (isinstance(event, events.Trouble) and event.code == "not_gone"):
            assert after.hold is not None
            assert "not_gone" == after.hold.code

    def adopt(self, tentative: Snapshot, line: Line) -> None:
        """The line is durable; what it reads back as gives the snapshot that was meant."""
        replayed = apply(self.snapshot, reread(line))

        assert tentative == replayed
        before, self.snapshot = self.snapshot, replayed
        kept = {item.id: item for item in before.items}
        self.lines.append(line)
        self.check(before, kept)
        self.snapshot.items.settle()

    # ---- what must hold ---------------------------------------------------------------------------------

    def is_possible(self, snapshot: Snapshot, command: str) -> None:
        """A command that is offered would do something."""
        if command.split()[1] in ("show", "logs", "watch", "inbox", "why", "history"):
            return
        verdict = transition(snapshot, in_words(command), self.now)
        assert isinstance(verdict, Entry), (command, verdict)

    def check(self, before: Snapshot, kept: dict[str, Any]) -> None:
        """The laws of one step from `before` to the present snapshot."""
        self.check_tries(before)
        self.check_requests(before)
        self.check_rows(before, kept)
        self.check_keys()
        self.check_going_on()

    def check_requests(self, before: Snapshot) -> None:
        """What was acknowledged is in force: a stop of new work, and each item left out."""
        after = self.snapshot
        lifted = any("hold" in entry.changes.cleared for entry in self.lines[-1].entries)
        if due.blocked(before) and due.blocked(after) and not lifted:
            was = {(row.item, row.number) for row in before.tries.values()}
            assert not {(row.item, row.number) for row in after.tries.values()} - was
        for name in self.left_out - set(after.tries) - set(after.publications):
            assert after.items[name].state in (ItemState.SKIPPED, ItemState.DONE)
        unproven = [one.hold is not None and one.hold.code == "not_gone" for one in (before, after)]
        assert not (all(unproven) and before.outcome is None and after.outcome is not None)

    def check_tries(self, before: Snapshot) -> None:
        after = self.snapshot
        most = 1 if after.each is None else after.each.parallel
        assert not (len(after.tries) > 1 and "" in after.tries)
        if after.each is before.each:
            assert len(after.tries) <= most
        for unit, row in after.tries.items():
            item = after.position if unit == "" else after.items[unit]
            assert (unit, ItemState.IN_PROGRESS) == (row.item, item.state)
            assert (row.number, row.step, row.occurrence) == (item.tries, item.at, item.occurrence)
            assert after.attempt is not None
            assert row.epoch == after.attempt.epoch == after.epoch
        running = {item.id for item in after.items if item.state is ItemState.IN_PROGRESS}
        on_their_way = set(after.publications)
        on_their_way |= {unit for unit, row in after.performances.items() if not row.over}
        assert set(after.tries) <= running | {""} <= set(after.tries) | on_their_way | {""}
        assert not set(after.tries) & on_their_way
        for unit, publication in after.publications.items():
            item = after.position if unit == "" else after.items[unit]
            assert publication.number == item.publishes
            state = ItemState.HELD if publication.blocked else ItemState.IN_PROGRESS
            assert item.state is state or (publication.blocked and publication.stop is not None)
        for item in (*after.items, after.position):
            step = after.contract.step(item.at)
            assert item.crashes <= (step.crashes if step is not None else 0)
            assert item.state is not ItemState.HELD or item.reason
        opened_now = after.attempt is not None and (
            before.attempt is None or before.attempt.epoch != after.attempt.epoch
        )
        # A line may hold a whole attempt: the epoch rises by one for each that was opened.
        assert int(opened_now) <= after.epoch - before.epoch <= 2

    def check_rows(self, before: Snapshot, kept: dict[str, Any]) -> None:
        after = self.snapshot
        for name, old in kept.items():
            new = after.items[name]
            assert old.tries <= new.tries
            assert old.occurrence <= new.occurrence
            assert old.ordinal == new.ordinal
            if old.state is ItemState.DONE and new != old:
                # Done again, from the beginning: a person says so, or the workflow, of another source.
                assert old.occurrence < new.occurrence
                if name not in self.reopened:
                    assert OnChange.REOPEN is after.contract.on_change
                    assert old.source != new.source
        self.reopened.clear()
        if before.outcome is not None:
            changed = evolve(
                after,
                sequence=before.sequence,
                newest=before.newest,
                last_transition=before.last_transition,
                effects=before.effects,
                clocks=before.clocks,
            )
            assert before == changed

    def check_keys(self) -> None:
        """A run or a stop that ceased to be due is never due again."""
        claims = (ActionKind.START, ActionKind.ERRAND)
        now = {action for action in due.due(self.snapshot, self.now) if action.kind not in claims}
        assert not now & self.over
        self.over |= self.due_once - now
        self.due_once |= now

    def check_timers(self) -> None:
        """What an instant is named for is decided once it has come: nobody rings for nothing."""
        at = due.next_due(self.snapshot, self.now)
        if at is not None and reached(at, self.now):
            assert isinstance(transition(self.snapshot, events.Tick(), self.now), Entry), at

    def check_going_on(self) -> None:
        """I11: what has not ended goes on by itself, is paused, or is held with all a person needs."""
        snapshot, now = self.snapshot, self.now
        status = standing.status(snapshot, now)
        assert standing.why(snapshot, now)
        for command in standing.commands(snapshot):
            self.is_possible(snapshot, command)
        # Only the breaker opens while tries are open, and those end by themselves.
        assert not snapshot.tries or all(row.kind is WaitKind.BREAKER for row in snapshot.waits)
        if snapshot.outcome is not None:
            assert ({}, {}, None) == (snapshot.tries, snapshot.publications, snapshot.attempt)
            assert (frozenset(), {}) == (snapshot.effects.unsettled, snapshot.errands)
            assert due.next_due(snapshot, now) is None
            assert not due.due(snapshot, now)
            return
        self.check_timers()
        if due.due(snapshot, now):
            return
        if status is Status.HELD:
            assert snapshot.hold is not None
            assert snapshot.hold.code
            assert snapshot.hold.reason
            assert snapshot.hold.owner
            assert standing.commands(snapshot)
            return
        others = [row for row in snapshot.waits if row.kind is WaitKind.OTHER_JOB and row.obstacle is None]
        asked = others or asks.asks(snapshot, now)
        assert snapshot.pause is not None or due.next_due(snapshot, now) is not None or asked


steps = st.lists(
    st.tuples(st.integers(0, 34), st.integers(0, 11), st.integers(0, 27)), min_size=1, max_size=2
)
histories = st.lists(steps, min_size=1, max_size=50)


def began(limited: bool, waits: bool, reopens: bool) -> Line:
    """Line 1 of a job, with a deadline, with a time and other jobs to wait for, with sources that reopen."""
    after = ("p", "q") if waits else ()
    not_before = 100.0 if waits else None
    return opening(
        *ITEMS,
        deadline=3000.0 if limited else None,
        after=after,
        not_before=not_before,
        budget=Budget(usd="2.5", tokens=20, active_seconds=900.0) if limited else None,
        contract=evolve(
            CONTRACT,
            limits=Limits(usd="20", active_time=None, failures_in_a_row=2 if reopens else 5),
            on_failed=OnFailed.CONTINUE if limited else OnFailed.STOP if waits else OnFailed.HOLD,
        ),
        on_change=OnChange.REOPEN if reopens else OnChange.HOLD,
    )


@settings(max_examples=250, derandomize=True, deadline=None, database=None)
@given(histories, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_every_history_keeps_the_law(
    turns: list[list[Step]], limited: bool, waits: bool, reopens: bool, publishes: bool
) -> None:
    """Recovery equals live, keys never return, what is done or ended stays so, and nothing is stuck."""
    first = began(limited, waits, reopens)
    history = History(opened(first), [first], publishes=publishes)
    for turn in turns:
        history.turn(turn)

    assert history.snapshot == folded(history.lines)


def lived(seed: int, publishes: bool = False) -> History:
    """A long fixed history."""
    first = began(seed % 3 == 0, seed % 4 == 0, seed % 2 == 0)
    history = History(opened(first), [first], publishes=publishes)
    number = seed + 1
    for _ in range(80):
        turn = []
        for _ in range(1 + number % 2):
            number = number * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407 & (2**64 - 1)
            turn.append(((number >> 36) % 35, (number >> 40) % 12, (number >> 46) % 28))
        history.turn(turn)
    assert history.snapshot == folded(history.lines)
    return history


def test_histories_reach_publishing() -> None:
    """Long fixed histories meet every way in which an output may not get its name, and its name too."""
    seen: Counter[str] = Counter()
    for seed in range(120):
        history = lived(seed, publishes=True)
        for line in history.lines:
            for entry in line.entries:
                seen.update(item.code for item in entry.changes.items)
                seen[f"{entry.transition} {entry.decision.choice}"] += 1

    assert {"publishing", "output_exists", "publish", "output_lost"} <= set(seen)
    assert {f"placed {word}" for word in ("done", "held", "again", "skipped", "canceled")} <= set(seen)


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_long_histories_keep_the_law(first: int) -> None:
    """What holds in every history holds in long ones, too: each law is asked after each of their lines."""
    told = sum(lived(seed).seen.total() for seed in range(first, first + 20))

    assert told > 20 * 20
