"""The judgement in the commit that lets an effect go: what was allowed and checked goes, and nothing else."""

from typing import Any

import pytest
from attrs import evolve
from effects_kit import BLIND, CALL, DEDUP, FACTS, TOOL, Ledger, asked, call, items, job, of
from gates_kit import ADA, BO, CY, RULE, facts
from machine_kit import ANNA, NEXT_BOOT, WORKER, folded, moment, text

from resumed.actors.machine import errands
from resumed.schemas import decisions, events, keys
from resumed.schemas.approvals import Facts
from resumed.schemas.decisions import Absent, Checked, Landed, NotSent, Performing, Refused, Seen
from resumed.schemas.job import ItemState, Person, PinKind, Source
from resumed.schemas.ledger import EffectState, ErrandKind
from resumed.schemas.refusal import Refusal

GATED = evolve(TOOL, approve=RULE)
PINNED = Source(path="/srv/a", pin=PinKind.SHA256, sha256="a" * 64, size=3)
CHANGED = evolve(PINNED, sha256="b" * 64)


def approve(play: Ledger, who: Person = BO, name: str = CALL, **more: Any) -> events.Approve:
    """A yes to the call as it stands."""
    given = {"subject": name, "facts": facts(who), "fingerprint": play.effect(name).fingerprint}
    return events.Approve(by=who, **(given | more))


def approved(*tools: Any, **more: Any) -> Ledger:
    """A call that somebody has allowed."""
    play = asked(tools=tools or (GATED,), **more)
    assert None is play.wants()
    play.does(approve(play))
    return play


def spent(play: Ledger, name: str = CALL) -> list[str]:
    """The operation keys that yeses to a call were spent on."""
    return [row.operation_key for row in play.snapshot.approvals if row.effect == name]


# ---- approvals, judged again ------------------------------------------------------------------------------


def test_what_nobody_has_allowed_is_not_even_wanted() -> None:
    """A gate claims no slot, and a slot that comes anyway changes nothing."""
    play = asked(tools=(GATED,))

    assert None is play.wants()
    unit = errands.name_of(CALL)
    assert play.changes_nothing(events.Grant(unit=unit, worker=WORKER, facts=facts(BO)))


def test_a_yes_is_spent_in_the_commit_that_lets_the_call_go() -> None:
    """Once, on this operation key, durably before anything is sent."""
    play = approved()
    assert [""] == spent(play)
    assert "sent" == play.grant(facts=facts(BO))
    row = play.effect()

    assert [row.operation_key] == spent(play)
    entry = play.lines[-1].entries[-1]
    assert {EffectState.DISPATCHING} == {each.state for each in entry.changes.effects}
    assert 1 == len(entry.changes.approvals)
    assert 1 == len(entry.changes.errands)


JUDGED: dict[str, tuple[Facts | None, float, str, EffectState, str]] = {
    # what is found when it is to go, seconds since the yes -> the choice, the state, the gate's why
    "the yes has expired": (facts(BO), 300.0, "", EffectState.PROPOSED, "expired"),
    "the policy is another": (
        facts(BO, rule=evolve(RULE, valid_for=200.0)),
        0.0,
        "asked anew: policy",
        EffectState.PROPOSED,
        "policy",
    ),
    "the reviewer is no member any more": (
        facts(evolve(BO, groups=())),
        0.0,
        "asked anew: member",
        EffectState.PROPOSED,
        "member",
    ),
    "nobody can tell who is a member": (
        evolve(facts(BO), people=()),
        0.0,
        "held: names",
        EffectState.PROPOSED,
        "",
    ),
    "the names service does not answer": (
        evolve(facts(BO), problem="the names service did not answer"),
        0.0,
        "held: names",
        EffectState.PROPOSED,
        "",
    ),
    "nobody asked": (None, 0.0, "held: names", EffectState.PROPOSED, ""),
    "the requester may not any more": (
        evolve(facts(BO), requester=False),
        0.0,
        "held: access",
        EffectState.PROPOSED,
        "",
    ),
}


