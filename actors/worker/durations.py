"""Spans of time as authors write them."""

from resumed.schemas import durations
from resumed.schemas.errors import AuthorError


def seconds(wait: str | float) -> float:
    """A duration (`"30s"`) or seconds; AuthorError when it is none, or is longer than ten years."""
    try:
        found = durations.read(wait) if isinstance(wait, str) else float(wait)
    except (TypeError, ValueError) as error:
        raise AuthorError(f"cannot read a duration: {error}") from None
    if not 0 <= found < 10 * 365 * 86_400:
        raise AuthorError(f"cannot read a duration: {wait!r} is out of range")
    return found


def span(what: str, given: object, *, zero: bool = False) -> float:
    """Seconds of a limit in a declaration, named by `what`; it must let time pass unless `zero` may be."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise AuthorError(f"{what} is a duration, got {given!r}")
    try:
        found = seconds(given)
    except AuthorError as error:
        raise AuthorError(f"{what}: {error}") from None
    if not (found > 0 or zero):
        raise AuthorError(f"{what} is more than 0 seconds, got {given!r}")
    return found
