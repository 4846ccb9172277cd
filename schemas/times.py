"""Times as people write them: a moment with its zone, or a span from now on; a time without a zone is none.

A span becomes an instant once, when the job is admitted, and is never counted anew.
"""

import re
from datetime import UTC, date, datetime, time

from attrs import frozen

from . import durations
from .instant import MICRO, Instant, later
from .instant import read as read_utc
from .instant import spell as spell_utc

_MOMENT = re.compile(
    r"([12]\d{3}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d(?:\.\d{1,6})?)?([Zz]|[+-]\d\d:\d\d)?\Z",
    re.ASCII,
)
_EXPECTED = 'expected a moment such as "2026-11-29T03:00:00+01:00", or a span from now such as "36h"'


@frozen(kw_only=True)
class When:
    """A moment (`wall`, microseconds since 1970 UTC) or a span from now on (`seconds`); the other is None."""

    wall: int | None = None
    seconds: float | None = None


def canonical(value: object) -> str:
    """One text for what a file gives: a duration as it is, a moment in UTC; ValueError says what is wrong.

    `value` is a text, or the date and time that TOML has words for.
    """
    if isinstance(value, datetime):
        return _spelled(value)
    if isinstance(value, date | time):
        raise ValueError(f"{_EXPECTED}, got only a part of one: {value}")
    if type(value) is not str:
        raise ValueError(_EXPECTED)
    return value if read(value).seconds is not None else _utc(value)


def _spelled(moment: datetime) -> str:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} names no zone: add Z or an offset such as +01:00")
    try:
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except OverflowError:
        raise ValueError(f"{_EXPECTED}, got {moment.isoformat()}") from None


def _utc(text: str) -> str:
    found = _MOMENT.match(text)
    if found is None:
        raise ValueError(f"{_EXPECTED}, got {text!r}")
    day, minute, second, zone = found.groups()
    if zone is None:
        raise ValueError(f"{text} names no zone: add Z or an offset such as +01:00")
    try:
        moment = datetime.fromisoformat(
            f"{day}T{minute}{second or ':00'}{zone.upper().replace('Z', '+00:00')}"
        )
    except ValueError:
        raise ValueError(f"there is no such moment as {text}") from None
    return _spelled(moment)


def read(text: str) -> When:
    """The moment or span in a text; ValueError when it is neither."""
    if re.match(r"\d{4}-", text):
        return When(wall=read_utc(_utc(text)))
    try:
        return When(seconds=durations.read(text))
    except ValueError as error:
        raise ValueError(
            f"{_EXPECTED}, got {text!r}" if "ten years" not in str(error) else str(error)
        ) from None


def instant(when: When, now: Instant) -> Instant:
    """The instant that is meant, on both clocks of `now`; ValueError when it is over ten years away."""
    seconds = when.seconds if when.wall is None else (when.wall - now.wall) / MICRO
    assert seconds is not None
    if abs(seconds) > durations.MOST:
        shown = f"{seconds:.0f} seconds from now" if when.wall is None else spell_utc(when.wall)
        raise ValueError(f"expected a time within ten years, got {shown}")
    return later(now, seconds)
