"""What lets an effect go, one condition at a time: also on records that no history of the law would leave.

Each condition alone is in the way, so that none of them is only there because another one is.
"""

from typing import Any

import pytest
from attrs import evolve
from effects_kit import BLIND, CALL, DEDUP, FACTS, TOOL, Ledger, asked, job
from gates_kit import BO, RULE, facts
from machine_kit import ANNA, NEXT_BOOT, WORKER, folded, moment

from resumed.actors.machine import dispatch, errands, rounds
from resumed.actors.machine.draft import Draft
from resumed.schemas import events
from resumed.schemas.approvals import Facts
from resumed.schemas.decisions import (
    Absent,
    Call,
    Checked,
    Decided,
    Finished,
    Landed,
    NotSent,
    Performing,
    Unsure,
)
from resumed.schemas.job import ItemState
from resumed.schemas.ledger import EffectState, ErrandKind

GATED = evolve(TOOL, approve=RULE)


def approved(*tools: Any, **more: Any) -> Ledger:
    """A call that somebody has allowed."""
    play = asked(tools=tools or (GATED,), **more)
    row = play.effect()
    play.does(events.Approve(by=BO, subject=CALL, facts=facts(BO), fingerprint=row.fingerprint))
    return play


# ---- yeses that are none ----------------------------------------------------------------------------------

NO_YES: dict[str, dict[str, Any]] = {
    "spent on another key": {"spent": moment(), "operation_key": "e" * 64},
    "to another call": {"fingerprint": "f" * 64},
    "taken back": {"revoked": moment()},
    "a no": {"decision": "deny"},
    "of another round": {"round": 7},
}


@pytest.mark.parametrize("case", NO_YES)
def test_a_gate_that_is_met_by_no_yes_of_this_call_lets_nothing_go(case: str) -> None:
    """A gate only says that people were enough; what counts in the commit are their own rows."""
    play = approved()
    [row] = play.snapshot.approvals
    changed = evolve(row, **NO_YES[case])
    play.snapshot = evolve(play.snapshot, approvals=(changed,))

    assert "asked anew: policy" == play.grant(facts=facts(BO))
    assert (EffectState.PROPOSED, 0, {}) == (
        play.effect().state,
        play.effect().dispatches,
        play.snapshot.errands,
    )
    assert (changed,) == play.snapshot.approvals


@pytest.mark.parametrize(
    "found", [None, evolve(FACTS, problem="it does not answer")], ids=["none", "trouble"]
)
def test_a_call_that_nobody_is_asked_about_still_needs_what_the_host_says(found: Facts | None) -> None:
    """Whether its requester may hand in such a job is asked of each send."""
    play = asked()

    assert "held: names" == play.grant(facts=found)
    assert (EffectState.PROPOSED, 0) == (play.effect().state, play.effect().dispatches)


def test_one_person_is_no_quorum_however_often_they_said_yes() -> None:
    """People are counted, at the gate and once more in the commit, not their rows."""
    two = evolve(RULE, quorum=2)
    play = asked(tools=(evolve(TOOL, approve=two),))
    named = {"subject": CALL, "fingerprint": play.effect().fingerprint}
    play.does(events.Approve(by=BO, facts=facts(BO, rule=two), **named))
    [row] = play.snapshot.approvals
    rows = (row, evolve(row, id="another"))
    gate = play.effect().gate
    assert gate is not None
    assert None is rounds.counted(Draft(play.snapshot, play.now), gate, two, list(rows)).met
    met = evolve(play.effect(), gate=evolve(gate, met=play.now))
    play.snapshot = evolve(play.snapshot, approvals=rows, effects=play.snapshot.effects.put((met,)))

    assert "asked anew: policy" == play.grant(facts=facts(BO, rule=two))
    assert 0 == play.effect().dispatches


# ---- the end of the job -----------------------------------------------------------------------------------


def test_a_deadline_that_nobody_has_marked_yet_lets_nothing_go() -> None:
    """It is judged with the time of the commit, to the microsecond."""
    play = asked(deadline=50.0)
    play.wait(50.0)

    assert "withdrawn: expired" == play.grant()
    assert (EffectState.WITHDRAWN, 0) == (play.effect().state, play.effect().dispatches)
    play = asked(deadline=50.0)
    play.wait(50.0 - 1e-6)
    assert "sent" == play.grant()


def test_a_deadline_between_check_and_dispatch_lets_nothing_go() -> None:
    """The check was begun in time; the commit that would let it go is not."""
    play = asked(tools=(evolve(TOOL, check_first=True),), deadline=50.0)
    play.wait(49.0)
    assert "check" == play.grant()
    play.wait(1.0)

    assert "withdrawn: expired" == play.says(CALL, Checked(), slot=True, facts=FACTS)
    assert (EffectState.WITHDRAWN, 0) == (play.effect().state, play.effect().dispatches)


def test_a_deadline_lets_nothing_go_again_that_may_have_landed() -> None:
    """By the word of a target that knows keys it could; it is held for a person instead."""
    play = asked(tools=(DEDUP,), deadline=50.0)
    play.sends()
    play.lost()
    play.wait(50.0)

    assert "not sent again: expired" == play.grant()
    row = play.effect()
    assert (EffectState.UNKNOWN, 1, False) == (row.state, row.dispatches, row.resend)
    assert row.hold is not None


