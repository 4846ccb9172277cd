"""Starts, answers and fan-outs: what each decision does, and to whom it is refused."""

import pytest
from attrs import evolve
from machine_kit import ANNA, FOUND, TIMEOUT, WORKER, Play

from resumed.schemas import decisions, events
from resumed.schemas.decisions import (
    Accepted,
    Decided,
    Failed,
    FanOut,
    Finished,
    GoTo,
    HoldBack,
    Later,
    NewItem,
    NextStep,
    TryAgain,
)
from resumed.schemas.instant import later
from resumed.schemas.job import ItemState, Source
from resumed.schemas.snapshot import Changes, Entry

# ---- starts ---------------------------------------------------------------------------------------------


def test_start_opens_an_attempt_once() -> None:
    """The first try of an idle job opens an attempt under the next epoch; the tries beside it share it."""
    play = Play.fan_out("a", "b")
    before = play.snapshot.epoch
    assert play.snapshot.attempt is not None  # the next start was near when the step answered
    play.start("a", "b")

    assert {before} == {play.row("a").epoch, play.row("b").epoch, play.snapshot.epoch}


def test_start_after_a_parked_attempt_raises_the_epoch_by_one() -> None:
    """A job that had let go of its attempt starts the next try under the next epoch."""
    play = Play.of()
    play.start("")
    play.does(events.Pause(by=ANNA, now=True))
    play.stopped()
    assert play.snapshot.attempt is None
    play.does(events.Resume(by=ANNA))
    play.start("")

    assert (2, 2, 2) == (play.snapshot.epoch, play.row("").epoch, play.row("").number)


def test_start_counts_a_crash_until_an_end_is_recorded() -> None:
    """A start raises tries and crashes, leaves failures, and gives the try its time limit."""
    play = Play.fan_out("a")
    play.start("a")
    unit, row = play.unit("a"), play.row("a")

    assert (ItemState.IN_PROGRESS, 1, 1, 0) == (unit.state, unit.tries, unit.crashes, unit.failures)
    assert (play.now, None, None) == (unit.started, unit.ended, unit.not_before)
    assert (1, "read", 1, WORKER, None) == (row.number, row.step, row.occurrence, row.worker, row.stop)
    assert later(play.now, TIMEOUT) == row.until


@pytest.mark.parametrize("unit", ["a", "c", "", "nobody"])
def test_start_that_is_not_wanted_changes_nothing(unit: str) -> None:
    """A slot is no right: what runs, has no room, is no unit of now or does not exist is not started."""
    play = Play.fan_out("a", "b", "c", parallel=1)
    play.start("a")

    assert play.changes_nothing(events.Grant(unit=unit, worker=WORKER))


# ---- answers --------------------------------------------------------------------------------------------

ITEM_ANSWERS: dict[str, tuple[Decided, str, ItemState]] = {
    "accepted": (Accepted(), "done", ItemState.DONE),
    "next step": (NextStep(step="write", data='{"n":1}'), "next write", ItemState.PENDING),
    "try again": (TryAgain(reason="busy"), "again", ItemState.PENDING),
    "later": (Later(seconds=5.0, reason="busy"), "later", ItemState.PENDING),
    "failed": (Failed(reason="no such page"), "failed", ItemState.FAILED),
    "held back": (HoldBack(code="unsure", reason="two Lis"), "held", ItemState.HELD),
}
JOB_ANSWERS: dict[str, tuple[Decided, str, ItemState]] = {
    "go to": (GoTo(step="close"), "goto close", ItemState.PENDING),
    "fan out": (FanOut(start="read", then="close"), "each 2 items from read", ItemState.PENDING),
    "finished": (Finished(), "finished", ItemState.DONE),
    "try again": (TryAgain(reason="busy"), "again", ItemState.PENDING),
    "later": (Later(seconds=5.0), "later", ItemState.PENDING),
    "failed": (Failed(reason="nothing to do"), "failed", ItemState.FAILED),
    "held back": (HoldBack(code="unsure", reason="which month?"), "held", ItemState.HELD),
}


@pytest.mark.parametrize("case", ITEM_ANSWERS)
def test_answer_about_an_item(case: str) -> None:
    """Each decision an item's handler may make has one choice and one state of the item."""
    decided, choice, state = ITEM_ANSWERS[case]
    play = Play.fan_out("a", "b")
    play.start("a")

    assert choice == play.answer("a", decided, output=FOUND)
    unit = play.unit("a")
    assert (state, 0, play.now) == (unit.state, unit.crashes, unit.ended)
    assert {} == play.snapshot.tries
    assert (FOUND if case == "accepted" else None) == unit.output


@pytest.mark.parametrize("case", JOB_ANSWERS)
def test_answer_about_the_job(case: str) -> None:
    """Each decision a job step's handler may make has one choice and one state of the position."""
    decided, choice, state = JOB_ANSWERS[case]
    play = Play.of("a", "b")
    play.start("")

    assert choice == play.answer("", decided, state={"page": '"7"'})
    assert (state, 0) == (play.unit("").state, play.unit("").crashes)
    assert {"page": '"7"'} == play.snapshot.state