@pytest.mark.parametrize("case", JUDGED)
def test_what_allowed_it_is_judged_again_when_it_goes(case: str) -> None:
    """A yes that does not hold any more lets nothing go: it is asked anew, or held while nobody can tell."""
    found, passed, choice, state, why = JUDGED[case]
    play = approved()
    play.wait(passed)
    if choice:
        assert choice == play.grant(facts=found)
    else:
        play.does(events.Tick())  # its round is over by itself
    row = play.effect()

    assert (state, 0, {}) == (row.state, row.dispatches, play.snapshot.errands)
    assert row.gate is not None
    assert why == row.gate.why
    assert [""] == spent(play)


def test_a_yes_expires_exactly_between_the_check_and_the_dispatch() -> None:
    """It is judged with the time of the commit that would let it go."""
    play = approved(evolve(GATED, check_first=True))
    play.wait(299.0)
    play.grant(facts=facts(BO))
    play.wait(1.0)

    assert "asked anew: expired" == play.says(CALL, Checked(), slot=True, facts=facts(BO))
    assert (EffectState.PROPOSED, 0) == (play.effect().state, play.effect().dispatches)


def test_going_on_without_knowing_the_time_stretches_no_yes() -> None:
    """A person may let the job go on in a boot whose clock is behind; a yes of before is asked for anew."""
    play = approved(deadline=90_000.0)
    play.now = evolve(moment(-500.0, boot=NEXT_BOOT), up=10_000_000)
    play.does(events.Tick())
    assert "clock" == play.code()
    play.does(events.Resume(by=ANNA))

    assert "asked anew: expired" == play.grant(facts=facts(BO))
    assert [""] == spent(play)


def test_what_nobody_could_tell_is_judged_again_by_itself() -> None:
    """The hold of a names service that failed lifts when it answers."""
    play = approved()
    play.grant(facts=evolve(facts(BO), people=()))
    assert ("effect_held", None) == (play.code(), play.wants())
    play.wait(60.0)

    assert ErrandKind.SEND is play.wants()
    assert "sent" == play.grant(facts=facts(BO))
    assert None is play.code()


def test_a_call_without_a_gate_still_needs_its_requester() -> None:
    """Whoever may not hand in such a job any more sends nothing by it."""
    play = asked()

    assert "held: access" == play.grant(facts=evolve(FACTS, requester=False))
    assert ("effect_held", 0) == (play.code(), play.effect().dispatches)


def test_a_quorum_is_counted_in_people() -> None:
    """The same person twice is one."""
    play = asked(tools=(evolve(GATED, approve=evolve(RULE, quorum=2)),))
    rule = evolve(RULE, quorum=2)
    play.does(approve(play, BO, facts=facts(BO, rule=rule)))
    assert None is play.wants()
    play.tell(approve(play, BO, facts=facts(BO, rule=rule)))
    assert None is play.wants()
    play.does(approve(play, CY, facts=facts(CY, rule=rule)))

    assert "sent" == play.grant(facts=facts(BO, CY, rule=rule))
    assert 2 == len(set(spent(play))) + 1


def test_not_sent_keeps_the_yes_for_the_same_key() -> None:
    """Nothing had left: nobody is asked again, and all of it is judged again."""
    play = approved()
    play.grant(facts=facts(BO))
    play.says(CALL, NotSent(reason="busy", seconds=10.0))
    assert [""] == spent(play)
    play.wait(10.0)

    assert "sent again" == play.grant(facts=facts(BO))
    assert [play.effect().operation_key] == spent(play)


def test_a_refused_call_leaves_no_yes_for_another() -> None:
    """The target said no: the yes was spent on that key, and lets nothing else go (C11)."""
    play = approved(otherwise="open")
    play.grant(facts=facts(BO))
    play.says(CALL, Refused(reason="HTTP 422"))
    play.start("")
    play.answer("", Performing(calls=(call("8"),), then="close"))

    assert None is play.wants("job/cms.publish/2.0")
    assert [play.effect().operation_key] == spent(play)


# ---- a resend is a dispatch -------------------------------------------------------------------------------


def test_a_yes_spent_on_the_key_lets_a_resend_go_without_asking() -> None:
    """Looking up spends none, and the same operation needs no second yes."""
    play = approved()
    play.grant(facts=facts(BO))
    play.lost()
    play.wait(30.0)
    play.looks_up(Absent())

    assert "sent again" == play.grant(facts=facts(BO))
    assert [play.effect().operation_key] == spent(play)


