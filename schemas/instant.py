"""Instants: one moment as three clocks saw it, and the rules for comparing them; never asks a clock.

Durable text is `{"wall": "2026-11-29T03:14:09.000000Z", "boot": "<boot id>", "up": <microseconds>}`.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from attrs import frozen

MICRO = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class Instant:
    """A moment: `wall` in microseconds since 1970 UTC, `up` in microseconds of the boot clock of `boot`."""

    wall: int
    boot: str
    up: int


def spell_once(wall: int) -> str:
    """The UTC text of a wall clock reading in microseconds."""
    second, micro = divmod(wall, MICRO)
    return f"{_spell_second(second)}.{micro:06d}Z"


spell = lru_cache(maxsize=256)(spell_once)
"""The same, for readings that are spelled several times: one line names a moment so often."""


def moment(wall: int) -> str:
    """The same to the second, for sentences that people read."""
    return f"{_spell_second(wall // MICRO)}Z"


@lru_cache(maxsize=1024)
def _spell_second(second: int) -> str:
    """Cached: the lines of one second, and the limits they set, name the same few."""
    return (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")


def read(text: str) -> int:
    """The microseconds of a UTC text that `spell` wrote; ValueError for any other spelling."""
    micro = text[20:26]
    if len(text) != 27 or text[19] != "." or text[26] != "Z" or not (micro.isascii() and micro.isdigit()):
        raise ValueError(f"not a UTC instant: {text!r}")
    return _read_second(text[:19]) * MICRO + int(micro)


@lru_cache(maxsize=1024)
def _read_second(text: str) -> int:
    """Cached as those that are written are."""
    try:
        delta = datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH
    except ValueError:
        raise ValueError(f"not a UTC instant: {text!r}") from None
    second = delta.days * 86_400 + delta.seconds
    if _spell_second(second) != text:
        raise ValueError(f"not a UTC instant: {text!r}")
    return second


def later(instant: Instant, seconds: float) -> Instant:
    """The instant `seconds` after this one, on both of its clocks."""
    step = round(seconds * MICRO)
    return Instant(wall=instant.wall + step, boot=instant.boot, up=instant.up + step)


def reached(limit: Instant, now: Instant) -> bool:
    """True once `limit` has lapsed: the earlier of UTC and elapsed time in one boot, else UTC alone."""
    if now.wall >= limit.wall:
        return True
    return now.boot == limit.boot and now.up >= limit.up


def seconds_until(limit: Instant, now: Instant) -> float:
    """Seconds from `now` until `limit` lapses; 0 when it has."""
    if reached(limit, now):
        return 0.0
    gap = limit.wall - now.wall
    if now.boot == limit.boot:
        gap = min(gap, limit.up - now.up)
    return gap / MICRO


def seconds_between(start: Instant, end: Instant) -> float:
    """Seconds from `start` to `end`: by the boot clock within one boot, else by UTC; never negative."""
    gap = end.up - start.up if start.boot == end.boot else end.wall - start.wall
    return max(0, gap) / MICRO
