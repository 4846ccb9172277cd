"""The `items` table of a workflow file: where its items come from, and how their sources are pinned."""

import posixpath
from typing import Any

from . import templates
from .filetable import Table
from .workflow import Input, OnChange, Pinning

MAX_ITEMS = 10_000
MAX_KEY = 64
"""Characters of the name of a member."""

FORMS: dict[str, tuple[str, ...]] = {
    # from -> the keys that belong to it, the one it needs first
    "job": (),
    "glob": ("glob",),
    "lines": ("file",),
    "jsonl": ("file", "key"),
    "run": ("run", "key"),
}


def items(table: Table | None, inputs: tuple[Input, ...]) -> dict[str, Any]:
    """The fields of `Programs` that say how items are found; none when there is no such table."""
    if table is None:
        return {}
    known = {f"inputs.{each.name}" for each in inputs}
    written = {key for key in ("glob", "file", "run", "key") if table.has(key)}
    source = _source(table, written)
    for key in ("glob", "file", "run", "key"):
        _check_place(table, key, source, key in written)
    most = table.number("max", MAX_ITEMS, 1)
    if most > MAX_ITEMS:
        table.problem("max", f"the most is {MAX_ITEMS}, got {most}")
    found = {
        "items_from": source,
        "items_glob": _path(table, "glob", known),
        "items_file": _path(table, "file", known),
        "items_run": _argv(table, known | {"job"}),
        "items_key": _key(table),
        **_pin(table),
        "items_max": most,
        "allow_empty": table.flag("allow_empty"),
    }
    table.close()
    return found


def _source(table: Table, written: set[str]) -> str:
    """The form, where it is left out the one that the other keys can only mean."""
    given = table.text("from")
    if given:
        if given not in FORMS:
            table.problem("from", f"expected one of {', '.join(FORMS)}, got {given!r}")
        return given
    if "file" in written:
        table.problem("file", 'expected from = "lines" or "jsonl" beside it')
        return "lines"
    return "glob" if "glob" in written else "run" if "run" in written else "job"


def _check_place(table: Table, key: str, source: str, written: bool) -> None:
    forms = [form for form, keys in FORMS.items() if key in keys]
    needed = key != "key"
    if source in FORMS and (written != (source in forms) if needed else written and source not in forms):
        of = " or ".join(f'"{form}"' for form in forms)
        table.problems.append(
            f"{key} belongs to from = {of}{', which needs it' if needed else ''} @ {table.path}"
        )


def _path(table: Table, key: str, known: set[str]) -> str:
    text = table.text(key)
    for problem in templates.problems(text, known):
        table.problem(key, problem)
    if text and not text.startswith(("/", "{inputs.")):
        table.problem(key, "expected an absolute path")
    return text


def _argv(table: Table, known: set[str]) -> tuple[str, ...]:
    written = table.has("run")
    before = len(table.problems)
    argv = table.texts("run")
    if written and not argv and len(table.problems) == before:
        table.problem("run", "expected a program and its arguments")
    for place, problem in templates.argv_problems(argv, known):
        table.problems.append(f"{problem} @ {table.at('run')}[{place}]")
    if argv and (not argv[0] or ("/" in argv[0] and not posixpath.isabs(argv[0]))):
        table.problems.append(f"expected a program's name or absolute path @ {table.at('run')}[0]")
    return argv


def _pin(table: Table) -> dict[str, Any]:
    pinning = Pinning(table.choice("pin", tuple(Pinning), "auto"))
    on_change = OnChange(table.choice("on_change", tuple(OnChange), "hold"))
    if pinning is Pinning.NONE and on_change is OnChange.REOPEN:
        table.problem("on_change", 'nothing is ever known to have changed with pin = "none"')
    return {"items_pin": pinning, "items_on_change": on_change}


def _key(table: Table) -> str:
    key = table.text("key")
    if len(key) > MAX_KEY or key == "source" or not key.isprintable():
        table.problem("key", f"expected the name of a member other than source, got {key[:MAX_KEY]!r}")
    return key
