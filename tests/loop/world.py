"""A store on a real folder, daemons that come and go over it, bad weather on its disk, and people who ask."""

import errno
import json
import os
import random
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.abc
from attrs import define, field, frozen
from faults.seam import Killed, Seam

from resumed.actors.door import Door
from resumed.actors.entry import JobEntry, Stage
from resumed.actors.flights import Done
from resumed.actors.machine.apply import apply
from resumed.actors.machine.verdict import Unchanged
from resumed.actors.reception import Reception
from resumed.actors.supervisor import Supervisor
from resumed.actors.witness import Alone
from resumed.schemas import events, framelines, frames
from resumed.schemas.errors import GoneError, StoreError
from resumed.schemas.job import Person, Reader
from resumed.schemas.jobfile import JobFile
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import Told
from resumed.schemas.workflow import Contract, StepContract, StepKind
from resumed.store import admission, layout, recovery
from resumed.store.journal import Journal

from . import clock as clocks
from .clock import VirtualClock
from .witness import Witness
from .workers import FakeWorker, Machine, Says

T = TypeVar("T")
ADA = Person(uid=1000, name="ada")
ERRNOS = (errno.EIO, errno.ENOSPC, errno.EMFILE)
HOUR = 3600.0


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of its own with an empty store in it, in memory where there is some."""
    shm = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="resumed-loop-", dir=shm if shm.is_dir() else None))
    try:
        layout.create(root, "store-1", VirtualClock().now())
        yield root
    finally:
        shutil.rmtree(root)


def contract(workflow: str = "label", *, slots: int = 1, **limits: Any) -> Contract:
    """A workflow of a `start` step, item steps `work` and `check`, and a `finish` step."""
    steps = (
        ("start", StepKind.JOB),
        ("work", StepKind.ITEM),
        ("check", StepKind.ITEM),
        ("finish", StepKind.JOB),
    )
    return Contract(
        workflow=workflow,
        version=1,
        start="start",
        steps=tuple(StepContract(name=name, kind=kind, **limits) for name, kind in steps),
        entry="label:Label",
        slots=slots,
    )


def tear(folder: Path | None, sequence: int) -> None:
    """What follows line `sequence` in the newest log of a job does not verify any more."""
    assert folder is not None
    log = max(folder.glob("*.log"), key=lambda path: path.stat().st_mtime_ns)
    raw = bytearray(log.read_bytes())
    end = 0
    for line in bytes(raw).split(b"\n"):
        if f'"sequence":{sequence + 1},'.encode() in line or not line.strip(b"\0"):
            break
        end += len(line) + 1
    rest = bytes(raw[end:]).rstrip(b"\0")
    raw[end : end + max(len(rest), 40)] = b"x" * max(len(rest), 40)
    log.chmod(0o600)
    log.write_bytes(bytes(raw))


class Shelf:
    """The workflows there are."""

    def __init__(self, contracts: Sequence[Contract]) -> None:
        self.contracts = {each.workflow: each for each in contracts}

    def pick(self, name: str, version: int | None) -> Contract | Refusal:
        """The workflow of that name."""
        return self.contracts[name]

    def is_quick(self, contract: Contract) -> bool:
        """No: it is asked beside the loop."""
        return False

    def accept(self, contract: Contract, job: JobFile, what: str, reader: Reader | None = None) -> str:
        """Any inputs do."""
        return job.inputs


async def in_place(function: Callable[..., T], *args: Any) -> T:
    """A call at once in the loop: a thread would let virtual time pass."""
    return function(*args)


@define(slots=False)
class Weather(Seam):
    """The disk of this world: in a storm its calls fail by chance; a kill is drawn as a number of calls."""

    chance: random.Random = field(kw_only=True)
    storm: float = 0.0
    blind: float = 0.0
    kill_in: int | None = None
    veto: Callable[[str, tuple[Any, ...]], int | None] | None = None
    """The errno that a call fails with, when a case wants just that one to fail."""
    failures: int = 0
    held: set[int] = field(factory=set)
    """Descriptors that the daemon has open."""

    def _check(self, name: str, args: tuple[Any, ...]) -> None:
        number = (
            self.veto(name, args) if self.veto is not None and not self.dead and name != "close" else None
        )
        if number is not None:
            self.failures += 1
            raise OSError(number, os.strerror(number), str(args[0]))

    def _mutate(self, name: str, args: tuple[Any, ...]) -> Any:
        self._check(name, args)
        if not self.dead and self.kill_in is not None:
            self.kill_in -= 1
            if self.kill_in < 0:
                if self.chance.random() < 0.5:
                    self._hit(name, args)
                self.dead = True
                raise Killed
        if not self.dead and self.storm and self.chance.random() < self.storm:
            self.failures += 1
            if name == "pwrite":
                self._half(args)
            elif name in ("rename_new", "make_folder", "unlink") and self.chance.random() < 0.3:
                self._hit(name, args)  # it happened, and the answer was lost
            number = self.chance.choice(ERRNOS)
            raise OSError(number, os.strerror(number), str(args[0]))
        found = super()._mutate(name, args)
        if name in ("create", "open_lock"):
            self.held.add(found)
        return found

    def _hit(self, name: str, args: tuple[Any, ...]) -> None:
        try:
            if name not in ("create", "open_lock"):
                self._do(name, args)
        except OSError:
            pass

    def _look(self, name: str, args: tuple[Any, ...]) -> Any:
        self._check(name, args)
        if name != "close" and not self.dead and self.blind and self.chance.random() < self.blind:
            self.failures += 1
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(args[0]))
        if name == "close":
            self.held.discard(args[0])
        found = super()._look(name, args)
        if name == "open_read":
            self.held.add(found)
        return found

    def revive(self) -> None:
        """The kernel has closed what the dead process had open."""
        for fd in self.held:
            os.close(fd)
        self.held.clear()
        self.dead, self.kill_in, self.fault = False, None, None


@frozen
class Pace:
    """How slow the disk is: how likely a call waits, and for how long at most (seconds)."""

    likely: float = 0.0
    slowest: float = 0.0


@define(eq=False)
class Asked:
    """One request of a person, and what became of it: `answer` is None while nothing was heard."""

    number: int
    job: str
    kind: str
    answer: Told | Refusal | Exception | None = None
    lost: bool = False
    """Its daemon was killed before anybody heard an answer."""

    @property
    def word(self) -> str:
        """The reason it carries, found again in the log."""
        return f"request {self.number}."


async def anywhere(person: Person) -> str:
    """Whoever asks does so from outside of all attempts."""
    del person
    return ""


class Everybody(Alone):
    """The authority of this world: whoever asks here may."""

    def is_ours(self, uid: int) -> bool:
        """All of them are."""
        del uid
        return True


class Daemon:
    """One life of the daemon over the world's store."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.killed = False
        self.crashed: BaseException | None = None
        self.over = anyio.Event()
        self.started = anyio.Event()
        self.supervisor = Supervisor(
            world.layout, clock=world.clock, disk=self, spawn=self._spawn, most_workers=world.most_workers
        )
        self.jobs = Reception(
            self.supervisor,
            Door(self.supervisor, world.shelf, self._whole, in_place),
            house={},
            shelf=lambda: ((), ()),
        )
        self.supervisor.witness.authority, self.supervisor.witness.placed = Everybody(), anywhere
        self._died = anyio.Event()
        self.calls = 0
        """Calls to the disk that are on their way."""

    @property
    def dead(self) -> bool:
        """True once it was killed."""
        return self.killed or self.world.weather.dead

    async def _spawn(self, name: str, contract: Contract) -> FakeWorker:
        return await self.world.spawn(self, name, contract)

    @staticmethod
    async def _whole(contract: Contract) -> Contract:
        return contract

    def on_frame(self, worker: FakeWorker, frame: frames.FromWorker) -> None:
        """Pass on what a worker said, through the wire's own words."""
        self.supervisor.workshop.on_frame(worker, framelines.read_from_worker(framelines.write(frame)[:-1]))

    def on_gone(self, worker: FakeWorker, how: str, proven: bool) -> None:
        """Pass on a worker's end."""
        self.supervisor.workshop.on_gone(worker, how, proven)

    async def call(self, function: Callable[..., T], *args: Any) -> T:
        """The disk: handed-over calls run whole, or not at all once the daemon is dead."""
        self.calls += 1
        try:
            with anyio.CancelScope(shield=True):
                await self._pause()
                if self.dead:
                    raise Killed
                try:
                    found = function(*args)
                finally:
                    if not self.dead:
                        await self._pause()
            if self.dead:
                raise Killed
            self.world.heard(function, args)
            return found
        finally:
            self.calls -= 1

    async def append(self, journal: Journal, raw: bytes, sequence: int, digest: str) -> None:
        """A commit is a handed-over call like any other."""
        await self.call(journal.append, raw, sequence, digest)

    def submit(self, journal: Journal, raw: bytes, sequence: int, digest: str, done: Done) -> None:
        """The same, for those who do not wait."""
        self.group.start_soon(self._submitted, (journal, raw, sequence, digest), done)

    async def _submitted(self, line: tuple[Journal, bytes, int, str], done: Done) -> None:
        try:
            await self.append(*line)
        except BaseException as error:
            done(error)
            if not isinstance(error, Exception | Killed):
                raise
        else:
            done(None)

    async def _pause(self) -> None:
        pace, chance = self.world.pace, self.world.chance
        if not pace.likely or chance.random() >= pace.likely:
            return
        async with anyio.create_task_group() as group:

            async def until_dead() -> None:
                await self._died.wait()
                group.cancel_scope.cancel()

            group.start_soon(until_dead)
            await self.world.clock.wait(chance.choice((0, chance.uniform(0, pace.slowest))))
            group.cancel_scope.cancel()

    async def live(self) -> None:
        """Until it is killed or stopped."""
        try:
            async with anyio.create_task_group() as group:
                self.group = group
                await group.start(self.supervisor.run)
                self.started.set()
        except Killed:
            pass
        except BaseExceptionGroup as error:
            rest = error.split((Killed, anyio.get_cancelled_exc_class()))[1]
            if rest is not None:
                self.crashed = rest
        except Exception as error:  # noqa: BLE001 - whatever it is, the drill reports it
            self.crashed = error
        finally:
            self._died.set()
            self.started.set()
            self.over.set()

    def soon(self, function: Callable[..., Any], *args: Any) -> None:
        """Run a task of this daemon's; nothing happens once it is over."""
        if not (self.dead or self.over.is_set()):
            self.group.start_soon(function, *args)

    async def kill(self) -> None:
        """SIGKILL: nothing that it does afterwards reaches anything."""
        self.killed = self.world.weather.dead = True
        self._died.set()
        self.group.cancel_scope.cancel()
        await self.world.until(self.over.is_set)

    async def stop(self, seconds: float) -> None:
        """SIGTERM; nobody may drive time here but the one who waits."""
        await self.supervisor.drain(seconds)
        self.group.cancel_scope.cancel()
        await self.over.wait()

    async def ask(self, job: str, kind: str, **fields: Any) -> Asked:
        """A person's request, with its number as the reason; returns when it is answered."""
        asked = Asked(self.world.numbered + len(self.world.asked), job, kind)
        self.world.asked.append(asked)
        event = getattr(events, kind)(by=ADA, reason=asked.word, **fields)
        answer: Told | Refusal | Exception
        try:
            answer = await self.jobs.tell(job, event)
        except (StoreError, GoneError) as error:
            answer = error
        except BaseException:
            asked.lost = True
            raise
        if self.dead:
            asked.lost = True
        else:
            asked.answer = answer
        return asked


