"""What the disk says about one job: a function of its files, the same on every try; it writes nothing.

Newest checkpoint that verifies, then the logs after it. A read error is no verdict (UnreadableError). Only
bytes that fail their digest are fallen back from; what verifies but is too new (NewerSchemaError), or does
not fit together (DamagedError), sets the job aside.

What an earlier release wrote is read at its own level. Where a later line opens anew (a migration), all
before it is only followed by its chain, and no migration code runs.
"""

from collections.abc import Callable
from errno import ENOENT
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from resumed.schemas import codec, line_io
from resumed.schemas.errors import DamagedError, FaultyInputError, UnreadableError
from resumed.schemas.snapshot import STATE_SCHEMA, Admission, Checkpoint, Line, Seal, Snapshot, Torn

from . import artifacts, durable, files, log

MOST_LOOKS = 4
"""A log that is superseded between the look at the folder and the look at it is no failure: look again. And a
folder is not listed in one instant: while a log is given its next name, a list may miss both."""
Apply = Callable[[Snapshot, Line], Snapshot]
"""The law's pure step from a snapshot (line 1 and migrations: the line's own `opening`) over a line."""


@frozen(kw_only=True)
class Recovered:
    """One job as its files tell it, and what opening it for writing needs."""

    admission: Admission
    job: str
    """sha256 of job.json."""
    snapshot: Snapshot
    sequence: int
    digest: str
    """Of line `sequence`."""
    torn: tuple[Torn, ...]
    """Tails that were cut and not cleared since, the one found now last."""
    torn_now: bool
    """True when the newest log ends in such a tail."""
    notes: tuple[str, ...]
    """What was found and did not stop the job: sentences for people."""
    first: int
    """The first sequence of the newest log, and its `k`."""
    k: int
    before: str
    """The digest of line `first` - 1, for a log that begins at `first`."""
    lines: bytes
    """The verified lines of the newest log, as they lie there."""
    size: int
    """Bytes of the lines since the checkpoint."""
    checkpoint: int
    """The sequence of the checkpoint that recovery began from, 0 for none."""
    rejected: tuple[str, ...]
    """Checkpoint files that failed their digest."""
    pinned: frozenset[int]
    """Sequences of older checkpoints to keep: from each of them a migration began."""
    level: int
    """The schema level that the snapshot was written at; below the present one, a migration is due."""
    log_level: int
    """The schema level of the newest log's lines."""


@frozen(kw_only=True)
class _Base:
    """Where replay begins."""

    sequence: int
    digest: str
    snapshot: Snapshot | None = None
    """None where nothing is opened yet, or where a later line opens anew."""
    level: int = STATE_SCHEMA
    pinned: frozenset[int] = frozenset()
    rejected: tuple[str, ...] = ()


def load(folder: Path, apply: Apply) -> Recovered:
    """The job in a folder; the errors are those of this module's first lines."""
    said = ""
    for _ in range(MOST_LOOKS - 1):
        try:
            return _load(folder, apply)
        except UnreadableError as error:
            if error.errno != ENOENT:
                raise
        except DamagedError as error:
            if said == str(error):
                raise  # said twice of the same files, it is believed
            said = str(error)
    return _load(folder, apply)


def _load(folder: Path, apply: Apply) -> Recovered:
    found = _list(folder)
    raw = _read(folder / files.JOB)
    job = codec.digest(raw)
    base = _find_base(folder, found, job)
    logs = _needed(folder, found, base.sequence)
    state = _Replay(folder, job, base, apply, found)
    for name, after in zip(logs, [*logs[1:], None], strict=True):
        state.replay(name, after)
    return state.result(line_io.read_admission(raw, f"cannot load {folder.name}: job.json"))


def peek(folder: Path) -> Admission:
    """The admission record alone; the same errors as `load`."""
    return line_io.read_admission(_read(folder / files.JOB), f"cannot read {folder.name}: job.json")


def read_checkpoint(folder: Path, name: files.CheckpointName, job: str) -> Checkpoint | None:
    """A checkpoint that fits its name and its job; None when its bytes fail the digest in the name."""
    what = f"cannot load {folder.name}: {name}"
    parsed = _parse_checkpoint(folder, name, what)
    return None if parsed is None else _whole_checkpoint(folder, name, job, parsed, what)


def _parse_checkpoint(folder: Path, name: files.CheckpointName, what: str) -> tuple[Any, int] | None:
    raw = _read(folder / str(name))
    return line_io.parse_checkpoint(raw, what) if codec.digest(raw) == name.digest else None


def _whole_checkpoint(
    folder: Path, name: files.CheckpointName, job: str, parsed: tuple[Any, int], what: str
) -> Checkpoint:
    found = line_io.checkpoint_of(*parsed, what)
    if found.sequence != name.sequence or found.snapshot.sequence != name.sequence:
        raise _damaged(folder, f"{name} holds sequence {found.sequence}")
    if found.job != job:
        raise _damaged(folder, f"{name} was made for another job.json")
    return found


