"""The law of drafts and questions: what waits for a person, who decides, and where its unit goes then."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from gates_kit import ADA, BO, CY, EVE, OLA, RULE, facts
from machine_kit import ANNA, FOUND, Play, folded, moment, text
from review_kit import (
    BETTER,
    FIRST,
    OTHER,
    approve,
    asking,
    at_question,
    at_review,
    deny,
    reply,
    reviewing,
    send_back,
)

from resumed.actors.machine import asks, due, questions, reviews
from resumed.actors.machine.verdict import Unchanged
from resumed.schemas import decisions, events, keys
from resumed.schemas.approvals import ApprovalRule, Facts, Policy
from resumed.schemas.askviews import AskKind
from resumed.schemas.job import ItemState, Person
from resumed.schemas.refusal import Refusal

# ---- drafts -----------------------------------------------------------------------------------------------


def test_a_draft_waits_without_a_try() -> None:
    """The item is in review, nothing of it is due, and it is asked under its sha256."""
    play = at_review(then="write", data='{"n":1}')
    [row] = asks.asks(play.snapshot, play.now)

    assert (ItemState.REVIEW, "review") == (play.unit("a").state, play.unit("a").code)
    assert ([], moment(1000.0)) == (play.due(), due.next_due(play.snapshot, play.now))
    assert (AskKind.REVIEW, "a", FIRST.sha256, "a, revision 1") == (
        row.kind,
        row.subject,
        row.fingerprint,
        row.what,
    )


def test_an_accepted_draft_goes_on_with_its_text() -> None:
    """The next step is given the text and who said yes, at every try until it has decided."""
    play = at_review(then="write", data='{"n":1}')
    assert "accepted the draft of a" == play.does(approve())
    unit = play.unit("a")
    given = reviews.given(play.snapshot, "a")
    assert given is not None
    assert (ItemState.PENDING, "write", '{"n":1}') == (unit.state, unit.at, unit.data)
    assert (FIRST, "", "bo") == (given.text, given.editor, given.by)
    play.start("a")
    play.does(play.raised("a"))
    assert given == reviews.given(play.snapshot, "a")
    play.wait(60.0)
    play.start("a")
    play.answer("a", decisions.NextStep(step="read"))

    assert (None, {}) == (reviews.given(play.snapshot, "a"), play.snapshot.reviews)
    assert play.snapshot == folded(play.lines)


def test_an_accepted_text_takes_the_place_of_what_its_step_made() -> None:
    """Where a draft bears its step's name, later steps find the text that was accepted."""
    play = at_review(then="write", kept=evolve(FIRST, name="read"))
    play.does(approve(of=evolve(FIRST, name="read"), text=BETTER))
    (made,) = play.unit("a").outputs

    assert ("read", BETTER.text, 2) == (made.name, made.text, made.revision)


def test_an_accepted_draft_without_a_next_step_is_the_output() -> None:
    """The item is done with the text, and the fan-out goes on."""
    play = at_review()
    play.does(approve())

    assert (ItemState.DONE, FIRST) == (play.unit("a").state, play.unit("a").output)
    assert (None, {}) == (play.snapshot.each, play.snapshot.reviews)


def test_an_edited_draft_is_the_next_revision_with_its_editor() -> None:
    """What was looked at stays as it was; the edited text is other bytes with a name of their own."""
    play = at_review(then="write")
    assert "edited the draft of a" == play.does(approve(text=BETTER))
    given = reviews.given(play.snapshot, "a")
    assert given is not None
    assert given.text is not None
    assert given.text.provenance is not None

    assert ("caption", 2, BETTER.sha256) == (given.text.name, given.text.revision, given.text.sha256)
    assert ("bo", "bo", "read") == (given.editor, given.text.provenance.editor, given.text.provenance.step)


def test_an_edit_that_changes_nothing_accepts() -> None:
    """The same bytes are the same revision."""
    play = at_review(then="write")
    play.does(approve(text=FIRST))
    given = reviews.given(play.snapshot, "a")
    assert given is not None

    assert (FIRST, "") == (given.text, given.editor)


def test_a_draft_that_may_not_be_edited_is_not() -> None:
    """Where the workflow says so, a reviewer takes it or leaves it."""
    play = at_review(edit=False)

    assert "no_edit" == play.refusal(approve(text=BETTER)).code


def test_a_draft_that_is_sent_back_is_made_anew_with_the_note() -> None:
    """The same step again, in the next occurrence, with the reviewer's words; its draft is revision 2."""
    play = at_review(then="write")
    assert "sent back the draft of a" == play.does(send_back(reason="name the boat"))
    unit = play.unit("a")
    assert (ItemState.PENDING, "read", "name the boat", 2) == (
        unit.state,
        unit.at,
        unit.note,
        unit.occurrence,
    )
    assert reviews.given(play.snapshot, "a") is None
    play.start("a")
    play.answer("a", reviewing(then="write"), kept=(BETTER,))

    assert 2 == play.snapshot.reviews["a"].draft.revision
    assert "fingerprint" == play.refusal(approve()).code
    assert "accepted the draft of a" == play.does(approve(of=BETTER))


