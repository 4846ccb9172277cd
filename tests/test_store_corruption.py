"""Each stored file, with each byte changed, cut short everywhere, swapped with each other, and removed.

Whatever is done to one file is found, or changes nothing; an earlier state is never taken for the present
one; every other job is untouched; and fsck names it. The one exception is known by its places: a newest log
that is cut exactly at the end of a line.

Files that no other vouches for, since nobody was told anything by them: what people dropped into the watched
folder, what programs printed or kept, who holds the lock, a log kept as evidence of a torn tail. Of a job set
aside it is held that it stays set aside.
"""

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

import anyio
import pytest
from attrs import frozen
from faults import harbour, world
from faults.harbour import JOBS, SET_ASIDE, Verdict, folder_of, judge

from resumed.actors import containment
from resumed.actors.machine.apply import apply
from resumed.schemas.snapshot import Snapshot
from resumed.store import examine, files, fsck, layout, log

SEED = 11
pytestmark = pytest.mark.timeout(3600)  # at the full count, and beside other work, these take minutes

JOB, OWN, ASIDE, MUTE = "job", "own", "aside", "mute"
KINDS = (
    (r"(jobs|archive)/../[^/]+/(logs|kept)/.*", MUTE),
    (r"(jobs|archive)/../[^/]+/[0-9.]+\.torn", MUTE),
    (r"(jobs|archive)/../[^/]+/.*", JOB),
    (r"quarantine/[^/]+/.*", ASIDE),
    (r"quarantine/.*\.reason\.json|names/.*|workers/.*\.json|rejected/.*|store\.json", OWN),
    (r"incoming/.*|claimed/.*|workers/.*\.gone|lock|reserve", MUTE),
)


def kind_of(path: str) -> str:
    """What holds of a file, by its path below the store."""
    return next(kind for pattern, kind in KINDS if re.fullmatch(pattern, path))


@frozen
class Sound:
    """The store before anything was done to it."""

    place: layout.Layout
    paths: tuple[str, ...]
    verdicts: dict[str, Verdict]
    earlier: dict[str, list[Snapshot]]
    findings: frozenset[examine.Finding]
    house: frozenset[examine.Finding]

    def path(self, name: str) -> Path:
        """The file of that name."""
        return self.place.root / name

    def owner(self, name: str) -> str:
        """The job whose file it is, empty for files of the house."""
        parts = name.split("/")
        if parts[0] == "quarantine":
            return SET_ASIDE
        if parts[-1] == f"{harbour.TRY.worker}.json":
            return "harbour"
        return parts[2] if parts[0] in ("jobs", "archive") else ""

    def job_findings(self, job: str) -> frozenset[examine.Finding]:
        """What fsck said of one job."""
        return frozenset(one for one in self.findings if one.job == job)


@pytest.fixture
def sound(ram: Path) -> Sound:
    """A store of its own for each drill."""
    place = harbour.build(ram / "store")
    paths = (str(path.relative_to(place.root)) for path in place.root.rglob("*") if path.is_file())
    verdicts = {job: judge(folder_of(place, job)) for job in (*JOBS, SET_ASIDE)}
    return Sound(
        place=place,
        paths=tuple(sorted(paths)),
        verdicts=verdicts,
        earlier={job: harbour.earlier(place, job) for job in JOBS},
        findings=harbour.findings(place),
        house=frozenset(fsck.house(place)[1]),
    )


def test_drill_holds_every_kind_of_file(sound: Sound) -> None:
    """The store is sound, and each file in it has a rule here."""
    assert {JOB, OWN, ASIDE, MUTE} == {kind_of(path) for path in sound.paths}
    assert [False] * len(JOBS) + [True] == [one.found for one in sound.verdicts.values()]
    assert {"torn", "unfinished"} == {one.code for one in sound.findings}
    assert set(layout.FOLDERS) - {"scratch"} <= {path.split("/")[0] for path in sound.paths}


# ---- what is said of a store that something was done to ----------------------------------------------------


