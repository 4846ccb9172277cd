"""The plain call: asked for and landed in two turns, as the law says; all else is left to the law."""

from typing import Any

import pytest
from attrs import evolve
from effects_kit import CALL, FACTS, TOOL, Ledger, call, contract
from effects_kit import RULE as ASKED
from machine_kit import moment

from resumed.actors.machine import plaincall
from resumed.actors.machine.transition import at_large
from resumed.schemas import decisions, events
from resumed.schemas.decisions import Answer, Landed, Performing
from resumed.schemas.job import Artifact, Breaker, Budget, Hold, Mark, Source, StopReason
from resumed.schemas.ledger import ERRAND, EffectState, ErrandKind, Performance
from resumed.schemas.snapshot import Entry

OTHER = evolve(TOOL, tool="cms.remove")


def at_work() -> Ledger:
    """A job whose first step runs, in a worker that does one thing at a time."""
    play = Ledger.of(contract=evolve(contract(TOOL, OTHER), slots=1))
    assert isinstance(play, Ledger)
    play.start("")
    return play


def asking(play: Ledger, *calls: decisions.Call, **more: Any) -> events.Returned:
    """The answer of its open step: one call, and on to `then`."""
    row = play.snapshot.tries[""]
    decided = Performing(calls=calls or (call(),), **{"then": "close", **more})
    answer = Answer(decided=decided, state={"count": "1"})
    return events.Returned(unit="", epoch=row.epoch, number=row.number, answer=answer, facts=FACTS)


def landing(play: Ledger, reference: str = "p1") -> events.Returned:
    """The answer of its open errand: it has landed."""
    (row,) = play.snapshot.errands.values()
    answer = Answer(decided=Landed(reference=reference))
    return events.Returned(unit=ERRAND + row.effect, epoch=row.epoch, number=row.number, answer=answer)


CALLS: dict[str, dict[str, Any]] = {
    "to another step": {"then": "close"},
    "to itself": {"then": "open"},
    "told of other outcomes": {"otherwise": "ship"},
    "sent back": {"back": "open", "otherwise": "open"},
}
MORE: dict[str, dict[str, Any]] = {
    "bare": {},
    "with what does not bind": {"unbound": '{"note":"x"}'},
    "with its object and result": {"business_object": "page-7", "expected_result": "it is there"},
    "of another tool": {"tool": "cms.remove"},
}


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.parametrize("more", MORE)
def test_a_plain_call_is_what_the_law_says(way: str, more: str, plain_calls: list[Entry]) -> None:
    """Three calls one after the other, each asked for and landed: the same entries, to the last field."""
    play = at_work()
    for number in range(3):
        event = asking(play, call(str(number), **MORE[more]), **CALLS[way])
        found = plaincall.step(play.snapshot, event, play.now)
        assert found is not None
        assert found == at_large(play.snapshot, event, play.now)
        play.tell(event)
        assert [EffectState.DISPATCHING] == [row.state for row in play.snapshot.effects.open()]

        event = landing(play, f"p{number}")
        found = plaincall.step(play.snapshot, event, play.now)
        assert found is not None
        assert found == at_large(play.snapshot, event, play.now)
        play.tell(event)
        assert [] == play.snapshot.effects.open()
        assert f"p{number}" == next(reversed(list(play.snapshot.effects))).reference
    assert len(plain_calls) >= 12


