"""`docs/states.md` is drawn from the law: what stands there is what the law does, cell by cell.

`RESUMED_WRITE_DOCS=1 pytest tests/test_machine_docs.py` writes the page after the law has changed.
"""

import os
from collections.abc import Callable
from pathlib import Path

import effect_points
import gate_points
import pytest
from machine_kit import ANNA, FOUND, STOPS, WORKER, Play
from machine_points import NOW, POINTS, comparing, conditions, outcome, with_sources
from review_kit import at_review

from resumed.actors.machine import standing
from resumed.actors.machine.verdict import Verdict
from resumed.schemas import decisions, events
from resumed.schemas.events import Placing
from resumed.schemas.job import ItemState, Status, StopReason
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry
from resumed.schemas.workflow import OnChange

PAGE = Path(__file__).resolve().parent.parent / "docs" / "states.md"

# ---- items ----------------------------------------------------------------------------------------------


def _in_progress(at: str = "read", tries: int | None = None, deadline: float | None = 50.0) -> Play:
    play = Play.fan_out("a", "b", at=at, tries=tries, deadline=deadline)
    play.start("a")
    return play


def _settled(decided: decisions.Decided) -> Play:
    play = _in_progress()
    play.answer("a", decided)
    return play


def _skipped() -> Play:
    play = Play.fan_out("a", "b")
    play.does(events.Skip(by=ANNA, items=("a",)))
    return play


STATES: dict[ItemState, tuple[str, Callable[[], Play]]] = {
    ItemState.PENDING: (
        "It waits for its next try, or for a fan-out to take it in.",
        lambda: Play.fan_out("a", "b"),
    ),
    ItemState.IN_PROGRESS: (
        "A try of it is open, its output is on its way, or it waits for effects or an answer: never done.",
        _in_progress,
    ),
    ItemState.REVIEW: ("Its draft waits for a person to look at it.", at_review),
    ItemState.DONE: (
        "Its output is accepted and durable; it is never computed again.",
        lambda: _settled(decisions.Accepted()),
    ),
    ItemState.FAILED: (
        "Its tries are used up, or its handler said that it cannot succeed.",
        lambda: _settled(decisions.Failed(reason="no")),
    ),
    ItemState.HELD: (
        "The machine may not decide about it: a person must.",
        lambda: _settled(decisions.HoldBack(code="unsure", reason="?")),
    ),
    ItemState.SKIPPED: ("A person or its program left it out; only a person takes it back.", _skipped),
}

ALWAYS: dict[str, Callable[[Play], Verdict]] = {
    "a slot is given": lambda play: play.tell(events.Grant(unit="a", worker=WORKER)),
    "`skip`": lambda play: play.tell(events.Skip(by=ANNA, items=("a",))),
    "`retry`": lambda play: play.tell(events.Retry(by=ANNA, items=("a",))),
    "`reopen`": lambda play: play.tell(events.Reopen(by=ANNA, items=("a",), reason="wrong")),
    "an answer comes, of no open try": lambda play: play.tell(_late()),
    "the daemon is killed": lambda play: play.tell(events.Woke()),
}


def _late() -> events.Returned:
    answer = decisions.Answer(decided=decisions.Accepted())
    return events.Returned(unit="a", epoch=1, number=9, answer=answer)


ANSWERS: dict[str, decisions.Decided] = {
    "it answers Accept": decisions.Accepted(),
    "it answers Next": decisions.NextStep(step="write"),
    "it answers that it shall be tried again, tries are left": decisions.TryAgain(reason="busy"),
    "it answers RetryAfter": decisions.Later(seconds=5.0),
    "it answers Fail": decisions.Failed(reason="no"),
    "it answers Hold": decisions.HoldBack(code="unsure", reason="?"),
    "its program says that there is nothing to do": decisions.LeftOut(reason="exit 3"),
    "its program was silent for too long, the step is repeatable": decisions.CutOff(code="s", reason="s"),
    "it answers what cannot be carried out, tries are left": decisions.Finished(),
}