# ---- time in flight, and the life of a key ----------------------------------------------------------------


def test_the_time_in_flight_runs_from_the_end_of_the_sender() -> None:
    """A sender that lived for nine seconds may have sent in the last one of them."""
    play = asked()
    play.sends()
    play.wait(9.0)
    play.lost()
    play.wait(29.0)
    play.looks_up(Absent())
    assert (False, EffectState.UNKNOWN) == (play.effect().absent, play.effect().state)

    play.wait(1.0)
    play.looks_up(Absent())
    assert play.effect().absent


def behind(play: Ledger) -> None:
    """The machine has started again 40 s ago, and its wall clock is behind what is on record."""
    play.now = evolve(moment(-500.0, boot=NEXT_BOOT), up=40_000_000)
    play.tell(events.Tick())


def test_a_clock_that_is_behind_does_not_end_the_time_in_flight() -> None:
    """Absent is asked about again until the time is known (DESIGN.md section 8)."""
    play = asked()
    play.sends()
    play.lost()
    behind(play)
    play.looks_up(Absent())

    assert (False, False) == (play.effect().absent, play.effect().resend)
    assert play.effect().not_before is not None


def test_a_clock_that_is_behind_does_not_keep_a_key_alive() -> None:
    """How long the machine was off nobody can tell: what the target may have forgotten is not sent again."""
    play = asked(tools=(DEDUP,))
    play.sends()
    play.lost()
    assert play.effect().resend
    behind(play)

    assert "not sent again" == play.grant()
    row = play.effect()
    assert (EffectState.UNKNOWN, 1, False) == (row.state, row.dispatches, row.resend)
    assert ("unclear", "anna") == ((row.hold.code, row.hold.owner) if row.hold is not None else None)


# ---- answers and errands ----------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"number": 1}, {"epoch": 9}], ids=["number", "epoch"])
def test_an_answer_of_another_errand_closes_none(other: dict[str, int]) -> None:
    """What the first sender says while the target is being asked is evidence, and no answer to that."""
    play = asked()
    play.sends()
    play.lost()
    assert "look_up" == play.grant()
    before, row = play.effect(), play.errand()
    assert 2 == row.number

    assert "kept" == play.does(evolve(play.answers(CALL, NotSent(reason="no route")), **other))
    assert (before, row) == (play.effect(), play.errand())
    assert "confirmed" == play.says(CALL, Landed(reference="p1"))


def test_at_a_wake_what_was_being_sent_is_unknown_whatever_has_become_of_its_errand() -> None:
    """A row that says that it is being sent is never taken for one that was not."""
    play = asked()
    play.sends()
    play.snapshot = evolve(play.snapshot, errands={})
    play.does(events.Woke())

    assert (EffectState.UNKNOWN, play.now) == (play.effect().state, play.effect().since)
    assert ErrandKind.LOOK_UP is play.wants()


def test_what_its_target_is_observed_for_is_observed_before_each_send() -> None:
    """Also where nothing else is to be found out, and again after a send that reached nobody."""
    play = asked(tools=(evolve(BLIND, observe=True),))
    assert ErrandKind.CHECK is play.wants()
    play.grant()
    assert "sent" == play.says(CALL, Checked(observed=""), slot=True, facts=FACTS)
    play.says(CALL, NotSent(reason="no route", seconds=30.0))
    play.wait(30.0)

    assert ErrandKind.CHECK is play.wants()


def test_nothing_goes_once_a_cancel_is_on_record() -> None:
    """A slot that comes a moment later finds nothing to do, a check that ends then lets nothing go."""
    play = asked(tools=(evolve(TOOL, check_first=True),))
    play.grant()
    answer = play.answers(CALL, Checked(), slot=True, facts=FACTS)
    play.does(events.Cancel(by=ANNA))
    play.tell(answer)

    assert (EffectState.WITHDRAWN, "canceled", 0) == (
        play.effect().state,
        play.effect().code,
        play.effect().dispatches,
    )


# ---- what decides nothing ---------------------------------------------------------------------------------

UNDECIDED: dict[str, Decided] = {
    "unsure": Unsure(reason="HTTP 500"),
    "absent": Absent(),
    "a check": Checked(),
    "the end of the job": Finished(),
}


@pytest.mark.parametrize("case", UNDECIDED)
def test_an_answer_to_a_send_that_decides_nothing_leaves_it_unknown(case: str) -> None:
    """Only three words of a sender decide: landed, refused, not sent."""
    play = asked()
    play.sends()

    assert "unknown" == play.says(CALL, UNDECIDED[case])
    assert (EffectState.UNKNOWN, play.now, None) == (
        play.effect().state,
        play.effect().since,
        play.effect().settled,
    )


