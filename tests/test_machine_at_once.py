"""A call that nobody is asked about: it goes in the line that asks for it, and what that line leaves where it
is lost.

What stood before a lost line is `test_machine_settling`'s; here it is the line that both asked and let go.
"""

from typing import Any

import effect_laws
import pytest
from attrs import evolve
from effects_kit import BLIND, CALL, FACTS, TOOL, Ledger, call, contract
from gates_kit import BO, RULE, facts
from machine_kit import ANNA, folded

from resumed.actors.machine import plain
from resumed.schemas import events
from resumed.schemas.approvals import Facts
from resumed.schemas.decisions import Absent, Checked, Finished, GoTo, Landed, Performing
from resumed.schemas.job import Ending, ItemState, Source
from resumed.schemas.ledger import EffectState, ErrandKind, ToolContract

ASKS = Performing(calls=(call(),), then="close")


def at_work(*tools: ToolContract, slots: int = 1, **more: Any) -> Ledger:
    """A job whose first step runs, in a worker that does one thing at a time."""
    agreed = evolve(contract(*tools), slots=slots)
    play = Ledger.of(contract=agreed, **more)
    assert isinstance(play, Ledger)
    play.start("")
    return play


def answers(play: Ledger, *calls: Any, facts: Facts | None = FACTS, slot: bool = True) -> str:
    """Its step asks for these calls, in the slot that it had."""
    return play.answer("", Performing(calls=calls or (call(),), then="close"), slot=slot, facts=facts)


def torn(play: Ledger) -> None:
    """The daemon is killed, and starts on a log whose last line does not verify."""
    play.snapshot = folded(play.lines)
    play.does(events.Woke(torn=True))


# ---- one line ---------------------------------------------------------------------------------------------


def test_it_is_asked_for_and_let_go_in_one_line() -> None:
    """The row is dispatching from the first, under its key, and its sender is known."""
    play = at_work()
    before = len(play.lines)

    assert "asks for 1 effect, sent" == answers(play)
    row = play.effect()
    assert (1, EffectState.DISPATCHING, 1, None) == (
        len(play.lines) - before,
        row.state,
        row.dispatches,
        row.gate,
    )
    assert (ErrandKind.SEND, 1) == (play.errand().kind, play.errand().number)
    assert {} == play.snapshot.tries
    assert "confirmed" == play.says(CALL, Landed(reference="p1"), slot=True)
    assert "close" == play.snapshot.tries[""].step
    effect_laws.check(play.lines, pages=[effect_laws.Page(key=row.operation_key, reference="p1")])


def test_its_answer_lost_it_is_unknown_like_any_other() -> None:
    """A crash after the line: looked up, and not sent before its target was asked."""
    play = at_work()
    answers(play)
    play.snapshot = folded(play.lines)
    play.does(events.Woke())

    assert (EffectState.UNKNOWN, ErrandKind.LOOK_UP) == (play.effect().state, play.wants())


WAITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # what is in the way -> how the tool is otherwise, how the answer comes otherwise
    "no slot is kept": ({}, {"slot": False}),
    "nobody asked the host": ({}, {"facts": None}),
    "it is looked up first": ({"check_first": True}, {}),
    "its target is observed": ({"observe": True}, {}),
    "somebody is asked": ({"approve": RULE}, {"facts": facts(BO)}),
}


@pytest.mark.parametrize("case", WAITS)
def test_what_else_is_to_be_known_first_leaves_it_for_a_line_of_its_own(case: str) -> None:
    """Each by itself."""
    tool, how = WAITS[case]
    play = at_work(evolve(TOOL, **tool))

    assert "asks for 1 effect" == answers(play, **how)
    assert (EffectState.PROPOSED, 0, {}) == (
        play.effect().state,
        play.effect().dispatches,
        play.snapshot.errands,
    )


def test_sources_are_compared_first() -> None:
    """A call that relies on a file is checked in an errand of its own."""
    play = at_work()
    pinned = Source(path="/a", size=1, sha256="a" * 64)

    assert "asks for 1 effect" == answers(play, call(sources=(pinned,)))
    assert ErrandKind.CHECK is play.wants()


def test_a_worker_of_several_slots_sends_nothing_itself() -> None:
    """Another worker does, which can be killed for it."""
    play = at_work(slots=4)

    assert "asks for 1 effect" == answers(play)
    assert ErrandKind.SEND is play.wants()


