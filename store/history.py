"""What the logs of one job still tell of its past, line by line; it reads only, and recovers nothing.

Damage here that recovery does not need stops nobody: it is noted, and what verifies beside it is told.
"""

from collections.abc import Iterator
from errno import ENOENT
from pathlib import Path

from attrs import frozen

from resumed.schemas import line_io
from resumed.schemas.errors import DamagedError, FaultyInputError, UnreadableError
from resumed.schemas.snapshot import Line, Seal

from . import durable, files, log

MOST_BYTES = 1024 * 1024
"""Bytes of stored lines in one piece of the past; one line alone may be longer."""
MOST_LOOKS = 3
"""A log that is superseded between the look at the folder and the look at it is no damage: look again."""
_SLACK = 8
"""Lines looked at before the first one wanted: damage may have cut one in two, or made one of two."""


@frozen(kw_only=True)
class Past:
    """A piece of a job's past, oldest line first, without the snapshots that lines open with."""

    lines: tuple[Line, ...]
    following: int
    """The sequence after which to go on, 0 when nothing follows now."""
    torn: int
    """How many tails were cut and are not cleared, as the newest log says."""
    notes: tuple[str, ...]
    """What is missing or does not verify, in sentences."""


def read(folder: Path, after: int, most: int) -> Past:
    """Up to `most` lines after sequence `after`; a negative one counts from the end.

    UnreadableError when the folder cannot be listed; a log that cannot be read is noted.
    """
    for _ in range(MOST_LOOKS):
        with durable.reading(folder):
            logs = list(files.listing(folder).newest_logs().values())
        reader = _Reader(folder, logs)
        past = _read(reader, after, most)
        if not reader.vanished:
            break
    return past


def _read(reader: "_Reader", after: int, most: int) -> Past:
    start = reader.last() + after if after < 0 else after
    lines: list[Line] = []
    size, following = 0, 0
    for line, weight in reader.lines(max(0, start)):
        if len(lines) == most or (lines and size + weight > MOST_BYTES):
            following = lines[-1].sequence
            break
        lines.append(line)
        size += weight
    return Past(
        lines=tuple(lines), following=following, torn=reader.torn(), notes=tuple(dict.fromkeys(reader.notes))
    )


class _Reader:
    """One look at the logs of a folder; `notes` gathers what is wrong with them."""

    def __init__(self, folder: Path, logs: list[files.LogName]) -> None:
        self.notes: list[str] = []
        self.vanished = False
        self._folder = folder
        self._logs = logs
        self._newest: bytes | None = None

    def last(self) -> int:
        """The last sequence there is, judged by the newest log alone."""
        raw = self._raw(self._logs[-1]) if self._logs else b""
        first = self._logs[-1].first if self._logs else 1
        return first - 1 + max(0, raw.count(b"\n") - 1)

    def torn(self) -> int:
        """The tails that the newest log's seal repeats."""
        seal = self._seal(self._logs[-1], self._raw(self._logs[-1])) if self._logs else None
        return 0 if seal is None else len(seal.torn)

    def lines(self, after: int) -> Iterator[tuple[Line, int]]:
        """The lines past `after` that verify, each with its bytes; what is missing between them is noted."""
        place = after
        ends = [log.first - 1 for log in self._logs[1:]]
        for name, end in zip(self._logs, [*ends, None], strict=True):
            if end is not None and end <= place:
                continue
            for line, weight in self._of(name, place, end):
                if line.sequence > place + 1:
                    self._missing(place + 1, line.sequence - 1)
                place = line.sequence
                yield line, weight
            if end is not None and place < end:
                self._missing(place + 1, end)
                place = end

    def _missing(self, first: int, last: int) -> None:
        lines = f"line {first} is" if first == last else f"lines {first} to {last} are"
        self.notes.append(f"{lines} not there, or cannot be read")

    def _of(self, name: files.LogName, after: int, end: int | None) -> Iterator[tuple[Line, int]]:
        """The lines of one log past `after`, as far as the log after it lets them count."""
        raw = self._raw(name)
        seal = self._seal(name, raw)
        if seal is None:
            return
        skip = max(1, after + 2 - name.first - _SLACK)
        *parts, rest = raw.split(b"\n")[skip:] if skip == 1 else raw.split(b"\n", skip)[-1].split(b"\n")
        for place, part in enumerate(parts):
            if line_io.is_end(part[log.PAYLOAD :]):
                continue
            line = self._line(part, seal, name)
            if line is None:
                if place < len(parts) - 1 or end is not None:
                    self.notes.append(f"a line in {name} does not verify")
            elif line.sequence > after and (end is None or line.sequence <= end):
                yield line, len(part)
        if rest.strip(b"\0") and end is not None:
            self.notes.append(f"a line in {name} does not verify")

    def _line(self, raw: bytes, seal: Seal, name: files.LogName) -> Line | None:
        payload = line_io.verified(raw)
        if payload is None:
            return None
        try:
            return line_io.read_past(payload, seal.state_schema, f"{self._folder.name}: {name}")
        except (DamagedError, FaultyInputError) as error:
            self.notes.append(str(error))
            return None

    def _raw(self, name: files.LogName) -> bytes:
        """The bytes of a log, none when it cannot be read; the newest is read once."""
        if name == self._logs[-1] and self._newest is not None:
            return self._newest
        raw = b""
        try:
            with durable.reading(self._folder / str(name)):
                raw = durable.read_all(self._folder / str(name))
        except UnreadableError as error:
            self.vanished |= error.errno == ENOENT
            self.notes.append(str(error))
        if name == self._logs[-1]:
            self._newest = raw
        return raw

    def _seal(self, name: files.LogName, raw: bytes) -> Seal | None:
        try:
            return log.read_seal(raw, f"{self._folder.name}: {name}")[0] if raw else None
        except (DamagedError, FaultyInputError) as error:
            self.notes.append(str(error))
            return None
