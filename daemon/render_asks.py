"""The screens of people's decisions: the inbox, one call or draft whole, and the tool contracts."""

from typing import Any

from . import render
from .letters import clean, columns, pad, wrap
from .render import moment, paint, stamp, table

GLYPHS = {"settle": "!", "approve": "*", "review": "*", "answer": "*"}
"""Signs of what waits for whoever looks; what waits for others has none."""
DECIDED = {
    "approve": "approved",
    "deny": "denied",
    "send_back": "sent back",
    "accept": "accepted",
    "edit": "edited",
    "refuse": "refused",
}
YES = ("approve", "accept", "edit")
MINUTE, HOUR, DAY = 60, 3600, 86_400
MOST_TEXT = 4000
"""Characters of a draft or of what `show` printed; `resumectl output` and --json have it whole."""
MOST_VALUE = 600


def inbox(answer: dict[str, Any], now: float, width: int, colour: bool) -> list[str]:
    """Who must do what, oldest first."""
    rows = answer["asks"]
    if not rows:
        return ["nobody is asked anything"]
    heads = ["ID", "KIND", "JOB", "~WHAT", "ASKED", ">LEFT", "IF NOBODY ANSWERS", "WHOM"]
    cells = [
        [
            row["id"],
            row["kind"],
            clean(row["job"], 64),
            clean(_what(row), 120),
            moment(row["asked"], now),
            left(row["until"], now),
            clean(row["otherwise"], 40),
            clean(", ".join(row["whom"]) or row["role"], 60),
        ]
        for row in rows
    ]
    glyphs = [GLYPHS[row["kind"]] if row["yours"] else " " for row in rows]
    lines = table(heads, cells, glyphs, width, colour)
    mine = sum(row["yours"] for row in rows)
    return [*lines, f"{len(rows)} open, {mine} for you (resumectl approve ID)"]


def _what(row: dict[str, Any]) -> str:
    parts = [row["what"]]
    if row["quorum"] > 1:
        parts.append(f"({row['given']} of {row['quorum']} said yes)")
    if row["again"]:
        parts.append(f"({row['again']})")
    return " ".join(parts)


def left(until: int, now: float) -> str:
    """How long a question still stands."""
    if not until:
        return "-"
    seconds = max(0, round(until / 1_000_000 - now))
    if seconds >= DAY:
        hours = seconds % DAY // HOUR
        return f"{seconds // DAY}d{hours}h" if hours else f"{seconds // DAY}d"
    if seconds >= HOUR:
        return f"{seconds // HOUR}h"
    if seconds >= MINUTE:
        return f"{seconds // MINUTE}m"
    return f"{seconds}s" if seconds else "now"


def ask(view: dict[str, Any], now: float, width: int, colour: bool) -> list[str]:
    """All of one call, draft or question: what it does first, then all that it was made of."""
    row = view["row"]
    lines = [paint(line, "!" if row["kind"] == "settle" else "o", colour) for line in _head(view, now, width)]
    lines += render.facts(_target(view), width)
    lines += _named("arguments", view["arguments"], width)
    lines += _bodies(view["bodies"], width)
    if view["unbound"]:
        lines += _named("NOT COVERED by a yes: it may be another when it is sent", view["unbound"], width)
    lines += _changed(view, width)
    if view["text"]:
        lines += text("draft" if row["kind"] == "review" else "question", view["text"], width)
    if view["shown"]:
        lines += text("shown by the workflow", view["shown"], width)
    lines += _named("relies on", view["sources"], width)
    lines += render.facts(_rules(view, now), width)
    for place, one in enumerate(view["decisions"]):
        said = wrap(_decision(one, row["round"]), max(width - render.NAME - 1, 20))
        names = ["" if place else "decided", *[""] * (len(said) - 1)]
        lines += [f"{name:<{render.NAME}} {part}" for name, part in zip(names, said, strict=True)]
    return lines


def _head(view: dict[str, Any], now: float, width: int) -> list[str]:
    row = view["row"]
    whose = f"{clean(row['job'])}{' ' + clean(row['item']) if row['item'] else ''}"
    head = f"{row['id']}  {row['kind']}  {clean(row['what'], 300)}"
    said = f"{whose}, asked {moment(row['asked'], now)}, by {clean(row['requester'])}'s job"
    if row["again"]:
        said += f"; asked again (round {row['round']}): {clean(row['again'], 300)}"
    return [*wrap(head, width), *wrap(said, width)]


def _target(view: dict[str, Any]) -> dict[str, str]:
    if not view["tool"]:
        return {"choices": ", ".join(clean(each) for each in view["choices"])}
    return {
        "target": view["target"],
        "object": view["business_object"],
        "tool": f"{view['tool']} version {view['version']}",
        "expected": view["expected"],
        "as seen": view["observed"],
        "again": f"IT WOULD REPEAT {view['again']}, which has landed" if view["again"] else "",
        "unclear": view["reason"],
    }


