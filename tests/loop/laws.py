"""The laws that hold after any drill, checked against the disk and the witness; nothing here asks our memory.

The logs are never pruned, so each job is replayed from its first line, entry by entry, without checkpoints.
"""

import shutil
import tempfile
import traceback
from pathlib import Path

from attrs import evolve, frozen
from effect_laws import check_entry

from resumed.actors import opened as opens
from resumed.actors.machine import limits
from resumed.actors.machine.apply import apply
from resumed.schemas.errors import ResumedError
from resumed.schemas.instant import Instant
from resumed.schemas.job import Item, ItemState
from resumed.schemas.ledger import WaitKind
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry, Line, Snapshot
from resumed.schemas.views import Told
from resumed.schemas.workflow import OnChange
from resumed.store import fsck, journal, recovery
from resumed.store.recovery import Recovered

from . import places
from .world import Asked, World


@frozen
class Step:
    """One entry of the log: the snapshot before it and after it."""

    sequence: int
    entry: Entry
    before: Snapshot
    after: Snapshot
    at: Instant


def digests(folder: Path) -> dict[int, str]:
    """The digest of every line that a job ever committed."""
    found: dict[int, str] = {}

    def note(snapshot: Snapshot, line: Line) -> Snapshot:
        found[line.sequence - 1] = line.previous
        return apply(snapshot, line)

    with tempfile.TemporaryDirectory(dir=folder.parent) as copy:
        whole = recovery.load(_bare(folder, copy), note)
    return {**found, whole.sequence: whole.digest}


def _bare(folder: Path, copy: str) -> Path:
    """A copy without checkpoints, which is replayed from its first line."""
    bare = Path(copy) / folder.name
    shutil.copytree(folder, bare)
    for checkpoint in bare.glob("*.checkpoint.json"):
        checkpoint.unlink()
    return bare


def history(folder: Path) -> tuple[list[Step], Recovered]:
    """Every entry that a job ever committed, and what all of them come to."""
    steps: list[Step] = []

    def note(snapshot: Snapshot, line: Line) -> Snapshot:
        for entry in line.entries:
            # A copy: an adopted table folds what came after into what the older ones share.
            after = apply(_apart(snapshot), evolve(line, entries=(entry,)))
            steps.append(Step(line.sequence, entry, _apart(snapshot), after, line.at))
            snapshot = _apart(after)
        return apply(snapshot, evolve(line, entries=())) if line.entries else snapshot

    with tempfile.TemporaryDirectory(dir=folder.parent) as copy:
        found = recovery.load(_bare(folder, copy), note)
    return steps, found


def _apart(snapshot: Snapshot) -> Snapshot:
    return evolve(snapshot, items=type(snapshot.items)(snapshot.items))


def check_invariants(world: World) -> list[str]:
    """What is broken; empty when all is well."""
    broken = [*world.faults, *world.witness.faults]
    if world.daemon.crashed is not None:
        broken.append(f"the daemon ended by itself: {world.daemon.crashed!r}")
    steps: dict[str, list[Step]] = {}
    for job in world.jobs:
        folder = world.place(job)
        if folder is None or folder.parent == world.layout.quarantine:
            broken.append(f"{job} was lost or set aside: {folder}")
            continue
        try:
            steps[job], full = history(folder)
            broken += [f"{job}: {fault}" for fault in _of_recovery(folder, full)]
        except ResumedError as error:
            broken.append(f"{job} cannot be replayed: {error}")
    for job, told in steps.items():
        broken += [f"{job}: {fault}" for step in told for fault in (*_of_step(step), *_of_time(step))]
        broken += [f"{job}: {fault}" for fault in (*_of_runs(world, job, told), *_of_effects(told))]
    broken += [fault for asked in world.asked if (fault := _of_request(asked, steps.get(asked.job, [])))]
    report = fsck.check(world.layout.root, apply)
    broken += [f"fsck: {finding}" for finding in report.findings if finding.fatal]
    return broken


def check_places(world: World, out: Path, did: dict[str, int]) -> list[str]:
    """Every item that is done bears its own output at its place, and nobody else's file was touched."""
    broken = []
    for path in out.iterdir():
        raw = path.read_bytes()
        if raw not in (b"theirs", places.raw_of(path.name)) and not path.name.startswith("."):
            broken.append(f"{path.name} is neither theirs nor whole")
    for job in world.jobs:
        if world.place(job) is None:
            continue
        snapshot = world.snapshot(job)
        for item in snapshot.items:
            if item.publishes and item.state is ItemState.DONE:
                did["published"] = did.get("published", 0) + 1
                if (out / f"{job}-{item.id}").read_bytes() != places.raw_of(f"{job}-{item.id}"):
                    broken.append(f"{item.id} of {job} is done, and its place bears something else")
            did[item.code] = did.get(item.code, 0) + 1
    return broken


def _of_recovery(folder: Path, full: Recovered) -> list[str]:
    """Two copies recover to the same; so does one that is opened and recovered again (C01)."""
    here = recovery.load(folder, apply)
    found = [] if here.snapshot == full.snapshot else ["checkpoint and full replay differ"]
    with tempfile.TemporaryDirectory(dir=folder.parent) as copy:
        other = Path(shutil.copytree(folder, Path(copy) / folder.name))
        journal.open_for_writing(other, recovery.load(other, apply)).close()
        again = recovery.load(other, apply)
        if (again.snapshot, again.digest, again.torn) != (here.snapshot, here.digest, here.torn):
            found.append("a copy, opened and recovered again, differs")
    return found