@pytest.mark.parametrize(
    ("found", "said"),
    [(evolve(FACTS, requester=False), "access"), (evolve(FACTS, problem="it does not answer"), "names")],
    ids=["its requester may not", "nobody can tell"],
)
def test_it_is_judged_like_any_other_send(found: Facts, said: str) -> None:
    """What holds it in a line of its own holds it here."""
    play = at_work()

    assert f"asks for 1 effect, held: {said}" == answers(play, facts=found)
    hold = play.effect().hold
    assert hold is not None
    assert (EffectState.PROPOSED, 0, said) == (play.effect().state, play.effect().dispatches, hold.code)
    assert "effect_held" == play.code()


@pytest.mark.parametrize("event", [events.Cancel(by=ANNA), events.Pause(by=ANNA)], ids=["cancel", "pause"])
def test_a_word_that_came_before_the_answer_stops_it(event: Any) -> None:
    """Also while the step that asks for it may end by itself."""
    play = at_work()
    play.does(event)
    answers(play)

    assert 0 == play.effect().dispatches
    assert {} == play.snapshot.errands


def test_of_several_calls_the_first_goes_and_the_others_follow() -> None:
    """One slot sends one call; the order is that of the calls."""
    play = at_work(evolve(TOOL, at_once=2))

    assert "asks for 2 effects, sent" == answers(play, call("7"), call("8"))
    second = "job/cms.publish/1.1"
    assert (EffectState.DISPATCHING, EffectState.PROPOSED) == (
        play.effect().state,
        play.effect(second).state,
    )
    assert ErrandKind.SEND is play.wants(second)


def test_what_was_asked_for_before_goes_by_the_same_way() -> None:
    """A step that asks again in the same occurrence finds its row, and it goes at once."""
    play = at_work()
    answers(play, slot=False)
    unit = evolve(play.snapshot.position, state=ItemState.PENDING)
    play.snapshot = evolve(play.snapshot, position=unit, performances={})
    play.start("")

    assert "asks for 1 effect, sent" == answers(play)
    assert 1 == len(play.snapshot.effects)


def test_what_somebody_has_allowed_waits_for_its_reviewers_to_be_looked_up() -> None:
    """Asked for again, it stands there allowed; what was found out for calls that nobody is asked about does
    not judge it."""
    play = at_work(evolve(TOOL, approve=RULE))
    answers(play, slot=False)
    named = {"subject": CALL, "fingerprint": play.effect().fingerprint}
    play.does(events.Approve(by=BO, facts=facts(BO), **named))
    unit = evolve(play.snapshot.position, state=ItemState.PENDING)
    play.snapshot = evolve(play.snapshot, position=unit, performances={})
    play.start("")

    assert "asks for 1 effect" == answers(play)
    gate = play.effect().gate
    assert gate is not None
    assert gate.met is not None
    assert ErrandKind.SEND is play.wants()


# ---- the line is lost -------------------------------------------------------------------------------------


def test_what_a_step_asks_for_after_a_lost_line_is_looked_up_first() -> None:
    """That line may have asked for it, and let it go: it goes once its target has nothing under its key."""
    play = at_work()
    torn(play)
    assert play.snapshot.position.torn
    play.start("")

    assert "asks for 1 effect" == answers(play)
    assert (True, True, None) == (play.effect().suspect, play.effect().renewed, play.wants())
    play.wait(30.0)
    play.looks_up(Absent())
    assert (False, False) == (play.effect().suspect, play.effect().renewed)
    play.sends()
    play.says(CALL, Landed(reference="p1"))
    play.start("")
    play.answer("", Finished())
    outcome = play.snapshot.outcome
    assert outcome is not None
    assert Ending.COMPLETED is outcome.ending


def found(**more: Any) -> Ledger:
    """The target has something under the key of a call that was asked for after the lost line."""
    play = at_work(**more)
    torn(play)
    play.start("")
    answers(play, call("8"))
    play.wait(30.0)
    assert "held: conflict" == play.looks_up(Landed(reference="p1"))
    return play


def test_what_is_found_then_may_be_another_call_and_a_person_is_asked() -> None:
    """The step may ask for something else this time: what landed is not taken for it, nor sent over."""
    play = found()
    row = play.effect()
    hold = row.hold
    assert hold is not None
    assert (EffectState.PROPOSED, 0, "p1", "conflict") == (row.state, row.dispatches, row.found, hold.code)
    assert ("conflict", None) == (play.code(), play.wants())
    play.wait(10_000.0)
    assert None is play.wants()
    assert "unsettled" == play.refusal(events.Resume(by=ANNA)).code


def test_a_person_says_that_it_is_this_call() -> None:
    """Then it is confirmed, and the unit goes on."""
    play = found()
    play.does(events.Settle(by=ANNA, subject=CALL, reference="p1"))

    assert (EffectState.CONFIRMED, "p1", None) == (play.effect().state, play.effect().reference, play.code())
    assert [""] == play.starts()