def _rules(view: dict[str, Any], now: float) -> dict[str, str]:
    row = view["row"]
    undo = "IRREVERSIBLE: nothing takes it back" if view["irreversible"] else ""
    who = ", ".join(row["whom"]) or f"whoever has the role {row['role']}"
    if row["quorum"] > 1:
        who += f"; {row['quorum']} of them, {row['given']} so far"
    if also := row.get("also"):  # a daemon of before may not say it
        who += f"; of {' or '.join(also)}"
    if row["not_requester"]:
        who += f"; not {row['requester']}"
    elif row["kind"] == "approve":
        who += f"; {row['requester']}, who asked for it, too"
    lapse = f"in {left(row['until'], now)}: {row['otherwise']}" if row["until"] else row["otherwise"]
    return {
        "undo": undo or view["undo"],
        "holds": "; ".join(view["holds"]),
        "who may": who,
        "or else": lapse,
        "key": view["key"],
        "shown as": row["fingerprint"],
    }


def _named(head: str, pairs: list[dict[str, Any]], width: int) -> list[str]:
    """Names with their values, each value whole up to its bound and never beside another."""
    if not pairs:
        return []
    wide = min(24, max(columns(clean(pair["name"], 60)) for pair in pairs))
    lines = [head]
    for pair in pairs:
        name, value = clean(pair["name"], 60), clean(pair["value"], MOST_VALUE)
        first, *rest = wrap(value, max(width - wide - 4, 20)) or [""]
        lines += [f"  {pad(name, wide)}  {first}", *(f"  {'':<{wide}}  {part}" for part in rest)]
    return lines


def _bodies(bodies: list[dict[str, Any]], width: int) -> list[str]:
    lines: list[str] = []
    for body in bodies:
        head = f"sends {clean(body['name'])}: {render.size(body['size'])}, sha256 {body['sha256'][:16]}"
        lines += text(head, body["text"], width) if body["text"] else [head]
        if (shown := len(body["text"].encode(errors="replace"))) < body["size"]:
            part = "only its beginning is" if shown else "it is no text, and is not"
            said = f"{part} shown: all of it lies in the job's folder, as artifacts/{body['sha256']}"
            lines += [f"  ! {each}" for each in wrap(said, max(width - 4, 20))]
    return lines


def _changed(view: dict[str, Any], width: int) -> list[str]:
    if not view["since"]:
        return []
    if not view["changed"]:
        return [f"nothing of it changed since it was {clean(view['since'], 200)}"]
    lines = [f"CHANGED since it was {clean(view['since'], 200)}"]
    for one in view["changed"]:
        lines += [f"  {clean(one['name'], 60)}"]
        lines += [f"    - {part}" for part in wrap(clean(one["before"], MOST_VALUE), max(width - 6, 20))]
        lines += [f"    + {part}" for part in wrap(clean(one["after"], MOST_VALUE), max(width - 6, 20))]
    return lines


def text(head: str, said: str, width: int) -> list[str]:
    """A text of somebody else's, line by line behind a bar, so that it cannot pass for a line of ours."""
    lines = [head]
    for line in said[:MOST_TEXT].removesuffix("\n").split("\n"):
        lines += [f"  | {part}".rstrip() for part in wrap(clean(line, 2000), max(width - 4, 20))]
    if len(said) > MOST_TEXT:
        lines.append(f"  | ({len(said) - MOST_TEXT} characters more; `resumectl inbox ID --json` has them)")
    return lines


def _decision(one: dict[str, Any], now: int) -> str:
    said = f"{DECIDED.get(one['decision'], one['decision'])} by {clean(one['by'])} {stamp(one['at'])}"
    if one["reason"]:
        said += f": {clean(one['reason'], 200)}"
    if one["revoked"]:
        said += f" (taken back {stamp(one['revoked'])})"
    elif one["spent"]:
        said += f" (spent {stamp(one['spent'])})"
    elif one["round"] < now and one["decision"] in YES:
        said += f" (in round {one['round']}: it counts no more)"
    return said + (" [same user as the jobs]" if one["same_user"] else "")


def tools(answer: dict[str, Any], width: int) -> list[str]:
    """Each tool contract, and why those of some workflows cannot be told."""
    rows = answer["tools"]
    lines = [f"! {part}" for said in answer["problems"] for part in wrap(clean(said, 300), width - 2)]
    if not rows:
        return [*lines, "no workflow in force writes to another system"]
    for row in rows:
        of = f"{clean(row['workflow'])}@{row['workflow_version']}"
        lines += [f"{clean(row['tool'])} version {row['version']}  of {of}"]
        where = " ".join(
            filter(None, (row["target"], row["address"], row["account"] and f"as {row['account']}"))
        )
        lines += [f"  {line}" for line in render.facts(_tool(row, where), max(width - 2, 30))]
        lines += [
            f"  ! {part}" for said in row["warnings"] for part in wrap(clean(said, 300), max(width - 4, 20))
        ]
    return lines


def _tool(row: dict[str, Any], where: str) -> dict[str, str]:
    return {
        "target": where,
        "approval": row["approve"] or "nobody is asked",
        "holds": "; ".join(row["holds"]),
        "at once": str(row["at_once"]),
        "timeout": f"{row['timeout']:g} s, then at most {row['in_flight']:g} s in flight",
        "unclear": row["unclear_owner"] or "the job's owner",
        "undo": "irreversible" if row["irreversible"] else row["undo"],
        "unbound": ", ".join(row["unbound"]),
    }
