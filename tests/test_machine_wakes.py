"""Waking, time and the house: what happens to a job from outside its own work."""

import pytest
from attrs import evolve
from machine_kit import ANNA, TIMEOUT, Play, in_words, text

from resumed.actors.machine.verdict import Unchanged
from resumed.schemas import events
from resumed.schemas.job import Ending, ItemState, StopReason

# ---- waking ---------------------------------------------------------------------------------------------


def test_wake_closes_the_attempt_and_its_tries() -> None:
    """Loaded with an attempt open, its tries are interrupted and it is over; no try of it is counted."""
    play = Play.fan_out("a", "b")
    play.start("a", "b")
    play.does(events.Woke())

    assert (None, {}) == (play.snapshot.attempt, play.snapshot.tries)
    assert [(ItemState.PENDING, 0, 1, "interrupted")] * 2 == [
        (row.state, row.failures, row.crashes, row.code) for row in play.snapshot.items
    ]
    assert ["a", "b"] == play.starts()
    epoch = play.snapshot.epoch
    play.start("a")
    assert epoch + 1 == play.row("a").epoch


def test_wake_ends_a_stop_as_it_was_meant() -> None:
    """A stop committed before the daemon died decides what becomes of the try, as it would have alive."""
    play = Play.fan_out("a", "b", "c", parallel=3)
    play.start("a", "b", "c")
    play.does(events.Skip(by=ANNA, items=("a",)))
    play.wait(TIMEOUT)
    play.does(events.Tick())
    play.does(events.Woke())

    assert [("skipped", 0), ("timeout", 1), ("timeout", 1)] == [
        (row.code, row.failures) for row in play.snapshot.items
    ]


def test_wake_without_an_attempt_changes_nothing() -> None:
    """A parked job that is loaded has nothing to make good."""
    assert Play.of("a").changes_nothing(events.Woke())


@pytest.mark.parametrize("before", ["nothing", "a hold of its own", "a cancel", "a held step"])
def test_unproven_trees_hold_the_job_above_all(before: str) -> None:
    """While a tree may be alive nothing starts and nothing ends, whatever else held or ended the job."""
    play = Play.of(start="ship") if before == "a held step" else Play.fan_out("a")
    unit = "" if before == "a held step" else "a"
    play.start(unit)
    if before == "a hold of its own":
        play.does(events.Trouble(code="worker", reason="it cannot start"))
    elif before == "a cancel":
        assert "canceling" == play.does(events.Cancel(by=ANNA))
    play.does(events.Woke(unproven=("w-9",), detail="its keeper was killed."))

    assert play.snapshot.hold is not None
    assert ("not_gone", "anna") == (play.snapshot.hold.code, play.snapshot.hold.owner)
    assert "w-9" in play.snapshot.hold.reason
    assert ([], None) == (play.due(), play.snapshot.outcome)
    if before != "a cancel":
        play.tell(events.Retry(by=ANNA))
        assert "not_gone" == play.code()
    play.does(events.Resume(by=ANNA))
    assert play.code() is None
    if before == "a cancel":
        assert play.snapshot.outcome is not None
        assert Ending.CANCELED == play.snapshot.outcome.ending
    else:
        assert [unit] == play.starts()


def test_an_unproven_worker_takes_the_place_of_another_hold() -> None:
    """A live worker's end that nobody can prove is never hidden behind an earlier hold."""
    play = Play.fan_out("a")
    play.start("a")
    play.does(events.Trouble(code="worker", reason="it cannot start"))
    play.does(events.Trouble(code="not_gone", reason="nobody can tell that worker w-9 ended"))

    assert "not_gone" == play.code()
    assert play.changes_nothing(events.Trouble(code="not_gone", reason="w-8"))
    assert play.changes_nothing(events.Trouble(code="worker", reason="again"))


# ---- time -----------------------------------------------------------------------------------------------


def test_a_time_limit_is_a_mark_that_stops() -> None:
    """A lapsed limit stops the try; nothing else changes until its end is known."""
    play = Play.fan_out("a", "b")
    play.start("a")
    play.wait(TIMEOUT - 1)
    play.start("b")
    play.wait(1)

    assert "timeout" == play.does(events.Tick())
    assert (StopReason.TIMEOUT, None) == (play.row("a").stop, play.row("b").stop)
    assert play.changes_nothing(events.Tick())


