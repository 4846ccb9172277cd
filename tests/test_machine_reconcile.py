"""What may have left is asked about until its target, or a person, has said what happened.

It goes again only where it surely did not go, or where its target itself sees to that.
"""

from collections.abc import Callable

import pytest
from attrs import evolve
from effects_kit import BLIND, BOTH, CALL, DEDUP, TOOL, Ledger, asked, call, items, of
from machine_kit import ANNA, FOUND, NEXT_BOOT, moment

from resumed.actors.machine import asks, due, reconcile, standing
from resumed.schemas import decisions, events
from resumed.schemas.actions import ActionKind
from resumed.schemas.decisions import Absent, Landed, NotSent, Refused, Unsure
from resumed.schemas.instant import later, seconds_until
from resumed.schemas.job import ItemState, Status, StopReason
from resumed.schemas.ledger import EffectState, ErrandKind, ToolContract
from resumed.schemas.workflow import OnUnknown

UNFINAL = evolve(TOOL, absent_is_final=False)
IN_FLIGHT = 30.0


def unknown(*tools: ToolContract, **more: object) -> Ledger:
    """A call was let go, and its sender ended without an answer."""
    play = asked(tools=tools or (TOOL,), **more)
    play.sends()
    play.lost()
    assert EffectState.UNKNOWN is play.effect().state
    return play


def left(play: Ledger) -> float | None:
    """Seconds until something is due; None when nothing will be."""
    at = due.next_due(play.snapshot, play.now)
    return None if at is None else seconds_until(at, play.now)


# ---- the wake ---------------------------------------------------------------------------------------------


def test_at_a_wake_what_was_being_sent_is_unknown() -> None:
    """One commit before any message: its time in flight runs from there, and its errand is over."""
    play = asked()
    play.sends()
    play.wait(3.0)
    play.does(events.Woke())
    row = play.effect()

    assert (EffectState.UNKNOWN, play.now, {}) == (row.state, row.since, play.snapshot.errands)
    assert ErrandKind.LOOK_UP is play.wants()
    assert Status.RECONCILING is standing.status(play.snapshot, play.now)


def test_at_a_wake_checks_and_look_ups_are_over_too() -> None:
    """An errand that sends nothing is asked again; the answer of the one before is evidence."""
    play = unknown()
    play.grant()
    late = play.answers(CALL, Landed(reference="p1"))
    play.does(events.Woke())

    assert ({}, 1) == (play.snapshot.errands, play.effect().unclear)
    play.wait(left(play) or 0.0)
    assert ErrandKind.LOOK_UP is play.wants()
    assert "kept" == play.does(late)
    assert EffectState.UNKNOWN is play.effect().state


def test_two_wakes_are_one() -> None:
    """The second finds nothing to do."""
    play = asked()
    play.sends()
    play.does(events.Woke())
    before = play.effect()
    play.tell(events.Woke())

    assert before == play.effect()


# ---- looking up -------------------------------------------------------------------------------------------


def test_a_landing_that_is_looked_up_confirms() -> None:
    """The target's own reference is kept, and that it was looked up."""
    play = unknown()

    assert "confirmed" == play.looks_up(Landed(reference="p1"))
    row = play.effect()
    assert (EffectState.CONFIRMED, "p1", "look_up", 1) == (
        row.state,
        row.reference,
        row.confirmed_by,
        row.dispatches,
    )
    assert "close" == play.unit("").at


def test_absent_counts_only_when_nothing_can_be_in_flight_any_more() -> None:
    """Absent before that is looked up again then; absent after it, where it is final, goes again once."""
    play = unknown()
    play.looks_up(Absent())

    assert (EffectState.UNKNOWN, False) == (play.effect().state, play.effect().absent)
    assert IN_FLIGHT == left(play)
    play.wait(IN_FLIGHT - 1.0)
    assert None is play.wants()
    play.wait(1.0)
    play.looks_up(Absent())
    assert (True, True) == (play.effect().absent, play.effect().resend)
    assert "sent again" == play.grant()
    row = play.effect()
    assert (EffectState.DISPATCHING, 2, False) == (row.state, row.dispatches, row.unproven)


