"""Texts about an author's errors that can always be encoded, whatever the error is made of."""

import traceback

MOST = 4000
_FRAMES = 6


def clean(text: str, most: int = MOST) -> str:
    """Text that passes the strict door: no lone surrogate, no NUL, and at most `most` characters."""
    if len(text) > most:
        text = text[: most - 1] + "\u2026"
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")


def _sentence(error: BaseException) -> str:
    try:
        said = str(error)
    except BaseException:  # noqa: BLE001  an author's __str__ may do anything, and must not hide the error
        said = "(its text cannot be shown)"
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _described(error: BaseException, indent: str) -> list[str]:
    lines = [indent + clean(_sentence(error), MOST // 4)]
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    lines += [f"{indent}  at {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    if isinstance(error, BaseExceptionGroup) and len(indent) < 8:
        for inner in error.exceptions[:5]:
            lines += _described(inner, indent + "  ")
    return lines


def of(error: BaseException) -> str:
    """The error, then the innermost places it came through; never fails, also with no memory left."""
    try:
        return clean("\n".join(_described(error, "")))
    except BaseException:  # noqa: BLE001  the report of an error may not become an error
        return type(error).__name__.encode("ascii", "replace").decode()
