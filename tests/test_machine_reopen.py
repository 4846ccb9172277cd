"""Items that a person has begin again: by a recorded decision; what was accepted is not lost."""

from typing import Any

import pytest
from attrs import evolve
from machine_kit import ANNA, FOUND, Play, folded
from machine_points import NOW, POINTS, with_sources
from test_machine_publishing import OFFER

from resumed.actors.machine import standing
from resumed.schemas import decisions, events
from resumed.schemas.job import ItemState, Status
from resumed.schemas.workflow import OnChange


def reopened(*names: str, **more: Any) -> events.Reopen:
    return events.Reopen(by=ANNA, items=names or ("a",), **{"reason": "its page was cut short", **more})


def settled(decided: decisions.Decided, *others: str, at: str = "read", **more: Any) -> Play:
    """A fan-out whose item `a` has settled by this answer; `b` is at work."""
    play = Play.fan_out("a", "b", *others, at=at, **more)
    play.start("a")
    play.answer("a", decided, output=FOUND)
    play.start("b")
    return play


SETTLED: dict[str, decisions.Decided] = {
    "done": decisions.Accepted(),
    "failed": decisions.Failed(reason="no such page"),
    "held": decisions.HoldBack(code="unsure", reason="two Lis"),
    "skipped": decisions.LeftOut(reason="a copy"),
}


@pytest.mark.parametrize("state", SETTLED)
def test_settled_item_begins_again(state: str) -> None:
    """Whatever it settled as, it stands at its first step with fresh tries and is started like any other."""
    play = settled(SETTLED[state])
    before = play.unit("a")
    assert state == before.state.value
    choice = play.does(reopened())
    after = play.unit("a")

    assert "reopened 1 item" == choice
    assert (ItemState.PENDING, "read", 0, "reopened", "its page was cut short") == (
        after.state, after.at, after.failures, after.code, after.reason,
    )  # fmt: skip
    assert (before.tries, before.occurrence + 1) == (after.tries, after.occurrence)
    assert ["a"] == play.starts()
    assert play.snapshot == folded(play.lines)


def test_decision_is_on_record() -> None:
    """Who, what and why is one committed row, by the kernel's word about the person."""
    play = settled(decisions.Accepted())
    play.does(reopened())
    row = play.lines[-1].entries[0]

    assert ("reopen", "uid:1000 anna", "reopened 1 item", "its page was cut short") == (
        row.transition, row.decision.by, row.decision.choice, row.decision.reason,
    )  # fmt: skip


def test_output_of_before_is_an_older_revision() -> None:
    """What was accepted first stands in the history as revision 1; what is accepted then is revision 2."""
    play = settled(decisions.Accepted())
    first = play.unit("a").output
    play.does(reopened())
    kept = play.unit("a").output
    play.start("a")
    play.answer("a", decisions.Accepted(), output=evolve(FOUND, sha256="b" * 64, text="[]"))
    second = play.unit("a").output
    told = [item.output for line in play.lines for entry in line.entries for item in entry.changes.items]

    assert first is not None
    assert second is not None
    assert first == kept
    assert ((1, "{}"), (2, "[]")) == ((first.revision, first.text), (second.revision, second.text))
    assert first in told


def test_item_of_a_later_step_begins_with_the_first() -> None:
    """What its earlier steps had handed on is made anew, too: it has to come to the later step by itself."""
    play = Play.fan_out("a", "b")
    play.start("a")
    play.answer("a", decisions.NextStep(step="write", data='{"n":1}'), output=FOUND)
    play.start("a")
    play.answer("a", decisions.Failed(reason="no such page"))
    assert ("write", (FOUND,)) == (play.unit("a").at, play.unit("a").outputs)
    play.does(reopened())

    assert ("read", "{}", ()) == (play.unit("a").at, play.unit("a").data, play.unit("a").outputs)