def verdict(sound: Sound, job: str) -> str:
    """What happened to a job: `found`, `torn` (found too), `harmless`, or `older`, which is the exception.

    `torn, more` stands for a tail that took whole lines before it along: what is left is an earlier state.
    """
    right, now = sound.verdicts[job], judge(folder_of(sound.place, job))
    if now.found:
        return "found"
    if now.torn > right.torn:
        return "torn" if now.snapshot in (right.snapshot, sound.earlier[job][-1]) else "torn, more"
    return "harmless" if now == right else "older"


def check_others(sound: Sound, *owners: str) -> None:
    """Every other job loads as it did, and fsck blames none of them."""
    for job in {*JOBS, SET_ASIDE} - {*owners}:
        assert sound.verdicts[job] == judge(folder_of(sound.place, job)), job
    blamed = {one.job for one in harbour.findings(sound.place) ^ sound.findings}
    assert blamed <= {*owners, ""}


def check(sound: Sound, name: str, often: bool) -> str:
    """The law for one file that was changed or cut; what it came to."""
    kind, owner = kind_of(name), sound.owner(name)
    if kind == JOB:
        said = verdict(sound, owner)
        now = frozenset(examine.job(folder_of(sound.place, owner), apply, sound.place.workers))
        named = now != sound.job_findings(owner)
        if said == "found":
            assert any(one.fatal for one in now), name
        if often:
            check_others(sound, owner)
        return said if named or said == "older" else f"{said}, unnamed"
    house = frozenset(fsck.house(sound.place)[1])
    said = "named" if house != sound.house else "unnamed"
    if often and said == "unnamed":
        said = "named" if harbour.findings(sound.place) != sound.findings else said
    if often:
        check_others(sound, owner)
    if kind == ASIDE:
        assert judge(folder_of(sound.place, SET_ASIDE)).found, name
    return f"{kind}, {said}"


# ---- every byte -------------------------------------------------------------------------------------------


def written(raw: bytes) -> int:
    """How much of a file is not free space at its end."""
    return len(raw.rstrip(b"\0")) or len(raw)


