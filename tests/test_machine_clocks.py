"""What time it is for a job: limits by elapsed time, a wall clock that moved alone, and another boot."""

from typing import Any

import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_kit import ANNA, BOOT, NEXT_BOOT, Play, folded, moment

from resumed.actors.machine import due, reckoning, standing
from resumed.schemas import decisions, events
from resumed.schemas.instant import Instant, later, reached, seconds_until
from resumed.schemas.job import Clocks, Ending, StopReason
from resumed.schemas.snapshot import Entry

HOUR = 3600.0
DAY = 24 * HOUR


def jump(play: Play, seconds: float) -> None:
    """Somebody sets the wall clock."""
    play.now = evolve(play.now, wall=play.now.wall + round(seconds * 1e6))


def reboot(play: Play, *, away: float, wall: float | None = None, up: float = 20.0) -> None:
    """The machine comes back `up` seconds into its next boot, after so long; its wall clock has moved by
    `wall` meanwhile (None: by as much as went by)."""
    moved = away if wall is None else wall
    play.now = Instant(
        wall=play.now.wall + round(moved * 1e6), boot=f"{NEXT_BOOT}{play.now.boot[-1:]}", up=round(up * 1e6)
    )


def looks(play: Play) -> str:
    """What a tick does now; "" when nothing."""
    verdict = play.tell(events.Tick())
    return verdict.decision.choice if isinstance(verdict, Entry) else ""


def ending(play: Play) -> Ending | None:
    """How the job has ended."""
    return None if play.snapshot.outcome is None else play.snapshot.outcome.ending


# ---- one boot ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moved", [-2 * HOUR, 2 * HOUR, 0.0])
def test_a_retry_comes_after_the_time_that_went_by(moved: float) -> None:
    """Wherever the wall clock is set meanwhile, 40 s are 40 s; also when it was set before the failure."""
    for early in (False, True):
        play = Play.fan_out("a")
        if early:
            jump(play, moved)
        play.start("a")
        play.answer("a", decisions.Later(seconds=40.0))
        if not early:
            jump(play, moved)
        at = due.next_due(play.snapshot, play.now)
        assert at is not None
        assert 40.0 == seconds_until(at, play.now)
        play.wait(39.9)
        assert [] == play.starts()
        play.wait(0.2)

        assert ["a"] == play.starts()


@pytest.mark.parametrize("moved", [-2 * HOUR, 2 * HOUR])
def test_a_running_try_has_all_its_time(moved: float) -> None:
    """A try is stopped after its time limit, and not because somebody sets the clock."""
    play = Play.fan_out("a")
    play.start("a")
    jump(play, moved)
    play.wait(99.0)
    assert "" == looks(play)
    play.wait(1.0)
    assert "timeout" == looks(play)

    assert StopReason.TIMEOUT is play.row("a").stop


def test_a_deadline_lapses_by_elapsed_time_though_the_wall_was_set_back() -> None:
    """A clock that was set back extends nothing: the job ends when its time has gone by, for good."""
    play = Play.of("a", deadline=HOUR)
    jump(play, -2 * HOUR)
    play.wait(HOUR - 1)
    assert "" == looks(play)
    play.wait(1.0)
    assert "expired" == looks(play)

    assert Ending.EXPIRED is ending(play)


def test_what_only_a_jump_would_decide_is_held() -> None:
    """A deadline that only the wall clock shows as passed stops all new work and ends nothing; it is judged
    anew when the clock is set back, and comes for good when its time has gone by."""
    play = Play.fan_out("a", "b", deadline=HOUR)
    play.start("a")
    jump(play, 2 * HOUR)
    assert play.now == due.next_due(play.snapshot, play.now)
    assert "held for the clock" == looks(play)
    assert play.snapshot.hold is not None
    assert "clock" == play.snapshot.hold.code
    assert (
        "only a wall clock that was set forward by 2h00m says that its deadline has passed: by the time that "
        "went by, that is 1h00m away"
    ) == play.snapshot.hold.reason
    assert ([], None) == (play.starts(), play.row("a").stop)
    play.answer("a", decisions.Accepted(), slot=True)
    assert {} == play.snapshot.tries
    assert {"resumectl resume harbour-7", "resumectl cancel harbour-7"} <= set(
        standing.commands(play.snapshot)
    )
    jump(play, -2 * HOUR)
    assert play.now == due.next_due(play.snapshot, play.now)
    assert "the clock is known" == looks(play)
    assert (None, ["b"]) == (play.code(), play.starts())
    jump(play, 2 * HOUR)
    looks(play)
    assert seconds_until(due.next_due(play.snapshot, play.now), play.now) == HOUR  # type: ignore[arg-type]
    play.wait(HOUR)
    assert "expired" == looks(play)

    assert Ending.EXPIRED is ending(play)
    assert play.snapshot == folded(play.lines)