ILLEGAL: dict[str, tuple[str, Decided, str]] = {
    "accepted, of the job": ("", Accepted(), "not about the job"),
    "next step, of the job": ("", NextStep(step="read"), "not about the job"),
    "go to, of an item": ("a", GoTo(step="close"), "not about an item"),
    "fan out, of an item": ("a", FanOut(start="read", then="close"), "not about an item"),
    "finished, of an item": ("a", Finished(), "not about an item"),
    "to a step that is not there": ("a", NextStep(step="rest"), "'rest'"),
    "an item to a job step": ("a", NextStep(step="close"), "'close'"),
    "the job to an item step": ("", GoTo(step="read"), "'read'"),
    "a fan-out from a job step": ("", FanOut(start="close", then="close"), "'close'"),
    "a fan-out to an item step": ("", FanOut(start="read", then="read"), "'read'"),
    "a fan-out of none at once": ("", FanOut(start="read", then="close", parallel=0), "at least 1"),
    "a fan-out of no tries": ("", FanOut(start="read", then="close", tries=0), "at least 1"),
    "an item named twice": (
        "",
        FanOut(start="read", then="close", items=(NewItem(id="x"), NewItem(id="x"))),
        "twice",
    ),
    "an item without a name": ("", FanOut(start="read", then="close", items=(NewItem(id=""),)), "empty"),
    "a wait beyond the calendar": ("a", Later(seconds=1e300), "the most is"),
    "a wait of no number": ("a", Later(seconds=float("nan")), "the most is"),
    "data that is no JSON": ("a", NextStep(step="write", data="{"), "not JSON"),
    "inputs with a key twice": (
        "",
        FanOut(start="read", then="close", items=(NewItem(id="x", inputs='{"a":1,"a":2}'),)),
        "twice",
    ),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_answer_that_cannot_be_carried_out_is_a_counted_failure(case: str) -> None:
    """A decision that cannot be carried out where it was made is the author's failure, and nothing else."""
    unit, decided, said = ILLEGAL[case]
    play = Play.of("a") if unit == "" else Play.fan_out("a")
    play.start(unit)
    before = play.snapshot
    choice = play.answer(unit, decided, state={"page": "1"}, output=FOUND)
    row = play.unit(unit)

    assert ("again", ItemState.PENDING, 1, "author_error") == (choice, row.state, row.failures, row.code)
    assert said in row.reason
    assert (before.position.at, before.each, before.state, len(before.items)) == (
        play.snapshot.position.at,
        play.snapshot.each,
        play.snapshot.state,
        len(play.snapshot.items),
    )
    assert row.not_before is not None
    assert row.output is None


def test_state_that_is_no_json_is_a_counted_failure() -> None:
    """A state field that a later reader would refuse is never kept."""
    play = Play.of()
    play.start("")

    assert "again" == play.answer("", GoTo(step="close"), state={"page": "NaN"})
    assert ("open", {}) == (play.unit("").at, play.snapshot.state)


def test_a_step_is_entered_with_a_fresh_set_of_tries() -> None:
    """A committed decision that leaves a step raises the occurrence and clears failures, never tries."""
    play = Play.fan_out("a", "b")
    play.fail("a", times=2)
    play.wait(60.0)
    play.start("a")
    play.answer("a", NextStep(step="write", data='{"n":1}'))
    unit = play.unit("a")

    assert ("write", 2, 0, 3, '{"n":1}') == (unit.at, unit.occurrence, unit.failures, unit.tries, unit.data)


def test_waiting_uses_up_no_try() -> None:
    """`Later` keeps occurrence and failures, and sets the instant before which nothing starts."""
    play = Play.fan_out("a", "b")
    play.start("a")
    play.answer("a", Later(seconds=5.0, reason="busy"))
    unit = play.unit("a")

    assert (1, 0, later(play.now, 5.0), "busy") == (
        unit.occurrence,
        unit.failures,
        unit.not_before,
        unit.reason,
    )
    assert ["b"] == play.starts()
    play.wait(5.0)
    assert ["a", "b"] == play.starts()


def test_answer_in_a_slot_starts_the_next_try_in_the_same_commit() -> None:
    """A result and the job's next try are one commit, in the worker that is free."""
    play = Play.fan_out("a", "b", parallel=1)
    play.start("a")
    before = play.snapshot.sequence
    play.answer("a", Accepted(), slot=True)

    assert (before + 1, ["b"], WORKER) == (
        play.snapshot.sequence,
        list(play.snapshot.tries),
        play.row("b").worker,
    )


def test_answer_in_a_slot_starts_no_suspect() -> None:
    """What died twice in a row starts alone, so it is never taken into a slot by the way."""
    play = Play.fan_out("a", "b", parallel=2)
    for _ in range(2):
        play.start("a")
        play.does(play.gone("a"))
    play.start("b")
    play.answer("b", Accepted(), slot=True)

    assert ({}, ["a"]) == (play.snapshot.tries, play.starts())


STALE: dict[str, dict[str, int | str]] = {
    "an older try": {"number": 1},
    "a try to come": {"number": 3},
    "an older epoch": {"epoch": 0},
    "a later epoch": {"epoch": 9},
    "another item": {"unit": "b"},
    "nobody": {"unit": "nobody"},
}


@pytest.mark.parametrize("case", STALE)
def test_stale_reports_change_nothing(case: str) -> None:
    """Only the open try's own epoch and number are heard; a stale answer is kept as evidence alone."""
    play = Play.fan_out("a", "b")
    play.start("a")
    play.does(play.gone("a"))
    play.start("a")
    before = play.snapshot
    verdict = play.ask(evolve(play.returned("a", Accepted()), **STALE[case]))

    assert play.changes_nothing(evolve(play.raised("a"), **STALE[case]))
    assert play.changes_nothing(evolve(play.gone("a"), **STALE[case]))
    assert isinstance(verdict, Entry)
    assert ("stale", Changes()) == (verdict.transition, verdict.changes)
    assert '"Accepted"' in verdict.evidence
    assert before is play.snapshot


def test_an_answer_of_a_worker_without_the_try_is_evidence() -> None:
    """Whose try it is not does not decide it, though epoch and number are right."""
    play = Play.fan_out("a", "b")
    play.start("a")
    before = list(play.snapshot.items)

    assert "kept" == play.answer("a", Accepted(), output=FOUND, late=True)
    assert (before, ["a"]) == (list(play.snapshot.items), list(play.snapshot.tries))


def test_first_answer_wins() -> None:
    """An answer repeated, or another one for the same try, is evidence and changes no row."""
    play = Play.fan_out("a", "b")
    play.start("a")
    first = play.returned("a", Accepted(), output=FOUND)
    play.does(first)
    rows = list(play.snapshot.items)
    play.does(first)
    play.does(evolve(first, answer=decisions.Answer(decided=Failed(reason="no"))))

    assert rows == list(play.snapshot.items)


# ---- the fan-out ----------------------------------------------------------------------------------------


def test_fan_out_makes_what_it_names_and_takes_in_only_that() -> None:
    """New items follow in the order named; items that are not named stay where they are, and wait."""
    play = Play.of("a", "b")
    play.start("")
    source = Source(path="/srv/b")
    named = (NewItem(id="x", inputs='{"n":1}'), NewItem(id="b", source=source), NewItem(id="y"))
    play.answer("", FanOut(start="read", then="close", items=named, parallel=9))
    rows = list(play.snapshot.items)

    assert [("a", ""), ("b", "read"), ("x", "read"), ("y", "read")] == [(row.id, row.at) for row in rows]
    assert (source, '{"n":1}') == (rows[1].source, rows[2].inputs)
    assert ["b", "x", "y"] == play.starts()
    play.start("b", "x", "y")
    for unit in ("b", "x", "y"):
        play.answer(unit, Accepted())
    assert ("close", None) == (play.unit("").at, play.snapshot.each)


def test_fan_out_does_not_touch_what_is_done_or_left_out() -> None:
    """Whoever names it: a done item is not done again, and a skipped one stays a person's choice."""
    play = Play.fan_out("a", "b", "c")
    play.start("a")
    play.answer("a", Accepted())
    play.does(events.Skip(by=ANNA, items=("b", "c")))
    kept = list(play.snapshot.items)
    play.start("")
    named = tuple(NewItem(id=name, source=Source(path="/other")) for name in "abc")
    play.answer("", FanOut(start="write", then="close", items=named))

    assert kept == list(play.snapshot.items)
    assert ("close", 3) == (play.unit("").at, play.unit("").occurrence)


def test_fan_out_of_nothing_goes_on() -> None:
    """A fan-out without items is over as it begins."""
    play = Play.of()
    play.start("")
    play.answer("", FanOut(start="read", then="close"))

    assert ("close", None, ItemState.PENDING) == (
        play.unit("").at,
        play.snapshot.each,
        play.unit("").state,
    )


def test_fan_out_keeps_to_its_parallel() -> None:
    """At most `parallel` tries are open, and they start in the items' order."""
    play = Play.fan_out("a", "b", "c", "d", parallel=2)

    assert ["a", "b"] == play.starts()
    play.start("a")
    assert ["b"] == play.starts()
    play.start("b")
    assert [] == play.starts()
    assert play.changes_nothing(events.Grant(unit="c", worker=WORKER))


def test_next_names_what_a_checkpoint_permits() -> None:
    """`next` is the step the position stands at, in a fan-out the one items enter by."""
    play = Play.fan_out("a")
    seen = [play.snapshot.next.step]
    play.start("a")
    play.answer("a", Accepted())
    seen.append(play.snapshot.next.step)

    assert ["read", "close"] == seen