def _ends() -> dict[str, Callable[[], ItemState]]:
    """What a running item becomes, by how its try ends."""
    found: dict[str, Callable[[], ItemState]] = {}

    def answered(decided: decisions.Decided) -> Callable[[], ItemState]:
        return lambda: _settled(decided).unit("a").state

    for words, decided in ANSWERS.items():
        found[words] = answered(decided)

    def silent() -> ItemState:
        play = _in_progress("post")
        play.answer("a", decisions.CutOff(code="s", reason="s"))
        return play.unit("a").state

    found["its program was silent for too long, the step is not repeatable"] = silent

    def last_try() -> ItemState:
        play = _in_progress(tries=1)
        play.does(play.raised("a"))
        return play.unit("a").state

    def third_death() -> ItemState:
        play = _in_progress()
        for _ in range(2):
            play.does(play.gone("a"))
            play.start("a")
        play.does(play.gone("a"))
        return play.unit("a").state

    def died(at: str) -> Callable[[], ItemState]:
        def run() -> ItemState:
            play = _in_progress(at)
            play.does(play.gone("a"))
            return play.unit("a").state

        return run

    def stopped(at: str, why: StopReason) -> Callable[[], ItemState]:
        def run() -> ItemState:
            play = _in_progress(at)
            STOPS[why](play, "a")
            play.stopped()
            return play.unit("a").state

        return run

    found["it ends with an error, its tries are used up"] = last_try
    found["its worker or the daemon dies, the step is repeatable"] = died("read")
    found["its worker or the daemon dies for the third time in a row"] = third_death
    found["its worker or the daemon dies, the step is not repeatable"] = died("post")
    for why in StopReason:
        if why is not StopReason.SKIP:
            found[f"it is stopped ({why.value}), the step is repeatable"] = stopped("read", why)
            found[f"it is stopped ({why.value}), the step is not repeatable"] = stopped("post", why)
    found["it is stopped (skip)"] = stopped("post", StopReason.SKIP)
    return found | _publishing()


def _publishing() -> dict[str, Callable[[], ItemState]]:
    """What an item becomes whose output is to be published, by what comes of that."""
    staged = decisions.Staged(destination="/srv/a", temp=".a", device=1, inode=2)
    offer = decisions.Offer(name="o", sha256="a" * 64, size=2, text="{}", publish=staged)
    skip, cancel = events.Skip(by=ANNA, items=("a",)), events.Cancel(by=ANNA)

    def case(
        *outcomes: Placing, at: str = "read", request: events.Request | None = None
    ) -> Callable[[], ItemState]:
        def run() -> ItemState:
            play = _in_progress(at)
            play.answer("a", decisions.Accepted(output=offer), output=FOUND)
            if request is not None:
                play.does(request)
            for came in outcomes:
                number = play.snapshot.publications["a"].number
                play.does(events.Placed(unit="a", number=number, outcome=came, reason="so"))
            return play.unit("a").state

        return run

    said = "it answers Accept, its output is to be published"
    return {
        f"{said}": case(),
        f"{said}: it is": case(Placing.PUBLISHED),
        f"{said}: something else bears the name": case(Placing.EXISTS),
        f"{said}: the system refuses, tries are left": case(Placing.REFUSED),
        f"{said}: the system refuses, its tries are used up": case(*[Placing.REFUSED] * 3),
        f"{said}: what was staged is gone, the step is repeatable": case(Placing.LOST),
        f"{said}: what was staged is gone, the step is not repeatable": case(Placing.LOST, at="post"),
        f"{said}: `skip`, and it is taken away": case(Placing.WITHDRAWN, request=skip),
        f"{said}: `skip`, and it was published before": case(Placing.PUBLISHED, request=skip),
        f"{said}: `cancel`, and it is taken away": case(Placing.WITHDRAWN, request=cancel),
        f"{said}: `cancel`, and it was published before": case(Placing.PUBLISHED, request=cancel),
    }


def _sources() -> list[str]:
    lines = ["| item | `on_change` | its source | becomes |", "|---|---|---|---|"]
    finds = (("changed", NOW), ("gone", None))
    for on_change in (OnChange.HOLD, OnChange.REOPEN):
        for words, source in finds:
            play = with_sources(on_change)
            play.start("a")
            play.answer("a", decisions.SourceChanged(source=source, reason="No such file"))
            lines.append(f"| its try begins | `{on_change}` | {words} | {_found(play)} |")
        for state, done in (("pending", ""), ("done", "a")):
            for words, source in finds:
                play = comparing(on_change, done)
                seen = decisions.Seen(item="a", source=source, reason="No such file")
                play.answer("", decisions.Compared(through=2, sources=2, changed=(seen,)))
                lines.append(f"| {state}, at a wake | `{on_change}` | {words} | {_found(play)} |")
    return lines