FALLEN: dict[str, tuple[Facts, float]] = {
    "expired": (facts(BO), 300.0),
    "policy": (facts(BO, rule=evolve(RULE, valid_for=200.0)), 0.0),
    "member": (facts(evolve(BO, groups=())), 0.0),
}


@pytest.mark.parametrize("code", FALLEN)
def test_a_resend_of_what_is_proven_absent_falls_with_what_allowed_it(code: str) -> None:
    """Withdrawn: nothing of it has landed, and nothing will."""
    found, passed = FALLEN[code]
    play = approved(otherwise="ship")
    play.grant(facts=facts(BO))
    play.lost()
    play.wait(30.0)
    play.looks_up(Absent())
    play.wait(passed)

    assert f"withdrawn: {code}" == play.grant(facts=found)
    assert (EffectState.WITHDRAWN, code, "ship") == (
        play.effect().state,
        play.effect().code,
        play.unit("").at,
    )


@pytest.mark.parametrize("code", FALLEN)
def test_a_resend_of_what_may_have_landed_is_held_when_nothing_allows_it(code: str) -> None:
    """Not withdrawn: nobody can say that it did not land."""
    found, passed = FALLEN[code]
    play = approved(evolve(DEDUP, approve=RULE))
    play.grant(facts=facts(BO))
    play.lost()
    play.wait(max(30.0, passed))

    assert f"not sent again: {code}" == play.grant(facts=found)
    assert (EffectState.UNKNOWN, "effect_unknown") == (play.effect().state, play.code())


def test_a_person_saying_absent_has_people_asked_anew() -> None:
    """The yes of before was spent; it does not count for what a person says never arrived."""
    play = approved(evolve(BLIND, approve=RULE))
    play.grant(facts=facts(BO))
    play.lost()
    play.does(events.Settle(by=ANNA, subject=CALL, reason="not in the list"))
    row = play.effect()

    assert (EffectState.PROPOSED, None) == (row.state, play.wants())
    assert row.gate is not None
    assert (2, "absent") == (row.gate.round, row.gate.why)
    play.does(approve(play, CY))
    assert "sent again" == play.grant(facts=facts(CY))


# ---- checks -----------------------------------------------------------------------------------------------


def checked(**more: Any) -> Ledger:
    """A call that has to be checked before it goes; its check is open."""
    tool = evolve(TOOL, check_first=True, **more)
    play = asked(call(sources=(PINNED,), observed="v1" if more.get("observe") else ""), tools=(tool,))
    assert ErrandKind.CHECK is play.wants()
    assert "check" == play.grant()
    return play


def test_a_check_lets_it_go_in_the_same_commit() -> None:
    """The slot and the facts at hand: checked and let go at once, in that worker."""
    play = checked()

    assert "sent" == play.says(CALL, Checked(), slot=True, facts=FACTS)
    assert (ErrandKind.SEND, WORKER, 2) == (play.errand().kind, play.errand().worker, play.errand().number)


@pytest.mark.parametrize("more", [{"slot": False, "facts": FACTS}, {"slot": True, "facts": None}])
def test_a_check_without_slot_or_facts_is_made_again(more: Any) -> None:
    """What was found is not kept: it is only true now."""
    play = checked()

    assert "checked" == play.says(CALL, Checked(), **more)
    assert (EffectState.PROPOSED, ErrandKind.CHECK) == (play.effect().state, play.wants())


def test_a_source_that_changed_withdraws_the_call() -> None:
    """With the old and the new digest; the step asks anew in the same occurrence, under the next ordinal."""
    play = checked()
    play.says(CALL, Checked(changed=(Seen(item="/srv/a", source=CHANGED),)), facts=FACTS)
    row = play.effect()

    assert (EffectState.WITHDRAWN, "changed", 0) == (row.state, row.code, row.dispatches)
    assert "aaaaaaaaaaaaaaaa -> bbbbbbbbbbbbbbbb" in row.reason
    assert (ItemState.PENDING, "open", 1) == (play.unit("").state, play.unit("").at, play.unit("").occurrence)
    play.start("")
    play.answer("", Performing(calls=(call(sources=(CHANGED,)),), then="close"))
    assert (1, EffectState.PROPOSED) == (
        play.effect("job/cms.publish/1.1").ordinal,
        play.effect("job/cms.publish/1.1").state,
    )
    assert row.operation_key != play.effect("job/cms.publish/1.1").operation_key


