"""Histories by chance of jobs that anything may have befallen: wherever a quick way answers, the long way
says the same (`both_ways`), and it does answer.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve
from effects_kit import FACTS, RULE, TOOL, Ledger, contract
from machine_kit import BOOT, NEXT_BOOT, moment

from resumed.actors import onward
from resumed.actors.entry import JobEntry
from resumed.actors.machine import plain, plaincall
from resumed.actors.sends import Sends
from resumed.schemas import decisions, events
from resumed.schemas.decisions import Answer, Call, GoTo, Landed, Performing
from resumed.schemas.instant import Instant, later
from resumed.schemas.job import (
    Artifact,
    Attempt,
    Breaker,
    Budget,
    Clocks,
    Each,
    Hold,
    ItemState,
    Mark,
    Next,
    StopReason,
    Try,
)
from resumed.schemas.ledger import ERRAND, Effect, EffectState, Errand, ErrandKind, Performance
from resumed.schemas.snapshot import Snapshot
from resumed.store.layout import Layout

SEEDS = 12
HISTORIES = 600
"""Of each seed; each takes up to five turns."""
OTHER = evolve(TOOL, tool="cms.remove", version=2, address="", account="", at_once=3)
CARD = Artifact(name="card", sha256="0" * 64, size=1)
MARK = Mark(by="anna", at=moment())
Chance = random.Random
Tweak = Callable[[Snapshot, Chance], Snapshot]


def held(chance: Chance) -> Hold:
    """By one reason or another."""
    code = chance.choice(["effect_unknown", "x", "clock", "budget"])
    return Hold(code=code, reason="r", owner="anna", since=moment())


def effect(name: str, chance: Chance, **more: Any) -> Effect:
    """A row of that id, in any state."""
    made: dict[str, Any] = {
        "id": name,
        "state": chance.choice(list(EffectState)),
        "item": "",
        "business_object": "",
        "operation_key": "k",
        "fingerprint": "f",
        "tool": "cms.publish",
        "target": "cms",
        "arguments": "{}",
        "proposed": moment(),
    }
    return Effect(**(made | more))


def of_position(snapshot: Snapshot, chance: Chance) -> Snapshot:
    changes: dict[str, Any] = chance.choice(
        [
            {"output": CARD},
            {"outputs": (CARD,)},
            {"failures": 2},
            {"publishes": 3},
            {"inputs": '{"x":1}'},
            {"note": "again"},
            {"not_before": moment(9)},
            {"code": "x", "reason": "y"},
            {"crashes": chance.choice([1, 5])},
            {"begun": 1},
            {"torn": True},
            {"ended": moment(1)},
            {"started": None},
            {"data": '{"a":1}'},
            {"state": chance.choice(list(ItemState))},
        ]
    )
    return evolve(snapshot, position=evolve(snapshot.position, **changes))


def of_rows(snapshot: Snapshot, chance: Chance) -> Snapshot:
    """Something of what is open is otherwise."""
    kind = chance.randrange(3)
    if kind == 0 and snapshot.tries:
        name, row = chance.choice(list(snapshot.tries.items()))
        how: dict[str, Any] = chance.choice([{"stop": StopReason.PAUSE}, {"compares": True}, {"number": 7}])
        return evolve(snapshot, tries={**snapshot.tries, name: evolve(row, **how)})
    if kind == 1 and snapshot.errands:
        name, errand = chance.choice(list(snapshot.errands.items()))
        how = chance.choice([{"stop": StopReason.CANCEL}, {"kind": ErrandKind.LOOK_UP}, {"number": 3}])
        return evolve(snapshot, errands={**snapshot.errands, name: evolve(errand, **how)})
    if len(snapshot.effects):
        row_of = chance.choice(list(snapshot.effects))
        how = chance.choice(
            [
                {"state": chance.choice(list(EffectState))},
                {"unproven": True},
                {"suspect": True},
                {"foreign": "p1"},
                {"found": "p1"},
                {"hold": held(chance)},
                {"errands": 3, "dispatches": 2, "first_dispatch": moment(-5)},
                {"look_ups": 2},
                {"since": moment(-3)},
                {"item": "a"},
                {"proposed": None},
                {"expected_result": "x", "version": 2, "unbound": '{"n":1}'},
            ]
        )
        return evolve(snapshot, effects=snapshot.effects.put((evolve(row_of, **how),)))
    return snapshot


def of_others(snapshot: Snapshot, chance: Chance) -> Snapshot:
    """Items, and the job's own earlier steps, have something under way or behind them."""
    kind = chance.randrange(6)
    if kind == 0:
        names = ["job/cms.publish/1.0", "job/cms.remove/1.0", "a/cms.publish/1.0", "job/cms.remove/2.0"]
        name = chance.choice(names)
        rows = (effect(name, chance, item=chance.choice(["", "a", "job"])),)
        return evolve(snapshot, effects=snapshot.effects.put(rows))
    if kind == 1:
        unit = chance.choice(["a", "job", ""])
        row = Performance(
            unit=unit,
            step="open",
            occurrence=1,
            effects=chance.choice([(), ("job/cms.publish/1.0",)]),
            then=chance.choice(["", "ship"]),
            over=chance.choice([True, False]),
            led=chance.choice([0, 1, 2]),
        )
        return evolve(snapshot, performances={**snapshot.performances, unit: row})
    if kind == 2:
        open_ = Try(
            epoch=snapshot.epoch,
            item="a",
            number=1,
            step="read",
            occurrence=1,
            started=moment(),
            until=moment(100),
            worker="w2",
        )
        return evolve(snapshot, tries={**snapshot.tries, "a": open_})
    if kind == 3:
        name = "a/cms.publish/1.0"
        state = chance.choice([EffectState.DISPATCHING, EffectState.CONFIRMED])
        sent = effect(name, chance, item="a", state=state, errands=1, dispatches=1, first_dispatch=moment())
        errand = Errand(
            effect=name,
            kind=chance.choice(list(ErrandKind)),
            epoch=snapshot.epoch,
            number=1,
            started=moment(),
            until=moment(50),
            worker="w3",
        )
        table = snapshot.effects.put((sent,))
        return evolve(snapshot, effects=table, errands={**snapshot.errands, name: errand})
    if kind == 4:
        rows = (effect("a/cms.remove/1.0", chance, item="a", hold=held(chance)),)
        return evolve(snapshot, effects=snapshot.effects.put(rows))
    return evolve(snapshot, each=Each(start="read", then="close"))


