"""Spelling of log lines (`sha256 SP json NL`), seals, checkpoints and admissions: bytes in, records out."""

from typing import Any

from attrs import evolve

from . import codec, migrations, strict
from .errors import DamagedError, FaultyInputError, NewerSchemaError
from .snapshot import STATE_SCHEMA, Admission, Checkpoint, Line, Seal, Snapshot

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one line, digest and newline included; checked before a commit is queued."""
_HEX = 64
_END = b'{"end":'


def spell(payload: bytes) -> tuple[bytes, str]:
    """The whole line around a JSON payload, and its digest."""
    found = codec.digest(payload)
    return b"%s %s\n" % (found.encode(), payload), found


def spell_line(line: Line) -> tuple[bytes, str]:
    """The bytes of a commit line and its digest.

    FaultyInputError when it is longer than MAX_LINE, or when the strict door would not let it in again.
    """
    try:
        payload = codec.encode(line)
    except (TypeError, OverflowError) as error:
        raise FaultyInputError("cannot commit", (str(error),)) from None
    if b"\\u0000" in payload:
        strict.parse(payload, "cannot commit")
    raw, found = spell(payload)
    if len(raw) > MAX_LINE:
        raise FaultyInputError("cannot commit", (f"the line has {len(raw)} bytes, the most is {MAX_LINE}",))
    return raw, found


def spell_seal(seal: Seal) -> bytes:
    """The bytes of a log's first line. Its `state_schema` is that of the lines, which may be copied ones."""
    return spell(codec.encode(seal))[0]


def spell_end(sequence: int, digest: str) -> bytes:
    """What stands behind the last line of a log that another one followed; it tells when that is missing."""
    return spell(codec.dump_plain({"end": sequence, "digest": digest}))[0]


def is_end(payload: bytes) -> bool:
    """True for the payload of such an end: no commit line begins like it."""
    return payload.startswith(_END)


def read_end(payload: bytes, what: str) -> tuple[int, str]:
    """The sequence and digest of the last line before an end; DamagedError if the payload is none."""
    try:
        value = strict.parse_own(payload, what)
    except FaultyInputError as error:
        raise DamagedError(str(error)) from None
    if not isinstance(value, dict) or set(value) != {"end", "digest"} or type(value["end"]) is not int:
        raise DamagedError(f"{what}: expected the end of a log")
    return value["end"], value["digest"]


def verified(raw: bytes) -> bytes | None:
    """The JSON payload of one line (newline excluded) whose digest holds, else None."""
    if len(raw) <= _HEX + 1 or raw[_HEX : _HEX + 1] != b" ":
        return None
    payload = raw[_HEX + 1 :]
    return payload if codec.digest(payload).encode() == raw[:_HEX] else None


def _record(payload: bytes, kind: type[Any], what: str) -> Any:
    try:
        return codec.decode_own(payload, kind, what)
    except FaultyInputError as error:
        raise DamagedError(str(error)) from None


def read_line(payload: bytes, level: int, what: str) -> Line:
    """The commit line in a verified payload of a log of schema `level`; DamagedError if it holds none."""
    if level == STATE_SCHEMA:
        line: Line = _record(payload, Line, what)
        return line
    try:
        value = migrations.migrate("line", strict.parse_own(payload, what), level, what)
        return codec.from_plain(value, Line, what)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None


def read_past(payload: bytes, level: int, what: str) -> Line:
    """The same line without the snapshot that it opens with, which nobody wants who only looks back."""
    try:
        value = strict.parse_own(payload, what)
        if level != STATE_SCHEMA:
            value = migrations.migrate("line", value, level, what)
        if isinstance(value, dict):
            value.pop("opening", None)
        return codec.from_plain(value, Line, what)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None


def read_link(payload: bytes, what: str) -> tuple[int, str]:
    """The sequence and the `previous` of a line of any level, whatever else it holds."""
    try:
        value = strict.parse_own(payload, what)
    except FaultyInputError as error:
        raise DamagedError(str(error)) from None
    sequence, previous = (
        (value.get("sequence"), value.get("previous")) if isinstance(value, dict) else (None, None)
    )
    if type(sequence) is not int or type(previous) is not str:
        raise DamagedError(f"{what}: expected a line with its sequence and previous, got {sequence!r}")
    return sequence, previous


def read_opening(raw: bytes, level: int, what: str) -> Snapshot:
    """The snapshot in an artifact that a line of schema `level` opens with; DamagedError if it holds none."""
    try:
        value = migrations.migrate("snapshot", strict.parse_own(raw, what), level, what)
        return codec.from_plain(value, Snapshot, what)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None


def read_seal(payload: bytes, what: str) -> Seal:
    """The seal in a verified payload, at the level its log was written in.

    NewerSchemaError for a later level, DamagedError for anything else.
    """
    try:
        value = strict.parse_own(payload, what)
        named = {"state_schema": 1, **value} if isinstance(value, dict) else value
        level = migrations.level_of(named, "state_schema", what)
        found = codec.from_plain(migrations.migrate("seal", value, level, what), Seal, what)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None
    return evolve(found, state_schema=level)


def spell_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The bytes of a checkpoint file."""
    return codec.encode_pretty(checkpoint)


def read_checkpoint(raw: bytes, what: str) -> Checkpoint:
    """The checkpoint in a file's bytes, brought to the present level; its `state_schema` stays as written.

    NewerSchemaError for a later level, DamagedError if it holds none.
    """
    return checkpoint_of(*parse_checkpoint(raw, what), what)


def parse_checkpoint(raw: bytes, what: str) -> tuple[Any, int]:
    """The plain value in a checkpoint file, and its level; the errors are those of `read_checkpoint`."""
    try:
        value = strict.parse_own(raw, what)
        level = migrations.level_of(value, "state_schema", what)
        if level > STATE_SCHEMA:
            raise NewerSchemaError(what, level, STATE_SCHEMA)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None
    return value, level


def checkpoint_of(value: Any, level: int, what: str) -> Checkpoint:
    """The checkpoint in a plain value of that level."""
    try:
        found = codec.from_plain(migrations.migrate("checkpoint", value, level, what), Checkpoint, what)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None
    return evolve(found, state_schema=level)


def spell_admission(admission: Admission) -> bytes:
    """The bytes of `job.json`."""
    return codec.encode_pretty(admission)


def read_admission(raw: bytes, what: str) -> Admission:
    """The admission in `job.json`; NewerSchemaError for a later level, DamagedError if it holds none."""
    try:
        value = strict.parse_own(raw, what)
        level = migrations.level_of(value, "schema", what)
        value = migrations.migrate("admission", value, level, what)
        return codec.from_plain(value, Admission, what)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None
