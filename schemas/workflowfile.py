"""`workflows.d/NAME.toml`: read whole, every key known, every problem named with its path."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

from attrs import evolve

from . import codec, templates, tomltext
from .errors import FaultyInputError
from .filetable import Table
from .inputs import value_problems
from .jobfile import ID
from .workflow import Input, InputType, Programs, ProgramStep, PythonEntry

MAX_BYTES = 1024 * 1024
MAX_ITEMS = 10_000
RESERVED = ("start", "finish")
"""Names of the two job steps around the items."""

# What INTERFACE names and this release does not do: refused as such, never ignored.
_LATER = ("effect", "limits", "on_failed", "on_unknown")
_LATER_ITEMS = ("file", "run", "key", "pin", "on_change")
_LATER_STEP = (
    *("each", "prepare", "verify", "result", "exit", "dir", "env", "secrets", "silence"),
    *("crashes", "pools", "review"),
)
_LATER_OUTPUT = ("publish", "keep")

_INPUT = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
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
    inputs = tuple(_inputs(table.inner("inputs")))
    programs = Programs(
        name=name,
        version=table.number("version", 1, 1, required=True),
        description=table.text("description"),
        owner=_owner(table),
        enabled=table.flag("enabled", True),
        inputs=inputs,
        **_items(table.inner("items"), inputs),
        python=_python(table.inner("python")),
        steps=_steps(table, inputs),
    )
    if programs.python is None and not programs.steps and not problems:
        problems.append("expected [[step]] or python @ $")
    if programs.python is not None and (programs.steps or programs.items_from != "job"):
        problems.append("python excludes step, and lists its own items @ $.python")
    table.close(_LATER)
    if problems:
        raise FaultyInputError(what, tuple(problems[:20]))
    return programs


def _owner(table: Table) -> str:
    owner = table.text("owner")
    if owner and not _OWNER.match(owner):
        table.problem("owner", f"expected user:NAME or group:NAME, got {owner!r}")
    return owner


def _inputs(table: Table | None) -> Iterator[Input]:
    if table is None:
        return
    for name in table.left():
        inner = table.inner(name)
        if not _INPUT.match(name):
            table.problem(name, "an input's name is a-z 0-9 _, beginning with a letter")
        elif inner is not None:
            yield _input(name, inner)


def _input(name: str, table: Table) -> Input:
    kind = InputType(table.choice("type", tuple(InputType), "string"))
    most = table.take("max", int)
    declared = Input(
        name=name,
        type=kind,
        choices=table.texts("choices"),
        pattern=_pattern(table),
        roots=tuple(root.rstrip("/") or "/" for root in table.texts("roots")),
        max=most,
    )
    if (kind is InputType.CHOICE) != bool(declared.choices):
        table.problems.append(f'choices belong to type = "choice", which needs some @ {table.path}')
    if declared.roots and kind is not InputType.PATH:
        table.problems.append(f'roots belong to type = "path" @ {table.path}')
    if any(not root.startswith("/") for root in declared.roots):
        table.problem("roots", "expected absolute paths")
    default = table.whatever("default")
    table.close(("private",))
    if default is None:
        return declared
    problems = tuple(value_problems(declared, default))
    for problem in problems:
        table.problem("default", problem)
    return declared if problems else _with_default(declared, default)


def _with_default(declared: Input, default: Any) -> Input:
    return evolve(declared, default=codec.dump_plain(default).decode())


def _pattern(table: Table) -> str:
    pattern = table.text("pattern")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        table.problem("pattern", f"not a pattern: {error}")
        return ""
    return pattern


def _items(table: Table | None, inputs: tuple[Input, ...]) -> dict[str, Any]:
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
    table.close(_LATER_ITEMS)
    return found


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


def _steps(table: Table, inputs: tuple[Input, ...]) -> tuple[ProgramStep, ...]:
    known = set(templates.PLAIN) | {f"inputs.{each.name}" for each in inputs}
    steps: list[ProgramStep] = []
    for each in table.each("step"):
        step = _step(each, known)
        if any(step.name == before.name for before in steps):
            each.problem("name", f"a step named {step.name!r} stands above")
        known.add(f"outputs.{step.name}")
        steps.append(step)
    return tuple(steps)


def _step(table: Table, known: set[str]) -> ProgramStep:
    name = table.text("name", required=True)
    if name in RESERVED or (name and not ID.match(name)):
        table.problem("name", f"{name!r} cannot be a step's name")
    output = table.inner("output")
    backoff = table.inner("backoff")
    step = ProgramStep(
        name=name,
        run=_run(table, known),
        stdin=_stdin(table, known),
        output_from=_output_from(output),
        output_max=output.number("max", 16 * 1024 * 1024, 1) if output else 16 * 1024 * 1024,
        timeout=table.duration("timeout", 3600.0),
        grace=table.duration("grace", 10.0),
        tries=table.number("tries", 3, 1),
        backoff_first=backoff.duration("first", 30.0) if backoff else 30.0,
        backoff_max=backoff.duration("max", 900.0) if backoff else 900.0,
        parallel=table.number("parallel", 1, 1),
        repeatable=table.flag("repeatable", required=True),
    )
    if step.timeout <= 0:
        table.problem("timeout", "expected more than 0s")
    if step.output_from == "file" and not templates.uses("output", (*step.run, step.stdin)):
        table.problem("output", 'output.from = "file" needs {output} in run or stdin')
    for inner, later in ((output, _LATER_OUTPUT), (backoff, ())):
        if inner is not None:
            inner.close(later)
    table.close(_LATER_STEP)
    return step


def _output_from(table: Table | None) -> str:
    return "" if table is None else table.choice("from", ("stdout", "file"), "")


def _run(table: Table, known: set[str]) -> tuple[str, ...]:
    before = len(table.problems)
    argv = table.texts("run", required=True)
    if not argv and len(table.problems) == before:
        table.problem("run", "expected a program and its arguments")
    for place, problem in templates.argv_problems(argv, known):
        table.problems.append(f"{problem} @ {table.at('run')}[{place}]")
    if argv and (not argv[0] or ("/" in argv[0] and not posixpath.isabs(argv[0]))):
        table.problems.append(f"expected a program's name or absolute path @ {table.at('run')}[0]")
    return argv


def _stdin(table: Table, known: set[str]) -> str:
    stdin = table.text("stdin")
    for problem in templates.problems(stdin, known):
        table.problem("stdin", problem)
    return stdin
