"""A job that an earlier release wrote, brought to the present schema level: one line that opens anew.

The order: the lines of the newest log published once more at their own level; a log of the present level
begun behind them; in it the one line that carries the whole snapshot. A crash before that line is durable
leaves the job at its old level, and the next opening begins again; after it, the old lines are history.
"""

from pathlib import Path

from attrs import evolve

from resumed.schemas import codec, line_io
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import STATE_SCHEMA, Changes, Decision, Entry, Line, Snapshot

from . import artifacts, journal
from .journal import Journal
from .recovery import Apply, Recovered


def open_for_writing(
    folder: Path,
    recovered: Recovered,
    apply: Apply,
    now: Instant,
    *,
    named: bool = False,
    later: bool = False,
) -> tuple[Journal, Snapshot]:
    """The job's journal, and its snapshot at the present level; errors, `named` and `later` as there."""
    current = recovered.level == STATE_SCHEMA
    opened = journal.open_for_writing(folder, recovered, named=named, later=later and current)
    if current:
        return opened, recovered.snapshot
    try:
        return opened, _open_anew(opened, recovered, apply, now)
    except BaseException:
        opened.close()
        raise


def line(snapshot: Snapshot, level: int, previous: str, now: Instant) -> Line:
    """The line that carries a snapshot, read at `level`, to the present one."""
    choice = f"from schema {level} to {STATE_SCHEMA}"
    decision = Decision(
        by="daemon", rule="migration", choice=choice, relied_on=(f"line {snapshot.sequence}",)
    )
    return Line(
        sequence=snapshot.sequence + 1,
        epoch=snapshot.epoch,
        previous=previous,
        at=now,
        opening=snapshot,
        entries=(Entry(transition="migrate", decision=decision, changes=Changes()),),
    )


def _open_anew(opened: Journal, recovered: Recovered, apply: Apply, now: Instant) -> Snapshot:
    found = line(recovered.snapshot, recovered.level, recovered.digest, now)
    raw, digest = _spell(opened.folder, found)
    opened.rotate("migration")
    opened.migrate(raw, found.sequence, digest, pinned=recovered.checkpoint)
    return apply(recovered.snapshot, found)


def _spell(folder: Path, found: Line) -> tuple[bytes, str]:
    try:
        return line_io.spell_line(found)
    except FaultyInputError:
        if found.opening is None:
            raise
        # Too large for a line: durable as an artifact before the line that names it.
        kept = artifacts.put(folder, codec.encode(found.opening))
        return line_io.spell_line(evolve(found, opening=None, opening_artifact=kept))
