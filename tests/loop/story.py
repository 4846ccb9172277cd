"""One seed's story: jobs, people, workers and a disk that misbehave, kills; then good weather to the end."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from attrs import define, field

from resumed.actors import job as jobs
from resumed.actors import onward, plainlines, sends, verdicts, workshop
from resumed.actors.entry import Stage
from resumed.actors.machine.limits import BUDGET
from resumed.schemas import codec, decisions, frames
from resumed.schemas.job import PinKind, Source
from resumed.schemas.workflow import Contract, OnChange, StepContract, StepKind

from . import clock, laws, places, world
from .fate import BEYOND, Fate
from .workers import GOOD, Manners, accept
from .world import Pace, Weather, World

KINDS = ("Pause", "Pause", "Resume", "Resume", "Resume", "Cancel", "Retry", "Retry", "Skip")
DEATHS: tuple[Callable[[], BaseException], ...] = (
    lambda: ValueError("a bad value"),
    lambda: ExceptionGroup("several", [KeyError("one"), OSError("two")]),
    RecursionError,
    MemoryError,
    lambda: SystemExit(3),
)

WALKED = 4
"""The plain steps that some seeds' jobs go through."""


@define
class Told:
    """What one seed did, for those who want to know that its faults really hit."""

    kills: int = 0
    failures: int = 0
    crashes: int = 0
    drains: int = 0
    runs: int = 0
    asked: int = 0
    did: dict[str, int] = field(factory=dict)
    ends: dict[str, int] = field(factory=dict)
    broken: list[str] = field(factory=list)


PLACES: list[tuple[Any, str]] = [
    (verdicts, "transition"),
    (jobs.JobActor, "_adopt"),
    (jobs.JobActor, "act"),
    (workshop.Workshop, "run"),
    (workshop.Workshop, "stop"),
    (workshop.Workshop, "ended"),
    (plainlines, "spell"),
    (sends.Sends, "place"),
    (onward, "go_on"),
]
"""Where an actor may die: before and after each of these."""


