"""The law of persons' requests: in every standing an answer by value, and a refusal that changes nothing."""

import pytest
from machine_kit import ANNA, REQUESTS, Play, in_words, text
from machine_points import POINTS

from resumed.actors.machine import standing
from resumed.actors.machine.verdict import Unchanged, Verdict
from resumed.schemas import decisions, events
from resumed.schemas.job import Ending, ItemState, Status, StopReason
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry


def _told(event: events.Event) -> Play:
    play = Play.fan_out("a", "b", parallel=1)
    play.start("a")
    play.does(event)
    return play


def _held_and_paused() -> Play:
    play = POINTS["Held, at a job step"][1]()
    play.does(events.Pause(by=ANNA))
    return play


STANDINGS = {
    **POINTS,
    "Paused, an item runs on": ("a", lambda: _told(events.Pause(by=ANNA))),
    "Being paused now": ("a", lambda: _told(events.Pause(by=ANNA, now=True))),
    "Being held, an item is being stopped": ("a", lambda: _told(events.Trouble(code="worker", reason="!"))),
    "Held and paused": ("", _held_and_paused),
}
"""Everywhere a request can find a job."""

# standing -> what becomes of: pause, pause --now, resume, cancel, retry, skip (both unnamed).
# `=` it is so already, `x` refused, anything else the choice made.
ANSWERS = {
    "Waiting for its time to start": "paused paused = canceled = =",
    "Waiting for another job": "paused paused = canceled = =",
    "Held: the job that it waits for failed": "paused paused resumed canceled = =",
    "Ready, not started": "paused paused = canceled = =",
    "A job step runs, repeatable": "paused paused = canceling = =",
    "A job step runs, not repeatable": "paused paused = canceling = =",
    "An item runs, repeatable": "paused paused = canceling = =",
    "An item runs, not repeatable": "paused paused = canceling = =",
    "Waiting for a retry": "paused paused = canceled = =",
    "Waiting, too many tries have failed in a row": "paused paused = canceled = =",
    "Held: they go on failing": "paused paused resumed canceled = =",
    "A fan-out with items left, none running": "paused paused = canceled = =",
    "Paused": "= = resumed canceled = =",
    "Paused, an item runs on": "= paused resumed canceling = =",
    "Being paused now": "= = resumed canceling = =",
    "Held, at a job step": "paused paused resumed canceled retried =",
    "Held and paused": "= = resumed canceled retried =",
    "Held: what it may spend is spent": "paused paused x canceled = =",
    "Held: only a wall clock that was set says that its deadline has passed": (
        "paused paused resumed canceled = ="
    ),
    "Held: all items are settled, one has failed": "paused paused x canceled retried skipped",
    "The items' sources are being compared": "paused paused = canceling = =",
    "Held: the items' sources have changed": "paused paused x canceled retried skipped",
    "Held: a worker's end is not proven": "paused paused resumed canceling = =",
    "Being held, an item is being stopped": "paused paused resumed canceling = =",
    "Being canceled, an item is being stopped": "x x x = x x",
    "An effect waits for somebody to allow it": "paused paused = canceled = =",
    "An effect waits to be let go": "paused paused = canceled = =",
    "An effect is being checked": "paused paused = canceling = =",
    "An effect is being sent": "paused paused = canceling = =",
    "An effect may have left, and is being looked up": "paused paused = canceling = =",
    "Held: an effect may have left, and nobody can be asked": "paused paused x canceling = =",
    "Held: an effect is there already": "paused paused resumed canceled = =",
    "Being canceled, an effect may have left": "x x x = x x",
    "A draft waits to be looked at": "paused paused = canceled = =",
    "A question waits for its answer": "paused paused = canceled = =",
    "Terminal": "x x x x x x",
}


def _word(verdict: Verdict) -> str:
    if isinstance(verdict, Entry):
        return verdict.decision.choice.split()[0]
    return "x" if isinstance(verdict, Refusal) else "="


def test_the_table_has_every_standing() -> None:
    """No standing is without its row of answers."""
    assert set(STANDINGS) == set(ANSWERS)


