"""What is due and when to look again: from the snapshot alone, whatever happened before."""

from attrs import evolve
from machine_kit import ANNA, NEXT_BOOT, TIMEOUT, Play, moment

from resumed.actors.machine import due
from resumed.actors.machine.due import NEAR_SECONDS
from resumed.schemas import decisions, events
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.instant import Instant, later

START, RUN, STOP = ActionKind.START, ActionKind.RUN, ActionKind.STOP


def test_an_open_try_is_due_to_run_until_it_is_marked() -> None:
    """A try wants to run, and once marked wants to be stopped, until its end is committed."""
    play = Play.fan_out("a")
    seen = [play.due()]
    play.start("a")
    seen.append(play.due())
    play.does(events.Pause(by=ANNA, now=True))
    seen.append(play.due())
    play.stopped()
    seen.append(play.due())

    assert [[Action(START, "a", 1)], [Action(RUN, "a", 1)], [Action(STOP, "a", 1)], []] == seen


def test_a_new_try_has_a_new_key() -> None:
    """A number is never used twice, so a key that ceased to be due cannot come back."""
    play = Play.fan_out("a")
    keys = []
    for _ in range(3):
        keys += play.due()
        play.start("a")
        keys += play.due()
        play.answer("a", decisions.Later(seconds=0.0))

    assert len(set(keys)) == len(keys) == 6


def test_due_is_asked_of_the_snapshot_alone() -> None:
    """Asking changes nothing and gives the same again: a kill between commit and act loses nothing."""
    play = Play.fan_out("a", "b", "c", parallel=3)
    play.start("a", "b")

    assert play.due() == play.due() == [Action(RUN, "a", 1), Action(RUN, "b", 1), Action(START, "c", 1)]


def test_what_waited_longest_in_the_file_starts_first() -> None:
    """Of the items whose pause is over, the first in order starts first, before any fresh one."""
    play = Play.fan_out("a", "b", "c", "d", parallel=2)
    play.start("a", "b")
    play.answer("b", decisions.Later(seconds=1.0))
    play.answer("a", decisions.Later(seconds=2.0))
    assert ["c", "d"] == play.starts()
    play.wait(2.0)

    assert ["a", "b"] == play.starts()
    assert ["a", "b", "c"] == due.wanted(evolve(play.snapshot, each=_wider(play)), play.now, 3)


def _wider(play: Play) -> object:
    assert play.snapshot.each is not None
    return evolve(play.snapshot.each, parallel=9)


def test_the_next_instant_is_the_earliest_of_all() -> None:
    """Pauses that could start something, time limits and the deadline: the first to come is named."""
    play = Play.fan_out("a", "b", "c", parallel=2, deadline=5000.0)
    at: list[Instant | None] = [due.next_due(play.snapshot, play.now)]
    play.start("a", "b")
    at.append(due.next_due(play.snapshot, play.now))
    play.answer("a", decisions.Later(seconds=500.0))
    at.append(due.next_due(play.snapshot, play.now))
    play.answer("b", decisions.Later(seconds=50.0))
    at.append(due.next_due(play.snapshot, play.now))
    play.does(events.Pause(by=ANNA))
    at.append(due.next_due(play.snapshot, play.now))

    assert [moment(s) for s in (5000.0, TIMEOUT, TIMEOUT, 50.0, 5000.0)] == at


def test_a_stop_that_is_under_way_has_no_time_limit() -> None:
    """A marked try is not looked at again for its time: its end is what is waited for."""
    play = Play.fan_out("a")
    play.start("a")
    play.does(events.Pause(by=ANNA, now=True))

    assert None is due.next_due(play.snapshot, play.now)


def test_an_attempt_is_kept_while_the_next_start_is_near() -> None:
    """A retry under a minute away raises no epoch; one farther away lets the job park."""
    near, far = Play.fan_out("a"), Play.fan_out("a")
    for play, seconds in ((near, NEAR_SECONDS), (far, NEAR_SECONDS + 1)):
        play.start("a")
        play.answer("a", decisions.Later(seconds=seconds))

    assert near.snapshot.attempt is not None
    assert None is far.snapshot.attempt
    for play in (near, far):
        play.wait(NEAR_SECONDS + 1)
        play.start("a")
    assert (1, 2) == (near.snapshot.epoch, far.snapshot.epoch)


def test_a_pause_goes_by_the_wall_in_another_boot() -> None:
    """After a restart of the machine the elapsed time of before says nothing: UTC ends the pause."""
    play = Play.fan_out("a")
    play.start("a")
    play.answer("a", decisions.Later(seconds=100.0))
    after = evolve(later(play.now, 99.0), boot=NEXT_BOOT, up=5_000_000)

    assert [] == due.due(play.snapshot, after)
    assert [Action(START, "a", 2)] == due.due(play.snapshot, later(after, 1.0))


def test_a_pause_ends_by_elapsed_time_in_the_same_boot() -> None:
    """A wall clock that was set back does not prolong a pause."""
    play = Play.fan_out("a")
    play.start("a")
    play.answer("a", decisions.Later(seconds=100.0))
    back = evolve(later(play.now, 100.0), wall=play.now.wall - 10**9)

    assert [Action(START, "a", 2)] == due.due(play.snapshot, back)
