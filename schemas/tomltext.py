"""TOML at the strict door: what its parser lets through or stumbles over is the text's fault, never ours."""

import tomllib
from datetime import date, time
from typing import Any

from . import strict
from .errors import FaultyInputError


def parse(raw: bytes, what: str, most: int) -> Any:
    """The plain value of at most `most` bytes of TOML; FaultyInputError (begun by `what`) otherwise.

    A date or time of TOML's own becomes its text (RFC 3339), which is what JSON has for it.
    """
    if len(raw) > most:
        raise FaultyInputError(what, (f"{len(raw)} bytes, the most is {most}",))
    try:
        return strict.check(_with_texts(tomllib.loads(raw.decode("utf-8"))), what)
    except UnicodeDecodeError as error:
        raise FaultyInputError(what, (f"not UTF-8 at byte {error.start}",)) from None
    except RecursionError:
        raise FaultyInputError(what, (f"nested deeper than {strict.MAX_DEPTH} levels @ $",)) from None
    except ValueError as error:  # also a bare one: an integer of thousands of digits, a date that is none
        raise FaultyInputError(what, (f"not TOML: {error}",)) from None


def _with_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_texts(inner) for inner in value]
    return value.isoformat() if isinstance(value, date | time) else value
