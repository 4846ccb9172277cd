"""The sweeps' plot: one job of three items from its file to the archive, with a fault on its way."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from attrs import define, evolve, field
from faults.disk import Disk
from faults.seam import Fault

from resumed.actors.entry import Stage
from resumed.schemas.errors import ResumedError
from resumed.schemas.job import Ending
from resumed.schemas.ledger import ToolContract
from resumed.schemas.workflow import Contract
from resumed.store import admission, layout
from resumed.store.journal import Journal

from . import cases, laws, places, target, world
from .clock import VirtualClock
from .target import Fate, Target
from .witness import Ran
from .workers import Says
from .world import Weather, World

JOB = "harbour"
ITEMS = ("a", "b", "c")


@define(slots=False)
class Recorded(Weather, Disk):
    """A disk with weather that also remembers what a power cut could lose."""

    started: int = 0
    """How many calls the first daemon's life made, when a drill wants to know."""


@define(frozen=True)
class Line:
    """A line whose commit returned: it was told to whoever waited."""

    sequence: int
    digest: str


@define(frozen=True)
class Landing:
    """A call landed at its target, which no power cut here reaches."""

    key: str


@define(frozen=True)
class Plot:
    """How the job runs: one item after the other, or two that end in the same moment."""

    parallel: int = 1
    repeatable: bool = True
    ask: bool = True
    """A person pauses and resumes it on the way."""
    publishes: bool = False
    """Its outputs are published, in a folder beside the store."""
    tool: ToolContract | None = None
    """What it writes to, for two pages, instead of having items."""
    fates: tuple[Fate, ...] = ()
    """What becomes of its sends, in order; after these all land."""

    def says(self, out: Path) -> Says:
        """The handlers."""
        if self.tool is not None:
            return target.performing("p1", "p2")
        usual = cases.usual(self.parallel)
        return places.publishes(usual, out) if self.publishes else usual

    def contract(self) -> Contract:
        """The workflow."""
        made = world.contract(repeatable=self.repeatable)
        if self.publishes:
            return evolve(made, entry="", definition="{}")
        return made if self.tool is None else target.with_tools(made, self.tool)


PLOTS = {
    "one by one": Plot(),
    "two at once, not repeatable": Plot(parallel=2, repeatable=False, ask=False),
}
EFFECTS = {
    "looked up": Plot(ask=False, tool=target.TOOL),
    "looked up, its reply lost": Plot(ask=False, tool=target.TOOL, fates=(Fate.LOST_REPLY, Fate.LOST)),
    "approved": Plot(ask=False, tool=target.ASKED),
    "never looked up": Plot(ask=False, tool=evolve(target.TOOL, look_up=False, absent_is_final=False)),
}
"""Plots of calls to another system, which counts what it gets."""
PUBLISHED = Plot(parallel=2, ask=False, publishes=True)
"""Not among the plots that lose power: the model knows no inodes. `test_store_publish` has those."""


@define
class Played:
    """What came of it."""

    hit: bool = False
    broken: list[str] = field(factory=list)
    first: int = 0
    """How many calls of the disk were made until the job rested, or the daemon died."""
    second: int = 0
    """How many calls the second daemon's start made, up to the job's end."""


def fresh(root: Path, chance: Any, kind: type[Weather] = Weather) -> Any:
    """An empty store and the disk over it."""
    layout.create(root, "store-1", VirtualClock().now())
    return Recorded(root=root, chance=chance) if kind is Recorded else Weather(chance=chance)


