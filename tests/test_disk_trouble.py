"""A disk that is full, read-only or failing: said, eased, waited out, and nothing of it lost or repeated."""

import errno
import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from resumed.actors import job, refusals, scratch, supervisor, trouble
from resumed.actors.clock import SystemClock
from resumed.actors.disk import InlineDisk
from resumed.actors.entry import Stage
from resumed.actors.house import House
from resumed.actors.trouble import DiskTrouble, WatchedDisk
from resumed.daemon.grants import Grants
from resumed.daemon.incoming import Incoming
from resumed.daemon.shelf import WorkflowShelf
from resumed.schemas.errors import CommitError
from resumed.schemas.events import Cancel, Pause
from resumed.schemas.instant import Instant
from resumed.schemas.job import Person, Status
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import Told
from resumed.store import durable, layout, reserve
from resumed.store.layout import Layout

FLOWS = {
    "quick": 'version = 1\n[[step]]\nname = "do"\nrun = ["true"]\nrepeatable = true\n',
    "slow": 'version = 1\n[[step]]\nname = "do"\nrun = ["sleep", "600"]\nrepeatable = true\ngrace = "1s"\n',
}
OURS = Grants(os.geteuid())
ANNA = Person(uid=os.geteuid(), name="anna", via="socket")


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Faults on purpose need no log, and no test waits long for the next look."""
    monkeypatch.setattr(trouble, "FIRST", 0.02)
    for module in (supervisor, job):
        monkeypatch.setattr(module, "RETRY_FIRST", 0.02)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class SmallDisk:
    """The disk behind the seam: `left` bytes are free (None: no end of them), or all of it is `broken`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.broken = 0
        self.real = {name: getattr(durable, name) for name in durable.MUTATING}
        for name in durable.MUTATING:
            patch.setattr(durable, name, self._guard(name))
        patch.setattr(durable, "space", lambda _: (2**40 if self.left is None else self.left, 1000))

    def _guard(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            if self.broken:
                raise OSError(self.broken, os.strerror(self.broken))
            freed = self._size(args[0]) + 1 if name == "unlink" else 0
            self._take(self._grows(name, args))
            found = self.real[name](*args)
            self._take(-freed)
            return found

        return call

    @staticmethod
    def _size(path: Path) -> int:
        try:
            return os.lstat(path).st_size
        except OSError:
            return 0

    @staticmethod
    def _grows(name: str, args: tuple[Any, ...]) -> int:
        if name == "pwrite":
            fd, raw, offset = args
            return max(0, offset + len(raw) - os.fstat(fd).st_size)
        if name == "truncate":
            return min(0, args[1] - os.fstat(args[0]).st_size)
        return {"create": 1, "make_folder": 1}.get(name, 0)

    def _take(self, size: int) -> None:
        if self.left is None:
            return
        if size > self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= size


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SmallDisk:
    return SmallDisk(monkeypatch)


@asynccontextmanager
async def lived(root: Path, most_workers: int = 1) -> AsyncIterator[House]:
    """A daemon's jobs over a store in `root`, with both workflows."""
    flows = root / "workflows.d"
    flows.mkdir(mode=0o755, exist_ok=True)
    for name, text in FLOWS.items():
        (flows / f"{name}.toml").write_text(text)
        (flows / f"{name}.toml").chmod(0o644)
    shelf = WorkflowShelf(flows)
    shelf.reload()
    store = layout.create(root / "state", "id", SystemClock().now())
    house = House(
        store,
        shelf,
        clock=SystemClock(),
        backend="either",
        most_workers=most_workers,
        shelf=lambda: (shelf.names(), shelf.problems),
    )
    async with anyio.create_task_group() as group:
        await group.start(house.run)
        yield house
        await house.drain(1)
        group.cancel_scope.cancel()


async def submit(house: House, name: str, workflow: str) -> Told | Refusal:
    job = {"workflow": workflow, "id": name, "items": ["a"]}
    return await house.jobs.submit(
        json.dumps(job).encode(), name=f"{name}.json", requester=ANNA, via="socket"
    )


async def until(look: Callable[[], bool]) -> None:
    """Return once it is so."""
    with anyio.fail_after(20):
        while True:
            if look():
                return
            await anyio.sleep(0.01)


def status(house: House, name: str) -> Status | None:
    """An open job's status."""
    return next((row.status for row in house.jobs.rows() if row.id == name), None)


async def ended(house: House) -> dict[str, Status]:
    return {row.id: row.status for row in await house.jobs.ended()}


def reason_of(told: Told | Refusal) -> str:
    return told.reason if isinstance(told, Refusal) else told.said


@pytest.mark.anyio
async def test_full_disk_pauses_intake_and_goes_on_by_itself(tmp_path: Path, disk: SmallDisk) -> None:
    """On a full disk a cancel holds at the first try and nothing is taken in; room ends it, no restart."""
    async with lived(tmp_path) as house:
        for name, workflow in (("busy", "slow"), ("waits", "quick"), ("goes-on", "quick")):
            assert isinstance(await submit(house, name, workflow), Told)
        await until(lambda: status(house, "busy") is Status.RUNNING)
        kept = (tmp_path / "state" / "reserve").stat().st_size
        disk.left = 0
        canceled = await house.jobs.tell("waits", Cancel(by=ANNA))
        refused = await submit(house, "late", "quick")
        troubles = house.jobs.house().troubles
        also = await house.jobs.tell("busy", Cancel(by=ANNA))
        at_rest = status(house, "goes-on")
        gone = not (tmp_path / "state" / "reserve").exists()
        disk.left = None
        await until(lambda: not house.trouble.said)
        accepted = await submit(house, "late", "quick")
        await until(lambda: not house.jobs.rows())
        outcomes = await ended(house)

    assert reserve.SIZE == kept
    assert "canceled" in reason_of(canceled)
    assert "canceled" in reason_of(also)
    assert isinstance(refused, Refusal)
    assert (refusals.DISK, ("resumectl status",)) == (refused.code, refused.commands)
    assert (
        "cannot take in late.json: the disk is full; hand it in again once the disk works" == refused.reason
    )
    assert troubles[0].startswith("the disk is full (")
    assert (Status.READY, True) == (at_rest, gone)
    assert isinstance(accepted, Told)
    assert {
        "busy": Status.CANCELED,
        "waits": Status.CANCELED,
        "goes-on": Status.COMPLETED,
        "late": Status.COMPLETED,
    } == outcomes
    assert (tmp_path / "state" / "reserve").stat().st_size == reserve.SIZE


@pytest.mark.anyio
@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS, errno.EDQUOT])
async def test_disk_that_refuses_all_is_waited_out(number: int, tmp_path: Path, disk: SmallDisk) -> None:
    """While every write fails nothing is promised, nothing taken in; when the disk works all goes on."""
    async with lived(tmp_path, most_workers=4) as house:
        assert isinstance(await submit(house, "busy", "slow"), Told)
        assert isinstance(await submit(house, "waits", "slow"), Told)
        await house.jobs.tell("waits", Pause(by=ANNA, now=True))
        await until(lambda: house.supervisor.entries["waits"].stage is Stage.PARKED)
        await until(lambda: status(house, "busy") is Status.RUNNING)
        disk.broken = number
        with pytest.raises(CommitError):
            await house.jobs.tell("waits", Cancel(by=ANNA))
        refused = await submit(house, "late", "quick")
        said = house.trouble.said
        disk.broken = 0
        await until(lambda: not house.trouble.said)
        answers = [await house.jobs.tell(each, Cancel(by=ANNA)) for each in ("waits", "busy")]
        late = await submit(house, "late", "quick")
        await until(lambda: not house.jobs.rows())
        outcomes = await ended(house)

    assert trouble.SAYS[number] == said
    assert isinstance(refused, Refusal)
    assert [Told, Told, Told] == [type(each) for each in (*answers, late)]
    assert {"busy": Status.CANCELED, "waits": Status.CANCELED, "late": Status.COMPLETED} == outcomes