def of_contract(snapshot: Snapshot, chance: Chance) -> Snapshot:
    effects = chance.choice(
        [
            (TOOL,),
            (OTHER, TOOL),
            (evolve(TOOL, version=1, timeout=chance.choice([0.5, 1e9, 1e13])), OTHER),
            (evolve(TOOL, approve=RULE), OTHER),
            (evolve(TOOL, approve=evolve(RULE, when="page >= 5")), OTHER),
            (evolve(TOOL, check_first=True), OTHER),
            (evolve(TOOL, observe=True), OTHER),
            (evolve(TOOL, at_once=0), OTHER),
        ]
    )
    slots = chance.choice([1, 1, 1, 2])
    return evolve(snapshot, contract=evolve(snapshot.contract, effects=effects, slots=slots))


def of_time(snapshot: Snapshot, chance: Chance) -> Snapshot:
    """Clocks, deadlines, and when the job was last heard of."""
    kind = chance.randrange(3)
    if kind == 0:
        clocks = [
            None,
            Clocks(known=moment(), accepted=True),
            Clocks(known=moment(0, NEXT_BOOT)),
            Clocks(known=moment(), floor=True),
            Clocks(known=Instant(wall=moment().wall + 9_000_000, boot=BOOT, up=moment().up)),
            Clocks(known=moment(), jumped=moment(1)),
        ]
        return evolve(snapshot, clocks=chance.choice(clocks))
    if kind == 1:
        deadline = chance.choice([None, moment(-1), moment(20), moment(1e6)])
        return evolve(snapshot, job=evolve(snapshot.job, deadline=deadline))
    return evolve(snapshot, newest=chance.choice([moment(100), moment(-100)]))


def of_limits(snapshot: Snapshot, chance: Chance) -> Snapshot:
    most = Budget(
        active_seconds=chance.choice([None, 0.0, 5.0, 1e6]),
        deadline=chance.choice([None, moment(-1), moment(50)]),
        tokens=chance.choice([None, 5]),
        usd=chance.choice([None, "1"]),
    )
    used = Budget(tokens=chance.choice([None, 1, 5]), usd=chance.choice([None, "0.5", "2"]))
    return evolve(snapshot, budget=most, used=used)


def of_job(snapshot: Snapshot, chance: Chance) -> Snapshot:
    """Whatever holds, ends or hinders it, and what it keeps."""
    changes: dict[str, Any] = chance.choice(
        [
            {chance.choice(["pause", "cancel", "expiry"]): MARK},
            {"hold": held(chance)},
            {"breaker": Breaker(key="k", reason="r", waits=chance.choice([0, 1]))},
            {"next": chance.choice([Next(step="ship"), Next(step="open", preconditions=("x",))])},
            {"next": Next(step="open", allowed_tools=("t",))},
            {"state": {"count": "0", "z": "1"}},
            {"attempt": chance.choice([None, Attempt(epoch=snapshot.epoch, opened=moment(-1000))])},
            {"epoch": 5},
            {"sequence": 9},
        ]
    )
    return evolve(snapshot, **changes)


TWEAKS: tuple[Tweak, ...] = (
    *(of_position, of_rows, of_others, of_contract),
    *(of_time, of_limits, of_job),
)


