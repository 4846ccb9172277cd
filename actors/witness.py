"""The witness: what the law must know of people and rules before it decides, gathered just before.

It decides nothing. What it cannot find out it says so, and the law makes of that a hold or a refusal. Jobs
that ask nobody and write nowhere are not looked at.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

from attrs import evolve, frozen

from resumed.schemas import decisions, events
from resumed.schemas.approvals import ApprovalRule, Facts, Member, Policy, Standing
from resumed.schemas.askviews import AskKind, AskRow
from resumed.schemas.instant import Instant
from resumed.schemas.job import Person
from resumed.schemas.ledger import ERRAND, ErrandKind
from resumed.schemas.records import replaced
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot

from . import bounds as bounding
from . import hostnames
from .bounds import Bounds
from .hostnames import Looked
from .machine import approvals, asks, errands, questions, rounds
from .mailbox import Message, Offered
from .sight import Whose

ROOT = 0
SOCKET = "socket"
PEOPLE = (events.Approve, events.Deny, events.SendBack, events.Revoke, events.Reply)
CONCERNED = frozenset(PEOPLE)
ASKING = decisions.Performing | decisions.Reviewing | decisions.Checked
"""Answers that ask people, or that let an effect go."""
GATED = frozenset({AskKind.APPROVE, AskKind.REVIEW})
ANSWERED = frozenset({AskKind.ANSWER})
NOTHING_ASKED = Looked()

Choose = Callable[[str], str | None]
Look = Callable[[Iterable[str], Iterable[int], Iterable[int]], Awaitable[Looked]]


def concerns(snapshot: Snapshot, event: object) -> bool:
    """Whether this is decided by more than the job's own snapshot; cheap, since it is asked of all mail."""
    kind = type(event)
    if kind is Offered:
        return bool(snapshot.effects.unsettled) and bool(snapshot.effects.live())
    if kind is events.Returned:
        return isinstance(event.answer.decided, ASKING)  # type: ignore[attr-defined]  # it is one
    return kind in CONCERNED


class Authority(Protocol):
    """What the administrator lets people do."""

    def roles(self, uid: int, gids: Iterable[int], whose: Whose) -> tuple[str, ...]:
        """The roles over a job that a user in these groups has."""
        ...

    def may_ask(self, uid: int, gids: Iterable[int], workflow: str) -> bool:
        """Whether that user may hand in jobs of the workflow."""
        ...

    def is_ours(self, uid: int) -> bool:
        """Whether that user may do everything."""
        ...


class Alone:
    """The authority of a daemon that grants nothing: root and its own user may do everything."""

    def roles(self, uid: int, gids: Iterable[int], whose: Whose) -> tuple[str, ...]:
        """All of them, or none."""
        del gids, whose
        return ("viewer", "submitter", "operator", "approver", "auditor") if self.is_ours(uid) else ()

    def may_ask(self, uid: int, gids: Iterable[int], workflow: str) -> bool:
        """Whether it is one of ours."""
        del gids, workflow
        return self.is_ours(uid)

    def is_ours(self, uid: int) -> bool:
        """Whether it is root or our own user."""
        return uid in (ROOT, os.geteuid())


async def look_here(whom: Iterable[str], uids: Iterable[int], gids: Iterable[int]) -> Looked:
    """Ask the host at once, in the loop."""
    return hostnames.look(whom, uids, gids)


async def _unplaced(person: Person) -> str:
    return "" if person.via != SOCKET else "nobody can tell which process it came from"


@frozen
class _Wanted:
    """What is to be found out for one message."""

    rule: ApprovalRule
    policy: str
    reviewers: tuple[int, ...] = ()
    person: Person | None = None
    requester: bool = False
    """Whether the requester's access is judged."""

    @property
    def whom(self) -> tuple[str, ...]:
        return (*self.rule.by, *self.rule.also)


