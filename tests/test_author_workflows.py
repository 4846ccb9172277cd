"""What authors write: declared, checked at load, and every answer checked in their own process."""

import json
import types
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import evolve, frozen
from author_flow import Count, Flow
from worker_kit import desk, python_contract, python_desk

import resumed
from resumed import Accept, Done, Each, Fail, Goto, Hold, NewItem, Next, RetryAfter
from resumed.actors.worker import authors, faulttext
from resumed.actors.worker import steps as running
from resumed.actors.worker.states import States
from resumed.actors.worker.trial import Trial
from resumed.schemas import framelines, frames
from resumed.schemas.decisions import (
    Accepted,
    Answer,
    Failed,
    FanOut,
    Finished,
    GoTo,
    HoldBack,
    Later,
    NextStep,
)
from resumed.schemas.errors import AuthorError, ResumedError
from resumed.schemas.job import Artifact, Item, Source
from resumed.schemas.workflow import Contract, StepKind

ASKED = python_contract("author_flow:Flow", "author", 3)


def frame(step: str, item: str = "", **more: Any) -> frames.Run:
    """A `run` frame."""
    row = Item(id=item, ordinal=0, **more.pop("row", {})) if item else None
    return frames.Run(
        job="j", epoch=1, item=item, number=1, step=step, occurrence=1, log="/dev/null", row=row,
        **{"scratch": "/nonexistent", **more},
    )  # fmt: skip


async def answer(step: str, item: str = "", **more: Any) -> Answer:
    """What the test workflow answers."""
    steps = running.Steps(Flow, authors.contract_of(Flow, ASKED))
    return await steps.run(frame(step, item, **more), Trial())


def given(result: Any, item: bool = False) -> Callable[[], Any]:
    """A workflow whose one handler returns `result`."""

    @resumed.workflow("author", version=3, state=Count)
    class Made:
        @resumed.step(start=True)
        async def begin(self, job: Any, state: Any) -> Any:
            return result

        @resumed.step(item=True)
        async def one(self, job: Any, item: Any) -> Any:
            return result

    async def run() -> Answer:
        steps = running.Steps(Made, authors.contract_of(Made, ASKED))
        return await steps.run(frame("one", "i") if item else frame("begin"), Trial())

    return run


