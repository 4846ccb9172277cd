"""The watched folder: what is whole becomes a job, what is unfit is refused, nothing is lost."""

import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from resumed.daemon import incoming
from resumed.daemon.grants import Grant, Grants, Role
from resumed.daemon.incoming import Incoming, PlacedLayout
from resumed.schemas import strict
from resumed.schemas.errors import CommitError, FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.job import Person, Status
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import JobRow, Told
from resumed.store import intake, layout
from resumed.store.layout import Layout

pytestmark = pytest.mark.anyio
LATER = 60_000_000
BREAKING = b'{"id": "breaks the door"}'


class StillClock:
    """A clock that stands a minute after all that the test has written, unless it is set."""

    def __init__(self) -> None:
        self.offset = LATER

    def now(self) -> Instant:
        import time

        return Instant(wall=time.time_ns() // 1000 + self.offset, boot="b", up=1)

    async def wait(self, seconds: float) -> None:
        await anyio.sleep(seconds)


STRANGER = 54_321
OURS = Grants(os.geteuid())


class Door:
    """Admits any JSON object once; remembers what it was handed."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes, str, Person, str]] = []
        self.jobs: dict[bytes, str] = {}
        self.failing = 0
        self.admitted = anyio.Event()
        self.slow: bytes | None = None
        self.asked, self.go_on = anyio.Event(), anyio.Event()

    async def submit(self, raw: bytes, *, name: str, requester: Person, via: str, may: Any) -> Told | Refusal:
        if not may("label"):
            return Refusal(code="not_permitted", reason="not of that workflow")
        self.seen.append((raw, name, requester, via))
        if raw == self.slow:
            self.asked.set()
            await self.go_on.wait()
        if self.failing:
            self.failing -= 1
            raise CommitError("a sync failed")
        if raw == BREAKING:
            raise KeyError("a fault of the door's own \ud83d")
        value = strict.parse(raw, f"cannot admit {name}")
        if not isinstance(value, dict):
            raise FaultyInputError(f"cannot admit {name}", ("expected object @ $",))
        if value.get("id") == "taken":
            return Refusal(code="id_taken", reason="the id is taken", commands=("resumectl show taken",))
        repeated = raw in self.jobs
        job = self.jobs.setdefault(raw, f"job-{len(self.jobs)}")
        self.admitted.set()
        row = JobRow(
            id=job, status=Status.READY, workflow="x", version=1, title="", owner="a", done=0, total=1,
            failed=0, held=0, running=0, since=0, created=0,
        )  # fmt: skip
        return Told(row=row, said=job, repeated=repeated)


class Folder:
    """A store's folders, a door, and what watches between them."""

    def __init__(self, root: Path) -> None:
        now = Instant(wall=0, boot="b", up=0)
        self.layout: Layout = layout.create(root / "state", "id", now)
        self.door = Door()
        self.clock = StillClock()
        self.watching = Incoming(self.layout, self.door, self.clock, OURS)  # type: ignore[arg-type]

    def put(self, name: str, raw: bytes = b'{"id": "a"}') -> Path:
        path = self.layout.incoming / name
        path.write_bytes(raw)
        path.chmod(0o600)
        return path

    def listing(self) -> dict[str, list[str]]:
        return {
            name: sorted(os.listdir(getattr(self.layout, name)))
            for name in ("incoming", "claimed", "rejected")
        }

    def reason(self, name: str) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.layout.rejected / f"{name}.reason.json").read_bytes())
        return value


EMPTY: dict[str, list[str]] = {"incoming": [], "claimed": [], "rejected": []}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


async def test_whole_file_becomes_a_job_of_its_owner(folder: Folder) -> None:
    """The bytes, the name and the owner of a dropped file reach the door, and the file is gone after."""
    folder.put("a.json")
    await folder.watching.scan()

    raw, name, requester, via = folder.door.seen[0]
    assert (b'{"id": "a"}', "a.json", os.geteuid(), "incoming") == (raw, name, requester.uid, via)
    assert EMPTY == folder.listing()


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def symlink(path: Path) -> None:
    secret = path.parent.parent / "secret"
    secret.write_text('{"id": "secret"}')
    path.symlink_to(secret)


def hardlink(path: Path) -> None:
    secret = path.parent.parent / "secret"
    secret.write_text('{"id": "secret"}')
    secret.chmod(0o600)
    path.hardlink_to(secret)


def folder_kind(path: Path) -> None:
    path.mkdir()
    (path / "inner.json").write_text('{"id": "inner"}')


