"""A small store in which every kind of stored file stands, and what is right about each job of it.

Jobs: `harbour` is at work (history, two checkpoints, artifacts, a torn past, free space behind its lines),
`pier` is admitted and no more, `quay` ended and is archived, `pending-2` came from the first release and was
brought to the present level, `wreck` is set aside.
"""

import shutil
import tarfile
from pathlib import Path

from attrs import evolve, frozen

from resumed.actors.containment import Identity
from resumed.actors.machine.apply import apply
from resumed.schemas import checked, codec, line_io
from resumed.schemas.errors import FaultyInputError, StoreError
from resumed.schemas.instant import later
from resumed.schemas.job import Artifact, Item, ItemState, Try
from resumed.schemas.snapshot import Changes, Decision, Entry, Line, Snapshot
from resumed.store import (
    admission,
    archive,
    artifacts,
    claims,
    files,
    fsck,
    identities,
    intake,
    journal,
    layout,
    log,
    migration,
    names,
    quarantine,
    recovery,
    retire,
)
from resumed.store.examine import Finding

from . import world

FIRST = Path(__file__).parent.parent / "golden" / "first-release.tar.xz"
JOBS = {"harbour": "jobs", "pier": "jobs", "pending-2": "jobs", "quay": "archive"}
SET_ASIDE = "wreck"


TRY = Try(
    epoch=1,
    item="",
    number=1,
    step="draft",
    occurrence=1,
    started=world.moment(5),
    until=world.moment(99),
    worker="w-2",
)


def build(root: Path) -> layout.Layout:
    """The store; the daemon that wrote it was killed at work."""
    place = world.store(root)
    _harbour(world.admit(place, "harbour"))
    world.admit(place, "pier")
    _older(place, root)
    _quay(place)
    _wreck(place)
    _others(place)
    return place


def _line(opened: journal.Journal, changes: Changes) -> Line:
    decision = Decision(by="author", rule="r", choice="c")
    entry = Entry(transition="t", decision=decision, changes=changes)
    sequence = opened.sequence + 1
    return Line(
        sequence=sequence, epoch=1, previous=opened.digest, at=world.moment(sequence), entries=(entry,)
    )


def append(opened: journal.Journal, *changes: Changes) -> None:
    """Commit a line for each of these changes."""
    for one in changes:
        line = _line(opened, one)
        raw, digest = line_io.spell_line(line)
        opened.append(raw, line.sequence, digest)


def checkpoint(opened: journal.Journal, why: str, *, fill: bool = True) -> None:
    """Rotate and write a checkpoint."""
    opened.rotate(why, fill=fill)
    found = recovery.load(opened.folder, apply)
    raw = world.checkpoint_of(found.snapshot, found.digest, found.job, found.torn)
    opened.write_checkpoint(raw, found.sequence)


def _open(folder: Path) -> journal.Journal:
    return journal.open_for_writing(folder, recovery.load(folder, apply))


def _harbour(folder: Path) -> None:
    opened = _open(folder)
    kept = [artifacts.put(folder, raw) for raw in (b"a report", b"a longer report")]
    made = [Artifact(name="output", sha256=one, size=8 + 7 * n) for n, one in enumerate(kept)]
    done = [Item(id=f"p{n}", ordinal=n, state=ItemState.DONE, output=one) for n, one in enumerate(made)]
    append(opened, Changes(items=(done[0],)))
    checkpoint(opened, "rotation")
    append(opened, Changes(items=(done[1],)))
    opened.close()
    newest = folder / "3.0.log"
    newest.write_bytes(newest.read_bytes() + b"0123 half a line")
    opened = _open(folder)
    checkpoint(opened, "rotation")
    append(opened, Changes(state={"a": "1"}), Changes(tries=(TRY,)))
    # Not closed: its free space stays, as a kill leaves it.
    (folder / "logs").mkdir()
    (folder / "logs" / "p0.log").write_bytes(b"heard\n")


def unpack_first(root: Path) -> None:
    """The store of the first release, as `store` in this folder."""
    with tarfile.open(FIRST) as packed:
        # Python 3.11 learned of filters in 3.11.4, later ones warn where none is named; the archive is ours.
        if hasattr(tarfile, "data_filter"):
            packed.extractall(root, filter="data")
        else:
            packed.extractall(root)


