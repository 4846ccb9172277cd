"""The law of approvals: who may allow a call, what a yes covers, when it is good no longer, and who won."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from gate_points import AGAIN, judged_again
from gates_kit import (
    ADA,
    BO,
    CY,
    EVE,
    JOBS,
    OLA,
    RULE,
    TOOL,
    approve,
    deny,
    facts,
    gate_of,
    gated,
    judged,
    lay,
    let_go,
    proposed,
    revoke,
    row,
    send_back,
)
from machine_kit import ANNA, CONTRACT, NEXT_BOOT, Play, folded, moment, text

from resumed.actors.machine import asks, due, rounds
from resumed.actors.machine.approvals import Word
from resumed.actors.machine.verdict import Unchanged
from resumed.schemas import conditions, decisions, events, keys
from resumed.schemas.approvals import ApprovalRule, Facts, Policy
from resumed.schemas.effecttable import EffectTable
from resumed.schemas.job import Artifact, Budget, Person
from resumed.schemas.ledger import EffectState
from resumed.schemas.limits import Limits
from resumed.schemas.refusal import Refusal

NOBODY = Person(uid=65534, name="nobody", groups=(500,))

# ---- who may ----------------------------------------------------------------------------------------------

Changed = Callable[[Facts], Facts]


def _as(**more: Any) -> Changed:
    return lambda found: evolve(found, **more)


def _ruled(**more: Any) -> Changed:
    def change(found: Facts) -> Facts:
        rule = evolve(found.rule, **more)
        people = found.people
        fresh = facts(rule=rule)
        return evolve(fresh, people=people)

    return change


def _today(**more: Any) -> Changed:
    return lambda found: evolve(found, people=tuple(evolve(each, **more) for each in found.people))


SAME: Changed = _as()
# who says yes, what is otherwise than usual -> the code of the refusal, or "" where the yes counts
WHO: dict[str, tuple[Person, Changed, str]] = {
    "a curator": (BO, SAME, ""),
    "nobody's groups": (EVE, SAME, "not_asked"),
    "an operator, who is no curator": (OLA, SAME, "not_asked"),
    "root, who is no curator": (Person(uid=0, name="root", gid=0), SAME, "not_asked"),
    "the requester": (ADA, SAME, "requester"),
    "the requester, where that is let be": (ADA, _ruled(not_requester=False), ""),
    "nobody knows who the requester is": (BO, _as(requester_uid=-1), "names"),
    "the user that jobs run as": (JOBS, SAME, ""),
    "the user that jobs run as, where that is refused": (JOBS, _ruled(same_user=False), "same_user"),
    "a curator then, not today": (BO, _today(gids=(1002,)), "not_asked"),
    "a curator by the host today, not by the kernel": (
        evolve(BO, groups=()),
        _today(gids=(500,)),
        "not_asked",
    ),
    "nobody can tell the groups of today": (BO, _today(gids=None), "names"),
    "nobody can tell the roles of today": (BO, _today(roles=None), "names"),
    "the host was not asked about them": (BO, _as(people=()), "names"),
    "the names service is away": (BO, _as(problem="the names service does not answer"), "names"),
    "within a job's own processes": (
        BO,
        _as(placed="it comes from within an attempt of harbour-7"),
        "placed",
    ),
    "a user that the kernel cannot map": (NOBODY, SAME, "nobody"),
    "named by name": (EVE, _ruled(by=("user:eve",)), ""),
    "named by a name that the host does not know": (EVE, _ruled(by=("user:gone",)), "names"),
    "one of two names, of which the host does not know the other": (
        EVE,
        _ruled(by=("user:gone", "user:eve")),
        "",
    ),
    "anybody with the role": (CY, _ruled(by=()), ""),
    "anybody with the role, which this one has not": (BO, _ruled(by=()), "not_asked"),
    "of the administrator's group, too": (CY, _ruled(also=("group:staff",)), ""),
    "not of the administrator's group": (BO, _ruled(also=("group:staff",)), "not_asked"),
    "by the way that is wanted": (BO, _ruled(via=("socket",)), ""),
    "by another way": (evolve(BO, via="folder"), _ruled(via=("socket",)), "via"),
}


@pytest.mark.parametrize("case", WHO)
def test_who_may_say_yes(case: str) -> None:
    """Only whom the rule asks, by the kernel's word and the host's of today; a refusal changes nothing."""
    person, change, code = WHO[case]
    play = gated("a")
    event = approve(play, person, facts=change(facts(person)))

    verdict = play.ask(event)
    if code:
        assert isinstance(verdict, Refusal), verdict
        assert code == verdict.code
        assert row(play) == play.snapshot.effects[row(play).id]
    else:
        assert "approved a/cms.publish/1.0" == play.does(event)
        assert play.now == gate_of(play).met


def test_without_facts_nothing_is_allowed() -> None:
    """A decision that comes without what the host says is no yes."""
    play = gated("a")

    assert "names" == play.refusal(approve(play, BO, facts=None)).code


def test_the_requester_may_say_no_to_its_own() -> None:
    """Whoever asked may take it back: no rule makes two people of one for that."""
    play = gated("a", rule=evolve(RULE, by=("user:bo",)))
    found = facts(ADA, rule=evolve(RULE, by=("user:bo",)))

    assert "denied a/cms.publish/1.0" == play.does(deny(play, ADA, facts=found))
    assert ("denied", EffectState.WITHDRAWN) == (row(play).code, row(play).state)


def test_a_job_process_may_not_say_no_either() -> None:
    """Whoever comes from within a tree of processes decides nothing at all."""
    play = gated("a")
    within = facts(ADA, placed="it comes from within an attempt of harbour-7")

    for event in (
        deny(play, ADA, facts=within),
        send_back(play, BO, facts=within),
        revoke(play, BO, facts=within),
    ):
        assert "placed" == play.refusal(event).code


# ---- what a decision names --------------------------------------------------------------------------------

FINGERPRINTS = {
    "missing": "",
    "a star": "*",
    "a beginning and a star": "0" * 8 + "*",
    "the first half": None,
    "another call's": "f" * 64,
    "upper case": None,
}


@pytest.mark.parametrize("case", FINGERPRINTS)
def test_what_was_not_shown_is_not_allowed(case: str) -> None:
    """A decision names the whole fingerprint of what was shown; else it says what is asked now."""
    play = gated("a")
    real = row(play).fingerprint
    named = FINGERPRINTS[case]
    if named is None:
        named = real[:32] if case == "the first half" else real.upper()
    refusal = play.refusal(approve(play, BO, fingerprint=named))

    assert "fingerprint" == refusal.code
    assert (f"resumectl inbox {short_of(play, 'a')}",) == refusal.commands
    assert real in refusal.reason
    assert '{"page":"1"}' in refusal.reason


def test_c09_a_decision_that_could_mean_two_calls_means_none() -> None:
    """C09: two calls of one tool wait; one that names only the job is refused with both ids, and a yes to the
    one with the other's fingerprint is refused, also where the arguments are the same."""
    for arguments in ('{"n":2}', '{"n":1}'):
        play = gated()
        first = proposed(play, "job/pay/1.0", "", arguments='{"n":1}')
        second = proposed(play, "job/pay/1.1", "", arguments=arguments)
        ids = [each.id for each in asks.asks(play.snapshot, play.now)]
        named = play.refusal(approve_of(play, first.id, first.fingerprint, subject=""))
        assert "which" == named.code
        assert all(each in named.reason for each in (*ids, first.id, second.id))
        crossed = approve_of(play, first.id, second.fingerprint)
        if first.fingerprint != second.fingerprint:
            assert "fingerprint" == play.refusal(crossed).code
        play.does(approve_of(play, second.id, second.fingerprint))

        again = folded(play.lines)
        met = [each.id for each in again.effects if each.gate is not None and each.gate.met is not None]
        assert [second.id] == met


