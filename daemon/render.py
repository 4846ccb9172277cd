"""What people see: rows and views as text; pure but for the local time zone, standard library only.

Every string that a job, a file or a peer could have chosen is escaped and cut before it is printed.
"""

import time
from typing import Any

LONGEST = 200
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


def clean(text: object, longest: int = LONGEST) -> str:
    """The text with everything unprintable escaped, cut at `longest` characters."""
    shown = "".join(one if one.isprintable() else _escape(one) for one in str(text)[: longest + 1])
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def _escape(one: str) -> str:
    code = ord(one)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


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


def table(heads: list[str], rows: list[list[str]], glyphs: list[str], width: int, colour: bool) -> list[str]:
    """Lines under their heads, as many columns from the left as fit; `>` before a head aligns it right."""
    right = [head.startswith(">") for head in heads]
    heads = [head.removeprefix(">") for head in heads]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    count = len(heads)
    while count > 2 and 2 + sum(widths[:count]) + 2 * (count - 1) > width:
        count -= 1

    def line(cells: list[str]) -> str:
        parts = [
            cell.rjust(widths[i]) if right[i] else cell.ljust(widths[i])
            for i, cell in enumerate(cells[:count])
        ]
        return "  ".join(parts).rstrip()

    lines = ["  " + line(heads)]
    for glyph, row in zip(glyphs, rows, strict=True):
        lines.append(paint(f"{glyph} {line(row)}"[:width], glyph, colour))
    return lines


def job_list(answer: dict[str, Any], now: float, width: int, colour: bool, everything: bool) -> list[str]:
    """The screen of `resumectl list`."""
    rows = answer["jobs"]
    shown = [*rows, *answer["ended"]] if everything else rows
    heads = ["JOB", "STATUS", ">DONE", ">FAIL", "NEEDS / NEXT", "SINCE", "OWNER"]
    cells = [
        [
            clean(row["id"], 64),
            row["status"],
            f"{row['done']}/{row['total']}",
            str(row["failed"] + row["held"]),
            needs(row, now),
            moment(row["since"], now),
            clean(row["owner"], 20),
        ]
        for row in shown
    ]
    lines = table(heads, cells, [glyph_of(row) for row in shown], width, colour) if shown else []
    calling = sum(1 for row in rows if row["needs_person"])
    counts = [f"{len(rows)} open"]
    if calling:
        counts.append(f"{calling} need{'s' if calling == 1 else ''} a person (resumectl show JOB)")
    counts.append(f"{answer['ended_count']} ended" + ("" if everything else " (list -a)"))
    return [*lines, ", ".join(counts)]


def glyph_of(row: dict[str, Any]) -> str:
    """The sign before a job: `!` wherever a person must act."""
    return "!" if row["needs_person"] else GLYPHS.get(row["status"], " ")


def needs(row: dict[str, Any], now: float, longest: int = 40) -> str:
    """What the job needs or does next, in a few words."""
    said = clean(row["needs"], longest)
    if not said and row["wakes"]:
        said = f"goes on {moment(row['wakes'], now)}"
    return said or ("-" if row["status"] not in ("running", "resuming") else f"{row['running']} at work")


def job_view(view: dict[str, Any], now: float, width: int, colour: bool, everything: bool) -> list[str]:
    """The screen of `resumectl show`."""
    row = view["row"]
    glyph = glyph_of(row)
    head = f"{clean(row['id'])} is {row['status']} since {moment(row['since'], now)}"
    # An ended job's reason may say no more than its status.
    why = "" if view["reason"] == f"it is {row['status']}" else clean(view["reason"])
    lines = [paint(f"{glyph} {head}{': ' if why else ''}{why}", glyph, colour)]
    facts = {
        "title": row["title"],
        "objective": view["objective"] if view["objective"] != row["title"] else "",
        "workflow": f"{row['workflow']}@{row['version']}" + (f", at {view['step']}" if view["step"] else ""),
        "owner": row["owner"]
        + ("" if view["requester"] == row["owner"] else f", asked by {view['requester']}"),
        "admitted": stamp(row["created"]),
        "items": counts(row),
        "next": row["needs"],
        "labels": ", ".join(f"{key}={value}" for key, value in view["labels"].items()),
        "folder": view["folder"],
    }
    lines += [f"{name:<10} {clean(value)}" for name, value in facts.items() if value]
    lines += ["", *item_table(view["items"], now, width, colour, everything)] if view["items"] else []
    if view["commands"]:
        lines += ["", "you may", *(f"  {clean(command)}" for command in view["commands"])]
    return lines


