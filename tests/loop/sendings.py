"""One seed's sendings: jobs that call a target that counts, while workers, actors, disk and daemon fail.

Whatever failed, in good weather it comes to an end, with the help of people who know what the target has:
each call has landed once where it is confirmed, and never twice.
"""

import random
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from attrs import define, evolve, field

from resumed.actors import verdicts
from resumed.actors import workshop as workshops
from resumed.actors.entry import Stage
from resumed.schemas.ledger import EffectState, ToolContract
from resumed.schemas.workflow import Contract

from . import clock, laws, target, world
from .target import ASKED, TOOL, Fate, Target
from .workers import GOOD, Manners
from .world import Pace, Weather, World

TOOLS: dict[str, ToolContract] = {
    "looked up": TOOL,
    "checked first": evolve(TOOL, check_first=True),
    "approved": ASKED,
    "deduplicated": evolve(TOOL, look_up=False, absent_is_final=False, key_lifetime=86_400.0),
    "neither": evolve(TOOL, look_up=False, absent_is_final=False),
    "two at once": evolve(TOOL, at_once=2),
}
JOBS = ("harbour", "pier")


@define
class Told:
    """What one seed did."""

    broken: list[str] = field(factory=list)
    did: dict[str, int] = field(factory=dict)

    def count(self, what: str, many: int = 1) -> None:
        """It happened so often."""
        self.did[what] = self.did.get(what, 0) + many


