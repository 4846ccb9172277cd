"""A plain step drawn up in one go: the same line, to the byte, as by all records; anything else is left.

That they are the same is asked wherever one is drawn up, in any test (`conftest.onward_turns`).
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine_kit import Play, moment

from resumed.actors import onward
from resumed.actors.entry import JobEntry
from resumed.actors.onward import Onward
from resumed.schemas import codec, decisions, events, frames
from resumed.schemas.job import Artifact, Budget, Item, Next, Reader
from resumed.schemas.snapshot import Snapshot
from resumed.store.layout import Layout

PREVIOUS = "f" * 64
Turns = list[tuple[Onward, Snapshot]]
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20).filter(
    lambda text: "u0000" not in text  # what might spell a NUL is left: see LEFT
)
TEXTS = WORDS.map(lambda text: codec.dump_plain(text).decode())


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
        found = onward.draw(entry, snapshot, event, PREVIOUS, play.now)
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

    assert onward.draw(entry, snapshot, answer(snapshot, step, state), PREVIOUS, play.now) is None
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

    found = onward.draw(entry, snapshot, answer(snapshot, "ship", {}), PREVIOUS, play.now)
    assert found is not None
    assert [found] == onward_turns


class Workshop:
    """Writes down what is begun and ended."""

    def __init__(self, concerned: bool = False) -> None:
        self.did: list[str] = []
        self.sends = SimpleNamespace(
            concern=lambda _: concerned, settle=lambda *_: None, claim=lambda *_: False
        )

    def run(self, entry: JobEntry, snapshot: Snapshot, unit: str) -> None:
        number = snapshot.tries[unit].number
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
    workshop = Workshop(concerned=long)
    house = cast(Any, SimpleNamespace(workshop=workshop, draining=False))

    assert not onward.go_on(house, entry, play.snapshot, row, play.now)
    assert {("", row.number): "w"} == entry.running
    ran, ended = [f"run {row.number}"], ["ended 1"]
    assert workshop.did == (ran if "2" not in running else []) + (ended if "1" in running else [])
    workshop.did.clear()
    assert not onward.go_on(house, entry, play.snapshot, row, play.now)
    assert [] == workshop.did


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "attempt": st.integers(0, 3),
    "interrupted": st.booleans(),
    "inputs": st.sampled_from(["{}", '{"year":1820}']),
    "state": st.dictionaries(WORDS, WORDS, max_size=2),
    "objective": WORDS,
    "labels": st.dictionaries(WORDS, WORDS, max_size=2),
    "credentials": st.sampled_from(["", "/run/credentials"]),
}
SELDOM: dict[str, Any] = {
    "kept": "/kept",
    "key": "k",
    "artifacts": "/artifacts",
    "outputs": (ARTIFACT,),
    "row": Item(id="a", ordinal=0),
    "items": (Item(id="a", ordinal=0),),
    "items_glob": "*",
    "items_from": "lines",
    "items_file": "/list",
    "reader": Reader(uid=1, gid=1),
    "compare": True,
    "through": 1,
    "given": frames.Given(answer="yes"),
}


def run(**other: Any) -> frames.Run:
    """A frame that starts a step."""
    return frames.Run(
        job="harbour", epoch=1, item="", number=2, step="ship", occurrence=3, log="/l", scratch="/s", **other
    )


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.fixed_dictionaries({}, optional=FIELDS))
def test_a_plain_run_is_written_as_by_the_converter(
    plain_runs: list[frames.Run], other: dict[str, Any]
) -> None:
    """What is written is read as the same frame; that the bytes are the converter's, the fixture asks."""
    frame = run(**other)
    before = len(plain_runs)

    assert frame == frames.read_to_worker(frames.write(frame).rstrip(b"\n"))
    assert before + 1 == len(plain_runs)


@pytest.mark.parametrize("name", SELDOM)
def test_any_other_run_is_the_converters(name: str, plain_runs: list[frames.Run]) -> None:
    """A field that is seldom set is never left out."""
    frame = run(**{name: SELDOM[name]})

    assert frames.plain_run(frame) is None
    assert frame == frames.read_to_worker(frames.write(frame).rstrip(b"\n"))
    assert [] == plain_runs
