"""A plain step, or a plain call, drawn up in one go: the same line, to the byte, as by all records; anything
else is left.

That they are the same is asked wherever one is drawn up, in any test (`conftest.onward_turns`).
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import effects_kit
import pytest
from attrs import evolve
from effects_kit import Ledger
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine_kit import Play, moment

from resumed.actors import onward, opened, targets
from resumed.actors.entry import JobEntry
from resumed.actors.onward import Onward
from resumed.actors.sends import Sends
from resumed.schemas import codec, decisions, events, keys
from resumed.schemas.job import Artifact, Budget, Next
from resumed.schemas.ledger import ERRAND
from resumed.schemas.snapshot import Snapshot
from resumed.store.layout import Layout

PREVIOUS = "f" * 64
Turns = list[tuple[Onward, Snapshot]]
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20).filter(
    lambda text: "u0000" not in text  # what might spell a NUL is left: see LEFT
)
TEXTS = WORDS.map(lambda text: codec.dump_plain(text).decode())


SENDS = Sends(cast(Any, None), lambda _: None, lambda *_: None)


def at_work() -> tuple[Play, JobEntry]:
    """A job whose first step is open."""
    play = Play.of("a", "b")
    play.start("")
    return play, JobEntry(id=play.snapshot.job.id, layout=Layout(Path("/nowhere")))


def answer(snapshot: Snapshot, step: str, state: dict[str, str]) -> events.Returned:
    """The open step's: on to `step`."""
    row = snapshot.tries[""]
    said = decisions.Answer(decided=decisions.GoTo(step=step), state=state)
    return events.Returned(unit="", epoch=row.epoch, number=row.number, answer=said)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ship", "open", "close"]),
            st.dictionaries(WORDS, TEXTS, max_size=3),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_one_step_after_the_other(onward_turns: Turns, steps: list[tuple[str, dict[str, str]]]) -> None:
    """To itself and to others, with any text in the state: each is drawn up, and the next stands on it."""
    play, entry = at_work()
    snapshot, before = play.snapshot, len(onward_turns)
    for step, state in steps:
        event = answer(snapshot, step, state)
        found = onward.draw(SENDS, entry, snapshot, event, PREVIOUS, play.now)
        assert found is not None
        snapshot = found[1]
        assert event.answer == entry.answers["", event.number]
    assert before + len(steps) == len(onward_turns)


ARTIFACT = Artifact(name="card", sha256="0" * 64, size=1)
LEFT: dict[str, dict[str, Any]] = {
    "no plain step": {"step": "nowhere"},
    "a NUL in the state": {"state": {"text": '"\\u0000"'}},
    "what might spell a NUL": {"state": {"text": codec.dump_plain("\\u0000").decode()}},
    "a name that is no text": {"state": {"\ud800": "1"}},
    "the position has outputs": {"position": {"outputs": (ARTIFACT,)}},
    "a permission with tools": {"step": "ship", "next": Next(step="open", allowed_tools=("t",))},
    "an instant has come": {"due": moment(0.0)},
}


@pytest.mark.parametrize("why", LEFT)
def test_anything_else_is_left(why: str, onward_turns: Turns) -> None:
    """Nothing is drawn up, and no answer is remembered, where more is to be considered."""
    play, entry = at_work()
    changed = dict(LEFT[why])
    step, state = changed.pop("step", "ship"), changed.pop("state", {"count": "1"})
    entry.next_due = changed.pop("due", None)
    for name in ("job", "position"):
        if name in changed:
            changed[name] = evolve(getattr(play.snapshot, name), **changed[name])
    snapshot = evolve(play.snapshot, **changed)

    assert onward.draw(SENDS, entry, snapshot, answer(snapshot, step, state), PREVIOUS, play.now) is None
    assert ({}, []) == (entry.answers, onward_turns)


@pytest.mark.parametrize("seconds", [1.0, 36_000.0])
@pytest.mark.parametrize("budget", [Budget(), Budget(active_seconds=20.0), Budget(deadline=moment(90.0))])
def test_a_limit_of_time_is_looked_at_when_it_comes(
    seconds: float, budget: Budget, onward_turns: Turns
) -> None:
    """Whichever comes first: the end of the try, a deadline, or the last of the job's active time."""
    play, entry = at_work()
    job = evolve(play.snapshot.job, deadline=moment(3600.0 + seconds))
    snapshot = evolve(play.snapshot, job=job, budget=budget)

    found = onward.draw(SENDS, entry, snapshot, answer(snapshot, "ship", {}), PREVIOUS, play.now)
    assert found is not None
    assert [found] == onward_turns


