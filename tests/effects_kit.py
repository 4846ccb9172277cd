"""A world for the law of effects: tools, a job whose step asks for calls, and errands that are played.

play = asked(call())
play.sends("job/cms.publish/1.0")
play.says("job/cms.publish/1.0", Landed(reference="p1"))
"""

from typing import Any

from attrs import evolve
from machine_kit import CONTRACT, WORKER, Play

from resumed.actors.machine import errands
from resumed.schemas import decisions, events
from resumed.schemas.actions import ActionKind
from resumed.schemas.approvals import ApprovalRule, Facts
from resumed.schemas.decisions import Call, Decided, Performing
from resumed.schemas.ledger import Effect, Errand, ErrandKind, ToolContract
from resumed.schemas.workflow import Contract, OnUnknown

RULE = ApprovalRule()
FACTS = Facts(rule=RULE, policy="")
TOOL = ToolContract(
    tool="cms.publish",
    version=1,
    target="cms",
    address="http://cms",
    account="museum",
    look_up=True,
    absent_is_final=True,
    in_flight=30.0,
    timeout=10.0,
)
"""Looked up, its absence is final after 30 s; nobody is asked."""
BLIND = evolve(TOOL, look_up=False, absent_is_final=False)
"""Neither looked up nor deduplicated."""
DEDUP = evolve(BLIND, key_lifetime=3600.0)
"""Deduplicated for an hour, never looked up."""
BOTH = evolve(TOOL, key_lifetime=3600.0)
CALL = "job/cms.publish/1.0"
"""The first call of the job's own first step."""


def contract(*tools: ToolContract, on_unknown: OnUnknown = OnUnknown.HOLD) -> Contract:
    """The workflow of the other tests, with tools."""
    return evolve(CONTRACT, effects=tools or (TOOL,), on_unknown=on_unknown)


def call(page: str = "7", **more: Any) -> Call:
    """One call of the tool."""
    return Call(tool=more.pop("tool", "cms.publish"), arguments=f'{{"page":"{page}"}}', **more)


class Ledger(Play):
    """A play with effects."""

    def effect(self, name: str = CALL) -> Effect:
        """The effect of that id."""
        return self.snapshot.effects[name]

    def errand(self, name: str = CALL) -> Errand:
        """Its open errand."""
        return self.snapshot.errands[name]

    def wants(self, name: str = CALL) -> ErrandKind | None:
        """The errand that a slot is claimed for now."""
        claimed = {action.id for action in self.due() if action.kind is ActionKind.ERRAND}
        kinds = {row.id: kind for row, kind in errands.wanted(self.snapshot, self.now)}
        assert claimed == {errands.name_of(row) for row in kinds}
        return kinds.get(name)

    def grant(self, name: str = CALL, facts: Facts | None = FACTS) -> str:
        """A slot is given for its errand."""
        return self.does(events.Grant(unit=errands.name_of(name), worker=WORKER, facts=facts))

    def sends(self, name: str = CALL) -> None:
        """It is let go."""
        assert ErrandKind.SEND is self.wants(name)
        assert self.grant(name) in ("sent", "sent again")

    def answers(self, name: str, decided: Decided, **more: Any) -> events.Returned:
        """The answer of its open errand."""
        row = self.errand(name)
        answer = decisions.Answer(decided=decided)
        more = {"slot": False, **more}
        unit = errands.name_of(name)
        return events.Returned(unit=unit, epoch=row.epoch, number=row.number, answer=answer, **more)

    def says(self, name: str, decided: Decided, **more: Any) -> str:
        """The worker of its open errand answers."""
        return self.does(self.answers(name, decided, **more))

    def looks_up(self, decided: Decided, name: str = CALL, **more: Any) -> str:
        """It is looked up, with that answer."""
        assert ErrandKind.LOOK_UP is self.wants(name)
        assert "look_up" == self.grant(name)
        return self.says(name, decided, **more)

    def lost(self, name: str = CALL, *, died: bool = True, began: bool = True) -> str:
        """Its open errand ends without an answer."""
        row = self.errand(name)
        unit = errands.name_of(name)
        return self.does(events.Gone(unit=unit, epoch=row.epoch, number=row.number, died=died, began=began))

    def stopped(self) -> list[str]:
        """Every stop that is due is carried out, of tries and of errands; the choices made."""
        stops = [action for action in self.due() if action.kind is ActionKind.STOP]
        return [
            self.lost(errands.effect_of(action.id), died=False)
            if errands.is_errand(action.id)
            else self.does(self.gone(action.id, died=False))
            for action in stops
        ]

    def given(self, unit: str) -> list[Effect]:
        """What the step that the unit was led to is given: the rows, in the order of the calls."""
        row = self.snapshot.performances.get(unit)
        return [self.effect(name) for name in row.effects] if row is not None and row.over else []


def job(*tools: ToolContract, on_unknown: OnUnknown = OnUnknown.HOLD, **more: Any) -> Ledger:
    """A job of the workflow with these tools; its first step runs."""
    play = Ledger.of(contract=contract(*tools, on_unknown=on_unknown), **more)
    assert isinstance(play, Ledger)
    play.start("")
    return play


def asked(*calls: Call, tools: tuple[ToolContract, ...] = (), then: str = "close", **more: Any) -> Ledger:
    """Its first step has asked for these calls."""
    otherwise, back = more.pop("otherwise", ""), more.pop("back", "")
    play = job(*tools, **more)
    play.answer("", Performing(calls=calls or (call(),), then=then, otherwise=otherwise, back=back))
    return play


def items(
    *names: str, tools: tuple[ToolContract, ...] = (), then: str = "write", otherwise: str = "", **more: Any
) -> Ledger:
    """Items that have asked for one call each."""
    on_unknown = more.pop("on_unknown", OnUnknown.HOLD)
    agreed = contract(*tools, on_unknown=on_unknown)
    play = Ledger.fan_out(*names, parallel=max(2, len(names)), contract=agreed, **more)
    assert isinstance(play, Ledger)
    play.start(*names)
    for name in names:
        play.answer(name, Performing(calls=(call(name),), then=then, otherwise=otherwise))
    return play


def of(item: str, occurrence: int = 1) -> str:
    """The id of an item's first call."""
    return f"{item}/cms.publish/{occurrence}.0"