def counts(row: dict[str, Any]) -> str:
    """How far a job is, in words."""
    words = [f"{row['done']}/{row['total']} done"]
    for name, word in (("running", "at work"), ("failed", "failed"), ("held", "held")):
        if row[name]:
            words.append(f"{row[name]} {word}")
    return ", ".join(words)


MOST_ITEMS = 20
_ORDER = ("failed", "held", "review", "in_progress", "pending", "skipped", "done")


def item_table(
    items: list[dict[str, Any]], now: float, width: int, colour: bool, everything: bool
) -> list[str]:
    """The items, those that need somebody first; only the first ones unless everything is asked for."""
    ranked = items if everything else sorted(items, key=lambda item: _rank(item["state"]))
    shown = ranked if everything else ranked[:MOST_ITEMS]
    heads = ["ITEM", "STATE", "AT", ">TRIES", "SINCE", ">SIZE", "REASON"]
    cells = [
        [
            clean(item["id"], 40),
            item["state"],
            clean(item["at"], 20) or "-",
            str(item["tries"]),
            moment(item["ended"] or item["started"], now),
            size(item["size"]) if item["output"] else "-",
            clean(f"{item['code']}: {item['reason']}" if item["code"] else item["reason"], 80),
        ]
        for item in shown
    ]
    lines = table(heads, cells, [ITEM_GLYPHS.get(item["state"], " ") for item in shown], width, colour)
    if len(shown) < len(items):
        lines.append(f"  and {len(items) - len(shown)} more (show --all)")
    return lines


def _rank(state: str) -> int:
    return _ORDER.index(state) if state in _ORDER else 0


def progress(row: dict[str, Any], width: int) -> str:
    """One line with a bar, cut to the width."""
    bar_width = max(10, min(40, width - 60))
    full = bar_width * row["done"] // max(1, row["total"])
    bar = "#" * full + "." * (bar_width - full)
    return f"{glyph_of(row)} {clean(row['id'], 30)} [{bar}] {counts(row)}, {row['status']}"[
        : max(20, width - 1)
    ]


def house_view(house: dict[str, Any], path: str) -> list[str]:
    """The screen of `resumectl status`."""
    jobs = [f"{house[name]} {name}" for name in ("open", "running", "held", "ended")]
    if house["loading"]:
        jobs.append(f"{house['loading']} loading")
    facts = {
        "daemon": f"resumed {house['release']}, process {house['pid']}, up {span(house['uptime'])}",
        "socket": path,
        "store": house["store"],
        "jobs": ", ".join(jobs),
        "set aside": f"{house['quarantined']} (resumectl quarantine list)" if house["quarantined"] else "",
        "workers": f"{house['workers']}, contained by {house['containment']}",
        "workflows": ", ".join(house["workflows"]) or "none",
        "loop": house["backend"],
    }
    lines = [f"{name:<10} {clean(value)}" for name, value in facts.items() if value]
    return lines + [f"! {clean(trouble)}" for trouble in house["troubles"]]


def workflow_list(answer: dict[str, Any], width: int, colour: bool) -> list[str]:
    """The screen of `resumectl workflows`."""
    rows = answer["workflows"]
    cells = [
        [
            clean(f"{row['name']}@{row['version']}", 50),
            clean(" > ".join(row["steps"]), 30),
            clean(", ".join(each["name"] for each in row["inputs"]) or "-", 30),
            row["items_from"],
            clean(row["description"], 60),
        ]
        for row in rows
    ]
    glyphs = ["+" if row["enabled"] else "-" for row in rows]
    heads = ["WORKFLOW", "STEPS", "INPUTS", "ITEMS", "DESCRIPTION"]
    lines = table(heads, cells, glyphs, width, colour) if rows else ["no workflow is in force"]
    return lines + [f"! {clean(problem)}" for problem in answer["problems"]]


def quarantine_list(jobs: list[dict[str, Any]], now: float, width: int, colour: bool) -> list[str]:
    """The screen of `resumectl quarantine list`."""
    if not jobs:
        return ["no job is set aside"]
    cells = [
        [
            clean(job["id"], 64),
            clean(job["reason"], 30),
            "moved" if job["moved"] else "in its place",
            moment(job["since"], now),
            clean(job["detail"], 120),
        ]
        for job in jobs
    ]
    return table(["JOB", "REASON", "FOLDER", "SINCE", "DETAIL"], cells, ["!"] * len(jobs), width, colour)