def test_a_target_that_changed_withdraws_the_call() -> None:
    """What was observed when it was asked for is part of what was allowed."""
    play = checked(observe=True)
    play.says(CALL, Checked(observed="v2"), slot=True, facts=FACTS)

    assert (EffectState.WITHDRAWN, "changed") == (play.effect().state, play.effect().code)
    assert "'v2' now, it had 'v1'" in play.effect().reason


def test_what_is_there_already_is_no_success() -> None:
    """Somebody wrote it under our key, or a line was lost: held as a conflict, and never sent."""
    play = checked()
    play.says(CALL, Checked(found="p0"), slot=True, facts=FACTS)

    assert (EffectState.PROPOSED, "conflict", "conflict", None) == (
        play.effect().state,
        play.effect().hold.code if play.effect().hold else "",
        play.code(),
        play.wants(),
    )
    assert "resumed" == play.does(events.Resume(by=ANNA))
    assert ErrandKind.CHECK is play.wants()  # a person has looked: it is looked up again
    play.grant()
    play.says(CALL, Checked(found="p0"))
    play.does(events.Settle(by=ANNA, subject=CALL, reference="p0", reason="ours"))
    assert (EffectState.CONFIRMED, None) == (play.effect().state, play.code())


def foreign() -> Ledger:
    """What lay under its key is another's, by a person's word."""
    play = checked()
    play.says(CALL, Checked(found="p0"))
    play.does(events.Settle(by=ANNA, subject=CALL, reference=None, reason="of last year"))
    return play


def test_what_is_another_s_by_a_person_s_word_holds_it_no_more() -> None:
    """The same look-up with the same finding does not lead to the same hold again; another finding does."""
    play = foreign()
    assert (None, ErrandKind.CHECK) == (play.code(), play.wants())
    play.grant()
    play.says(CALL, Checked(found="p0"), slot=True, facts=FACTS)
    assert EffectState.DISPATCHING is play.effect().state

    other = foreign()
    other.grant()
    other.says(CALL, Checked(found="p1"), slot=True, facts=FACTS)
    assert (EffectState.PROPOSED, "conflict") == (other.effect().state, other.code())


def test_what_is_another_s_proves_no_landing() -> None:
    """A send without an answer is not confirmed by what lay there before it; by anything else it is."""
    play = foreign()
    play.grant()
    play.says(CALL, Checked(found="p0"), slot=True, facts=FACTS)
    play.lost()
    assert "unclear" == play.looks_up(Landed(reference="p0"))
    assert EffectState.UNKNOWN is play.effect().state
    play.wait(3600.0)

    assert "confirmed" == play.looks_up(Landed(reference="p1"))