def test_a_jump_is_on_record_with_the_next_line() -> None:
    """What is committed under a wall clock that moved alone says so, and says when that is over."""
    play = Play.fan_out("a", "b")
    jump(play, 2 * HOUR)
    play.start("a")
    assert Clocks(known=moment(), jumped=play.now) == play.snapshot.clocks
    first = play.now
    play.wait(5.0)
    play.answer("a", decisions.Accepted())
    assert play.snapshot.clocks is not None
    assert first == play.snapshot.clocks.jumped
    jump(play, -2 * HOUR)
    play.start("b")

    assert Clocks(known=moment()) == play.snapshot.clocks


def test_a_jump_before_the_deadline_holds_when_the_wall_shows_it() -> None:
    """A jump of half an hour decides nothing yet; the job is looked at when the wall clock shows the end."""
    play = Play.of("a", deadline=HOUR)
    jump(play, HOUR / 2)
    assert "" == looks(play)
    at = due.next_due(play.snapshot, play.now)
    assert at is not None
    assert HOUR / 2 == seconds_until(at, play.now)
    play.wait(HOUR / 2)

    assert "held for the clock" == looks(play)


def test_a_start_that_only_a_jump_brings_is_held_and_a_person_may_start_it() -> None:
    """The same of a time to start: by itself it starts when its time has gone by, or by a person's word."""
    waiting = Play.of("a", not_before=HOUR)
    jump(waiting, 2 * HOUR)
    assert "held for the clock" == looks(waiting)
    waiting.wait(HOUR)
    looks(waiting)
    assert (None, [""]) == (waiting.code(), waiting.starts())
    asked = Play.of("a", not_before=HOUR)
    jump(asked, 2 * HOUR)
    looks(asked)
    asked.does(events.Resume(by=ANNA, reason="the clock was wrong before"))

    assert (None, [""]) == (asked.code(), asked.starts())


def test_a_person_lets_a_job_go_on_until_its_time_has_gone_by() -> None:
    """A resume under a doubtful clock holds for that jump: the deadline still comes, by elapsed time; another
    jump is doubted anew."""
    play = Play.fan_out("a", "b", deadline=HOUR)
    jump(play, 2 * HOUR)
    looks(play)
    play.does(events.Resume(by=ANNA))
    assert (None, ["a", "b"]) == (play.code(), play.starts())
    assert "" == looks(play)
    again = evolve(play.snapshot)
    jump(play, HOUR)
    looks(play)
    assert "clock" == play.code()
    play.snapshot, play.now = again, later(play.now, HOUR)
    jump(play, -HOUR)
    looks(play)

    assert Ending.EXPIRED is ending(play)


def test_a_step_that_is_held_meanwhile_holds_the_job_when_the_clock_is_known() -> None:
    """The first reason is the one to mend; the second is not lost when the first is over by itself."""
    play = Play.of("a", deadline=HOUR)
    play.start("")
    jump(play, 2 * HOUR)
    looks(play)
    play.answer("", decisions.HoldBack(code="unsure", reason="which month?"))
    assert "clock" == play.code()
    jump(play, -2 * HOUR)
    looks(play)
    hold = play.snapshot.hold
    assert hold is not None
    assert ("unsure", "step open: which month?") == (hold.code, hold.reason)
    play.does(events.Resume(by=ANNA))

    assert [""] == play.starts()


@pytest.mark.parametrize("moved", [-1.9, 1.0, 1.9])
def test_a_leap_second_is_no_jump(moved: float) -> None:
    """A second or two are within what machines' clocks differ by."""
    play = Play.of("a", deadline=HOUR)
    jump(play, moved)
    play.start("")

    assert Clocks(known=moment()) == play.snapshot.clocks


def test_active_time_is_elapsed_time() -> None:
    """Work takes as long as it takes, whatever the wall clock shows then."""
    play = Play.fan_out("a")
    play.start("a")
    jump(play, -2 * HOUR)
    play.wait(50.0)
    jump(play, 5 * HOUR)
    play.does(events.Pause(by=ANNA, now=True))
    play.stopped()

    assert 50.0 == play.snapshot.used.active_seconds