def _older(place: layout.Layout, root: Path) -> None:
    unpack_first(root / "first")
    first = layout.Layout(root / "first" / "store")
    source = first.job("pending-2")
    target = place.job("pending-2")
    target.parent.mkdir(exist_ok=True)
    shutil.copytree(source, target)
    shutil.rmtree(root / "first")
    found = recovery.load(target, apply)
    migration.open_for_writing(target, found, apply, later(found.snapshot.newest, 9))[0].close()


def _quay(place: layout.Layout) -> None:
    record = evolve(world.admission_of("quay"), key="invoice-1", request="r-1", content="c" * 64)
    first = evolve(world.first_line("quay"), previous=admission.job_digest(record))
    for claim in claims.of(record):
        claims.take(place, claim)
    admission.admit(place, record, first)
    opened = _open(place.job("quay"))
    append(opened, Changes(state={"a": "1"}))
    checkpoint(opened, "park", fill=False)
    opened.close()
    archive.move(place, "quay")


def _wreck(place: layout.Layout) -> None:
    folder = world.admit(place, SET_ASIDE)
    (folder / "1.0.log").write_bytes((folder / "1.0.log").read_bytes()[:-9])
    quarantine.set_aside(
        place, SET_ASIDE, "damaged", "cannot load wreck: line 1 is missing", world.moment(60)
    )


def _others(place: layout.Layout) -> None:
    for number in (1, 2):
        name = f"w-{number}"
        identity = Identity(
            name=name, boot=world.BOOT, pid=400 + number, start=7, group=400, workflow="label", version=2
        )
        identities.record(place, name, checked.spell(identity))
    identities.mark_gone(place, "w-1")
    farewell = retire.Farewell(id="dock", how="pruned", by="ada", at=world.moment(70), reason="long ago")
    names.keep(place.names, "id", 0, "dock", codec.encode(farewell))
    for name in ("refused-1.json", "refused-2.json", "claimed.json", "waiting.json"):
        path = place.incoming / name
        path.write_bytes(b'{"workflow": "%s"}' % name.encode())
        path.chmod(0o600)
    for name in ("refused-1.json", "refused-2.json"):
        intake.claim(place, name)
        said = {"code": "workflow", "reason": f"cannot admit {name}: no such workflow", "problems": ["none"]}
        intake.reject(place, name, said, world.moment(61))
    intake.claim(place, "claimed.json")
    place.lock_file.write_bytes(b'{"boot":"b","pid":1,"start":2}\n')
    (place.root / "reserve").write_bytes(bytes(64))


@frozen
class Verdict:
    """What recovery says of one job: its snapshot, or the error's name; and the tails it cut."""

    snapshot: Snapshot | None
    error: str
    torn: int

    @property
    def found(self) -> bool:
        """True when the job does not load."""
        return self.snapshot is None


def folder_of(place: layout.Layout, job: str) -> Path:
    """Where a job of this store lies."""
    if job == SET_ASIDE:
        return place.quarantine / job
    return place.archived(job) if JOBS.get(job) == "archive" else place.job(job)


def judge(folder: Path) -> Verdict:
    """One job, read from the disk."""
    try:
        found = recovery.load(folder, apply)
    except (StoreError, FaultyInputError) as error:
        return Verdict(None, type(error).__name__, 0)
    return Verdict(found.snapshot, "", len(found.torn))


def findings(place: layout.Layout) -> frozenset[Finding]:
    """All that fsck says."""
    return frozenset(fsck.check(place.root, apply).findings)


def earlier(place: layout.Layout, job: str) -> list[Snapshot]:
    """The job's snapshots after each of its lines but the last."""
    first, *rest = _lines(folder_of(place, job))
    assert first.opening is not None
    found = [apply(first.opening, first)]
    for line in rest:
        found.append(apply(line.opening or found[-1], line))
    return found[:-1] or [first.opening]


def _lines(folder: Path) -> list[Line]:
    found: list[Line] = []
    for name in files.listing(folder).newest_logs().values():
        raw = (folder / str(name)).read_bytes()
        seal, end = log.read_seal(raw, "it")
        found += [
            line_io.read_line(line.payload, seal.state_schema, "it")
            for line in log.lines(raw, end)
            if not line_io.is_end(line.payload)
        ]
    return found
