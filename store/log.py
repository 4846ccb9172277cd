"""The bytes of one log: its seal, the lines whose digests hold, the verdict about the tail; reads no disk.

A tail of zeros is free space. A last line that does not verify is torn. A broken line with a good one after
it is damage, because one sync covers exactly one line: the good one cannot have become durable first.
"""

import re
from collections.abc import Iterator

from attrs import frozen

from resumed.schemas import line_io, strict
from resumed.schemas.errors import DamagedError, FaultyInputError
from resumed.schemas.snapshot import Seal

# Every payload of ours begins with `{"`, and no JSON string can hold that unescaped: a line quoted in some
# job's data is never taken for one of the log's.
_START = re.compile(rb'(?=[0-9a-f]{64} \{")')


PAYLOAD = 65
"""Where the JSON of a line begins, behind its digest and a space."""


@frozen
class RawLine:
    """One line whose digest holds: its payload, digest, and where it lies."""

    payload: bytes
    digest: str
    start: int
    end: int


def line_at(raw: bytes, offset: int) -> RawLine | None:
    """The line that begins at `offset`, None when its newline is missing or its digest does not hold."""
    end = raw.find(b"\n", offset)
    if end < 0:
        return None
    payload = line_io.verified(raw[offset:end])
    if payload is None:
        return None
    return RawLine(payload, raw[offset : offset + 64].decode(), offset, end + 1)


def read_seal(raw: bytes, what: str) -> tuple[Seal, int]:
    """The seal of a log and the offset of its first commit line; DamagedError when it does not verify."""
    first = line_at(raw, 0)
    if first is None:
        raise DamagedError(f"{what}: its first line does not verify")
    return line_io.read_seal(first.payload, what), first.end


def lines(raw: bytes, offset: int) -> Iterator[RawLine]:
    """The lines from `offset` on, up to the first that does not verify."""
    found = line_at(raw, offset)
    while found is not None:
        yield found
        found = line_at(raw, found.end)


def is_clean(raw: bytes, offset: int) -> bool:
    """True when nothing but free space follows."""
    return raw.count(b"\0", offset) == len(raw) - offset


def good_line_after(raw: bytes, offset: int) -> int | None:
    """The first place after `offset` where a line verifies, else None; every offset is tried."""
    for start in _START.finditer(raw, offset + 1):
        found = line_at(raw, start.start())
        if found is not None and _is_object(found.payload):
            return found.start
    return None


def _is_object(payload: bytes) -> bool:
    try:
        return isinstance(strict.parse_own(payload, "line"), dict)
    except FaultyInputError:
        return False
