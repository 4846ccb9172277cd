"""Failures, deaths and stops: where a unit goes when its try did not answer."""

import pytest
from attrs import evolve
from machine_kit import ANNA, CONTRACT, FOUND, STOPS, Play

from resumed.actors.machine import ends
from resumed.actors.machine.backoff import backoff
from resumed.schemas import durations, events
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.decisions import (
    Accepted,
    CutOff,
    Decided,
    Finished,
    Later,
    NextStep,
    TryAgain,
)
from resumed.schemas.instant import later, seconds_between
from resumed.schemas.job import ItemState, StopReason

# ---- failures -------------------------------------------------------------------------------------------


def test_failures_are_counted_up_to_the_limit() -> None:
    """Each counted failure waits longer, and the last one the step allows makes the item failed."""
    play = Play.fan_out("a", "b")
    waits = []
    for _ in range(3):
        play.wait(60.0)
        play.start("a")
        play.does(play.raised("a"))
        at = play.unit("a").not_before
        waits.append(None if at is None else round(seconds_between(play.now, at)))
    unit = play.unit("a")

    step = CONTRACT.step("read")
    assert step is not None
    assert [*(round(backoff(step, n, "harbour-7", "a")) for n in (1, 2)), None] == waits
    assert (ItemState.FAILED, 3, 3, "raised") == (unit.state, unit.failures, unit.tries, unit.code)
    assert "ValueError: no such page" == unit.reason


def test_a_fan_out_may_set_the_tries() -> None:
    """`Each.tries` takes the place of the step's limit."""
    play = Play.fan_out("a", "b", tries=1)
    play.start("a")

    assert "failed" == play.answer("a", TryAgain(reason="busy"))
    assert ItemState.FAILED == play.unit("a").state


def test_a_job_step_out_of_tries_holds_the_job() -> None:
    """A job step that used up its tries is held for a person, not failed: it may be tried again."""
    play = Play.of()
    play.fail("", times=3)

    assert (ItemState.HELD, "step_failed", None) == (
        play.unit("").state,
        play.code(),
        play.snapshot.outcome,
    )


def test_backoff_doubles_to_its_most_and_never_by_chance() -> None:
    """first × 2^(n−1) up to the maximum, less at most a quarter, and the same for the same failure."""
    step = CONTRACT.step("read")
    assert step is not None
    for failures in (1, 2, 3, 50, 10_000):
        full = min(30.0 * 2 ** min(failures - 1, 30), 40.0)
        found = backoff(step, failures, "harbour-7", "a")

        assert 0.75 * full <= found <= full
        assert found == backoff(step, failures, "harbour-7", "a")


def test_limits_beyond_the_calendar_are_cut() -> None:
    """A declared time limit or pause of ages is held to what an instant can spell."""
    step = CONTRACT.steps[3]
    endless = evolve(step, timeout=1e300, backoff_first=1e300, backoff_max=1e300)
    play = Play.fan_out("a", "b")
    play.snapshot = evolve(play.snapshot, contract=evolve(CONTRACT, steps=(*CONTRACT.steps[:3], endless)))
    play.start("a")
    assert later(play.now, durations.MOST) == play.row("a").until
    play.does(play.raised("a"))

    at = play.unit("a").not_before
    assert at is not None
    assert durations.MOST >= seconds_between(play.now, at)


# ---- ends without an answer -----------------------------------------------------------------------------

AGAIN, HELD, FAILURE, SKIPPED = (ends.EndKind(word) for word in ("again", "held", "failure", "skipped"))
ENDED: dict[tuple[str, bool], tuple[ends.EndKind, str]] = {
    ("died", True): (AGAIN, "interrupted"),
    ("died", False): (HELD, "interrupted"),
    ("pause", True): (AGAIN, "interrupted"),
    ("pause", False): (HELD, "interrupted"),
    ("cancel", True): (AGAIN, "canceled"),
    ("cancel", False): (HELD, "canceled"),
    ("expire", True): (AGAIN, "expired"),
    ("expire", False): (HELD, "expired"),
    ("skip", True): (SKIPPED, "skipped"),
    ("skip", False): (SKIPPED, "skipped"),
    ("timeout", True): (FAILURE, "timeout"),
    ("timeout", False): (HELD, "timeout"),
    ("silence", True): (FAILURE, "silence"),
    ("silence", False): (HELD, "silence"),
    ("hold", True): (AGAIN, "interrupted"),
    ("hold", False): (HELD, "interrupted"),
    ("shutdown", True): (AGAIN, "interrupted"),
    ("shutdown", False): (HELD, "interrupted"),
}


def test_every_reason_to_stop_has_its_rows() -> None:
    """The table of ends has a row for a death, for silence and each stop reason, repeatable or not."""
    every = {(why, repeatable) for why in ("died", "silence", *StopReason) for repeatable in (True, False)}

    assert every == set(ends.ENDS) == set(ENDED)


@pytest.mark.parametrize(("why", "repeatable"), ENDED)
def test_end_without_an_answer(why: str, repeatable: bool) -> None:
    """A try that ends unanswered goes where its row says: again only if repeatable, never silently done."""
    kind, code = ENDED[why, repeatable]
    play = Play.fan_out(
        "a", "b", at="read" if repeatable else "post", deadline=50.0 if why == "expire" else None
    )
    play.start("a")
    if why == "died":
        play.does(play.gone("a"))
    elif why == "silence":
        play.answer("a", CutOff(code="silence", reason="it printed nothing"))
    else:
        STOPS[StopReason(why)](play, "a")
        assert StopReason(why) == play.row("a").stop
        assert [Action(ActionKind.STOP, "a", 1)] == [one for one in play.due() if one.id == "a"]
        play.stopped()
    unit = play.unit("a")

    states = {AGAIN: ItemState.PENDING, FAILURE: ItemState.PENDING}
    assert (states.get(kind) or ItemState(kind.value), code) == (unit.state, unit.code)
    assert (1 if kind is FAILURE else 0) == unit.failures
    assert (1 if why == "died" else 0) == unit.crashes
    assert (unit.not_before is not None) == (kind is FAILURE)
    assert "a" not in play.snapshot.tries


