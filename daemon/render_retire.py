"""The screens about jobs that leave: those set aside, and ended ones that can be removed."""

import os
from typing import Any

from .letters import clean, wrap
from .render import facts, local, moment, paint, size, table, time_of_day
from .render_past import command_lines


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
    return table(["JOB", "REASON", "FOLDER", "SINCE", "~DETAIL"], cells, ["!"] * len(jobs), width, colour)


def aside_view(aside: dict[str, Any], now: float, width: int, colour: bool) -> list[str]:
    """The screen of `resumectl quarantine show`."""
    job, folder = aside["job"], aside["folder"]
    head = f"{clean(job['id'])} is set aside since {moment(job['since'], now)}: {clean(job['detail'], 600)}"
    known = {
        "reason": job["reason"],
        "folder": folder + ("" if job["moved"] else " (in its place)"),
        "came as": aside["file"] + (f", from {aside['requester']}" if aside["requester"] else ""),
        "admitted": time_of_day(local(aside["admitted"]), now) if aside["admitted"] else "",
        "loads": "yes, now it would" if aside["loads"] else "no",
    }
    lines = [*(paint(line, "!", colour) for line in wrap(head, width)), *facts(known, width)]
    if aside["findings"]:
        heads = ["FILE", "WHAT", "~DETAIL"]
        cells = [_finding(each, folder) for each in aside["findings"]]
        glyphs = ["!" if each["fatal"] else "." for each in aside["findings"]]
        lines += ["", *table(heads, cells, glyphs, width, colour)]
        lines += [f"  and {aside['more']} more"] if aside["more"] else []
    return [*lines, "", *command_lines(aside["commands"], "", width)]


def _finding(each: dict[str, Any], folder: str) -> list[str]:
    """A file by its name in the job's folder, and what is said of it without the names that stand before."""
    path = os.path.relpath(each["path"], folder) if each["path"].startswith(folder) else each["path"]
    return [clean(path, 60), clean(each["code"], 20), clean(each["detail"], 300)]


def prunable(
    rows: list[dict[str, Any]], count: int, may: str, now: float, width: int, colour: bool
) -> list[str]:
    """The screen of `resumectl prune --dry-run`."""
    if not rows:
        return ["no ended job is meant"]
    cells = [[clean(row["id"], 64), f"{local(row['ended']):%F %T}", size(row["size"])] for row in rows]
    lines = table(["JOB", "ENDED", ">SIZE"], cells, [" "] * len(rows), width, colour)
    lines += [f"  and {count - len(rows)} more"] if count > len(rows) else []
    total = size(sum(row["size"] for row in rows))
    said = f"{count} ended, {total}{' and more' if count > len(rows) else ''}; nothing was removed"
    command = [{"command": may, "means": "remove them for good; their ids stay known"}]
    return [*lines, said, *command_lines(command, "", width)]
