"""The first reading: each job for itself, by one thread while that goes on, and by more when it hangs."""

import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from faults import world

from resumed.actors.disk import ThreadDisk
from resumed.actors.entry import JobEntry, Stage
from resumed.actors.mailbox import Message
from resumed.actors.reading import READERS, FirstReading, Outcome
from resumed.schemas import events
from resumed.schemas.errors import DamagedError
from resumed.schemas.job import Person
from resumed.store import recovery
from resumed.store.layout import Layout
from resumed.store.recovery import Recovered

pytestmark = pytest.mark.anyio
MANY = 24


class Bench:
    """A store of jobs, read by real threads; a clock whose waits end when they are told to."""

    def __init__(self, root: Path, count: int) -> None:
        self.layout: Layout = world.store(root / "store")
        for number in range(count):
            world.admit(self.layout, f"job-{number:02}")
        self.entries = [JobEntry(id=f"job-{number:02}", layout=self.layout) for number in range(count)]
        self.seen: list[tuple[str, Outcome]] = []
        self.at_once, self.most_at_once = 0, 0
        self.hang: dict[str, threading.Event] = {}
        self.broken: dict[str, Exception] = {}
        self.stalls = False
        self.wanted, self.enough = -1, anyio.Event()
        self.disk = ThreadDisk(threads=READERS)
        self.reading = FirstReading(
            self.entries,
            clock=self,
            reads=self.disk,
            load=self.load,
            took=self.took,  # type: ignore[arg-type]
        )

    async def wait(self, seconds: float) -> None:
        """The clock's: a moment passes only where a test says so."""
        if not self.stalls:
            await anyio.sleep_forever()
        await anyio.sleep(0.02)

    def load(self, folder: Path) -> Recovered:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            return self._load(folder)
        finally:
            self.at_once -= 1

    def _load(self, folder: Path) -> Recovered:
        if gate := self.hang.get(folder.name):
            assert gate.wait(30)
        if error := self.broken.get(folder.name):
            raise error
        return recovery.load(folder, world.apply)

    async def took(self, entry: JobEntry, outcome: Outcome) -> None:
        self.seen.append((entry.id, outcome))
        if len(self.seen) == self.wanted:
            self.enough.set()
        if isinstance(outcome, DamagedError):
            await anyio.lowlevel.checkpoint()
            entry.stage = Stage.ASIDE

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            await group.start(self.disk.run)
            with anyio.fail_after(30):
                await self.reading.run()
            self.disk.close()

    def names(self) -> list[str]:
        return [name for name, _ in self.seen]


async def test_every_job_is_read_once_by_one_thread(tmp_path: Path) -> None:
    """While jobs come back, one thread reads them all, in their order."""
    bench = Bench(tmp_path, MANY)
    await bench.run()

    assert [entry.id for entry in bench.entries] == bench.names()
    assert all(isinstance(outcome, Recovered) for _, outcome in bench.seen)
    assert 1 == bench.most_at_once


async def test_empty_store_is_read_at_once(tmp_path: Path) -> None:
    """No job is no reason to wait."""
    bench = Bench(tmp_path, 0)
    await bench.run()

    assert [] == bench.seen


async def test_job_that_hangs_holds_up_its_own_place_only(tmp_path: Path) -> None:
    """C19: all that were read before it, and all that come after it, are there while it hangs."""
    bench = Bench(tmp_path, MANY)
    bench.stalls, bench.wanted = True, MANY - 1
    gate = bench.hang["job-03"] = threading.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(bench.run)
        with anyio.fail_after(30):
            await bench.enough.wait()
        hung = set(bench.names())
        gate.set()

    assert "job-03" not in hung
    assert "job-03" == bench.names()[-1]
    assert MANY == len(set(bench.names())) == len(bench.seen)


async def test_one_that_fails_stops_no_other(tmp_path: Path) -> None:
    """What cannot be read is told with its error, and whoever deals with it is waited for at the end."""
    bench = Bench(tmp_path, MANY)
    bench.broken = {"job-01": DamagedError("rotten"), "job-02": RuntimeError("a fault of ours")}
    await bench.run()

    told = dict(bench.seen)
    assert MANY == len(told)
    assert [bench.broken["job-01"], bench.broken["job-02"]] == [told["job-01"], told["job-02"]]
    assert Stage.ASIDE is bench.entries[1].stage


async def test_job_that_is_asked_for_is_next(tmp_path: Path) -> None:
    """Somebody's request does not wait for a hundred thousand others; no job is read twice for it."""
    bench = Bench(tmp_path, MANY)
    last = bench.entries[-1]
    bench.reading.hurry(last)
    bench.reading.hurry(last)
    await bench.run()
    bench.reading.hurry(last)

    assert last.id == bench.names()[0]
    assert MANY == len(bench.names()) == len(set(bench.names()))


def test_entry_makes_what_is_asked_for_and_drops_it_at_rest(tmp_path: Path) -> None:
    """A parked job keeps what is undecided and what is open, and nothing else."""
    entry = JobEntry(id="job-1", layout=Layout(tmp_path))
    looked = [entry.there(name) for name in ("box", "running", "folder")]
    entry.running["", 1] = "worker-1"
    entry.answers["", 1] = object()  # type: ignore[assignment]
    entry.box.put(Message(events.Pause(by=Person(uid=1, name="anna"))))
    entry.stopping.add(("", 1))
    entry.stopping.clear()
    folder = entry.folder
    entry.rest()
    mail = entry.has_mail
    entry.box.take()
    entry.box.adopted()
    entry.running.clear()
    entry.rest()

    assert [None, None, None] == looked
    assert tmp_path / "jobs" / folder.parent.name / "job-1" == folder
    assert (True, False) == (mail, entry.has_mail)
    assert Stage.PARKED is entry.stage
    assert [None] * 5 == [entry.there(name) for name in ("box", "running", "answers", "stopping", "folder")]


def test_entry_has_nothing_of_another_name(tmp_path: Path) -> None:
    """A word that is misspelt is an error, not a new thing."""
    with pytest.raises(AttributeError, match="no foldr"):
        JobEntry(id="job-1", layout=Layout(tmp_path)).foldr  # type: ignore[attr-defined]  # noqa: B018