@pytest.mark.parametrize("where", ANSWERS)
def test_requests_in_every_standing(where: str) -> None:
    """Each request has one answer in each standing, and asking changes nothing by itself."""
    play = STANDINGS[where][1]()
    before = text(play.snapshot)

    assert ANSWERS[where].split() == [_word(play.ask(request)) for request in REQUESTS.values()]
    assert before == text(play.snapshot)


@pytest.mark.parametrize("where", ANSWERS)
def test_a_refusal_says_why_and_what_is_possible(where: str) -> None:
    """A refusal has a slug, a whole sentence about the job, and commands that work where they are offered."""
    play = STANDINGS[where][1]()
    for request in REQUESTS.values():
        verdict = play.ask(request)
        if isinstance(verdict, Refusal):
            assert verdict.code.replace("_", "").isalpha()
            assert verdict.reason.startswith("cannot ")
            assert "harbour-7" in verdict.reason
            assert verdict.commands
            assert all(_works(play, command) for command in verdict.commands)


def _works(play: Play, command: str) -> bool:
    looks = command.split()[1] in ("show", "logs", "watch")
    return looks or isinstance(play.ask(in_words(command)), Entry)


@pytest.mark.parametrize("where", ANSWERS)
def test_commands_offered_are_those_that_would_do_something(where: str) -> None:
    """Of pause, resume, cancel, retry and skip exactly those are offered that the law would carry out now."""
    play = STANDINGS[where][1]()
    verbs = {command.split()[1] for command in standing.commands(play.snapshot)}
    possible = {
        words.split()[0] for words, request in REQUESTS.items() if isinstance(play.ask(request), Entry)
    }
    # A held or paused job may be paused as well, and a held step retried: true, but not what it needs.
    spare = {"pause"} if verbs & {"resume", "retry", "extend", "settle"} else set()
    spare |= {"retry"} if play.unit("").state is ItemState.HELD else set()

    assert verbs - {"show", "logs", "watch", "extend", "settle"} == possible - spare
    assert standing.why(play.snapshot, play.now)


@pytest.mark.parametrize("case", ["pause", "pause --now", "cancel", "skip"])
def test_a_repeated_request_is_no_second_change(case: str) -> None:
    """Asking twice is no fault and writes nothing the second time."""
    play = Play.fan_out("a", "b")
    play.start("a")
    request = events.Skip(by=ANNA, items=("a",)) if case == "skip" else REQUESTS[case]
    play.does(request)

    assert isinstance(play.ask(request), Unchanged)


# ---- pause and resume -----------------------------------------------------------------------------------


def test_pause_lets_running_work_finish_and_starts_nothing() -> None:
    """A pause stops no try; what is answered meanwhile counts, and nothing new starts."""
    play = Play.fan_out("a", "b", parallel=1)
    play.start("a")
    play.does(events.Pause(by=ANNA, reason="month end"))
    assert None is play.row("a").stop
    play.answer("a", decisions.Accepted(), slot=True)

    assert ([], Status.PAUSED) == (play.due(), standing.status(play.snapshot, play.now))
    assert (None, ItemState.DONE) == (play.snapshot.attempt, play.unit("a").state)
    assert play.snapshot.pause is not None
    assert ("anna", "month end") == (play.snapshot.pause.by, play.snapshot.pause.reason)


def test_pause_now_stops_running_work_and_counts_no_try() -> None:
    """`--now` interrupts: the item waits as it was, with no failure on it."""
    play = Play.fan_out("a", "b", parallel=1)
    play.start("a")
    play.does(events.Pause(by=ANNA))
    play.does(events.Pause(by=ANNA, now=True))
    assert StopReason.PAUSE == play.row("a").stop
    play.stopped()

    assert (ItemState.PENDING, 0, 1) == (
        play.unit("a").state,
        play.unit("a").failures,
        play.unit("a").tries,
    )


def test_resume_while_a_try_is_being_stopped_starts_it_again_afterwards() -> None:
    """A stop is not called back; its item starts anew when the tree is gone."""
    play = Play.fan_out("a", parallel=1)
    play.start("a")
    play.does(events.Pause(by=ANNA, now=True))
    play.does(events.Resume(by=ANNA))
    assert StopReason.PAUSE == play.row("a").stop
    play.stopped()

    assert ["a"] == play.starts()


