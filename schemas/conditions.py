"""When an approval is asked for: a condition on one argument of a call, as `when` of a rule writes it.

`amount > 100`, `target.branch == "main"`, `draft != true`: the argument's name (members below it after
dots), a comparison, and a value as JSON. Decimal text is compared as the number it spells. What cannot be
compared, or is not there, counts as if the condition held: somebody is asked rather than nobody.
"""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from attrs import frozen

from . import jcs, strict
from .errors import FaultyInputError

COMPARISONS = ("==", "!=", "<=", ">=", "<", ">")

_CONDITION = re.compile(
    r"\s*([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)\s*(==|!=|<=|>=|<|>)\s*(\S.*?)\s*\Z", re.DOTALL
)


@frozen
class Condition:
    """One comparison: `path` are the names on the way to the argument, `value` is what JSON gives."""

    path: tuple[str, ...]
    comparison: str
    value: str | bool | Decimal | None


def read(text: str) -> Condition:
    """The condition; ValueError says what is wrong with the text."""
    found = _CONDITION.match(text)
    if found is None:
        raise ValueError(f"expected NAME {' | '.join(COMPARISONS)} VALUE, got {text!r}")
    name, comparison, literal = found.groups()
    try:
        value = strict.parse_own(literal.encode(), "")
    except FaultyInputError:
        raise ValueError(f"expected a JSON value after {comparison}, got {literal!r}") from None
    if isinstance(value, list | dict):
        raise ValueError(f"expected text, a number, true, false or null after {comparison}, got {literal!r}")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = Decimal(literal)
    if comparison not in ("==", "!=") and not isinstance(value, Decimal):
        raise ValueError(f"{comparison} compares numbers, got {literal!r}")
    return Condition(tuple(name.split(".")), comparison, value)


def holds(text: str, arguments: str) -> bool:
    """Whether the condition holds of these arguments (JSON text); an empty one always does."""
    if not text:
        return True
    try:
        condition = read(text)
        value: Any = jcs.read(arguments, "cannot read arguments")
        for name in condition.path:
            value = value[name]
        return _compared(value, condition)
    except (ValueError, KeyError, TypeError, InvalidOperation, FaultyInputError):
        return True


def _compared(value: Any, condition: Condition) -> bool:
    """InvalidOperation or TypeError where the two cannot be compared."""
    wanted = condition.value
    if isinstance(wanted, Decimal):
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise TypeError
        number = Decimal(value if isinstance(value, str) else repr(value))
        if number.is_nan():
            raise InvalidOperation
        return {
            "==": number == wanted,
            "!=": number != wanted,
            "<=": number <= wanted,
            ">=": number >= wanted,
            "<": number < wanted,
            ">": number > wanted,
        }[condition.comparison]
    if type(value) is not type(wanted):
        raise TypeError
    return bool(value == wanted) is (condition.comparison == "==")
