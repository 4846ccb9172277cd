"""What tries report as spent, and the moment they ask to be tried again at, as the law takes them."""

import pytest
from attrs import evolve
from machine_kit import ANNA, FOUND, Play, folded, moment

from resumed.schemas import durations, events
from resumed.schemas.decisions import Accepted, Answer, Decided, Later, NextStep, TryAgain
from resumed.schemas.instant import seconds_between
from resumed.schemas.job import Budget, ItemState

SPENT = Budget(usd="0.1", tokens=5)


def told(play: Play, decided: Decided, used: Budget | None) -> str:
    """The answer of `a`'s open try, with what it spent."""
    row = play.row("a")
    answer = Answer(decided=decided, used=used)
    output = FOUND if isinstance(decided, Accepted) else None
    event = events.Returned(
        unit="a", epoch=row.epoch, number=row.number, answer=answer, output=output, slot=False
    )
    return play.does(event)


def test_every_end_of_a_try_counts_what_it_spent() -> None:
    """Failed, stopped or done: the sum is in the same line as the end, and recovery makes the same."""
    play = Play.fan_out("a", "b")
    play.start("a")
    told(play, TryAgain(reason="busy"), SPENT)
    play.wait(60.0)
    play.start("a")
    told(play, NextStep(step="write"), SPENT)
    play.start("a")
    play.does(events.Pause(by=ANNA, now=True))
    row = play.row("a")
    play.does(events.Gone(unit="a", epoch=row.epoch, number=row.number, died=False, used=SPENT))
    play.does(events.Resume(by=ANNA))
    play.start("a")
    told(play, Accepted(), SPENT)

    assert Budget(usd="0.4", tokens=20) == evolve(play.snapshot.used, active_seconds=None)
    assert ItemState.DONE == play.unit("a").state
    assert play.snapshot == folded(play.lines)


def test_a_late_answer_spends_nothing() -> None:
    """Evidence changes nothing: what a try spent is counted once, with its own end."""
    play = Play.fan_out("a", "b")
    play.start("a")
    row = play.row("a")
    late = events.Returned(
        unit="a", epoch=row.epoch, number=row.number, answer=Answer(decided=Accepted(), used=SPENT), late=True
    )
    play.does(late)

    assert Budget() == play.snapshot.used


@pytest.mark.parametrize("amount", ["", "x", "NaN", "Infinity", "1e9", "1" * 40, "0.0000001"])
def test_an_amount_that_is_none_is_no_death(amount: str) -> None:
    """A worker may say anything: what cannot be added up is left out, and its answer is decided."""
    play = Play.fan_out("a", "b")
    play.start("a")

    assert "done" == told(play, Accepted(), Budget(usd=amount, tokens=1))
    assert Budget() == play.snapshot.used


def test_a_try_may_name_the_moment_of_the_next() -> None:
    """`until` is a moment of the wall clock; it is waited for, and at least as long as the seconds say."""
    found = {}
    for name, decided in {
        "a moment": Later(seconds=1.0, until=moment(500.0).wall),
        "a moment that has passed": Later(seconds=1.0, until=moment(-500.0).wall),
        "the longer of both": Later(seconds=900.0, until=moment(500.0).wall),
    }.items():
        play = Play.fan_out("a", "b")
        play.start("a")
        play.answer("a", decided)
        at = play.unit("a").not_before
        assert at is not None
        found[name] = seconds_between(play.now, at)

    assert {"a moment": 500.0, "a moment that has passed": 1.0, "the longer of both": 900.0} == found


def test_a_moment_beyond_all_limits_is_a_failed_try() -> None:
    """Nobody waits for a moment that no instant can spell."""
    play = Play.fan_out("a", "b")
    play.start("a")
    play.answer("a", Later(seconds=1.0, until=moment(2 * durations.MOST).wall))

    assert ("author_error", 1) == (play.unit("a").code, play.unit("a").failures)
