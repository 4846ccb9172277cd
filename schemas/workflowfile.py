"""`workflows.d/NAME.toml`: read whole, every key known, every problem named with its path."""

import re

from . import limits, tomltext, workfloweffects, workflowinputs, workflowitems, workflowsteps
from .errors import FaultyInputError
from .filetable import Table
from .jobfile import ID
from .workflow import OnUnknown, Programs, PythonEntry

MAX_BYTES = 1024 * 1024

_ENTRY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*\Z")
_OWNER = re.compile(r"(user|group):[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


def read(raw: bytes, name: str) -> Programs:
    """The workflow in a file's bytes, named after the file; FaultyInputError names all that is wrong."""
    what = f"cannot load {name}.toml"
    top = tomltext.parse(raw, what, MAX_BYTES)
    problems: list[str] = []
    table = Table(top, "$", problems)
    if not ID.match(name):
        problems.append(
            f"a workflow's name is at most 64 of a-z 0-9 . _ -, not beginning with . _ -: {name!r}"
        )
    inputs = workflowinputs.inputs(table.inner("inputs"))
    head = {
        "version": table.number("version", 1, 1, required=True),
        "description": table.text("description"),
        "owner": _owner(table),
        "enabled": table.flag("enabled", True),
        **workflowitems.items(table.inner("items"), inputs),
    }
    python = _python(table.inner("python"))
    steps = workflowsteps.steps(table, inputs)
    programs = Programs(
        name=name,
        inputs=inputs,
        **head,
        python=python,
        steps=steps,
        **limits.of_workflow(table),
        effects=workfloweffects.effects(table, inputs, steps),
        on_unknown=OnUnknown(table.choice("on_unknown", tuple(OnUnknown), "hold")),
    )
    if programs.python is None and not programs.steps and not problems:
        problems.append("expected [[step]] or python @ $")
    if programs.python is not None and (programs.steps or programs.effects or programs.items_from != "job"):
        problems.append("python excludes step and effect, and lists its own items @ $.python")
    table.close()
    if problems:
        raise FaultyInputError(what, tuple(problems[:20]))
    return programs


def _owner(table: Table) -> str:
    owner = table.text("owner")
    if owner and not _OWNER.match(owner):
        table.problem("owner", f"expected user:NAME or group:NAME, got {owner!r}")
    return owner


def _python(table: Table | None) -> PythonEntry | None:
    if table is None:
        return None
    entry = table.text("entry", required=True)
    if entry and not _ENTRY.match(entry):
        table.problem("entry", f'expected "module:Class", got {entry!r}')
    interpreter = table.text("interpreter")
    if interpreter and not interpreter.startswith("/"):
        table.problem("interpreter", f"expected an absolute path, got {interpreter!r}")
    slots = table.number("slots", 1, 1) if table.has("slots") else None
    table.close(("previous",))
    return PythonEntry(entry=entry, interpreter=interpreter, slots=slots)
