"""The interface text of `org.resumed.Control`, drawn from the method table and the records it names.

A parameter that has a default may be left out, so it is nullable; answers are always written whole.
"""

import inspect
import textwrap
import types
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from resumed.schemas import control

from .methods import METHODS

WIDTH = 100
# An interface has one space of names for types, methods and errors: two records are called otherwise here.
RENAMED = {"Status": "JobStatus", "Quarantined": "QuarantinedJob"}
PLAIN = {int: "int", str: "string", bool: "bool", float: "float"}

ERRORS = {
    control.ERROR_REFUSED: ("code: string, reason: string, commands: []string", "Nothing was changed."),
    control.ERROR_NO_SUCH: ("kind: string, name: string, reason: string", "Nobody has that name."),
    control.ERROR_NOT_PERMITTED: ("method: string, reason: string", "The peer has not the role."),
    control.ERROR_UNKNOWN_OUTCOME: (
        "reason: string",
        "It may or may not be in force: ask again with the same request id.",
    ),
    control.ERROR_FAULTY: ("reason: string, problems: []string", "What was offered does not hold."),
}


class _Types:
    """Collects the named types that the methods use."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def spell(self, kind: Any) -> str:
        """The Varlink spelling of a field's type."""
        if kind in PLAIN:
            return PLAIN[kind]
        if get_origin(kind) is tuple:
            return f"[]{self.spell(get_args(kind)[0])}"
        if get_origin(kind) is dict:
            return f"[string]{self.spell(get_args(kind)[1])}"
        if get_origin(kind) in (Union, types.UnionType):
            inner = next(arm for arm in get_args(kind) if arm is not types.NoneType)
            return f"?{self.spell(inner)}"
        name: str = RENAMED.get(kind.__name__, kind.__name__)
        if name not in self.texts:
            self.texts[name] = ""
            self.texts[name] = self._defined(name, kind)
        return name

    def _defined(self, name: str, kind: Any) -> str:
        if issubclass(kind, Enum):
            body = f"({', '.join(member.value for member in kind)})"
        else:
            body = self.fields(kind, nullable=False)
        return f"{_comment(kind)}type {name} {body}"

    def fields(self, kind: type, *, nullable: bool) -> str:
        """The parenthesised fields of a record."""
        hints = get_type_hints(kind)
        parts = []
        for each in attrs.fields(kind):
            mark = "?" if nullable and each.default is not attrs.NOTHING else ""
            parts.append(f"{each.name}: {mark}{self.spell(hints[each.name])}")
        line = ", ".join(parts)
        if len(line) <= WIDTH - 40:
            return f"({line})"
        return "(\n" + ",\n".join(f"  {part}" for part in parts) + "\n)"


def _comment(thing: Any) -> str:
    said = (inspect.getdoc(thing) or "").replace("`", "")
    lines = [line for part in said.splitlines() if part for line in textwrap.wrap(part, WIDTH - 2)]
    return "".join(f"# {line}\n" for line in lines)


def interface_text() -> str:
    """The whole text, as `GetInterfaceDescription` answers it and as it stands beside this module."""
    known = _Types()
    methods = []
    for name, method in METHODS.items():
        takes, gives = (
            known.fields(method.takes, nullable=True),
            known.fields(method.gives, nullable=False),
        )
        more = ""
        if method.stream is not None:
            said = inspect.getdoc(method.stream) or ""
            more = "# Needs `more`.\n" if method.serve is None else f"# With `more`: {said.splitlines()[0]}\n"
        mine = ", or that the job is your own" if method.own else ""
        who = f"# Needs the role {' or '.join(role.value for role in method.roles)}{mine}.\n"
        methods.append(f"{_comment(method.doc)}{who}{more}method {name}{takes} -> {gives}")
    errors = [
        f"# {said}\nerror {name.rpartition('.')[2]} ({fields})" for name, (fields, said) in ERRORS.items()
    ]
    head = "# Long jobs on one host: hand them in, watch them, steer them.\n"
    parts = [f"{head}interface {control.INTERFACE}", *known.texts.values(), *methods, *errors]
    return "\n\n".join(parts) + "\n"
