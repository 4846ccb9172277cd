"""Several jobs admitted at once: each wholly there or wholly absent, and one that fails costs no other."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from faults import story, world
from faults.disk import Disk, materialise, states
from faults.seam import Fail, Fault, Kill, Killed, Seam

from resumed.actors.admissions import Admissions
from resumed.actors.disk import InlineDisk, ThreadDisk
from resumed.schemas.errors import CommitError, StoreError
from resumed.schemas.snapshot import Admission, Line
from resumed.store import admissions, durable, layout, recovery

TOGETHER = ("quay", "mole", "pier-174")
"""The first and the last fall in one shard."""
SEED = 11


def told(names: tuple[str, ...] = TOGETHER) -> list[tuple[Admission, Line]]:
    """What the store is handed of so many jobs."""
    return [(world.admission_of(name), world.first_line(name)) for name in names]


@pytest.fixture
def place(tmp_path: Path) -> layout.Layout:
    """An empty store."""
    return world.store(tmp_path / "store")


def loads(place: layout.Layout, name: str) -> bool:
    """Whether the job is there and whole."""
    return recovery.load(place.job(name), world.apply).admission == world.admission_of(name)


@pytest.mark.parametrize("count", [1, 2, 32, 70])
@pytest.mark.parametrize("by_kernel", [True, False], ids=["grouped", "plain"])
def test_each_job_is_there_whole(
    count: int, by_kernel: bool, place: layout.Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many come in together, and whether or not the kernel takes them together, each one loads."""
    if not by_kernel:
        monkeypatch.setattr(durable, "_own_group", lambda: None)
    names = tuple(f"job-{number}" for number in range(count))
    shards: set[Path] = set()

    assert [None] * count == admissions.admit_each(place, told(names), shards)
    assert all(loads(place, name) for name in names)
    assert {place.job(name).parent for name in names} == shards
    assert [] == [path for path in place.root.rglob("*") if durable.is_temporary(path.name)]


def an_id_that_is_there(place: layout.Layout) -> None:
    world.admit(place, "mole")


def an_id_of_before(place: layout.Layout) -> None:
    place.archived("mole").mkdir(parents=True)


def a_file_for_a_shard(place: layout.Layout) -> None:
    place.job("mole").parent.write_bytes(b"")


IN_THE_WAY: dict[str, tuple[Callable[[layout.Layout], None], type[Exception]]] = {
    "an id that is there": (an_id_that_is_there, FileExistsError),
    "an id of before": (an_id_of_before, FileExistsError),
    "a file where a folder belongs": (a_file_for_a_shard, CommitError),
}


@pytest.mark.parametrize("case", IN_THE_WAY)
def test_one_that_fails_costs_no_other(case: str, place: layout.Layout) -> None:
    """What stands in one job's way is that job's error alone, of the kind it would have met by itself."""
    prepare, kind = IN_THE_WAY[case]
    prepare(place)
    found = admissions.admit_each(place, told(), set())

    assert [None, kind, None] == [None if error is None else type(error) for error in found]
    assert loads(place, "quay")
    assert loads(place, "pier-174")


def test_the_same_id_twice_is_one_job(place: layout.Layout) -> None:
    """Of two jobs of one id that come in together the first is made, and the second hears of it."""
    found = admissions.admit_each(place, told(("quay", "quay")), set())

    assert [None, FileExistsError] == [None if error is None else type(error) for error in found]
    assert loads(place, "quay")


def test_a_known_shard_costs_no_sync(place: layout.Layout) -> None:
    """The folder of shards is synced for those that are new to this process, and for no others."""
    shards: set[Path] = set()
    synced = []
    for name in ("quay", "pier-174"):
        with Seam() as seam:
            assert [None] == admissions.admit_each(place, told((name,)), shards)
        synced.append([call.about for call in seam.calls if call.name == "sync_folder"].count("jobs"))

    assert [1, 0] == synced


# ---- kills, power cuts and a refusing disk -----------------------------------------------------------------


def tell(teller: story.Teller) -> None:
    """A store, and the jobs; those that became durable are told."""
    place = layout.create(teller.disk.root, "store-1", world.moment(0))
    for name in TOGETHER:
        teller.tried.lines.setdefault((name, 1), set()).add(digest_of(name))
    for name, failed in zip(TOGETHER, admissions.admit_each(place, told(), set()), strict=True):
        if failed is None:
            teller.disk.tell(story.Told("line", name, 1, digest_of(name)))


def digest_of(name: str) -> str:
    """The digest of the job's first line."""
    return world.line_io.spell_line(world.first_line(name))[1]


def fresh(ram: Path, name: str = "store") -> Path:
    """An empty folder."""
    shutil.rmtree(ram / name, ignore_errors=True)
    (ram / name).mkdir()
    return ram / name


def play(root: Path, fault: Fault) -> tuple[Disk, story.Tried]:
    """The story until the fault ends it."""
    disk = Disk(fault, root=root)
    teller = story.Teller(disk)
    with disk:
        try:
            tell(teller)
        except (Killed, StoreError):
            pass
    return disk, teller.tried


def check(root: Path, heard: tuple[story.Told, ...], tried: story.Tried, why: object) -> None:
    """A restart finds every job that was told, and no half of any."""
    story.restart(root, tried)
    assert [] == story.broken_laws(root, heard, tried), why


def heard_by(disk: Disk) -> tuple[story.Told, ...]:
    """What was told before the story broke off."""
    return tuple(what for _, what in disk.told)


