"""RFC 8785 texts: the one spelling of a JSON value that fingerprints and keys are of, written and read back.

All its numbers are doubles, so one such as 1e16 is spelled without a point or an exponent, like a whole
number beyond those that JSON readers keep exactly. Reading takes it for what it is, whatever is beside it.
"""

from typing import Any

import orjson
import rfc8785

from . import strict


def spell(value: Any) -> bytes:
    """The RFC 8785 bytes of a plain value, by the quick encoder where that spells it the same way.

    ValueError when it has none: an integer beyond 2^53 - 1, NaN.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if _is_simple(value) else rfc8785.dumps(value)


def read(text: str, what: str) -> Any:
    """The plain value of a JSON text whose numbers are doubles; FaultyInputError (begun by `what`) where it
    is not strict JSON, or holds a whole number that no double is spelled as."""
    return strict.parse_own(text.encode("utf-8", "surrogatepass"), what, whole)


def whole(digits: str) -> int | float:
    """The value of a whole number's digits; ValueError where that cannot be kept exactly."""
    number = int(digits)
    if -strict.MAX_INT <= number <= strict.MAX_INT:
        return number
    double = float(digits)
    # What a reader would make of it must be spelled as it stands here: else two calls were one.
    if rfc8785.dumps(double).decode() != digits:
        raise ValueError(f"{digits} is beyond +-(2**53 - 1), and the spelling of no double")
    return double


def _is_simple(value: Any) -> bool:
    """Whether the quick encoder's text is that of RFC 8785: no number but small integers, no name that sorts
    otherwise by its UTF-16 units than by its characters, and no text that has no UTF-8."""
    kind = type(value)
    if kind is str:
        return value.isascii() or _is_spelled(value)
    if kind is dict:
        return all(type(name) is str and name.isascii() and _is_simple(each) for name, each in value.items())
    if kind is list:
        return all(map(_is_simple, value))
    return kind is bool or value is None or (kind is int and -strict.MAX_INT <= value <= strict.MAX_INT)


def _is_spelled(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
