"""Workers of this world: they run tries in virtual time, tell the witness, and misbehave as the seed says.

A machine outlives its daemons: a worker whose daemon was killed goes on until its keeper has ended it.
"""

import random
from collections.abc import Callable, Sequence
from typing import Protocol

import anyio
import anyio.abc
from attrs import define, evolve, field, frozen

from resumed.schemas import codec, decisions, framelines, frames
from resumed.schemas.errors import GoneError
from resumed.schemas.workflow import Contract

from .clock import VirtualClock
from .witness import Ran, Witness

Key = tuple[str, int, str, int]
Says = Callable[[frames.Run], decisions.Answer]


@frozen
class Manners:
    """How likely each misbehaviour is, from 0 to 1."""

    refuse_start: float = 0.0
    die_before_ready: float = 0.0
    say_trouble: float = 0.0
    never_ready: float = 0.0
    raise_error: float = 0.0
    die: float = 0.0
    die_after_answer: float = 0.0
    repeat: float = 0.0
    contradict: float = 0.0
    stale: float = 0.0
    ignore_stop: float = 0.0
    answer_stop: float = 0.0
    silent: float = 0.0
    unproven: float = 0.0
    slowest: float = 2.0
    """The longest an ordinary try takes, in seconds."""


GOOD = Manners()


class Boss(Protocol):
    """The daemon a worker belongs to."""

    @property
    def dead(self) -> bool:
        """True once it was killed."""

    def on_frame(self, worker: "FakeWorker", frame: frames.FromWorker) -> None:
        """A frame of the worker's."""

    def on_gone(self, worker: "FakeWorker", how: str, proven: bool) -> None:
        """The worker is gone."""


@define(eq=False)
class Machine:
    """All workers there are, of all daemons."""

    clock: VirtualClock
    chance: random.Random
    witness: Witness
    says: Says
    group: anyio.abc.TaskGroup
    manners: Manners = GOOD
    lasts: Callable[[frames.Run], float] | None = None
    """How long a try takes, when a case wants to say so."""
    began: Callable[[frames.Run], None] = lambda frame: None
    """Told of what begins in a worker."""
    ends: Callable[[frames.Run], str] = lambda frame: ""
    """How a try ends that has done all it does: `die` with its worker, or `silent`, when a case says so."""
    workers: list["FakeWorker"] = field(factory=list)
    did: dict[str, int] = field(factory=dict)
    """How often each misbehaviour happened."""

    def odds(self, what: str) -> bool:
        """Whether this misbehaviour happens now."""
        likely = getattr(self.manners, what)
        if likely and self.chance.random() < likely:
            self.did[what] = self.did.get(what, 0) + 1
            return True
        return False

    def living(self) -> list["FakeWorker"]:
        """Workers not yet gone."""
        return [worker for worker in self.workers if not worker.gone.is_set()]

    async def spawn(self, boss: Boss, name: str, contract: Contract) -> "FakeWorker":
        """Start a worker."""
        await self.clock.wait(self.chance.choice((0, 0, 0.01, 0.2)))
        if self.odds("refuse_start"):
            raise BlockingIOError(11, "Resource temporarily unavailable")
        worker = FakeWorker(self, boss, name, contract)
        self.workers.append(worker)
        self.group.start_soon(worker.live)
        return worker