class Workshop:
    """Writes down what is begun and ended."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.sends: Any = SimpleNamespace(settle=lambda *_: None, claim=lambda *_: False)

    def run(self, entry: JobEntry, snapshot: Snapshot, unit: str) -> None:
        row = opened.row(snapshot, unit)
        assert row is not None
        number = row.number
        entry.running[unit, number] = "w"
        self.did.append(f"run {unit}{number}")

    def ended(self, entry: JobEntry, unit: str, number: int) -> None:
        del entry.running[unit, number]
        self.did.append(f"ended {unit}{number}")


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("running", [(), ("1",), ("2",), ("1", "2")])
def test_it_begins_and_ends_what_the_long_way_does(running: tuple[str, ...], long: bool) -> None:
    """Whatever is in the entry's hands: the open try runs, once, and no other is held."""
    play, entry = at_work()
    play.tell(answer(play.snapshot, "ship", {}))
    row = play.snapshot.tries[""]
    for number in running:
        entry.running["", int(number)] = "w"
    if long:
        entry.stopping.add(("", 9))
    workshop = Workshop()
    house = cast(Any, SimpleNamespace(workshop=workshop, draining=False))

    assert not onward.go_on(house, entry, play.snapshot, row, play.now)
    assert {("", row.number): "w"} == entry.running
    ran, ended = [f"run {row.number}"], ["ended 1"]
    assert workshop.did == (ran if "2" not in running else []) + (ended if "1" in running else [])
    workshop.did.clear()
    assert not onward.go_on(house, entry, play.snapshot, row, play.now)
    assert [] == workshop.did


# ---- calls ------------------------------------------------------------------------------------------------

TOOL = evolve(effects_kit.TOOL, tool="cms.publish")
OTHER = evolve(TOOL, tool="cms.remove", version=2, address="", account="")


def with_tools() -> tuple[Ledger, JobEntry, Sends]:
    """A job whose first step is open in a worker that does one thing at a time, and its house's sends."""
    play = Ledger.of(contract=evolve(effects_kit.contract(TOOL, OTHER), slots=1))
    assert isinstance(play, Ledger)
    play.start("")
    entry = JobEntry(id=play.snapshot.job.id, layout=Layout(Path("/nowhere")))
    return play, entry, Sends(cast(Any, None), lambda _: None, lambda *_: None)


def asks(snapshot: Snapshot, *calls: decisions.Call, then: str = "close", **more: Any) -> events.Returned:
    """The open step's answer: these calls, and on to `then`."""
    row, state = snapshot.tries[""], more.pop("state", {})
    said = decisions.Answer(decided=decisions.Performing(calls=calls, then=then, **more), state=state)
    return events.Returned(unit="", epoch=row.epoch, number=row.number, answer=said, facts=effects_kit.FACTS)


def landed(snapshot: Snapshot, reference: str) -> events.Returned:
    """The open errand's answer."""
    (row,) = snapshot.errands.values()
    said = decisions.Answer(decided=decisions.Landed(reference=reference))
    return events.Returned(unit=ERRAND + row.effect, epoch=row.epoch, number=row.number, answer=said)