def socket_kind(path: Path) -> None:
    here = os.open(path.parent, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


def writable(path: Path) -> None:
    path.write_text('{"id": "shared"}')
    path.chmod(0o666)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 * 1024 * 1024 * 1024)
    path.chmod(0o600)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a symlink": (symlink, "no regular file"),
    "a hard link": (hardlink, "2 names"),
    "a FIFO": (fifo, "no regular file"),
    "a folder": (folder_kind, "no regular file"),
    "a socket": (socket_kind, "no regular file"),
    "a file others may write": (writable, "others may write it"),
    "a file of 3 GiB": (huge, "the most is 1048576"),
}


@pytest.mark.parametrize("case", KINDS)
async def test_unfit_kind_is_refused_unread(case: str, folder: Folder) -> None:
    """What is no plain private file is put aside with its reason, and no byte of it reaches the door (S1)."""
    make, why = KINDS[case]
    make(folder.layout.incoming / "bad.json")
    folder.put("good.json")
    await folder.watching.scan()

    assert [b'{"id": "a"}'] == [raw for raw, *_ in folder.door.seen]
    assert {**EMPTY, "rejected": ["bad.json", "bad.json.reason.json"]} == folder.listing()
    assert why in folder.reason("bad.json")["problems"][0]


FAULTY = {
    "not JSON": (b'{"id": ', "not JSON"),
    "empty": (b"", "not JSON"),
    "not UTF-8": (b'{"id": "\xff"}', "not UTF-8"),
    "a key twice": (b'{"id": "a", "id": "b"}', "written twice"),
    "a list": (b"[]", "expected object"),
    "NaN": (b'{"x": NaN}', "NaN"),
}


@pytest.mark.parametrize("case", FAULTY)
async def test_faulty_file_is_refused_with_its_reason(case: str, folder: Folder) -> None:
    """A file the strict door refuses keeps its bytes, and its reason stands beside it."""
    raw, why = FAULTY[case]
    folder.put("bad.json", raw)
    await folder.watching.scan()

    assert raw == (folder.layout.rejected / "bad.json").read_bytes()
    assert ("faulty", True) == (
        folder.reason("bad.json")["code"],
        why in folder.reason("bad.json")["problems"][0],
    )


async def test_fault_of_ours_puts_the_file_aside_and_goes_on(folder: Folder) -> None:
    """A file that meets a fault of the daemon's own is refused as such, so that no restart meets it again."""
    folder.put("a.json", BREAKING)
    folder.put("b.json")
    await folder.watching.scan()

    assert {**EMPTY, "rejected": ["a.json", "a.json.reason.json"]} == folder.listing()
    assert "internal" == folder.reason("a.json")["code"]
    assert {b'{"id": "a"}': "job-0"} == folder.door.jobs


def of_a_stranger(path: Path) -> tuple[int, int]:
    """Makes a file one of a user who is not ours, for a daemon of the second uid; returns both uids."""
    if os.geteuid() == 0:
        os.chown(path, STRANGER, STRANGER)
        return STRANGER, 0
    return os.geteuid(), os.geteuid() + 1


GRANTED = {
    "nobody": ((), False),
    "another": ((Grant(role=Role.SUBMITTER, users=("7",)),), False),
    "its owner, to look": ((Grant(role=Role.AUDITOR, users=("{uid}",)),), False),
    "its owner, another workflow": (
        (Grant(role=Role.SUBMITTER, users=("{uid}",), workflows=("x",)),), False,
    ),
    "its owner, this workflow": (
        (Grant(role=Role.SUBMITTER, users=("{uid}",), workflows=("label",)),), True,
    ),
    "its owner": ((Grant(role=Role.SUBMITTER, users=("{uid}",)),), True),
}  # fmt: skip


@pytest.mark.parametrize("case", GRANTED)
async def test_file_of_another_user_is_taken_under_a_grant_alone(case: str, folder: Folder) -> None:
    """A dropped file is taken from those who may hand in jobs of its workflow; no other becomes a job."""
    uid, own = of_a_stranger(folder.put("a.json"))
    granted, taken = GRANTED[case]
    named = tuple(evolve(each, users=tuple(name.format(uid=uid) for name in each.users)) for each in granted)
    grants = Grants(own, named)
    await Incoming(folder.layout, folder.door, folder.clock, grants).scan()  # type: ignore[arg-type]

    assert taken == bool(folder.door.jobs)
    assert {**EMPTY, "rejected": [] if taken else ["a.json", "a.json.reason.json"]} == folder.listing()
    assert taken or "not_permitted" == folder.reason("a.json")["code"]


