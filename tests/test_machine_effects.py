"""What a step asks for becomes rows; each goes once, and its unit goes on when all of them are settled."""

from typing import Any

import pytest
from attrs import evolve
from effects_kit import BLIND, CALL, FACTS, TOOL, asked, call, items, job, of
from machine_kit import FOUND, WORKER, folded, text

from resumed.actors.machine import errands, standing
from resumed.schemas import decisions, events, keys
from resumed.schemas.actions import ActionKind
from resumed.schemas.decisions import Landed, NotSent, Performing, Refused, Unsure
from resumed.schemas.job import ItemState, Status, StopReason
from resumed.schemas.ledger import EffectState, ErrandKind


def test_a_call_is_stored_whole_before_anything_is_done_about_it() -> None:
    """The row bears key, fingerprint and place; its unit waits without a try, and takes no slot."""
    body = evolve(FOUND, name="body")
    offer = decisions.Offer(name="body", sha256=body.sha256, size=2, text="{}")
    play = job()
    performing = Performing(calls=(call(bodies=(offer,), business_object="page 7"),), then="close")

    assert "asks for 1 effect" == play.answer("", performing, kept=(body,))
    row, unit = play.effect(), play.unit("")
    made = keys.operation_key("harbour-7", "", "", 1, "cms.publish", 0)
    assert (CALL, EffectState.PROPOSED, made, 0) == (row.id, row.state, row.operation_key, row.ordinal)
    assert keys.fingerprint(row, TOOL) == row.fingerprint
    assert ("cms at http://cms as museum", '{"page":"7"}', (body,), "page 7") == (
        row.target,
        row.arguments,
        row.bodies,
        row.business_object,
    )
    assert (ItemState.IN_PROGRESS, "effect", {}) == (unit.state, unit.code, play.snapshot.tries)
    assert [] == play.starts()


def test_a_send_is_claimed_judged_and_answered() -> None:
    """Proposed, let go in a commit of its own, confirmed by its answer; then the unit goes on."""
    play = asked()

    assert ErrandKind.SEND is play.wants()
    assert "sent" == play.grant()
    row = play.effect()
    assert (EffectState.DISPATCHING, 1, 1) == (row.state, row.dispatches, row.errands)
    assert play.now == row.first_dispatch
    (run,) = play.due()
    assert (ActionKind.RUN, errands.name_of(CALL), 1) == (run.kind, run.id, run.n)
    assert Status.RUNNING is standing.status(play.snapshot, play.now)

    assert "confirmed" == play.says(CALL, Landed(reference="p1"))
    row = play.effect()
    assert (EffectState.CONFIRMED, "p1", "send", play.now) == (
        row.state,
        row.reference,
        row.confirmed_by,
        row.settled,
    )
    assert ("close", ItemState.PENDING, 2) == (
        play.unit("").at,
        play.unit("").state,
        play.unit("").occurrence,
    )
    (given,) = play.given("")
    assert (CALL, EffectState.CONFIRMED, "p1") == (given.id, given.state, given.reference)


