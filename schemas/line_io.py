"""Spelling of log lines (`sha256 SP json NL`), seals, checkpoints and admissions: bytes in, records out."""

from typing import Any

from attrs import evolve

from . import codec, migrations, strict
from .errors import DamagedError, FaultyInputError
from .snapshot import STATE_SCHEMA, Admission, Checkpoint, Line, Seal

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one line, digest and newline included; checked before a commit is queued."""
_HEX = 64


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
    """The bytes of a log's first line, at the level this release writes."""
    return spell(codec.encode(evolve(seal, state_schema=STATE_SCHEMA)))[0]


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
    """The checkpoint in a file's bytes; NewerSchemaError for a later level, DamagedError if it holds none."""
    try:
        value = strict.parse(raw, what)
        level = migrations.level_of(value, "state_schema", what)
        if level != STATE_SCHEMA:
            value = migrations.migrate("checkpoint", value, level, what)
        found = codec.from_plain(value, Checkpoint, what)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None
    return evolve(found, state_schema=STATE_SCHEMA)


def spell_admission(admission: Admission) -> bytes:
    """The bytes of `job.json`."""
    return codec.encode_pretty(admission)


def read_admission(raw: bytes, what: str) -> Admission:
    """The admission in `job.json`; NewerSchemaError for a later level, DamagedError if it holds none."""
    try:
        value = strict.parse(raw, what)
        level = migrations.level_of(value, "schema", what)
        value = migrations.migrate("admission", value, level, what)
        return codec.from_plain(value, Admission, what)
    except FaultyInputError as error:
        if type(error) is not FaultyInputError:
            raise
        raise DamagedError(str(error)) from None
