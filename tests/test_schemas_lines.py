"""Lines, seals, checkpoints and admissions: what verifies is what was written, and nothing else does."""

import json
import random
from typing import Any

import pytest
from attrs import evolve
from schema_kit import sample

from resumed.schemas import codec, line_io, migrations
from resumed.schemas.errors import DamagedError, FaultyInputError, NewerSchemaError
from resumed.schemas.snapshot import (
    STATE_SCHEMA,
    Admission,
    Changes,
    Checkpoint,
    Decision,
    Entry,
    Line,
    Seal,
)

LINE: Line = sample(Line)
RAW, DIGEST = line_io.spell_line(LINE)


def _line(text: str) -> Line:
    entry = Entry(transition="t", decision=Decision(by="x", rule="t", choice=text), changes=Changes())
    return evolve(LINE, opening=None, entries=(entry,))


def test_line_verifies_and_reads_back() -> None:
    """A line is its digest, a space, its JSON and a newline; the payload reads as the line."""
    payload = line_io.verified(RAW[:-1])

    assert payload is not None
    assert (DIGEST.encode(), b" ", b"\n") == (RAW[:64], RAW[64:65], RAW[-1:])
    assert (DIGEST, LINE) == (codec.digest(payload), line_io.read_line(payload, STATE_SCHEMA, "it"))
    assert 1 == RAW.count(b"\n")


def test_any_changed_byte_is_seen() -> None:
    """Flip any bit of any byte: the line does not verify."""
    chance = random.Random(7)
    whole = line_io.spell_line(_line("go on"))[0][:-1]
    for place in range(len(whole)):
        for bit in (1, 0x20, 1 << chance.randrange(8)):
            assert None is line_io.verified(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])


def test_any_missing_or_added_byte_is_seen() -> None:
    """A line cut anywhere, grown by a byte, or moved by one does not verify."""
    whole = line_io.spell_line(_line("go on"))[0][:-1]
    for place in range(len(whole)):
        assert None is line_io.verified(whole[:place])
        assert None is line_io.verified(whole[:place] + whole[place + 1 :])
        assert None is line_io.verified(whole[:place] + b"\x00" + whole[place:])
    assert None is line_io.verified(whole + b" ")


@pytest.mark.parametrize(
    "raw", [b"", b"\x00" * 200, b"a" * 64, b"a" * 64 + b" ", RAW[:64].upper() + RAW[64:-1]]
)
def test_what_is_no_line_does_not_verify(raw: bytes) -> None:
    """Zeros of a preallocated log, and a digest in another spelling, are no line."""
    assert None is line_io.verified(raw)


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
def test_no_line_is_written_that_the_door_would_not_let_in(text: str) -> None:
    """What cannot be read again is refused before it is durable, not found at the next start."""
    with pytest.raises(FaultyInputError, match="cannot commit"):
        line_io.spell_line(_line(text))


def test_text_that_looks_like_an_escape_is_good() -> None:
    """The letters backslash, u, 0000 are letters."""
    payload = line_io.verified(line_io.spell_line(_line("\\u0000"))[0][:-1])

    assert payload is not None
    assert _line("\\u0000") == line_io.read_line(payload, STATE_SCHEMA, "it")


def test_moments_out_of_the_calendar_are_refused() -> None:
    """An instant that has no text is refused by the line, and does not end whoever writes it."""
    far = evolve(LINE.at, wall=10**30)
    with pytest.raises(FaultyInputError, match="cannot commit"):
        line_io.spell_line(evolve(_line("go on"), at=far))