class Player:
    """Plays a plot on one disk."""

    def __init__(self, plot: Plot, root: Path, sky: Weather, before: Sequence[Ran] = ()) -> None:
        self.plot, self.root, self.sky, self.before = plot, root, sky, before
        self.numbered = 0
        self.tidy = True
        """Whether no temp file may be left at all."""
        self.told = Played()
        self.target = Target(fates=list(plot.fates))
        self.items = ITEMS if plot.tool is None else ()

    async def play(self, fault: Fault = None, second: Fault = None) -> Played:
        """From nothing (or from what lies there) to the end of the job, whatever happens on the way."""
        sky, told = self.sky, self.told
        sky.fault = fault
        contract = self.plot.contract()
        out = self.root.with_name("out")
        if self.plot.publishes:
            empty(out)
        with sky:
            async with anyio.create_task_group() as group:
                one = self.world = World(self.root, 1, [contract], self.plot.says(out), group, sky)
                one.machine.lasts = lambda frame: 1.0
                self.target.over(one.machine)
                one.witness.ran.extend(self.before)
                one.numbered = self.numbered
                one.heard = self._heard
                try:
                    await self._first()
                    told.hit, told.first = sky.hit, len(sky.calls)
                    await self._again(second)
                    told.hit = told.hit or (second is None and sky.hit)
                    told.second = len(sky.calls) - told.first
                finally:
                    await one.daemon.kill()
                    sky.revive()
                    group.cancel_scope.cancel()
        try:
            told.broken += laws.check_invariants(one) + self._end()
            if self.plot.publishes:
                told.broken += places.broken(out, set(ITEMS))
        except ResumedError as error:
            told.broken.append(repr(error))
        return told

    def _heard(self, function: Any, args: tuple[Any, ...]) -> None:
        if isinstance(self.sky, Recorded) and getattr(function, "__func__", None) is Journal.append:
            self.sky.tell(Line(args[1], args[2]))

    async def _first(self) -> None:
        one = self.world
        if isinstance(self.sky, Recorded):
            one.witness.heard = self.sky.tell
            self.target.lands = lambda key: self.sky.tell(Landing(key))
        await one.start(revive=False)
        await one.admit(JOB, self.items)
        if self.plot.ask:
            await one.passes(1.5)
            for kind in ("Pause", "Resume"):
                one.daemon.soon(one.daemon.ask, JOB, kind)
                await one.passes(1.2)
        await self._rest()

    async def _rest(self) -> None:
        one = self.world
        done = one.daemon.over.is_set
        if not await one.until(lambda: done() or one.rests(JOB) or self._is_asked(), 2 * world.HOUR):
            self.told.broken.append(f"stuck: {one.entry(JOB)}")

    def _is_asked(self) -> bool:
        """Whether the job waits for people who allow what it asks for."""
        if self.plot.tool is None or self.plot.tool.approve is None:
            return False
        entry = self.world.entry(JOB)
        if entry is None or entry.stage is not Stage.PARKED or entry.box:
            return False
        return any(target.is_gated(row) for row in self.world.snapshot(JOB).effects.open())

    async def _again(self, second: Fault) -> None:
        """Start again if it was killed; a person does what the job asks for."""
        one = self.world
        for _ in range(12):
            if one.daemon.over.is_set():
                one.weather.revive()
                one.weather.fault, second = second, None
                await one.start(revive=False)
            if not one.jobs and not await one.admit(JOB, self.items):
                continue
            await self._rest()
            if one.daemon.over.is_set():
                continue
            entry = one.entry(JOB)
            if entry is None:
                return
            if self.plot.tool is not None and self._decide():
                await one.passes(0.01)
                continue
            for kind in ("Retry", "Resume"):
                one.daemon.soon(one.daemon.ask, JOB, kind)
                await one.passes(0.01)

    def _decide(self) -> bool:
        """People say what they are asked: yes, and of what nobody can look up what their target knows."""
        one, asked = self.world, 0
        for row in one.snapshot(JOB).effects.open():
            if target.is_gated(row):
                more: dict[str, Any] = {"subject": row.id, "fingerprint": row.fingerprint}
                one.daemon.soon(partial(one.daemon.ask, JOB, "Approve", **more))
            elif row.hold is not None:
                there = row.operation_key in self.target.landed
                more = {"subject": row.id, "reference": f"r-{row.operation_key[:8]}" if there else None}
                one.daemon.soon(partial(one.daemon.ask, JOB, "Settle", **more))
            else:
                continue
            asked += 1
        return asked > 0

    def _end(self) -> list[str]:
        one = self.world
        folder = one.place(JOB)
        if folder != one.layout.archived(JOB):
            return [f"the job lies in {folder}"]
        snapshot = one.snapshot(JOB)
        outcome = snapshot.outcome
        broken = [] if outcome is not None and outcome.ending is Ending.COMPLETED else [f"ended as {outcome}"]
        if self.plot.tool is not None:
            broken += target.broken(self.target, snapshot)
            broken += [f"{len(self.target.landed)} of 2 landed"] if len(self.target.landed) != 2 else []
        # The next start removes what could not be removed at the time; below a job's folder nobody would.
        admission.clean(one.layout)
        if self.tidy:
            broken += [f"left over: {path}" for path in self.root.rglob(".*.tmp")]
        return broken


def broken_promises(player: Player, told: Sequence[Any]) -> list[str]:
    """What was told before a power cut and is not there afterwards."""
    folder = player.world.place(JOB)
    lines = [one for one in told if isinstance(one, Line)]
    if folder is None:
        return [f"the job is gone, and {len(lines)} lines were told"] if lines else []
    found = laws.digests(folder)
    return [f"{one} is not there" for one in lines if found.get(one.sequence) != one.digest]


def empty(root: Path) -> Path:
    """The folder, with nothing in it."""
    if root.exists():
        shutil.rmtree(root)
    root.mkdir()
    return root