def test_a_resend_bears_the_same_key_and_the_same_bytes() -> None:
    """What goes again is the stored call."""
    play = unknown()
    before = play.effect()
    play.wait(IN_FLIGHT)
    play.looks_up(Absent())
    play.grant()
    after = play.effect()

    for name in ("operation_key", "fingerprint", "arguments", "bodies", "first_dispatch", "id"):
        assert getattr(before, name) == getattr(after, name)


def test_absent_that_is_not_final_proves_nothing() -> None:
    """It is asked again, with a growing pause, and from the third time on held for a person."""
    play = unknown(UNFINAL)
    play.wait(IN_FLIGHT)
    pauses = []
    for _ in range(3):
        play.looks_up(Absent())
        pauses.append(left(play))
        play.wait(pauses[-1] or 0.0)

    assert [30.0, 60.0, 900.0] == pauses
    assert (EffectState.UNKNOWN, "unclear", False) == (
        play.effect().state,
        play.effect().hold.code if play.effect().hold else "",
        play.effect().resend,
    )
    assert ("effect_unknown", "anna") == (play.code(), play.snapshot.hold.owner if play.snapshot.hold else "")


UNCLEAR: dict[str, Callable[[Ledger], object]] = {
    "the target cannot tell": lambda play: play.looks_up(Unsure(reason="503")),
    "the look-up's worker dies": lambda play: (play.grant(), play.lost()),
    "the look-up raises": lambda play: (play.grant(), play.does(raised(play))),
    "the look-up takes too long": lambda play: (play.grant(), _timed_out(play)),
    "the daemon dies while it looks": lambda play: (play.grant(), play.does(events.Woke())),
    "it answers what is no answer": lambda play: play.looks_up(Refused(reason="?")),
}


def raised(play: Ledger) -> events.Raised:
    """Its open errand ends with an error."""
    row = play.errand()
    return events.Raised(unit=f"\x1f{CALL}", epoch=row.epoch, number=row.number, error="KeyError: 'id'")


def _timed_out(play: Ledger) -> None:
    play.wait(TOOL.timeout)
    play.does(events.Tick())
    assert StopReason.TIMEOUT is play.errand().stop
    play.lost(died=False)


@pytest.mark.parametrize("case", UNCLEAR)
def test_what_decides_nothing_three_times_in_a_row_is_held(case: str) -> None:
    """Whatever went wrong with the question: it is asked again, then a person is asked."""
    play = unknown()
    for count in range(1, 4):
        UNCLEAR[case](play)
        assert count == play.effect().unclear
        assert EffectState.UNKNOWN is play.effect().state
        play.wait(left(play) or 0.0)

    assert "effect_unknown" == play.code()
    assert Status.HELD is standing.status(play.snapshot, play.now)
    assert 2 == sum(" settle " in command for command in standing.commands(play.snapshot))


def test_an_errand_that_never_began_is_asked_again_at_once() -> None:
    """Nobody was asked: that is no answer of the target's."""
    play = unknown()
    play.grant()
    play.lost(died=False, began=False)

    assert (0, ErrandKind.LOOK_UP) == (play.effect().unclear, play.wants())


def test_what_is_held_is_asked_about_for_six_hours_and_lifts_by_itself() -> None:
    """Every 15 minutes; a landing, or a final absence, lifts the hold without anybody."""
    play = unknown()
    for _ in range(3):
        play.looks_up(Unsure(reason="503"))
        play.wait(left(play) or 0.0)
    questions = 0
    while left(play) is not None or play.wants() is not None:
        play.wait(left(play) or 0.0)
        play.looks_up(Unsure(reason="503"))
        questions += 1

    assert 23 == questions  # every 15 minutes, before six hours are over
    assert "effect_unknown" == play.code()


@pytest.mark.parametrize("answer", [Landed(reference="p1"), Absent()], ids=["landed", "absent"])
def test_an_answer_lifts_the_hold(answer: decisions.Decided) -> None:
    """The job goes on by itself once its target has said what happened."""
    play = unknown()
    for _ in range(3):
        play.looks_up(Unsure(reason="503"))
        play.wait(left(play) or 0.0)
    assert "effect_unknown" == play.code()
    play.looks_up(answer)

    assert (None, None) == (play.code(), play.effect().hold)
    assert (ErrandKind.SEND if isinstance(answer, Absent) else None) is play.wants()


