"""Words that several tables of a workflow file share: argv lists, templates, names of credentials, people."""

import posixpath
import re
from collections.abc import Collection

from . import templates
from .filetable import Table

SECRET = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""The name of a credential: that of its file, too."""
_WHO = re.compile(r"(user|group):[A-Za-z0-9_][A-Za-z0-9_.-]*")


def argv(table: Table, key: str, known: Collection[str], *, required: bool = False) -> tuple[str, ...]:
    """A program and its arguments, each a template of known placeholders."""
    before, there = len(table.problems), required or table.has(key)
    found = table.texts(key, required=required)
    if there and not found and len(table.problems) == before:
        table.problem(key, "expected a program and its arguments")
    for place, problem in templates.argv_problems(found, known):
        table.problems.append(f"{problem} @ {table.at(key)}[{place}]")
    if found and (not found[0] or ("/" in found[0] and not posixpath.isabs(found[0]))):
        table.problems.append(f"expected a program's name or absolute path @ {table.at(key)}[0]")
    return found


def template(table: Table, key: str, known: Collection[str]) -> str:
    """A text with known placeholders."""
    text = table.text(key)
    for problem in templates.problems(text, known):
        table.problem(key, problem)
    return text


def secrets(table: Table) -> tuple[str, ...]:
    """The names of the credentials that are handed on."""
    found = table.texts("secrets")
    for place, name in enumerate(found):
        if not SECRET.fullmatch(name):
            table.problems.append(
                f"a credential's name is at most 64 of A-Z a-z 0-9 . _ -, got {name!r} "
                f"@ {table.at('secrets')}[{place}]"
            )
        elif name in found[:place]:
            table.problems.append(f"{name!r} stands twice @ {table.at('secrets')}[{place}]")
    return found


def placeholders(names: Collection[str]) -> set[str]:
    """The placeholders of credentials of those names."""
    return {f"secrets.{name}" for name in names}


def who(table: Table, key: str) -> str:
    """`user:NAME` or `group:NAME`, or nothing."""
    found = table.text(key)
    if found and not _WHO.fullmatch(found):
        table.problem(key, f"expected user:NAME or group:NAME, got {found!r}")
    return found


def people(table: Table, key: str) -> tuple[str, ...]:
    """One or several of them: a text, or a list."""
    if table.has(key) and (one := table.peek(key)) and isinstance(one, str):
        return (who(table, key),)
    found = table.texts(key)
    for place, name in enumerate(found):
        if not _WHO.fullmatch(name):
            table.problems.append(
                f"expected user:NAME or group:NAME, got {name!r} @ {table.at(key)}[{place}]"
            )
    return found