def _list(folder: Path) -> files.Listing:
    with durable.reading(folder):
        found = files.listing(folder)
    if not found.has_job:
        raise _damaged(folder, "job.json is missing")
    return found


def _read(path: Path) -> bytes:
    try:
        return durable.read_all(path)
    except OSError as error:
        raise durable.unreadable(path, error) from error


def _damaged(folder: Path, why: str) -> DamagedError:
    return DamagedError(f"cannot load {folder.name}: {why}", path=str(folder))


def _find_base(folder: Path, found: files.Listing, job: str) -> _Base:
    rejected: list[str] = []
    for name in reversed(found.checkpoints):
        what = f"cannot load {folder.name}: {name}"
        parsed = _parse_checkpoint(folder, name, what)
        if parsed is None:
            rejected.append(str(name))
            continue
        if parsed[1] < STATE_SCHEMA and _opens_anew(folder, found, name.sequence):
            return evolve(_chained_base(folder, name, job, parsed), rejected=tuple(rejected))
        checkpoint = _whole_checkpoint(folder, name, job, parsed, what)
        return _Base(
            sequence=name.sequence,
            digest=checkpoint.previous,
            snapshot=checkpoint.snapshot,
            level=parsed[1],
            pinned=frozenset(checkpoint.pinned),
            rejected=tuple(rejected),
        )
    return _Base(sequence=0, digest=job, rejected=tuple(rejected))


def _chained_base(folder: Path, name: files.CheckpointName, job: str, parsed: tuple[Any, int]) -> _Base:
    """The base that a checkpoint of an earlier level is to a line that opens anew: only what the chain needs.

    These keys are the same at every level.
    """
    value, level = parsed
    previous, pinned = value.get("previous"), value.get("pinned", [])
    if value.get("sequence") != name.sequence or value.get("job") != job or type(previous) is not str:
        raise _damaged(folder, f"{name} is not the checkpoint that its name says")
    kept = frozenset(one for one in pinned if type(one) is int) if type(pinned) is list else frozenset()
    return _Base(sequence=name.sequence, digest=previous, level=level, pinned=kept)


def _opens_anew(folder: Path, found: files.Listing, base: int) -> int:
    """The first line after `base` at the present level, where it stands; 0 when there is none.

    Levels rise only with a migration, so that line carries the whole snapshot.
    """
    for first, name in found.newest_logs().items():
        if first <= base:
            continue
        raw = _read(folder / str(name))
        seal, end = log.read_seal(raw, f"cannot load {folder.name}: {name}")
        if seal.state_schema == STATE_SCHEMA:
            return first if log.line_at(raw, end) is not None else 0
    return 0


def _needed(folder: Path, found: files.Listing, base: int) -> list[files.LogName]:
    """The logs after the base; a checkpoint vouches for the log that follows it, being written later."""
    newest = found.newest_logs()
    for sequence in sorted({base, *(one.sequence for one in found.checkpoints if one.sequence > base)}):
        if sequence + 1 not in newest:
            raise _damaged(folder, f"the log from line {sequence + 1} on is missing")
    return [name for first, name in newest.items() if first > base]