@pytest.mark.anyio
async def test_a_try_without_room_is_no_failed_try(
    tmp_path: Path, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that a full disk refuses costs the item none of its tries: it runs when there is room."""
    refused: list[Path] = []

    def make(folder: Path) -> None:
        if not refused:
            refused.append(folder)
            raise CommitError("no room", path=str(folder), errno=errno.ENOSPC)
        real(folder)

    real = scratch.make
    monkeypatch.setattr(scratch, "make", make)
    async with lived(tmp_path) as house:
        await submit(house, "one", "quick")
        await until(lambda: not house.jobs.rows())
        view = await house.jobs.view("one")

    assert not isinstance(view, Refusal)
    assert (1, Status.COMPLETED, 0) == (len(refused), view.row.status, view.items[0].failures)


@pytest.mark.anyio
async def test_dropped_files_wait_for_the_disk(tmp_path: Path, disk: SmallDisk) -> None:
    """While the disk is in trouble a dropped file stays where it is, and a claimed one stays claimed."""
    async with lived(tmp_path) as house:
        store = house.layout
        watching = Incoming(store, house.jobs, SystemClock(), OURS, lambda: house.trouble.said)
        hasty = Incoming(store, house.jobs, SystemClock(), OURS)
        disk.left = 0
        house.trouble.noticed(OSError(errno.ENOSPC, "x"))
        for name in ("one", "two"):
            drop(store, name)
        await watching.scan()
        first = sorted(os.listdir(store.incoming)), os.listdir(store.claimed)
        (store.incoming / "two.json").rename(store.claimed / "two.json")
        await hasty.scan()
        second = os.listdir(store.incoming), sorted(os.listdir(store.claimed)), os.listdir(store.rejected)
        disk.left = None
        await until(lambda: not house.trouble.said)
        await watching.scan()
        await until(lambda: not house.jobs.rows())
        outcomes = await ended(house)

    assert (["one.json", "two.json"], []) == first
    assert ([], ["one.json", "two.json"], []) == second
    assert dict.fromkeys(("one", "two"), Status.COMPLETED) == outcomes


def drop(store: Layout, name: str) -> None:
    """A job file in the watched folder, written a while ago."""
    path = store.incoming / f"{name}.json"
    path.write_text(json.dumps({"workflow": "quick", "id": name, "items": ["a"]}))
    path.chmod(0o600)
    os.utime(path, (1, 1))


@pytest.mark.anyio
async def test_daemon_starts_on_a_full_disk(tmp_path: Path, disk: SmallDisk) -> None:
    """A start that finds no room for its reserve comes up, says so, takes nothing in, and gets over it."""
    async with lived(tmp_path):
        pass
    (tmp_path / "state" / "reserve").unlink()
    disk.left = 100
    async with lived(tmp_path) as house:
        said = house.trouble.said
        refused = await submit(house, "late", "quick")
        disk.left = None
        await until(lambda: not house.trouble.said)
        late = await submit(house, "late", "quick")
        await until(lambda: not house.jobs.rows())

    assert "the disk is full" == said
    assert [Refusal, Told] == [type(refused), type(late)]


# ---- by itself ------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Layout:
    return layout.create(tmp_path / "state", "id", Instant(wall=1, boot="b", up=1))


ERRORS = {
    "full": (CommitError("x", errno=errno.ENOSPC), "the disk is full"),
    "quota": (CommitError("x", errno=errno.EDQUOT), "the disk quota is used up"),
    "read-only": (OSError(errno.EROFS, "x"), "the disk is read-only"),
    "failing": (CommitError("x", errno=errno.EIO), "the disk fails"),
    "a name that is taken": (FileExistsError(errno.EEXIST, "x"), ""),
    "too large": (CommitError("x", errno=errno.EFBIG), ""),
    "no descriptor left": (OSError(errno.EMFILE, "x"), ""),
    "no errno": (CommitError("x"), ""),
}


@pytest.mark.parametrize("case", ERRORS)
def test_trouble_is_known_by_its_errno(case: str, store: Layout) -> None:
    """Only what says something of the whole disk is trouble of it."""
    error, said = ERRORS[case]
    told: list[bool] = []
    one = DiskTrouble(store, SystemClock(), InlineDisk(), told.append)

    assert bool(said) == one.noticed(error)
    assert one.noticed(error) == bool(said)  # noted again, told once
    assert (said, [True] if said else []) == (one.said, told)


@pytest.mark.anyio
async def test_reserve_is_given_up_once(store: Layout) -> None:
    """The first commit that finds no room is told to try again; those after it wait, and so does all else."""
    one = DiskTrouble(store, SystemClock(), InlineDisk(), lambda _: None)
    await one.prepare()
    watched = WatchedDisk(InlineDisk(), one)
    eased = []

    def fail(number: int) -> None:
        raise CommitError("x", errno=number)

    for number in (errno.EIO, errno.ENOSPC, errno.ENOSPC):
        with pytest.raises(CommitError) as caught:
            await watched.call(fail, number)
        assert (store.root / reserve.NAME).exists() != any(eased)
        eased.append(await one.ease(caught.value))

    assert [False, True, False] == eased
    assert not (store.root / reserve.NAME).exists()


@pytest.mark.anyio
async def test_room_for_the_reserve_alone_is_not_enough(store: Layout, disk: SmallDisk) -> None:
    """Made of the last free block the reserve would be given up at once, so a little more must be free."""
    disk.left = reserve.SIZE + reserve.SPARE - 1
    too_little = reserve.trial(store)
    left = disk.left
    disk.left = reserve.SIZE + reserve.SPARE + len(reserve.TRIAL)

    assert (errno.ENOSPC, reserve.SIZE + reserve.SPARE - 1) == (too_little, left)
    assert 0 == reserve.trial(store)


@pytest.mark.anyio
@pytest.mark.parametrize("number", [errno.EROFS, errno.EIO])
async def test_start_on_a_disk_that_refuses_says_which(number: int, store: Layout, disk: SmallDisk) -> None:
    """A disk that is read-only or fails from the first moment is not called full."""
    one = DiskTrouble(store, SystemClock(), InlineDisk(), lambda _: None)
    disk.broken = number
    await one.prepare()

    assert trouble.SAYS[number] == one.said


def test_what_lies_in_a_store_after_a_look_is_the_reserve(store: Layout) -> None:
    """A look whether the disk works leaves nothing but the reserve."""
    before = set(os.listdir(store.root))
    for _ in range(2):
        assert 0 == reserve.trial(store)

    assert {reserve.NAME} == set(os.listdir(store.root)) - before
