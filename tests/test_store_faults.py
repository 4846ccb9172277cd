"""The store under kills, power cuts, refusing disks and failed reads, at every point of one long story."""

import errno
import itertools
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from faults import story
from faults.disk import Disk, materialise, states
from faults.seam import Fail, FailLook, Fault, Kill, Killed, Short

from resumed.schemas.errors import StoreError
from resumed.store import durable, files, journal, recovery

SEED = 7
pytestmark = pytest.mark.timeout(3600)  # at the full count, and beside other work, these take minutes
ERRNOS = (errno.EIO, errno.ENOSPC, errno.EMFILE)


def fresh(ram: Path, name: str = "store") -> Path:
    """An empty folder, whatever was there before."""
    root = ram / name
    if root.exists():
        shutil.rmtree(root)
    root.mkdir()
    return root


def told_of(disk: Disk) -> tuple[story.Told, ...]:
    """What somebody could have heard before the story broke off."""
    return tuple(what for _, what in disk.told)


def play(root: Path, fault: Fault) -> tuple[Disk, story.Tried, BaseException | None]:
    """The story until the fault ends it."""
    disk = Disk(fault, root=root)
    teller = story.Teller(disk)
    ended: BaseException | None = None
    with disk:
        try:
            story.tell(teller)
        except (Killed, StoreError) as error:
            ended = error
    return disk, teller.tried, ended


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Disk, story.Tried]:
    """The story without a fault: what there is to hit."""
    disk, tried, ended = play(tmp_path_factory.mktemp("whole"), None)
    assert ended is None
    return disk, tried


def sample(population: list[Fault], share: float) -> list[Fault]:
    """A seeded part of the faults, all of them at a share of 1."""
    chance = random.Random(SEED)
    return chance.sample(population, max(1, min(len(population), round(len(population) * share))))


def kills(disk: Disk) -> list[Fault]:
    """Every way to die: before and after each call, and in the middle of each write."""
    found: list[Fault] = []
    for call in disk.calls:
        found += [Kill(call.number, "before"), Kill(call.number, "after")]
        if call.name == "pwrite":
            found.append(Kill(call.number, "half"))
    return found


def test_story_keeps_its_promises_without_a_fault(whole: tuple[Disk, story.Tried], ram: Path) -> None:
    """The laws hold when nothing goes wrong, and the story does everything that the store can do."""
    disk, tried = whole
    root = shutil.copytree(disk.root, ram / "copy")
    story.restart(root, tried)

    assert [] == story.broken_laws(root, told_of(disk), tried)
    assert set(durable.MUTATING) - {"open_lock", "remove_folder"} == set(disk.names())


def kill_once(root: Path, fault: Fault) -> None:
    """Die at one point, start again, and find every law kept."""
    disk, tried, ended = play(root, fault)
    assert disk.hit, fault
    assert isinstance(ended, Killed), fault
    story.restart(root, tried)
    assert [] == story.broken_laws(root, told_of(disk), tried), (fault, disk.calls[-1])


def test_store_survives_a_kill_at_every_call(whole: tuple[Disk, story.Tried], ram: Path) -> None:
    """Whatever call a kill hits, before, after or half-way: what was told is found after the restart."""
    for fault in kills(whole[0]):
        kill_once(fresh(ram), fault)


def kill_twice(ram: Path, first: Fault, share: float) -> int:
    """Die in the story, then at points of the restart, then start once more."""
    root = fresh(ram)
    disk, tried, _ = play(root, first)
    count = 0
    rehearsal = Disk(root=shutil.copytree(root, ram / "rehearsal"))
    with rehearsal:
        story.restart(rehearsal.root, tried)
    shutil.rmtree(rehearsal.root)
    for second in sample(kills(rehearsal), share):
        again = Disk(second, root=shutil.copytree(root, ram / "again"))
        with again, pytest.raises(Killed):
            story.restart(again.root, tried)
        assert again.hit
        story.restart(again.root, tried)
        assert [] == story.broken_laws(again.root, told_of(disk), tried), (first, second, again.calls[-1])
        shutil.rmtree(again.root)
        count += 1
    return count


def test_recovery_survives_being_killed(
    whole: tuple[Disk, story.Tried], ram: Path, faults_scale: float
) -> None:
    """A restart that is killed anywhere and made again ends where an undisturbed one does."""
    points = sample(kills(whole[0]), min(1.0, faults_scale * 2))

    assert 0 < sum(kill_twice(ram, first, faults_scale) for first in points)