CALLED = st.builds(
    decisions.Call,
    tool=st.sampled_from(["cms.publish", "cms.remove"]),
    arguments=TEXTS.map(lambda text: keys.canonical({"page": json.loads(text)})),
    unbound=st.sampled_from(["{}", '{"note":1}']),
    business_object=WORDS,
    expected_result=WORDS,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            CALLED,
            st.sampled_from(["ship", "open", "close"]),
            st.sampled_from(["", "open"]),
            st.dictionaries(WORDS, TEXTS, max_size=2),
            WORDS,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_one_call_after_the_other(onward_turns: Turns, calls: list[Any]) -> None:
    """Of any tool, with any text: each is drawn up twice, asked for and landed, and the next stands on it.
    Its place at its target is taken with its line, and given back once its end is in force."""
    play, entry, sends = with_tools()
    house = cast(Any, SimpleNamespace(workshop=Workshop(), draining=False))
    house.workshop.sends = sends
    snapshot, before = play.snapshot, len(onward_turns)
    entry.running["", snapshot.tries[""].number] = "w"
    for call, then, other, state, reference in calls:
        event = asks(snapshot, call, then=then, otherwise=other, back=other, state=state)
        found = onward.draw(sends, entry, snapshot, event, PREVIOUS, play.now)
        assert found is not None
        line, snapshot = found
        assert event.answer == entry.answers[event.unit, event.number]
        (key,) = sends.targets.kept(entry.id)
        assert not onward.go_on(house, entry, snapshot, line.row, play.now)
        assert ({key[1:]: "w"}, [key]) == (entry.running, sends.targets.kept(entry.id))

        event = landed(snapshot, reference)
        found = onward.draw(sends, entry, snapshot, event, PREVIOUS, play.now)
        assert found is not None
        line, snapshot = found
        assert event.answer == entry.answers[event.unit, event.number]
        assert not onward.go_on(house, entry, snapshot, line.row, play.now)
        assert ({("", snapshot.tries[""].number): "w"}, []) == (entry.running, sends.targets.kept(entry.id))
        assert entry.id not in sends.targets
    assert before + 2 * len(calls) == len(onward_turns)
    ran = [did.split()[0] for did in house.workshop.did]
    assert ran == ["run", "ended"] * 2 * len(calls)


@pytest.mark.parametrize("unsettled", [False, True])
def test_where_its_target_has_no_room_the_law_says_what_becomes_of_it(
    unsettled: bool, onward_turns: Turns
) -> None:
    """Nothing is drawn up, no place is taken, and no answer remembered; also while an instant has come."""
    play, entry, sends = with_tools()
    event = asks(play.snapshot, effects_kit.call())
    if unsettled:
        entry.next_due = moment(0.0)
    else:
        sends.targets.take(("another", "its", 1), targets.of(TOOL))

    assert onward.draw(sends, entry, play.snapshot, event, PREVIOUS, play.now) is None
    assert ({}, [], []) == (entry.answers, onward_turns, sends.targets.kept(entry.id))


NO_LINE: dict[str, dict[str, Any]] = {
    "a NUL in the arguments": {"arguments": '{"page":"\\u0000"}'},
    "what might spell a NUL": {"business_object": "\\u0000"},
    "a name that is no text": {"business_object": "\ud800"},
}


@pytest.mark.parametrize("why", NO_LINE)
def test_a_call_that_cannot_be_spelled_so_is_left(why: str, onward_turns: Turns) -> None:
    """The records say what is wrong, or spell it; a place that was not taken needs not be given back."""
    play, entry, sends = with_tools()
    event = asks(play.snapshot, evolve(effects_kit.call(), **NO_LINE[why]))

    assert onward.draw(sends, entry, play.snapshot, event, PREVIOUS, play.now) is None
    assert ({}, [], []) == (entry.answers, onward_turns, sends.targets.kept(entry.id))


def test_a_call_after_failures_is_left(onward_turns: Turns) -> None:
    """A position that has more to say than usual is spelled by its record."""
    play, entry, sends = with_tools()
    for changes in ({"failures": 1}, {"data": '{"a":1}'}, {"outputs": (ARTIFACT,)}):
        snapshot = evolve(play.snapshot, position=evolve(play.snapshot.position, **changes))
        event = asks(snapshot, effects_kit.call())
        assert onward.draw(sends, entry, snapshot, event, PREVIOUS, play.now) is None
    assert ([], []) == (onward_turns, sends.targets.kept(entry.id))


def test_an_answer_of_any_other_kind_is_left() -> None:
    """Neither a step that goes on, nor a call, nor a landing."""
    play, entry, sends = with_tools()
    row = play.snapshot.tries[""]
    said = decisions.Answer(decided=decisions.Finished())
    event = events.Returned(unit="", epoch=row.epoch, number=row.number, answer=said)
    assert onward.draw(sends, entry, play.snapshot, event, PREVIOUS, play.now) is None
