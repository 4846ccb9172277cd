"""Limits: what is spent adds up and is never lost; at the cap the job asks before it uses more."""

from typing import Any

import pytest
from attrs import evolve
from machine_kit import ANNA, CONTRACT, EXTEND, Play, folded, in_words, moment, step

from resumed.actors.machine import due, limits, standing
from resumed.actors.machine.draft import Draft
from resumed.schemas import decisions, events
from resumed.schemas.instant import later
from resumed.schemas.job import Budget, Ending
from resumed.schemas.limits import Limits
from resumed.schemas.snapshot import Decision, Entry
from resumed.schemas.workflow import StepKind


def test_what_is_spent_adds_up_and_is_exact() -> None:
    """Money is decimal text and adds up to the millionth; what is not reported stays as it was."""
    play = Play.of("a")
    for _ in range(3):
        draft = Draft(play.snapshot, play.now)
        limits.spend(draft, Budget(usd="0.1", tokens=7))
        entry = Entry(
            transition="spend", decision=Decision(by="m", rule="r", choice="c"), changes=draft.changes()
        )
        play.commit(entry)

    assert Budget(usd="0.3", tokens=21) == play.snapshot.used
    assert play.snapshot == folded(play.lines)


def test_what_is_spent_never_falls() -> None:
    """A report of a negative amount gives nothing back."""
    draft = Draft(Play.of("a").snapshot, Play.of("a").now)
    limits.spend(draft, Budget(usd="2.50", tokens=5, turns=1, active_seconds=1.5))
    limits.spend(draft, Budget(usd="-1", tokens=-5, turns=-1, active_seconds=-1.0))

    assert Budget(usd="2.5", tokens=5, turns=1, active_seconds=1.5) == draft.used


def limited(*items: str, allowed: Limits | None = None, **budget: Any) -> Play:
    """A fan-out of a job that may use so much; its workflow allows three times as much, or what is said."""
    contract = evolve(CONTRACT, limits=allowed or Limits(usd="3", tokens=300, turns=30, active_time=900.0))
    return Play.fan_out(*items, parallel=1, budget=Budget(**budget), contract=contract)


def spends(play: Play, unit: str, slot: bool = False, **used: Any) -> str:
    """The unit is started and accepted, and says what that took."""
    if unit not in play.snapshot.tries:
        play.start(unit)
    row = play.row(unit)
    answer = decisions.Answer(decided=decisions.Accepted(), used=Budget(**used))
    return play.does(events.Returned(unit=unit, epoch=row.epoch, number=row.number, answer=answer, slot=slot))


CAPS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    # what it may use, what one item uses, what is said, what may be typed
    "money": ({"usd": "1"}, {"usd": "1.000001"}, "it has used 1.000001 of 1 usd", "--usd 3"),
    "money, to the last cent": ({"usd": "1"}, {"usd": "1"}, "it has used 1 of 1 usd", "--usd 3"),
    "tokens": ({"tokens": 100}, {"tokens": 250}, "it has used 250 of 100 tokens", "--tokens 300"),
    "turns": ({"turns": 10}, {"turns": 10}, "it has used 10 of 10 turns", "--turns 30"),
}


@pytest.mark.parametrize("case", CAPS)
def test_at_the_cap_the_job_holds_and_asks(case: str) -> None:
    """Nothing new starts once a limit is reached, not even in its slot; the command shown lifts that."""
    most, used, said, option = CAPS[case]
    play = limited("a", "b", **most)
    spends(play, "a", slot=True, **used)
    assert ("budget", {}) == (play.code(), play.snapshot.tries)
    assert play.snapshot.hold is not None
    assert said == play.snapshot.hold.reason
    assert [] == play.starts()
    command = f"resumectl extend harbour-7 {option}"
    assert (command, "resumectl cancel harbour-7") == standing.commands(play.snapshot)
    refusal = play.refusal(events.Resume(by=ANNA))
    assert ("budget", command) == (refusal.code, refusal.commands[0])
    play.does(in_words(command))

    assert (None, ["b"]) == (play.code(), play.starts())
    assert play.snapshot == folded(play.lines)


def test_what_runs_may_finish_at_the_cap() -> None:
    """A limit is exceeded by no more than what was open: that is not stopped, and nothing follows."""
    play = limited("a", "b", "c", usd="1")
    play.snapshot = evolve(play.snapshot, each=evolve(play.snapshot.each, parallel=2))
    play.start("a", "b")
    spends(play, "a", usd="5")

    assert ("budget", ["b"]) == (play.code(), list(play.snapshot.tries))
    assert play.row("b").stop is None
    spends(play, "b", slot=True, usd="5")
    assert ({}, "10") == (play.snapshot.tries, play.snapshot.used.usd)