MARK = Mark(by="uid:1000 anna", at=moment(1.0))
BODY = decisions.Offer(name="card", sha256="0" * 64, size=0)
NO_CALL: dict[str, dict[str, Any]] = {
    "another decision": {"decided": decisions.Finished()},
    "two calls": {"calls": (call("1"), call("2"))},
    "no call": {"calls": ()},
    "no step follows": {"then": ""},
    "no such step": {"then": "nowhere"},
    "a step of each item": {"otherwise": "read"},
    "back to no step": {"back": "nowhere"},
    "it brings bytes": {"calls": (call(bodies=(BODY,)),)},
    "it is shown": {"calls": (call(shown=BODY),)},
    "it relies on a source": {"calls": (call(sources=(Source(path="/a"),)),)},
    "its target was observed": {"calls": (call(observed="7"),)},
    "no such tool": {"calls": (call(tool="cms.other"),)},
    "arguments that are no JSON": {"calls": (evolve(call(), arguments="{"),)},
    "what does not bind is no JSON": {"calls": (call(unbound="{"),)},
    "it spent something": {"used": Budget(tokens=1)},
    "its state is no JSON": {"state": {"count": "one"}},
    "no slot": {"slot": False},
    "late": {"late": True},
    "another try": {"number": 7},
    "another epoch": {"epoch": 7},
    "bytes were kept": {"kept": (Artifact(name="card", sha256="0" * 64, size=1),)},
    "nobody was asked who may": {"facts": None},
    "nobody could say who may": {"facts": evolve(FACTS, problem="names")},
    "its requester may not": {"facts": evolve(FACTS, requester=False)},
    "nobody can tell of its requester": {"facts": evolve(FACTS, requester=None)},
    "somebody is asked": {"tool": {"approve": ASKED}},
    "somebody is asked of some": {"tool": {"approve": evolve(ASKED, when="page >= 5")}},
    "it is observed": {"tool": {"observe": True}},
    "it is looked up first": {"tool": {"check_first": True}},
    "none at once": {"tool": {"at_once": 0}},
    "held": {"hold": Hold(code="x", reason="y", owner="anna", since=moment())},
    "paused": {"pause": MARK},
    "canceled": {"cancel": MARK},
    "expired": {"expiry": MARK},
    "failures in a row": {"breaker": Breaker(key="k", reason="r", waits=1)},
    "no clocks on record": {"clocks": None},
    "at its limit": {"budget": Budget(active_seconds=0.0)},
    "past its deadline": {"budget": Budget(deadline=moment(-1.0))},
    "stopped": {"stop": StopReason.PAUSE},
    "begun again": {"position": {"begun": 1}},
    "a line was lost": {"position": {"torn": True}},
    "several slots": {"slots": 2},
}
_OF_ANSWER, _OF_EVENT = ("decided", "used", "state"), ("slot", "late", "number", "epoch", "kept", "facts")


def changed(play: Ledger, event: events.Returned, changes: dict[str, Any]) -> events.Returned:
    """The event, and in the play the job, with these differences."""
    for name, value in changes.items():
        snapshot = play.snapshot
        decided = event.answer.decided
        if name in _OF_ANSWER:
            event = evolve(event, answer=evolve(event.answer, **{name: value}))
        elif name in _OF_EVENT:
            event = evolve(event, **{name: value})
        elif name in ("calls", "then", "otherwise", "back", "response"):
            event = evolve(event, answer=evolve(event.answer, decided=evolve(decided, **{name: value})))
        elif name == "stop":
            rows = {unit: evolve(row, stop=value) for unit, row in snapshot.tries.items()}
            play.snapshot = evolve(snapshot, tries=rows)
        elif name == "position":
            play.snapshot = evolve(snapshot, position=evolve(snapshot.position, **value))
        elif name == "effect":
            row = evolve(snapshot.effects[CALL], **value)
            play.snapshot = evolve(snapshot, effects=snapshot.effects.put((row,)))
        elif name == "errand":
            rows_of = {CALL: evolve(snapshot.errands[CALL], **value)}
            play.snapshot = evolve(snapshot, errands=rows_of)
        elif name == "performance":
            given = evolve(snapshot.performances[""], **value)
            play.snapshot = evolve(snapshot, performances={"": given})
        elif name == "tool":
            agreed = evolve(snapshot.contract, effects=(evolve(TOOL, **value), OTHER))
            play.snapshot = evolve(snapshot, contract=agreed)
        elif name == "slots":
            play.snapshot = evolve(snapshot, contract=evolve(snapshot.contract, slots=value))
        else:
            play.snapshot = evolve(snapshot, **{name: value})
    return event


