"""The screens about the daemon itself: its statusand its workflows."""

from typing import Any

from .letters import clean
from .render import facts, span, table

ROLES = 5
"""How many there are; who has all of them over everything has no need to read each."""


def house_view(house: dict[str, Any], you: dict[str, Any], path: str, width: int) -> list[str]:
    """The screen of `resumectl status`: the daemon, and who asks."""
    jobs = [f"{house[name]} {name}" for name in ("open", "running", "held", "ended")]
    if house["loading"]:
        jobs.append(f"{house['loading']} loading")
    known = {
        "daemon": f"resumed {house['release']}, process {house['pid']}, up {span(house['uptime'])}",
        "socket": path,
        "store": house["store"],
        "jobs": ", ".join(jobs),
        "set aside": f"{house['quarantined']} (resumectl quarantine list)" if house["quarantined"] else "",
        "workers": f"{house['workers']}, contained by {house['containment']}",
        "workflows": ", ".join(house["workflows"]) or "none",
        "loop": house["backend"],
        "you": you_are(you),
    }
    return facts(known, width) + [f"! {clean(trouble)}" for trouble in house["troubles"]]


def you_are(you: dict[str, Any]) -> str:
    """Who asks and what it may do, in a line."""
    names = [each["role"] for each in you["roles"] if not each["workflows"] and not each["own"]]
    words = ["every role"] if len(names) == ROLES else names
    for each in you["roles"]:
        if each["workflows"] or each["own"]:
            over = " and ".join(each["workflows"]) or "all workflows"
            words.append(f"{each['role']} of {over}{' (own jobs)' if each['own'] else ''}")
    same = "; same-user: jobs run under this very user" if you["same_user"] else ""
    return f"{you['name']}, {', '.join(words)}{same}"


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
    heads = ["WORKFLOW", "STEPS", "INPUTS", "ITEMS", "~DESCRIPTION"]
    lines = table(heads, cells, glyphs, width, colour) if rows else ["no workflow is in force"]
    return lines + [f"! {clean(problem)}" for problem in answer["problems"]]
