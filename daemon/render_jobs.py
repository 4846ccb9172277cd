"""The screens about jobs: the list, one job, its items, how far it is."""

from typing import Any

from .letters import clean, cut, sentence, wrap
from .render import ITEM_GLYPHS, facts, glyph_of, hour_of, local, moment, paint, size, stamp, table


def job_list(answer: dict[str, Any], now: float, width: int, colour: bool, everything: bool) -> list[str]:
    """The screen of `resumectl list`."""
    rows, you = answer["jobs"], answer["you"]
    shown = [*rows, *answer["ended"]] if everything else rows
    heads = ["JOB", "STATUS", ">DONE", ">FAIL", "~NEEDS / NEXT", "SINCE", ">SPENT", "OWNER"]
    cells = [
        [
            clean(row["id"], 64),
            row["status"],
            f"{row['done']}/{row['total']}",
            str(row["failed"] + row["held"]),
            needs(row, now, you=you),
            moment(row["since"], now),
            money(row["spent"]),
            clean(row["owner"], 20),
        ]
        for row in shown
    ]
    lines = table(heads, cells, [glyph_of(row) for row in shown], width, colour) if shown else []
    counts = [f"{len(rows)} open", *_calling(rows, you)]
    if everything:
        counts.append(f"{answer['ended_count']} ended")
    else:
        counts.append(f"{answer['ended_since']} ended today (list -a)")
    return [*lines, *wrap(", ".join(counts), width)]


def _calling(rows: list[dict[str, Any]], you: str) -> list[str]:
    """How many jobs need a person: whoever looks, or another one."""
    mine = sum(row["needs_person"] and row["owner"] == you for row in rows)
    others = sum(row["needs_person"] for row in rows) - mine
    said = [f"{mine} need{'s' if mine == 1 else ''} you"] if mine else []
    said += [f"{others} need{'s' if others == 1 else ''} another person"] if others else []
    return [*said[:-1], f"{said[-1]} (resumectl why JOB)"] if said else []


def money(usd: str) -> str:
    """An amount in whole cents; one below a cent is shown as that."""
    if not usd:
        return "-"
    amount = float(usd)
    return "<$0.01" if 0 < amount < 0.005 else f"${amount:.2f}"


def needs(row: dict[str, Any], now: float, longest: int = 60, *, you: str = "") -> str:
    """What the job needs or does next, in a few words."""
    said = row["needs"]
    said = clean(
        f"you: {said.removeprefix(f'{you}: ')}" if you and said.startswith(f"{you}: ") else said, longest
    )
    if row["wakes"]:
        said = f"{said or 'goes on'} {moment(row['wakes'], now)}"
    if row.get("expected") and not said:
        said = f"done about {moment(round(local(row['expected']).timestamp() * 1_000_000), now)}"
    return said or ("-" if row["status"] not in ("running", "resuming") else f"{row['running']} at work")


def job_view(view: dict[str, Any], now: float, width: int, colour: bool, everything: bool) -> list[str]:
    """The screen of `resumectl show`."""
    row = view["row"]
    glyph = glyph_of(row)
    head = f"{glyph} {clean(row['id'])} is {row['status']} since {hour_of(row['since'], now)}"
    # An ended job's reason may say no more than its status.
    why = "" if view["reason"] == f"it is {row['status']}" else sentence(view["reason"])
    lines = [paint(line, glyph, colour) for line in wrap(f"{head}: {why}" if why else head, width)]
    known = {
        "title": row["title"],
        "objective": view["objective"] if view["objective"] != row["title"] else "",
        "workflow": f"{row['workflow']}@{row['version']}" + (f", at {view['step']}" if view["step"] else ""),
        "owner": row["owner"]
        + ("" if view["requester"] == row["owner"] else f", asked by {view['requester']}"),
        "admitted": stamp(row["created"]),
        "items": counts(row),
        "deadline": stamp(view["deadline"]) if view["deadline"] else "",
        "priority": str(view["priority"]) if view["priority"] else "",
        "after": ", ".join(view["after"]),
        "next": " ".join(filter(None, (row["needs"], stamp(row["wakes"]) if row["wakes"] else ""))),
        "spent": money(row["spent"]).removeprefix("-"),
        "inputs": ", ".join(f"{key}={value}" for key, value in view["inputs"].items()),
        "labels": ", ".join(f"{key}={value}" for key, value in view["labels"].items()),
        "folder": view["folder"],
    }
    lines += facts(known, width)
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
    heads = ["ITEM", "STATE", "AT", ">TRIES", "SINCE", ">SIZE", "~REASON"]
    cells = [
        [
            clean(item["id"], 40),
            item["state"],
            clean(item["at"], 20) or "-",
            str(item["tries"]),
            moment(item["ended"] or item["started"], now),
            size(item["size"]) if item["output"] else "-",
            sentence(why_of(item), 80),
        ]
        for item in shown
    ]
    lines = table(heads, cells, [ITEM_GLYPHS.get(item["state"], " ") for item in shown], width, colour)
    if len(shown) < len(items):
        lines.append(f"  and {len(items) - len(shown)} more (show --all)")
    return lines


def why_of(item: dict[str, Any]) -> str:
    """An item's reason behind its code; without the code where the reason, or the item's state, says it."""
    code, reason = item["code"], item["reason"]
    if not code or (
        reason and (code == item["state"] or _words(reason)[: len(_words(code))] == _words(code))
    ):
        return str(reason)
    return f"{code}: {reason}" if reason else str(code)


def _words(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text).split()


def _rank(state: str) -> int:
    return _ORDER.index(state) if state in _ORDER else 0


def progress(row: dict[str, Any], width: int) -> str:
    """One line with a bar, cut to the width."""
    bar_width = max(10, min(40, width - 60))
    full = bar_width * row["done"] // max(1, row["total"])
    bar = "#" * full + "." * (bar_width - full)
    line = f"{glyph_of(row)} {clean(row['id'], 30)} [{bar}] {counts(row)}, {row['status']}"
    return cut(line, max(20, width - 1))