def lose_power(
    ram: Path, disk: Disk, tried: story.Tried, most: int, points: range | None = None
) -> tuple[int, list[str]]:
    """All states that a power cut may leave, restarted: how many, and which laws they broke."""
    count, broken = 0, []
    for state in states(disk, most=most, seed=SEED, points=points):
        count += 1
        root = materialise(state.tree, fresh(ram, "after"))
        try:
            story.restart(root, tried)
            found = story.broken_laws(root, state.told, tried)
        except (StoreError, OSError, ValueError) as error:
            found = [repr(error)]
        if found:
            broken.append(f"seed {SEED}, after call {state.point}, {state.why}: {found}")
    return count, broken


def test_store_survives_a_power_cut(whole: tuple[Disk, story.Tried], ram: Path, faults_scale: float) -> None:
    """Whatever unsynced bytes and names a power cut loses, tears or reorders: what was told is found."""
    count, broken = lose_power(ram, *whole, max(8, round(100 * faults_scale)))

    assert [] == broken[:3]
    assert count > len(whole[0].calls)


def test_recovery_gives_the_same_snapshots_for_two_copies(
    whole: tuple[Disk, story.Tried], ram: Path, faults_scale: float
) -> None:
    """Recovery is a function of the files: two copies give the same jobs, also when recovered twice (C01)."""
    disk, tried = whole
    for state in itertools.islice(states(disk, most=6, seed=SEED + 1), None, None, 5):
        one = materialise(state.tree, fresh(ram, "one"))
        two = materialise(state.tree, fresh(ram, "two"))
        story.restart(one, tried)
        story.restart(two, tried)
        story.restart(two, tried)
        for job in {job for job, _ in tried.lines}:
            places = [story.find(story.layout.Layout(root), job) for root in (one, two)]
            found = [None if place is None else story.read(place)[0].snapshot for place in places]

            assert found[0] == found[1], (SEED + 1, state.point, state.why)


def cut_after_kill(
    ram: Path, first: Fault, most: int, then: Callable[[], object] = lambda: None
) -> tuple[int, list[str]]:
    """Die, start again and work on, and lose power at any point after that."""
    disk = Disk(first, root=fresh(ram))
    teller = story.Teller(disk)
    with disk:
        with pytest.raises(Killed):
            story.tell(teller)
        disk.revive()
        killed = len(disk.calls)
        then()
        story.go_on(teller)
    return lose_power(ram, disk, teller.tried, most, range(killed, len(disk.calls) + 1))


def test_store_survives_a_power_cut_after_a_kill(
    whole: tuple[Disk, story.Tried], ram: Path, faults_scale: float
) -> None:
    """What a killed process left in the page cache may be gone later: nothing was built upon it."""
    writes = [one for one in kills(whole[0]) if isinstance(one, Kill) and one.when != "before"]
    count = 0
    for first in sample([*writes], min(0.5, faults_scale)):
        states_seen, broken = cut_after_kill(ram, first, max(4, round(8 * faults_scale)))
        count += states_seen

        assert [] == broken[:3], first
    assert count > len(whole[0].calls)


def open_carelessly(folder: Path, recovered: recovery.Recovered) -> journal.Journal:
    """The order that is wrong: the next log is named above a line that was only read, never synced."""
    opened = journal.Journal(folder, recovered)
    name = files.LogName(recovered.sequence + 1, files.listing(folder).next_k(recovered.sequence + 1))
    opened.begin(name, b"", (recovered.sequence, recovered.digest), "opened", fill=True)
    return opened