async def test_refused_job_says_what_may_be_done(folder: Folder) -> None:
    """A conflict is put aside with the refusal's own code, sentence and commands."""
    folder.put("bad.json", b'{"id": "taken"}')
    await folder.watching.scan()

    reason = folder.reason("bad.json")
    assert ("id_taken", "the id is taken") == (reason["code"], reason["reason"])
    assert ["resumectl show taken"] == reason["problems"]


async def test_file_that_still_changes_is_left(folder: Folder) -> None:
    """A file that changed a moment ago is not taken; once it is still, it is."""
    folder.put("a.json", b'{"id"')
    folder.clock.offset = 0
    waiting = await folder.watching.scan()
    first = folder.listing()
    folder.put("a.json")
    folder.clock.offset = LATER
    await folder.watching.scan()

    assert waiting
    assert {**EMPTY, "incoming": ["a.json"]} == first
    assert [b'{"id": "a"}'] == [raw for raw, *_ in folder.door.seen]


async def test_half_written_file_is_given_time_after_its_claim(folder: Folder) -> None:
    """A writer that rests in the middle for longer than a moment still gets its file admitted."""
    path = folder.put("a.json", b'{"id": ')
    folder.clock.offset = 1_500_000
    with path.open("ab") as writer:
        waiting = await folder.watching.scan()
        first = folder.listing()
        writer.write(b'"a"}')
    await folder.watching.scan()

    assert waiting
    assert {**EMPTY, "claimed": ["a.json"]} == first
    assert EMPTY == folder.listing()
    assert 1 == len(folder.door.jobs)


async def test_file_written_byte_by_byte_is_one_job(folder: Folder) -> None:
    """Looked at after every single byte, a file is admitted once, whole (S3)."""
    raw = b'{"id": "a", "items": ["one", "two"]}'
    folder.clock.offset = 1_500_000
    path = folder.layout.incoming / "a.json"
    with path.open("wb", buffering=0) as writer:
        path.chmod(0o600)
        for byte in raw:
            writer.write(bytes([byte]))
            await folder.watching.scan()

    assert EMPTY == folder.listing()
    assert {raw: "job-0"} == folder.door.jobs


async def test_unfinished_names_are_left(folder: Folder) -> None:
    """Names under which editors and copies write are no business of ours until they are renamed."""
    names = [".a.json", "a.json~", "a.json.tmp", "a.json.part", "a.json.swp"]
    for name in names:
        folder.put(name)
    await folder.watching.scan()

    assert sorted(names) == folder.listing()["incoming"]
    assert [] == folder.door.seen


NAMES = {
    "not UTF-8": os.fsdecode(b"caf\xe9.json"),
    "a line feed": "a\nb.json",
    "below a hidden tool's name": "node_modules",
    "long": "x" * 250,
    "a reason's name": "a.reason.jso",
    "a dash": "-rf.json",
}


@pytest.mark.parametrize("case", NAMES)
async def test_any_name_is_taken_and_shown_safely(case: str, folder: Folder) -> None:
    """A file is admitted, or refused with its reason, whatever its name."""
    folder.put(NAMES[case], b"[]")
    await folder.watching.scan()
    folder.put(NAMES[case])
    await folder.watching.scan()

    assert 1 == len(folder.door.jobs)
    assert [2, 0, 0] == [len(folder.listing()[name]) for name in ("rejected", "claimed", "incoming")]
    assert all("\udce9" not in name for _, name, *_ in folder.door.seen)


async def test_claimed_files_are_taken_up_at_start(folder: Folder) -> None:
    """What a killed daemon had claimed becomes a job, or the job it is already."""
    folder.put("a.json")
    intake.claim(folder.layout, "a.json")
    await folder.watching.scan()
    folder.put("again.json")
    intake.claim(folder.layout, "again.json")
    await folder.watching.scan()

    assert {b'{"id": "a"}': "job-0"} == folder.door.jobs
    assert EMPTY == folder.listing()


async def test_failed_sync_keeps_the_file(folder: Folder) -> None:
    """While the outcome of an admission is unknown the file stays claimed, and is asked about again."""
    folder.put("a.json")
    folder.door.failing = 2
    for _ in range(2):
        await folder.watching.scan()
    kept = folder.listing()
    await folder.watching.scan()

    assert {**EMPTY, "claimed": ["a.json"]} == kept
    assert EMPTY == folder.listing()
    assert [3, 1] == [len(folder.door.seen), len(folder.door.jobs)]


