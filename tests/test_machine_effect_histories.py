"""Laws that hold in every history with effects: random answers, silences, deaths, people and clocks.

What holds of every history holds of these (`test_machine_properties`), and after each entry what holds of
effects (`effect_laws`).
"""

from typing import Any

import pytest
from attrs import define, evolve, field
from effect_laws import check_entry
from effects_kit import BLIND, BOTH, DEDUP, FACTS, TOOL
from gates_kit import BO, CY, RULE, facts
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_kit import ANNA, CONTRACT, WORKER, folded, opened, opening
from test_machine_properties import History, Step

from resumed.actors.machine import errands
from resumed.actors.machine.apply import after
from resumed.actors.machine.verdict import Verdict
from resumed.schemas import events
from resumed.schemas.decisions import (
    Absent,
    Accepted,
    Answer,
    Call,
    Checked,
    Decided,
    FanOut,
    Finished,
    GoTo,
    HoldBack,
    Landed,
    NextStep,
    NotSent,
    Performing,
    Refused,
    Seen,
    TryAgain,
    Unsure,
)
from resumed.schemas.job import PinKind, Source, Try
from resumed.schemas.ledger import Effect, EffectState, ErrandKind, ToolContract
from resumed.schemas.limits import Limits
from resumed.schemas.snapshot import Entry, Line, Snapshot
from resumed.schemas.workflow import OnUnknown

ITEMS = ("a", "b", "c")
PINNED = Source(path="/srv/a", pin=PinKind.SHA256, sha256="a" * 64, size=3)
TOOLS: tuple[ToolContract, ...] = (
    evolve(TOOL, tool="looked", at_once=2),
    evolve(BLIND, tool="blind", at_once=2),
    evolve(DEDUP, tool="dedup", at_once=2, key_lifetime=400.0),
    evolve(BOTH, tool="both", absent_is_final=False),
    evolve(TOOL, tool="gated", approve=RULE),
    evolve(BLIND, tool="careful", approve=RULE, at_once=2),
    evolve(TOOL, tool="checked", check_first=True, observe=True),
)


def _call(number: int, page: int = 1) -> Call:
    tool = TOOLS[number % len(TOOLS)]
    sources = (PINNED,) if tool.observe else ()
    observed = "v1" if tool.observe else ""
    return Call(tool=tool.tool, arguments=f'{{"page":{page}}}', sources=sources, observed=observed)


