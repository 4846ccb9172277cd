"""People at a gate, for tests of the law: who they are, what the host says of them, and calls that wait.

play = gated("a")
play.does(approve(play, CURT))
"""

from typing import Any

from attrs import evolve
from machine_kit import CONTRACT, Play

from resumed.actors.machine import approvals
from resumed.actors.machine.draft import Draft
from resumed.schemas import events, keys
from resumed.schemas.approvals import ApprovalRule, Facts, Gate, Member, Standing
from resumed.schemas.job import Item, ItemState, Person
from resumed.schemas.ledger import Effect, EffectState, Performance, ToolContract
from resumed.schemas.snapshot import Changes, Decision, Entry

CURATORS, STAFF = 500, 501
ADA = Person(uid=1001, name="ada", gid=1001, groups=(CURATORS,))
"""The requester; a curator as well."""
BO = Person(uid=1002, name="bo", gid=1002, groups=(CURATORS,))
CY = Person(uid=1003, name="cy", gid=1003, groups=(CURATORS, STAFF))
EVE = Person(uid=1004, name="eve", gid=1004)
"""Of no group."""
OLA = Person(uid=1005, name="ola", gid=1005)
"""An operator."""
JOBS = Person(uid=1006, name="jobs", gid=1006, groups=(CURATORS,))
"""The user that jobs run as."""
ROLES: dict[int, tuple[str, ...]] = {OLA.uid: ("operator",), CY.uid: ("approver",)}
RULE = ApprovalRule(by=("group:curators",), not_requester=True, decide_within=1000.0, valid_for=300.0)
TOOL = ToolContract(tool="cms.publish", version=1, target="cms", approve=RULE)
HOUR = 3600.0


def facts(*people: Person, rule: ApprovalRule = RULE, **more: Any) -> Facts:
    """What the shell finds out of these people when nothing is in the way."""
    numbers = {"group:curators": CURATORS, "group:staff": STAFF, "user:bo": BO.uid, "user:eve": EVE.uid}
    return evolve(
        Facts(
            rule=rule,
            policy=keys.policy(rule),
            members=tuple(Member(who=who, number=numbers.get(who)) for who in (*rule.by, *rule.also)),
            people=tuple(
                Standing(uid=who.uid, gids=(who.gid, *who.groups), roles=ROLES.get(who.uid, ()))
                for who in people
            ),
            names=("curators",),
            requester_uid=ADA.uid,
            jobs_uid=JOBS.uid,
        ),
        **more,
    )


def proposed(play: Play, name: str = "a/cms.publish/1.0", item: str = "a", **more: Any) -> Effect:
    """A call that waits at its gate, put into the job as if its step had asked for it."""
    tool = evolve(TOOL, **more.pop("tool", {}))
    draft = Draft(play.snapshot, play.now)
    effect = Effect(
        id=name,
        state=EffectState.PROPOSED,
        item=item,
        business_object="",
        operation_key=f"{len(play.snapshot.effects):064x}",
        fingerprint="",
        tool=tool.tool,
        target="cms",
        arguments=more.pop("arguments", '{"page":"1"}'),
        ordinal=len(play.snapshot.effects),
        proposed=play.now,
    )
    effect = evolve(effect, **more)
    gate = approvals.gate_of(draft, tool, effect.arguments, (), effect.again)
    effect = evolve(effect, gate=gate, fingerprint=keys.fingerprint(effect, tool))
    lay(play, effect)
    return effect


def lay(play: Play, *effects: Effect) -> None:
    """Put rows into the job, whose units wait for them."""
    decision = Decision(by="test", rule="test", choice="laid")
    items: dict[str, Item] = {}
    waiting: dict[str, Performance] = {}
    for effect in effects:
        unit = play.unit(effect.item)
        items[unit.id] = evolve(unit, state=ItemState.IN_PROGRESS, code="effect")
        row = waiting.get(unit.id) or play.snapshot.performances.get(unit.id)
        names = () if row is None else row.effects
        waiting[unit.id] = Performance(
            unit=unit.id,
            step=unit.at,
            occurrence=unit.occurrence,
            effects=(*names, *(() if effect.id in names else (effect.id,))),
        )
    own = items.pop("", None)
    changes = Changes(
        effects=effects,
        items=tuple(items.values()),
        performances=tuple(waiting.values()),
        **({} if own is None else {"position": own}),
    )
    play.commit(Entry(transition="test", decision=decision, changes=changes))


def gated(*names: str, rule: ApprovalRule = RULE, **more: Any) -> Play:
    """A job of which one call for each of these items waits for a yes."""
    tool = evolve(TOOL, approve=rule)
    play = Play.of(*names, contract=evolve(CONTRACT, effects=(tool,)), **more)
    for name in names:
        proposed(play, f"{name}/cms.publish/1.0", name, tool={"approve": rule})
    return play


def row(play: Play, name: str = "a") -> Effect:
    """An item's call."""
    return play.snapshot.effects[f"{name}/cms.publish/1.0"]


def gate_of(play: Play, name: str = "a") -> Gate:
    """The gate that the item's call stands at."""
    gate = row(play, name).gate
    assert gate is not None
    return gate


def approve(play: Play, who: Person, name: str = "a", **more: Any) -> events.Approve:
    """A yes of theirs to the item's call, as it stands."""
    effect = row(play, name)
    given = {"facts": facts(who), "fingerprint": effect.fingerprint, "subject": effect.id}
    return events.Approve(by=who, **(given | more))


def deny(play: Play, who: Person, name: str = "a", **more: Any) -> events.Deny:
    """A no of theirs."""
    effect = row(play, name)
    given = {"facts": facts(who), "fingerprint": effect.fingerprint, "subject": effect.id}
    return events.Deny(by=who, **(given | more))


def send_back(play: Play, who: Person, name: str = "a", **more: Any) -> events.SendBack:
    """Their wish to have it made anew."""
    effect = row(play, name)
    given = {"facts": facts(who), "fingerprint": effect.fingerprint, "subject": effect.id}
    return events.SendBack(by=who, **(given | more))


def revoke(play: Play, who: Person, name: str = "a", **more: Any) -> events.Revoke:
    """Their yes taken back."""
    return events.Revoke(by=who, **({"facts": facts(who), "subject": row(play, name).id} | more))


def judged(play: Play, found: Facts | None, name: str = "a") -> approvals.Judgement:
    """What becomes of the item's call if it is to be let go now."""
    return approvals.judge(Draft(play.snapshot, play.now), row(play, name), found)


def let_go(play: Play, found: Facts, name: str = "a") -> None:
    """The item's call is let go, as the commit of a dispatch lets it."""
    draft = Draft(play.snapshot, play.now)
    effect = row(play, name)
    judgement = approvals.judge(draft, effect, found)
    assert judgement.word is approvals.Word.GO, judgement
    approvals.spend(draft, effect, judgement)
    draft.put_effect(
        evolve(
            effect, state=EffectState.DISPATCHING, dispatches=effect.dispatches + 1, first_dispatch=play.now
        )
    )
    decision = Decision(by="test", rule="test", choice="let go")
    play.commit(Entry(transition="test", decision=decision, changes=draft.changes()))
