"""The frames of plain steps and calls: written and read as the converter does it, or left to it.

That they are the same is asked wherever one is met, in any test (`conftest.plain_runs`, `plain_reads`).
"""

from typing import Any

import orjson
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from resumed.schemas import codec, decisions, framelines, frames, plainframes, strict
from resumed.schemas.job import Artifact, Item, Reader, Source
from resumed.schemas.ledger import EffectState, ErrandKind

GOES_ON: dict[str, Any] = {
    "job": "j",
    "epoch": 1,
    "item": "",
    "number": 2,
    "answer": {"decided": {"kind": "GoTo", "step": "s"}, "state": {"count": "1"}},
}
ANSWER: dict[str, Any] = GOES_ON["answer"]
ANYTHING_ELSE: dict[str, dict[str, Any]] = {
    "an unknown key": GOES_ON | {"more": 1},
    "in another order": {key: GOES_ON[key] for key in ("item", "number", "job", "epoch", "answer")},
    "a missing key": {key: value for key, value in GOES_ON.items() if key != "item"},
    "a number for a text": GOES_ON | {"job": 1},
    "a truth for a number": GOES_ON | {"epoch": True},
    "a fraction": GOES_ON | {"number": 2.0},
    "a large number": GOES_ON | {"number": 2**53},
    "an answer that is none": GOES_ON | {"answer": []},
    "an unknown key of the answer": GOES_ON | {"answer": {**ANSWER, "more": 1}},
    "what it spent, and no state": GOES_ON | {"answer": {"decided": ANSWER["decided"], "used": None}},
    "another decision": GOES_ON | {"answer": {**ANSWER, "decided": {"kind": "Failed", "reason": "s"}}},
    "it brings items": GOES_ON | {"answer": {**ANSWER, "decided": {**ANSWER["decided"], "items": None}}},
    "no step": GOES_ON | {"answer": {**ANSWER, "decided": {"kind": "GoTo", "stp": "s"}}},
    "a step that is no text": GOES_ON | {"answer": {**ANSWER, "decided": {"kind": "GoTo", "step": 1}}},
    "a state that is no text": GOES_ON | {"answer": {**ANSWER, "state": {"a": "1", "b": 1}}},
    "a list for a state": GOES_ON | {"answer": {**ANSWER, "state": []}},
}


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NUMBERS = st.integers(-strict.MAX_INT, strict.MAX_INT)
CALLED = st.builds(
    decisions.Call,
    tool=WORDS,
    arguments=WORDS,
    unbound=st.sampled_from(["{}", '{"note":1}']),
    business_object=WORDS,
    expected_result=WORDS,
)
DECIDED = st.one_of(
    st.builds(decisions.GoTo, step=WORDS),
    st.builds(decisions.Landed, reference=WORDS),
    st.builds(
        decisions.Performing,
        calls=st.lists(CALLED, max_size=3).map(tuple),
        then=WORDS,
        otherwise=WORDS,
        back=WORDS,
    ),
)
ANSWERED = st.builds(
    frames.Returned,
    job=WORDS,
    epoch=NUMBERS,
    item=WORDS,
    number=NUMBERS,
    answer=st.builds(decisions.Answer, decided=DECIDED, state=st.dictionaries(WORDS, WORDS, max_size=3)),
)


@settings(max_examples=150, deadline=None)
@given(ANSWERED)
def test_an_answer_is_read_as_the_converter_reads_it(frame: frames.Returned) -> None:
    """A step that goes on, calls that bring no bytes, and a landing: the short way takes them all."""
    value = codec.to_plain(frame)

    assert frame == codec.from_plain(value, frames.Returned, "it") == plainframes.returned(value)


@pytest.mark.parametrize("case", ANYTHING_ELSE)
def test_any_other_answer_is_the_converters(case: str) -> None:
    """The short way leaves alone what is anything more, and what does not hold: the converter names it."""
    assert plainframes.returned(ANYTHING_ELSE[case]) is None