class Story:
    """Everything that one seed draws."""

    def __init__(self, seed: int, publishes: bool = False, timed: bool = False) -> None:
        self.seed = seed
        self.publishes = publishes
        self.fate = Fate(seed) if timed else None
        """Whether outputs are published, beside the store; some of the names are taken."""
        self.chance = random.Random(seed)
        self.calm = False
        self.told = Told()
        self.crashing = 0.0
        self.deaths = 0
        self.sourced = seed % 9 == 4
        """Whether its items have sources, which change now and then; other seeds draw as they always did."""
        self.walks = seed % 4 == 2
        """Whether its jobs go through some plain steps first; other seeds draw as they always did."""
        self.weather = random.Random(f"sources of {seed}")

    # ---- what is drawn --------------------------------------------------------------------------------

    def contracts(self) -> list[Contract]:
        """One to three workflows of different tempers."""
        made = [self._contract(f"label{number}") for number in range(self.chance.choice((1, 1, 2, 3)))]
        return made if self.fate is None else [self.fate.contract(each) for each in made]

    def _contract(self, name: str) -> Contract:
        chance = self.chance

        def step(called: str, kind: StepKind) -> StepContract:
            return StepContract(
                name=called,
                kind=kind,
                repeatable=chance.random() < 0.7,
                timeout=chance.choice((5.0, 20.0, 60.0)),
                grace=chance.choice((0.0, 1.0, 5.0)),
                tries=chance.choice((1, 2, 3)),
                backoff_first=chance.choice((0.5, 3.0, 100.0)),
                backoff_max=200.0,
            )

        return Contract(
            workflow=name,
            version=1,
            start="start",
            definition="{}" if self.publishes else "",
            steps=(
                step("start", StepKind.JOB),
                step("work", StepKind.ITEM),
                step("check", StepKind.ITEM),
                step("finish", StepKind.JOB),
            ),
            entry="" if self.publishes else "label:Label",
            slots=chance.choice((1, 1, 1, 3)),
            on_change=OnChange.REOPEN if self.seed % 2 else OnChange.HOLD,
        )

    def manners(self) -> Manners:
        """Which misbehaviours this seed knows, and how often."""
        chance = self.chance
        names = [one for one in Manners.__attrs_attrs__ if one.name != "slowest"]  # type: ignore[attr-defined]
        drawn = {one.name: chance.choice((0.0, 0.0, 0.05, 0.2)) for one in names}
        drawn["say_trouble"] /= 4
        drawn["never_ready"] /= 4
        return Manners(**drawn, slowest=chance.choice((0.1, 2.0, 30.0)))

    def says(self, frame: frames.Run) -> decisions.Answer:
        """A handler's decision; of sources the worker itself."""
        chance = self.chance
        if self.walks and frame.step == "start" and frame.occurrence <= WALKED:
            on = decisions.GoTo(step="start")
            return decisions.Answer(decided=on, state={"at": f"{frame.occurrence}"})
        if self.sourced and (said := self._of_sources(frame)) is not None:
            return decisions.Answer(decided=said)
        if not self.calm and chance.random() < 0.25:
            odd = self._odd(frame)
            if odd is not None:
                return decisions.Answer(decided=odd)
        if frame.step == "start":
            made: Any = None
            if chance.random() < 0.3:
                made = tuple(
                    decisions.NewItem(id=f"made-{number}") for number in range(chance.choice((0, 1, 3)))
                )
            tries = chance.choice((None, 1, 3))
            named = (*(item.id for item in frame.items), *(item.id for item in made or ()))
            decided: decisions.Decided = decisions.FanOut(
                start="work",
                then="finish",
                items=made,
                parallel=chance.choice((1, 2, 3)),
                tries=tries,
                pins={item: self._source() for item in named} if self.sourced else {},
            )
        elif frame.step == "finish":
            decided = decisions.Finished()
        elif frame.step == "work" and chance.random() < 0.3:
            decided = decisions.NextStep(step="check", data='{"seen":1}')
        else:
            return self._accept(frame)
        return decisions.Answer(decided=decided, state={"at": f'"{frame.step}"'} if not frame.item else {})

    def _of_sources(self, frame: frames.Run) -> decisions.Decided | None:
        """What a comparison found; and now and then that the source of an item has changed."""
        odds = 0.0 if self.calm else 0.1
        if frame.compare:
            seen = tuple(
                decisions.Seen(item=item.id, source=self._source() if self.weather.random() < 0.7 else None)
                for item in frame.items
                if self.weather.random() < odds
            )
            self.told.did["compared"] = self.told.did.get("compared", 0) + 1
            return decisions.Compared(through=frame.through, sources=len(frame.items), changed=seen)
        if frame.row is not None and frame.row.source is not None and self.weather.random() < odds:
            self.told.did["source_changed"] = self.told.did.get("source_changed", 0) + 1
            return decisions.SourceChanged(source=self._source())
        return None

    def _source(self) -> Source:
        return Source(path="/srv/x", pin=PinKind.SHA256, sha256=f"{self.weather.getrandbits(64):064x}")

    def _accept(self, frame: frames.Run) -> decisions.Answer:
        draw = self.chance.random()
        if draw < 0.2:
            return decisions.Answer(decided=decisions.Accepted())
        if draw < 0.3:
            return accept("x" * 20_000)
        if draw < 0.33 and not self.calm:
            wrong = decisions.Offer(name="card", sha256=codec.digest(b"other"), size=5, text="these")
            return decisions.Answer(decided=decisions.Accepted(output=wrong))
        return accept(frame.item)

    def _odd(self, frame: frames.Run) -> decisions.Decided | None:
        choices: list[decisions.Decided | None] = [
            decisions.TryAgain(reason="not yet"),
            decisions.TryAgain(reason="not yet"),
            decisions.Later(seconds=self.chance.choice((0.0, 1.0, 90.0))),
            decisions.Failed(reason="cannot be done"),
            decisions.HoldBack(code="unclear", reason="which of the two?"),
            decisions.GoTo(step="nowhere"),
            decisions.GoTo(step="start") if not frame.item and self.chance.random() < 0.3 else None,
        ]
        return self.chance.choice(choices)

    # ---- actors that die ------------------------------------------------------------------------------

    @contextmanager
    def dying_actors(self, weather: Weather) -> Iterator[None]:
        """Now and then an actor dies: before or after it decides, adopts or acts."""
        kept = [(owner, name, getattr(owner, name)) for owner, name in PLACES]

        def wrap(real: Callable[..., Any]) -> Callable[..., Any]:
            def mortal(*args: Any, **kwargs: Any) -> Any:
                self._maybe_die(weather)
                found = real(*args, **kwargs)
                self._maybe_die(weather)
                return found

            return mortal

        for owner, name, real in kept:
            setattr(owner, name, wrap(real))
        try:
            yield
        finally:
            for owner, name, real in kept:
                setattr(owner, name, real)

    def _maybe_die(self, weather: Weather) -> None:
        if self.crashing and self.deaths and not weather.dead and self.chance.random() < self.crashing:
            self.deaths -= 1
            self.told.crashes += 1
            make = self.chance.choice(DEATHS)
            raise make()

    # ---- the story ------------------------------------------------------------------------------------

    async def tell(self, root: Path, weather: Weather) -> None:
        """The whole of it."""
        async with anyio.create_task_group() as group:
            says = places.several(self.says, out_of(root)) if self.publishes else self.says
            made = World(
                root, self.seed, self.contracts(), says, group, weather, self.chance.choice((1, 2, 4))
            )
            self.world = made
            try:
                await self._trouble()
                await self._peace()
            finally:
                self._count()
            await self.world.daemon.kill()
            group.cancel_scope.cancel()

    async def _trouble(self) -> None:
        made, chance = self.world, self.chance
        await made.start()
        workflows = list(made.shelf.contracts)
        for number in range(chance.choice((1, 2, 3))):
            names = [f"item-{one}" for one in range(chance.choice((0, 1, 3, 5)))]
            more = {} if self.fate is None else self.fate.keys(number)
            await made.admit(f"job-{number}", names, chance.choice(workflows), **more)
        made.machine.manners = self.manners()
        made.pace = Pace(chance.choice((0, 0, 0.3, 0.8)), chance.choice((0.01, 0.5, 5.0)))
        self.crashing, self.deaths = chance.choice((0, 0, 0.01, 0.05)), chance.choice((1, 4, 12))
        people = chance.choice((0, 0.5, 3.0, 20.0))
        end = made.clock.seconds + chance.choice((3.0, 20.0, 120.0))
        while made.clock.seconds < end:
            if people:
                self._ask(people)
            await self._event()
            if self.fate is not None:
                await self.fate.event(made)
            await made.passes(chance.choice((0.001, 0.1, 1.0, 5.0)))
            if made.daemon.over.is_set():
                if made.daemon.crashed is not None:
                    return
                if not made.daemon.killed:
                    made.kills += made.weather.dead
                await made.start(unproven=chance.random() < 0.1)

    async def _event(self) -> None:
        made, chance = self.world, self.chance
        draw = chance.random()
        if draw < 0.06:
            await made.kill()
        elif draw < 0.12:
            made.weather.kill_in = chance.randrange(60)
        elif draw < 0.2:
            made.weather.storm, made.weather.blind = chance.choice(
                ((0.02, 0.0), (0.3, 0.0), (0.1, 0.1), (1, 0.5))
            )
        elif draw < 0.4:
            made.weather.storm = made.weather.blind = 0.0
        elif draw < 0.43:
            self.told.drains += 1
            await self._drain()

    async def _drain(self) -> None:
        over: list[bool] = []

        async def drain() -> None:
            await self.world.daemon.stop(self.chance.choice((0.0, 1.0, 20.0)))
            over.append(True)

        self.world.group.start_soon(drain)
        began = self.world.clock.seconds
        stopped = await self.world.until(lambda: bool(over) or self.world.daemon.over.is_set(), 120.0)
        if not stopped or self.world.clock.seconds - began > 31.0 + 10.0:
            self.world.faults.append(f"a drain took {self.world.clock.seconds - began:.0f} s")

    def _ask(self, people: float) -> None:
        made, chance = self.world, self.chance
        for _ in range(chance.choice((0, 1, 2))):
            if not made.jobs:
                return
            kind = chance.choice(KINDS)
            if kind == "Cancel" and chance.random() < 0.6:
                kind = "Resume"
            fields: dict[str, Any] = {}
            if kind == "Pause":
                fields["now"] = chance.random() < 0.5
            if kind in ("Retry", "Skip") and chance.random() < 0.5:
                fields["items"] = (f"item-{chance.randrange(5)}",)
            if self.fate is not None and self.fate.chance.random() < 0.15:
                kind, fields = self.fate.request()
            made.daemon.soon(self._later, people, chance.choice(made.jobs), kind, fields)

    async def _later(self, people: float, job: str, kind: str, fields: dict[str, Any]) -> None:
        daemon = self.world.daemon
        await self.world.clock.wait(self.chance.uniform(0, people))
        await daemon.ask(job, kind, **fields)

    # ---- the good end ---------------------------------------------------------------------------------

    async def _peace(self) -> None:
        """Good weather and good manners: all must come to rest, and end when people do their part."""
        made = self.world
        if made.daemon.crashed is not None:
            return
        made.weather.storm = made.weather.blind = 0.0
        made.weather.kill_in = None
        made.machine.manners, made.pace, self.calm, self.crashing = GOOD, Pace(), True, 0.0
        for round_ in range(12):
            await self._start_again()
            await self._rest()
            if made.daemon.over.is_set():
                continue
            open_ = [job for job in made.jobs if made.entry(job) is not None]
            if not open_ or made.faults:
                return
            if any(made.daemon.supervisor.entries[job].stage is Stage.ASIDE for job in open_):
                await made.kill()
                await made.start()
                continue
            for job in open_:
                await self._help(job, round_)
        made.faults.append(f"people could not bring these to an end: {open_}")

    async def _start_again(self) -> None:
        """A kill or a drain from before may still have been on its way."""
        made = self.world
        await clock.settle()
        if made.daemon.dead or made.daemon.supervisor.draining:
            await made.until(made.daemon.over.is_set)
            await made.start()

    async def _rest(self) -> None:
        made = self.world

        def resting() -> bool:
            return made.daemon.over.is_set() or all(self._rests(job) for job in made.jobs)

        await made.passes(0.0)
        if not await made.until(resting, 2 * world.HOUR):
            stuck = [job for job in made.jobs if not self._rests(job)]
            made.faults += [f"stuck: {job}: {self.show(job)}" for job in stuck]

    def _rests(self, job: str) -> bool:
        entry = self.world.entry(job)
        given_up = entry is not None and entry.stage is Stage.ASIDE
        return given_up or self.world.rests(job) or self.world.waits(job)

    def show(self, job: str) -> str:
        """Where a job stands, for whoever reads a failure."""
        entry = self.world.entry(job)
        if entry is None:
            return "no entry"
        snapshot = self.world.snapshot(job)
        slots = self.world.daemon.supervisor.workshop.slots
        pools = [
            (
                list(pool.waiting),
                pool.starting,
                [(h.worker.name, h.held, h.offered, h.ready, h.ending) for h in pool.hands.values()],
            )
            for pool in slots.pools.values()
        ]
        known = {
            "stage": entry.stage,
            "box": entry.box.left(),
            "row": entry.row,
            "tries": snapshot.tries,
            "running": entry.running,
            "stopping": entry.stopping,
            "trouble": entry.trouble,
            "due": (entry.next_due, entry.scheduled),
            "pools": pools,
            "items": [(item.id, item.state.value, item.not_before) for item in snapshot.items],
            "position": snapshot.position,
            "hold": snapshot.hold,
            "now": self.world.clock.now(),
        }
        return " ".join(f"{name}={value}" for name, value in known.items())

    async def _help(self, job: str, round_: int) -> None:
        """Do what the job asks for; at the end of all patience, cancel it."""
        snapshot = self.world.snapshot(job)
        kinds = ["Resume"]
        if snapshot.hold is not None:
            kinds = ["Retry", "Resume"] if snapshot.each is not None else ["Resume"]
            if round_ > 4:
                kinds = ["Skip", "Resume"]
        if snapshot.hold is not None and snapshot.hold.code == BUDGET:
            kinds = ["Extend"]
        if round_ > 8:
            kinds = ["Cancel"]
        for kind in kinds:
            more = {"active_time": 1e6, "allowed": BEYOND} if kind == "Extend" else {}
            self.world.daemon.soon(self._later, 0.0, job, kind, more)
            await self.world.passes(0.01)

    def _count(self) -> None:
        made, told = self.world, self.told
        told.kills, told.failures, told.runs = made.kills, made.weather.failures, len(made.witness.ran)
        told.asked, told.did = len(made.asked), {**told.did, **made.machine.did}
        if self.fate is not None:
            told.did |= self.fate.did


def out_of(root: Path) -> Path:
    """Where the jobs of this store publish; some of their names are taken."""
    out = root / "out"
    if not out.exists():
        out.mkdir()
        for name in ("job-0-item-0", "job-1-item-1", "job-2-made-0"):
            (out / name).write_bytes(b"theirs")
    return out


def run(seed: int, backend: str, publishes: bool = False, timed: bool = False) -> Told:
    """Tell one seed's story and say what it did and what it broke."""
    story = Story(seed, publishes, timed)
    weather = Weather(chance=random.Random(f"weather {seed}"))

    async def main() -> None:
        with world.folder() as root, weather, story.dying_actors(weather):
            await story.tell(root, weather)
            weather.revive()
            story.told.broken = laws.check_invariants(story.world)
            if timed:
                story.told.did |= laws.holds(story.world)
            if publishes:
                story.told.broken += laws.check_places(story.world, out_of(root), story.told.did)
            for job in story.world.jobs:
                if story.world.place(job) is not None:
                    outcome = story.world.snapshot(job).outcome
                    word = outcome.ending.value if outcome is not None else "open"
                    story.told.ends[word] = story.told.ends.get(word, 0) + 1

    clock.run(backend, seed, main)
    return story.told