def test_a_refused_draft_fails_its_item() -> None:
    """Denied: no further try is made of it; the other items go on."""
    play = at_review()
    assert "refused the draft of a" == play.does(deny(reason="not ours"))

    assert (ItemState.FAILED, "refused", "not ours") == (
        play.unit("a").state,
        play.unit("a").code,
        play.unit("a").reason,
    )
    assert "items_failed" == play.code()


def test_a_draft_that_nobody_looks_at_in_time_is_asked_about_again() -> None:
    """It is never taken for accepted."""
    play = at_review()
    play.wait(1000.0)
    assert "asked anew" == play.does(events.Tick())
    gate = play.snapshot.reviews["a"].gate

    assert (2, "lapsed", None) == (gate.round, gate.why, gate.met)
    assert ItemState.REVIEW is play.unit("a").state


def test_a_draft_is_asked_about_for_as_long_as_the_rule_in_force_says() -> None:
    """Bounded by the administrator already when it is laid before people."""
    bounded = evolve(RULE, decide_within=60.0)
    play = Play.fan_out("a")
    play.start("a")
    policy = Policy(tool="", rule=bounded, policy=keys.policy(bounded))
    play.answer("a", reviewing(), kept=(FIRST,), policies=(policy,))

    assert moment(60.0) == play.snapshot.reviews["a"].gate.until


def test_two_must_accept_where_two_are_wanted_and_both_what_one_has_changed() -> None:
    """An edit after the first yes asks the first one anew, since it is another text."""
    rule = evolve(RULE, quorum=2)
    play = at_review(rule=rule, then="write")
    assert "accepted the draft of a, 1 of 2" == play.does(approve(facts=facts(BO, rule=rule)))
    assert "edited the draft of a, 1 of 2" == play.does(approve(CY, text=BETTER, facts=facts(CY, rule=rule)))
    assert "fingerprint" == play.refusal(approve(facts=facts(BO, rule=rule), text=OTHER)).code
    play.does(approve(of=BETTER, facts=facts(BO, rule=rule)))
    given = reviews.given(play.snapshot, "a")
    assert given is not None

    assert (BETTER.sha256, "cy") == (given.text and given.text.sha256, given.editor)


WHO: dict[str, tuple[Person, Callable[[Facts], Facts], str]] = {
    "a curator": (BO, lambda found: found, ""),
    "the requester": (ADA, lambda found: found, "requester"),
    "a stranger": (EVE, lambda found: found, "not_asked"),
    "within a job": (BO, lambda found: evolve(found, placed="it comes from within an attempt"), "placed"),
    "nobody can tell": (BO, lambda found: evolve(found, problem="away"), "names"),
}


@pytest.mark.parametrize("case", WHO)
def test_who_may_accept_a_draft(case: str) -> None:
    """The same law as of calls."""
    who, change, code = WHO[case]
    play = at_review()
    before = text(play.snapshot)
    verdict = play.ask(approve(who, facts=change(facts(who))))

    assert code == (verdict.code if isinstance(verdict, Refusal) else "")
    assert before == text(play.snapshot)


def test_the_same_word_on_a_draft_again_gets_the_recorded_answer() -> None:
    """Also when its item has gone on long since, and the draft is of no more use."""
    play = at_review(then="write")
    play.does(approve(text=BETTER))
    for _ in range(2):
        again = play.ask(approve(text=BETTER))
        assert isinstance(again, Unchanged)
        assert "edited already by you, at " in again.reason
        other = play.refusal(approve(text=OTHER))
        assert "edited already by bo (uid 1002)" in other.reason
        if play.unit("a").state is ItemState.PENDING:
            play.start("a")
            play.answer("a", decisions.Accepted(), output=FOUND)


def test_who_decides_on_a_decided_draft_is_told_who_won() -> None:
    """Whatever it would have been."""
    play = at_review(then="write")
    play.does(approve())
    for event in (approve(CY), deny(CY), send_back(CY), approve(CY, text=BETTER)):
        refusal = play.refusal(event)
        assert "decided" == refusal.code
        assert "accepted already by bo (uid 1002)" in refusal.reason


def test_an_item_that_is_left_out_asks_nobody_any_more() -> None:
    """Skipped while it waits: its draft is of no more use."""
    play = at_review()
    play.does(events.Skip(by=ANNA, items=("a",)))

    assert ({}, []) == (play.snapshot.reviews, asks.asks(play.snapshot, play.now))
    assert isinstance(play.ask(approve()), Refusal)