async def test_one_bad_file_stops_no_other(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trouble with one file, whatever it is, is that file's trouble."""
    claim = intake.claim

    def failing(place: Layout, name: str) -> intake.Claimed:
        if name == "b.json":
            raise OSError(5, "input/output error")
        return claim(place, name)

    monkeypatch.setattr(intake, "claim", failing)
    for name in ("a", "b", "c"):
        folder.put(f"{name}.json", json.dumps({"id": name}).encode())
    await folder.watching.scan()

    assert {**EMPTY, "incoming": ["b.json"]} == folder.listing()
    assert 2 == len(folder.door.jobs)


async def test_watched_folder_may_lie_elsewhere(folder: Folder, tmp_path: Path) -> None:
    """A watched folder beside the store is watched in its place."""
    elsewhere = tmp_path / "drop"
    elsewhere.mkdir()
    placed = PlacedLayout(folder.layout.root, elsewhere)
    (elsewhere / "a.json").write_bytes(b'{"id": "a"}')
    (elsewhere / "a.json").chmod(0o600)
    await Incoming(placed, folder.door, folder.clock, OURS).scan()  # type: ignore[arg-type]

    assert [] == os.listdir(elsewhere)
    assert 1 == len(folder.door.jobs)


async def test_slow_admission_holds_up_no_other(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one file's admission takes its time, files that come after it are admitted, and it only once."""
    monkeypatch.setattr(incoming, "SCAN_EVERY", 0.02)
    folder.door.slow = b'{"id": "slow"}'
    async with running(folder):
        folder.put("a.json", folder.door.slow)
        await folder.door.asked.wait()
        for name in ("b", "c"):
            folder.put(f"{name}.json", json.dumps({"id": name}).encode())
        await seen(folder, 2)
        folder.door.go_on.set()
        await seen(folder, 3)

    assert [folder.door.slow] == [raw for raw, *_ in folder.door.seen if raw == folder.door.slow]


@asynccontextmanager
async def running(folder: Folder) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        await tasks.start(folder.watching.run)
        with anyio.fail_after(30):
            yield
        tasks.cancel_scope.cancel()


async def seen(folder: Folder, count: int) -> None:
    while len(folder.door.jobs) < count:
        folder.door.admitted = anyio.Event()
        await folder.door.admitted.wait()


async def test_event_is_heard_long_before_the_timer(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dropped file is looked at when its event comes, not when the timer does."""
    monkeypatch.setattr(incoming, "SCAN_EVERY", 3600.0)
    async with running(folder):
        while not folder.door.jobs:  # the watching begins a moment after the first scan
            folder.put("a.json", json.dumps({"id": str(anyio.current_time())}).encode())
            with anyio.move_on_after(0.2):
                await folder.door.admitted.wait()


async def test_timer_finds_what_no_event_told(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost events lose no file: the folder is the truth."""
    monkeypatch.setattr(incoming, "SCAN_EVERY", 0.05)
    monkeypatch.setattr(Incoming, "_watch", lambda _: anyio.sleep_forever())
    async with running(folder):
        folder.put("a.json")
        await seen(folder, 1)
        folder.put("b.json", b'{"id": "b"}')
        await seen(folder, 2)


async def test_recreated_folder_is_watched_anew(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that was moved away and made again is the one that is looked at."""
    monkeypatch.setattr(incoming, "SCAN_EVERY", 0.05)
    async with running(folder):
        folder.put("a.json")
        await seen(folder, 1)
        folder.layout.incoming.rename(folder.layout.root / "old")
        folder.layout.incoming.mkdir()
        folder.put("b.json", b'{"id": "b"}')
        await seen(folder, 2)


async def test_name_that_ends_the_watching_ends_nothing_else(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is not UTF-8 breaks the watcher, and files are admitted all the same."""
    monkeypatch.setattr(incoming, "SCAN_EVERY", 0.1)
    async with running(folder):
        folder.put(NAMES["not UTF-8"])
        await seen(folder, 1)
        folder.put("b.json", b'{"id": "b"}')
        await seen(folder, 2)


async def test_resting_takes_no_more(folder: Folder) -> None:
    """Once the daemon is asked to stop, no further file is taken."""
    folder.put("a.json")
    folder.watching.rest()
    await folder.watching.scan()

    assert {**EMPTY, "incoming": ["a.json"]} == folder.listing()
