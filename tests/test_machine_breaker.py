"""Failures in a row open a breaker that takes them back; and what becomes of a job whose items fail."""

from typing import Any

import pytest
from attrs import evolve
from machine_kit import ANNA, CONTRACT, Play, folded

from resumed.actors.machine import breaker, due, standing
from resumed.schemas import decisions, events
from resumed.schemas.instant import later
from resumed.schemas.job import Ending, Item, ItemState, Source, Status, StopReason
from resumed.schemas.ledger import WaitKind
from resumed.schemas.limits import Limits, OnFailed

NAMES = tuple("abcdefgh")
WHY = "exit 1: connection refused"


def flow(row: int = 5, on_failed: OnFailed = OnFailed.HOLD) -> Any:
    """A workflow whose breaker opens at so many failures in a row."""
    return evolve(CONTRACT, limits=Limits(active_time=None, failures_in_a_row=row), on_failed=on_failed)


def batch(row: int = 5, *, parallel: int = 8, tries: int | None = None, **more: Any) -> Play:
    """A fan-out over eight items."""
    return Play.fan_out(*NAMES, contract=flow(row, **more), parallel=parallel, tries=tries)


def fails(play: Play, unit: str, reason: str = WHY, code: str = "exit-1") -> str:
    """The unit is started and fails."""
    play.start(unit)
    return play.answer(unit, decisions.TryAgain(reason=reason, code=code))


def wait_of(play: Play) -> float | None:
    """Seconds until the breaker lets one try go ahead; None while it does not wait."""
    rows = [row for row in play.snapshot.waits if row.kind is WaitKind.BREAKER]
    return None if not rows else (rows[0].deadline.up - play.now.up) / 1e6  # type: ignore[union-attr]


def opened(play: Play) -> Play:
    """The breaker has just opened."""
    for name in NAMES[:5]:
        fails(play, name)
    assert wait_of(play) is not None
    return play


def test_five_failures_in_a_row_open_it_and_do_not_count() -> None:
    """The job waits as long as a step waits at most, and each of the five has all its tries again."""
    play = batch()
    for name in NAMES[:4]:
        fails(play, name)
    assert (None, [1] * 4) == (wait_of(play), [play.unit(name).failures for name in NAMES[:4]])
    fails(play, "e")

    assert 40.0 == wait_of(play)
    assert [(ItemState.PENDING, 0, None)] * 5 == [
        (play.unit(name).state, play.unit(name).failures, play.unit(name).not_before) for name in NAMES[:5]
    ]
    assert ([], Status.WAITING) == (play.due(), standing.status(play.snapshot, play.now))
    assert later(play.now, 40.0) == due.next_due(play.snapshot, play.now)
    assert "5 tries in a row failed with one reason: exit 1: connection refused" in standing.why(
        play.snapshot, play.now
    )
    assert play.snapshot == folded(play.lines)


def test_items_that_had_failed_for_good_by_them_are_taken_back() -> None:
    """With one try each, all five had failed; now none has."""
    play = batch(tries=1)
    for name in NAMES[:4]:
        assert "failed" == fails(play, name)
    assert "again" == fails(play, "e")

    assert {ItemState.PENDING} == {item.state for item in play.snapshot.items}


def test_one_try_goes_ahead_alone_and_closes_it() -> None:
    """After the wait one try is let through; when it ends well, all others follow."""
    play = opened(batch())
    play.wait(40.0)
    play.does(events.Tick())
    assert ["a"] == play.starts()
    play.start("a")
    assert [] == play.starts()
    play.answer("a", decisions.Accepted())

    assert (None, list(NAMES[1:])) == (play.snapshot.breaker, play.starts())


def test_it_waits_three_times_and_then_holds() -> None:
    """Each failure of the one that goes ahead doubles the wait; after the third the job asks."""
    play = opened(batch())
    for wait in (40.0, 80.0, 160.0):
        assert wait == wait_of(play)
        play.wait(wait)
        play.does(events.Tick())
        assert "again" == fails(play, "a")

    hold = play.snapshot.hold
    assert hold is not None
    assert ("breaker", "anna") == (hold.code, hold.owner)
    said = f"5 tries in a row failed with one reason, and one more after each of 3 waits: {WHY}"
    assert said == hold.reason
    assert {"resumectl resume harbour-7", "resumectl cancel harbour-7"} <= set(
        standing.commands(play.snapshot)
    )
    assert [0] * 8 == [item.failures for item in play.snapshot.items]
    play.does(events.Resume(by=ANNA))
    assert (None, list(NAMES)) == (play.snapshot.breaker, play.starts())