@pytest.mark.parametrize("why", [why for why in StopReason if why is not StopReason.SKIP])
@pytest.mark.parametrize("unit", ["a", ""])
def test_a_stopped_try_may_still_answer(why: StopReason, unit: str) -> None:
    """What is finished before the stop reached it is finished: a stop never turns done into undone."""
    deadline = 50.0 if why is StopReason.EXPIRE else None
    play = Play.fan_out("a", "b", deadline=deadline) if unit else Play.of(deadline=deadline)
    play.start(unit)
    STOPS[why](play, unit)
    play.answer(unit, Accepted() if unit else Finished(), output=FOUND)

    assert ItemState.DONE == play.unit(unit).state
    assert {} == play.snapshot.tries


@pytest.mark.parametrize("case", ["stopped", "raised", "try again", "next step", "illegal"])
@pytest.mark.parametrize("before", ["running", "paused now", "timeout", "shutdown"])
def test_a_skip_of_a_running_item_is_never_lost(case: str, before: str) -> None:
    """However the try then ends but accepted, and whatever stopped it first, the item is left out."""
    play = Play.fan_out("a", "b")
    play.start("a")
    stops = {"paused now": StopReason.PAUSE, "timeout": StopReason.TIMEOUT, "shutdown": StopReason.SHUTDOWN}
    if before in stops:
        STOPS[stops[before]](play, "a")
    play.does(events.Skip(by=ANNA, items=("a",)))
    if case == "stopped":
        play.stopped()
    elif case == "raised":
        play.does(play.raised("a"))
    else:
        said: dict[str, Decided] = {
            "try again": TryAgain(reason="busy"),
            "next step": NextStep(step="write"),
            "illegal": Finished(),
        }
        play.answer("a", said[case])

    assert (ItemState.SKIPPED, "skipped") == (play.unit("a").state, play.unit("a").code)


def test_a_skip_does_not_undo_what_was_accepted() -> None:
    """An item that was accepted before the skip reached it is done."""
    play = Play.fan_out("a", "b")
    play.start("a")
    play.does(events.Skip(by=ANNA, items=("a",)))
    play.answer("a", Accepted(), output=FOUND)

    assert ItemState.DONE == play.unit("a").state


def test_three_deaths_in_a_row_hold_the_unit() -> None:
    """From the third start in a row without a recorded end on, a person must look."""
    play = Play.fan_out("a", "b")
    seen = []
    for _ in range(3):
        play.start("a")
        play.does(play.gone("a"))
        seen.append((play.unit("a").state, play.unit("a").crashes))

    assert [(ItemState.PENDING, 1), (ItemState.PENDING, 2), (ItemState.HELD, 3)] == seen
    assert ("crashes", 0) == (play.unit("a").code, play.unit("a").failures)


@pytest.mark.parametrize("between", ["raised", "answered", "stopped"])
def test_a_recorded_end_clears_the_deaths(between: str) -> None:
    """Deaths count in a row: an error, an answer or a stop that was asked for begins the row anew."""
    play = Play.fan_out("a", "b")
    for _ in range(2):
        play.start("a")
        play.does(play.gone("a"))
    play.start("a")
    if between == "raised":
        play.does(play.raised("a"))
    elif between == "answered":
        play.answer("a", Later(seconds=0.0))
    else:
        play.does(events.Pause(by=ANNA, now=True))
        play.stopped()

    assert (ItemState.PENDING, 0) == (play.unit("a").state, play.unit("a").crashes)


def test_a_death_while_being_stopped_still_counts() -> None:
    """A worker that dies on its own before the stop reached it has crashed all the same."""
    play = Play.fan_out("a", "b")
    play.start("a")
    play.does(events.Pause(by=ANNA, now=True))
    play.does(play.gone("a", died=True))

    assert (ItemState.PENDING, 1) == (play.unit("a").state, play.unit("a").crashes)


def test_a_job_step_that_was_interrupted_holds_the_job_unless_repeatable() -> None:
    """A job step cut off is run again if it is repeatable, else the job is held: its outcome is unknown."""
    again, held = Play.of(), Play.of(start="ship")
    for play in (again, held):
        play.start("")
        play.does(play.gone(""))

    assert ([""], None) == (again.starts(), again.code())
    assert ([], "interrupted", ItemState.HELD) == (held.starts(), held.code(), held.unit("").state)
    assert held.snapshot.hold is not None
    assert "outcome is unknown" in held.snapshot.hold.reason


def test_a_try_that_never_began_is_no_crash() -> None:
    """Where no worker ever heard of a try, its item is tried again, also one whose step is not repeatable."""
    play = Play.fan_out("a", "b", at="post")
    play.start("a")

    assert "again" == play.does(play.gone("a", died=False, began=False))
    assert (ItemState.PENDING, 0, 1) == (play.unit("a").state, play.unit("a").crashes, play.unit("a").tries)


def test_an_end_for_another_try_s_sake_is_no_crash() -> None:
    """A try that was ended with its shared worker is interrupted, and its end is on record."""
    play = Play.fan_out("a", "b")
    play.start("a")

    assert "again" == play.does(play.gone("a", died=False))
    assert (ItemState.PENDING, 0) == (play.unit("a").state, play.unit("a").crashes)
