"""What is found out of people and rules before a decision: bounds, the names service, facts."""

import grp
import os
import pwd
import threading
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import pytest
from attrs import evolve
from gates_kit import BO, CURATORS, CY, OLA, RULE, STAFF, TOOL, approve, gated, let_go, proposed, row
from machine_kit import CONTRACT, Play

from resumed.actors import bounds, hostnames, witness
from resumed.actors.bounds import Bounds, Only
from resumed.actors.disk import ThreadDisk
from resumed.actors.hostnames import Looked
from resumed.actors.machine import errands, questions
from resumed.actors.mailbox import Message, Offered
from resumed.actors.names import Names
from resumed.actors.sight import Whose
from resumed.actors.witness import Witness
from resumed.schemas import decisions, events, keys
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.job import Artifact, Person
from resumed.schemas.ledger import ERRAND

BACKENDS = ("asyncio", "trio")
REQUESTER = 1001
OPEN = evolve(TOOL, approve=None)

# ---- bounds -----------------------------------------------------------------------------------------------

SENIORS = Only(by=("group:seniors",), tools=("cms.publish",))
# what the administrator says, what the contract states -> what is in force
IN_FORCE: dict[str, tuple[Bounds, dict[str, Any], dict[str, Any]]] = {
    "no bounds": (Bounds(), {}, {"not_requester": True}),
    "one person has the daemon": (Bounds(alone=True), {}, {"not_requester": False}),
    "one person, and the contract says otherwise": (
        Bounds(alone=True),
        {"not_requester": True},
        {"not_requester": True},
    ),
    "the requester is let, by the contract": (Bounds(), {"not_requester": False}, {"not_requester": False}),
    "never the requester": (
        Bounds(not_requester=True, alone=True),
        {"not_requester": False},
        {"not_requester": True},
    ),
    "a yes for less long": (
        Bounds(valid_for=60.0),
        {"valid_for": 300.0},
        {"valid_for": 60.0, "not_requester": True},
    ),
    "a yes for less than that": (
        Bounds(valid_for=600.0),
        {"valid_for": 300.0},
        {"valid_for": 300.0, "not_requester": True},
    ),
    "a question for less long": (
        Bounds(decide_within=60.0),
        {},
        {"decide_within": 60.0, "not_requester": True},
    ),
    "two at least": (Bounds(quorum=2), {}, {"quorum": 2, "not_requester": True}),
    "two at least, three wanted": (Bounds(quorum=2), {"quorum": 3}, {"quorum": 3, "not_requester": True}),
    "not the jobs' user": (Bounds(same_user=False), {}, {"same_user": False, "not_requester": True}),
    "seniors only": (Bounds(only=(SENIORS,)), {}, {"also": ("group:seniors",), "not_requester": True}),
    "seniors only, of another tool": (
        Bounds(only=(Only(by=("group:seniors",), tools=("pay",)),)),
        {},
        {"not_requester": True},
    ),
    "seniors only, of another workflow": (
        Bounds(only=(Only(by=("group:seniors",), workflows=("pay",)),)),
        {},
        {"not_requester": True},
    ),
    "the first that fits": (
        Bounds(only=(Only(by=("user:bo",), workflows=("scan",)), SENIORS)),
        {},
        {"also": ("user:bo",), "not_requester": True},
    ),
}


@pytest.mark.parametrize("case", IN_FORCE)
def test_a_rule_is_no_looser_than_the_administrator_lets_it_be(case: str) -> None:
    """And never looser than the contract states it."""
    bound, stated, wanted = IN_FORCE[case]
    found = bounds.in_force(bound, ApprovalRule(**stated), "scan", "cms.publish")

    assert ApprovalRule(**(stated | wanted)) == found


# ---- the host ---------------------------------------------------------------------------------------------


def test_the_host_says_what_its_own_database_says() -> None:
    """Numbers of names, groups of users, names of groups; what it does not know is None or empty."""
    me = pwd.getpwuid(os.geteuid())
    free = next(number for number in range(300_000, 400_000) if _is_free(number))
    found = hostnames.look(
        (f"user:{me.pw_name}", "user:no-such-user", "group:root", "group:no-such-group", "user:4711"),
        (me.pw_uid, free),
        (0, free),
    )

    assert {
        f"user:{me.pw_name}": me.pw_uid,
        "user:no-such-user": None,
        "group:root": grp.getgrnam("root").gr_gid,
        "group:no-such-group": None,
        "user:4711": 4711,
    } == found.numbers
    assert {me.pw_uid: tuple(os.getgrouplist(me.pw_name, me.pw_gid)), free: ()} == found.groups
    assert {0: "root", free: str(free)} == found.names


