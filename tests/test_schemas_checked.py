"""Small files with their own digest: whatever byte is changed or cut, nothing but the right value is read."""

import hashlib
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from resumed.schemas import checked, codec
from resumed.schemas.errors import FaultyInputError


@frozen(kw_only=True)
class Note:
    """A record as such files hold."""

    name: str
    count: int = 0


NOTE = Note(name="harbour", count=7)
RAW = checked.spell(NOTE)


def test_digest_is_that_of_the_lines_before_it(tmp_path: Path) -> None:
    """Anybody can check it: `head -n -2 FILE | sha256sum`."""
    path = tmp_path / "note.json"
    path.write_bytes(RAW)
    said = subprocess.run(["head", "-n", "-2", path], capture_output=True, check=True).stdout

    assert f'  "sha256": "{hashlib.sha256(said).hexdigest()}"\n}}\n'.encode() == RAW[len(said) :]
    assert NOTE == checked.read(RAW, Note, "it")


def test_plain_values_are_spelled_the_same() -> None:
    """A record and its plain value give the same bytes."""
    assert RAW == checked.spell_plain({"name": "harbour", "count": 7})
    assert {"name": "harbour", "count": 7} == checked.read_plain(RAW, "it")


@pytest.mark.parametrize("mask", [1, 2, 4, 8, 16, 32, 64, 128, 255, "any"])
def test_no_changed_byte_is_read(mask: Any) -> None:
    """Every byte, and every bit of it: refused, also where the digest's own line is hit."""
    chance = random.Random(5)
    for place in range(len(RAW)):
        changed = chance.randrange(1, 256) if mask == "any" else mask
        with pytest.raises(FaultyInputError):
            checked.read_plain(RAW[:place] + bytes([RAW[place] ^ changed]) + RAW[place + 1 :], "it")


def test_no_shorter_file_is_read() -> None:
    """Cut anywhere, it is refused."""
    for size in range(len(RAW)):
        with pytest.raises(FaultyInputError):
            checked.read_plain(RAW[:size], "it")


def test_file_without_a_digest_is_read_as_it_is() -> None:
    """Those of the first release carry none."""
    assert NOTE == checked.read(codec.encode_pretty(NOTE), Note, "it")
    assert NOTE == checked.read(codec.encode(NOTE), Note, "it")


REFUSED = {
    "another digest": RAW.replace(b"harbour", b"harbor"),
    "a digest that is not in its last line": b'{"sha256":"%s","name":"x"}' % (b"a" * 64),
    "no object": b"[1]\n",
    "no record": checked.spell_plain({"title": "x"}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_hold_is_refused(case: str) -> None:
    """By name, and with what it was."""
    with pytest.raises(FaultyInputError, match="cannot read it"):
        checked.read(REFUSED[case], Note, "cannot read it")
