"""A job's inputs against what its workflow declares: types, defaults and limits; reads no file."""

import re
from collections.abc import Collection, Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from . import codec, patterns, strict, templates
from .errors import FaultyInputError
from .jobfile import JobFile, path_problem
from .workflow import Input, InputType, Programs

MAX_MATCHED = 1024
"""Characters of a text that is held against a pattern: the time it takes grows with them."""
HIDDEN = "(private)"
MATCHED = (InputType.STRING, InputType.TEXT, InputType.PATH, InputType.DECIMAL)
"""The types that a pattern may be for."""
COUNTED = (InputType.STRING, InputType.TEXT, InputType.PATH, InputType.INT, InputType.DECIMAL)
"""The types that `max` may be for: characters of a text, or the number itself."""

_DECIMAL = re.compile(r"(?=.{1,100}\Z)[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?\Z", re.ASCII)

_KINDS = {"int": "int", "str": "string", "bool": "bool", "float": "number", "NoneType": "null"}
_JSON: dict[InputType, type] = {InputType.INT: int, InputType.BOOL: bool}
"""What a type looks like in JSON; every other one is a string."""


def _kind(value: object) -> str:
    name = type(value).__name__
    return _KINDS.get(name, {"dict": "object", "list": "list"}.get(name, name))


def _is_lexically_under(path: str, root: str) -> bool:
    return root == "/" or path == root or path.startswith(f"{root}/")


def _text_problems(declared: Input, value: str) -> Iterator[str]:
    kind = declared.type
    got = "" if declared.private else f", got {value!r}"
    if kind is InputType.STRING and "\n" in value:
        yield "expected one line"
    if kind is InputType.CHOICE and value not in declared.choices:
        yield f"expected one of {', '.join(declared.choices)}{got}"
    if kind is InputType.DATE and not _is_day(value):
        yield f"expected a date as YYYY-MM-DD{got}"
    if kind is InputType.PATH:
        yield from _path_problems(declared, value)
    if kind is InputType.DECIMAL:
        yield from _decimal_problems(declared, value, got)
    elif declared.max is not None and len(value) > declared.max:
        yield f"{len(value)} characters, the most is {declared.max}"
    if declared.pattern and len(value) > MAX_MATCHED:
        yield f"{len(value)} characters, the most that a pattern is held against is {MAX_MATCHED}"
    elif declared.pattern and not _matches(declared.pattern, value):
        yield f"does not match {declared.pattern}"


def _is_day(value: str) -> bool:
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _decimal_problems(declared: Input, value: str, got: str) -> Iterator[str]:
    try:
        exact = Decimal(value) if _DECIMAL.match(value) else None
    except InvalidOperation:
        exact = None
    if exact is None:
        yield f"expected a decimal number as text{got}"
    elif declared.max is not None and exact > declared.max:
        yield f"the most is {declared.max}{got}"


def _matches(pattern: str, value: str) -> bool:
    try:
        return patterns.compiled(pattern).matches(value)
    except ValueError:
        return False  # pinned by a release that took other patterns


def _path_problems(declared: Input, value: str) -> Iterator[str]:
    if problem := path_problem(value):
        yield problem if not declared.private else problem.partition(", got ")[0]
    elif declared.roots and not any(_is_lexically_under(value, root) for root in declared.roots):
        yield f"does not lie under {' or '.join(declared.roots)}"


def value_problems(declared: Input, value: Any) -> Iterator[str]:
    """What is wrong with one value, without its path."""
    expected = _JSON.get(declared.type, str)
    if type(value) is not expected:
        yield f"expected {'string' if expected is str else expected.__name__}, got {_kind(value)}"
    elif isinstance(value, str):
        yield from _text_problems(declared, value)
    elif declared.max is not None and type(value) is int and value > declared.max:
        yield f"the most is {declared.max}" + ("" if declared.private else f", got {value}")


def check_inputs(
    declared: tuple[Input, ...],
    inputs: str,
    what: str,
    path: str = "$.inputs",
    by_items: Collection[str] = (),
) -> str:
    """The JSON text of accepted inputs, defaults filled in, in the declared order.

    Those in `by_items` may be missing: each item brings its own. FaultyInputError names each problem with
    its path; `what` begins its sentence.
    """
    given = strict.parse(inputs.encode("utf-8", "surrogatepass"), what)
    if not isinstance(given, dict):
        raise FaultyInputError(what, (f"expected object, got {_kind(given)} @ {path}",))
    known = {each.name: each for each in declared}
    problems = [f"unknown key {name!r} @ {path}" for name in given if name not in known]
    accepted: dict[str, Any] = {}
    for name, each in known.items():
        if name in given:
            found = [f"{problem} @ {path}.{name}" for problem in value_problems(each, given[name])]
            problems += found
            accepted[name] = given[name]
        elif each.default is not None:
            accepted[name] = strict.parse(each.default.encode(), what)
        elif name not in by_items:
            problems.append(f"required input {name!r} is missing @ {path}")
    if problems:
        raise FaultyInputError(what, tuple(problems[:20]))
    return codec.dump_plain(accepted).decode()


def left_to_items(programs: Programs, job: JobFile) -> frozenset[str]:
    """The inputs that the job itself need not have: each of its items brings them, or will be asked to.

    What the listing itself uses is never left to what it finds.
    """
    if job.items is not None:
        given = [set(strict.parse_own(item.inputs.encode(), "cannot read an item")) for item in job.items]
        return frozenset(set.intersection(*given)) if given else frozenset()
    lists_itself = bool(job.items_glob or job.items_lines or job.items_jsonl)
    has_members = bool(programs.items_key) or programs.items_from == "jsonl"
    if not (job.items_jsonl if lists_itself else has_members):
        return frozenset()
    texts = () if lists_itself else (programs.items_glob, programs.items_file, *programs.items_run)
    used = {name for text in texts for name in templates.names(text)}
    return frozenset(each.name for each in programs.inputs if f"inputs.{each.name}" not in used)


def check_item_inputs(declared: tuple[Input, ...], inputs: str, what: str, path: str) -> None:
    """Inputs that an item gives for itself: only declared ones, each of its type; none is required."""
    given = strict.parse(inputs.encode("utf-8", "surrogatepass"), what)
    known = {each.name: each for each in declared}
    problems = []
    for name, value in given.items():
        if name not in known:
            problems.append(f"unknown key {name!r} @ {path}")
        else:
            problems += [f"{problem} @ {path}.{name}" for problem in value_problems(known[name], value)]
    if problems:
        raise FaultyInputError(what, tuple(problems[:20]))


def spell(value: Any) -> str:
    """An accepted input as the text that takes a placeholder's place."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def shown(declared: tuple[Input, ...], inputs: str) -> dict[str, str]:
    """Inputs as texts for people: a private one is there, and says no more than that."""
    given = strict.parse_own(inputs.encode("utf-8", "surrogatepass"), "cannot show inputs")
    private = {each.name for each in declared if each.private}
    return {name: HIDDEN if name in private else spell(value) for name, value in given.items()}
