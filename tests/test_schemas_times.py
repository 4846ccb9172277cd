"""Times as people write them: a moment has a zone, a span counts from now, and anything else is refused."""

from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resumed.schemas import times
from resumed.schemas.instant import MICRO, Instant, later

NOW = Instant(wall=1_795_000_000 * MICRO, boot="one", up=5 * MICRO)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.integers(0, 500 * 365 * 86_400 * MICRO)
"""Microseconds since 1970."""


@settings(max_examples=200, derandomize=True, deadline=None, database=None)
@given(moments, zones)
def test_a_moment_is_the_same_in_every_zone(wall: int, zone: timezone) -> None:
    """Its canonical text is UTC, means that moment, and reads as itself."""
    there = (datetime.fromtimestamp(0, UTC) + timedelta(microseconds=wall)).astimezone(zone)
    text = times.canonical(there.isoformat())

    assert times.canonical(text) == text == times.canonical(there)
    assert wall == times.read(text).wall


@pytest.mark.parametrize(
    ("given_text", "wall"),
    [
        ("2026-11-29T03:00:00+01:00", 1_795_917_600),
        ("2026-11-29 03:00Z", 1_795_921_200),
        ("2026-11-29t03:00:00.5z", 1_795_921_200.5),
    ],
)
def test_a_moment_has_several_spellings(given_text: str, wall: float) -> None:
    """Blank or T, seconds or none, Z or an offset."""
    assert wall * MICRO == times.read(given_text).wall


REFUSED = {
    "no zone": ("2026-11-29T03:00:00", "names no zone"),
    "no zone in TOML": (datetime.fromisoformat("2026-11-29T00:00"), "names no zone"),
    "a day alone": ("2026-11-29", "expected a moment"),
    "a day alone in TOML": (date(2026, 11, 29), "only a part"),
    "a time alone in TOML": (time(3, 0), "only a part"),
    "a bare number": (5, "expected a moment"),
    "nothing": (None, "expected a moment"),
    "a number in a text": ("5", "expected a moment"),
    "no such day": ("2026-02-30T03:00:00Z", "no such moment"),
    "words": ("tomorrow", "expected a moment"),
    "a week of the year": ("2026-W48-1T03:00Z", "expected a moment"),
    "a span of decades": ("600w", "at most ten years"),
    "the year 1": ("0001-01-01T00:00:00Z", "expected a moment"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_refused(case: str) -> None:
    """The refusal says what is wrong and what a time looks like."""
    value, said = REFUSED[case]
    with pytest.raises(ValueError, match=said):
        times.canonical(value)


def test_both_kinds_become_instants_on_both_clocks() -> None:
    """A moment lies as far ahead on the boot clock as on the wall; one in the past lies behind on both."""
    ahead = times.instant(times.read("2026-11-18T11:06:50Z"), NOW)
    behind = times.instant(times.read("2026-11-18T11:06:30Z"), NOW)

    assert later(NOW, 10.0) == ahead == times.instant(times.read("10s"), NOW)
    assert later(NOW, -10.0) == behind


@pytest.mark.parametrize("text", ["2066-01-01T00:00:00Z", "1975-01-01T00:00:00Z"])
def test_a_time_over_ten_years_away_is_refused(text: str) -> None:
    """It is a mistake rather than a plan."""
    with pytest.raises(ValueError, match="within ten years"):
        times.instant(times.read(text), NOW)
