"""Terminal is final: an ended job keeps every row, whatever comes."""

import pytest
from attrs import evolve
from machine_kit import ANNA, EXTEND, REOPEN, REQUESTS, Play
from machine_points import POINTS

from resumed.actors.machine import due, standing
from resumed.actors.machine.transition import ROUTES
from resumed.schemas import decisions, events
from resumed.schemas.job import Ending, Status
from resumed.schemas.ledger import ERRAND


def _ended_by(decided: decisions.Decided) -> Play:
    play = Play.of("a", deadline=500.0)
    play.start("")
    play.answer("", decided)
    return play


def _canceled() -> Play:
    play = Play.of("a", deadline=500.0)
    play.does(events.Cancel(by=ANNA))
    return play


def _expired() -> Play:
    play = Play.of("a", deadline=50.0)
    play.wait(50.0)
    play.does(events.Tick())
    return play


ENDINGS = {
    Ending.COMPLETED: POINTS["Terminal"][1],
    Ending.FAILED: lambda: _ended_by(decisions.Failed(reason="nothing to do")),
    Ending.CANCELED: _canceled,
    Ending.EXPIRED: _expired,
}


EVERY: dict[str, events.Event] = {
    **{f"request: {words}": request for words, request in REQUESTS.items()},
    "named retry": events.Retry(by=ANNA, items=("a",)),
    "extend": EXTEND,
    "reopen": REOPEN,
    "approve": events.Approve(by=ANNA, subject="a", fingerprint="f" * 64),
    "deny": events.Deny(by=ANNA, subject="a", fingerprint="f" * 64),
    "send back": events.SendBack(by=ANNA, subject="a", fingerprint="f" * 64),
    "revoke": events.Revoke(by=ANNA, subject="a"),
    "answer": events.Reply(by=ANNA, subject="a", answer="yes"),
    "named skip": events.Skip(by=ANNA, items=("a",)),
    "settle": events.Settle(by=ANNA, subject="job/cms.publish/1.0", reference="p1"),
    "errand": events.Returned(
        unit=ERRAND + "job/cms.publish/1.0",
        epoch=1,
        number=1,
        answer=decisions.Answer(decided=decisions.Landed(reference="p1")),
    ),
    "grant": events.Grant(unit="", worker="w"),
    "returned": events.Returned(
        unit="", epoch=1, number=1, answer=decisions.Answer(decided=decisions.Finished())
    ),
    "raised": events.Raised(unit="", epoch=1, number=1, error="ValueError"),
    "gone": events.Gone(unit="", epoch=1, number=1, died=True),
    "placed": events.Placed(unit="", number=1, outcome=events.Placing.PUBLISHED),
    "woke": events.Woke(unproven=("w",)),
    "tick": events.Tick(),
    "other job": events.OtherJob(job="harbour-6", completed=True),
    "shutdown": events.Shutdown(),
    "trouble": events.Trouble(code="not_gone", reason="?"),
}


def test_every_kind_of_event_is_tried_on_what_has_ended() -> None:
    """The table of events has every kind that the law routes."""
    assert set(ROUTES) == {type(event) for event in EVERY.values()}


@pytest.mark.parametrize("ending", Ending)
def test_terminal_is_final(ending: Ending) -> None:
    """Whatever comes, also long after: an ended job keeps every row, and is due for nothing."""
    play = ENDINGS[ending]()
    play.wait(10_000.0)
    before = play.snapshot
    assert before.outcome is not None
    assert ending == before.outcome.ending
    for event in EVERY.values():
        play.tell(event)

    kept = {name: getattr(before, name) for name in ("sequence", "newest", "last_transition")}
    assert before == evolve(play.snapshot, **kept)
    assert ([], None) == (play.due(), due.next_due(play.snapshot, play.now))
    assert Status(ending.value) == standing.status(play.snapshot, play.now)


def test_a_step_that_gives_up_fails_the_job_though_it_was_held() -> None:
    """The handler's own word that it cannot succeed is an end, whatever held the job meanwhile."""
    play = Play.of()
    play.start("")
    play.does(events.Trouble(code="worker", reason="it cannot start"))
    play.answer("", decisions.Failed(reason="nothing to do"))

    assert play.snapshot.outcome is not None
    assert (Ending.FAILED, "nothing to do") == (play.snapshot.outcome.ending, play.snapshot.outcome.reason)


def test_the_decision_row_names_who_and_why() -> None:
    """A person's choice is committed with the kernel's word about the person, and the reason given."""
    play = Play.of("a")
    play.does(events.Pause(by=ANNA, reason="month end"))
    row = play.lines[-1].entries[0].decision

    assert ("uid:1000 anna", "pause", "paused", "month end") == (row.by, row.rule, row.choice, row.reason)
