"""The law of request ids: the same request is answered once, and the same ever after."""

from typing import Any

import pytest
from attrs import evolve
from machine_kit import ANNA, REQUESTS, Play

from resumed.actors import receipts
from resumed.actors.machine import receipts as machine
from resumed.actors.machine.verdict import Unchanged, Verdict
from resumed.schemas import events
from resumed.schemas.job import Person
from resumed.schemas.limits import Limits
from resumed.schemas.receipt import KEPT, KEPT_SECONDS, Receipt
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry

BO = Person(uid=ANNA.uid + 1, name="bo")


def tell(play: Play, event: Any) -> Verdict:
    """What the actor makes of a request: the law's verdict with its receipt, committed."""
    verdict = receipts.with_receipt(
        play.snapshot, event, play.ask(event), play.snapshot.sequence + 1, play.now
    )
    if isinstance(verdict, Entry):
        play.commit(verdict)
    return verdict


def receipt_of(verdict: Verdict) -> Receipt:
    """The answer that a verdict keeps, or gives again."""
    assert not isinstance(verdict, Refusal), verdict
    found = verdict.receipt if isinstance(verdict, Unchanged) else verdict.changes.receipt
    assert found is not None
    return found


def pause(request: str = "r-1", **more: Any) -> events.Pause:
    return events.Pause(by=more.pop("by", ANNA), request=request, **more)


def test_same_request_is_answered_the_same_and_changes_nothing() -> None:
    """Asked again under its id, whatever happened since, a request gets its first answer."""
    play = Play.fan_out("a", "b")
    first = tell(play, pause(reason="tea"))
    play.does(events.Resume(by=BO))
    lines = len(play.lines)
    again = tell(play, pause(reason="tea"))

    assert "harbour-7 is paused" == receipt_of(first).said
    assert receipt_of(first) == receipt_of(again)
    assert isinstance(again, Unchanged)
    assert lines == len(play.lines)
    assert None is play.snapshot.pause


def test_request_that_found_nothing_to_do_is_kept_too() -> None:
    """A resume that had nothing to lift must not lift, when it is asked again, what was paused since."""
    play = Play.fan_out("a")
    resume = events.Resume(by=ANNA, request="r-1")
    first = tell(play, resume)
    play.does(events.Pause(by=BO))
    again = tell(play, resume)

    assert receipt_of(first) == receipt_of(again)
    assert receipt_of(first).repeated
    assert play.snapshot.pause is not None


OTHERS = {
    "another reason": pause(reason="coffee"),
    "another kind": events.Cancel(by=ANNA, request="r-1"),
    "now": pause(reason="tea", now=True),
    "another record": pause(reason="tea", record=3),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_content_under_one_id_is_a_conflict(case: str) -> None:
    """An id that was given to one request is refused to another, with what the first was answered."""
    play = Play.fan_out("a")
    tell(play, pause(reason="tea"))
    refused = play.refusal(OTHERS[case])

    assert "request_conflict" == refused.code
    assert "harbour-7 is paused" in refused.reason


def test_what_was_looked_up_is_no_content() -> None:
    """An extension asked again is the same request, whatever its workflow allows by then."""
    first = events.Extend(by=ANNA, tokens=5, request="r-1")
    later = evolve(first, allowed=Limits(tokens=9))

    assert machine.content(first) == machine.content(later)
    assert machine.content(first) != machine.content(evolve(first, tokens=6))


def test_ids_are_each_users_own() -> None:
    """Two users who draw the same id ask two requests."""
    play = Play.fan_out("a")
    tell(play, pause())
    theirs = tell(play, events.Resume(by=BO, request="r-1"))

    assert "harbour-7 continued" == receipt_of(theirs).said
    assert 2 == len(play.snapshot.receipts)


def test_refusal_is_not_remembered() -> None:
    """What was refused may be asked again under its id, and is then judged anew."""
    play = Play.fan_out("a")
    retry = events.Retry(by=ANNA, items=("zzz",), request="r-1")
    refused = tell(play, retry)
    then = tell(play, pause())

    assert isinstance(refused, Refusal)
    assert isinstance(then, Entry)


def test_receipt_comes_before_the_record_that_was_meant() -> None:
    """A command bound to a record that it moved on itself is answered again, not refused as too late."""
    play = Play.fan_out("a")
    bound = pause(record=play.snapshot.sequence)
    first = tell(play, bound)
    again = tell(play, bound)

    assert receipt_of(first) == receipt_of(again)


@pytest.mark.parametrize("name", REQUESTS)
def test_job_that_has_ended_answers_as_before(name: str) -> None:
    """After the end the first answer is given again, and nothing is written for a new one."""
    play = Play.fan_out("a")
    cancel = events.Cancel(by=ANNA, request="r-1")
    first = tell(play, cancel)
    play.stopped()
    late = evolve(REQUESTS[name], request="r-2")  # type: ignore[misc]

    assert play.snapshot.outcome is not None
    assert receipt_of(first) == receipt_of(tell(play, cancel))
    assert not isinstance(tell(play, late), Entry)


def test_receipts_are_kept_for_seven_days() -> None:
    """An id is free again once its time is over, by the clock of the law; the next receipt drops it."""
    play = Play.fan_out("a")
    tell(play, pause())
    play.wait(KEPT_SECONDS - 1)
    kept = play.ask(events.Resume(by=ANNA, request="r-1"))
    play.wait(1)
    free = tell(play, events.Resume(by=ANNA, request="r-1"))

    assert isinstance(kept, Refusal)
    assert isinstance(free, Entry)
    assert [("1000 r-1" if ANNA.uid == 1000 else f"{ANNA.uid} r-1")] == list(play.snapshot.receipts)
    assert "harbour-7 continued" == next(iter(play.snapshot.receipts.values())).said


def test_receipts_are_bounded() -> None:
    """A job keeps the newest 256 receipts; the oldest goes as the next one comes."""
    play = Play.fan_out("a")
    for number in range(KEPT + 3):
        tell(play, pause(f"r-{number}", reason=str(number)))

    assert KEPT == len(play.snapshot.receipts)
    assert f"{ANNA.uid} r-3" == next(iter(play.snapshot.receipts))
    assert isinstance(play.ask(pause(f"r-{KEPT + 2}", reason=str(KEPT + 2))), Unchanged)


def test_receipts_come_back_from_the_disk() -> None:
    """What recovery makes of the lines has the same receipts."""
    from machine_kit import folded

    play = Play.fan_out("a")
    for number in range(3):
        tell(play, pause(f"r-{number}"))

    assert play.snapshot.receipts == folded(play.lines).receipts


def test_every_request_carries_an_id() -> None:
    """No request of a person is without its id."""
    from typing import get_args

    assert all("request" in {each.name for each in kind.__attrs_attrs__} for kind in get_args(events.Request))