class _Replay:
    """Applies logs in their order; holds what is known so far."""

    def __init__(self, folder: Path, job: str, base: _Base, apply: Apply, found: files.Listing) -> None:
        self.folder, self.job, self.base, self.apply = folder, job, base, apply
        self.sequence, self.digest, self.snapshot = base.sequence, base.digest, base.snapshot
        self.level, self.pinned = base.level, base.pinned
        self.log_level = STATE_SCHEMA
        self._listed = found
        self._anew: int | None = None
        self.size = 0
        self.notes = [f"{name} fails its digest" for name in base.rejected]
        self.torn: tuple[Torn, ...] = ()
        self.torn_now = False
        self.newest = files.LogName(1, 0)
        self.before = base.digest
        self.lines = b""

    def replay(self, name: files.LogName, after: files.LogName | None) -> None:
        """Apply one log: up to the seal of the log after it, or to its last line that verifies."""
        what = f"cannot load {self.folder.name}: {name}"
        raw = _read(self.folder / str(name))
        seal, start = log.read_seal(raw, what)
        self._check_seal(seal, name)
        self.before = self.digest
        end = start
        for found in log.lines(raw, start):
            if after is not None and self.sequence == after.first - 1:
                break  # what lies past the next log's seal does not exist
            if line_io.is_end(found.payload):
                raise _damaged(self.folder, f"the log from line {self.sequence + 1} on is missing")
            self._take(found, seal.state_schema, name, what)
            end = found.end
        self.size += end - start
        if after is not None:
            if self.sequence != after.first - 1:
                raise _damaged(
                    self.folder, f"{name} breaks off after line {self.sequence}, before {after} begins"
                )
            return
        self.newest, self.lines, self.torn = name, raw[start:end], seal.torn
        self._tail(raw, end, seal, name)

    def _check_seal(self, seal: Seal, name: files.LogName) -> None:
        if seal.seal != name.first - 1 or seal.seal != self.sequence:
            raise _damaged(self.folder, f"{name} seals line {seal.seal}, expected {self.sequence}")
        if seal.job != self.job:
            raise _damaged(self.folder, f"{name} was written for another job.json")
        if seal.digest != self.digest:
            raise _damaged(self.folder, f"{name} does not continue line {self.sequence}")
        self.log_level = seal.state_schema

    def _take(self, found: log.RawLine, level: int, name: files.LogName, what: str) -> None:
        if level < STATE_SCHEMA and self.sequence + 1 < self._opens_anew():
            self._link(*line_io.read_link(found.payload, what), name)
            self.sequence, self.digest = self.sequence + 1, found.digest
            return
        line = line_io.read_line(found.payload, level, what)
        self._link(line.sequence, line.previous, name)
        self._apply(line, level, name)
        self.sequence, self.digest = line.sequence, found.digest

    def _opens_anew(self) -> int:
        if self._anew is None:
            self._anew = _opens_anew(self.folder, self._listed, self.base.sequence)
        return self._anew

    def _link(self, sequence: int, previous: str, name: files.LogName) -> None:
        if sequence != self.sequence + 1:
            raise _damaged(self.folder, f"{name} holds line {sequence} where {self.sequence + 1} belongs")
        if previous != self.digest:
            raise _damaged(self.folder, f"line {sequence} in {name} does not continue the one before")

    def _opening(self, line: Line, level: int) -> Snapshot | None:
        if not line.opening_artifact:
            return line.opening
        what = f"cannot load {self.folder.name}: artifact {line.opening_artifact}"
        try:
            return line_io.read_opening(artifacts.read(self.folder, line.opening_artifact), level, what)
        except ValueError as error:
            raise _damaged(self.folder, str(error)) from None

    def _apply(self, line: Line, level: int, name: files.LogName) -> None:
        opening = self._opening(line, level)
        start = self.snapshot if opening is None else opening
        if start is None:
            raise _damaged(self.folder, f"line {line.sequence} in {name} opens no snapshot")
        if opening is None and level != self.level:
            raise _damaged(self.folder, f"line {line.sequence} in {name} opens no snapshot of its level")
        if opening is not None and 0 < self.base.sequence < line.sequence:
            self.pinned |= {self.base.sequence}
        self.level = level
        try:
            self.snapshot = self.apply(start, line)
        except (ValueError, LookupError, TypeError, FaultyInputError) as error:
            raise _damaged(
                self.folder, f"line {line.sequence} in {name} cannot be applied: {error}"
            ) from error
        # Nobody reads the table of the line before: its overlay may be folded in, else replay is quadratic.
        self.snapshot.items.settle()

    def _tail(self, raw: bytes, end: int, seal: Seal, name: files.LogName) -> None:
        if self.sequence < seal.through:
            # Those lines were durable before the log got its name: no crash can have torn them.
            raise _damaged(
                self.folder, f"{name} ends after line {self.sequence}, but was published with {seal.through}"
            )
        if log.is_clean(raw, end):
            return
        good = log.good_line_after(raw, end)
        if good is not None:
            raise _damaged(
                self.folder, f"line {self.sequence + 1} in {name} is broken, yet a good one follows at {good}"
            )
        self.torn_now = True
        self.torn = (*self.torn, Torn(log=str(name), offset=end, sequence=self.sequence + 1))
        self.notes.append(f"line {self.sequence + 1} in {name} does not verify and was cut at byte {end}")

    def result(self, admission: Admission) -> Recovered:
        """All of it, once every log was applied."""
        if self.snapshot is None:
            raise _damaged(self.folder, "line 1 is missing")
        if admission.id != self.snapshot.job.id:
            raise _damaged(
                self.folder, f"job.json is of {admission.id}, the snapshot of {self.snapshot.job.id}"
            )
        return Recovered(
            admission=admission,
            job=self.job,
            snapshot=self.snapshot,
            sequence=self.sequence,
            digest=self.digest,
            torn=self.torn,
            torn_now=self.torn_now,
            notes=tuple(self.notes),
            first=self.newest.first,
            k=self.newest.k,
            before=self.before,
            lines=self.lines,
            size=self.size,
            checkpoint=self.base.sequence,
            rejected=self.base.rejected,
            pinned=self.pinned,
            level=self.level,
            log_level=self.log_level,
        )
