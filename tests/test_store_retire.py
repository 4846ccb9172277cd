"""A job leaves the quarantine or the archive: whole or not at all, whatever dies; its id stays known."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import world
from faults.disk import Disk, materialise, states
from faults.seam import Fail, Kill, Killed, Seam

from resumed.schemas.errors import CommitError, DamagedError, StoreError
from resumed.store import admission, archive, durable, fsck, layout, quarantine, recovery, retire
from resumed.store.layout import Layout

JOB = "harbour-7"
FAREWELL = retire.Farewell(id=JOB, how="discarded", by="anna", at=world.moment(9), reason="not ours")


def made(root: Path) -> Layout:
    """A store with one job that was worked on."""
    place = world.store(root)
    opened = world.open_job(world.admit(place, JOB))
    world.append(opened, 3)
    opened.close()
    (place.job(JOB) / "artifacts").mkdir()
    (place.job(JOB) / "artifacts" / ("0" * 64)).write_bytes(b"x")
    return place


def aside(root: Path) -> Layout:
    """The job is set aside."""
    place = made(root)
    quarantine.set_aside(place, JOB, "damaged", "line 3 is broken", world.moment(5))
    return place


def ended(root: Path) -> Layout:
    """The job is in the archive."""
    place = made(root)
    archive.move(place, JOB)
    return place


def rest(place: Layout) -> list[str]:
    """Everything below the store that bears the job's id, but for what is known of it."""
    return sorted(str(path.relative_to(place.root)) for path in place.root.rglob(f"*{JOB}*"))


def lives(place: Layout) -> bool:
    """Whether the job lies whole in its place, and loads."""
    return 4 == recovery.load(place.job(JOB), world.apply).sequence


def test_restored_job_is_whole_and_in_its_place(tmp_path: Path) -> None:
    """A job whose files hold goes back as it is, and its reason is forgotten."""
    place = aside(tmp_path / "store")
    folder = retire.restore(place, JOB, world.apply)

    assert (place.job(JOB), True) == (folder, lives(place))
    assert () == quarantine.entries(place)


def test_job_that_still_does_not_load_stays_where_it_is(tmp_path: Path) -> None:
    """A restore is refused with what is wrong, and moves nothing."""
    place = aside(tmp_path / "store")
    log = place.quarantine / JOB / "1.1.log"
    log.write_bytes(log.read_bytes()[:80] + b"XX" + log.read_bytes()[82:])
    with Seam() as seam, pytest.raises(DamagedError, match="its first line does not verify"):
        retire.restore(place, JOB, world.apply)

    assert [] == seam.calls
    assert "damaged" == quarantine.entries(place)[0].reason


def test_restore_replaces_nothing(tmp_path: Path) -> None:
    """A job of the same id, open or ended, is never overwritten; a folder of another job is no such job."""
    place = aside(tmp_path / "store")
    for other in (place.job(JOB), place.archived(JOB)):
        other.mkdir(parents=True, exist_ok=True)
        with pytest.raises(StoreError, match="there is a job of that id"):
            retire.restore(place, JOB, world.apply)
        other.rmdir()
    (place.quarantine / JOB).rename(place.quarantine / "pier-1")
    with pytest.raises(DamagedError, match=f"holds the job {JOB}"):
        retire.restore(place, "pier-1", world.apply)


def test_discarded_job_is_gone_and_its_id_is_taken(tmp_path: Path) -> None:
    """What was given up leaves only its name, which says who gave it up, when and why."""
    place = aside(tmp_path / "store")
    retire.discard(place, FAREWELL)

    assert [] == rest(place)
    assert (FAREWELL, True) == (retire.farewell_of(place, JOB), layout.taken(place, JOB))
    assert (None, False) == (retire.farewell_of(place, "pier-1"), layout.taken(place, "pier-1"))
    with pytest.raises(FileExistsError):
        world.admit(place, JOB)


def test_pruned_job_is_gone_and_its_id_is_taken(tmp_path: Path) -> None:
    """A finished job that was pruned cannot come again under its id."""
    place = ended(tmp_path / "store")
    retire.prune(place, FAREWELL)

    assert ([], ()) == (rest(place), archive.ids(place))
    assert layout.taken(place, JOB)


@pytest.mark.parametrize("give_up", [retire.discard, retire.prune])
def test_job_that_is_not_there_cannot_be_given_up(
    give_up: Callable[[Layout, retire.Farewell], None], tmp_path: Path
) -> None:
    """An open job is not given up, and no id is taken for nothing."""
    place = made(tmp_path / "store")
    with Seam() as seam, pytest.raises(StoreError, match="it is not there"):
        give_up(place, FAREWELL)

    assert ([], True) == (seam.calls, lives(place))