def _performs(number: int, job: bool) -> Performing:
    """One or two calls, and where they lead."""
    calls = (_call(number), _call(number // 2, 2)) if number % 3 == 0 else (_call(number, number % 2),)
    then, otherwise = ("close", "ship") if job else ("write", "post")
    return Performing(
        calls=calls,
        then=then if number % 2 else "",
        otherwise=otherwise if number % 5 < 2 else "",
        back=("open" if job else "read") if number % 7 == 0 else "",
    )


ITEM_SAYS: tuple[Decided, ...] = (
    *(_performs(number, job=False) for number in range(22)),
    Accepted(),
    NextStep(step="write"),
    TryAgain(reason="busy"),
    HoldBack(code="unsure", reason="two Lis"),
)
JOB_SAYS: tuple[Decided, ...] = (
    *(FanOut(start="read", then="close", parallel=3) for _ in range(4)),
    *(_performs(number, job=True) for number in range(22)),
    GoTo(step="close"),
    Finished(),
)
SENT: tuple[Decided, ...] = (
    *(Landed(reference="p1"), Landed(reference="p1"), Landed(reference="p2")),
    *(Refused(reason="no"), NotSent(reason="busy"), NotSent(reason="busy", seconds=20.0)),
    *(Unsure(reason="500"), Absent(), Accepted()),
)
LOOKED: tuple[Decided, ...] = (
    *(Landed(reference="p1"), Absent(), Absent(), Absent()),
    *(Unsure(reason="503"), Unsure(reason="503"), Refused(reason="?")),
)
FOUND: tuple[Decided, ...] = (
    *(Checked(observed="v1"), Checked(observed="v1"), Checked(observed="v1"), Checked(observed="v2")),
    *(Checked(problem="?"), Checked(observed="v1", found="p0"), Accepted()),
    Checked(observed="v1", changed=(Seen(item="/srv/a"),)),
)
GIVEN = (
    *(facts(BO), facts(BO), facts(BO, CY), facts(BO, CY), None),
    *(evolve(facts(BO), people=()), evolve(FACTS, requester=False), facts(evolve(BO, groups=()))),
    facts(BO, rule=evolve(RULE, valid_for=200.0)),
)


@define(eq=False)
class Ledger(History):
    """A history in which steps ask for effects."""

    owners: dict[str, tuple[str, str]] = field(factory=dict)

    def happens(self, kind: int, one: int, two: int) -> events.Event | None:
        """Half of what happens is about effects, where there are any."""
        if kind < 14 or not len(self.snapshot.effects):
            return super().happens(kind, one, two)
        if kind == 16:
            return events.Woke(unproven=("w-9",) if one == 8 else (), torn=one % 4 == 1)
        if kind in (14, 15, 17, 33):
            return super().happens(kind, one, two)
        rows = list(self.snapshot.effects)
        row = rows[two % len(rows)]
        if kind > 30:
            return self._people(row, one, two)
        return self._errand(kind, one, two)

    def _errand(self, kind: int, one: int, two: int) -> events.Event | None:
        wanted = errands.wanted(self.snapshot, self.now)
        open_ = list(self.snapshot.errands.values())
        if kind < 23 and wanted:
            effect, _ = wanted[two % len(wanted)]
            unit = errands.name_of(effect.id)
            return events.Grant(unit=unit, worker=WORKER, facts=GIVEN[one % len(GIVEN)])
        if not open_:
            return self.answered[two % len(self.answered)] if self.answered and one == 3 else None
        row = open_[two % len(open_)]
        unit = errands.name_of(row.effect)
        if kind == 30:
            return events.Raised(unit=unit, epoch=row.epoch, number=row.number, error="KeyError")
        if kind > 27 or row.stop is not None:
            began = one % 4 != 0
            return events.Gone(unit=unit, epoch=row.epoch, number=row.number, died=one % 2 == 0, began=began)
        table = {ErrandKind.SEND: SENT, ErrandKind.LOOK_UP: LOOKED, ErrandKind.CHECK: FOUND}[row.kind]
        said = Answer(decided=table[two % len(table)])
        answer = events.Returned(
            unit=unit,
            epoch=row.epoch,
            number=row.number,
            answer=said,
            slot=one % 2 == 0,
            late=one == 11,
            facts=GIVEN[one % len(GIVEN)],
        )
        self.answered.append(answer)
        return answer

    def _people(self, row: Effect, one: int, two: int) -> events.Event:
        if one < 4:
            reference = ("p1", None, None, "p3")[one]
            return events.Settle(by=ANNA, subject=row.id, reference=reference)
        who = (BO, CY)[two % 2]
        named = row.fingerprint if one != 11 else "f" * 64
        common: dict[str, Any] = {"by": who, "subject": row.id, "facts": facts(who)}
        if one == 4:
            return events.Deny(**common, fingerprint=named)
        if one == 5:
            return events.SendBack(**common, fingerprint=named, reason="shorter")
        if one == 6:
            return events.Revoke(**common)
        return events.Approve(**common, fingerprint=named)

    def _says(self, row: Try) -> tuple[Decided, ...]:
        return ITEM_SAYS if row.item else JOB_SAYS

    def decide(self, tentative: Snapshot, event: events.Event) -> Verdict:
        """The laws of effects hold of each entry."""
        verdict = super().decide(tentative, event)
        if isinstance(verdict, Entry):
            line = self.line(tentative, verdict)
            now = after(tentative, (verdict,), line.sequence, line.at)
            check_entry(tentative, now, verdict, line, self.owners)
        return verdict


def began(limited: bool, goes_on: bool) -> Line:
    """Line 1 of a job with tools."""
    contract = evolve(
        CONTRACT,
        effects=TOOLS,
        limits=Limits(usd="20", active_time=None, failures_in_a_row=5),
        on_unknown=OnUnknown.CONTINUE if goes_on else OnUnknown.HOLD,
    )
    return opening(*ITEMS, deadline=3000.0 if limited else None, contract=contract)


steps = st.lists(
    st.tuples(st.integers(0, 34), st.integers(0, 11), st.integers(0, 27)), min_size=1, max_size=2
)


@settings(max_examples=120, derandomize=True, deadline=None, database=None)
@given(st.lists(steps, min_size=1, max_size=60), st.booleans(), st.booleans())
def test_every_history_with_effects_keeps_the_law(
    turns: list[list[Step]], limited: bool, goes_on: bool
) -> None:
    """Recovery equals live, and no effect goes that may not."""
    first = began(limited, goes_on)
    history = Ledger(opened(first), [first])
    for turn in turns:
        history.turn(turn)

    assert history.snapshot == folded(history.lines)


def lived(seed: int) -> Ledger:
    """A long fixed history."""
    first = began(seed % 3 == 0, seed % 2 == 0)
    history = Ledger(opened(first), [first])
    number = seed + 1
    for _ in range(160):
        turn = []
        for _ in range(1 + number % 2):
            number = number * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407 & (2**64 - 1)
            turn.append(((number >> 36) % 35, (number >> 40) % 12, (number >> 46) % 28))
        history.turn(turn)
    assert history.snapshot == folded(history.lines)
    return history


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_long_histories_with_effects_keep_the_law(first: int) -> None:
    """What holds in every history holds in long ones, too."""
    told = sum(lived(seed).seen.total() for seed in range(first, first + 20))

    assert told > 20 * 20


def test_histories_reach_every_state_of_an_effect() -> None:
    """Each state is met, with sends after an absence, with holds and with people's words."""
    met: set[str] = set()
    for seed in range(60):
        for line in lived(seed).lines:
            for entry in line.entries:
                met |= {row.state.value for row in entry.changes.effects}
                met |= {f"held {row.hold.code}" for row in entry.changes.effects if row.hold is not None}
                met.add(f"{entry.transition} {entry.decision.choice}".partition(":")[0])

    assert {state.value for state in EffectState} <= met
    assert {"held unclear", "held conflict", "held names"} <= met
    assert {"effect sent", "effect sent again", "effect confirmed", "effect absent"} <= met