# ---- another boot -----------------------------------------------------------------------------------------


def test_the_wall_clock_of_another_boot_is_believed_when_it_is_ahead() -> None:
    """The machine was off for an hour: what lapsed meanwhile has lapsed, for good."""
    play = Play.of("a", deadline=HOUR)
    reboot(play, away=HOUR)
    assert play.now == due.next_due(play.snapshot, play.now)
    assert "expired" == looks(play)

    assert Ending.EXPIRED is ending(play)


def test_a_job_with_limits_reads_the_clock_of_each_boot() -> None:
    """So that a jump later in that boot is seen, one line says what time it was; a job without limits needs
    none."""
    play = Play.of("a", deadline=DAY)
    reboot(play, away=60.0)
    assert "the clock was read" == looks(play)
    assert Clocks(known=play.now) == play.snapshot.clocks
    assert "" == looks(play)
    jump(play, 2 * DAY)
    assert "held for the clock" == looks(play)
    free = Play.of("a")
    reboot(free, away=60.0)

    assert (None, "") == (due.next_due(free.snapshot, free.now), looks(free))


def test_a_clock_that_is_behind_in_another_boot_holds_what_time_would_end() -> None:
    """Nobody knows how long the machine was off: work under a deadline waits until the clock is known."""
    play = Play.fan_out("a", deadline=DAY)
    play.wait(10.0)
    reboot(play, away=HOUR, wall=-2 * HOUR)
    assert "held for the clock" == looks(play)
    assert play.snapshot.hold is not None
    assert (
        "nobody can tell whether its deadline has passed: in this boot the wall clock shows 2h00m less than "
        "it must"
    ) == play.snapshot.hold.reason
    assert play.snapshot.clocks is not None
    assert play.snapshot.clocks.floor
    play.wait(HOUR)
    assert "" == looks(play)
    jump(play, 3 * HOUR + 20.0)  # the time service has come
    assert play.now == due.next_due(play.snapshot, play.now)
    assert "the clock is known" == looks(play)

    assert (None, Clocks(known=play.now)) == (play.code(), play.snapshot.clocks)
    assert ["a"] == play.starts()


def test_a_clock_that_is_behind_still_carries_time_on() -> None:
    """From the newest record on at least this boot's time has gone by: retries come, and so do deadlines."""
    play = Play.fan_out("a", "b", parallel=1, deadline=HOUR)
    play.start("a")
    play.answer("a", decisions.Later(seconds=40.0))
    reboot(play, away=HOUR, wall=-DAY)
    looks(play)
    play.does(events.Resume(by=ANNA, reason="it was off for a minute"))
    assert ["b"] == play.starts()
    at = due.next_start(play.snapshot, play.now)
    assert at is not None
    assert 20.0 == due.left(play.snapshot, at, play.now)
    play.wait(20.0)
    assert ["a"] == play.starts()
    play.wait(HOUR - 41.0)
    assert "" == looks(play)
    play.wait(1.0)
    looks(play)

    assert Ending.EXPIRED is ending(play)


def test_a_cold_clock_holds_up_no_job_without_a_deadline() -> None:
    """What needs no date goes on at once, whatever year the machine thinks it is."""
    play = Play.fan_out("a")
    reboot(play, away=HOUR, wall=-1000 * DAY)
    play.start("a")

    assert "done" == play.answer("a", decisions.Accepted())


def test_a_jump_of_the_boot_before_is_not_taken_for_the_truth() -> None:
    """Records that were written under a clock two hours ahead do not put the right clock of the next boot in
    doubt."""
    play = Play.fan_out("a", "b", deadline=DAY)
    jump(play, 2 * HOUR)
    play.start("a")
    play.answer("a", decisions.Accepted())
    play.wait(60.0)
    reboot(play, away=60.0, wall=-2 * HOUR + 60.0)
    assert "the clock was read" == looks(play)

    assert (None, ["b"]) == (play.code(), play.starts())