def _of_effects(told: list[Step]) -> list[str]:
    """The laws of effects and of authority, asked of each entry (`effect_laws`)."""
    owners: dict[str, tuple[str, str]] = {}
    broken, drawn_up, changed = [], 0, set[str]()
    for step in told:
        if step.sequence != drawn_up:
            drawn_up, changed = step.sequence, set()
        for row in step.entry.changes.effects:
            old = step.before.effects.get(row.id)
            if row.id in changed and (old is None or row.dispatches > old.dispatches):
                broken.append(f"line {step.sequence}: {row.id} is let go by a line that changed it before")
        changed |= {row.id for row in step.entry.changes.effects}
        line = Line(sequence=step.sequence, epoch=step.after.epoch, previous="", at=step.at)
        try:
            check_entry(step.before, step.after, step.entry, line, owners)
        except AssertionError as error:
            law = traceback.extract_tb(error.__traceback__)[-1].line
            broken.append(f"line {step.sequence} {step.entry.decision.rule}: not so: {law}")
    return broken


def _of_step(step: Step) -> list[str]:
    """The laws that one entry can break."""
    before, after, where = step.before, step.after, f"line {step.sequence} {step.entry.decision.rule}"
    broken: list[str] = []
    if before.outcome is not None and (
        after.outcome != before.outcome or after.tries or after.items != before.items
    ):
        broken.append(f"{where}: changed after the end")
    opened = [
        row for unit, row in after.tries.items() if before.tries.get(unit) is not row and row.stop is None
    ]
    opened = [
        row for row in opened if (old := before.tries.get(row.item)) is None or old.number != row.number
    ]
    fresh = after.attempt is not None and (
        before.attempt is None or before.attempt.epoch != after.attempt.epoch
    )
    if after.epoch != before.epoch + fresh:
        broken.append(f"{where}: epoch {before.epoch} -> {after.epoch}, a new attempt: {fresh}")
    if fresh and before.tries:
        broken.append(f"{where}: an attempt began while tries of the last were open")
    if opened and (before.hold or before.pause or before.cancel or before.expiry or before.outcome):
        broken.append(f"{where}: started {opened} while the job was stopped")
    most = after.each.parallel if after.each is not None else 1
    if len(after.tries) > most:
        broken.append(f"{where}: {len(after.tries)} tries open, at most {most} may be")
    for row in opened:
        unit = before.position if row.item == "" else before.items.get(row.item)
        if unit is None:
            continue
        if row.number <= unit.tries:
            broken.append(f"{where}: try {row.number} after {unit.tries}")
        if unit.state is ItemState.DONE and row.item and not _begun_again(step, unit, after.items[row.item]):
            broken.append(f"{where}: {row.item} was done and started again")
    for item in before.items:
        now = after.items[item.id]
        if item.state is ItemState.DONE and now != item and not _begun_again(step, item, now):
            broken.append(f"{where}: {item.id} was done and became {now}")
    return broken


def holds(world: World) -> dict[str, int]:
    """How often each hold, and each kind of wait, came about in all jobs."""
    found: dict[str, int] = {}
    for job in world.jobs:
        folder = world.place(job)
        for step in history(folder)[0] if folder is not None else ():
            changes = step.entry.changes
            codes = [f"held: {changes.hold.code}"] if changes.hold is not None else []
            codes += [f"waits: {row.kind}" for row in changes.waits or ()]
            for code in codes:
                found[code] = found.get(code, 0) + 1
    return found


def _of_time(step: Step) -> list[str]:
    """In one boot nothing starts before its time, after its end or while the job waits; no deadline comes
    early; and what is used never falls. The boot clock is the truth about one boot."""
    before, after, at = step.before, step.after, step.at
    where = f"line {step.sequence} {step.entry.decision.rule}"
    broken: list[str] = []
    opened = [row for unit, row in after.tries.items() if unit not in before.tries]
    deadline = limits.deadline(before)
    if opened and any(row.kind is not WaitKind.BREAKER for row in after.waits):
        broken.append(f"{where}: started {opened} while the job waits")
    if opened and deadline is not None and deadline.boot == at.boot and at.up >= deadline.up:
        broken.append(f"{where}: started {opened} after its deadline")
    ended = before.expiry is None and after.expiry is not None
    if ended and deadline is not None and deadline.boot == at.boot and at.up < deadline.up:
        broken.append(f"{where}: its deadline came early")
    if (after.used.active_seconds or 0.0) < (before.used.active_seconds or 0.0):
        broken.append(f"{where}: what it has used fell")
    return broken


def _begun_again(step: Step, item: Item, now: Item) -> bool:
    """Whether what was done is done anew: a person says so, or its workflow, because its source changed."""
    reopens = step.after.contract.on_change is OnChange.REOPEN and now.source != item.source
    return (reopens or step.entry.transition == "reopen") and now.occurrence > item.occurrence


def _of_runs(world: World, job: str, told: list[Step]) -> list[str]:
    """What ran is what the disk said should run, once."""
    opened = {
        (opens.name_of(row), row.epoch, row.number, row.worker)
        for step in told
        for row in (*step.after.tries.values(), *step.after.errands.values())
    }
    return [
        f"ran without a durable start: {one}"
        for one in world.witness.ran
        if one.job == job and (one.unit, one.epoch, one.number, one.worker) not in opened
    ]


def _of_request(asked: Asked, told: list[Step]) -> str:
    """An answered request is in force, a refused one is nowhere, an unanswered one once or never."""
    found = sum(step.entry.decision.reason == asked.word for step in told)
    if asked.answer is None and not asked.lost:
        return f"{asked} was never answered"
    if isinstance(asked.answer, Told):
        wanted = (0,) if asked.answer.repeated else (1,)
    elif isinstance(asked.answer, Refusal):
        wanted = (0,)
    else:
        wanted = (0, 1)
    return "" if found in wanted else f"{asked} stands {found} times in the log, expected {wanted}"