def test_an_answer_in_between_begins_the_count_anew() -> None:
    """In a row means in a row: "not yet there" is an answer."""
    play = unknown()
    play.looks_up(Unsure(reason="503"))
    play.wait(29.9)
    assert None is play.wants()
    play.wait(0.1)
    assert ErrandKind.LOOK_UP is play.wants()
    evolved = evolve(play.effect(), since=play.now)
    play.snapshot = evolve(play.snapshot, effects=play.snapshot.effects.put((evolved,)))
    play.looks_up(Absent())

    assert 0 == play.effect().unclear


# ---- deduplication ----------------------------------------------------------------------------------------


def test_a_target_that_knows_keys_is_sent_it_again_when_nothing_is_in_flight() -> None:
    """Inside the key's life, counted from the first send; without a look-up nobody is asked before."""
    play = unknown(DEDUP)

    assert (None, IN_FLIGHT, None) == (play.wants(), left(play), play.code())
    play.wait(IN_FLIGHT)
    assert "sent again" == (play.grant() if play.wants() is ErrandKind.SEND else "")
    row = play.effect()
    assert (2, True) == (row.dispatches, row.unproven)
    play.says(CALL, Landed(reference="p1"))
    assert EffectState.CONFIRMED is play.effect().state


def test_a_target_with_both_is_looked_up_first() -> None:
    """A look-up costs nothing; one that is unclear, or absent without being final, lets it go again."""
    for decided in (Unsure(reason="503"), Absent()):
        play = unknown(evolve(BOTH, absent_is_final=False))
        assert ErrandKind.LOOK_UP is play.wants()
        play.wait(IN_FLIGHT)
        play.looks_up(decided)
        assert ErrandKind.SEND is play.wants()


LIVES = {"it is not longer than what may be in flight": 40.0, "it is over by then": 69.0}


@pytest.mark.parametrize("case", LIVES)
def test_a_key_that_may_be_forgotten_lets_nothing_go_again(case: str) -> None:
    """The key's life must outlast the timeout and the time in flight of the send it would protect."""
    play = unknown(evolve(DEDUP, key_lifetime=LIVES[case]))

    assert "effect_unknown" == play.code()
    assert (None, None) == (play.wants(), left(play))


def test_a_key_forgotten_while_the_job_waited_is_judged_again_when_it_goes() -> None:
    """The row said that it may go; in the commit that would let it go, its key's life is over."""
    play = unknown(DEDUP)
    play.does(events.Pause(by=ANNA))
    play.wait(3600.0)
    play.does(events.Resume(by=ANNA))

    assert "not sent again" == play.grant()
    assert (EffectState.UNKNOWN, 1, "effect_unknown") == (
        play.effect().state,
        play.effect().dispatches,
        play.code(),
    )


def test_a_paused_job_that_only_waits_to_send_again_is_paused() -> None:
    """Nothing of it goes on by itself: a person must let it go on."""
    play = unknown(DEDUP)
    play.does(events.Pause(by=ANNA))

    assert Status.PAUSED is standing.status(play.snapshot, play.now)
    held = items("a", "b", tools=(evolve(BLIND, at_once=2),), on_unknown=OnUnknown.CONTINUE)
    held.sends(of("a"))
    held.lost(of("a"))
    held.does(events.Pause(by=ANNA))
    assert Status.PAUSED is standing.status(held.snapshot, held.now)
    assert "paused by anna" == standing.why(play.snapshot, play.now)
    assert play.now == standing.since(play.snapshot)


def test_resends_come_ever_more_slowly() -> None:
    """A target that never answers is not sent the same call every half minute for a day."""
    play = unknown(evolve(DEDUP, key_lifetime=86_400.0))
    pauses = []
    for _ in range(9):
        pauses.append(left(play))
        play.wait(pauses[-1] or 0.0)
        play.grant()
        play.lost()

    assert [30.0, 30.0, 30.0, 30.0, 60.0, 120.0, 240.0, 480.0, 900.0] == pauses