def performing(**more: Any) -> dict[str, Any]:
    """An answer that asks for one call, with something else in its decision."""
    decided = {"kind": "Performing", "calls": [{"tool": "t", "arguments": "{}"}], "then": "s"}
    return GOES_ON | {"answer": {"decided": decided | more}}


NO_CALL: dict[str, Any] = {
    "bytes": {"calls": [{"tool": "t", "arguments": "{}", "bodies": []}]},
    "what was observed": {"calls": [{"tool": "t", "arguments": "{}", "observed": "7"}]},
    "no tool": {"calls": [{"arguments": "{}"}]},
    "no arguments": {"calls": [{"tool": "t"}]},
    "a call that is none": {"calls": ["t"]},
    "no list": {"calls": {"tool": "t", "arguments": "{}"}},
    "a number for a text": {"calls": [{"tool": "t", "arguments": 7}]},
    "a step that is no text": {"then": ["s"]},
    "an unknown key": {"after": "s"},
}


@pytest.mark.parametrize("case", NO_CALL)
def test_any_other_call_is_the_converters(case: str) -> None:
    """The same of calls: with bytes, or not as they must be."""
    assert plainframes.returned(performing()) is not None
    assert plainframes.returned(performing(**NO_CALL[case])) is None


def test_a_landing_with_the_targets_words_is_the_converters() -> None:
    """Its answer is bytes, and those are read one by one."""
    for more in ({"response": None}, {"reference": 7}, {"reference": None}):
        decided = {"kind": "Landed", "reference": "p1", **more}
        assert plainframes.returned(GOES_ON | {"answer": {"decided": decided}}) is None


# ---- to a worker ------------------------------------------------------------------------------------------

OUTCOMES = st.builds(
    frames.Outcome,
    effect=WORDS,
    tool=WORDS,
    state=st.sampled_from(EffectState),
    arguments=st.sampled_from(["{}", '{"page":"7"}']),
    code=WORDS,
    reference=WORDS,
    reason=WORDS,
    response=WORDS,
)
CALLS = st.builds(
    frames.CallGiven,
    effect=WORDS,
    kind=st.sampled_from(ErrandKind),
    tool=WORDS,
    version=NUMBERS,
    operation_key=WORDS,
    fingerprint=WORDS,
    arguments=WORDS,
    unbound=st.sampled_from(["{}", '{"note":1}']),
    attempt=st.integers(0, 3),
    timeout=st.sampled_from([30.0, 30, 5.0, 0.25]),
    first=st.booleans(),
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "attempt": st.integers(0, 3),
    "interrupted": st.booleans(),
    "key": WORDS,
    "artifacts": WORDS,
    "inputs": st.sampled_from(["{}", '{"year":1820}']),
    "state": st.dictionaries(WORDS, WORDS, max_size=2),
    "objective": WORDS,
    "labels": st.dictionaries(WORDS, WORDS, max_size=2),
    "call": st.none() | CALLS,
    "given": st.none()
    | st.lists(OUTCOMES, min_size=1, max_size=2).map(lambda found: frames.Given(outcomes=tuple(found))),
    "credentials": st.sampled_from(["", "/run/credentials"]),
}


def run(**other: Any) -> frames.Run:
    """A frame that starts a step."""
    return frames.Run(
        job="harbour", epoch=1, item="", number=2, step="ship", occurrence=3, log="/l", scratch="/s", **other
    )


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries({}, optional=FIELDS))
def test_a_plain_run_is_written_and_read_as_by_the_converter(other: dict[str, Any]) -> None:
    """The same bytes, and the same frame of them: by the short way or, where it leaves them, by the other."""
    frame = run(**other)
    raw = framelines.write(frame)
    written, plain = plainframes.of_run(frame), {"frame": "run", **codec.to_plain(frame)}

    assert written is not None
    assert (orjson.dumps(plain) + b"\n", list(plain.items())) == (raw, list(written.items()))
    assert frame == framelines.read_to_worker(raw.rstrip(b"\n"))
    value = orjson.loads(raw)
    del value["frame"]
    assert plainframes.run(value) == codec.from_plain(value, frames.Run, "it")