def test_a_different_end_breaks_the_row() -> None:
    """Four failures, one success, four failures: nothing happens; nor with another reason between."""
    for between in (
        decisions.Accepted(),
        decisions.Failed(reason="no such page"),
        decisions.NextStep(step="write"),
    ):
        play = batch()
        for name in NAMES[:4]:
            fails(play, name)
        play.start("e")
        play.answer("e", between)
        for name in NAMES[5:8]:
            fails(play, name)
        play.wait(60.0)
        fails(play, "a")
        assert wait_of(play) is None
    other = batch()
    for number, name in enumerate(NAMES[:8]):
        fails(other, name, reason="busy" if number == 4 else WHY)

    assert wait_of(other) is None


def test_rate_limits_and_interruptions_neither_count_nor_break_the_row() -> None:
    """A wait that was asked for and a try that was cut off say nothing about the reason."""
    play = batch()
    for name in NAMES[:4]:
        fails(play, name)
    play.start("e")
    play.answer("e", decisions.Later(seconds=1.0, reason="429"))
    play.start("f")
    play.does(play.gone("f"))
    play.start("f")
    play.does(events.Shutdown())
    play.stopped()
    assert (None, 0, 0) == (wait_of(play), play.unit("e").failures, play.unit("f").failures)
    fails(play, "g")

    assert wait_of(play) is not None


REASONS = {
    # what two items may say -> whether that is one reason
    "the same words": ("no route to host", "no route to host", True),
    "their own names": ("cannot read a", "cannot read b", True),
    "their own files": ("/srv/in/a.mkv: bad header", "/srv/in/b.mkv: bad header", True),
    "their files' names": ("a.mkv: bad header", "b.mkv: bad header", True),
    "other numbers": ("timeout after 3021 ms, pid 77", "timeout after 9 ms, pid 1234", True),
    "other words": ("no route to host", "no such file", False),
    "a name within a word": ("cat failed", "cbt failed", False),
}


@pytest.mark.parametrize("case", REASONS)
def test_one_reason_is_told_by_its_words(case: str) -> None:
    """The item's own name and numbers do not make two reasons of one, other words do."""
    first, second, same = REASONS[case]
    units = [Item(id=name, ordinal=0, source=Source(path=f"/srv/in/{name}.mkv")) for name in ("a", "b")]
    keys = {
        breaker.one_reason("exit-1", said, unit) for said, unit in zip((first, second), units, strict=True)
    }

    assert same is (len(keys) == 1)
    assert breaker.one_reason("exit-1", first, units[0]) != breaker.one_reason("exit-2", first, units[0])


def test_what_ran_on_when_it_opened_does_not_count_either() -> None:
    """Of tries that were open then, the same failure is taken back at once, and a success closes it."""
    play = batch(parallel=8)
    play.start(*NAMES[:7])
    for name in NAMES[:6]:
        play.answer(name, decisions.TryAgain(reason=WHY, code="exit-1"))
    assert (40.0, 0) == (wait_of(play), play.unit("f").failures)
    play.answer("g", decisions.Accepted())

    assert (None, None) == (wait_of(play), play.snapshot.breaker)
    assert [*NAMES[:6], "h"] == play.starts()


def test_a_person_skips_or_cancels_while_it_waits() -> None:
    """The wait holds up neither; what was left out is not taken back."""
    play = batch(tries=1)
    for name in NAMES[:4]:
        fails(play, name)
    play.does(events.Skip(by=ANNA, items=("a",)))
    fails(play, "e")
    assert ItemState.SKIPPED == play.unit("a").state
    play.does(events.Cancel(by=ANNA))

    assert Ending.CANCELED == (play.snapshot.outcome and play.snapshot.outcome.ending)