def test_a_job_of_an_older_release_learns_the_time() -> None:
    """A snapshot without a word about clocks is judged by its newest record."""
    play = Play.of("a", deadline=HOUR)
    play.snapshot = evolve(play.snapshot, clocks=None)
    same = reckoning.sight(play.snapshot, later(play.now, 5.0))
    ahead = reckoning.sight(play.snapshot, evolve(play.now, wall=play.now.wall + 9_000_000_000))
    assert (reckoning.Sight(later(play.now, 5.0).wall), 9_000_000_000) == (same, ahead.ahead)
    play.wait(1.0)
    assert "the clock was read" == looks(play)
    assert Clocks(known=play.now) == play.snapshot.clocks


# ---- whatever comes together ------------------------------------------------------------------------------


@define(eq=False)
class World:
    """A job, two clocks, and the time that really went by since it came in."""

    play: Play
    true: float = 0.0
    lied: bool = False
    asked: bool = False
    """A person said to go on: a wait that only the wall clock ended is over for good by that."""
    boots: int = 0
    seen: set[str] = field(factory=set)

    def look(self) -> None:
        """As the loop does: limits first, then whatever may start starts and ends."""
        play = self.play
        for _ in range(3):
            at = due.next_due(play.snapshot, play.now)
            if at is None or not reached(at, play.now):
                break
            said = looks(play)
            assert said, at  # nobody rings for nothing
            self.seen.add(said)
        if play.snapshot.outcome is None:
            for unit in play.starts():
                self.started()
                play.start(unit)
                play.answer(unit, self.says(unit))
        at = due.next_due(play.snapshot, play.now)
        assert at is None or not reached(at, play.now) or isinstance(play.ask(events.Tick()), Entry)

    def says(self, unit: str) -> decisions.Decided:
        """Items go on for ever."""
        if unit == "":
            return decisions.FanOut(start="read", then="close", parallel=3)
        return decisions.Later(seconds=45.0)

    def started(self) -> None:
        """Nothing starts before its time or after its end, as far as anybody could know."""
        if self.boots == 0 or not self.lied:
            assert self.true < LIMIT
            assert self.true >= START or self.asked

    def ends(self) -> None:
        """A deadline that is recorded as passed has passed."""
        if ending(self.play) is Ending.EXPIRED and (self.boots == 0 or not self.lied):
            assert self.true >= LIMIT


START, LIMIT = 200.0, 5_000.0
acts = st.lists(
    st.tuples(
        st.sampled_from(["pass", "pass", "pass", "jump", "boot", "ask"]),
        st.floats(0.0, 3_000.0),
        st.sampled_from([-2 * HOUR, -600.0, 600.0, 2 * HOUR]),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(acts)
def test_no_jump_extends_a_deadline_or_ends_a_job_before_it(told: list[tuple[str, float, float]]) -> None:
    """Whatever is done to the wall clock in one boot, work starts neither before its time nor after its end,
    and the end comes; with honest walls the same holds over boots (property)."""
    made = World(Play.of("a", "b", not_before=START, deadline=LIMIT))
    play = made.play
    made.look()
    for act, seconds, moved in told:
        if act == "jump":
            jump(play, moved)
            made.lied = True
        elif act == "ask" and play.snapshot.outcome is None and play.snapshot.hold is not None:
            play.does(events.Resume(by=ANNA))
            made.asked = True
        else:
            play.now = later(play.now, seconds)
            made.true += seconds
            if act == "boot":
                made.boots += 1
                play.now = evolve(play.now, boot=f"{BOOT}{made.boots}", up=round(seconds / 2 * 1e6))
        made.look()
        made.ends()
    if made.boots == 0:
        play.now = later(play.now, LIMIT)
        made.true += LIMIT
        made.look()
        assert Ending.EXPIRED is ending(play)
    assert play.snapshot == folded(play.lines)


def test_the_clocks_reach_every_case() -> None:
    """A long fixed history meets each thing that a look can do about clocks."""
    seen: set[str] = set()
    number = 7
    for _ in range(60):
        made = World(Play.of("a", "b", not_before=START, deadline=LIMIT))
        for _ in range(30):
            number = number * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407 & (2**64 - 1)
            draw: Any = (number >> 33) % 8
            if draw == 0:
                jump(made.play, (-2 * HOUR, 2 * HOUR)[(number >> 40) % 2])
                made.lied = True
            else:
                made.play.now = later(made.play.now, 60.0)
                made.true += 60.0
            if draw == 1:
                made.boots += 1
                made.play.now = evolve(made.play.now, boot=f"{BOOT}{made.boots}", up=1_000_000)
            made.look()
        seen |= made.seen

    assert {"held for the clock", "the clock is known", "the clock was read", "its time has come"} <= seen
