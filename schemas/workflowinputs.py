"""The `inputs` tables of a workflow file: what a job may be given, and what each must be."""

import re
from collections.abc import Iterator
from typing import Any

from attrs import evolve

from . import codec, patterns
from .filetable import Table
from .inputs import COUNTED, MATCHED, value_problems
from .workflow import Input, InputType

_INPUT = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")


def inputs(table: Table | None) -> tuple[Input, ...]:
    """The inputs of a file, in its order."""
    return () if table is None else tuple(_inputs(table))


def _inputs(table: Table) -> Iterator[Input]:
    for name in table.left():
        inner = table.inner(name)
        if not _INPUT.match(name):
            table.problem(name, "an input's name is a-z 0-9 _, beginning with a letter")
        elif inner is not None:
            yield _input(name, inner)


def _input(name: str, table: Table) -> Input:
    kind = InputType(table.choice("type", tuple(InputType), "string"))
    declared = Input(
        name=name,
        type=kind,
        choices=table.texts("choices"),
        pattern=_pattern(table),
        roots=tuple(root.rstrip("/") or "/" for root in table.texts("roots")),
        max=table.take("max", int),
        private=table.flag("private"),
    )
    if (kind is InputType.CHOICE) != bool(declared.choices):
        table.problems.append(f'choices belong to type = "choice", which needs some @ {table.path}')
    for key, given, kinds in (
        ("roots", declared.roots, (InputType.PATH,)),
        ("pattern", declared.pattern, MATCHED),
        ("max", declared.max is not None, COUNTED),
    ):
        if given and kind not in kinds:
            of = " or ".join(f'"{each}"' for each in kinds)
            table.problems.append(f"{key} belongs to type = {of} @ {table.path}")
    if any(not root.startswith("/") for root in declared.roots):
        table.problem("roots", "expected absolute paths")
    default = table.whatever("default")
    table.close()
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
        patterns.compiled(pattern)
    except ValueError as error:
        table.problem("pattern", str(error))
        return ""
    return pattern
