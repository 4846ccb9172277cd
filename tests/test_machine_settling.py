"""A person's word on what may have left; what cancel, deadline, skip, pause and a lost line make of it."""

import shlex

import pytest
from attrs import evolve
from effects_kit import BLIND, CALL, DEDUP, TOOL, Ledger, asked, items, of
from machine_kit import ANNA, in_words

from resumed.actors.machine import due, standing
from resumed.schemas import decisions, events
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.decisions import Absent, Landed, Refused, Unsure
from resumed.schemas.job import Ending, ItemState, Status, StopReason
from resumed.schemas.ledger import EffectState, ErrandKind


def says(play: Ledger, reference: str | None, name: str = CALL, **more: object) -> events.Settle:
    """A person's word."""
    return events.Settle(by=ANNA, subject=name, reference=reference, reason="looked", **more)  # type: ignore[arg-type]


def held(**more: object) -> Ledger:
    """Nobody can tell whether it landed, and nobody can be asked."""
    play = asked(tools=(BLIND,), **more)
    play.sends()
    play.lost()
    assert "effect_unknown" == play.code()
    return play


# ---- settle -----------------------------------------------------------------------------------------------


def test_a_person_says_that_it_landed() -> None:
    """Confirmed under the reference that the person names; who said it stands in the row."""
    play = held()

    assert "settled: landed" == play.does(says(play, "p9"))
    row = play.effect()
    assert (EffectState.CONFIRMED, "p9", "anna (uid 1000)", None) == (
        row.state,
        row.reference,
        row.confirmed_by,
        row.hold,
    )
    assert (None, "close") == (play.code(), play.unit("").at)


def test_a_person_says_that_it_never_arrived() -> None:
    """Where nobody is asked it goes again, under the same key."""
    play = held()
    before = play.effect()
    play.does(says(play, None))

    assert (EffectState.PROPOSED, None, ErrandKind.SEND) == (play.effect().state, play.code(), play.wants())
    play.sends()
    assert (before.operation_key, 2, False) == (
        play.effect().operation_key,
        play.effect().dispatches,
        play.effect().unproven,
    )


def test_the_same_word_twice_is_one() -> None:
    """Nothing is committed, and it says who had said so."""
    play = held()
    play.does(says(play, "p9"))
    verdict = play.ask(says(play, "p9"))

    assert "confirmed already as p9, by anna" in getattr(verdict, "reason", "")
    assert not hasattr(verdict, "changes")