def approve_of(play: Play, name: str, fingerprint: str, subject: str | None = None) -> events.Approve:
    """A curator's yes to a call of that id."""
    del play
    return events.Approve(
        by=BO, subject=name if subject is None else subject, fingerprint=fingerprint, facts=facts(BO)
    )


NAMES: dict[str, Callable[[Play], str]] = {
    "the effect's id": lambda play: row(play, "b").id,
    "the item": lambda play: "b",
    "the short id": lambda play: short_of(play, "b"),
    "a beginning of the short id": lambda play: short_of(play, "b")[:4],
    "the short id in capitals": lambda play: short_of(play, "b").upper(),
}


def short_of(play: Play, item: str) -> str:
    """The short id under which the inbox lists an item's call."""
    return next(each.id for each in asks.asks(play.snapshot, play.now) if each.item == item)


@pytest.mark.parametrize("case", NAMES)
def test_a_call_may_be_named_in_short(case: str) -> None:
    """Every name that means one call is taken, and means that one."""
    play = gated("a", "b")
    play.does(approve(play, BO, "b", subject=NAMES[case](play)))

    assert (False, True) == tuple(gate_of(play, name).met is not None for name in "ab")


def test_a_job_that_asks_nothing_says_so_and_no_more() -> None:
    """Where nothing is asked, no name would be better than none; what was decided stands in the history."""
    play = gated("a")
    play.does(deny(play, BO, "a"))
    refusal = asks.resolve(play.snapshot, "approve", "", frozenset({asks.AskKind.APPROVE}))
    assert isinstance(refusal, Refusal)

    job = play.snapshot.job.id
    assert f"cannot approve {job}: it asks nobody anything now" == refusal.reason
    assert (f"resumectl history {job}",) == refusal.commands