class FakeWorker:
    """One worker; see `actors.slots.Worker`."""

    def __init__(self, machine: Machine, boss: Boss, name: str, contract: Contract) -> None:
        self.machine, self.boss, self.name, self.contract = machine, boss, name, contract
        self.slots = contract.slots
        self.gone = anyio.Event()
        self.open: dict[Key, anyio.Event] = {}
        self.answered: dict[Key, frames.FromWorker] = {}
        self.forgotten = False
        self._dying = anyio.Event()
        self._ran: dict[Key, Ran] = {}

    # ---- what a daemon may do with it -----------------------------------------------------------------

    def send(self, frame: frames.ToWorker) -> None:
        """A frame from the daemon, which must fit the wire."""
        framelines.write(frame)
        if self.gone.is_set():
            raise GoneError(f"cannot send to worker {self.name}: it is gone")
        if self.boss.dead or self._dying.is_set():
            return
        if isinstance(frame, frames.Run):
            self._run(frame)
        elif isinstance(frame, frames.Stop):
            self._stop(frame)

    def kill(self) -> None:
        """End it and all its tries; known a little later."""
        self._dying.set()

    def forget(self) -> None:
        """Its files may go."""
        self.forgotten = True

    def stderr_tail(self, size: int = 2000) -> str:
        """Nothing was written."""
        return ""

    # ---- its life -------------------------------------------------------------------------------------

    async def live(self) -> None:
        """From its start until it is known gone."""
        machine, chance = self.machine, self.machine.chance
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._begin)
            await self._dying.wait()
            # Its tries live on until the kill has really happened.
            await machine.clock.wait(chance.choice((0, 0, 0.05, 0.3)))
            group.cancel_scope.cancel()
        for seen in self._ran.values():
            machine.witness.end(seen)
        self.open.clear()
        await machine.clock.wait(chance.choice((0, 0, 0.01)))
        self.gone.set()
        if not self.boss.dead:
            self.boss.on_gone(self, "it was killed", not machine.odds("unproven"))

    async def _begin(self) -> None:
        machine = self.machine
        await machine.clock.wait(machine.chance.choice((0, 0.02, 0.3)))
        if machine.odds("never_ready"):
            return
        if machine.odds("die_before_ready"):
            self.kill()
        elif machine.odds("say_trouble"):
            self._say(frames.Trouble(code="import", reason="no module named harbour"))
        else:
            self._say(frames.Ready(worker=self.name, contract=self.contract))

    def _say(self, frame: frames.FromWorker) -> None:
        if not (self.boss.dead or self.gone.is_set()):
            self.boss.on_frame(self, frame)

    # ---- tries ----------------------------------------------------------------------------------------

    def _run(self, frame: frames.Run) -> None:
        key = (frame.job, frame.epoch, frame.item, frame.number)
        if key in self.open or key in self.answered:
            return
        machine = self.machine
        self.open[key] = anyio.Event()
        if len(self.open) > self.slots:
            machine.witness.faults.append(f"{len(self.open)} tries in a worker of {self.slots}: {key}")
        self._ran[key] = machine.witness.start(
            frame.job, frame.item, frame.epoch, frame.number, self.name, machine.clock.micro
        )
        machine.began(frame)
        self._group.start_soon(self._try, frame, key)

    def _stop(self, frame: frames.Stop) -> None:
        key = (frame.job, frame.epoch, frame.item, frame.number)
        if key not in self.open:
            if key not in self.answered:
                self._answer(key, frames.Stopped(job=key[0], epoch=key[1], item=key[2], number=key[3]))
        elif not self.machine.odds("ignore_stop"):
            self._group.start_soon(self._obey, key, frame.grace)

    async def _obey(self, key: Key, grace: float) -> None:
        await self.machine.clock.wait(self.machine.chance.uniform(0, grace))
        if key in self.open and not self.machine.odds("answer_stop"):
            self._answer(key, frames.Stopped(job=key[0], epoch=key[1], item=key[2], number=key[3]))

    async def _try(self, frame: frames.Run, key: Key) -> None:
        machine, chance = self.machine, self.machine.chance
        drawn = chance.uniform(0, machine.manners.slowest) * chance.choice((0, 0.1, 1, 1))
        await machine.clock.wait(drawn if machine.lasts is None else machine.lasts(frame))
        if key not in self.open:
            return
        if machine.odds("die"):
            self.kill()
            return
        if machine.odds("silent"):
            return
        if machine.odds("stale"):
            self._say(self._returned(frame, epoch=frame.epoch - 1))
            self._say(self._returned(frame, number=frame.number + 1))
        if machine.odds("raise_error"):
            self._answer(key, frames.Raised(job=key[0], epoch=key[1], item=key[2], number=key[3], error="no"))
            return
        answer = self._returned(frame)
        how = machine.ends(frame)
        if how == "die":
            self.kill()
        if how:
            return
        self._answer(key, answer)
        await self._afterwards(answer)

    async def _afterwards(self, answer: frames.Returned) -> None:
        machine = self.machine
        late = machine.chance.choice((0, 0, 0.5, 5.0))
        if machine.odds("die_after_answer"):
            self.kill()
        if machine.odds("repeat"):
            await machine.clock.wait(late)
            self._say(answer)
        if machine.odds("contradict"):
            await machine.clock.wait(late)
            failed = decisions.Answer(decided=decisions.Failed(reason="another answer"))
            self._say(evolve(answer, answer=failed))

    def _returned(self, frame: frames.Run, **changed: int) -> frames.Returned:
        said = frames.Returned(
            job=frame.job,
            epoch=frame.epoch,
            item=frame.item,
            number=frame.number,
            answer=self.machine.says(frame),
        )
        return evolve(said, **changed)

    def _answer(self, key: Key, frame: frames.FromWorker) -> None:
        """The answer leaves when the try's processes are gone."""
        if self.open.pop(key, None) is not None:
            self.machine.witness.end(self._ran[key])
        self.answered[key] = frame
        self._say(frame)


def accept(text: str = "done") -> decisions.Answer:
    """An item is done, with a small output."""
    raw = text.encode()
    offer = decisions.Offer(name="card", sha256=codec.digest(raw), size=len(raw), text=text)
    return decisions.Answer(decided=decisions.Accepted(output=offer))


def say(answers: dict[str, decisions.Decided]) -> Says:
    """What each step always decides; a step of items not named accepts."""

    def says(frame: frames.Run) -> decisions.Answer:
        decided = answers.get(frame.step)
        return accept(frame.item) if decided is None else decisions.Answer(decided=decided)

    return says


def fan_out(names: Sequence[str] | None = None, parallel: int = 1) -> decisions.FanOut:
    """The usual fan-out of a `start` step."""
    items = None if names is None else tuple(decisions.NewItem(id=name) for name in names)
    return decisions.FanOut(start="work", then="finish", items=items, parallel=parallel)