PROBLEMS: dict[str, Checked] = {
    "a problem": Checked(problem="cannot read /srv/a"),
    "it observed nothing": Checked(),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_check_that_found_nothing_out_is_made_again_and_then_held(case: str) -> None:
    """It sends nothing on half a check."""
    play = checked(observe=True)
    for _ in range(2):
        assert "not checked" == play.says(CALL, PROBLEMS[case], slot=True, facts=FACTS)
        play.wait(60.0)
        play.grant()
    play.says(CALL, PROBLEMS[case], slot=True, facts=FACTS)

    assert ("effect_held", 0, EffectState.PROPOSED) == (
        play.code(),
        play.effect().dispatches,
        play.effect().state,
    )
    play.wait(900.0)
    assert ErrandKind.CHECK is play.wants()
    play.grant()
    assert "sent" == play.says(CALL, Checked(observed="v1"), slot=True, facts=FACTS)
    assert None is play.code()


@pytest.mark.parametrize("end", ["gone", "raised", "woke"])
def test_a_check_without_an_answer_says_nothing(end: str) -> None:
    """Nothing was sent: it is proposed as before, and checked again later."""
    play = checked()
    row = play.errand()
    if end == "gone":
        play.lost()
    elif end == "raised":
        unit = errands.name_of(CALL)
        play.does(events.Raised(unit=unit, epoch=row.epoch, number=row.number, error="KeyError"))
    else:
        play.does(events.Woke())

    assert (EffectState.PROPOSED, None) == (play.effect().state, play.wants())
    play.wait(30.0)
    assert ErrandKind.CHECK is play.wants()


# ---- what is sent is what is stored -----------------------------------------------------------------------

TAMPERED: dict[str, dict[str, Any]] = {
    "other arguments": {"arguments": '{"page":"8"}'},
    "another body": {"bodies": (decisions.Offer(name="b", sha256="b" * 64, size=1),)},
    "another fingerprint": {"fingerprint": "f" * 64},
    "another key": {"operation_key": "e" * 64},
    "arguments that are none": {"arguments": "{"},
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_row_that_is_not_what_it_says_is_never_sent(case: str) -> None:
    """The fingerprint and the key are worked out again from the stored row: a conflict, held."""
    play = asked()
    row = evolve(play.effect(), **TAMPERED[case])
    play.snapshot = evolve(play.snapshot, effects=play.snapshot.effects.put((row,)))

    assert "held" == play.grant()
    assert ("conflict", 0, {}) == (play.code(), play.effect().dispatches, play.snapshot.errands)


def test_asked_again_with_the_same_call_finds_its_row() -> None:
    """C05: a step cut short and tried again asks for the same call: the same row, key and yes."""
    play = job(GATED)
    play.answer("", Performing(calls=(call("reviewed"),), then="close"))
    play.does(approve(play))
    before = play.effect()
    unit = evolve(play.snapshot.position, state=ItemState.PENDING)
    play.snapshot = evolve(play.snapshot, position=unit, performances={})
    play.start("")
    play.answer("", Performing(calls=(call("reviewed"),), then="close"))

    assert before == play.effect()
    assert 1 == len(play.snapshot.effects)


def test_c05_another_call_never_goes_under_the_approval_of_the_first() -> None:
    """C05: the model answers B where A was approved: A is withdrawn, and B waits at a gate of its own."""
    play = job(GATED)
    play.answer("", Performing(calls=(call("reviewed"),), then="close"))
    play.does(approve(play))
    unit = evolve(play.snapshot.position, state=ItemState.PENDING)
    play.snapshot = evolve(play.snapshot, position=unit, performances={})
    play.start("")
    play.answer("", Performing(calls=(call("changed"),), then="close"))
    first, second = play.effect(), play.effect("job/cms.publish/1.1")

    assert (EffectState.WITHDRAWN, "superseded") == (first.state, first.code)
    assert (EffectState.PROPOSED, None) == (second.state, play.wants(second.id))
    assert first.operation_key != second.operation_key
    unit_name = errands.name_of(second.id)
    for found in (facts(BO), facts(CY)):
        assert play.changes_nothing(events.Grant(unit=unit_name, worker=WORKER, facts=found))
    refusal = play.ask(approve(play, CY, second.id, fingerprint=first.fingerprint))
    assert isinstance(refusal, Refusal)
    assert "fingerprint" == refusal.code


@pytest.mark.parametrize("cut", ["same process", "after a restart", "killed before the dispatch"])
def test_c05_what_goes_is_the_stored_call_however_the_job_resumes(cut: str) -> None:
    """C05: approved A, then resumed: what is handed to the sender is A's row, whatever would be asked now."""
    play = approved()
    asked_for = play.effect()
    if cut != "same process":
        play.snapshot = folded(play.lines)
    if cut == "killed before the dispatch":
        play.tell(events.Woke())
    assert "sent" == play.grant(facts=facts(BO))

    for name in ("arguments", "fingerprint", "operation_key", "bodies", "observed"):
        assert getattr(asked_for, name) == getattr(play.effect(), name)


@pytest.mark.parametrize("same", [False, True], ids=["two calls", "twice the same call"])
def test_c09_a_decision_goes_to_the_call_that_it_names(same: bool) -> None:
    """C09: two calls of one step wait; a yes to the second lets exactly that one go, after a restart too."""
    pages = ("1", "1") if same else ("1", "2")
    play = asked(*(call(page) for page in pages), tools=(evolve(GATED, at_once=2),))
    first, second = "job/cms.publish/1.0", "job/cms.publish/1.1"
    assert 2 == len(play.snapshot.effects)
    assert play.effect(first).operation_key != play.effect(second).operation_key
    for subject in ("", "harbour-7"):  # a decision that names only the job
        ambiguous = play.refusal(approve(play, BO, first, subject=subject))
        assert first in ambiguous.reason
        assert second in ambiguous.reason
    if not same:
        wrong = play.refusal(approve(play, BO, first, fingerprint=play.effect(second).fingerprint))
        assert "fingerprint" == wrong.code
    play.snapshot = folded(play.lines)
    play.does(approve(play, BO, second))

    assert (None, ErrandKind.SEND) == (play.wants(first), play.wants(second))
    assert "sent" == play.grant(second, facts=facts(BO))
    assert [EffectState.PROPOSED, EffectState.DISPATCHING] == [row.state for row in play.snapshot.effects]


KILLS = (
    "decision durable, not dispatched",
    "dispatched, no answer",
    "answered, not recorded",
    "recorded, reply to the reviewer lost",
)


@pytest.mark.parametrize("kill", KILLS)
def test_c11_an_approval_is_used_up_with_its_outcome_or_not_at_all(kill: str) -> None:
    """C11: killed anywhere, a yes lets one call land once, nobody is asked twice, and a repeat of it is told
    what became of it."""
    play = approved()
    sent = 0
    if kill != KILLS[0]:
        play.grant(facts=facts(BO))
        sent += 1
    if kill == KILLS[3]:
        play.says(CALL, Landed(reference="p1"))
    play.snapshot = folded(play.lines)  # what is not in a line is gone: also the answer of the third
    play.tell(events.Woke())
    again = play.ask(approve(play, BO))
    assert not hasattr(again, "changes")
    assert not isinstance(again, Refusal)
    other = play.ask(events.Deny(by=CY, subject=CALL, fingerprint=play.effect().fingerprint, facts=facts(CY)))
    assert isinstance(other, Refusal)
    assert "by bo" in other.reason
    if play.effect().state is EffectState.UNKNOWN:
        play.looks_up(Landed(reference="p1"))
    elif play.effect().state is EffectState.PROPOSED:
        assert "sent" == play.grant(facts=facts(BO))
        sent += 1
        play.says(CALL, Landed(reference="p1"))

    assert (1, EffectState.CONFIRMED) == (sent, play.effect().state)
    assert [play.effect().operation_key] == spent(play)
    told = play.ask(approve(play, BO))
    assert "spent on key" in getattr(told, "reason", "")
    assert "p1" in getattr(told, "reason", "")


# ---- asked anew -------------------------------------------------------------------------------------------


def test_what_was_confirmed_counts_when_the_step_asks_again() -> None:
    """One landed, one had changed: the step asks for both, and only the second goes."""
    tool = evolve(TOOL, at_once=2)
    play = asked(call("1"), call("2", sources=(PINNED,)), tools=(tool,))
    first, second = "job/cms.publish/1.0", "job/cms.publish/1.1"
    play.sends(first)
    play.says(first, Landed(reference="p1"))
    play.grant(second)
    play.says(second, Checked(changed=(Seen(item="/srv/a", source=CHANGED),)))
    play.start("")
    play.answer("", Performing(calls=(call("1"), call("2", sources=(CHANGED,))), then="close"))
    third = "job/cms.publish/1.2"

    assert (EffectState.CONFIRMED, 1) == (play.effect(first).state, play.effect(first).dispatches)
    assert (None, ErrandKind.CHECK) == (play.wants(first), play.wants(third))
    play.grant(third)
    play.says(third, Checked(), slot=True, facts=FACTS)
    play.says(third, Landed(reference="p2"))
    assert ["p1", "p2"] == [row.reference for row in play.given("")]


def test_what_never_stands_is_asked_anew_ever_more_slowly() -> None:
    """A target that is another at every look does not keep a step running in a circle."""
    play, pauses = checked(observe=True), []
    for number in range(4):
        play.says(f"job/cms.publish/1.{number}", Checked(observed="v9"))
        unit = play.unit("")
        assert ("changed", "open", 1) == (unit.code, unit.at, unit.occurrence)
        pauses.append(0.0 if unit.not_before is None else (unit.not_before.up - play.now.up) / 1e6)
        play.wait(pauses[-1])
        play.start("")
        again = call(sources=(PINNED,), observed="v1")
        play.answer("", Performing(calls=(again,), then="close"))
        play.grant(f"job/cms.publish/1.{number + 1}")

    assert [0.0, 30.0, 60.0, 120.0] == pauses


@pytest.mark.parametrize("code", FALLEN)
def test_a_withdrawn_resend_is_asked_for_anew_where_nothing_else_is_said(code: str) -> None:
    """Without another way its step asks again, and people are asked; the item is not left out."""
    found, passed = FALLEN[code]
    play = items("a", tools=(GATED,))
    play.does(approve(play, BO, of("a")))
    play.grant(of("a"), facts=facts(BO))
    play.lost(of("a"))
    play.wait(30.0)
    play.looks_up(Absent(), of("a"))
    play.wait(passed)
    assert f"withdrawn: {code}" == play.grant(of("a"), facts=found)

    assert (ItemState.PENDING, code, 1) == (
        play.unit("a").state,
        play.unit("a").code,
        play.unit("a").occurrence,
    )


def test_an_item_that_is_begun_again_is_asked_about_whatever_its_contract_says() -> None:
    """What it wrote before may be written once more: shown as `again after`, and a person must allow it."""
    play = items("a", "b", then="")
    play.sends(of("a"))
    play.says(of("a"), Landed(reference="p1"))
    play.does(events.Reopen(by=ANNA, items=("a",), reason="a typing error"))
    play.start("a")
    play.answer("a", Performing(calls=(call("a"),)))
    row = play.effect(of("a", 2))

    assert ("p1", None) == (row.again, play.wants(row.id))
    assert row.gate is not None
    assert row.operation_key != play.effect(of("a")).operation_key


def test_a_step_on_the_way_repeats_nothing() -> None:
    """Two steps of one item that each write something are no repetition."""
    play = items("a", then="write")
    play.sends(of("a"))
    play.says(of("a"), Landed(reference="p1"))
    play.start("a")
    play.answer("a", Performing(calls=(call("more"),)))

    assert ("", None) == (play.effect(of("a", 2)).again, play.effect(of("a", 2)).gate)


def test_sent_back_leads_where_it_is_said_with_the_words_of_whoever_did() -> None:
    """The step makes it anew, in a new occurrence, with the reviewer's note."""
    play = asked(tools=(GATED,), back="ship", otherwise="close")
    fingerprint = play.effect().fingerprint
    play.does(
        events.SendBack(by=BO, subject=CALL, fingerprint=fingerprint, reason="shorter", facts=facts(BO))
    )

    assert (EffectState.WITHDRAWN, "sent_back") == (play.effect().state, play.effect().code)
    assert ("ship", 2, "shorter") == (play.unit("").at, play.unit("").occurrence, play.unit("").note)


@pytest.mark.parametrize("who", [BO, ADA])
def test_denied_fails_where_nothing_else_is_said(who: Person) -> None:
    """One no is enough; `otherwise` is told of it where there is one."""
    for otherwise in ("", "ship"):
        play = asked(tools=(GATED,), otherwise=otherwise)
        fingerprint = play.effect().fingerprint
        play.does(events.Deny(by=who, subject=CALL, fingerprint=fingerprint, facts=facts(who)))
        assert "denied" == play.effect().code
        if otherwise:
            assert "ship" == play.unit("").at
        else:
            assert (ItemState.FAILED, "denied") == (play.unit("").state, play.unit("").code)


def test_keys_do_not_depend_on_what_is_asked_for() -> None:
    """C07, C03: the key is derived from the place, so a volatile argument gives no other."""
    one, other = asked(call("1", unbound='{"sent_at":1}')), asked(call("2", unbound='{"sent_at":2}'))

    assert one.effect().operation_key == other.effect().operation_key
    assert one.effect().fingerprint != other.effect().fingerprint
    made = keys.operation_key("harbour-7", one.snapshot.job.sha256, "", 1, "cms.publish", 0)
    assert made == one.effect().operation_key
    assert text(one.snapshot) == text(folded(one.lines))