def test_import_is_lazy_and_whole() -> None:
    """`import resumed` offers exactly what authors need, and each name is there."""
    assert set(dir(resumed)) == set(resumed.__all__)
    assert all(getattr(resumed, name) is not None for name in resumed.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        resumed.nothing  # noqa: B018


def test_contract_is_what_the_class_declares() -> None:
    """The contract holds every step with its kind and limits, durations read."""
    found = authors.contract_of(Flow, ASKED)
    close = found.step("close")

    assert ("author", 3, "begin", 16) == (found.workflow, found.version, found.start, found.slots)
    assert {"begin": "job", "again": "job", "close": "job", "one": "item", "two": "item"} == {
        each.name: each.kind.value for each in found.steps
    }
    assert close is not None
    assert (StepKind.JOB, False, 90.0, 5, 1.0, 60.0) == (
        close.kind, close.repeatable, close.timeout, close.tries, close.backoff_first, close.backoff_max
    )  # fmt: skip


def test_file_may_set_slots() -> None:
    """`python.slots` of the workflow file stands over the class's own."""
    assert 2 == authors.contract_of(Flow, python_contract("author_flow:Flow", "author", 3, slots=2)).slots


async def _async(self: Any, job: Any, state: Any) -> Any:
    del self, job, state


def _sync(self: Any, job: Any, state: Any) -> Any:
    del self, job, state


async def _short(self: Any, job: Any) -> Any:
    del self, job


def _marked(function: Any, **more: Any) -> Any:
    copy = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    return resumed.step(**more)(copy)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a sync handler": ({"a": _marked(_sync, start=True)}, "cannot load step a: a handler is an `async def`"),
    "too few parameters": (
        {"a": _marked(_short, start=True)},
        r"cannot load step a: a handler takes \(self, job, state\)",
    ),
    "no start": ({"a": _marked(_async)}, "expected one step with start=True, got 0"),
    "two starts": (
        {"a": _marked(_async, start=True), "b": _marked(_async, start=True)},
        "expected one step with start=True, got 2",
    ),
    "a start of each item": ({"a": _marked(_async, start=True, item=True)}, "a job begins with a job step"),
    "a duration that is none": ({"a": _marked(_async, start=True, timeout="soon")}, "cannot read a duration"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_declaration_is_checked_at_load(case: str) -> None:
    """A workflow that cannot run is refused when it is loaded, by name and reason."""
    body, expected = REFUSED[case]
    made = resumed.workflow("author", version=3)(type("Made", (), dict(body)))

    with pytest.raises(AuthorError, match=expected):
        authors.contract_of(made, ASKED)


@pytest.mark.anyio
async def test_state_commits_as_changed_fields() -> None:
    """Only top-level fields that changed, or were never written, leave the worker."""
    first = await answer("begin")
    second = await answer("begin", state={"rounds": "1", "seen": '["a"]', "note": "null"})

    assert {"rounds": "1", "seen": "[]", "note": "null"} == first.state
    assert {"rounds": "2"} == second.state


def test_change_in_place_is_seen_or_refused() -> None:
    """A state that its author changed in place never passes for unchanged."""

    @frozen
    class Counts:
        by_name: dict[str, int] = attrs.field(factory=dict)
        total: int = 0

    @attrs.define
    class Loose:
        total: int = 0

    states = States(Counts)
    texts = {"by_name": '{"a":1}', "total": "1"}
    state = states.read(texts)
    state.by_name["b"] = 2

    assert {"by_name": '{"a":1,"b":2}'} == states.changed(texts, state, state)
    with pytest.raises(AuthorError, match="cannot use Loose as a state: Loose: Loose is not frozen"):
        States(Loose)


@pytest.mark.anyio
async def test_unchanged_state_writes_nothing() -> None:
    """A handler that returns no state, or the one it was given, changes nothing."""
    assert {} == (await answer("again")).state
    assert {} == (await given(Goto("begin", state=None))()).state


BAD_STATES = {
    "an unknown field": ({"rounds": "1", "colour": "2"}, "has no field 'colour'"),
    "a wrong type": ({"rounds": "true"}, "expected int, got bool"),
    "no JSON": ({"rounds": "1x"}, "not JSON"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", BAD_STATES)
async def test_stored_state_is_read_strictly(case: str) -> None:
    """Stored state that does not fit the class is an error with its name, never coerced or dropped."""
    state, expected = BAD_STATES[case]

    with pytest.raises(ResumedError, match=expected):
        await answer("begin", state=state)


LOSSY: dict[str, Any] = {
    "a bool for an int": Count(rounds=True),
    "a float for an int": Count(rounds=1.0),  # type: ignore[arg-type]
    "a list for a tuple": Count(seen=["a"]),  # type: ignore[arg-type]
    "a lone surrogate": Count(note="\ud83d"),
    "a NUL": Count(note="\x00"),
    "a large int": Count(rounds=2**60),
    "another class": evolve,
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", LOSSY)
async def test_state_that_would_change_on_disk_is_refused(case: str) -> None:
    """C25: a state that JSON would not give back as it was is the author's error, before anything commits."""
    with pytest.raises(AuthorError, match="cannot keep"):
        await given(Goto("begin", state=LOSSY[case]))()


def test_state_class_holds_only_what_can_be_kept() -> None:
    """Types that have no exact JSON are refused at load, with the field's path."""

    @frozen
    class Inner:
        when: complex = 1j

    class Mood(Enum):
        GOOD = 1

    for kind, path in (
        (list[int], "S.x"),
        (set[str], "S.x"),
        (Inner, "S.x.when"),
        (Mood, "S.x"),
        (int | str, "S.x"),
    ):
        made = attrs.make_class("S", {"x": attrs.field(type=kind, default=None)}, frozen=True)
        with pytest.raises(AuthorError, match=f"cannot use S as a state: {path}: "):
            States(made)
    with pytest.raises(AuthorError, match="expected a frozen attrs class"):
        States(dict)


DECIDED: dict[str, tuple[Any, bool, Any]] = {
    "goto": (Goto("begin"), False, GoTo(step="begin")),
    "each of new items": (
        Each(
            ["a", NewItem(id="b", source=Source(path="/b"))], start="one", then="begin", parallel=2, tries=4
        ),
        False,
        FanOut(
            start="one",
            then="begin",
            items=(NewItem(id="a"), NewItem(id="b", source=Source(path="/b"))),
            parallel=2,
            tries=4,
        ),
    ),
    "each of none": (Each([], start="one", then="begin"), False, FanOut(start="one", then="begin", items=())),
    "done": (Done(), False, Finished()),
    "fail": (Fail("never"), True, Failed(reason="never")),
    "hold": (Hold("who?", code="two-answers"), True, HoldBack(code="two-answers", reason="who?")),
    "retry after": (RetryAfter("1m30s", "busy"), True, Later(seconds=90.0, reason="busy")),
    "retry at a moment": (
        RetryAfter("1970-01-01T01:00:01+01:00"),
        True,
        Later(seconds=0.0, until=1_000_000),
    ),
    "next": (
        Next("one", {"a": [1, None, "\u2713"]}),
        True,
        NextStep(step="one", data='{"a":[1,null,"\u2713"]}'),
    ),
    "accept nothing": (Accept(), True, Accepted()),
    "a reason that is no text": (Fail("bad \ud83d\x00"), True, Failed(reason="bad \\ud83d\\x00")),
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", DECIDED)
async def test_decision_goes_out_as_its_words(case: str) -> None:
    """Each form an author may return has one spelling on the wire."""
    result, item, expected = DECIDED[case]

    assert expected == (await given(result, item)()).decided


WRONG: dict[str, tuple[Any, bool, str]] = {
    "None": (None, False, "step begin returned NoneType, expected one of Goto, Each, Done"),
    "an item's decision of the job": (Accept("x"), False, "step begin returned Accept"),
    "a job's decision of an item": (Done(), True, "step one returned Done, expected one of Next, Accept"),
    "a step that is none": (Goto("nowhere"), False, "names 'nowhere', which is no job step"),
    "an item step to go to": (Goto("one"), False, "names 'one', which is no job step"),
    "a job step for items": (
        Each(["a"], start="begin", then="begin"),
        False,
        "names 'begin', which is no item step",
    ),
    "an item that is none": (
        Each([7], start="one", then="begin"),
        False,
        "expected a name or NewItem, got int",
    ),  # type: ignore[list-item]
    "NaN in data": (Next("one", {"x": float("nan")}), True, "cannot keep an item's data"),
    "an object in data": (Next("one", {"x": object()}), True, "cannot keep an item's data"),
    "an output that is none": (Accept(7), True, "expected text, bytes or a path, got int"),  # type: ignore[arg-type]
    "a wait that is none": (RetryAfter("soon"), True, "cannot read a time"),
    "a moment without its zone": (RetryAfter("2026-11-29T03:00:00"), True, "names no zone"),
    "a reason that is none": (Fail(3), True, "expected text, got int"),  # type: ignore[arg-type]
}


@pytest.mark.anyio
@pytest.mark.parametrize("case", WRONG)
async def test_wrong_answer_is_the_authors_error(case: str) -> None:
    """An answer that cannot be carried out is refused in the worker, by step and reason."""
    result, item, expected = WRONG[case]

    with pytest.raises(AuthorError, match=expected):
        await given(result, item)()


@pytest.mark.anyio
async def test_handlers_see_their_job_and_item() -> None:
    """A job step sees all items and what they were accepted with; an item step sees its data and inputs."""
    items = tuple(
        Item(id=name, ordinal=n, output=Artifact(name="output", sha256="0" * 64, size=1, text=name))
        for n, name in enumerate("ab")
    )
    closed = await answer("close", items=items)
    handed = await answer("one", "next:1", row={"inputs": '{"year":1999}'})
    fanned = await answer("again", items=items)

    assert '["a","b"]' == closed.state["seen"]
    assert {"from": "next:1", "year": 1999} == json.loads(handed.decided.data)  # type: ignore[union-attr]
    assert FanOut(start="one", then="close", parallel=4) == fanned.decided


@pytest.mark.anyio
async def test_output_may_be_text_bytes_or_a_file(tmp_path: Path) -> None:
    """An output is bytes, whatever it is given as; a large one is offered as a file."""
    text = await given(Accept("\ud83d"), True)()
    raw = await given(Accept(b"\xff"), True)()
    file = await answer("two", "i", scratch=str(tmp_path), row={"data": '{"a":1}'})

    assert ("7aC9", "/w==") == tuple(each.decided.output.base64 for each in (text, raw))  # type: ignore[union-attr]
    assert str(tmp_path / "two") == file.decided.output.path  # type: ignore[union-attr]


class Nasty(Exception):  # noqa: N818  its name is part of what people see
    """An error that resists being shown."""

    def __str__(self) -> str:
        raise SystemExit


ERRORS: dict[str, tuple[BaseException, str]] = {
    "plain": (ValueError("bad"), "ValueError: bad"),
    "without words": (MemoryError(), "MemoryError"),
    "unprintable": (Nasty(), "Nasty: (its text cannot be shown)"),
    "a surrogate and a NUL": (ValueError("\ud83d\x00"), "ValueError: \\ud83d\\x00"),
    "a group": (
        BaseExceptionGroup("both", [ValueError("one"), SystemExit(2)]),
        "BaseExceptionGroup: both (2 sub-exceptions)\n  ValueError: one\n  SystemExit: 2",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_error_text_can_always_be_encoded(case: str) -> None:
    """C47: the report of an error never becomes an error, and always passes the strict door."""
    error, expected = ERRORS[case]

    assert expected == faulttext.of(error)
    framelines.write(frames.Raised(job="j", epoch=1, item="i", number=1, error=faulttext.of(error)))


def test_error_text_is_bounded() -> None:
    """A text of any length is cut, and says so."""
    found = faulttext.of(ValueError("x" * 10_000_000))

    assert len(found) <= faulttext.MOST
    assert found.endswith("\u2026")


KINDS = {
    "ValueError": "ValueError: bad thing",
    "exception group": "ExceptionGroup: two (2 sub-exceptions)",
    "RecursionError": "RecursionError: maximum recursion depth exceeded",
    "MemoryError": "MemoryError",
    "SystemExit": "SystemExit: 0",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "unprintable": "UnprintableError: (its text cannot be shown)",
    "lone surrogate": "ValueError: \\ud83d and \\x00",
    "huge text": "ValueError: xxx",
    "cancelled from within": "CancelledError",
    "a wrong type": "AuthorError: step one returned Goto, expected one of Next, Accept, Fail",
    "a step that is none": "AuthorError: step one names 'nowhere', which is no item step",
    "data that JSON has no word for": "AuthorError: cannot keep an item's data",
    "nothing": "AuthorError: step one returned NoneType",
}


@pytest.mark.anyio
async def test_one_bad_item_disturbs_no_other(tmp_path: Path) -> None:
    """C47: whatever an item's handler raises is that item's error; others beside it are answered."""
    async with python_desk(tmp_path, "author_flow:Flow", "author", 3) as made:
        made.worker.send(made.frame("one", "wait"))
        raised: dict[str, str] = {}
        for kind in KINDS:
            for number in range(1, 10):
                made.worker.send(made.frame("one", f"good {number} {kind}", number))
            made.worker.send(made.frame("one", f"fail:{kind}"))
            heard: list[Any] = [await made.heard() for _ in range(10)]
            good = {each.answer.decided.output.text for each in heard if isinstance(each, frames.Returned)}
            raised |= {each.item: each.error for each in heard if isinstance(each, frames.Raised)}
            for number in range(1, 10):
                assert f" good {number} {kind}" in good
        made.stop("wait")

        assert frames.Stopped(job="j", epoch=1, item="wait", number=1) == await made.heard()
    assert {f"fail:{kind}" for kind in KINDS} == set(raised)
    assert [] == [kind for kind, text in KINDS.items() if not raised[f"fail:{kind}"].startswith(text)]


@pytest.mark.anyio
async def test_changed_class_under_one_version_is_refused(tmp_path: Path) -> None:
    """A job is pinned to the contract of its version: a class that changed under it does not run."""
    whole = authors.contract_of(Flow, ASKED)
    pinned = evolve(whole, steps=tuple(evolve(each, tries=9) for each in whole.steps))
    heard: list[frames.Trouble] = []
    async with desk(tmp_path, pinned, first=heard.append):
        pass

    assert "contract" == heard[0].code
    assert "its steps changed under version 3; give it a new version" in heard[0].reason


def test_module_is_found_in_its_folder_alone() -> None:
    """The folder that is looked in first comes with the pinned definition, not from the daemon."""
    found: Contract = authors.contract_of(Flow, ASKED)

    assert (
        json.loads(found.definition)["python"]["folder"] == json.loads(ASKED.definition)["python"]["folder"]
    )