REFUSED = {
    "an effect that is not there": ("job/cms.publish/1.7", "no_such_ask"),
    "one that was not let go": (of("b"), "effect_state"),
    "one that is settled": (of("a"), "effect_state"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_word_is_refused_where_none_is_wanted(case: str) -> None:
    """Settled is final, and what has not left cannot have landed."""
    name, code = REFUSED[case]
    play = items("a", "b")
    play.sends(of("a"))
    play.says(of("a"), Refused(reason="no"))
    before = play.snapshot

    assert code == play.refusal(says(play, "p1", name)).code
    assert before is play.snapshot


def test_a_word_needs_a_reference_and_the_record_that_was_shown() -> None:
    """An empty reference is none, and a job that has moved on is looked at again."""
    play = held()

    assert "no_reference" == play.refusal(says(play, "")).code
    record = play.snapshot.sequence
    assert "moved" == play.refusal(says(play, "p1", record=record - 1)).code
    assert "settled: landed" == play.does(says(play, "p1", record=record))


def test_absent_is_refused_while_it_is_being_sent() -> None:
    """Its answer comes, or its time limit; landed may be said at any time."""
    play = asked()
    play.sends()

    assert "under_way" == play.refusal(says(play, None)).code
    play.does(says(play, "p1"))
    assert EffectState.CONFIRMED is play.effect().state
    assert "kept" == play.says(CALL, Landed(reference="p1"))
    assert ({}, None) == (play.snapshot.errands, play.code())


def test_an_answer_that_contradicts_a_person_holds_the_job() -> None:
    """Somebody said that it landed as p1; the sender then says p2."""
    play = asked()
    play.sends()
    play.does(says(play, "p1"))
    play.says(CALL, Landed(reference="p2"))

    assert ("conflict", {}, "p1") == (play.code(), play.snapshot.errands, play.effect().reference)
    assert "resumed" == play.does(events.Resume(by=ANNA))
    assert (None, None) == (play.code(), play.effect().hold)


def test_every_command_that_is_offered_would_do_something() -> None:
    """What `why` ends with may be typed."""
    play = held()
    commands = [command for command in standing.commands(play.snapshot) if " settle " in command]

    assert 2 == len(commands)
    assert not [command for command in standing.commands(play.snapshot) if " resume " in command]
    for command in standing.commands(play.snapshot):
        if command.split()[1] not in ("logs", "show"):
            assert hasattr(play.ask(in_words(command)), "changes"), command


def test_an_item_of_any_name_is_named_so_that_a_shell_takes_it() -> None:
    """A command that is offered can be pasted."""
    name = "a day's log"
    play = items(name, "b", tools=(BLIND,))
    play.sends(of(name))
    play.lost(of(name))
    command = next(each for each in standing.commands(play.snapshot) if "--landed" in each)

    assert ["resumectl", "settle", "harbour-7", of(name), "--landed", "REF"] == shlex.split(command)[:6]


def test_resume_cannot_stand_in_for_an_outcome() -> None:
    """No override settles an effect: the refusal names the two words that do."""
    play = held()
    refusal = play.refusal(events.Resume(by=ANNA))

    assert ("unsettled", 2) == (refusal.code, len(refusal.commands))


# ---- cancel and deadline ----------------------------------------------------------------------------------


def test_cancel_withdraws_what_was_not_let_go_and_ends_the_job() -> None:
    """Every gate closes at once; nothing had left."""
    play = asked()
    play.does(events.Cancel(by=ANNA))

    assert (EffectState.WITHDRAWN, "canceled") == (play.effect().state, play.effect().code)
    assert Ending.CANCELED is (play.snapshot.outcome.ending if play.snapshot.outcome else None)


def test_cancel_waits_for_what_may_have_left() -> None:
    """Reconciling goes on; the job is canceled when all of it is settled, and nothing goes again."""
    play = asked()
    play.sends()
    play.does(events.Cancel(by=ANNA))
    assert (None, None) == (play.errand().stop, play.snapshot.outcome)
    play.lost()

    assert Status.RECONCILING is standing.status(play.snapshot, play.now)
    play.wait(30.0)
    play.looks_up(Absent())
    assert (EffectState.WITHDRAWN, "canceled", 1) == (
        play.effect().state,
        play.effect().code,
        play.effect().dispatches,
    )
    assert Ending.CANCELED is (play.snapshot.outcome.ending if play.snapshot.outcome else None)


def test_cancel_does_not_deny_what_has_landed() -> None:
    """What is confirmed stays so; the item that it finished is done, and the job is canceled."""
    play = items("a", "b", then="")
    play.sends(of("a"))
    play.does(events.Cancel(by=ANNA))
    play.says(of("a"), Landed(reference="p1"))

    assert (EffectState.CONFIRMED, ItemState.DONE) == (play.effect(of("a")).state, play.unit("a").state)
    assert EffectState.WITHDRAWN is play.effect(of("b")).state
    assert Ending.CANCELED is (play.snapshot.outcome.ending if play.snapshot.outcome else None)


@pytest.mark.parametrize("tool", [BLIND, DEDUP], ids=["neither", "deduplicated"])
def test_cancel_of_what_nobody_can_tell_is_held_for_a_person(tool: object) -> None:
    """A target that cannot be asked is not sent anything again either."""
    play = asked(tools=(tool,))  # type: ignore[arg-type]
    play.sends()
    play.lost()
    play.does(events.Cancel(by=ANNA))

    assert ("effect_unknown", None) == (play.code(), play.snapshot.outcome)
    assert Status.HELD is standing.status(play.snapshot, play.now)
    assert 2 == sum(" settle " in command for command in standing.commands(play.snapshot))
    play.wait(7200.0)
    assert None is play.wants()
    play.does(says(play, None))
    assert (EffectState.WITHDRAWN, Ending.CANCELED) == (
        play.effect().state,
        play.snapshot.outcome.ending if play.snapshot.outcome else None,
    )


def test_the_deadline_closes_every_gate() -> None:
    """After it nothing is let go; what may have left is settled before the job is expired."""
    play = items("a", "b", deadline=50.0)
    play.sends(of("a"))
    play.wait(50.0)
    play.does(events.Tick())

    assert (EffectState.WITHDRAWN, "expired") == (play.effect(of("b")).state, play.effect(of("b")).code)
    assert None is play.snapshot.outcome
    play.lost(of("a"), died=False)
    play.looks_up(Landed(reference="p1"), of("a"))
    assert Ending.EXPIRED is (play.snapshot.outcome.ending if play.snapshot.outcome else None)


def test_a_check_of_a_job_that_is_canceled_is_stopped() -> None:
    """It sends nothing, and nothing waits for it."""
    play = asked(tools=(evolve(TOOL, check_first=True),))
    play.grant()
    assert ErrandKind.CHECK is play.errand().kind
    play.does(events.Cancel(by=ANNA))

    assert (StopReason.CANCEL, None) == (play.errand().stop, play.snapshot.outcome)
    play.lost(died=False)
    assert Ending.CANCELED is (play.snapshot.outcome.ending if play.snapshot.outcome else None)


# ---- skip, retry, pause -----------------------------------------------------------------------------------


def test_skip_withdraws_what_was_not_let_go() -> None:
    """The item is left out at once."""
    play = items("a", "b")
    play.does(events.Skip(by=ANNA, items=("a",)))

    assert (ItemState.SKIPPED, EffectState.WITHDRAWN, "skipped") == (
        play.unit("a").state,
        play.effect(of("a")).state,
        play.effect(of("a")).code,
    )


def test_skip_lets_the_others_go_on_and_keeps_the_job_open() -> None:
    """What may have left is settled before the job is over, whatever has been left out."""
    play = items("a", "b", tools=(evolve(BLIND, at_once=2),), then="")
    play.sends(of("a"))
    play.lost(of("a"))
    assert "effect_unknown" == play.code()
    play.does(events.Skip(by=ANNA, items=("a",)))

    assert (None, ItemState.SKIPPED, EffectState.UNKNOWN) == (
        play.code(),
        play.unit("a").state,
        play.effect(of("a")).state,
    )
    play.sends(of("b"))
    play.says(of("b"), Landed(reference="p2"))
    play.start("")
    play.answer("", decisions.Finished())
    assert ("effect_unknown", None) == (play.code(), play.snapshot.outcome)
    play.does(says(play, "p1", of("a")))
    assert Ending.COMPLETED is (play.snapshot.outcome.ending if play.snapshot.outcome else None)


@pytest.mark.parametrize("verb", ["retry", "reopen"])
def test_an_item_does_not_begin_again_before_its_effects_are_settled(verb: str) -> None:
    """It would ask for another call while the first one may have landed."""
    play = items("a", "b", tools=(evolve(BLIND, at_once=2),))
    play.sends(of("a"))
    play.lost(of("a"))
    play.does(events.Skip(by=ANNA, items=("a",)))
    request: events.Request = events.Retry(by=ANNA, items=("a",))
    if verb == "reopen":
        request = events.Reopen(by=ANNA, items=("a",), reason="again")

    assert ("unsettled", 2) == (play.refusal(request).code, len(play.refusal(request).commands))


def test_pause_sends_nothing_and_asks_on() -> None:
    """Looking up needs nobody's leave."""
    play = items("a", "b", tools=(evolve(TOOL, at_once=2),))
    play.sends(of("a"))
    play.does(events.Pause(by=ANNA, now=True))
    assert None is play.errand(of("a")).stop
    play.lost(of("a"))

    assert (ErrandKind.LOOK_UP, None) == (play.wants(of("a")), play.wants(of("b")))
    play.does(events.Resume(by=ANNA))
    assert ErrandKind.SEND is play.wants(of("b"))


# ---- a line was lost --------------------------------------------------------------------------------------


def torn(play: Ledger) -> None:
    """The job is loaded, and its last line may have been lost."""
    play.does(events.Woke(torn=True))


def test_what_a_lost_line_may_have_let_go_is_looked_up_first() -> None:
    """Not before it can have arrived; a landing confirms it, though the row says that it never went."""
    play = asked()
    torn(play)
    assert (True, None) == (play.effect().suspect, play.wants())
    play.wait(30.0)
    play.looks_up(Landed(reference="p1"))

    assert (EffectState.CONFIRMED, 0, "p1") == (
        play.effect().state,
        play.effect().dispatches,
        play.effect().reference,
    )


def test_a_committed_look_up_clears_the_suspicion() -> None:
    """Absent: it had not been let go, and goes now."""
    play = asked()
    torn(play)
    play.wait(30.0)
    play.looks_up(Absent())

    assert (False, ErrandKind.SEND) == (play.effect().suspect, play.wants())


def test_a_suspect_that_stays_unclear_is_held() -> None:
    """As with what is unknown."""
    play = asked()
    torn(play)
    play.wait(30.0)
    for _ in range(3):
        play.looks_up(Unsure(reason="503"))
        at = due.next_due(play.snapshot, play.now)
        assert at is not None
        play.wait((at.up - play.now.up) / 1e6)

    assert ("effect_held", True) == (play.code(), play.effect().suspect)
    play.does(says(play, "p1"))
    assert (EffectState.CONFIRMED, None) == (play.effect().state, play.code())


def test_a_suspect_that_nobody_can_be_asked_about_is_held() -> None:
    """A person says what happened; resume does not stand in for it."""
    play = asked(tools=(BLIND,))
    torn(play)

    assert ("effect_held", None, True) == (play.code(), play.wants(), play.effect().suspect)
    assert "unsettled" == play.refusal(events.Resume(by=ANNA)).code
    play.does(says(play, None))
    assert (None, ErrandKind.SEND, False) == (play.code(), play.wants(), play.effect().suspect)


def test_a_lost_line_may_have_sent_again_what_was_absent() -> None:
    """Its time in flight begins anew, and its absence is no proof any more."""
    play = asked()
    play.sends()
    play.lost()
    play.wait(30.0)
    play.looks_up(Absent())
    assert ErrandKind.SEND is play.wants()
    torn(play)

    assert (False, False, play.now) == (play.effect().absent, play.effect().resend, play.effect().since)
    assert ErrandKind.LOOK_UP is play.wants()


def test_what_waits_for_people_is_no_suspect() -> None:
    """Nobody had allowed it, so no line can have let it go."""
    play = asked(tools=(evolve(TOOL, approve=ApprovalRule()),))
    play.tell(events.Woke(torn=True))

    assert False is play.effect().suspect


def test_a_lost_line_of_a_job_without_effects_is_nothing() -> None:
    """No attempt was open, and nothing is in doubt."""
    play = Ledger.of()

    assert play.changes_nothing(events.Woke(torn=True))
