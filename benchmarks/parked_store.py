"""Stores full of parked jobs: made by the store's own admission, journal and checkpoint code, and by the law.

A third of the jobs is paused, a third held, a third waits for an instant an hour away; each has made a step,
holds about 1 KiB of state, and was parked as the daemon parks it: a checkpoint, an empty log behind it.
Syncs are left out while a store is made (one `sync` at the end stands for them): only the daemon is measured.
"""

import os
from pathlib import Path

import jobs
from syncs import left_out
from ticking import FILLING

from resumed.actors.clock import SystemClock
from resumed.actors.machine.apply import apply
from resumed.actors.machine.transition import transition
from resumed.schemas import decisions, events, line_io
from resumed.schemas.decisions import Answer
from resumed.schemas.instant import Instant
from resumed.schemas.job import Person
from resumed.schemas.snapshot import STATE_SCHEMA, Checkpoint, Entry, Line, Snapshot
from resumed.schemas.workflow import Contract
from resumed.store import admission, durable, journal, layout, recovery
from resumed.store.journal import Journal
from resumed.store.layout import Layout

STATE = {"count": "1", "text": f'"{FILLING}"'}
HOUR = 3600.0
PERSON = Person(uid=0, name="bench")


def make(root: Path, count: int) -> None:
    """A store in `root` with `count` parked jobs; what is there already stays."""
    clock = SystemClock()
    store = layout.create(root, "bench", clock.now())
    pinned = jobs.contract(slots=1)
    with left_out():
        for number in range(count):
            if not durable.exists(store.job(name(number))):
                _park(store, number, pinned, clock)
    os.sync()


def name(number: int) -> str:
    return f"parked-{number:06}"


def _park(store: Layout, number: int, pinned: Contract, clock: SystemClock) -> None:
    record, line = jobs.admitted(name(number), pinned, steps=1_000)
    admission.admit(store, record, line)
    found = recovery.load(store.job(record.id), apply)
    written = journal.open_for_writing(store.job(record.id), found)
    snapshot = found.snapshot
    for event in _life(number):
        snapshot = _commit(written, snapshot, event, clock.now())
    written.rotate("park", fill=False)
    written.write_checkpoint(line_io.spell_checkpoint(_checkpoint(written, snapshot)), snapshot.sequence)
    written.close()


def _life(number: int) -> tuple[events.Event, ...]:
    """One step that sets the state, and then what parks the job."""
    granted = events.Grant(unit="", worker="worker-1")
    stepped = _returned(1, decisions.GoTo(step="tick"), STATE)
    match number % 3:
        case 0:
            return granted, stepped, events.Pause(by=PERSON, reason="over the week-end")
        case 1:
            return granted, stepped, events.Trouble(code="bench", reason="a person has to look at it")
    return granted, stepped, granted, _returned(2, decisions.Later(seconds=HOUR), {})


def _returned(number: int, decided: decisions.Decided, state: dict[str, str]) -> events.Returned:
    answer = Answer(decided=decided, state=state)
    return events.Returned(unit="", epoch=1, number=number, answer=answer, slot=False)


def _commit(written: Journal, snapshot: Snapshot, event: events.Event, now: Instant) -> Snapshot:
    entry = transition(snapshot, event, now)
    if not isinstance(entry, Entry):
        raise AssertionError(f"the law refused {event}: {entry}")
    line = Line(sequence=written.sequence + 1, epoch=1, previous=written.digest, at=now, entries=(entry,))
    raw, digest = line_io.spell_line(line)
    written.append(raw, line.sequence, digest)
    return apply(snapshot, line)


def _checkpoint(written: Journal, snapshot: Snapshot) -> Checkpoint:
    return Checkpoint(
        sequence=snapshot.sequence,
        epoch=snapshot.epoch,
        previous=written.digest,
        state_schema=STATE_SCHEMA,
        code_version=snapshot.code_version,
        last_transition=snapshot.last_transition,
        job=written.job,
        torn=written.torn,
        snapshot=snapshot,
    )