class Witness:
    """Gathers facts for all jobs of a store."""

    def __init__(self) -> None:
        self.authority: Authority = Alone()
        self.bounds = Bounds()
        self.look: Look = look_here
        self.placed: Callable[[Person], Awaitable[str]] = _unplaced
        """Why a person's process cannot be placed outside the trees of all attempts; empty when it can."""
        self.jobs_uid = os.geteuid()
        self._last: tuple[tuple[Any, ...], tuple[Policy, ...], Facts | None] | None = None
        """What the last step that asked for calls was given, and what that was made of: `_alone`."""

    async def attach(
        self, snapshot: Snapshot, uid: int, messages: list[Message], now: Instant, choose: Choose
    ) -> None:
        """Put what is found out into the messages; `uid` is the job's requester, and `choose` names the
        errand that a slot of a worker would be used for.

        One question to the host for all of them, so that fifty decisions cost one.
        """
        await self._to_offers(snapshot, uid, messages, now, choose)
        wanted: list[tuple[Message, _Wanted]] = []
        for message in messages:
            event = message.event
            if isinstance(event, events.Returned):
                message.event = event = self._with_policies(snapshot, event)
            if isinstance(event, PEOPLE):
                found = self._of_person(snapshot, event)
            elif isinstance(event, events.Returned) and concerns(snapshot, event):
                found = self._of_effect(snapshot, event.unit) or self._of_calls(snapshot, event)
            else:
                found = None
            if found is not None:
                wanted.append((message, found))
        if not wanted:
            return
        looked = await self._looked([each for _, each in wanted], uid)
        for message, each in wanted:
            facts = await self._facts(snapshot, uid, each, looked)
            bare: Any = message.event
            message.event = evolve(bare, facts=facts)

    def attach_at_once(
        self, snapshot: Snapshot, uid: int, messages: list[Message], now: Instant, choose: Choose
    ) -> bool:
        """The same, where the host need not be asked for any of it; where it must, False, and nothing done.

        For calls that nobody is asked about, of somebody who may do everything: a task's turn to find out
        what needs no word of the host would be most of what they wait for.
        """
        if any(self._may_ask_the_host(snapshot, uid, message.event) for message in messages):
            return False
        if len(messages) == 1 and isinstance(event := messages[0].event, events.Returned):
            messages[0].event = self._alone(snapshot, uid, event)
            return True
        attaching = self.attach(snapshot, uid, messages, now, choose)
        try:
            attaching.send(None)
        except StopIteration:
            return True
        attaching.close()
        raise RuntimeError("what needs no word of the host waited for something")

    def of_call(self, snapshot: Snapshot, uid: int, event: events.Returned) -> events.Returned:
        """The same for an answer that asks for a call; as it is where the host must be asked."""
        return self._alone(snapshot, uid, event) if self.authority.is_ours(uid) else event

    def _alone(self, snapshot: Snapshot, uid: int, event: events.Returned) -> events.Returned:
        """The same for the one answer of a worker, as it mostly is. What the last one of this kind was given
        is given again while all that it was made of is the same."""
        calls = () if event.unit.startswith(ERRAND) else getattr(event.answer.decided, "calls", ())
        made_of = (snapshot.contract, self.bounds, self.authority)
        if calls and self._last is not None:
            (*before, key), policies, facts = self._last
            same = all(one is other for one, other in zip(before, made_of, strict=True))
            if same and key == self._key(snapshot, uid, event, calls):
                return replaced(event, policies=policies, facts=facts)
        event = self._with_policies(snapshot, event)
        found = self._of_effect(snapshot, event.unit) or self._of_calls(snapshot, event)
        if found is not None:
            event = replaced(event, facts=self._seen(snapshot, uid, found, NOTHING_ASKED))
        if calls:
            self._last = (*made_of, self._key(snapshot, uid, event, calls)), event.policies, event.facts
        return event

    def _key(
        self, snapshot: Snapshot, uid: int, event: events.Returned, calls: tuple[decisions.Call, ...]
    ) -> tuple[object, ...]:
        tools = tuple([call.tool for call in calls])
        return snapshot.job.workflow, uid, self.jobs_uid, event.slot, tools

    def _may_ask_the_host(self, snapshot: Snapshot, uid: int, event: events.Event | Offered) -> bool:
        if not concerns(snapshot, event):
            return False
        if isinstance(event, Offered):
            gated = any(effect.gate is not None for effect in snapshot.effects.live())
            return gated or not self.authority.is_ours(uid)
        if isinstance(event, events.Returned):
            effect = snapshot.effects.get(event.unit.removeprefix(ERRAND))
            if effect is not None and effect.gate is not None:
                return True
            asks = effect is not None or isinstance(event.answer.decided, decisions.Performing)
            return asks and not self.authority.is_ours(uid)
        return True

    async def _to_offers(
        self, snapshot: Snapshot, uid: int, messages: list[Message], now: Instant, choose: Choose
    ) -> None:
        """Put into offered slots what is to be known of the effects that are let go in them."""
        offers = [message.event for message in messages if isinstance(message.event, Offered)]
        first = choose(offers[0].worker) if offers and snapshot.effects.unsettled else None
        if first is None:
            return
        # One after the other is taken, so as many as there are slots, from the one that is taken first on.
        sends = [each for each, kind in errands.wanted(snapshot, now) if kind is ErrandKind.SEND]
        names = [errands.name_of(each.id) for each in sends]
        start = names.index(first) if first in names else 0
        facts = await self.of_errands(snapshot, uid, names[start : start + len(offers)])
        for offer in offers:
            offer.facts = facts

    async def of_errands(self, snapshot: Snapshot, uid: int, names: Iterable[str]) -> dict[str, Facts]:
        """What is to be known of effects before they are let go, by their ids; the names are of errands."""
        wanted = {errands.effect_of(name): self._of_effect(snapshot, name) for name in names}
        found = {name: each for name, each in wanted.items() if each is not None}
        if not found:
            return {}
        looked = await self._looked(list(found.values()), uid)
        return {name: await self._facts(snapshot, uid, each, looked) for name, each in found.items()}

    # ---- what is to be found out ----------------------------------------------------------------------

    def in_force(self, workflow: str) -> Callable[[str, ApprovalRule], ApprovalRule]:
        """The rule in force today for a tool of the workflow, as its contract states it."""
        return lambda tool, stated: bounding.in_force(self.bounds, stated, workflow, tool)

    def asks(self, snapshot: Snapshot, now: Instant) -> list[AskRow]:
        """What a job asks of people now, by the rules in force."""
        return asks.asks(snapshot, now, self.in_force(snapshot.job.workflow))

    def _with_policies(self, snapshot: Snapshot, event: events.Returned) -> events.Returned:
        decided, workflow = event.answer.decided, snapshot.job.workflow
        if isinstance(decided, decisions.Reviewing):
            return evolve(event, policies=(bounding.policy(self.bounds, decided.rule, workflow, ""),))
        if not isinstance(decided, decisions.Performing):
            return event
        tools = [snapshot.contract.tool(name) for name in dict.fromkeys(call.tool for call in decided.calls)]
        found = [
            bounding.policy(self.bounds, approvals.rule_of(tool), workflow, tool.tool)
            for tool in tools
            if tool is not None
        ]
        return replaced(event, policies=tuple(found))

    def _of_effect(self, snapshot: Snapshot, unit: str) -> _Wanted | None:
        if not unit.startswith(ERRAND):
            return None
        effect = snapshot.effects.get(unit.removeprefix(ERRAND))
        tool = None if effect is None else snapshot.contract.tool(effect.tool)
        if effect is None or tool is None:
            return None
        policy = bounding.policy(self.bounds, approvals.rule_of(tool), snapshot.job.workflow, effect.tool)
        if effect.gate is None:
            # Nobody was asked: only the requester's access is judged.
            return _Wanted(evolve(policy.rule, by=(), also=()), policy.policy, requester=True)
        rows = [row for row in snapshot.approvals if row.effect == effect.id]
        reviewers = tuple(row.uid for row in rounds.given(rows, effect.gate))
        return _Wanted(policy.rule, policy.policy, reviewers, requester=True)

    def _of_calls(self, snapshot: Snapshot, event: events.Returned) -> _Wanted | None:
        """What lets a call go in the line that asks for it, where nobody is asked: the requester's access."""
        decided = event.answer.decided
        if not isinstance(decided, decisions.Performing) or not event.slot or snapshot.contract.slots != 1:
            return None
        for call in decided.calls:
            tool = snapshot.contract.tool(call.tool)
            if tool is not None and errands.may_go_at_once(tool):
                rule = evolve(approvals.rule_of(tool), by=(), also=())
                return _Wanted(rule, "", requester=True)
        return None

    def _of_person(self, snapshot: Snapshot, event: events.Deciding) -> _Wanted | None:
        """Nothing for a decision that means nothing: the law refuses it whoever it is by."""
        kinds = ANSWERED if isinstance(event, events.Reply) else GATED
        meant = asks.resolve(snapshot, "decide", event.subject, kinds)
        if isinstance(meant, Refusal):
            return None
        workflow = snapshot.job.workflow
        if meant.kind is AskKind.ANSWER:
            row = next(each for each in snapshot.questions if each.id == meant.subject)
            rule = ApprovalRule(by=(questions.asked_of(row, snapshot.job.owner),), not_requester=False)
            return _Wanted(rule, "", person=event.by)
        if meant.kind is AskKind.REVIEW:
            review = snapshot.reviews.get(meant.subject)
            stated = ApprovalRule() if review is None else review.rule
            policy = bounding.policy(self.bounds, stated, workflow, "")
        else:
            effect = snapshot.effects[meant.subject]
            tool = snapshot.contract.tool(effect.tool)
            stated = ApprovalRule() if tool is None else approvals.rule_of(tool)
            policy = bounding.policy(self.bounds, stated, workflow, effect.tool)
        return _Wanted(policy.rule, policy.policy, person=event.by)

    # ---- finding it out -------------------------------------------------------------------------------

    async def _looked(self, wanted: list[_Wanted], requester: int) -> Looked:
        whom = dict.fromkeys(who for each in wanted for who in each.whom)
        uids = dict.fromkeys(uid for each in wanted for uid in self._uids(each, requester))
        gids = dict.fromkeys(
            gid
            for each in wanted
            if each.person is not None
            for gid in (each.person.gid, *each.person.groups)
        )
        if not whom and not uids and not gids:
            return NOTHING_ASKED
        return await self.look(tuple(whom), tuple(uids), tuple(gids))

    def _uids(self, wanted: _Wanted, requester: int) -> Iterable[int]:
        yield from wanted.reviewers
        if wanted.person is not None:
            yield wanted.person.uid
        if wanted.requester and not self.authority.is_ours(requester):
            yield requester

    async def _facts(self, snapshot: Snapshot, requester: int, wanted: _Wanted, looked: Looked) -> Facts:
        placed = "" if wanted.person is None else await self.placed(wanted.person)
        return self._seen(snapshot, requester, wanted, looked, placed)

    def _seen(
        self, snapshot: Snapshot, requester: int, wanted: _Wanted, looked: Looked, placed: str = ""
    ) -> Facts:
        person = wanted.person
        people = wanted.reviewers if person is None else (person.uid,)
        whose = Whose(snapshot.job.workflow, requester)
        gids = () if person is None else dict.fromkeys((person.gid, *person.groups))
        return Facts(
            rule=wanted.rule,
            policy=wanted.policy,
            members=tuple(Member(who=who, number=looked.numbers.get(who)) for who in wanted.whom),
            people=tuple(self._standing(uid, looked, whose) for uid in dict.fromkeys(people)),
            names=tuple(looked.names[gid] for gid in gids if gid in looked.names),
            requester=self._access(requester, looked, whose.workflow) if wanted.requester else True,
            requester_uid=requester,
            jobs_uid=self.jobs_uid,
            problem=looked.problem,
            placed=placed,
        )

    def _standing(self, uid: int, looked: Looked, whose: Whose) -> Standing:
        gids = looked.groups.get(uid)
        roles = None if gids is None else self.authority.roles(uid, gids, whose)
        return Standing(uid=uid, gids=gids, roles=roles)

    def _access(self, requester: int, looked: Looked, workflow: str) -> bool | None:
        if self.authority.is_ours(requester):
            return True
        gids = looked.groups.get(requester)
        return None if gids is None else self.authority.may_ask(requester, gids, workflow)