def test_a_job_step_counts_like_an_item() -> None:
    """A step of the job that may be tried ten times waits after five failures with one reason."""
    steps = tuple(evolve(step, tries=10) for step in CONTRACT.steps)
    play = Play.of("a", contract=evolve(flow(), steps=steps))
    for _ in range(5):
        fails(play, "")
        play.wait(60.0)
    assert (0, ItemState.PENDING) == (play.unit("").failures, play.unit("").state)
    play.does(events.Tick())
    play.start("")
    play.answer("", decisions.GoTo(step="close"))

    assert play.snapshot.breaker is None


def test_timeouts_and_errors_count() -> None:
    """Time limits and raised errors are failures with a reason like any other."""
    play = batch(3)
    for name in "abc":
        play.start(name)
        play.wait(100.0)
        play.does(events.Tick())
        assert StopReason.TIMEOUT is play.row(name).stop
        play.stopped()
    assert wait_of(play) is not None
    raised = batch(3)
    for name in "abc":
        raised.start(name)
        raised.does(raised.raised(name))

    assert wait_of(raised) is not None


def test_a_workflow_may_go_without() -> None:
    """`failures_in_a_row = "none"`: the items' own tries are all there is."""
    play = batch(0, tries=1)
    for name in NAMES:
        fails(play, name)

    assert (None, "items_failed") == (wait_of(play), play.code())


# ---- what becomes of a job whose items fail ---------------------------------------------------------------


def test_others_go_on_and_then_the_job_is_held() -> None:
    """`hold`, the default: all items have their turn before a person is asked."""
    play = Play.fan_out("a", "b", contract=flow(), parallel=1)
    play.start("a")
    play.answer("a", decisions.Failed(reason="no such page"))
    assert ["b"] == play.starts()
    play.start("b")
    play.answer("b", decisions.Accepted())

    assert "items_failed" == play.code()


def test_a_job_goes_on_and_leaves_failed_items_behind() -> None:
    """`continue`: it ends well, and its list says what failed; what is held still needs a person."""
    play = Play.fan_out("a", "b", contract=flow(on_failed=OnFailed.CONTINUE), parallel=1)
    play.start("a")
    play.answer("a", decisions.Failed(reason="no such page"))
    play.start("b")
    play.answer("b", decisions.HoldBack(code="unsure", reason="two Lis"))
    assert "items_held" == play.code()
    assert play.snapshot.hold is not None
    assert "1 held of 2 items; b: two Lis" == play.snapshot.hold.reason
    play.does(events.Skip(by=ANNA, items=("b",)))
    assert ("close", None) == (play.unit("").at, play.snapshot.each)
    play.start("")
    play.answer("", decisions.Finished())

    assert Ending.COMPLETED == (play.snapshot.outcome and play.snapshot.outcome.ending)
    assert 1 == play.snapshot.items.count(ItemState.FAILED)


def test_a_job_stops_at_its_first_failed_item() -> None:
    """`stop`: nothing new starts, what runs may finish, and a person is asked at once."""
    play = Play.fan_out(*NAMES, contract=flow(on_failed=OnFailed.STOP), parallel=2)
    play.start("a", "b")
    play.answer("a", decisions.Failed(reason="no such page"), slot=True)
    assert (["b"], []) == (list(play.snapshot.tries), play.starts())
    assert play.row("b").stop is None
    assert play.code() is None
    play.answer("b", decisions.Accepted(), slot=True)
    assert ("items_failed", {}) == (play.code(), play.snapshot.tries)
    assert {"retry", "skip", "cancel"} <= {command.split()[1] for command in standing.commands(play.snapshot)}
    play.does(events.Skip(by=ANNA, items=("a",)))

    assert (None, ["c", "d"]) == (play.code(), play.starts())


def test_a_job_that_stops_waits_for_no_retry_then() -> None:
    """After the failure no timer of another item rings: nothing would start."""
    play = Play.fan_out("a", "b", contract=flow(on_failed=OnFailed.STOP), parallel=2)
    fails(play, "a")
    play.start("b")
    play.answer("b", decisions.Failed(reason="no such page"))

    assert ("items_failed", None) == (play.code(), due.next_due(play.snapshot, play.now))