def test_short_ids_are_the_same_in_every_list_and_anew_in_every_round() -> None:
    """A short id is made of what is asked, never of its place in a list."""
    play = gated("a", "b")
    before = short_of(play, "b")
    play.does(deny(play, BO, "a"))
    assert before == short_of(play, "b")
    play.wait(1000.0)
    play.does(events.Tick())

    assert before != short_of(play, "b")


# ---- quorum, rounds ---------------------------------------------------------------------------------------


def test_as_many_as_the_quorum_must_say_yes() -> None:
    """Two different people; the same one twice is one."""
    rule = evolve(RULE, quorum=2)
    play = gated("a", rule=rule)
    assert "approved a/cms.publish/1.0, 1 of 2" == play.does(approve(play, BO, facts=facts(BO, rule=rule)))
    assert isinstance(play.ask(approve(play, BO, facts=facts(BO, rule=rule))), Unchanged)
    assert Word.UNASKED is judged(play, facts(BO, rule=rule)).word
    assert "approved a/cms.publish/1.0" == play.does(approve(play, CY, facts=facts(CY, rule=rule)))

    assert Word.GO is judged(play, facts(BO, CY, rule=rule)).word


def test_a_question_that_nobody_decides_in_time_is_asked_again_and_never_granted() -> None:
    """At the end of `decide_within` another round begins."""
    play = gated("a")
    assert moment(1000.0) == due.next_due(play.snapshot, play.now)
    play.wait(1000.0)
    assert "asked anew" == play.does(events.Tick())
    gate = gate_of(play)

    assert (2, "lapsed", None, moment(2000.0)) == (gate.round, gate.why, gate.met, gate.until)
    assert EffectState.PROPOSED is row(play).state


def test_a_yes_is_good_for_so_long_and_not_for_an_instant_more() -> None:
    """Expired exactly at its end: it lets nothing go, and is asked anew."""
    play = gated("a")
    play.does(approve(play, BO))
    assert moment(300.0) == due.next_due(play.snapshot, play.now)
    play.wait(299.999999)
    assert Word.GO is judged(play, facts(BO)).word
    play.wait(0.000001)
    judgement = judged(play, facts(BO))
    assert (Word.ANEW, "expired") == (judgement.word, judgement.code)
    play.does(events.Tick())
    gate = gate_of(play)

    assert (2, "expired", None) == (gate.round, gate.why, gate.met)


def test_one_yes_of_two_that_expires_brings_a_new_round() -> None:
    """With a quorum, too, the first yes that is good no longer ends the round."""
    rule = evolve(RULE, quorum=2)
    play = gated("a", rule=rule)
    play.does(approve(play, BO, facts=facts(BO, rule=rule)))
    play.wait(300.0)
    play.does(approve(play, CY, facts=facts(CY, rule=rule)))
    gate = gate_of(play)

    assert (2, "expired", None) == (gate.round, gate.why, gate.met)
    assert 1 == len(rounds.given(list(play.snapshot.approvals), gate))


def test_a_yes_under_another_rule_does_not_count_towards_the_quorum() -> None:
    """When the rule has changed between two of them, both are asked under the new one."""
    old, new = evolve(RULE, quorum=2), evolve(RULE, quorum=2, valid_for=200.0)
    play = gated("a", rule=old)
    play.does(approve(play, BO, facts=facts(BO, rule=old)))
    assert "approved a/cms.publish/1.0, 1 of 2" == play.does(approve(play, CY, facts=facts(CY, rule=new)))
    gate = gate_of(play)

    assert (2, "policy") == (gate.round, gate.why)


# ---- judged again where it is let go ----------------------------------------------------------------------