def test_resume_lifts_a_hold_of_the_machine() -> None:
    """A hold that is not about items is lifted by a resume, and the work goes on where it stood."""
    play = _told(events.Trouble(code="worker", reason="it cannot start"))
    play.stopped()
    play.does(events.Resume(by=ANNA))

    assert (None, ["a"]) == (play.code(), play.starts())


def test_resume_enters_a_held_step_afresh() -> None:
    """A job step that was held gets a fresh set of tries in the same occurrence."""
    play = Play.of()
    play.fail("", times=3)
    play.does(events.Resume(by=ANNA))

    assert (0, 3, 1) == (play.unit("").failures, play.unit("").tries, play.unit("").occurrence)
    assert [""] == play.starts()


def test_resume_of_a_paused_job_with_failed_items_lifts_the_pause_alone() -> None:
    """Two reasons to stand still are two things to mend: the items' hold stays."""
    play = POINTS["Held: all items are settled, one has failed"][1]()
    play.does(events.Pause(by=ANNA))
    play.does(events.Resume(by=ANNA))

    assert (None, "items_failed") == (play.snapshot.pause, play.code())
    assert "items_failed" == play.refusal(events.Resume(by=ANNA)).code


@pytest.mark.parametrize("how", ["held back", "interrupted"])
def test_resume_never_says_that_held_items_went_on(how: str) -> None:
    """Held items need a retry or a skip, whatever code their handler gave: a resume is refused."""
    play = Play.fan_out("a", at="post")
    play.start("a")
    if how == "held back":
        play.answer("a", decisions.HoldBack(code="conflict", reason="two Lis"))
    else:
        play.does(play.gone("a"))

    assert "items_held" == play.code()
    assert "items_failed" == play.refusal(events.Resume(by=ANNA)).code
    play.does(events.Retry(by=ANNA, items=("a",)))
    assert (None, ["a"]) == (play.code(), play.starts())


# ---- cancel ---------------------------------------------------------------------------------------------


def test_cancel_is_final_when_what_runs_is_gone() -> None:
    """A cancel stops new work at once; the job is canceled when the last tree is gone, not before."""
    play = Play.fan_out("a", "b", "c")
    play.start("a", "b")
    assert "canceling" == play.does(events.Cancel(by=ANNA, reason="wrong folder"))
    assert ([], Status.RUNNING) == (play.starts(), standing.status(play.snapshot, play.now))
    play.answer("a", decisions.Accepted(), slot=True)
    assert None is play.snapshot.outcome
    play.stopped()

    assert play.snapshot.outcome is not None
    assert (Ending.CANCELED, "wrong folder") == (
        play.snapshot.outcome.ending,
        play.snapshot.outcome.reason,
    )
    assert ItemState.DONE == play.unit("a").state


def test_cancel_of_an_idle_job_is_final_at_once() -> None:
    """Where nothing runs there is nothing to wait for."""
    play = Play.of("a")

    assert "canceled" == play.does(events.Cancel(by=ANNA))
    assert Status.CANCELED == standing.status(play.snapshot, play.now)


def test_cancel_of_a_canceled_job_is_so_already() -> None:
    """A second cancel finds the job as it wants it, but of another ending it comes too late."""
    play = Play.of("a")
    play.does(events.Cancel(by=ANNA))

    assert play.changes_nothing(events.Cancel(by=ANNA))
    assert "ended" == POINTS["Terminal"][1]().refusal(events.Cancel(by=ANNA)).code


# ---- retry and skip -------------------------------------------------------------------------------------


def _failed(*names: str) -> Play:
    play = Play.fan_out("a", "b", "c", parallel=3)
    play.start("a", "b", "c")
    for name in "abc":
        said = decisions.Failed(reason="no such page") if name in names else decisions.Accepted()
        play.answer(name, said)
    return play