def _is_free(number: int) -> bool:
    try:
        pwd.getpwuid(number)
    except KeyError:
        try:
            grp.getgrgid(number)
        except KeyError:
            return True
    return False


def test_a_host_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is never taken for a name that is not there."""

    def fails(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(hostnames, "_ask", fails)

    assert "Input/output error" in hostnames.look(("user:bo",), (), ()).problem


def test_a_name_that_no_host_could_bear_is_said_so() -> None:
    """It is a problem of the rule's, never somebody's death."""
    assert "cannot say now" in hostnames.look(("user:\ud800",), (), ()).problem


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_that_hangs_is_given_up_on(backend: str) -> None:
    """In its time; the threads that hang are left at the end, and hold nothing up."""
    release = threading.Event()

    def hang(*_: Any) -> Looked:
        release.wait(10.0)
        return Looked(names={1: "late"})

    async def main() -> list[Looked]:
        names = Names(0.02, hang)
        async with anyio.create_task_group() as group:
            group.start_soon(names.run)
            found = [await names.look((), (), ()) for _ in range(3)]
            names.close()
        return found

    found = anyio.run(main, backend=backend)
    release.set()

    assert ["this host did not say within 0.02 s who its users are"] * 3 == [each.problem for each in found]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_answered_in_time_is_given(backend: str) -> None:
    """With its result or its error."""

    async def main() -> tuple[Looked, str]:
        names, threads = Names(), ThreadDisk(1)
        async with anyio.create_task_group() as group:
            group.start_soon(names.run)
            group.start_soon(threads.run)
            found, said = await names.look(("group:root",), (), ()), ""
            try:
                await threads.call_within(5.0, int, "x")
            except ValueError as error:
                said = str(error)
            names.close()
            threads.close()
        return found, said

    found, said = anyio.run(main, backend=backend)

    assert {"group:root": 0} == found.numbers
    assert "invalid literal" in said


# ---- facts ------------------------------------------------------------------------------------------------


class Grants:
    """What the administrator grants in these tests: `ola` operates, `cy` approves, user 9 is ours."""

    def roles(self, uid: int, gids: Iterable[int], whose: Whose) -> tuple[str, ...]:
        """By number."""
        assert Whose("scan", REQUESTER) == whose
        return {OLA.uid: ("operator",), CY.uid: ("approver",)}.get(uid, ())

    def may_ask(self, uid: int, gids: Iterable[int], workflow: str) -> bool:
        """Whoever is a curator."""
        del uid, workflow
        return CURATORS in tuple(gids)

    def is_ours(self, uid: int) -> bool:
        """User 9."""
        return uid == 9


class Host:
    """A names service that counts what it is asked."""

    def __init__(self, **more: Any) -> None:
        self.asked: list[tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]] = []
        self.found = Looked(
            numbers={"group:curators": CURATORS, "group:staff": STAFF, "user:anna": 1000},
            groups={who.uid: (who.gid, *who.groups) for who in (BO, CY, OLA)} | {REQUESTER: (CURATORS,)},
            names={CURATORS: "curators"},
        )
        self.found = evolve(self.found, **more)

    async def look(self, whom: Iterable[str], uids: Iterable[int], gids: Iterable[int]) -> Looked:
        """The same answer to everything."""
        self.asked.append((tuple(whom), tuple(uids), tuple(gids)))
        return self.found


def seeing(host: Host, placed: str = "", **more: Any) -> Witness:
    """A witness that asks this host."""

    async def at(person: Person) -> str:
        del person
        return placed

    one = Witness()
    one.authority, one.look, one.placed, one.jobs_uid = Grants(), host.look, at, 77
    one.bounds = Bounds(**more)
    return one


def attached(one: Witness, play: Play, *found: Any, uid: int = REQUESTER) -> list[Any]:
    """The events with what the witness put into them."""
    messages = [Message(event) for event in found]
    due = [errands.name_of(effect.id) for effect, _ in errands.wanted(play.snapshot, play.now)]
    anyio.run(one.attach, play.snapshot, uid, messages, play.now, lambda _: due[0] if due else None)
    return [message.event for message in messages]


def bare(event: Any) -> Any:
    """As it comes from the socket."""
    return evolve(event, facts=None)


def test_a_decision_comes_with_the_rule_the_host_and_the_place() -> None:
    """Of who decides, and of everybody the rule names, in one question."""
    play, host = gated("a"), Host()
    [event] = attached(seeing(host, "within", valid_for=60.0), play, bare(approve(play, BO)))
    facts = event.facts
    bounded = evolve(RULE, valid_for=60.0)

    assert (bounded, keys.policy(bounded), "within", 77, REQUESTER) == (
        facts.rule,
        facts.policy,
        facts.placed,
        facts.jobs_uid,
        facts.requester_uid,
    )
    assert [("group:curators", CURATORS)] == [(each.who, each.number) for each in facts.members]
    assert [(BO.uid, (1002, CURATORS), ())] == [(each.uid, each.gids, each.roles) for each in facts.people]
    assert ("curators",) == facts.names
    assert [(("group:curators",), (BO.uid,), (1002, CURATORS))] == host.asked


def test_fifty_decisions_ask_the_host_once() -> None:
    """All that come together."""
    play, host = gated("a"), Host()
    found = attached(seeing(host), play, *(bare(approve(play, who)) for who in (BO, CY) * 25))

    assert (1, 50) == (len(host.asked), sum(event.facts is not None for event in found))


def test_a_host_that_cannot_say_is_told_of() -> None:
    """Its problem goes along, and the law makes no yes of it."""
    play = gated("a")
    host = Host(problem="away", numbers={}, groups={}, names={})
    [event] = attached(seeing(host), play, bare(approve(play, BO)))

    assert "away" == event.facts.problem
    assert "names" == play.refusal(event).code


def test_what_means_nothing_asks_nobody() -> None:
    """The law refuses it whoever it is by."""
    play, host = gated("a"), Host()
    [event] = attached(seeing(host), play, bare(approve(play, BO, subject="")))

    assert (None, []) == (event.facts, host.asked)


def test_an_effect_is_let_go_by_who_said_yes_and_who_asked_for_it() -> None:
    """The answer to a check, and an offered slot, come with all that is judged then."""
    play, host = gated("a"), Host()
    play.does(approve(play, BO))
    checked = decisions.Answer(decided=decisions.Checked())
    unit = ERRAND + row(play).id
    one = seeing(host)
    answer, offered = attached(
        one, play, events.Returned(unit=unit, epoch=1, number=1, answer=checked), Offered("w-1")
    )
    for facts in (answer.facts, offered.facts[row(play).id]):
        assert [BO.uid] == [each.uid for each in facts.people]
        assert facts.requester is True
    let_go(play, evolve(answer.facts, rule=RULE, policy=keys.policy(RULE)))


ACCESS: dict[str, tuple[int, dict[str, Any], bool | None]] = {
    "a curator may hand them in": (REQUESTER, {}, True),
    "no curator any more": (REQUESTER, {"groups": {REQUESTER: (1,)}}, False),
    "a user that the host does not know": (REQUESTER, {"groups": {REQUESTER: ()}}, False),
    "nobody can tell": (REQUESTER, {"groups": {}}, None),
    "one of ours, whom nobody asks about": (9, {"groups": {}}, True),
}


@pytest.mark.parametrize("case", ACCESS)
def test_the_requesters_access_is_todays(case: str) -> None:
    """Also for what nobody is asked about."""
    uid, more, access = ACCESS[case]
    play, host = gated(), Host(**more)
    effect = proposed(play, "job/cms.publish/1.0", "", tool={"approve": None})
    found = anyio.run(seeing(host).of_errands, play.snapshot, uid, [ERRAND + effect.id])

    assert access is found[effect.id].requester
    assert (uid == 9) == (host.asked == [])


ASKED: dict[str, tuple[decisions.Decided, tuple[str, ...]]] = {
    "calls": (
        decisions.Performing(
            calls=tuple(
                decisions.Call(tool=name, arguments="{}") for name in ("cms.publish", "?", "cms.publish")
            )
        ),
        ("cms.publish",),
    ),
    "a draft": (
        decisions.Reviewing(draft=decisions.Offer(name="x", sha256="0" * 64, size=0, text=""), rule=RULE),
        ("",),
    ),
    "neither": (decisions.Accepted(), ()),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_asks_people_comes_with_the_rules_in_force(case: str) -> None:
    """One for each tool that is known, once; no host is asked for that."""
    decided, tools = ASKED[case]
    play, host = gated(), Host()
    answer = decisions.Answer(decided=decided)
    event = events.Returned(unit="", epoch=1, number=1, answer=answer)
    assert bool(tools) == witness.concerns(play.snapshot, event)
    [event] = attached(seeing(host, quorum=2), play, event)

    assert tools == tuple(each.tool for each in event.policies)
    assert all(each.rule.quorum == 2 and each.policy == keys.policy(each.rule) for each in event.policies)
    assert [] == host.asked


def test_a_question_is_put_to_whom_it_names_or_to_the_owner() -> None:
    """The names of those who may answer are looked for."""
    for of, named in (("group:staff", "group:staff"), ("", "user:anna")):
        play, host = Play.fan_out("a"), Host()
        play.start("a")
        play.answer("a", decisions.Asking(text="Which?", then="write", of=of))
        reply = events.Reply(by=CY, subject="a", answer="this")
        [event] = attached(seeing(host), play, reply)

        assert [named] == [each.who for each in event.facts.members]
        assert (of == "group:staff") == (not hasattr(play.ask(event), "code"))
        assert questions.given(play.snapshot, "a") is None


def test_a_draft_is_judged_by_its_own_rule() -> None:
    """Bounded like every other."""
    play, host = Play.fan_out("a"), Host()
    play.start("a")
    draft = decisions.Offer(name="caption", sha256="0" * 64, size=1, text="x")
    kept = Artifact(name="caption", sha256="0" * 64, size=1, text="x")
    play.answer("a", decisions.Reviewing(draft=draft, rule=RULE), kept=(kept,))
    [event] = attached(
        seeing(host, quorum=2), play, events.Approve(by=BO, subject="a", fingerprint=kept.sha256)
    )

    assert evolve(RULE, quorum=2) == event.facts.rule


NOT_LOOKED_AT: dict[str, Callable[[Play], Any]] = {
    "a tick": lambda play: events.Tick(),
    "an answer of a step": lambda play: events.Returned(
        unit="a", epoch=1, number=1, answer=decisions.Answer(decided=decisions.Accepted())
    ),
    "a pause": lambda play: events.Pause(by=BO),
    "an offered slot": lambda play: Offered("w-1"),
}


@pytest.mark.parametrize("case", NOT_LOOKED_AT)
def test_what_asks_nobody_is_not_looked_at(case: str) -> None:
    """Jobs without effects pay nothing."""
    play = Play.fan_out("a")

    assert not witness.concerns(play.snapshot, NOT_LOOKED_AT[case](play))


class Ours(Grants):
    """The same, and the requester is ours."""

    def is_ours(self, uid: int) -> bool:
        """The requester."""
        return uid == REQUESTER


WHOSE = {
    # the requester is ours, and somebody was asked
    "one of ours": (True, False),
    "somebody else": (False, False),
    "one that was allowed": (True, True),
}


@pytest.mark.parametrize("whose", WHOSE)
def test_what_needs_no_word_of_the_host_is_found_out_at_once(whose: str) -> None:
    """A call that nobody is asked about, of one of ours, waits for no task; what is found out is the same."""
    is_ours, is_asked = WHOSE[whose]
    play = gated("a") if is_asked else Play.of("a", contract=evolve(CONTRACT, effects=(OPEN,)))
    if is_asked:
        play.does(approve(play, BO))
    else:
        proposed(play, tool={"approve": None})
    one = seeing(Host())
    one.authority = Ours() if is_ours else Grants()
    due = [errands.name_of(effect.id) for effect, _ in errands.wanted(play.snapshot, play.now)]
    assert due == [ERRAND + row(play).id]
    offer = Offered("w-1")
    done = one.attach_at_once(play.snapshot, REQUESTER, [Message(offer)], play.now, lambda _: due[0])
    known = dict(offer.facts)
    [wanted] = attached(one, play, Offered("w-1"))

    assert (whose == "one of ours") is done
    assert (wanted.facts if done else {}) == known
    assert {row(play).id} == set(wanted.facts)


PERFORMS = decisions.Answer(
    decided=decisions.Performing(calls=(decisions.Call(tool="cms.publish", arguments="{}"),), then="close")
)


@pytest.mark.parametrize("case", ACCESS)
def test_a_call_that_nobody_is_asked_about_comes_with_its_requesters_access(case: str) -> None:
    """It may go in the line that asks for it; the host is asked only of a requester that is not ours."""
    uid, more, access = ACCESS[case]
    play, host = Play.of("a", contract=evolve(CONTRACT, effects=(OPEN,), slots=1)), Host(**more)
    one = seeing(host)
    event = events.Returned(unit="", epoch=1, number=1, answer=PERFORMS)
    message = Message(event)
    told = one.of_call(play.snapshot, uid, event)
    choose: Callable[[str], None] = lambda _: None  # noqa: E731 - no slot is offered
    at_once = one.attach_at_once(play.snapshot, uid, [message], play.now, choose)
    assert (uid == 9) == at_once
    if not at_once:
        anyio.run(one.attach, play.snapshot, uid, [message], play.now, choose)
    facts = message.event.facts

    assert (access, (), ()) == (facts.requester, facts.members, facts.people)
    assert (uid == 9) == (host.asked == [])
    assert told == (message.event if at_once else event)


NO_FACTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # how the tool, or the workflow, is otherwise; how the answer comes otherwise
    "somebody is asked": ({"effects": (TOOL,)}, {}),
    "no slot is kept": ({}, {"slot": False}),
    "its worker sends nothing": ({"slots": 4}, {}),
}


@pytest.mark.parametrize("case", NO_FACTS)
def test_nobody_looks_who_may_let_go_what_does_not_go_at_once(case: str) -> None:
    """It is looked at when it goes."""
    contract, how = NO_FACTS[case]
    play = Play.of("a", contract=evolve(CONTRACT, **{"effects": (OPEN,), "slots": 1, **contract}))
    host = Host()
    [event] = attached(
        seeing(host), play, events.Returned(unit="", epoch=1, number=1, answer=PERFORMS, **how)
    )

    assert (None, []) == (event.facts, host.asked)


def test_an_answer_that_decides_nothing_of_people_asks_no_host_beside_one_that_might() -> None:
    """A landing of an allowed call and a call that nobody is asked about, in one turn: nothing is awaited."""
    play = gated("a")
    play.does(approve(play, BO))
    contract = evolve(play.snapshot.contract, effects=(TOOL, evolve(OPEN, tool="mail.tell")), slots=1)
    snapshot = evolve(play.snapshot, contract=contract)
    landed = decisions.Answer(decided=decisions.Landed(reference="p1"))
    call = decisions.Call(tool="mail.tell", arguments="{}")
    asks = decisions.Answer(decided=decisions.Performing(calls=(call,), then="close"))
    messages = [
        Message(events.Returned(unit=ERRAND + row(play).id, epoch=1, number=1, answer=landed)),
        Message(events.Returned(unit="", epoch=1, number=1, answer=asks)),
    ]
    host = Host()
    one = seeing(host)
    one.authority = Ours()

    assert one.attach_at_once(snapshot, REQUESTER, messages, play.now, lambda _: None)
    assert (None, True) == (messages[0].event.facts, messages[1].event.facts.requester)
    assert [] == host.asked


def test_what_the_last_call_was_given_is_given_again_only_while_nothing_has_changed() -> None:
    """Other bounds, another contract, another requester, another way of answering: found out anew."""

    def given(play: Play, uid: int = 9, **how: Any) -> tuple[Any, Any]:
        message = Message(events.Returned(unit="", epoch=1, number=1, answer=PERFORMS, **how))
        assert one.attach_at_once(play.snapshot, uid, [message], play.now, lambda _: None)
        return message.event.policies, message.event.facts

    one = seeing(Host())
    contract = evolve(CONTRACT, effects=(OPEN,), slots=1)
    play, other = Play.of("a", contract=contract), Play.of("a", contract=evolve(contract, slots=4))
    first = given(play)
    again = given(play)
    assert all(one is two for one, two in zip(first, again, strict=True))
    one.bounds = Bounds(quorum=2)
    policies, facts = given(play)
    assert (2, facts) == (policies[0].rule.quorum, first[1])
    assert None is given(play, slot=False)[1]
    assert first[1] == given(play)[1]
    assert None is given(other)[1]
    one.authority = Ours()
    assert REQUESTER == given(play, REQUESTER)[1].requester_uid