def told(event: events.Returned, chance: Chance) -> events.Returned:
    """Now and then it comes otherwise than it should."""
    odd: list[dict[str, Any]] = [
        {"slot": False},
        {"late": True},
        {"number": 7},
        {"facts": None},
        {"facts": evolve(FACTS, requester=None)},
        {"facts": evolve(FACTS, problem="names")},
        {"answer": evolve(event.answer, used=Budget(tokens=3))},
        {"kept": (CARD,)},
        {"output": CARD},
        {"unit": chance.choice(["a", "", event.unit.removeprefix(ERRAND)])},
    ]
    return evolve(event, **chance.choice(odd)) if chance.random() < 0.15 else event


def asking(snapshot: Snapshot, chance: Chance) -> events.Returned:
    """The step's answer: one call."""
    texts = ['{"page":"7"}', '{"page":1.5}', '{"page":1e16}', "{}", '{"p":"\u00e9"}', "{", '{"page":1}']
    call = Call(
        tool=chance.choice(["cms.publish", "cms.publish", "cms.remove", "cms.none"]),
        arguments=chance.choice(texts),
        unbound=chance.choice(["{}", '{"n":1}', "{"]),
        business_object=chance.choice(["", "page"]),
        expected_result=chance.choice(["", "there"]),
    )
    decided = Performing(
        calls=(call,),
        then=chance.choice(["open", "ship", "close", "", "read"]),
        otherwise=chance.choice(["", "", "open"]),
        back=chance.choice(["", "", "ship"]),
    )
    state = chance.choice([{}, {"count": "1"}, {"t": '"\u00e9"'}, {"t": "{"}])
    return of_step(snapshot, Answer(decided=decided, state=state))


def of_step(snapshot: Snapshot, answer: Answer) -> events.Returned:
    """The answer of the open step."""
    row = snapshot.tries.get("")
    epoch, number = (row.epoch, row.number) if row is not None else (1, 1)
    facts = FACTS if isinstance(answer.decided, Performing) else None
    return events.Returned(unit="", epoch=epoch, number=number, answer=answer, facts=facts)


def answers(snapshot: Snapshot, chance: Chance) -> list[events.Returned]:
    """What could be heard now."""
    step = chance.choice(["open", "ship", "close", "read"])
    found = [asking(snapshot, chance), of_step(snapshot, Answer(decided=GoTo(step=step)))]
    for row in snapshot.errands.values():
        decided: decisions.Decided = Landed(reference=chance.choice(["", "p1", "\u00e9"]))
        if chance.random() < 0.2:
            decided = decisions.Refused(reason="no")
        answer = Answer(decided=decided, state=chance.choice([{}, {}, {}, {"a": "1"}]))
        name = ERRAND + row.effect
        found.append(events.Returned(unit=name, epoch=row.epoch, number=row.number, answer=answer))
    return [told(event, chance) for event in found]


def moved(now: Instant, chance: Chance) -> Instant:
    """A little later, or what a clock may show that was set."""
    wall = now.wall + chance.choice([1, 3_000_000, -9_000_000])
    return chance.choice([now, later(now, 1.5), later(now, 3600.0), Instant(wall=wall, boot=BOOT, up=now.up)])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_befell_the_job_both_ways_say_the_same(seed: int, onward_turns: list[onward.Turn]) -> None:
    """Turn after turn, with anything changed in between: the entry, the line, and what follows from it; a
    place is kept exactly for what is let go."""
    chance = Chance(seed)
    kinds: dict[str, int] = {}
    for _ in range(HISTORIES):
        play = Ledger.of("a", "job", contract=evolve(contract(TOOL, OTHER), slots=1))
        play.start("")
        snapshot, now = play.snapshot, play.now
        for _ in range(chance.choice([1, 2, 3, 5])):
            for _ in range(chance.choice([0, 0, 0, 1, 1, 2])):
                snapshot = chance.choice(TWEAKS)(snapshot, chance)
            now = moved(now, chance) if chance.random() < 0.3 else now
            for event in answers(snapshot, chance):
                plain.step(snapshot, event, now)
                plaincall.step(snapshot, event, now)
                sends = Sends(cast(Any, None), lambda _: None, lambda *_: None)
                entry = JobEntry(id=snapshot.job.id, layout=Layout(Path("/nowhere")))
                found = onward.draw(sends, entry, snapshot, event, "f" * 64, now)
                goes = found is not None and isinstance(found[0].row, Errand)
                assert goes == bool(sends.targets.kept(entry.id))
                if found is not None:
                    snapshot = found[1]
                    kind = type(event.answer.decided).__name__
                    kinds[kind] = kinds.get(kind, 0) + 1
    assert min(kinds.get(kind, 0) for kind in ("GoTo", "Performing", "Landed")) > 10, kinds
    assert len(onward_turns) == sum(kinds.values())