def _found(play: Play) -> str:
    item = play.unit("a")
    anew = ", pinned anew, from its first step" if item.source == NOW else ""
    return f"{item.state.value}{anew}"


def _items() -> list[str]:
    lines = ["| state | what happens | becomes |", "|---|---|---|"]
    for state, (_, made) in STATES.items():
        assert state is made().unit("a").state
        for words, happen in ALWAYS.items():
            play = made()
            verdict = happen(play)
            after = play.unit("a").state.value
            if words == "`skip`" and state is ItemState.IN_PROGRESS:
                after = "in_progress, and skipped when its tree is gone, unless it was accepted before"
            elif isinstance(verdict, Refusal):
                after = "– (refused)"
            elif not isinstance(verdict, Entry):
                after = "– (nothing changes)"
            elif after == state.value:
                after = "– (kept as evidence)" if verdict.evidence else "– (stays as it is)"
            lines.append(f"| {state.value} | {words} | {after} |")
        if state is ItemState.IN_PROGRESS:
            lines += [f"| {state.value} | {words} | {run().value} |" for words, run in _ends().items()]
    return lines


# ---- the page -------------------------------------------------------------------------------------------


def page() -> str:
    """The whole text."""
    lines = [
        "# States",
        "",
        "This page is drawn by a test from the law itself (`tests/test_machine_docs.py`); it is not edited.",
        "",
        "## Items",
        "",
        "| state | what it says |",
        "|---|---|",
        *(f"| {state.value} | {words} |" for state, (words, _) in STATES.items()),
        "",
        *_items(),
        "",
        "## Sources",
        "",
        "What a source was pinned as is compared before each try of its item and, for all items that are",
        "pending or done, at a wake: before the first item starts in an attempt, the one that listed them",
        "excepted. It is never compared while the job stands at a job step, nor once it has ended.",
        "",
        *_sources(),
        "",
        "## Effects",
        "",
        "An effect is one write to another system. What has not left and what may have left are kept apart",
        "in every row; a unit that asked for effects is in progress, without a try, until all are settled.",
        "",
        *effect_points.lines(),
        "",
        "## Approvals, drafts and questions",
        "",
        "A yes is good in the round in which it was given, for a limited time, and for one call alone.",
        "What is asked anew is asked in the next round; nothing is ever granted because time has passed.",
        "",
        *gate_points.lines(),
        "",
        "## Jobs",
        "",
        "A job's status is derived from its records whenever somebody looks; it is stored nowhere.",
        "",
        "| status | what it says |",
        "|---|---|",
        *(f"| {status.value} | {standing.MEANS[status]} |" for status in Status),
        "",
        "## Interruption points and stop conditions",
        "",
        "The job has items; `a` and `b` are two of them.",
        "Each cell was produced by the law: the status and the unit looked at after the event is committed,",
        "and again when the stops that it asks for have been carried out.",
    ]
    for point in POINTS:
        lines += ["", f"### {point}", "", "| stop condition | outcome |", "|---|---|"]
        lines += [f"| {condition} | {outcome(point, condition)} |" for condition in conditions(point)]
    return "\n".join(lines) + "\n"


def test_states_page_is_drawn_from_the_law() -> None:
    """The page in `docs` says what the law does today."""
    drawn = page()
    if os.environ.get("RESUMED_WRITE_DOCS") == "1":
        PAGE.write_text(drawn, encoding="utf-8")

    assert drawn == PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("point", POINTS)
def test_every_interruption_point_answers_every_stop_condition(point: str) -> None:
    """No cell of interruption point × stop condition is empty."""
    assert [] == [condition for condition in conditions(point) if not outcome(point, condition).strip()]


def test_every_state_and_status_is_explained() -> None:
    """Each state of an item and each status of a job has its sentence, and each stop reason its way there."""
    assert set(ItemState) == set(STATES)
    assert list(Status) == list(standing.MEANS)
    assert set(StopReason) == set(STOPS)


def test_the_law_gives_only_the_statuses_it_can_know() -> None:
    """Every status that the points reach is one that the law may give."""
    reached = {standing.status(made().snapshot, made().now) for _, made in POINTS.values()}

    assert reached <= standing.GIVEN_BY_LAW
