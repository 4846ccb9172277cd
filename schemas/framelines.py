"""Frames as bytes: one JSON object and a newline each, read through the strict door.

The few that a step takes are written and read without the converter (`plainframes`), all others by it.
"""

from collections.abc import Callable
from typing import Any

import orjson

from . import codec, plainframes, strict
from .errors import FaultyInputError, ProtocolError
from .frames import (
    FIRST,
    PROTOCOL,
    Close,
    FromWorker,
    Open,
    Raised,
    Ready,
    Returned,
    Run,
    Stop,
    Stopped,
    ToWorker,
    Trouble,
)

MAX_FRAME = 16 * 1024 * 1024

_TO_WORKER: dict[str, type[Any]] = {"open": Open, "run": Run, "stop": Stop, "close": Close}
_FROM_WORKER: dict[str, type[Any]] = {
    "ready": Ready,
    "returned": Returned,
    "raised": Raised,
    "stopped": Stopped,
    "trouble": Trouble,
}
_WORDS = {kind: word for table in (_TO_WORKER, _FROM_WORKER) for word, kind in table.items()}


def write(frame: ToWorker | FromWorker) -> bytes:
    """The bytes of a frame, newline included; FaultyInputError when it is too large to send."""
    plain = plainframes.of_run(frame) if type(frame) is Run else None
    if plain is None:
        plain = {"frame": _WORDS[type(frame)], **codec.to_plain(frame)}
    if isinstance(frame, Open | Ready):
        # Always written, though it is a default: the other side may be of another release.
        plain["protocol"] = frame.protocol
    raw = orjson.dumps(plain) + b"\n"
    if len(raw) > MAX_FRAME:
        raise FaultyInputError("cannot send a frame", (f"{len(raw)} bytes, the most is {MAX_FRAME}",))
    return raw


def _read(raw: bytes, table: dict[str, type[Any]], what: str) -> Any:
    value = strict.parse_own(raw, what)
    word = value.pop("frame", None) if isinstance(value, dict) else None
    kind = table.get(word) if isinstance(word, str) else None
    if kind is None:
        raise FaultyInputError(
            what, (f"expected one of {', '.join(table)} as frame, got {word!r} @ $.frame",)
        )
    # Before anything else of it is looked at: what another protocol says beside its number, nobody knows.
    if kind in (Open, Ready) and (spoken := value.get("protocol", FIRST)) != PROTOCOL:
        raise ProtocolError(what, spoken, PROTOCOL)
    read = PLAIN.get(kind)
    if read is not None and (plain := read(value)) is not None:
        return plain
    return codec.from_plain(value, kind, what)


PLAIN: dict[type[Any], Callable[[dict[str, Any]], Any]] = {
    Run: plainframes.run,
    Returned: plainframes.returned,
}
"""What reads a frame of a kind without the converter, where it can."""


def read_from_worker(raw: bytes) -> FromWorker:
    """The frame in a line that a worker sent, newline excluded; FaultyInputError when it does not hold,
    ProtocolError for a `ready` of another protocol."""
    frame: FromWorker = _read(raw, _FROM_WORKER, "cannot read a worker's frame")
    return frame


def read_to_worker(raw: bytes) -> ToWorker:
    """The frame in a line that the daemon sent, newline excluded; FaultyInputError when it does not hold,
    ProtocolError for an `open` of another protocol."""
    frame: ToWorker = _read(raw, _TO_WORKER, "cannot read the daemon's frame")
    return frame
