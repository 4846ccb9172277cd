"""Schedules: a job that waits starts nothing, its waits end by time or by what other jobs have become."""

import pytest
from machine_kit import ANNA, Play, moment

from resumed.actors.machine import due, schedule, standing
from resumed.schemas import events
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Ending, Status
from resumed.schemas.jobfile import JobFile
from resumed.schemas.ledger import Obstacle

NOW = moment()


def file(**keys: str) -> JobFile:
    """A job file with these times."""
    return JobFile(workflow="scan", **keys)


def test_spans_become_instants_at_admission() -> None:
    """A span counts from the admission on both clocks, and is an instant from then on."""
    start, end = schedule.instants(file(not_before="90s", deadline="2026-11-18T13:06:40.000000Z"), NOW, "x")

    assert (moment(90.0), moment(7200.0)) == (start, end)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"deadline": "2026-11-18T11:06:39.000000Z"}, r"the deadline has passed.* @ \$\.deadline"),
        ({"deadline": "0s"}, r"the deadline has passed"),
        ({"not_before": "2066-11-18T11:06:39.000000Z"}, r"within ten years.* @ \$\.not_before"),
    ],
)
def test_times_that_make_no_sense_are_refused_at_the_door(keys: dict[str, str], said: str) -> None:
    """A deadline in the past, or before the start, and a time too far away are named with their key."""
    with pytest.raises(FaultyInputError, match=said):
        schedule.instants(file(**keys), NOW, "cannot admit x")


def test_a_job_starts_at_its_time_and_not_before() -> None:
    """Before its instant nothing is due but to look again; at it the row goes, for good."""
    play = Play.of("a", not_before=100.0)
    assert [] == play.due()
    assert moment(100.0) == due.next_due(play.snapshot, play.now)
    assert (Status.WAITING, moment(100.0)) == (
        standing.status(play.snapshot, play.now),
        due.next_start(play.snapshot, play.now),
    )
    play.wait(99.9)
    assert play.changes_nothing(events.Tick())
    play.wait(0.1)

    assert "its time has come" == play.does(events.Tick())
    assert ((), [""]) == (play.snapshot.waits, play.starts())


def test_a_start_in_the_past_is_no_wait() -> None:
    """A job whose time to start has passed when it comes in is like any other."""
    assert [""] == Play.of("a", not_before=-5.0).starts()


def test_a_job_waits_for_all_others_to_complete() -> None:
    """It starts once each of the jobs that it names has completed, whatever their order."""
    play = Play.of("a", after=("p", "q"))
    assert ([], None) == (play.due(), due.next_due(play.snapshot, play.now))
    assert "waiting for p, q to complete" == standing.why(play.snapshot, play.now)
    assert "q has completed" == play.does(events.OtherJob(job="q", completed=True))
    assert [] == play.starts()
    assert play.changes_nothing(events.OtherJob(job="q", obstacle=Obstacle.FAILED))
    play.does(events.OtherJob(job="p", completed=True))

    assert [""] == play.starts()


@pytest.mark.parametrize("obstacle", Obstacle)
def test_another_job_that_will_not_complete_holds_it(obstacle: Obstacle) -> None:
    """It is held with the reason, its owner, and commands that do something: to go on without, or to end."""
    play = Play.of("a", after=("p", "q"))
    play.does(events.OtherJob(job="p", obstacle=obstacle))
    hold = play.snapshot.hold
    assert hold is not None
    assert ("after", "anna", f"it starts after p, {schedule.SAID[obstacle]}") == (
        hold.code,
        hold.owner,
        hold.reason,
    )
    assert {"resumectl resume harbour-7", "resumectl cancel harbour-7"} <= set(
        standing.commands(play.snapshot)
    )
    play.does(events.Resume(by=ANNA, reason="we have its output already"))

    assert (None, ["q"]) == (play.snapshot.hold, [row.event for row in play.snapshot.waits])


def test_the_hold_lifts_by_itself_when_the_other_job_comes_back() -> None:
    """A job that was unknown or set aside may come in yet: then the hold is over, and the wait is not."""
    play = Play.of("a", after=("p",))
    play.does(events.OtherJob(job="p", obstacle=Obstacle.UNKNOWN))
    assert "after" == play.code()
    play.does(events.OtherJob(job="p"))
    assert (None, Status.WAITING) == (play.code(), standing.status(play.snapshot, play.now))
    play.does(events.OtherJob(job="p", completed=True))

    assert [""] == play.starts()


def test_a_hold_of_another_reason_is_not_lifted_by_other_jobs() -> None:
    """What holds it first stays; the other job's failure holds it once that is lifted."""
    play = Play.of("a", after=("p",))
    play.does(events.Trouble(code="worker", reason="it cannot start"))
    play.does(events.OtherJob(job="p", obstacle=Obstacle.CANCELED))
    assert "worker" == play.code()
    play.does(events.Resume(by=ANNA))
    assert "after" == play.code()
    play.does(events.Trouble(code="not_gone", reason="a worker"))
    play.does(events.OtherJob(job="p", completed=True))

    assert "not_gone" == play.code()


def test_a_waiting_job_ends_at_its_deadline_and_by_cancel() -> None:
    """A wait holds up neither its deadline nor a cancel, and what comes later changes nothing."""
    late = Play.of("a", after=("p",), deadline=50.0)
    assert moment(50.0) == due.next_due(late.snapshot, late.now)
    late.wait(50.0)
    late.does(events.Tick())
    ended = Play.of("a", not_before=9.0)
    ended.does(events.Cancel(by=ANNA))

    assert [Ending.EXPIRED, Ending.CANCELED] == [
        play.snapshot.outcome and play.snapshot.outcome.ending for play in (late, ended)
    ]
    assert late.changes_nothing(events.OtherJob(job="p", completed=True))


def test_a_pause_and_a_wait_are_apart() -> None:
    """The time that comes while the job is paused or held is recorded then; the pause stays."""
    play = Play.of("a", not_before=100.0)
    play.does(events.Pause(by=ANNA))
    assert moment(100.0) == due.next_due(play.snapshot, play.now)
    play.wait(100.0)
    play.does(events.Tick())
    assert ((), []) == (play.snapshot.waits, play.starts())
    play.does(events.Resume(by=ANNA))

    assert [""] == play.starts()