# ---- neither ----------------------------------------------------------------------------------------------


def test_with_neither_look_up_nor_deduplication_a_person_is_asked_at_once() -> None:
    """Nothing is sent by a timer; the hold names who handles it."""
    play = unknown(evolve(BLIND, unclear_owner="group:finance"))

    assert ("effect_unknown", "group:finance") == (
        play.code(),
        play.snapshot.hold.owner if play.snapshot.hold else "",
    )
    assert (None, None) == (play.wants(), left(play))
    play.wait(86_400.0)
    assert (None, EffectState.UNKNOWN) == (play.wants(), play.effect().state)


# ---- what an earlier send leaves open ---------------------------------------------------------------------


@pytest.mark.parametrize("said", [NotSent(reason="no route"), Refused(reason="HTTP 409")])
def test_an_answer_to_a_resend_says_nothing_of_the_send_before(said: decisions.Decided) -> None:
    """Sent again by the target's word that it knows the key: what surely did not go this time may have gone
    the first time."""
    play = unknown(DEDUP)
    play.wait(IN_FLIGHT)
    play.grant()
    play.says(CALL, said)

    assert (EffectState.UNKNOWN, True) == (play.effect().state, play.effect().unproven)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        (NotSent(reason="no route"), EffectState.PROPOSED),
        (Refused(reason="no such page"), EffectState.REJECTED),
    ],
)
def test_an_answer_to_a_resend_of_what_was_absent_counts(said: decisions.Decided, state: EffectState) -> None:
    """What was proven absent before leaves nothing open."""
    play = unknown()
    play.wait(IN_FLIGHT)
    play.looks_up(Absent())
    play.grant()
    play.says(CALL, said)

    assert (state, False) == (play.effect().state, play.effect().unproven)


# ---- others, meanwhile ------------------------------------------------------------------------------------


def test_by_default_nothing_new_starts_while_nobody_can_tell() -> None:
    """`on_unknown = hold`: the job is held; what may have left goes on being asked about."""
    play = items("a", "b", tools=(evolve(BLIND, at_once=2),))
    play.sends(of("a"))
    play.lost(of("a"))

    assert ("effect_unknown", None, []) == (play.code(), play.wants(of("b")), play.starts())


def test_with_continue_the_others_go_on_and_the_job_is_held_at_the_end() -> None:
    """`on_unknown = continue`: what depends on that effect does not, everything else does."""
    play = items("a", "b", tools=(evolve(BLIND, at_once=2),), then="", on_unknown=OnUnknown.CONTINUE)
    play.sends(of("a"))
    play.lost(of("a"))
    assert (None, ErrandKind.SEND) == (play.code(), play.wants(of("b")))
    play.sends(of("b"))
    play.says(of("b"), Landed(reference="p2"))

    assert (ItemState.DONE, "effect_unknown") == (play.unit("b").state, play.code())


def test_look_ups_come_before_anything_new_to_the_same_target() -> None:
    """Reconcile before anything else."""
    play = items("a", "b")
    play.sends(of("a"))
    play.lost(of("a"))

    assert (ErrandKind.LOOK_UP, None) == (play.wants(of("a")), play.wants(of("b")))


@pytest.mark.parametrize("how", ["pause", "budget", "worker"])
def test_look_ups_go_on_whatever_stops_the_rest(how: str) -> None:
    """A pause and a hold of the job start nothing new, and ask on."""
    play = unknown()
    if how == "pause":
        play.does(events.Pause(by=ANNA))
    else:
        play.does(events.Trouble(code=how, reason="it cannot start"))
        assert 1 == play.effect().unclear  # asked in vain, so not at once again
        play.wait(reconcile.FIRST)

    assert ErrandKind.LOOK_UP is play.wants()
    play.looks_up(Landed(reference="p1"))
    assert EffectState.CONFIRMED is play.effect().state