def test_the_deadline_ends_the_job_when_its_tries_are_gone() -> None:
    """Expiry is a durable fact that stops all work at once, and the outcome once that is gone."""
    play = Play.fan_out("a", "b", deadline=50.0)
    play.start("a")
    play.wait(50.0)
    play.does(events.Tick())

    assert (StopReason.EXPIRE, None, "clock") == (
        play.row("a").stop,
        play.snapshot.outcome,
        play.snapshot.expiry and play.snapshot.expiry.by,
    )
    play.stopped()
    assert play.snapshot.outcome is not None
    assert Ending.EXPIRED == play.snapshot.outcome.ending


@pytest.mark.parametrize("command", ["pause", "resume", "retry", "skip", "reopen"])
def test_what_is_being_ended_takes_no_more_requests(command: str) -> None:
    """From the deadline on everything but a cancel is refused, and a cancel has nothing to add."""
    play = Play.fan_out("a", deadline=50.0)
    play.start("a")
    play.wait(50.0)
    play.does(events.Tick())

    refused = play.refusal(in_words(f"resumectl {command} harbour-7"))
    assert ("stopping", ("resumectl watch harbour-7",)) == (refused.code, refused.commands)
    assert play.changes_nothing(events.Cancel(by=ANNA))
    play.stopped()
    assert play.snapshot.outcome is not None
    assert Ending.EXPIRED == play.snapshot.outcome.ending


@pytest.mark.parametrize("standing", ["paused", "held"])
def test_the_deadline_holds_for_what_stands_still(standing: str) -> None:
    """A paused or held job expires like any other."""
    play = Play.of(deadline=50.0)
    if standing == "paused":
        play.does(events.Pause(by=ANNA))
    else:
        play.does(events.Trouble(code="worker", reason="it cannot start"))
    play.wait(50.0)
    play.does(events.Tick())

    assert play.snapshot.outcome is not None
    assert Ending.EXPIRED == play.snapshot.outcome.ending


def test_a_tick_without_a_lapsed_limit_changes_nothing() -> None:
    """Time alone moves nothing."""
    play = Play.fan_out("a", deadline=1000.0)
    play.start("a")
    play.wait(99.0)

    assert play.changes_nothing(events.Tick())


# ---- the house's own ------------------------------------------------------------------------------------


def test_shutdown_stops_what_runs_once() -> None:
    """Draining marks every open try; a second one finds nothing left to mark."""
    play = Play.fan_out("a", "b")
    assert play.changes_nothing(events.Shutdown())
    play.start("a", "b")
    play.does(events.Shutdown())

    assert [StopReason.SHUTDOWN] * 2 == [row.stop for row in play.snapshot.tries.values()]
    assert play.changes_nothing(events.Shutdown())


def test_trouble_holds_the_job_and_stops_what_runs() -> None:
    """What the machine cannot go on with is held with its code, reason and owner; a repeat adds nothing."""
    play = Play.fan_out("a")
    play.start("a")
    trouble = events.Trouble(code="worker", reason="it cannot start")
    play.does(trouble)

    assert play.snapshot.hold is not None
    assert ("worker", "it cannot start", "anna") == (
        play.snapshot.hold.code,
        play.snapshot.hold.reason,
        play.snapshot.hold.owner,
    )
    assert StopReason.HOLD == play.row("a").stop
    assert isinstance(play.ask(trouble), Unchanged)


@pytest.mark.parametrize("said", ["a\x00b", "a\ud800b"])
def test_what_programs_say_can_always_be_stored(said: str) -> None:
    """A NUL or a lone surrogate in an error or a reason never makes a line that cannot be read again."""
    play = Play.fan_out("a", "b")
    play.start("a", "b")
    play.does(play.raised("a", said))
    play.does(evolve(play.gone("b"), reason=said))
    play.does(events.Trouble(code="worker", reason=said))

    assert play.snapshot.hold is not None
    assert ["a\ufffdb"] * 3 == [
        play.unit("a").reason,
        play.unit("b").reason,
        play.snapshot.hold.reason,
    ]
    assert text(play.snapshot)
