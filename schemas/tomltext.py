"""TOML at the strict door: what its parser lets through or stumbles over is the text's fault, never ours."""

import tomllib
from typing import Any

from . import strict
from .errors import FaultyInputError


def parse(raw: bytes, what: str, most: int) -> Any:
    """The plain value of at most `most` bytes of TOML; FaultyInputError (begun by `what`) otherwise."""
    if len(raw) > most:
        raise FaultyInputError(what, (f"{len(raw)} bytes, the most is {most}",))
    try:
        return strict.check(tomllib.loads(raw.decode("utf-8")), what)
    except UnicodeDecodeError as error:
        raise FaultyInputError(what, (f"not UTF-8 at byte {error.start}",)) from None
    except RecursionError:
        raise FaultyInputError(what, (f"nested deeper than {strict.MAX_DEPTH} levels @ $",)) from None
    except ValueError as error:  # also a bare one: an integer of thousands of digits, a date that is none
        raise FaultyInputError(what, (f"not TOML: {error}",)) from None