FAULTY: dict[str, tuple[str, decisions.Decided, dict[str, Any]]] = {
    "no step of that name": ("a", reviewing(then="nowhere"), {"kept": (FIRST,)}),
    "a step of the job": ("a", reviewing(then="close"), {"kept": (FIRST,)}),
    "bytes that were not kept": ("a", reviewing(), {}),
    "data that is no JSON": ("a", reviewing(data="{"), {"kept": (FIRST,)}),
    "a quorum of nobody": ("a", reviewing(rule=ApprovalRule(quorum=0)), {"kept": (FIRST,)}),
    "no time to decide": ("a", reviewing(rule=ApprovalRule(decide_within=0)), {"kept": (FIRST,)}),
    "a question to nowhere": ("a", decisions.Asking(text="Which?", then="close"), {}),
    "a question without words": ("a", decisions.Asking(text=" ", then="write"), {}),
    "a question to a bare name": ("a", decisions.Asking(text="?", then="write", of="bo"), {}),
    "a question for no time": ("a", decisions.Asking(text="?", then="write", within=0.0), {}),
}


@pytest.mark.parametrize("case", FAULTY)
def test_what_cannot_be_asked_is_the_authors_error(case: str) -> None:
    """It counts as a failed try, and nobody is asked anything."""
    name, decided, more = FAULTY[case]
    play = Play.fan_out("a")
    play.start(name)
    assert "again" == play.answer(name, decided, **more)

    assert "author_error" == play.unit(name).code
    assert [] == asks.asks(play.snapshot, play.now)


def test_the_job_itself_has_no_draft() -> None:
    """A review is of an item."""
    play = Play.of()
    play.start("")
    play.answer("", reviewing(), kept=(FIRST,))

    assert "author_error" == play.unit("").code


# ---- questions --------------------------------------------------------------------------------------------


ANSWERING: dict[str, tuple[dict[str, Any], Person, str]] = {
    "one of those asked": ({"of": "group:curators"}, BO, ""),
    "an operator, who is not asked": ({"of": "group:curators"}, OLA, "not_asked"),
    "the owner, where nobody is named": ({}, ANNA, ""),
    "an operator, where nobody is named": ({}, OLA, ""),
    "a stranger, where nobody is named": ({}, EVE, "not_asked"),
    "one of the choices": ({"of": "group:curators", "choices": ("the first", "the second")}, BO, ""),
    "none of the choices": ({"of": "group:curators", "choices": ("x", "y")}, BO, "no_choice"),
}


@pytest.mark.parametrize("case", ANSWERING)
def test_who_may_answer_what(case: str) -> None:
    """Who is named; else the job's owner, or an operator."""
    more, who, code = ANSWERING[case]
    play = at_question(**more)
    verdict = play.ask(reply(who))

    assert code == (verdict.code if isinstance(verdict, Refusal) else "")


def test_an_answer_leads_on() -> None:
    """The next step is given it, and whose it is, until it has decided."""
    play = at_question(of="group:curators")
    assert (ItemState.IN_PROGRESS, "question") == (play.unit("a").state, play.unit("a").code)
    assert [] == play.due()
    play.does(reply())
    given = questions.given(play.snapshot, "a")
    assert given is not None
    assert ("the first", "bo", "write") == (given.answer, given.by, play.unit("a").at)
    play.start("a")
    play.answer("a", decisions.NextStep(step="read"))

    assert ((), None) == (play.snapshot.questions, questions.given(play.snapshot, "a"))
    assert play.snapshot == folded(play.lines)


def test_a_job_asks_as_its_items_do() -> None:
    """The job's own step waits for an answer and goes on with it."""
    play = Play.of()
    play.start("")
    play.answer("", asking(then="close"))
    [row] = asks.asks(play.snapshot, play.now)
    play.does(reply(ANNA, subject=row.id[:3]))

    assert ("close", ItemState.PENDING) == (play.unit("").at, play.unit("").state)


def test_a_question_that_nobody_answers_goes_to_the_operators() -> None:
    """At the end of its time; it is not answered by that, and does not wake anybody again."""
    play = at_question(of="group:curators", within=100.0)
    assert moment(100.0) == due.next_due(play.snapshot, play.now)
    play.wait(100.0)
    assert "asked anew" == play.does(events.Tick())
    [row] = asks.asks(play.snapshot, play.now)
    assert ((), "operator", "stays asked") == (row.whom, row.role, row.otherwise)
    assert due.next_due(play.snapshot, play.now) is None
    play.does(reply(OLA))

    assert "write" == play.unit("a").at


def test_the_first_answer_counts() -> None:
    """The same one again is no fault; another one is refused, naming whose counted."""
    play = at_question(of="group:curators")
    play.does(reply())
    assert isinstance(play.ask(reply(CY)), Unchanged)
    refusal = play.refusal(reply(CY, "the second"))

    assert "answered already by bo" in refusal.reason


def test_a_canceled_job_asks_nobody() -> None:
    """Its gates are closed at once."""
    for play in (at_question(), at_review()):
        play.does(events.Cancel(by=ANNA))
        assert [] == asks.asks(play.snapshot, play.now)
        assert isinstance(play.ask(reply()), Refusal)
        assert isinstance(play.ask(approve()), Refusal)
