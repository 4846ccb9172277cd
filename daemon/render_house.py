"""The screens about the daemon itself: its statusand its workflows."""

from typing import Any

from .letters import clean
from .render import facts, span, table


def house_view(house: dict[str, Any], path: str, width: int) -> list[str]:
    """The screen of `resumectl status`."""
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
    }
    return facts(known, width) + [f"! {clean(trouble)}" for trouble in house["troubles"]]


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
