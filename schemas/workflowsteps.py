"""The `[[step]]` tables of a workflow file: each becomes one step that runs a program."""

import posixpath

from . import templates
from .filetable import Table
from .jobfile import ID
from .workflow import Input, ProgramStep

RESERVED = ("start", "finish")
"""Names of the two job steps around the items."""

# What INTERFACE names and this release does not do: refused as such, never ignored.
_LATER = (
    *("each", "prepare", "verify", "result", "exit", "dir", "env", "secrets", "silence"),
    *("crashes", "pools", "review"),
)
_LATER_OUTPUT = ("publish", "keep")


def steps(table: Table, inputs: tuple[Input, ...]) -> tuple[ProgramStep, ...]:
    """The steps of a file, in its order."""
    known = set(templates.PLAIN) | {f"inputs.{each.name}" for each in inputs}
    found: list[ProgramStep] = []
    for each in table.each("step"):
        step = _step(each, known)
        if any(step.name == before.name for before in found):
            each.problem("name", f"a step named {step.name!r} stands above")
        known.add(f"outputs.{step.name}")
        found.append(step)
    return tuple(found)


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
    table.close(_LATER)
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