def test_no_worker_for_a_look_up_is_asked_for_ever_more_slowly() -> None:
    """Each time that no worker can be had counts as one question without an answer."""
    play = unknown()
    pauses = []
    for _ in range(4):
        play.does(events.Trouble(code="worker", reason="it cannot start"))
        pauses.append(left(play))
        play.wait(pauses[-1] or 0.0)

    assert [30.0, 60.0, 900.0, 900.0] == pauses


def test_nothing_is_asked_while_a_tree_may_be_alive() -> None:
    """Its time in flight begins when a person says that nothing of the job runs any more."""
    play = asked()
    play.sends()
    play.does(events.Woke(unproven=("worker-1",)))
    assert ("not_gone", None, None) == (play.code(), play.wants(), left(play))
    play.wait(1000.0)
    play.does(events.Resume(by=ANNA))

    assert (play.now, ErrandKind.LOOK_UP) == (play.effect().since, play.wants())
    play.looks_up(Absent())
    assert IN_FLIGHT == left(play)


# ---- clocks -----------------------------------------------------------------------------------------------


def test_another_boot_with_a_clock_behind_does_not_say_that_nothing_is_in_flight() -> None:
    """What is allowed only because time has passed waits until the time is known."""
    play = unknown()
    play.now = evolve(moment(-500.0, boot=NEXT_BOOT), up=10_000_000)
    play.looks_up(Absent())

    assert (EffectState.UNKNOWN, False) == (play.effect().state, play.effect().absent)
    at = left(play)
    assert at is not None
    assert at > 0


def test_a_wall_clock_set_forward_does_not_end_the_time_in_flight() -> None:
    """A jump shortens nothing."""
    play = unknown()
    play.now = evolve(play.now, wall=play.now.wall + 3_600_000_000)
    play.tell(events.Tick())
    play.looks_up(Absent())

    assert False is play.effect().absent


def test_a_wall_clock_set_back_does_not_prolong_a_key() -> None:
    """The key's life is over by the time that went by."""
    play = unknown(DEDUP)
    play.does(events.Pause(by=ANNA))
    play.wait(3600.0)
    play.now = evolve(play.now, wall=play.now.wall - 7_200_000_000)
    play.does(events.Resume(by=ANNA))

    assert "not sent again" == play.grant()


# ---- evidence ---------------------------------------------------------------------------------------------


def test_the_first_answer_wins_and_a_repeat_changes_nothing() -> None:
    """What comes again is kept, and nothing else happens."""
    play = asked()
    play.sends()
    answer = play.answers(CALL, Landed(reference="p1"))
    play.does(answer)
    before = evolve(play.snapshot, sequence=0, newest=play.now, last_transition="")
    assert "kept" == play.does(answer)

    assert before == evolve(play.snapshot, sequence=0, newest=play.now, last_transition="")
    assert "stale" == play.lines[-1].entries[0].transition
    assert "p1" in play.lines[-1].entries[0].evidence


LATE: dict[str, tuple[decisions.Decided, decisions.Decided, bool]] = {
    # the answer that counted, the one that came late, whether a person is asked
    "landed, then landed elsewhere": (Landed(reference="p1"), Landed(reference="p2"), True),
    "landed, then landed so": (Landed(reference="p1"), Landed(reference="p1"), False),
    "landed, then refused": (Landed(reference="p1"), Refused(reason="no"), False),
    "refused, then landed": (Refused(reason="no"), Landed(reference="p1"), True),
    "unknown, then landed": (Unsure(reason="?"), Landed(reference="p1"), True),
    "unknown, then refused": (Unsure(reason="?"), Refused(reason="no"), False),
}


@pytest.mark.parametrize("case", LATE)
def test_a_late_landing_that_cannot_be_true_with_the_rest_holds_the_job(case: str) -> None:
    """Every other late answer is kept as evidence, and changes nothing."""
    first, second, holds = LATE[case]
    play = asked(otherwise="ship")
    play.sends()
    late = play.answers(CALL, second)
    play.says(CALL, first)
    state = play.effect().state
    play.does(late)

    assert state is play.effect().state
    assert ("conflict" if holds else None) == play.code()
    assert holds is ("conflict" == (play.effect().hold.code if play.effect().hold else ""))