def test_what_may_have_landed_is_not_withdrawn_by_the_end_of_its_job() -> None:
    """A row that waits, and of which an earlier send may have landed, is held for a person."""
    play = asked()
    row = evolve(play.effect(), unproven=True, dispatches=1)
    play.snapshot = evolve(play.snapshot, effects=play.snapshot.effects.put((row,)))
    play.does(events.Cancel(by=ANNA))

    after = play.effect()
    assert (EffectState.UNKNOWN, None) == (after.state, play.snapshot.outcome)
    assert after.hold is not None


def test_c07_a_yes_holds_however_the_same_call_is_spelled() -> None:
    """C07: names in another order, numbers and letters spelled otherwise, after a restart: the same row, key
    and yes, and nobody is asked twice; another value is another call."""
    ours = '{"z":1.0,"limit":1e16,"name":"caf\\u00e9","a":-0.0}'
    theirs = '{"a":0,"limit":10000000000000000.0,"name":"caf\u00e9","z":1}'
    other = '{"a":0,"limit":10000000000000000.0,"name":"cafe\u0301","z":1}'
    play = job(GATED)
    play.answer("", Performing(calls=(Call(tool="cms.publish", arguments=ours),), then="close"))
    before = play.effect()
    play.does(events.Approve(by=BO, subject=CALL, facts=facts(BO), fingerprint=before.fingerprint))
    for text, count in ((theirs, 1), (other, 2)):
        play.snapshot = folded(play.lines)
        unit = evolve(play.snapshot.position, state=ItemState.PENDING)
        play.snapshot = evolve(play.snapshot, position=unit, performances={})
        play.start("")
        play.answer("", Performing(calls=(Call(tool="cms.publish", arguments=text),), then="close"))
        assert count == len(play.snapshot.effects)
        if text == theirs:
            assert (before.fingerprint, before.operation_key) == (
                play.effect().fingerprint,
                play.effect().operation_key,
            )
            assert ErrandKind.SEND is play.wants()

    assert EffectState.WITHDRAWN is play.effect().state
    assert None is play.wants("job/cms.publish/1.1")


def test_a_cancel_on_record_is_in_the_way_of_each_step_by_itself() -> None:
    """Of the claim, of a yes, and of the commit that would let it go: none leans on another."""
    other = asked()
    other.sends()
    other.does(events.Cancel(by=ANNA))
    play = asked()
    play.snapshot = evolve(play.snapshot, cancel=other.snapshot.cancel)
    assert None is play.wants()
    draft = Draft(play.snapshot, play.now)
    assert "withdrawn: canceled" == dispatch.let_go(draft, play.effect(), WORKER, FACTS)

    play = asked(tools=(GATED,))
    play.snapshot = evolve(play.snapshot, cancel=other.snapshot.cancel)
    named = {"subject": CALL, "fingerprint": play.effect().fingerprint}
    assert "stopping" == play.refusal(events.Approve(by=BO, facts=facts(BO), **named)).code


def test_what_a_line_allows_the_same_line_does_not_let_go() -> None:
    """A line that is lost may have let go only what stood there, allowed, before it."""
    play = asked(tools=(GATED,))
    durable = play.snapshot
    named = {"subject": CALL, "fingerprint": play.effect().fingerprint}
    play.does(events.Approve(by=BO, facts=facts(BO), **named))
    unit = errands.name_of(CALL)

    assert not errands.is_durable(durable, play.snapshot, unit)
    assert errands.is_durable(play.snapshot, play.snapshot, unit)


def test_the_same_call_twice_stays_two_when_it_is_asked_for_again() -> None:
    """C09: each finds a row of its own again, under its own key."""
    twice = Performing(calls=(Call(tool="cms.publish", arguments="{}"),) * 2, then="close")
    play = job(GATED)
    play.answer("", twice)
    before = tuple(play.snapshot.effects)
    unit = evolve(play.snapshot.position, state=ItemState.PENDING)
    play.snapshot = evolve(play.snapshot, position=unit, performances={})
    play.start("")
    play.answer("", twice)

    assert before == tuple(play.snapshot.effects)
    assert 2 == len(before)
    assert tuple(row.id for row in before) == play.snapshot.performances[""].effects


@pytest.mark.parametrize("reference", ["p1", None], ids=["landed", "absent"])
def test_nobody_says_of_what_has_surely_not_left_what_became_of_it(reference: str | None) -> None:
    """A call that is held because of people or clocks was never sent: no word makes a landing of it."""
    play = approved()
    assert "held: names" == play.grant(facts=evolve(facts(BO), people=()))
    settle = events.Settle(by=ANNA, subject=CALL, reference=reference)

    assert "effect_state" == play.refusal(settle).code


def test_a_check_that_ends_in_a_pause_lets_nothing_go() -> None:
    """It was begun before; what was found counts, and is found out again when the job goes on."""
    play = asked(tools=(evolve(TOOL, check_first=True),))
    assert "check" == play.grant()
    answer = play.answers(CALL, Checked(), slot=True, facts=FACTS)
    play.does(events.Pause(by=ANNA))

    assert "checked" == play.does(answer)
    assert (EffectState.PROPOSED, 0, None) == (play.effect().state, play.effect().dispatches, play.wants())
    play.does(events.Resume(by=ANNA))
    assert ErrandKind.CHECK is play.wants()
