"""Text for people: marks, times, sizes and tables; pure but for the local time zone, standard library only.

Every string that a job, a file or a peer could have chosen is escaped and cut before it is printed. What the
screens of one noun look like stands in `render_<noun>`.
"""

import time
from typing import TYPE_CHECKING, Any

from . import letters
from .letters import columns, cut, pad

if TYPE_CHECKING:
    from datetime import datetime

DAY = 86_400

GLYPHS = {
    "ready": ".",
    "resuming": ">",
    "running": ">",
    "waiting": "o",
    "reconciling": "?",
    "held": "!",
    "paused": "=",
    "completed": "+",
    "failed": "x",
    "canceled": "-",
    "expired": "-",
    "quarantined": "!",
}
ITEM_GLYPHS = {
    "pending": ".",
    "in_progress": ">",
    "review": "o",
    "done": "+",
    "failed": "x",
    "held": "!",
    "skipped": "-",
}
COLOURS = {"!": "31", "x": "31", "o": "33", "?": "33", "=": "33", ">": "36", "+": "32"}


def paint(text: str, glyph: str, colour: bool) -> str:
    """The text in the colour of its glyph, where colour is wanted."""
    code = COLOURS.get(glyph)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text


def moment(micros: int, now: float) -> str:
    """A wall clock reading in local time: the hour today, the weekday within six days, else the date."""
    if not micros:
        return "-"
    seconds = micros / 1_000_000
    local = time.localtime(seconds)
    if time.strftime("%F", local) == time.strftime("%F", time.localtime(now)):
        return time.strftime("%H:%M", local)
    if 0 <= now - seconds < 6 * DAY:
        return time.strftime("%a", local)
    return time.strftime("%d %b" if abs(now - seconds) < 300 * DAY else "%F", local)


def stamp(micros: int) -> str:
    """A wall clock reading in local time, whole."""
    return time.strftime("%F %T", time.localtime(micros / 1_000_000)) if micros else "-"


def local(text: str) -> "datetime":
    """A UTC text of the records in local time."""
    from datetime import datetime  # only who looks back pays for it

    return datetime.fromisoformat(text).astimezone()


def time_of_day(at: "datetime", now: float, form: str = "%T") -> str:
    """A local time as people read it: the day is named only when it is another one."""
    days = (type(at).fromtimestamp(now, at.tzinfo).date() - at.date()).days
    day = "" if days == 0 else "%a " if 0 < days < 6 else "%F "
    return at.strftime(day + form)


def hour_of(micros: int, now: float) -> str:
    """A wall clock reading in local time to the minute, with its day when it is another one."""
    from datetime import datetime

    return time_of_day(datetime.fromtimestamp(micros / 1_000_000).astimezone(), now, "%H:%M")


def span(seconds: float) -> str:
    """A span of time in at most two units."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < DAY:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // DAY}d{whole % DAY // 3600}h"


def size(count: int) -> str:
    """A count of bytes as people read it."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


LEAST_CELL = 16
"""Columns that a cell keeps when it gives way to those on its right."""


def table(heads: list[str], rows: list[list[str]], glyphs: list[str], width: int, colour: bool) -> list[str]:
    """Lines under their heads, as many columns from the left as fit.

    `>` before a head aligns its column right; one with `~` is cut short before a column on its right goes.
    """
    right = [head.startswith(">") for head in heads]
    soft = [head.startswith("~") for head in heads]
    heads = [head.lstrip(">~") for head in heads]
    widths = [max(columns(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    least = [min(wide, LEAST_CELL) if soft[i] else wide for i, wide in enumerate(widths)]
    count = len(heads)
    while count > 2 and 2 * count + sum(least[:count]) > width:
        count -= 1
    give = 2 * count + sum(widths[:count]) - width
    # The first column is the name: it gives way last, and only when nothing else can.
    for i in [*(i for i in range(count) if soft[i]), 0]:
        if give > 0:
            shorter = max(least[i] if soft[i] else min(widths[i], LEAST_CELL), widths[i] - give)
            give, widths[i] = give - (widths[i] - shorter), shorter

    def line(cells: list[str]) -> str:
        parts = [pad(cut(cell, widths[i]), widths[i], right=right[i]) for i, cell in enumerate(cells[:count])]
        return "  ".join(parts).rstrip()

    lines = [cut("  " + line(heads), width)]
    for glyph, row in zip(glyphs, rows, strict=True):
        lines.append(paint(cut(f"{glyph} {line(row)}", width), glyph, colour))
    return lines


NAME = 10
"""Columns of a fact's name."""


def facts(named: dict[str, str], width: int) -> list[str]:
    """A line for each fact that there is, broken where the terminal ends."""
    lines = []
    for name, said in named.items():
        if said:
            broken = letters.wrap(letters.clean(said), max(width - NAME - 1, 20))
            lines += [f"{name if i == 0 else '':<{NAME}} {part}" for i, part in enumerate(broken)]
    return lines


def glyph_of(row: dict[str, Any]) -> str:
    """The sign before a job: `!` wherever a person must act."""
    return "!" if row["needs_person"] else GLYPHS.get(row["status"], " ")