def test_active_time_adds_up_over_all_attempts() -> None:
    """Each attempt's time is added for good when it ends; at the cap a timer rings and the job is held."""
    play = limited("a", "b", "c", active_seconds=300.0)
    play.start("a")
    play.wait(99.0)
    play.does(events.Pause(by=ANNA, now=True))
    play.stopped()
    assert (None, 99.0) == (play.snapshot.attempt, play.snapshot.used.active_seconds)
    play.wait(100_000.0)
    play.does(events.Resume(by=ANNA))
    for _ in range(3):
        play.start("a")
        play.wait(60.0)
        play.does(play.gone("a", died=False))
    assert due.next_due(play.snapshot, play.now) == later(play.now, 21.0)
    play.start("a")
    play.wait(20.9)
    assert play.changes_nothing(events.Tick())
    play.wait(0.1)
    assert "at its limit" == play.does(events.Tick())
    assert ("budget", ["a"]) == (play.code(), list(play.snapshot.tries))
    play.wait(30.0)
    play.answer("a", decisions.Accepted(), slot=True)

    assert {} == play.snapshot.tries
    assert 330.0 == play.snapshot.used.active_seconds
    assert "it has been at work for 5m00s of 5m00s" == standing.why(play.snapshot, play.now)
    assert "resumectl extend harbour-7 --active-time 15m" == standing.commands(play.snapshot)[0]


@pytest.mark.parametrize(
    ("away", "counted"), [(30.0, 40.0), (5_000.0, 100.0)], ids=["back soon", "away for long"]
)
def test_what_ran_when_the_daemon_died_counts(away: float, counted: float) -> None:
    """Up to the wake, but no longer than its time limit let it run: nobody saw its end (C45)."""
    play = limited("a", active_seconds=300.0)
    play.wait(1000.0)
    play.does(events.Woke())
    play.start("a")
    play.wait(10.0 + away)
    before = play.snapshot.used.active_seconds or 0.0
    play.does(events.Woke())

    assert (None, counted) == (play.snapshot.attempt, (play.snapshot.used.active_seconds or 0.0) - before)


def test_a_job_that_only_finishes_is_not_held() -> None:
    """The last item may use up all there is: the end of a workflow of programs costs nothing more."""
    contract = evolve(
        CONTRACT,
        steps=(*CONTRACT.steps, step("finish", StepKind.JOB)),
        definition="{}",
    )
    play = Play.of("a", contract=contract, budget=Budget(usd="1", active_seconds=50.0))
    play.start("")
    play.answer("", decisions.FanOut(start="read", then="finish"))
    spends(play, "a", slot=True, usd="9")
    play.wait(60.0)

    assert (None, [""]) == (play.code(), list(play.snapshot.tries))
    assert play.changes_nothing(events.Tick())
    play.answer("", decisions.Finished())
    assert Ending.COMPLETED == (play.snapshot.outcome and play.snapshot.outcome.ending)


def test_another_hold_comes_first_and_the_limit_after_it() -> None:
    """What holds the job already stays; once that is lifted, the limit holds it."""
    play = limited("a", "b", usd="1")
    play.start("a")
    play.does(events.Trouble(code="worker", reason="it cannot start"))
    play.wait(1.0)
    spends(play, "a", usd="2")
    assert "worker" == play.code()
    play.does(events.Resume(by=ANNA))

    assert "budget" == play.code()