class Sendings:
    """Everything that one seed draws."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(f"sendings {seed}")
        self.told = Told()
        self.dying = 0.0
        self.items: tuple[str, ...] = ()
        name = self.chance.choice(tuple(TOOLS))
        self.tool = TOOLS[name]
        self.told.count(name)
        self.cms = Target(knows_keys=self.tool.key_lifetime is not None)

    def contract(self) -> Contract:
        """The workflow of all its jobs."""
        return target.with_tools(world.contract(slots=self.chance.choice((1, 1, 3))), self.tool)

    def manners(self) -> Manners:
        """How its workers misbehave."""
        draw = self.chance
        names = ("refuse_start", "die", "die_after_answer", "repeat", "contradict", "stale", "raise_error")
        drawn = {name: draw.choice((0.0, 0.0, 0.1, 0.3)) for name in names}
        return Manners(**drawn, slowest=draw.choice((0.1, 2.0, 8.0)))

    async def tell(self, root: Path, sky: Weather) -> None:
        """Bad times, then good ones."""
        pages = tuple(f"p{number}" for number in range(self.chance.choice((1, 2, 3))))
        says = target.performing(*pages)
        if self.chance.random() < 0.5:
            says, self.items = target.each_performing(self.chance.choice((1, 2))), pages
            self.told.count("of items")
        async with anyio.create_task_group() as group:
            made = World(root, self.seed, [self.contract()], says, group, sky)
            self.cms.over(made.machine)
            self.cms.fates = [self.chance.choice(tuple(Fate)) for _ in range(self.chance.choice((0, 2, 5)))]
            made.machine.manners = self.manners()
            made.pace = Pace(self.chance.choice((0.0, 0.3)), 0.05)
            await made.start()
            await self._bad_times(made)
            self.dying, sky.storm, sky.kill_in = 0.0, 0.0, None
            made.machine.manners, made.pace = GOOD, Pace()
            await self._good_times(made)
            await made.daemon.kill()
            sky.revive()
            self.told.broken += laws.check_invariants(made)
            for job in made.jobs:
                self._check(job, made, pages)
            group.cancel_scope.cancel()

    async def _bad_times(self, made: World) -> None:
        draw = self.chance
        for job in JOBS[: draw.choice((1, 2))]:
            await made.admit(job, self.items)
        for _ in range(draw.choice((2, 5, 9))):
            self.dying = draw.choice((0.0, 0.0, 0.02))
            made.weather.storm = draw.choice((0.0, 0.0, 0.05))
            if draw.random() < 0.3 and not made.daemon.over.is_set():
                made.weather.kill_in = draw.randrange(12)
            await made.passes(draw.choice((0.1, 1.0, 10.0, 60.0)))
            if made.daemon.over.is_set():
                self.told.count("killed")
                await made.start()
            elif draw.random() < 0.15:
                await made.kill()
                self.told.count("killed")
                await made.start()
            await self._people(made)

    async def _good_times(self, made: World) -> None:
        for _ in range(30):
            if made.daemon.over.is_set():
                await made.start()
            await made.until(lambda: all(self._rests(made, job) for job in made.jobs), 2 * world.HOUR)
            if all(made.entry(job) is None for job in made.jobs):
                return
            await self._people(made, helpful=True)
        self.told.broken += [f"stuck: {made.entry(job)}" for job in made.jobs if made.entry(job) is not None]

    def _rests(self, made: World, job: str) -> bool:
        entry = made.entry(job)
        if made.rests(job) or entry is None:
            return True
        waits = entry.stage is Stage.PARKED and not entry.box
        return waits and any(target.is_gated(row) for row in made.snapshot(job).effects.open())

    async def _people(self, made: World, helpful: bool = False) -> None:
        """Somebody allows what is asked, and says what the target has where nobody else can tell."""
        for job in list(made.jobs):
            if made.place(job) is None or made.entry(job) is None or made.daemon.over.is_set():
                continue
            for row in made.snapshot(job).effects.open():
                more: dict[str, Any] = {"subject": row.id}
                if target.is_gated(row):
                    self._ask(made, job, "Approve", fingerprint=row.fingerprint, **more)
                elif row.hold is not None and helpful:
                    there = row.operation_key in self.cms.landed
                    reference = f"r-{row.operation_key[:8]}" if there else None
                    self._ask(made, job, "Settle", reference=reference, **more)
            if helpful:
                for kind in ("Retry", "Resume"):
                    self._ask(made, job, kind)
            await made.passes(0.1)

    @staticmethod
    def _ask(made: World, job: str, kind: str, **more: Any) -> None:
        made.daemon.soon(partial(made.daemon.ask, job, kind, **more))

    def _check(self, job: str, made: World, pages: tuple[str, ...]) -> None:
        snapshot = made.snapshot(job)
        own = {row.operation_key for row in snapshot.effects}
        landed = {key: count for key, count in self.cms.landed.items() if key in own}
        self.told.broken += target.broken(Target(landed=landed), snapshot)
        ended = snapshot.outcome.ending if snapshot.outcome is not None else None
        self.told.count(f"{ended}")
        states = [row.state for row in snapshot.effects]
        for state in states:
            self.told.count(state)
        if ended == "completed" and states.count(EffectState.CONFIRMED) < len(pages):
            self.told.broken.append(f"{job} completed with {states}")

    # ---- actors that die ------------------------------------------------------------------------------

    def maybe_die(self, sky: Weather) -> None:
        """Now and then an actor dies where it stands."""
        if self.dying and not sky.dead and self.chance.random() < self.dying:
            self.told.count("died")
            raise RuntimeError("an actor dies")


def run(seed: int, backend: str) -> Told:
    """Play one seed."""
    story = Sendings(seed)
    sky = Weather(chance=random.Random(f"weather of {seed}"))
    places: list[tuple[Any, str]] = [
        (verdicts, "transition"),
        (workshops.Workshop, "run"),
        (workshops.Workshop, "stop"),
        (workshops.Workshop, "ended"),
    ]
    kept = [(owner, name, getattr(owner, name)) for owner, name in places]

    def mortal(real: Any) -> Any:
        def dies(*args: Any, **more: Any) -> Any:
            story.maybe_die(sky)
            found = real(*args, **more)
            story.maybe_die(sky)
            return found

        return dies

    for owner, name, real in kept:
        setattr(owner, name, mortal(real))
    try:
        with world.folder() as root, sky:
            clock.run(backend, seed, partial(story.tell, root, sky))
    finally:
        for owner, name, real in kept:
            setattr(owner, name, real)
    return story.told