@pytest.mark.parametrize("case", AGAIN)
def test_a_yes_is_judged_again_when_the_call_is_let_go(case: str) -> None:
    """What allowed it must still do so in the very commit that lets it go."""
    _, _, word, code = AGAIN[case]
    judgement = judged_again(case)

    assert (word, code) == (judgement.word, judgement.code)
    assert (1 if word is Word.GO else 0) == len(judgement.spends)


def test_a_call_that_is_not_what_was_asked_for_is_let_go_by_nobody() -> None:
    """The stored row is hashed again: another argument under the old fingerprint is found out."""
    play = gated("a")
    play.does(approve(play, BO))
    lay(play, evolve(row(play), arguments='{"page":"2"}'))

    assert Word.CHANGED is judged(play, facts(BO)).word


def test_a_changed_limit_puts_an_unspent_yes_back_to_the_gate() -> None:
    """What was allowed under the old limits is asked anew; what nobody had allowed stays asked."""
    play = gated("a", "b", budget=Budget(usd="10"))
    play.does(approve(play, BO))
    play.does(events.Extend(by=ANNA, usd="20", allowed=Limits()))
    gates = [gate_of(play, name) for name in "ab"]

    assert [(2, "extended"), (1, "")] == [(gate.round, gate.why) for gate in gates]


def test_a_yes_is_spent_on_one_key_and_lets_the_same_key_go_again() -> None:
    """A resend under the key it was spent on needs no new yes; the row says on what it was spent."""
    play = gated("a")
    play.does(approve(play, BO))
    let_go(play, facts(BO))
    [spent] = play.snapshot.approvals
    assert (play.now, row(play).operation_key) == (spent.spent, spent.operation_key)

    assert Word.GO is judged(play, facts(BO)).word


# ---- clocks -----------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_back_makes_no_yes_good_for_longer() -> None:
    """In one boot the time that went by counts, whatever the wall clock shows."""
    play = gated("a")
    play.does(approve(play, BO))
    play.now = evolve(moment(400.0), wall=moment(10.0).wall)

    assert (Word.ANEW, "expired") == (judged(play, facts(BO)).word, judged(play, facts(BO)).code)


def test_a_clock_that_was_set_forward_holds_what_only_it_would_decide() -> None:
    """The wall alone says that the yes has run out: nobody sends, nobody asks anew."""
    play = gated("a")
    play.does(approve(play, BO))
    play.now = evolve(moment(100.0), wall=moment(5000.0).wall)

    assert (Word.HOLD, "clock") == (judged(play, facts(BO)).word, judged(play, facts(BO)).code)


def test_another_boot_with_a_clock_behind_holds_a_yes() -> None:
    """What is allowed only because time has not passed waits until the clock is known."""
    play = gated("a")
    play.does(approve(play, BO))
    play.now = evolve(moment(5.0, NEXT_BOOT), wall=moment(-1000.0).wall)

    assert (Word.HOLD, "clock") == (judged(play, facts(BO)).word, judged(play, facts(BO)).code)


# ---- too late ---------------------------------------------------------------------------------------------


def test_the_same_decision_again_gets_the_recorded_answer() -> None:
    """Also when it is spent, and when all is over: it names when, and on what."""
    play = gated("a")
    play.does(approve(play, BO))
    again = play.ask(approve(play, BO))
    assert isinstance(again, Unchanged)
    assert "approved already by you, at " in again.reason
    let_go(play, facts(BO))
    spent = play.ask(approve(play, BO))
    assert isinstance(spent, Unchanged)

    assert f"spent on key {row(play).operation_key[:16]} at " in spent.reason
    assert 1 == len(play.snapshot.approvals)


# what was decided first -> what every other decision is told of it
WON: dict[str, tuple[Callable[[Play], Any], str]] = {
    "approved": (lambda play: play.does(approve(play, BO)), "approved already by bo (uid 1002)"),
    "denied": (lambda play: play.does(deny(play, BO)), "denied already by bo (uid 1002)"),
    "sent back": (
        lambda play: play.does(send_back(play, BO, reason="?")),
        "sent back already by bo (uid 1002)",
    ),
    "approved and let go": (
        lambda play: (play.does(approve(play, BO)), let_go(play, facts(BO))),
        "approved already by bo (uid 1002), at 2026-11-18T",
    ),
}


@pytest.mark.parametrize("case", WON)
def test_who_comes_too_late_is_told_who_won(case: str) -> None:
    """A decided round takes no other decision, and says whose it was; nothing changes."""
    first, said = WON[case]
    play = gated("a")
    first(play)
    before = text(play.snapshot)
    for event in (approve(play, CY), deny(play, CY), send_back(play, CY)):
        refusal = play.refusal(event)
        assert "decided" == refusal.code
        assert said in refusal.reason

    assert before == text(play.snapshot)