def test_held_for_its_source_it_goes_on_with_the_present_one() -> None:
    """A person who looked at a changed source and begins the item again means the source as it is."""
    play = with_sources(OnChange.HOLD)
    play.start("a")
    play.answer("a", decisions.SourceChanged(source=NOW))
    assert (ItemState.HELD, "source_changed") == (play.unit("a").state, play.unit("a").code)
    play.does(reopened())

    assert (NOW, None, "reopened") == (play.unit("a").source, play.unit("a").seen, play.unit("a").code)


def test_asked_twice_it_is_done_once() -> None:
    """Items that wait to begin again are left as they are; the others of the same request are reopened."""
    play = settled(decisions.Accepted(), "c")
    play.does(reopened())
    assert play.changes_nothing(reopened())
    play.answer("b", decisions.Accepted())

    assert "reopened 1 item" == play.does(reopened("a", "b"))
    assert 2 == play.unit("a").occurrence


STANDS = ["Paused", "Held: all items are settled, one has failed", "Held: a worker's end is not proven"]


@pytest.mark.parametrize("point", STANDS)
def test_job_that_stands_still_is_told_too(point: str) -> None:
    """Paused or held, the item is put back; it starts once the job may go on, and no sooner."""
    play = POINTS[point][1]()
    settled = [item.id for item in play.snapshot.items if item.state in (ItemState.DONE, ItemState.FAILED)]
    name = settled[0] if settled else ""
    if not name:
        name = "a"
        items = play.snapshot.items.put([evolve(play.unit("a"), state=ItemState.DONE)])
        play.snapshot = evolve(play.snapshot, items=items)
    before = standing.status(play.snapshot, play.now)
    play.does(reopened(name))
    lifted = point == STANDS[1]

    assert ItemState.PENDING is play.unit(name).state
    assert (Status.READY if lifted else before) == standing.status(play.snapshot, play.now)
    assert lifted == (name in play.starts())


def _over() -> Play:
    play = settled(decisions.Accepted())
    play.answer("b", decisions.Accepted())
    assert play.snapshot.each is None
    return play


def _ended() -> Play:
    play = _over()
    play.start("")
    play.answer("", decisions.Finished())
    return play


def _canceling() -> Play:
    play = settled(decisions.Accepted())
    play.does(events.Cancel(by=ANNA))
    return play


def _staged() -> Play:
    play = settled(decisions.Accepted(output=OFFER))
    number = play.snapshot.publications["a"].number
    play.does(events.Placed(unit="a", number=number, outcome=events.Placing.EXISTS, reason="so"))
    assert ItemState.HELD is play.unit("a").state
    return play


def _at_work() -> Play:
    return settled(decisions.Accepted(), "c")


REFUSED: dict[str, tuple[Any, events.Reopen, str, str]] = {
    # the play, the request -> the code, and a part of the reason
    "ended": (_ended, reopened(), "ended", "too late, it is completed"),
    "being ended": (_canceling, reopened(), "stopping", "it is being ended"),
    "the fan-out is over": (_over, reopened(), "fan_out_over", "hand them in again as a job of their own"),
    "at work": (_at_work, reopened("b"), "item_state", "it is in_progress"),
    "one of several": (_at_work, reopened("a", "b"), "item_state", "it is in_progress"),
    "not settled yet": (_at_work, reopened("c"), "item_state", "it is pending"),
    "no such item": (_at_work, reopened("z"), "no_such_item", "no item of that name"),
    "none named": (_at_work, events.Reopen(by=ANNA, reason="x"), "incomplete", "items"),
    "no reason": (_at_work, reopened(reason=" "), "incomplete", "say why"),
    "its output is staged": (_staged, reopened(), "publishing", "retry or skip it first"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_value_nothing_changes(case: str) -> None:
    """Each refusal says why, and what to look at; nothing is committed, also where one of many is no good."""
    made, request, code, words = REFUSED[case]
    play = made()
    before = play.snapshot
    refusal = play.refusal(request)

    assert code == refusal.code
    assert words in refusal.reason
    assert refusal.commands
    assert before is play.snapshot