EXTENDS: dict[str, tuple[dict[str, Any], str, str]] = {
    # what is asked -> the code of the answer ("" an entry, "=" nothing changes), and what it says
    "more money": ({"usd": "2.5"}, "", "extended usd to 2.5"),
    "several": ({"usd": "2", "tokens": 200}, "", "extended usd to 2, tokens to 200"),
    "as much as it may": ({"usd": "1.0"}, "=", "may use as much already"),
    "less": ({"tokens": 50}, "not_more", "to 50 of tokens: it may use 100 already"),
    "above the workflow": (
        {"active_time": 901.0},
        "above_workflow",
        "to 901s of active_time: its workflow scan allows 15m; whoever runs the host may raise limits.active",
    ),
    "above it, allowed today": ({"usd": "50", "allowed": Limits(usd="60")}, "", "extended usd to 50"),
    "above it, also today": (
        {"usd": "50", "allowed": Limits(usd="40")},
        "above_workflow",
        "its workflow scan allows 40",
    ),
    "allowed less today": ({"usd": "3", "allowed": Limits(usd="0.5")}, "", "extended usd to 3"),
    "what has no limit": ({"turns": 5}, "no_limit", "it has no limit of turns"),
    "nothing": ({}, "no_limit", "no limit was named"),
    "one of two too much": ({"usd": "2", "tokens": 999}, "above_workflow", "999 of tokens"),
    "a later end": ({"deadline": "3h"}, "", "extended deadline to 2026-11-18T14:06:40.000000Z"),
    "an earlier end": ({"deadline": "30m"}, "not_more", "its deadline is 2026-11-18T12:06:40.000000Z"),
    "an end beyond the workflow": ({"deadline": "9h"}, "above_workflow", "allows 5h, until 2026-11-18T16"),
    "an end that is no time": ({"deadline": "noon"}, "no_time", "expected a moment"),
}


@pytest.mark.parametrize("case", EXTENDS)
def test_a_person_raises_limits_within_what_the_workflow_allows(case: str) -> None:
    """Raised, refused with the reason, or as it was; of several all or none."""
    asked, code, said = EXTENDS[case]
    allowed = Limits(usd="3", tokens=300, active_time=900.0, deadline=5 * 3600.0)
    play = Play.of(
        "a",
        deadline=3600.0,
        budget=Budget(usd="1", tokens=100, active_seconds=300.0),
        contract=evolve(CONTRACT, limits=allowed),
    )
    before = play.snapshot
    verdict = play.tell(events.Extend(by=ANNA, reason="worth it", **asked))
    if code == "":
        assert isinstance(verdict, Entry)
        assert (said, "worth it") == (verdict.decision.choice, verdict.decision.reason)
        assert play.snapshot.budget != before.budget
        assert play.snapshot == folded(play.lines)
        return
    assert before is play.snapshot
    assert not isinstance(verdict, Entry)
    assert said in verdict.reason
    assert code == getattr(verdict, "code", "=")


def test_a_deadline_that_was_put_off_is_the_one_that_counts() -> None:
    """The job lives past its first deadline and is ended at the new one."""
    play = Play.of("a", deadline=100.0)
    play.does(events.Extend(by=ANNA, deadline="10m"))
    assert moment(600.0) == due.next_due(play.snapshot, play.now)
    play.wait(100.0)
    assert play.changes_nothing(events.Tick())
    play.wait(500.0)
    play.does(events.Tick())

    assert Ending.EXPIRED == (play.snapshot.outcome and play.snapshot.outcome.ending)


@pytest.mark.parametrize("over", [events.Cancel(by=ANNA), None], ids=["being ended", "ended"])
def test_what_ends_cannot_be_extended(over: events.Event | None) -> None:
    """Terminal is final, and so is a cancel that is being carried out."""
    play = limited("a", usd="1")
    if over is not None:
        play.start("a")
        play.does(over)
    else:
        play.does(events.Cancel(by=ANNA))

    assert {"ended", "stopping"} > {play.refusal(EXTEND).code}


def test_without_a_cap_of_the_workflow_the_command_says_a_useful_amount() -> None:
    """Where nothing stands above the job's own limit, what is offered is what was used and as much again."""
    allowed = Limits(active_time=None)
    for budget, used, option in (
        ({"usd": "1.5"}, {"usd": "2"}, "--usd 3.5"),
        ({"tokens": 100}, {"tokens": 130}, "--tokens 230"),
    ):
        play = limited("a", "b", allowed=allowed, **budget)
        spends(play, "a", **used)
        assert f"resumectl extend harbour-7 {option}" == standing.commands(play.snapshot)[0]
    play = limited("a", "b", allowed=allowed, active_seconds=7200.0)
    play.start("a")
    play.wait(7300.0)
    play.answer("a", decisions.Accepted())

    assert "resumectl extend harbour-7 --active-time 5h" == standing.commands(play.snapshot)[0]


def test_at_the_workflows_own_cap_only_an_end_is_offered() -> None:
    """No command is offered that would be refused; the refusal says who may raise the workflow's limit."""
    play = limited("a", "b", usd="3")
    spends(play, "a", usd="3")
    assert ("resumectl cancel harbour-7",) == standing.commands(play.snapshot)
    refusal = play.refusal(events.Extend(by=ANNA, usd="4"))

    assert "whoever runs the host may raise limits.usd in scan.toml" in refusal.reason