def test_drill_sees_a_log_named_above_an_unsynced_line(
    whole: tuple[Disk, story.Tried], ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drill would notice: naming the next log over a tail that was only read gives a false quarantine."""
    commits = [call.number for call in whole[0].calls if call.name == "sync_data"]
    _, broken = cut_after_kill(
        ram, Kill(commits[2]), 16, lambda: monkeypatch.setattr(journal, "open_for_writing", open_carelessly)
    )

    assert any("DamagedError" in one for one in broken)


LEFT_OUT = {
    "the sync of a commit": "sync_data",
    "the sync of a new file": "sync_file",
    "the sync of a folder": "sync_folder",
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_power_cut_drill_sees_a_missing_sync(
    case: str, ram: Path, monkeypatch: pytest.MonkeyPatch, faults_scale: float
) -> None:
    """The drill would notice: a store that leaves out one kind of sync loses what it told."""
    name = LEFT_OUT[case]
    disk = Disk(root=fresh(ram, "careless"))
    teller = story.Teller(disk)
    with disk:
        monkeypatch.setattr(durable, name, lambda _: None)
        teller.lose_a_sync = lambda log: None  # type: ignore[method-assign]
        story.tell(teller)
        monkeypatch.undo()
    count, broken = lose_power(ram, disk, teller.tried, 8)

    assert count > len(broken) > 0


def refuse_once(root: Path, fault: Fault) -> bool:
    """One call fails: the story goes on or ends in an error of the store's, and nothing told is lost."""
    disk, tried, ended = play(root, fault)
    assert disk.hit, fault
    assert not isinstance(ended, Killed)
    story.restart(root, tried)
    assert [] == story.broken_laws(root, told_of(disk), tried), (fault, ended)
    return ended is not None


def test_store_survives_a_refusing_disk(
    whole: tuple[Disk, story.Tried], ram: Path, faults_scale: float
) -> None:
    """EIO, ENOSPC or EMFILE at any call ends in one of the store's errors, and loses nothing told."""
    points = [Fail(call.number, number) for call in whole[0].calls for number in ERRNOS]
    told = [refuse_once(fresh(ram), fault) for fault in sample([*points], min(1.0, faults_scale * 5))]

    assert any(told)


def test_store_survives_a_failed_look(
    whole: tuple[Disk, story.Tried], ram: Path, faults_scale: float
) -> None:
    """A failed read, open or listing is no verdict: nothing is lost, cut, moved or set aside."""
    looks = [FailLook(at, number) for at in range(whole[0].looks) for number in (errno.EIO, errno.EMFILE)]
    told = [refuse_once(fresh(ram), fault) for fault in sample([*looks], min(1.0, faults_scale * 5))]

    assert any(told)


def test_short_writes_are_looped_on(whole: tuple[Disk, story.Tried], ram: Path) -> None:
    """A write that takes one byte is gone on with: the store ends the same."""
    for call in whole[0].calls:
        if call.name != "pwrite":
            continue
        root = fresh(ram)
        disk, tried, ended = play(root, Short(call.number))
        story.restart(root, tried)

        assert (True, None) == (disk.hit, ended), call
        assert [] == story.broken_laws(root, told_of(disk), tried), call


CARELESS: dict[str, Callable[[Path], bool]] = {
    # Which folder's sync is left out, always, by its place. Not here: a shard of the archive, since a rename
    # between two folders is one event in the model, and the sync of the other folder carries it.
    "the folder of shards": lambda path: path.name == "jobs",
    "a shard of jobs": lambda path: path.parent.name == "jobs",
    "a job's own folder": lambda path: path.name == "harbour",
    "a job's artifacts": lambda path: path.name == "artifacts",
    "an admission's temp folder": lambda path: durable.is_temporary(path.name),
    "the archive's folder of shards": lambda path: path.name == "archive",
    "the quarantine": lambda path: path.name == "quarantine",
    "the names": lambda path: path.name == "names",
    "the workers": lambda path: path.name == "workers",
}


@pytest.mark.faults
@pytest.mark.parametrize("case", CARELESS)
def test_power_cut_drill_sees_each_folder_left_unsynced(
    case: str, ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drill would notice: none of these folders' syncs can be left out."""
    disk = Disk(root=fresh(ram, "careless"))
    teller = story.Teller(disk)
    with disk:
        real = durable.sync_folder
        monkeypatch.setattr(durable, "sync_folder", lambda p: None if CARELESS[case](p) else real(p))
        story.tell(teller)
        monkeypatch.undo()
    count, broken = lose_power(ram, disk, teller.tried, 24)

    assert count > len(broken) > 0


@pytest.mark.faults
def test_power_cut_during_recovery(whole: tuple[Disk, story.Tried], ram: Path) -> None:
    """A power cut in the restart after a power cut leaves what one restart more can go on from."""
    disk, tried = whole
    for state in itertools.islice(states(disk, most=12, seed=SEED + 2), None, None, 3):
        root = materialise(state.tree, fresh(ram, "first"))
        again = Disk(root=root)
        with again:
            story.restart(root, tried)
        for second in states(again, most=6, seed=SEED):
            other = materialise(second.tree, fresh(ram, "second"))
            story.restart(other, tried)

            broken = story.broken_laws(other, state.told, tried)
            assert [] == broken, (state.point, state.why, second.point, second.why)