def test_c17_cancel_against_approve_has_one_winner() -> None:
    """C17: whichever comes first is in force, and the other is told of it."""
    play = gated("a")
    play.does(events.Cancel(by=ANNA))
    assert "ended" == play.refusal(approve(play, BO)).code

    play = gated("a")
    play.does(approve(play, BO))
    play.does(events.Cancel(by=ANNA))
    late = play.ask(approve(play, CY))
    assert isinstance(late, Refusal)
    assert folded(play.lines).outcome == play.snapshot.outcome


def test_fifty_decisions_at_once_have_one_winner() -> None:
    """Yeses and noes of fifty people, each decided on top of the one before: the first wins."""
    play = gated("a")
    people = [Person(uid=2000 + number, name=f"p{number}", gid=1, groups=(500,)) for number in range(50)]
    verdicts = [
        play.tell((approve, deny)[number % 2](play, who))
        for number, who in enumerate(people)  # type: ignore[operator]
    ]
    losers = [verdict for verdict in verdicts if isinstance(verdict, Refusal)]

    assert 49 == len(losers)
    assert all("approved already by p0 (uid 2000)" in loser.reason for loser in losers)
    assert 1 == len(play.snapshot.approvals) == len(folded(play.lines).approvals)


# ---- taken back -------------------------------------------------------------------------------------------


def test_a_yes_may_be_taken_back_before_it_is_spent() -> None:
    """By who gave it: the next round begins, and another yes is wanted."""
    play = gated("a")
    play.does(approve(play, BO))
    assert "revoked the approval of a/cms.publish/1.0" == play.does(revoke(play, BO, reason="wrong page"))
    gate = gate_of(play)
    assert (2, "revoked", None) == (gate.round, gate.why, gate.met)
    assert isinstance(play.ask(revoke(play, BO)), Unchanged)
    play.does(approve(play, BO))

    assert Word.GO is judged(play, facts(BO)).word


REVOKERS = {
    "an operator": (OLA, ""),
    "another curator": (CY, "not_yours"),
    "a stranger": (EVE, "not_yours"),
}


@pytest.mark.parametrize("case", REVOKERS)
def test_who_may_take_anothers_yes_back(case: str) -> None:
    """Only an operator; the refusal names whose it is."""
    who, code = REVOKERS[case]
    play = gated("a")
    play.does(approve(play, BO))
    verdict = play.ask(revoke(play, who))

    assert code == (verdict.code if isinstance(verdict, Refusal) else "")


def test_a_spent_yes_cannot_be_taken_back() -> None:
    """What has left cannot be called back; the refusal says what became of it."""
    play = gated("a")
    play.does(approve(play, BO))
    let_go(play, facts(BO))
    refusal = play.refusal(revoke(play, BO))

    assert "decided" == refusal.code
    assert "spent on key" in refusal.reason
    assert refusal == play.refusal(evolve(revoke(play, BO), facts=None))  # whatever the host says of people


def test_nothing_is_taken_back_that_was_not_given() -> None:
    """A revoke of what nobody has allowed changes nothing."""
    play = gated("a")

    assert "not_approved" == play.refusal(revoke(play, BO)).code


# ---- `when` -----------------------------------------------------------------------------------------------

WHEN: dict[str, tuple[str, str, bool]] = {
    "no condition": ("", "{}", True),
    "more than": ("amount > 100", '{"amount":101}', True),
    "not more than": ("amount > 100", '{"amount":100}', False),
    "decimal text as a number": ("amount >= 100", '{"amount":"100.00"}', True),
    "decimal text below": ("amount >= 100", '{"amount":"99.99"}', False),
    "a member": ('target.branch == "main"', '{"target":{"branch":"main"}}', True),
    "another member": ('target.branch == "main"', '{"target":{"branch":"dev"}}', False),
    "not equal": ("draft != true", '{"draft":true}', False),
    "not there": ("amount > 100", "{}", True),
    "of another kind": ("amount > 100", '{"amount":[1]}', True),
    "no number": ("amount > 100", '{"amount":"many"}', True),
    "text that is no text there": ('name == "x"', '{"name":1}', True),
    "true is not 1": ("n == 1", '{"n":true}', True),
    "no condition at all": ("amount", '{"amount":1}', True),
}