def test_a_late_landing_of_what_was_proven_absent_stops_the_resend() -> None:
    """The look-up said absent, and it landed after all: it does not go again."""
    play = asked()
    play.sends()
    late = play.answers(CALL, Landed(reference="p1"))
    play.lost()
    play.wait(IN_FLIGHT)
    play.looks_up(Absent())
    assert ErrandKind.SEND is play.wants()
    play.does(late)

    assert ("conflict", False) == (play.code(), play.effect().resend)
    assert ErrandKind.SEND is not play.wants()
    play.wait(left(play) or 0.0)
    play.looks_up(Landed(reference="p1"))
    assert (None, EffectState.CONFIRMED) == (play.code(), play.effect().state)


def test_an_answer_that_came_from_a_worker_without_the_errand_is_evidence() -> None:
    """`late` says so, whatever is open."""
    play = asked()
    play.sends()
    play.does(evolve(play.answers(CALL, Landed(reference="p1")), late=True))

    assert (EffectState.DISPATCHING, "conflict") == (play.effect().state, play.code())


def test_a_landing_after_the_end_changes_no_status_and_is_not_forgotten() -> None:
    """It is evidence, and somebody has to know."""
    play = asked(then="")
    play.sends()
    late = play.answers(CALL, Landed(reference="p2"))
    play.says(CALL, Landed(reference="p1"))
    outcome = play.snapshot.outcome
    assert outcome is not None
    play.does(late)

    assert (outcome, "conflict") == (
        play.snapshot.outcome,
        play.effect().hold.code if play.effect().hold else "",
    )
    (ask,) = asks.asks(play.snapshot, play.now)
    assert ("settle", CALL) == (ask.kind.value, ask.subject)
    assert "settled: taken note of" == play.does(events.Settle(by=ANNA, subject=CALL, reference="p2"))
    assert ([], outcome) == (asks.asks(play.snapshot, play.now), play.snapshot.outcome)


def test_a_note_taken_lifts_the_hold_of_evidence() -> None:
    """Nothing else of the job is unsettled by then: the hold goes with the word of a person."""
    play = asked()
    play.sends()
    late = play.answers(CALL, Landed(reference="p2"))
    play.says(CALL, Landed(reference="p1"))
    play.start("")
    play.answer("", decisions.GoTo(step="ship"))
    play.does(late)
    assert "conflict" == play.code()
    play.does(events.Settle(by=ANNA, subject=CALL, reference="p2"))

    assert (None, "p1") == (play.code(), play.effect().reference)


def test_the_bytes_of_every_answer_are_kept_with_the_row() -> None:
    """Whatever the target said: its digest and its bytes, also of what could not be read."""
    play = asked()
    play.sends()
    play.says(CALL, Unsure(reason="HTTP 500", response=OFFERED), kept=(KEPT,))

    assert (KEPT.sha256, KEPT) == (play.effect().response, play.effect().answer)


OFFERED = decisions.Offer(name="answer", sha256="c" * 64, size=3, text="no!")
KEPT = evolve(FOUND, name="answer", sha256="c" * 64, size=3, text="no!")


def test_stops_of_a_send_are_not_asked_for_by_a_shutdown() -> None:
    """Its answer is all that settles it: it may finish, and a question may not."""
    play = items("a", "b", tools=(evolve(TOOL, at_once=2),))
    play.sends(of("a"))
    play.lost(of("a"))
    play.grant(of("a"))
    play.sends(of("b"))
    play.does(events.Shutdown())

    assert [ActionKind.STOP, ActionKind.RUN] == [action.kind for action in play.due()][:2]
    play.lost(of("a"), died=False)
    assert 0 == play.effect(of("a")).unclear


def test_next_moments_are_on_the_clock_of_this_boot() -> None:
    """An actor can sleep until then."""
    play = unknown(DEDUP)

    assert later(play.now, IN_FLIGHT) == due.next_due(play.snapshot, play.now)
    assert due.is_near(play.snapshot, play.now)
    assert call("7").tool == play.effect().tool