ARTIFACT = Artifact(name="card", sha256="0" * 64, size=1)
CALL = frames.CallGiven(
    effect="e",
    kind=ErrandKind.SEND,
    tool="t",
    version=1,
    operation_key="k",
    fingerprint="f",
    arguments="{}",
)
OUTCOME = frames.Outcome(effect="e", tool="t", state=EffectState.CONFIRMED)
SELDOM: dict[str, dict[str, Any]] = {
    "kept": {"kept": "/kept"},
    "outputs": {"outputs": (ARTIFACT,)},
    "an item": {"row": Item(id="a", ordinal=0)},
    "items": {"items": (Item(id="a", ordinal=0),)},
    "a pattern": {"items_glob": "*"},
    "where from": {"items_from": "lines"},
    "a list": {"items_file": "/list"},
    "a reader": {"reader": Reader(uid=1, gid=1)},
    "a comparison": {"compare": True},
    "how far": {"through": 1},
    "an answer": {"given": frames.Given(answer="yes")},
    "a text": {"given": frames.Given(text=ARTIFACT, editor="anna")},
    "nothing given": {"given": frames.Given()},
    "outcomes and an answer": {"given": frames.Given(outcomes=(OUTCOME,), answer="yes")},
    "a call with bytes": {"call": evolve(CALL, bodies=(ARTIFACT,))},
    "what was observed": {"call": evolve(CALL, observed="7")},
    "a call with sources": {"call": evolve(CALL, sources=(Source(path="/a"),))},
}


@pytest.mark.parametrize("case", SELDOM)
def test_any_other_run_is_the_converters(case: str, plain_runs: list[frames.Run]) -> None:
    """A field that is seldom set is never left out."""
    frame = run(**SELDOM[case])

    assert plainframes.of_run(frame) is None
    assert frame == framelines.read_to_worker(framelines.write(frame).rstrip(b"\n"))
    assert [] == plain_runs


NO_RUN: dict[str, dict[str, Any]] = {
    "an unknown key": {"more": 1},
    "a truth for a number": {"epoch": True},
    "a text for a number": {"number": "2"},
    "a large number": {"number": 2**53},
    "a number for a truth": {"interrupted": 1},
    "a state that is no text": {"state": {"a": 1}},
    "labels that are no text": {"labels": {"a": []}},
    "a call of no kind": {"call": {"effect": "e"}},
    "a call of another kind": {"call": codec.to_plain(CALL) | {"kind": "write"}},
    "a call of a list": {"call": codec.to_plain(CALL) | {"kind": ["send"]}},
    "a call without its key": {
        "call": {name: each for name, each in codec.to_plain(CALL).items() if name != "operation_key"}
    },
    "a call with more": {"call": codec.to_plain(CALL) | {"more": 1}},
    "outcomes of no list": {"given": {"outcomes": {}}},
    "outcomes and more": {"given": {"outcomes": [codec.to_plain(OUTCOME)], "answer": "yes"}},
    "an outcome of no state": {"given": {"outcomes": [{"effect": "e", "tool": "t"}]}},
    "an outcome of another": {"given": {"outcomes": [{"effect": "e", "tool": "t", "state": "lost"}]}},
    "an outcome of a list": {"given": {"outcomes": [{"effect": "e", "tool": "t", "state": []}]}},
    "an outcome of nothing": {"given": {"outcomes": [{"state": "confirmed"}]}},
    "an outcome that is none": {"given": {"outcomes": ["confirmed"]}},
    "an answer": {"given": {"answer": "yes"}},
}


@pytest.mark.parametrize("case", NO_RUN)
def test_a_run_that_does_not_hold_is_the_converters(case: str) -> None:
    """Of that the converter says what is wrong."""
    assert plainframes.run(codec.to_plain(run()) | NO_RUN[case]) is None
    assert plainframes.run({"job": "j"}) is None
