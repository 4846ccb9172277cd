"""Small JSON files that carry their own digest: their last key is the sha256 of all bytes before that line.

    head -n -2 store.json | sha256sum        # says what the line `"sha256": "..."` says

For files that no other file vouches for. Those of the first release carry none, and are read as they are.
"""

import re
from typing import Any, TypeVar

from . import codec, strict
from .errors import FaultyInputError

T = TypeVar("T")
KEY = "sha256"
_END = re.compile(rb'  "sha256": "([0-9a-f]{64})"\n}\n\Z')
_ALIKE = re.compile(rb'"[0-9a-f]{64}"\n}\n\Z')
"""How no file without a digest ends: whatever the key before it has become."""


def spell(record: object) -> bytes:
    """The bytes of a record's file, digest and all. The record has no field `sha256` and is not empty."""
    return _close(codec.encode_pretty(record))


def spell_plain(value: dict[str, Any]) -> bytes:
    """The same for a plain value."""
    return _close(codec.dump_pretty(value))


def read(raw: bytes, kind: type[T], what: str) -> T:
    """The record in a file; FaultyInputError when its bytes fail their digest or do not fit the record."""
    return codec.from_plain(read_plain(raw, what), kind, what)


def read_plain(raw: bytes, what: str) -> Any:
    """The plain value in a file, without the digest; the errors are those of `read`."""
    end = _END.search(raw)
    if end is not None and codec.digest(raw[: end.start()]).encode() != end[1]:
        raise FaultyInputError(what, ("its bytes fail the digest in its last line",))
    value = strict.parse(raw, what)
    if not isinstance(value, dict):
        raise FaultyInputError(what, ("expected an object @ $",))
    if end is None and (KEY in value or _ALIKE.search(raw)):
        raise FaultyInputError(what, (f"expected the digest alone in its last line @ $.{KEY}",))
    return {key: one for key, one in value.items() if key != KEY}


def _close(pretty: bytes) -> bytes:
    head = pretty.removesuffix(b"\n}\n") + b",\n"
    return head + b'  "sha256": "%s"\n}\n' % codec.digest(head).encode()
