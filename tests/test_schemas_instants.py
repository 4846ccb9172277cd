"""Moments and spans: three clocks, one rule each, and texts that read back."""

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from resumed.schemas import codec, durations, instant
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import (
    MICRO,
    Instant,
    later,
    reached,
    seconds_between,
    seconds_until,
)

quick = settings(max_examples=300, derandomize=True, deadline=None, database=None)
NOW = Instant(wall=1_795_000_000_000_000, boot="one", up=500 * MICRO)
walls = st.integers(-30_000_000_000 * MICRO, 250_000_000_000 * MICRO)
spans = st.floats(0.0, durations.MOST, allow_nan=False)


@quick
@given(walls)
def test_an_instant_reads_back(wall: int) -> None:
    """Text and number are the same moment, to the microsecond."""
    assert wall == instant.read(instant.spell(wall))


def test_an_instant_is_spelled_in_utc() -> None:
    """The text is UTC with six digits, whatever the moment."""
    assert "1970-01-01T00:00:00.000000Z" == instant.spell(0)
    assert "2026-11-18T11:06:40.000001Z" == instant.spell(1_795_000_000_000_001)
    assert "1969-12-31T23:59:59.999999Z" == instant.spell(-1)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-18T11:06:40Z",
        "2026-11-18T11:06:40.1Z",
        "2026-11-18T11:06:40.000000",
        "2026-11-18T11:06:40.000000+00:00",
        "2026-11-18 11:06:40.000000Z",
        "2026-1-18T11:06:40.000000Z",
        "2026-02-30T11:06:40.000000Z",
        "2026-11-18T11:06:60.000000Z",
        "2026-11-18T11:06:40.000000Z ",
        "",
    ],
)
def test_other_spellings_of_an_instant_are_refused(text: str) -> None:
    """One moment has one text; a time without its zone is no moment at all."""
    with pytest.raises(ValueError, match=r".+"):
        instant.read(text)
    with pytest.raises(FaultyInputError):
        codec.from_plain({"wall": text, "boot": "one", "up": 1}, Instant, "cannot read")


@pytest.mark.parametrize(
    "plain",
    [
        {"wall": 1, "boot": "one", "up": 1},
        {"wall": "1970-01-01T00:00:00.000000Z", "boot": None, "up": 1},
        {"wall": "1970-01-01T00:00:00.000000Z", "boot": "one", "up": 1.0},
        {"wall": "1970-01-01T00:00:00.000000Z", "boot": "one", "up": True},
        {"wall": "1970-01-01T00:00:00.000000Z", "boot": "one", "up": 2**53},
        {"wall": "1970-01-01T00:00:00.000000Z", "boot": "one"},
        {"wall": "1970-01-01T00:00:00.000000Z", "boot": "one", "up": 1, "zone": "Z"},
        "1970-01-01T00:00:00.000000Z",
    ],
)
def test_an_instant_is_all_three_clocks(plain: object) -> None:
    """Wall, boot and boot clock, each of its own type and none more."""
    with pytest.raises(FaultyInputError):
        codec.from_plain(plain, Instant, "cannot read")


LAPSES = {
    # (the same boot, wall seconds since the limit, boot clock seconds since the limit) -> lapsed
    (True, -1, -1): False,
    (True, 0, 0): True,
    (True, 0, -100): True,  # the wall was set on: the earlier of the two counts
    (True, -100, 0): True,  # the wall was set back: elapsed time counts
    (True, -1, 100): True,
    (False, -1, 10_000): False,  # another boot's clock says nothing
    (False, 0, -10_000): True,
    (False, 1, 1): True,
}


@pytest.mark.parametrize(("same", "wall", "up"), LAPSES)
def test_a_limit_lapses_at_the_earlier_of_its_clocks(same: bool, wall: int, up: int) -> None:
    """In one boot by UTC or by elapsed time, whichever comes first; in another boot by UTC alone."""
    now = evolve(
        NOW,
        wall=NOW.wall + wall * MICRO,
        up=NOW.up + up * MICRO,
        boot=NOW.boot if same else "two",
    )

    assert LAPSES[same, wall, up] is reached(NOW, now)
    assert (0.0 == seconds_until(NOW, now)) is LAPSES[same, wall, up]


@quick
@given(spans, spans, st.booleans())
def test_a_limit_lapses_after_as_long_as_it_says(span: float, more: float, same: bool) -> None:
    """`later`, `reached`, `seconds_until` and `seconds_between` agree with each other."""
    limit = later(NOW, span)
    now = later(NOW, more) if same else evolve(later(NOW, more), boot="two", up=0)
    left = seconds_until(limit, now)

    assert reached(limit, now) is (round(more * MICRO) >= round(span * MICRO))
    assert left == pytest.approx(max(0.0, span - more), abs=2e-6, rel=1e-12)
    assert seconds_between(NOW, now) == pytest.approx(more, abs=2e-6, rel=1e-12)
    assert 0.0 == seconds_between(now, NOW) or same is False or more < 1e-6
    # However the clocks stand, waiting as long as it says is long enough.
    assert reached(limit, later(now, left + 1e-6))


def test_seconds_are_never_negative() -> None:
    """A wall clock that was set back between two boots makes no negative span."""
    assert 0.0 == seconds_between(NOW, evolve(NOW, boot="two", wall=NOW.wall - 10**9))


# ---- spans ----------------------------------------------------------------------------------------------

SPANS = {
    "30s": 30.0,
    "15m": 900.0,
    "6h": 21_600.0,
    "7d": 604_800.0,
    "2w": 1_209_600.0,
    "1h30m": 5_400.0,
    "1.5h": 5_400.0,
    "250ms": 0.25,
    "0s": 0.0,
}


@pytest.mark.parametrize("text", SPANS)
def test_a_span_is_read_as_people_write_it(text: str) -> None:
    """Numbers with their units, one after the other."""
    assert SPANS[text] == pytest.approx(durations.read(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "s",
        "30 s",
        " 30s",
        "30s ",
        "-30s",
        "1e3s",
        "30S",
        "1h 30m",
        "1,5h",
        ".5h",
        "٣s",
        "1y",
        "nans",
    ],
)
def test_other_spans_are_refused(text: str) -> None:
    """A number without a unit, a sign, a blank or another script's digits is no span."""
    with pytest.raises(ValueError, match="expected a duration"):
        durations.read(text)


def test_a_span_ends_within_the_calendar() -> None:
    """Ten years is the most: what is added to an instant can be spelled."""
    assert durations.MOST == durations.read("3660d")
    with pytest.raises(ValueError, match="at most ten years"):
        durations.read("3661d")
    assert instant.spell(later(NOW, durations.MOST).wall)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5.0, "0s"),
        (0.4, "0s"),
        (8.0, "8s"),
        (59.6, "1m00s"),
        (125.0, "2m05s"),
        (3599.6, "1h00m"),
        (5400.0, "1h30m"),
        (86_400.0, "1d"),
        (90_000.0, "1d1h"),
        (273_600.0, "3d4h"),
    ],
)
def test_a_span_is_shown_in_two_units_at_most(seconds: float, text: str) -> None:
    """Short enough for a column, and never a negative span."""
    assert text == durations.spell(seconds)


@quick
@given(st.integers(0, int(durations.MOST)))
def test_what_is_shown_reads_as_a_span(seconds: int) -> None:
    """A span shown can be typed again, and is off by less than its smaller unit."""
    shown = durations.read(durations.spell(seconds))

    assert 0 <= seconds - shown < (1 if seconds < 3600 else 60 if seconds < 86_400 else 3600)
