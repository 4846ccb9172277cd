"""The `items` table of a workflow file: where its items come from."""

from typing import Any

from . import templates
from .filetable import Table
from .workflow import Input

MAX_ITEMS = 10_000

# What INTERFACE names and this release does not do: refused as such, never ignored.
_LATER = ("file", "run", "key", "pin", "on_change")


def items(table: Table | None, inputs: tuple[Input, ...]) -> dict[str, Any]:
    """The fields of `Programs` that say how items are found; none when there is no such table."""
    if table is None:
        return {}
    given_from, pattern = table.text("from"), table.text("glob")
    source = given_from or ("glob" if pattern else "job")
    if source in ("lines", "jsonl", "run"):
        table.problem("from", f"{source!r} is not in this release yet")
    elif source not in ("job", "glob"):
        table.problem("from", f"expected one of job, glob, got {source!r}")
    if (source == "glob") != bool(pattern):
        table.problems.append(f'glob belongs to from = "glob", which needs it @ {table.path}')
    known = {f"inputs.{each.name}" for each in inputs}
    for problem in templates.problems(pattern, known):
        table.problem("glob", problem)
    if pattern and not pattern.startswith(("/", "{inputs.")):
        table.problem("glob", "expected an absolute path")
    most = table.number("max", MAX_ITEMS, 1)
    if most > MAX_ITEMS:
        table.problem("max", f"the most is {MAX_ITEMS}, got {most}")
    found = {"items_from": source, "items_glob": pattern, "items_max": most}
    found["allow_empty"] = table.flag("allow_empty")
    table.close(_LATER)
    return found