def test_a_person_says_that_it_is_another_call() -> None:
    """Then it goes, and what lies there proves nothing of it any more."""
    play = found()
    play.does(events.Settle(by=ANNA, subject=CALL, reference=None, reason="that is the first draft"))
    row = play.effect()

    assert ("p1", None, False, False) == (row.foreign, row.found, row.suspect, row.renewed)
    play.sends()
    play.lost()
    assert "unclear" == play.looks_up(Landed(reference="p1"))


def test_after_a_lost_line_a_call_that_nobody_can_look_up_is_held() -> None:
    """A person says what became of it."""
    play = at_work(BLIND)
    torn(play)
    play.start("")
    answers(play)

    assert ("effect_held", None, True) == (play.code(), play.wants(), play.effect().suspect)
    play.does(events.Settle(by=ANNA, subject=CALL, reference=None, reason="the target has nothing"))
    assert (None, ErrandKind.SEND) == (play.code(), play.wants())


def again(play: Ledger) -> None:
    """Its step asks once more in the same occurrence."""
    unit = evolve(play.snapshot.position, state=ItemState.PENDING)
    play.snapshot = evolve(play.snapshot, position=unit, performances={})
    play.start("")


SOMETIMES = evolve(RULE, when='page != "7"')


def test_a_call_that_somebody_is_asked_about_may_bear_the_lost_ones_key() -> None:
    """Where the contract leaves calls that nobody is asked about, it is looked up once it is allowed."""
    play = at_work(evolve(TOOL, approve=SOMETIMES))
    torn(play)
    play.start("")
    answers(play, call("8"), facts=facts(BO))
    assert (True, None) == (play.effect().suspect, play.wants())
    named = {"subject": CALL, "fingerprint": play.effect().fingerprint}
    play.does(events.Approve(by=BO, facts=facts(BO), **named))
    play.wait(30.0)

    assert ErrandKind.LOOK_UP is play.wants()
    assert "held: conflict" == play.looks_up(Landed(reference="p1"))
    assert 0 == play.effect().dispatches


def test_a_no_to_such_a_call_ends_it() -> None:
    """What may have been sent under its key was another call."""
    play = at_work(evolve(TOOL, approve=SOMETIMES))
    torn(play)
    play.start("")
    answers(play, call("8"), facts=facts(BO))
    named = {"subject": CALL, "fingerprint": play.effect().fingerprint}
    play.does(events.Deny(by=BO, facts=facts(BO), reason="no", **named))

    assert (EffectState.WITHDRAWN, False) == (play.effect().state, play.effect().suspect)


MARKS: dict[str, tuple[dict[str, Any], int, bool]] = {
    # how its tool is otherwise, how many slots its workers have -> whether a lost line can have let a call go
    "nobody is asked": ({}, 1, True),
    "somebody is asked of some": ({"approve": SOMETIMES}, 1, True),
    "somebody is asked": ({"approve": RULE}, 1, False),
    "it is observed first": ({"observe": True}, 1, False),
    "it is looked up first": ({"check_first": True}, 1, False),
    "it cannot be looked up first": ({"check_first": True, "look_up": False}, 1, True),
    "its workers send nothing": ({}, 4, False),
}


@pytest.mark.parametrize("case", MARKS)
def test_only_what_a_line_may_ask_for_and_let_go_is_marked(case: str) -> None:
    """Where none is, no call is held or looked up for nothing."""
    tool, slots, marked = MARKS[case]
    play = at_work(evolve(TOOL, **tool), slots=slots)
    torn(play)

    assert marked is play.snapshot.position.torn


def test_the_call_of_another_tool_is_judged_by_its_own_contract() -> None:
    """One that is asked about always is not suspect beside one that is."""
    play = at_work(evolve(TOOL, approve=RULE), evolve(TOOL, tool="mail.tell", target="mail"))
    torn(play)
    play.start("")
    answers(play, call(), call(tool="mail.tell"), facts=facts(BO))

    assert (False, True) == (play.effect().suspect, play.effect("job/mail.tell/1.0").suspect)


def test_a_second_call_in_the_same_occurrence_is_suspect_too() -> None:
    """The first one asked for may be of another tool than the lost one was."""
    play = at_work(TOOL, evolve(TOOL, tool="mail.tell", target="mail"))
    torn(play)
    play.start("")
    answers(play, call(tool="mail.tell"))
    again(play)

    assert "asks for 1 effect" == answers(play)
    assert (True, None) == (play.effect().suspect, play.wants())