# ---- kills, refusing disks, power cuts --------------------------------------------------------------------

Act = Callable[[Layout], Any]
WAYS: dict[str, tuple[Callable[[Path], Layout], Act]] = {
    "restore": (aside, lambda place: retire.restore(place, JOB, world.apply)),
    "discard": (aside, lambda place: retire.discard(place, FAREWELL)),
    "prune": (ended, lambda place: retire.prune(place, FAREWELL)),
}


def calls(way: str, root: Path) -> int:
    """How many calls of the disk there are to hit."""
    start, act = WAYS[way]
    place = start(root)
    with Seam() as seam:
        act(place)
    shutil.rmtree(root)
    return len(seam.calls)


def settle(way: str, place: Layout) -> None:
    """The next start, and whoever asks again."""
    admission.clean(place)
    assert layout.taken(place, JOB)
    assert [] == [path for path in place.root.rglob("*") if durable.is_temporary(path.name)]
    places = (place.job(JOB), place.quarantine / JOB, place.archived(JOB))
    there = [path for path in places if path.exists()]
    if there:
        assert 1 == len(there)
        assert 4 == recovery.load(there[0], world.apply).sequence
    if there and there[0] != place.job(JOB):
        WAYS[way][1](place)


def check(way: str, place: Layout) -> None:
    """What holds once it is done."""
    if way == "restore":
        assert lives(place)
        assert () == quarantine.entries(place)
    else:
        assert [] == rest(place)
        assert FAREWELL == retire.farewell_of(place, JOB)
    assert layout.taken(place, JOB)


@pytest.mark.parametrize("way", WAYS)
def test_kill_leaves_the_job_whole_or_gone(way: str, ram: Path) -> None:
    """At every call: the id is never free, the job never half there, and asking again ends it."""
    start, act = WAYS[way]
    for at in range(calls(way, ram / "rehearsal")):
        for when in ("before", "after"):
            place = start(ram / "store")
            with Seam(Kill(at, when)) as seam, pytest.raises(Killed):
                act(place)
            assert seam.hit
            settle(way, place)
            check(way, place)
            shutil.rmtree(place.root)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_refusing_disk_leaves_the_job_whole_or_gone(way: str, code: int, ram: Path) -> None:
    """Whatever the disk refuses: an error of ours, or a left-over for the next start."""
    start, act = WAYS[way]
    for at in range(calls(way, ram / "rehearsal")):
        place = start(ram / "store")
        with Seam(Fail(at, code)) as seam:
            try:
                act(place)
            except (CommitError, StoreError):
                pass
        assert seam.hit
        settle(way, place)
        check(way, place)
        shutil.rmtree(place.root)


@pytest.mark.parametrize("way", WAYS)
def test_power_cut_loses_no_promise(way: str, ram: Path) -> None:
    """What was answered is found after a power cut; what was not, is whole or can be asked for again."""
    start, act = WAYS[way]
    place = start(ram / "store")
    disk = Disk(root=place.root)
    with disk:
        act(place)
        disk.tell(way)
    seen = 0
    for state in states(disk, most=40, seed=7):
        seen += 1
        (ram / "after").mkdir()
        after = Layout(materialise(state.tree, ram / "after"))
        if state.told:
            admission.clean(after)
            assert not (after.quarantine / JOB).exists()
            assert not after.archived(JOB).exists()
        else:
            settle(way, after)
        check(way, after)
        shutil.rmtree(after.root)
    assert seen >= 3


def test_left_over_is_no_job(tmp_path: Path) -> None:
    """A folder on its way out is in no list, and `fsck` calls it what it is."""
    place = aside(tmp_path / "store")
    durable.rename_new(place.quarantine / JOB, durable.temporary(place.quarantine / JOB))
    codes = [one.code for one in fsck.check(place.root, world.apply).findings]

    assert () == quarantine.entries(place)
    assert {"temporary", "unfinished"} <= set(codes)


def test_reason_of_a_move_that_was_cut_short_stays(tmp_path: Path) -> None:
    """Only the reasons of jobs that were given up are cleared away at a start."""
    place = made(tmp_path / "store")
    with Seam() as rehearsal:
        quarantine.set_aside(place, JOB, "damaged", "x", world.moment(5))
    retire.restore(place, JOB, world.apply)
    move = rehearsal.names().index("rename_new", rehearsal.names().index("rename_new") + 1)
    with Seam(Kill(move)), pytest.raises(Killed):
        quarantine.set_aside(place, JOB, "damaged", "x", world.moment(5))
    before = quarantine.reason_path(place, JOB).exists()
    admission.clean(place)

    assert (True, True) == (before, quarantine.reason_path(place, JOB).exists())