def test_kill_at_any_call_leaves_each_job_whole_or_absent(ram: Path) -> None:
    """Whatever call a kill hits, the restart finds whole jobs, and nothing half made."""
    whole, _ = play(fresh(ram), None)
    for call in whole.calls:
        for when in ("before", "half", "after") if call.name == "pwrite" else ("before", "after"):
            disk, tried = play(fresh(ram), Kill(call.number, when))
            assert disk.hit
            check(disk.root, heard_by(disk), tried, (call, when))


def test_power_cut_at_any_point_keeps_what_was_told(ram: Path) -> None:
    """Whatever unsynced bytes and names a power cut takes, a job that was told is there."""
    disk, tried = play(fresh(ram), None)
    assert len(TOGETHER) == len(disk.told)
    for state in states(disk, most=24, seed=SEED):
        root = materialise(state.tree, fresh(ram, "after"))
        check(root, state.told, tried, (SEED, state.point, state.why))


def test_power_cut_drill_sees_a_missing_sync(ram: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drill would notice: without the shards' syncs, jobs that were told are lost."""
    disk = Disk(root=fresh(ram))
    teller = story.Teller(disk)
    with disk:
        real = durable.sync_folder
        monkeypatch.setattr(durable, "sync_folder", lambda p: None if p.parent.name == "jobs" else real(p))
        tell(teller)
        monkeypatch.undo()
    broken = 0
    for state in states(disk, most=24, seed=SEED):
        root = materialise(state.tree, fresh(ram, "after"))
        story.restart(root, teller.tried)
        broken += bool(story.broken_laws(root, state.told, teller.tried))

    assert broken > 0


def test_refusing_disk_loses_nothing_told(ram: Path) -> None:
    """EIO or ENOSPC at any call is the error of the jobs it was for; what the others were told holds."""
    whole, _ = play(fresh(ram), None)
    partly = 0
    for call in whole.calls:
        for number in (errno.EIO, errno.ENOSPC):
            disk, tried = play(fresh(ram), Fail(call.number, number))
            partly += 0 < len(disk.told) < len(TOGETHER)
            check(disk.root, heard_by(disk), tried, (call, number))

    assert partly > 0


# ---- those who wait ----------------------------------------------------------------------------------------


async def admitted(gate: Admissions, name: str, said: dict[str, Exception | None]) -> None:
    """Admit one job and note how it went."""
    said[name] = None
    try:
        await gate.admit(world.admission_of(name), world.first_line(name))
    except (CommitError, FileExistsError) as error:
        said[name] = error


@pytest.mark.anyio
async def test_all_who_wait_are_answered(place: layout.Layout) -> None:
    """More at once than one call takes: each is durable when it is answered, a conflict is its own."""
    world.admit(place, "job-7")
    disk = ThreadDisk()
    gate = Admissions(place, disk)
    said: dict[str, Exception | None] = {}
    async with anyio.create_task_group() as outer:
        await outer.start(disk.run)
        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(admitted, gate, f"job-{number}", said)
        disk.close()

    assert ["job-7"] == [name for name, error in said.items() if error is not None]
    assert isinstance(said["job-7"], FileExistsError)
    assert all(loads(place, name) for name in said)


class Gated(InlineDisk):
    """A disk whose calls begin when the gate is opened."""

    def __init__(self) -> None:
        self.asked, self.gate = anyio.Event(), anyio.Event()

    async def call(self, function, *args):  # type: ignore[no-untyped-def]
        self.asked.set()
        with anyio.CancelScope(shield=True):
            await self.gate.wait()
        return function(*args)


@pytest.mark.anyio
async def test_whoever_is_cut_off_leaves_nobody_waiting(place: layout.Layout) -> None:
    """A waiter that is cancelled, the next to lead among them, is waited for; all others are answered."""
    disk = Gated()
    gate = Admissions(place, disk)
    said: dict[str, Exception | None] = {}
    with anyio.fail_after(30):
        async with anyio.create_task_group() as outer, anyio.create_task_group() as doomed:
            doomed.start_soon(admitted, gate, "first", said)
            await disk.asked.wait()
            doomed.start_soon(admitted, gate, "second", said)
            await anyio.wait_all_tasks_blocked()
            outer.start_soon(admitted, gate, "third", said)
            await anyio.wait_all_tasks_blocked()
            doomed.cancel_scope.cancel()
            disk.gate.set()

    assert all(loads(place, name) for name in ("first", "second", "third"))
    assert None is said["third"]


@pytest.mark.anyio
async def test_refusal_of_many_is_raised_by_a_call(place: layout.Layout) -> None:
    """Who watches the disk hears of a refusal among many as of a call's own."""
    heard: list[Exception] = []

    class Listening(Gated):
        async def call(self, function, *args):  # type: ignore[no-untyped-def]
            try:
                return await super().call(function, *args)
            except CommitError as error:
                heard.append(error)
                raise

    disk = Listening()
    gate = Admissions(place, disk)
    a_file_for_a_shard(place)
    said: dict[str, Exception | None] = {}
    async with anyio.create_task_group() as group:
        group.start_soon(admitted, gate, "quay", said)
        await disk.asked.wait()
        for name in ("pier-174", "mole"):
            group.start_soon(admitted, gate, name, said)
        await anyio.wait_all_tasks_blocked()
        disk.gate.set()

    assert [said["mole"]] == heard
    assert [None, None] == [said["quay"], said["pier-174"]]
