"""The strict door for JSON: duplicate keys, NaN, large integers, lone surrogates, NUL and depth are refused.

Every refusal names the path in the text. Integers are held to +-(2**53 - 1), what every JSON reader keeps
exactly; depth to 64, well under what the encoder can write again (254).
"""

import json
import re
from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import Any, NoReturn

import orjson

from .errors import FaultyInputError

MAX_DEPTH = 64
MAX_INT = 2**53 - 1
PRETTY = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
"""How files are written that people open."""


_REFUSED = re.compile("[\x00\ud800-\udfff]")


class _Twice:
    """Stands in a parsed object for a key that was written twice."""

    __slots__ = ("key",)

    def __init__(self, key: str) -> None:
        self.key = key


def _pairs(pairs: list[tuple[str, Any]]) -> Any:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            return _Twice(key)
        found[key] = value
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


Whole = Callable[[str], int | float]


@cache
def _decoder(whole: Whole | None) -> json.JSONDecoder:
    """Made once: `json.loads` makes a new one at each call with hooks."""
    return json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_int=whole)


def step(path: str, key: str) -> str:
    """The path of a key below `path`, as problems show it."""
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]"


def _text_problem(text: str) -> str:
    if "\x00" in text:
        return "a NUL character is not allowed"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "a lone surrogate is not allowed"
    return ""


def _walk(value: Any, path: str, depth: int, problems: list[str]) -> None:
    if depth > MAX_DEPTH:
        problems.append(f"nested deeper than {MAX_DEPTH} levels @ {path}")
    elif isinstance(value, _Twice):
        problems.append(f"key {value.key!r} is written twice @ {path}")
    elif isinstance(value, dict):
        for key, inner in value.items():
            if problem := _text_problem(key):
                problems.append(f"{problem} in a key @ {path}")
            _walk(inner, step(path, key), depth + 1, problems)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            _walk(inner, f"{path}[{index}]", depth + 1, problems)
    elif isinstance(value, str):
        if problem := _text_problem(value):
            problems.append(f"{problem} @ {path}")
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int):
        if abs(value) > MAX_INT:
            problems.append(f"integer beyond +-(2**53 - 1) @ {path}")
    elif isinstance(value, float) and not isfinite(value):
        # JSON can only write it too large; TOML has words for it.
        problems.append(f"not a finite number @ {path}")


def _is_fit(value: Any, depth: int) -> bool:
    """True when `_walk` would find nothing: the same look without paths, which hardly any value needs."""
    if depth > MAX_DEPTH:
        return False
    kind = type(value)
    if kind is str:
        return "\x00" not in value and (value.isascii() or not _text_problem(value))
    if kind is dict:
        for key, inner in value.items():  # noqa: SIM110 - a generator takes twice the time
            if not (_is_fit(key, depth) and _is_fit(inner, depth + 1)):
                return False
        return True
    if kind is list:
        for inner in value:  # noqa: SIM110 - the same
            if not _is_fit(inner, depth + 1):
                return False
        return True
    if kind is int:
        return bool(-MAX_INT <= value <= MAX_INT)
    return kind is bool or value is None or (kind is float and isfinite(value))


def check(value: Any, what: str) -> Any:
    """The value itself when every part of it passes the door; FaultyInputError names each part that does not.

    Used for values that another parser made (TOML) as well as for JSON.
    """
    problems: list[str] = []
    try:
        if not _is_fit(value, 0):
            _walk(value, "$", 0, problems)
    except RecursionError:
        problems = [f"nested deeper than {MAX_DEPTH} levels @ $"]
    if problems:
        raise FaultyInputError(what, tuple(problems[:20]))
    return value


def parse(raw: bytes, what: str, whole: Whole | None = None) -> Any:
    """The plain value of strict JSON bytes; FaultyInputError (begun by `what`) for anything else.

    `whole` reads the digits of whole numbers where not all are to be integers.
    """
    try:
        text = raw.decode("utf-8")
        value = _decoder(whole).decode(text)
    except UnicodeDecodeError as error:
        raise FaultyInputError(what, (f"not UTF-8 at byte {error.start}",)) from None
    except RecursionError:
        raise FaultyInputError(what, (f"nested deeper than {MAX_DEPTH} levels @ $",)) from None
    except ValueError as error:
        raise FaultyInputError(what, (f"not JSON: {error}",)) from None
    return check(value, what)


def parse_own(raw: bytes, what: str, whole: Whole | None = None) -> Any:
    """The same door for bytes that our own encoder should have written, compact or pretty.

    Bytes that encode again to themselves cannot hold a key twice, a NaN or a lone surrogate, so only what
    is left is looked for; all others take the slow way. Depth and integer size are held by the records, and
    here where `whole` has a say.
    """
    try:
        value = orjson.loads(raw)
        form = PRETTY if raw.endswith(b"\n") else None
        is_own = orjson.dumps(value, option=form) == raw and b"\\u0000" not in raw
        if is_own and (whole is None or _is_fit(value, 0)):
            return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    return parse(raw, what, whole)


def plain(text: str) -> str:
    """The text with U+FFFD for each character that the door refuses, for words of programs and systems."""
    return _REFUSED.sub("\ufffd", text)


def check_json_text(text: str, what: str) -> str:
    """The text itself when it is strict JSON (a state field, an item's data); else FaultyInputError."""
    parse_own(text.encode("utf-8", "surrogatepass"), what)
    return text