ANSWERS: dict[str, tuple[decisions.Decided, EffectState, str]] = {
    "landed": (Landed(reference="p1"), EffectState.CONFIRMED, ""),
    "refused": (Refused(reason="no such page"), EffectState.REJECTED, "refused"),
    "surely not sent": (NotSent(reason="no route", seconds=5.0), EffectState.PROPOSED, "not_sent"),
    "unsure": (Unsure(reason="HTTP 500"), EffectState.UNKNOWN, "unsure"),
    "absent, which is no answer to a send": (decisions.Absent(), EffectState.UNKNOWN, "unsure"),
    "a decision of a step": (decisions.Accepted(), EffectState.UNKNOWN, "unsure"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_only_what_the_target_surely_said_settles_a_send(case: str) -> None:
    """Landed, refused and surely not sent are one thing each; all else is unknown."""
    decided, state, code = ANSWERS[case]
    play = asked()
    play.sends()
    play.says(CALL, decided)

    assert (state, code) == (play.effect().state, play.effect().code)
    assert {} == play.snapshot.errands


ENDS: dict[str, tuple[dict[str, Any], EffectState]] = {
    "its worker dies": ({}, EffectState.UNKNOWN),
    "it is stopped": ({"died": False}, EffectState.UNKNOWN),
    "its worker never heard of it": ({"died": False, "began": False}, EffectState.PROPOSED),
}


@pytest.mark.parametrize("case", ENDS)
def test_a_send_without_an_answer_may_have_landed_unless_it_never_began(case: str) -> None:
    """Nobody's silence is read as a no."""
    how, state = ENDS[case]
    play = asked()
    play.sends()
    play.lost(**how)

    assert state is play.effect().state


def test_a_send_that_takes_too_long_is_stopped_and_unknown() -> None:
    """Its time limit marks it; when its tree is gone it may have landed."""
    play = asked()
    play.sends()
    play.wait(TOOL.timeout)
    play.does(events.Tick())

    assert StopReason.TIMEOUT is play.errand().stop
    assert [ActionKind.STOP] == [action.kind for action in play.due()]
    assert "unknown" == play.lost(died=False)
    assert (EffectState.UNKNOWN, play.now) == (play.effect().state, play.effect().since)


def test_not_sent_waits_and_goes_again_under_the_same_key() -> None:
    """What surely did not go is proposed as before, after the pause that its target asked for."""
    play = asked()
    before = play.effect()
    play.sends()
    play.says(CALL, NotSent(reason="busy", seconds=50.0))

    assert None is play.wants()
    play.wait(50.0)
    play.sends()
    after = play.effect()
    assert (before.operation_key, before.fingerprint, 2) == (
        after.operation_key,
        after.fingerprint,
        after.dispatches,
    )


def test_at_most_so_many_are_under_way_to_one_target() -> None:
    """`at_once` of a contract bounds the errands of a job to its target."""
    play = items("a", "b", "c", tools=(evolve(TOOL, at_once=2),))
    play.sends(of("a"))
    play.sends(of("b"))

    assert None is play.wants(of("c"))
    play.says(of("a"), Landed(reference="p1"))
    assert ErrandKind.SEND is play.wants(of("c"))


def test_an_errand_that_is_not_wanted_is_not_given() -> None:
    """A slot is no right: an unknown effect, one under way and one that waits are not started."""
    play = asked()
    play.sends()
    for name in (CALL, "job/cms.publish/1.9"):
        unit = errands.name_of(name)
        assert play.changes_nothing(events.Grant(unit=unit, worker=WORKER, facts=FACTS))


ILLEGAL: dict[str, tuple[Performing, str]] = {
    "no call": (Performing(calls=()), "no effect at all"),
    "a tool that is not declared": (Performing(calls=(call(tool="x"),)), "does not declare"),
    "a step that is not there": (Performing(calls=(call(),), then="rest"), "'rest'"),
    "an item's step": (Performing(calls=(call(),), otherwise="read"), "'read'"),
    "no step to be sent back to": (Performing(calls=(call(),), back="read"), "'read'"),
    "arguments that are no JSON": (
        Performing(calls=(decisions.Call(tool="cms.publish", arguments="{"),)),
        "cannot keep the call",
    ),
    "unbound ones that are none": (Performing(calls=(call(unbound="{"),)), "cannot keep the call"),
    "bytes that were not kept": (
        Performing(calls=(call(shown=decisions.Offer(name="s", sha256="b" * 64, size=1)),)),
        "were not kept",
    ),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_what_cannot_be_asked_for_is_a_counted_failure(case: str) -> None:
    """A call that cannot be kept as it is leaves no row at all."""
    decided, said = ILLEGAL[case]
    play = job()

    assert "again" == play.answer("", decided)
    assert ("author_error", 0) == (play.unit("").code, len(play.snapshot.effects))
    assert said in play.unit("").reason


def test_no_tool_may_be_asked_about_at_all() -> None:
    """A landing is no answer to a step."""
    play = job()

    assert "again" == play.answer("", Landed(reference="p1"))


# ---- where the unit goes --------------------------------------------------------------------------------


def test_a_unit_goes_on_when_the_last_of_its_calls_is_settled() -> None:
    """Each call goes by itself; the step that follows is given all outcomes in the order of the calls."""
    play = asked(call("1"), call("2"), tools=(evolve(TOOL, at_once=2),), otherwise="ship")
    play.sends("job/cms.publish/1.0")
    play.sends("job/cms.publish/1.1")
    play.says("job/cms.publish/1.1", Refused(reason="no such page"))

    assert ItemState.IN_PROGRESS is play.unit("").state
    play.says("job/cms.publish/1.0", Landed(reference="p1"))
    assert "ship" == play.unit("").at
    given = play.given("")
    assert ["p1", ""] == [row.reference for row in given]
    assert [EffectState.CONFIRMED, EffectState.REJECTED] == [row.state for row in given]


def test_the_outcomes_stay_until_the_step_they_led_to_has_decided() -> None:
    """Every try of that step is given them; the decision that leaves it drops them."""
    play = asked(then="open")
    play.sends()
    play.says(CALL, Landed(reference="p1"))
    play.fail("", times=1)
    assert 1 == len(play.given(""))
    play.wait(60.0)
    play.start("")
    play.answer("", decisions.GoTo(step="close"))

    assert {} == play.snapshot.performances


def test_a_job_without_a_step_after_its_effect_is_completed() -> None:
    """`then` may be empty: all have landed, so the unit is done."""
    play = asked(then="")
    play.sends()
    play.says(CALL, Landed(reference="p1"))

    assert Status.COMPLETED is standing.status(play.snapshot, play.now)


def test_an_item_without_a_step_after_its_effect_is_done_with_its_newest_output() -> None:
    """What its steps made last is its output."""
    play = items("a", then="")
    made = evolve(FOUND, name="text")
    rows = play.snapshot.items.put((evolve(play.unit("a"), outputs=(made,)),))
    play.snapshot = evolve(play.snapshot, items=rows)
    play.sends(of("a"))
    play.says(of("a"), Landed(reference="p1"))

    assert (ItemState.DONE, made) == (play.unit("a").state, play.unit("a").output)


def test_a_refused_effect_without_another_way_fails_its_item() -> None:
    """What INTERFACE.md says of a refusal holds where a workflow says nothing."""
    play = items("a", "b")
    play.sends(of("a"))
    play.says(of("a"), Refused(reason="no such page"))

    assert (ItemState.FAILED, "refused", "no such page") == (
        play.unit("a").state,
        play.unit("a").code,
        play.unit("a").reason,
    )


def test_recovery_tells_the_same_story() -> None:
    """Folding the lines gives the snapshot that was lived, with effects, errands and performances."""
    play = asked(call("1"), call("2"), tools=(BLIND,), otherwise="ship")
    play.sends("job/cms.publish/1.0")

    assert text(play.snapshot) == text(folded(play.lines))
    play.says("job/cms.publish/1.0", Unsure(reason="?"))
    play.sends("job/cms.publish/1.1") if play.wants("job/cms.publish/1.1") else None
    assert text(play.snapshot) == text(folded(play.lines))
    assert play.due() == type(play)(folded(play.lines), [], play.now).due()
