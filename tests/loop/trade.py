"""One seed's story with effects: what jobs ask of a target under everything that may happen.

People say the truth about what nobody else can tell.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from resumed.actors.entry import Stage
from resumed.actors.machine import asks, errands
from resumed.schemas import decisions, frames
from resumed.schemas.job import ItemState
from resumed.schemas.ledger import EffectState, ErrandKind, ToolContract
from resumed.schemas.workflow import Contract, OnUnknown

from . import clock, laws, target, world
from .story import Story, Told
from .target import TOOL, Fate, Target
from .workers import Key
from .world import Weather

LOOKED = evolve(TOOL, tool="looked", at_once=2)
BLIND = evolve(TOOL, tool="blind", look_up=False, absent_is_final=False)
KNOWN = evolve(BLIND, tool="known", key_lifetime=900.0)
BOTH = evolve(KNOWN, tool="both", look_up=True, check_first=True)
UNFINAL = evolve(TOOL, tool="unfinal", absent_is_final=False, at_once=3)
TOOLS: tuple[ToolContract, ...] = (LOOKED, BLIND, KNOWN, BOTH, UNFINAL)
STEPS = 6
"""So often a job asks for one call after the other, in the seeds in which they bring no bytes."""
FATES = (*Fate, Fate.LANDS, Fate.LANDS, Fate.LOST_REPLY, Fate.DIES)


@define
class Market(Target):
    """A target with several tools; some of them deduplicate by key. An errand is done once, however often its
    worker says what came of it."""

    draw: Callable[[], Fate] = lambda: Fate.LANDS
    done: dict[Key, decisions.Decided] = field(factory=dict)

    def errand(self, frame: frames.Run) -> decisions.Decided:
        """What a worker answers that was sent here."""
        key = (frame.job, frame.epoch, frame.item, frame.number)
        call = frame.call
        assert call is not None
        if key not in self.done:
            self.fates = [self.draw()]
            before = self.landed.get(call.operation_key)
            self.done[key] = super().errand(frame)
            if before is not None and call.kind is ErrandKind.SEND and call.tool in ("known", "both"):
                self.landed[call.operation_key] = before
        return self.done[key]


class Trade(Story):
    """Everything that one seed draws, with effects."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.sourced = False
        self.market = Market(draw=self._fate)
        self.laws_broken: list[str] = []

    def _fate(self) -> Fate:
        return Fate.LANDS if self.calm else self.chance.choice(FATES)

    def _contract(self, name: str) -> Contract:
        goes_on = OnUnknown.CONTINUE if self.seed % 2 else OnUnknown.HOLD
        return evolve(super()._contract(name), effects=TOOLS, on_unknown=goes_on)

    async def _trouble(self) -> None:
        self.market.over(self.world.machine)
        await super()._trouble()

    def says(self, frame: frames.Run) -> decisions.Answer:
        """Half of the steps ask for calls, or most of a job's own; the same step mostly for the same."""
        bare = self.seed % 2 == 1  # what brings no bytes is decided, and acted upon, in a way of its own
        seldom = 0.1 if bare and not frame.item else 0.5
        if frame.compare or (frame.step == "work") is (not frame.item) or self.chance.random() < seldom:
            return super().says(frame)
        if frame.step not in ("work", "start"):
            return super().says(frame)
        number = sum(map(ord, f"{frame.job} {frame.item} {frame.occurrence}"))
        page = f"{frame.job} {frame.item}" + (" again" if self.chance.random() < 0.1 else "")
        calls = tuple(
            target.call(page, TOOLS[(number + one) % len(TOOLS)].tool, bare=bare)
            for one in range(1 + number % 2 * (not bare))
        )
        then = "check" if frame.item else "start" if bare and frame.occurrence < STEPS else "finish"
        otherwise = then if number % 3 else ""
        decided = decisions.Performing(calls=calls, then=then, otherwise=otherwise)
        return decisions.Answer(decided=decided)

    def _rests(self, job: str) -> bool:
        """Also one that asks people: the world's own knows only what is held, or paused."""
        entry = self.world.entry(job)
        if entry is not None and entry.stage is Stage.PARKED and not entry.box and entry.row is not None:
            return entry.row.needs_person or super()._rests(job)
        return super()._rests(job)

    async def _help(self, job: str, round_: int) -> None:
        """A person looks at the target, and says what is there."""
        snapshot = self.world.snapshot(job)
        held = [row for row in snapshot.effects if row.hold is not None]
        asked = [row for row in snapshot.effects.open() if asks.wants_approval(row)]
        for row in asked:
            named = {"subject": row.id, "fingerprint": row.fingerprint}
            # The requester is all there is, and may only say no.
            self.world.daemon.soon(self._later, 0.0, job, "Deny", named)
            await self.world.passes(0.01)
        for row in held:
            if not errands.wants_word(row):
                continue
            there = row.operation_key in self.market.landed
            reference = f"r-{row.operation_key[:8]}" if there else None
            fields: dict[str, Any] = {"subject": row.id, "reference": reference}
            self.world.daemon.soon(self._later, 0.0, job, "Settle", fields)
            await self.world.passes(0.01)
        if not (held or asked):
            await super()._help(job, round_)
        elif snapshot.hold is not None or snapshot.pause is not None:
            self.world.daemon.soon(self._later, 0.0, job, "Resume", {})
            await self.world.passes(0.01)

    def judge(self) -> None:
        """What the target says and the record does not; the lines are judged with the other laws."""
        for job in self.world.jobs:
            if self.world.place(job) is None:
                continue
            snapshot = self.world.snapshot(job)
            ours = Target(landed={key: n for key, n in self.market.landed.items() if key in _keys(snapshot)})
            self.told.broken += target.broken(ours, snapshot)
            if snapshot.outcome is not None and snapshot.effects.unsettled:
                self.told.broken.append(f"{job} ended with unsettled effects")
            done = [item for item in snapshot.items if item.state is ItemState.DONE]
            self.told.did["done"] = self.told.did.get("done", 0) + len(done)
            for row in snapshot.effects:
                word = f"effect {row.state.value}"
                self.told.did[word] = self.told.did.get(word, 0) + 1
                if row.dispatches > 1:
                    self.told.did["sent again"] = self.told.did.get("sent again", 0) + 1
        unknown = {row for job in self.world.jobs for row in self._unknown(job)}
        lost = {key for key in self.market.landed if key not in self._all_keys()} - unknown
        self.told.broken += [f"{key[:8]} landed, and no row says so" for key in lost]

    def _unknown(self, job: str) -> list[str]:
        if self.world.place(job) is None:
            return []
        rows = self.world.snapshot(job).effects
        return [row.operation_key for row in rows if row.state is EffectState.UNKNOWN]

    def _all_keys(self) -> set[str]:
        jobs = [job for job in self.world.jobs if self.world.place(job) is not None]
        return {key for job in jobs for key in _keys(self.world.snapshot(job))}


def _keys(snapshot: Any) -> set[str]:
    return {row.operation_key for row in snapshot.effects}


def run(seed: int, backend: str) -> Told:
    """Tell one seed's story and say what it did and what it broke."""
    story = Trade(seed)
    weather = Weather(chance=random.Random(f"weather {seed}"))

    async def main() -> None:
        with world.folder() as root, weather, story.dying_actors(weather):
            await story.tell(Path(root), weather)
            weather.revive()
            story.told.broken = laws.check_invariants(story.world)
            story.judge()

    clock.run(backend, seed, main)
    return story.told