def places(sound: Sound, share: float) -> Iterator[tuple[str, int]]:
    """Bytes of every file: of the written part this share, of free space a sample of that."""
    chance = random.Random(SEED)
    for name in sound.paths:
        raw = sound.path(name).read_bytes()
        end = written(raw)
        tail = range(end, len(raw))
        wanted = [*range(end), *chance.sample(tail, len(tail) // 256)]
        # Files that nobody vouches for are all alike: a look at some of their bytes is enough.
        part = share / 8 if kind_of(name) in (MUTE, ASIDE) else share
        for place in chance.sample(wanted, min(len(wanted), max(1, round(len(wanted) * part)))):
            yield name, place


def flip(path: Path, place: int, mask: int) -> None:
    """Change one byte where it lies."""
    fd = os.open(path, os.O_RDWR)
    try:
        os.pwrite(fd, bytes([os.pread(fd, 1, place)[0] ^ mask]), place)
    finally:
        os.close(fd)


def test_every_changed_byte_is_found_or_harmless(sound: Sound, faults_scale: float) -> None:
    """One changed byte, in whatever file: it is found and named, and no job but its own is touched."""
    chance = random.Random(SEED)
    said: Counter[str] = Counter()
    for number, (name, place) in enumerate(places(sound, faults_scale)):
        mask = chance.randrange(1, 256)
        flip(sound.path(name), place, mask)
        found = check(sound, name, often=number % 40 == 0)
        flip(sound.path(name), place, mask)
        said[found] += 1

        wanted = {"mute": ("mute, unnamed",), "aside": ("aside, unnamed",), "own": ("own, named",)}
        assert found in wanted.get(kind_of(name), ("found", "torn", "harmless")), (name, place, mask)
    assert {"found", "torn", "harmless", "own, named"} <= set(said), said


# ---- every length -----------------------------------------------------------------------------------------


def ends_of_lines(sound: Sound) -> set[tuple[str, int]]:
    """The exception: where the newest log of a job at work ends a line that it was not published with."""
    found = set()
    for job, where in JOBS.items():
        if where == "archive":
            continue
        folder = folder_of(sound.place, job)
        newest = [*files.listing(folder).newest_logs().values()][-1]
        raw = (folder / str(newest)).read_bytes()
        seal, end = log.read_seal(raw, "it")
        lines = [*log.lines(raw, end)]
        sure = max(0, seal.through - seal.seal)
        cuts = [end, *(line.end for line in lines)][sure:-1]
        name = str((folder / str(newest)).relative_to(sound.place.root))
        found |= {(name, cut) for cut in cuts}
    return found


def lengths(sound: Sound, share: float) -> Iterator[tuple[str, int]]:
    """How short each file is cut; the places of the exception are always among them."""
    yield from sorted(ends_of_lines(sound))
    yield from ((name, 0) for name in sound.paths if sound.path(name).stat().st_size)
    yield from places(sound, share)


def judge_cut(sound: Sound, name: str, raw: bytes) -> bool:
    """A cut within a line of the newest log leaves the lines before it, and the tail is on record."""
    job = sound.owner(name)
    path = sound.path(name)
    whole = path.read_bytes()
    path.write_bytes(raw)
    now = judge(folder_of(sound.place, job))
    path.write_bytes(whole)
    return now.snapshot in sound.earlier[job] and now.torn > sound.verdicts[job].torn


def test_every_shorter_file_is_found_or_harmless(sound: Sound, faults_scale: float) -> None:
    """A file cut short anywhere is found, or only free space is gone, or it is the exception."""
    exception = ends_of_lines(sound)
    assert len(exception) >= 3
    said: Counter[str] = Counter()
    older = set()
    for number, (name, size) in enumerate(lengths(sound, faults_scale)):
        path = sound.path(name)
        raw = path.read_bytes()
        os.truncate(path, size)
        found = check(sound, name, often=number % 40 == 0)
        path.write_bytes(raw)
        said[found] += 1
        if found == "torn, more":
            assert judge_cut(sound, name, raw[:size]), (name, size)
        elif found == "older":
            older.add((name, size))
        elif kind_of(name) == OWN:
            assert found == "own, named", (name, size)
        elif kind_of(name) == JOB and found == "harmless, unnamed":
            # Nothing is gone but free space, or the word that another log follows, which is there.
            rest = raw[size:].rstrip(b"\0")
            assert not rest or rest.endswith(b'"}\n'), (name, size)
            assert not rest or b'{"end":' in raw[max(0, size - 80) :], (name, size)
    assert exception == older
    assert {"found", "torn", "harmless", "own, named"} <= set(said), said


# ---- whole files ------------------------------------------------------------------------------------------


def test_every_missing_file_is_found_or_harmless(sound: Sound) -> None:
    """A removed file is found, or it was one that nothing needs now; no earlier state comes back for it."""
    unnamed = Counter[str]()
    for name in sound.paths:
        path = sound.path(name)
        raw = path.read_bytes()
        path.unlink()
        found = check(sound, name, often=True)
        path.write_bytes(raw)

        if kind_of(name) == JOB:
            assert found in ("found", "harmless", "harmless, unnamed"), name
        if found in ("harmless, unnamed", "own, unnamed"):
            unnamed[re.sub(r"[0-9a-f]{64}|\d+", "N", name)] += 1
    # Checkpoints that a longer replay stands for, and history that nothing replays; the record of a worker
    # whose end is on record too. And the last word on a job that is gone for good: nothing else tells of it.
    farewell = "names/N"
    assert {key: unnamed[key] for key in unnamed if not re.search(r"checkpoint|N\.N\.log", key)} == {
        "workers/w-N.json": 1,
        farewell: 1,
    }


def swap(one: Path, two: Path) -> None:
    """Each file gets the other's bytes."""
    first, second = one.read_bytes(), two.read_bytes()
    one.write_bytes(second)
    two.write_bytes(first)


def pairs(sound: Sound, share: float) -> list[tuple[str, str]]:
    """Pairs of files that differ; of those of two jobs, or beyond a tenth, a seeded part."""
    contents = {name: sound.path(name).read_bytes() for name in sound.paths}
    found = [(one, two) for one, two in combinations(sound.paths, 2) if contents[one] != contents[two]]
    return random.Random(SEED).sample(found, max(1, round(len(found) * share)))


def test_every_swap_of_two_files_is_found(sound: Sound, faults_scale: float) -> None:
    """Two files with each other's bytes: both owners notice, wherever their bytes are vouched for."""
    said: Counter[str] = Counter()
    for one, two in pairs(sound, faults_scale):
        swap(sound.path(one), sound.path(two))
        kinds, owners = (kind_of(one), kind_of(two)), {sound.owner(one), sound.owner(two)} - {""}
        for job in owners - {SET_ASIDE}:
            found = verdict(sound, job)
            assert found != "older", (one, two)
            said[found] += 1
        check_others(sound, *owners)
        now = harbour.findings(sound.place)
        swap(sound.path(one), sound.path(two))

        if {JOB, OWN} & set(kinds):
            assert now != sound.findings, (one, two)
            blamed = {finding.job for finding in now ^ sound.findings}
            assert {sound.owner(name) for name in (one, two) if kind_of(name) == JOB} <= blamed, (one, two)
    assert said["found"], said


MOVED: dict[str, Callable[[layout.Layout], object]] = {
    # Folders that stand where they do not belong: found under the name they bear now.
    "a job under another's name": lambda place: swap_folders(place.job("harbour"), place.job("pier")),
    "a job in another's shard": lambda place: place.job("pier").rename(place.jobs / "aa" / "pier"),
}


def swap_folders(one: Path, two: Path) -> None:
    """Each folder gets the other's name."""
    aside = one.with_name("aside")
    one.rename(aside)
    two.rename(one)
    aside.rename(two)


@pytest.mark.parametrize("case", MOVED)
def test_every_misplaced_folder_is_found(case: str, sound: Sound) -> None:
    """A job's folder says whose it is."""
    (sound.place.jobs / "aa").mkdir(exist_ok=True)
    MOVED[case](sound.place)

    assert "misplaced" in {one.code for one in harbour.findings(sound.place) - sound.findings}


def test_changed_record_of_a_worker_proves_nothing(sound: Sound) -> None:
    """Whatever byte of it is changed, or under whatever name it lies: its worker is not taken for gone."""
    workers = sound.place.workers
    (workers / "w-1.gone").unlink()
    swap(workers / "w-1.json", workers / "w-2.json")
    swapped = anyio.run(containment.settle, workers, 0.0)
    swap(workers / "w-1.json", workers / "w-2.json")
    raw = (workers / "w-2.json").read_bytes()
    said = set()
    for place in range(raw.index(world.BOOT.encode()), len(raw), 7):
        flip(workers / "w-2.json", place, 1)
        said.add(dict(containment._recorded(workers))["w-2"])
        flip(workers / "w-2.json", place, 1)

    assert {"w-1": False, "w-2": False} == {name: one.proven for name, one in swapped.items()}
    assert {None} == said
    assert anyio.run(containment.settle, workers, 0.0)["w-2"].proven  # it ran in another boot


def test_drill_would_see_an_older_state(sound: Sound, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drill would notice: a log that was copied and left beside its copy is taken for the newest one."""
    from resumed.store import journal, recovery

    monkeypatch.setattr(journal.Journal, "drop_superseded", lambda opened, torn=False: None)
    place = world.store(sound.place.root.parent / "careless")
    folder = world.admit(place, "harbour")
    opened = journal.open_for_writing(folder, recovery.load(folder, apply))
    harbour.append(opened, harbour.Changes(state={"a": "1"}))
    opened.close()
    right = judge(folder)
    (folder / "1.1.log").unlink()

    assert not judge(folder).found
    assert right != judge(folder)
    assert fsck.check(place.root, apply).sound