def test_absence_that_is_no_proof_clears_nothing() -> None:
    """A target that may show it late is asked again, and then a person is."""
    play = at_work(evolve(TOOL, absent_is_final=False))
    torn(play)
    play.start("")
    answers(play)
    for _ in range(3):
        play.wait(1000.0)
        assert "unclear" == play.looks_up(Absent())

    assert (True, "effect_held", 0) == (play.effect().suspect, play.code(), play.effect().dispatches)


def test_a_conflict_of_a_canceled_job_is_asked_about_for_some_hours_only() -> None:
    """Then it waits for a person, and the job ends with their word."""
    play = found()
    play.does(events.Cancel(by=ANNA))
    assert EffectState.UNKNOWN is play.effect().state
    asked = 0
    for _ in range(60):
        play.wait(900.0)
        if play.wants() is ErrandKind.LOOK_UP:
            asked += 1
            play.looks_up(Landed(reference="p1"))
    assert 0 < asked < 40
    play.does(events.Settle(by=ANNA, subject=CALL, reference=None, reason="that is another"))
    outcome = play.snapshot.outcome
    assert outcome is not None
    assert Ending.CANCELED is outcome.ending


def test_a_target_that_answers_with_what_was_there_before_has_not_taken_it() -> None:
    """It knows the key of the call that a person said was another: this one has not landed."""
    play = found()
    play.does(events.Settle(by=ANNA, subject=CALL, reference=None, reason="that is another"))
    play.sends()

    assert "held: conflict" == play.says(CALL, Landed(reference="p1"))
    assert (EffectState.UNKNOWN, "conflict", False) == (
        play.effect().state,
        play.code(),
        play.effect().resend,
    )
    play.does(events.Settle(by=ANNA, subject=CALL, reference="p2"))
    assert (EffectState.CONFIRMED, None) == (play.effect().state, play.code())


def test_a_conflict_that_a_check_found_is_looked_up_after_a_lost_line() -> None:
    """It was asked for before that line: what is found is of it."""
    play = at_work(evolve(TOOL, check_first=True))
    answers(play)
    assert "check" == play.grant()
    assert "held: conflict" == play.says(CALL, Checked(found="p0"))
    torn(play)
    play.wait(30.0)

    assert ErrandKind.LOOK_UP is play.wants()


def test_the_mark_ends_with_the_step_it_is_about() -> None:
    """What asks next was not at work when the line was lost; until then no plain step forgets the mark."""
    play = at_work()
    torn(play)
    play.start("")
    answer = play.returned("", GoTo(step="close"), slot=True)
    assert None is plain.step(play.snapshot, answer, play.now)
    play.does(answer)

    assert ("close", False) == (play.snapshot.position.at, play.snapshot.position.torn)


def test_each_item_at_work_is_marked_and_no_other() -> None:
    """One line can have let go what any of them asked for."""
    agreed = evolve(contract(), slots=1)
    play = Ledger.fan_out("a", "b", "c", parallel=2, contract=agreed)
    play.start("a", "b")
    play.does(events.Woke(torn=True))

    assert {"a": True, "b": True, "c": False} == {item.id: item.torn for item in play.snapshot.items}


def test_a_wake_that_says_nothing_of_a_lost_line_marks_nothing() -> None:
    """As after every kill between two lines."""
    play = at_work()
    play.does(events.Woke())

    assert False is play.snapshot.position.torn


# ---- a suspect that is not wanted any more ----------------------------------------------------------------


@pytest.mark.parametrize("landed", [True, False], ids=["landed", "absent"])
def test_a_suspect_of_a_canceled_job_is_looked_into_before_it_ends(landed: bool) -> None:
    """A lost line may have let it go: the record says what became of it, not that nothing left."""
    play = at_work()
    answers(play, slot=False)
    torn(play)
    play.does(events.Cancel(by=ANNA))
    assert (EffectState.UNKNOWN, None) == (play.effect().state, play.snapshot.outcome)
    play.wait(30.0)
    play.looks_up(Landed(reference="p1") if landed else Absent())

    outcome = play.snapshot.outcome
    assert outcome is not None
    assert (Ending.CANCELED, EffectState.CONFIRMED if landed else EffectState.WITHDRAWN) == (
        outcome.ending,
        play.effect().state,
    )


@pytest.mark.parametrize("landed", [True, False], ids=["landed", "absent"])
def test_a_suspect_that_its_step_asks_for_no_more_is_looked_into(landed: bool) -> None:
    """Its place is taken by another call, and it is still found out what became of it."""
    play = at_work()
    answers(play, slot=False)
    torn(play)
    again(play)
    answers(play, call("8"))

    assert EffectState.UNKNOWN is play.effect().state
    play.wait(30.0)
    play.looks_up(Landed(reference="p1") if landed else Absent())
    assert (EffectState.CONFIRMED if landed else EffectState.WITHDRAWN) is play.effect().state