@pytest.mark.parametrize("case", WHEN)
def test_a_condition_that_cannot_be_told_asks(case: str) -> None:
    """Where it does not hold nobody is asked; where nobody can tell, somebody is."""
    condition, arguments, asked = WHEN[case]

    assert asked == conditions.holds(condition, arguments)


@pytest.mark.parametrize("wrong", ["amount", "amount > ", "amount > many", "> 3", "a < true", 'a == {"b":1}'])
def test_a_condition_that_means_nothing_is_refused(wrong: str) -> None:
    """It says what was expected."""
    with pytest.raises(ValueError, match=r"expected|compares"):
        conditions.read(wrong)


def test_a_call_outside_the_condition_has_no_gate_unless_it_repeats_one() -> None:
    """What would repeat a confirmed effect is asked about whatever its contract says."""
    rule = evolve(RULE, when="amount > 100")
    play = gated()
    small = proposed(play, "job/pay/1.0", "", arguments='{"amount":5}', tool={"approve": rule})
    free = proposed(play, "job/pay/1.1", "", tool={"approve": None})
    again = proposed(play, "job/pay/1.2", "", tool={"approve": None}, again="REF-1")
    shown = evolve(play.snapshot, effects=EffectTable([again]))

    assert [f"{asks.words(again)}, again after REF-1"] == [row.what for row in asks.asks(shown, play.now)]
    assert (None, None) == (small.gate, free.gate)
    assert again.gate is not None


WORDS = {
    '{"amount":"5","to":"DE89"}': "cms.publish amount=5, to=DE89 to bank",
    '{"argv":["send","all"],"outputs":{"a":"b"}}': "cms.publish to bank",
    "{}": "cms.publish to bank",
}


@pytest.mark.parametrize("arguments", WORDS)
def test_a_call_without_an_object_is_named_by_its_plain_arguments(arguments: str) -> None:
    """Lists and tables are for whoever looks at all of it."""
    call = proposed(gated(), "job/pay/1.0", "", arguments=arguments, business_object="", target="bank")

    assert WORDS[arguments] == asks.words(call)


def test_policies_differ_by_every_field() -> None:
    """The version of a rule is the digest of all of it."""
    rules = [
        ApprovalRule(),
        ApprovalRule(by=("user:bo",)),
        ApprovalRule(quorum=2),
        ApprovalRule(not_requester=False),
        ApprovalRule(not_requester=True),
        ApprovalRule(decide_within=5.0),
        ApprovalRule(valid_for=5.0),
        ApprovalRule(via=("socket",)),
        ApprovalRule(when="a > 1"),
        ApprovalRule(same_user=False),
        ApprovalRule(also=("user:bo",)),
    ]

    assert len(rules) == len({keys.policy(rule) for rule in rules})


# ---- the rule in force where it is asked ------------------------------------------------------------------


def test_a_call_is_asked_about_for_as_long_as_the_rule_in_force_says() -> None:
    """Bounded by the administrator already when it is asked, not only when somebody decides."""
    stated = evolve(RULE, decide_within=1000.0)
    bounded = evolve(stated, decide_within=60.0)
    play = Play.of(contract=evolve(CONTRACT, effects=(evolve(TOOL, approve=stated),)))
    play.start("")
    policy = Policy(tool="cms.publish", rule=bounded, policy=keys.policy(bounded))
    call = decisions.Call(tool="cms.publish", arguments="{}")
    play.does(play.returned("", decisions.Performing(calls=(call,)), policies=(policy,)))
    [effect] = play.snapshot.effects
    assert effect.gate is not None

    assert (moment(60.0), keys.policy(bounded)) == (effect.gate.until, effect.gate.policy)
    play.wait(60.0)
    play.does(events.Tick())
    [effect] = play.snapshot.effects
    assert effect.gate is not None
    assert moment(120.0) == effect.gate.until


def test_a_call_is_not_edited() -> None:
    """A text comes with a draft alone: a call is allowed as it was shown, or not at all."""
    play = gated("a")
    text = Artifact(name="", sha256="0" * 64, size=0, text="")

    assert "no_edit" == play.refusal(approve(play, BO, text=text)).code


def test_a_rule_that_leaves_it_open_wants_another_person() -> None:
    """Whoever forgets to say so is not taken to let the requester allow its own."""
    play = gated("a")
    rule = evolve(RULE, not_requester=None)

    assert "requester" == play.refusal(approve(play, ADA, facts=facts(ADA, rule=rule))).code