@pytest.mark.parametrize("why", NO_CALL)
def test_any_other_call_is_the_laws(why: str) -> None:
    """Whatever else there is to be considered, of the answer, the tool or the job, it is left."""
    play = at_work()
    event = changed(play, asking(play), NO_CALL[why])

    assert plaincall.step(play.snapshot, event, play.now) is None


def test_a_second_call_of_one_occurrence_is_the_laws() -> None:
    """What its step asked for before, it may ask for again: the law finds the row."""
    play = at_work()
    play.tell(asking(play))
    (row,) = play.snapshot.effects
    for state in (EffectState.WITHDRAWN, EffectState.CONFIRMED, EffectState.REJECTED):
        again = at_work()
        table = again.snapshot.effects.put((evolve(row, state=state),))
        again.snapshot = evolve(again.snapshot, effects=table)
        for tool in ("cms.publish", "cms.remove"):
            event = asking(again, call(tool=tool))
            assert plaincall.step(again.snapshot, event, again.now) is None


NO_LANDING: dict[str, dict[str, Any]] = {
    "refused": {"decided": decisions.Refused(reason="no")},
    "not sent": {"decided": decisions.NotSent(reason="no")},
    "with the target's words": {"response": BODY},
    "it spent something": {"used": Budget(tokens=1)},
    "with a state": {"state": {"count": "1"}},
    "no slot": {"slot": False},
    "late": {"late": True},
    "another errand": {"number": 7},
    "another epoch": {"epoch": 7},
    "bytes were kept": {"kept": (Artifact(name="card", sha256="0" * 64, size=1),)},
    "with facts": {"facts": FACTS},
    "told to stop": {"errand": {"stop": StopReason.SHUTDOWN}},
    "it was looked up": {"errand": {"kind": ErrandKind.LOOK_UP}},
    "unknown": {"effect": {"state": EffectState.UNKNOWN}},
    "settled by a person": {"effect": {"state": EffectState.WITHDRAWN}},
    "another's lay there": {"effect": {"foreign": "p1"}},
    "an earlier send may have landed": {"effect": {"unproven": True}},
    "a person must say": {"effect": {"hold": Hold(code="x", reason="y", owner="anna", since=moment())}},
    "of an item": {"effect": {"item": "a"}},
    "an old row": {"effect": {"proposed": None}},
    "two were asked for": {"performance": {"effects": (CALL, "job/cms.publish/1.1")}},
    "given already": {"performance": {"over": True, "led": 2}},
    "left behind": {"performance": {"occurrence": 7}},
    "nothing follows": {"performance": {"then": ""}},
    "no such step": {"performance": {"then": "nowhere"}},
    "asked by nobody": {"performances": {}},
    "asked by an item": {
        "performances": {"a": Performance(unit="a", step="read", occurrence=1, effects=(CALL,))}
    },
    "a note": {"position": {"note": "again"}},
    "with data": {"position": {"data": '{"a":1}'}},
    "deaths": {"position": {"crashes": 1}},
    "held": {"hold": Hold(code="x", reason="y", owner="anna", since=moment())},
    "paused": {"pause": MARK},
    "canceled": {"cancel": MARK},
    "failures in a row": {"breaker": Breaker(key="k", reason="r", waits=1)},
    "at its limit": {"budget": Budget(active_seconds=0.0)},
    "past its deadline": {"budget": Budget(deadline=moment(-1.0))},
    "no clocks on record": {"clocks": None},
    "several slots": {"slots": 2},
}


@pytest.mark.parametrize("why", NO_LANDING)
def test_any_other_landing_is_the_laws(why: str) -> None:
    """The same of what a worker says that was sent."""
    play = at_work()
    play.tell(asking(play))
    assert plaincall.step(play.snapshot, landing(play), play.now) is not None
    event = changed(play, landing(play), NO_LANDING[why])

    assert plaincall.step(play.snapshot, event, play.now) is None