class World:
    """Everything of one drill."""

    def __init__(
        self,
        root: Path,
        seed: int,
        contracts: Sequence[Contract],
        says: Says,
        group: anyio.abc.TaskGroup,
        weather: Weather,
        most_workers: int = 2,
    ) -> None:
        self.chance = random.Random(seed)
        self.clock = VirtualClock()
        self.weather = weather
        self.witness = Witness()
        self.machine = Machine(self.clock, self.chance, self.witness, says, group)
        self.spawn: Callable[..., Awaitable[FakeWorker]] = self.machine.spawn
        self.group = group
        self.pace = Pace()
        self.shelf = Shelf(contracts)
        self.most_workers = most_workers
        self.layout = layout.Layout(root)
        self.asked: list[Asked] = []
        self.numbered = 0
        """The number of the first request."""
        self.jobs: list[str] = []
        self.kills = 0
        self.faults: list[str] = []
        self.heard: Callable[[Callable[..., Any], tuple[Any, ...]], None] = lambda function, args: None
        """Told of every call of the disk that returned."""

    # ---- daemons --------------------------------------------------------------------------------------

    async def start(self, unproven: bool = False, revive: bool = True) -> Daemon:
        """Start a daemon, once every worker of before is known gone (or not to be proven so)."""
        left = self.machine.living()
        await self.end_workers()
        if revive:
            self.weather.revive()
        self.weather.storm = self.weather.blind = 0.0
        try:
            admission.clean(self.layout)
        except Killed:
            self.weather.revive()
            admission.clean(self.layout)
        daemon = self.daemon = Daemon(self)
        if unproven:
            daemon.supervisor.unproven.update({worker.name: "its keeper was killed" for worker in left})
        self.group.start_soon(daemon.live)
        await self.until(daemon.started.is_set)
        return daemon

    async def end_workers(self) -> None:
        """Know that every worker of the daemon before is gone."""
        for worker in self.machine.living():
            # Its keeper has seen the pipe close; what it runs may still end by itself meanwhile.
            self.group.start_soon(self._end_later, worker)
        await self.until(lambda: not self.machine.living())

    async def _end_later(self, worker: FakeWorker) -> None:
        await self.clock.wait(self.chance.choice((0.0, 0.1, 1.0)))
        worker.kill()

    async def kill(self) -> None:
        """Kill the daemon."""
        self.kills += 1
        await self.daemon.kill()

    async def reboot(self, seconds: float) -> None:
        """The machine goes down for so long; whoever goes on starts a daemon."""
        await self.kill()
        await self.end_workers()
        self.clock.reboot(seconds)

    # ---- time -----------------------------------------------------------------------------------------

    async def until(self, done: Callable[[], bool], most: float = HOUR) -> bool:
        """Let time pass until `done`; False when it is not within `most` seconds."""
        limit = self.clock.micro + round(most * 1_000_000)
        while True:
            await clocks.settle()
            if done():
                return True
            if not self.clock.advance(limit):
                await clocks.settle()
                return done()

    async def passes(self, seconds: float) -> None:
        """Let that much time pass."""
        await self.until(self.daemon.over.is_set, seconds)

    # ---- jobs -----------------------------------------------------------------------------------------

    async def admit(self, job: str, items: Sequence[str], workflow: str = "label", **more: Any) -> bool:
        """Submit a job file (with `more` keys), again and again until it is admitted; False when the daemon
        died first."""
        listed = [{"id": name} for name in items]
        raw = json.dumps({"id": job, "workflow": workflow, "items": listed, **more}).encode()
        while not self.daemon.over.is_set():
            told: list[Any] = []

            async def submit(told: list[Any] = told) -> None:
                try:
                    told.append(
                        await self.daemon.jobs.submit(raw, name=f"{job}.json", requester=ADA, via="folder")
                    )
                except (StoreError, GoneError) as error:
                    told.append(error)

            self.daemon.soon(submit)
            await self.until(lambda told=told: bool(told) or self.daemon.over.is_set())  # type: ignore[misc]
            if told and isinstance(told[0], Told) and not self.daemon.dead:  # it was heard
                self.jobs.append(job)
                return True
            if told and isinstance(told[0], Refusal):
                self.faults.append(f"{job} was refused: {told[0]}")
                return False
            await self.passes(1.0)
        return False

    def entry(self, job: str) -> JobEntry | None:
        """The open job as the daemon holds it."""
        return self.daemon.supervisor.entries.get(job)

    def place(self, job: str) -> Path | None:
        """Where a job lies."""
        places = (self.layout.job(job), self.layout.archived(job), self.layout.quarantine / job)
        return next((place for place in places if place.exists()), None)

    def snapshot(self, job: str) -> Snapshot:
        """The job as the disk tells it."""
        found = self.place(job)
        assert found is not None, f"{job} is nowhere"
        return recovery.load(found, apply).snapshot

    def rests(self, job: str) -> bool:
        """True when the job has ended, or is parked until a person does something."""
        entry = self.entry(job)
        if entry is None:
            return True
        return (
            entry.stage is Stage.PARKED
            and not entry.box
            and entry.row is not None
            and entry.row.wakes == 0
            and (entry.row.status in ("held", "paused"))
        )

    def waits(self, job: str) -> bool:
        """True for a parked job that waits for another one which is open: that one's end will be told."""
        entry = self.entry(job)
        if entry is None or entry.stage is not Stage.PARKED or entry.box:
            return False
        return any(row.event and self.entry(row.event) is not None for row in entry.waits)


def unchanged(answer: object) -> bool:
    """True for an answer that says that nothing had to be done."""
    return isinstance(answer, Unchanged) or (isinstance(answer, Told) and answer.repeated)