def test_too_long_a_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Size is checked before a commit is queued, newline and digest included."""
    monkeypatch.setattr(line_io, "MAX_LINE", len(RAW))
    assert RAW == line_io.spell_line(LINE)[0]
    monkeypatch.setattr(line_io, "MAX_LINE", len(RAW) - 1)
    with pytest.raises(FaultyInputError, match="the most is"):
        line_io.spell_line(LINE)


def _seal(**more: Any) -> bytes:
    plain = json.loads(codec.encode(sample(Seal)))
    return json.dumps({**plain, "state_schema": STATE_SCHEMA, **more}).encode()


def _checkpoint(**more: Any) -> bytes:
    plain = json.loads(line_io.spell_checkpoint(sample(Checkpoint)))
    return json.dumps({**plain, "state_schema": STATE_SCHEMA, **more}).encode()


def _admission(**more: Any) -> bytes:
    plain = json.loads(line_io.spell_admission(sample(Admission)))
    return json.dumps({**plain, "schema": STATE_SCHEMA, **more}).encode()


READS: dict[str, tuple[Any, Any, str]] = {
    "seal": (line_io.read_seal, _seal, "state_schema"),
    "checkpoint": (line_io.read_checkpoint, _checkpoint, "state_schema"),
    "admission": (line_io.read_admission, _admission, "schema"),
}


@pytest.mark.parametrize("what", READS)
def test_a_record_of_the_present_level_reads(what: str) -> None:
    """The level stands in the record itself."""
    read, made, level = READS[what]

    assert STATE_SCHEMA == getattr(read(made(**{level: STATE_SCHEMA}), what), level)


@pytest.mark.parametrize("what", READS)
def test_a_record_of_an_earlier_level_says_which(what: str) -> None:
    """It is brought to the present level in memory, and its own level stays on it: it tells what is due."""
    read, made, level = READS[what]

    assert 1 == getattr(read(made(**{level: 1}), what), level)


@pytest.mark.parametrize("what", READS)
def test_a_record_of_a_later_level_is_newer_and_not_damaged(what: str) -> None:
    """Unknown keys of a later level are never judged: the level is asked first."""
    read, made, level = READS[what]
    with pytest.raises(NewerSchemaError, match="this daemon reads up to"):
        read(made(**{level: STATE_SCHEMA + 1, "unheard": {"of": [1]}}), what)


DAMAGE: dict[str, Any] = {
    "another type": {"job": 7, "id": 7},
    "an unknown key": {"unheard": 1},
    "a level of text": {"state_schema": "1", "schema": "1"},
    "a level of a float": {"state_schema": 1.0, "schema": 1.0},
    "a level of true": {"state_schema": True, "schema": True},
    "a level of none": {"state_schema": None, "schema": None},
    "level 0": {"state_schema": 0, "schema": 0},
}


@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("case", DAMAGE)
def test_a_record_that_does_not_hold_is_damaged(what: str, case: str) -> None:
    """Stored bytes whose digest holds but whose form does not are damage, by one name."""
    read, made, _ = READS[what]
    with pytest.raises(DamagedError):
        read(made(**DAMAGE[case]), what)


@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"7", b'"x"', b"null", b"{", b'{"a":1,"a":1}', b"\xff", b"[" * 9999]
)
def test_bytes_that_are_no_record_are_damaged(what: str, raw: bytes) -> None:
    """Whatever else stands there."""
    with pytest.raises(DamagedError):
        READS[what][0](raw, what)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"a":NaN}', b"{", b"\xff"])
def test_a_payload_that_is_no_line_is_damaged(raw: bytes) -> None:
    """At the present level and at one that would be migrated."""
    for level in (STATE_SCHEMA, STATE_SCHEMA - 1):
        with pytest.raises(DamagedError):
            line_io.read_line(raw, level, "it")


def test_a_line_of_a_later_level_is_newer() -> None:
    """A log's level is its seal's; a later one is not read with today's eyes."""
    with pytest.raises(NewerSchemaError):
        line_io.read_line(b"{}", STATE_SCHEMA + 1, "it")


def test_an_older_line_goes_through_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line is applied as its own level meant it: its migration runs before its form is judged."""
    plain = json.loads(codec.encode(_line("go on")))
    plain["previously"] = plain.pop("previous")

    def step(value: Any) -> Any:
        return {("previous" if key == "previously" else key): one for key, one in value.items()}

    monkeypatch.setattr(migrations.migrate, "__kwdefaults__", {"steps": {("line", 1): step}, "known": 2})
    monkeypatch.setattr(line_io, "STATE_SCHEMA", 2)

    assert _line("go on") == line_io.read_line(json.dumps(plain).encode(), 1, "it")


def test_a_seal_that_names_no_level_is_of_the_first() -> None:
    """Logs of level 1 stay of level 1 for every later release, and later ones name theirs."""
    seal = evolve(sample(Seal), state_schema=1)
    first = line_io.spell_seal(seal)[65:-1]
    second = line_io.spell_seal(evolve(seal, state_schema=2))[65:-1]

    assert (False, True) == (b"state_schema" in first, b'"state_schema":2' in second)
    assert (1, 2) == tuple(line_io.read_seal(raw, "it").state_schema for raw in (first, second))
