"""A small world for tests of the store: one job, its lines, and a law of one rule (a state field counts)."""

from pathlib import Path

from attrs import evolve

from resumed.schemas import codec, line_io
from resumed.schemas.instant import Instant
from resumed.schemas.job import CodeVersion, Item, Job, Next
from resumed.schemas.snapshot import (
    STATE_SCHEMA,
    Admission,
    Changes,
    Checkpoint,
    Decision,
    Entry,
    Line,
    Snapshot,
    Torn,
)
from resumed.schemas.workflow import Contract, StepContract, StepKind
from resumed.store import admission, journal, layout, recovery

BOOT = "6f1c2b7a-0000-4000-8000-000000000001"
STEP = StepContract(name="draft", kind=StepKind.JOB)
CONTRACT = Contract(workflow="label", version=2, start="draft", steps=(STEP,))


def moment(seconds: int) -> Instant:
    """An instant some seconds after the beginning of this world."""
    return Instant(wall=1_795_000_000_000_000 + seconds * 1_000_000, boot=BOOT, up=seconds * 1_000_000)


def admission_of(job_id: str) -> Admission:
    """The admission record of a job that came in through the folder."""
    text = f'{{"id":"{job_id}","workflow":"label"}}'
    return Admission(
        schema=STATE_SCHEMA,
        id=job_id,
        admitted=moment(0),
        requester="ada",
        uid=1000,
        via="folder",
        name=f"{job_id}.json",
        sha256=codec.digest(text.encode()),
        text=text,
    )


def opening(job_id: str) -> Snapshot:
    """The snapshot that line 1 carries."""
    job = Job(
        id=job_id,
        tenant="",
        requester="ada",
        owner="ada",
        created=moment(0),
        workflow="label",
        version=2,
    )
    return Snapshot(
        job=job,
        contract=CONTRACT,
        code_version=CodeVersion(workflow="label", version=2, contract="0" * 64, release="0.1.0"),
        newest=moment(0),
        position=Item(id="", ordinal=0, at="draft"),
        next=Next(step="draft"),
    )


def first_line(job_id: str) -> Line:
    """Line 1 of a job."""
    previous = admission.job_digest(admission_of(job_id))
    return Line(sequence=1, epoch=0, previous=previous, at=moment(0), opening=opening(job_id))


def next_line(sequence: int, previous: str, text: str = "") -> Line:
    """A line that sets the state field `last` to its own sequence, padded with `text`."""
    changes = Changes(state={"last": str(sequence), "text": f'"{text}"'})
    decision = Decision(by="author", rule="count", choice="go on")
    entry = Entry(transition="counted", decision=decision, changes=changes)
    return Line(sequence=sequence, epoch=1, previous=previous, at=moment(sequence), entries=(entry,))


def apply(snapshot: Snapshot, line: Line) -> Snapshot:
    """The law of this world: state fields are set, the sequence is the line's."""
    state = dict(snapshot.state)
    for entry in line.entries:
        state.update(entry.changes.state)
    return evolve(snapshot, state=state, sequence=line.sequence, epoch=line.epoch, newest=line.at)


def checkpoint_of(snapshot: Snapshot, digest: str, job: str, torn: tuple[Torn, ...] = ()) -> bytes:
    """The bytes of a checkpoint of this snapshot."""
    return line_io.spell_checkpoint(
        Checkpoint(
            sequence=snapshot.sequence,
            epoch=snapshot.epoch,
            previous=digest,
            state_schema=STATE_SCHEMA,
            code_version=snapshot.code_version,
            last_transition="counted",
            job=job,
            torn=torn,
            snapshot=snapshot,
        )
    )


def store(root: Path) -> layout.Layout:
    """A store in `root`."""
    return layout.create(root, "store-1", moment(0))


def admit(place: layout.Layout, job_id: str = "harbour-7") -> Path:
    """Admit a job and return its folder."""
    admission.admit(place, admission_of(job_id), first_line(job_id))
    return place.job(job_id)


def append(opened: journal.Journal, count: int = 1, text: str = "") -> None:
    """Commit some lines."""
    for _ in range(count):
        line = next_line(opened.sequence + 1, opened.digest, text)
        raw, digest = line_io.spell_line(line)
        opened.append(raw, line.sequence, digest)


def open_job(folder: Path) -> journal.Journal:
    """Load a job and open it for writing."""
    return journal.open_for_writing(folder, recovery.load(folder, apply))


def checkpoint(opened: journal.Journal, why: str = "outweighed", *, fill: bool = True) -> str:
    """Rotate, then write the checkpoint of the last line."""
    opened.rotate(why, fill=fill)
    found = recovery.load(opened.folder, apply)
    return opened.write_checkpoint(
        checkpoint_of(found.snapshot, found.digest, found.job, found.torn), found.sequence
    )