def test_items_that_failed_hold_the_job_when_the_others_are_settled() -> None:
    """The job waits for a person with the counts and the first reason; it is not terminal."""
    play = Play.fan_out("a", "b")
    play.start("a", "b")
    play.answer("a", decisions.Failed(reason="no such page"))
    assert None is play.snapshot.hold
    play.answer("b", decisions.Accepted())

    assert play.snapshot.hold is not None
    assert ("items_failed", "1 failed of 2 items; a: no such page", "anna") == (
        play.snapshot.hold.code,
        play.snapshot.hold.reason,
        play.snapshot.hold.owner,
    )
    assert (None, ItemState.PENDING) == (play.snapshot.outcome, play.unit("").state)


def test_retry_gives_a_fresh_set_of_tries() -> None:
    """Failures and crashes are cleared, tries never fall, and done items stay as they are."""
    play = _failed("a", "b")
    done = play.unit("c")

    assert "retried 2 items" == play.does(events.Retry(by=ANNA))
    assert (["a", "b"], None, done) == (play.starts(), play.code(), play.unit("c"))
    assert (1, 0, 0, "") == (
        play.unit("a").tries,
        play.unit("a").failures,
        play.unit("a").crashes,
        play.unit("a").code,
    )


def test_retry_of_one_holds_again_for_the_other() -> None:
    """The hold is lifted while there is work, and returns for what is still failed."""
    play = _failed("a", "b")
    play.does(events.Retry(by=ANNA, items=("a",)))
    assert (None, ["a"]) == (play.code(), play.starts())
    play.start("a")
    play.answer("a", decisions.Accepted())

    assert "items_failed" == play.code()


def test_skip_of_all_that_failed_ends_the_fan_out() -> None:
    """What is left out counts as settled: the job goes on to the next step."""
    play = _failed("a", "b")

    assert "skipped 2 items" == play.does(events.Skip(by=ANNA, reason="not ours"))
    assert ("close", None, None) == (play.unit("").at, play.snapshot.each, play.code())
    assert ("skipped", "not ours") == (play.unit("a").code, play.unit("a").reason)


def test_skip_of_an_item_that_waits_is_done_at_once() -> None:
    """A pending item is left out without being started, also before the fan-out takes it in."""
    early, late = Play.of("a", "b"), Play.fan_out("a", "b")
    for play in (early, late):
        play.does(events.Skip(by=ANNA, items=("a",)))

    assert [ItemState.SKIPPED] * 2 == [early.unit("a").state, late.unit("a").state]
    early.start("")
    early.answer("", decisions.FanOut(start="read", then="close"))
    assert (["b"], ["b"]) == (early.starts(), late.starts())


def test_retry_takes_a_skipped_item_back() -> None:
    """Only when it is named; one that had entered no step enters the fan-out's first."""
    play = Play.of("a", "b")
    play.does(events.Skip(by=ANNA, items=("a",)))
    play.start("")
    play.answer("", decisions.FanOut(start="read", then="close"))
    assert play.changes_nothing(events.Retry(by=ANNA))
    play.does(events.Retry(by=ANNA, items=("a",)))

    assert (["a"], "read", 1) == (play.starts(), play.unit("a").at, play.unit("a").occurrence)


def test_retry_is_refused_where_no_items_run() -> None:
    """Items cannot be retried once the job has gone on from them."""
    play = _failed("a")
    play.does(events.Skip(by=ANNA))

    assert "fan_out_over" == play.refusal(events.Retry(by=ANNA, items=("a",))).code


NAMED = {
    "retry nobody": "no_such_item",
    "skip nobody": "no_such_item",
    "skip a nobody": "no_such_item",
    "retry b": "item_state",
    "retry a": "item_state",
    "skip c": "item_state",
    "retry c": "item_state",
}


@pytest.mark.parametrize("words", NAMED)
def test_named_items_are_all_or_none(words: str) -> None:
    """One item that does not exist, or stands where the request means nothing, refuses the whole request."""
    play = Play.fan_out("a", "b", "c", parallel=1)
    play.start("a")
    play.answer("a", decisions.Accepted())
    items = list(play.snapshot.items)
    renamed = {"a": "b", "c": "a"}  # b waits, a is done
    verb, *names = words.split()
    request = in_words(" ".join(["resumectl", verb, "harbour-7", *(renamed.get(n, n) for n in names)]))

    assert NAMED[words] == play.refusal(request).code
    assert items == list(play.snapshot.items)
