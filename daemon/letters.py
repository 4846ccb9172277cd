"""Characters as a terminal shows them: which may be printed, how wide they are, where a line is cut.

Pure but for the locale; standard library only.
"""

import os
from functools import cache

LONGEST = 200
MOST_MARKS = 3
"""Combining marks on one letter; a pile of them would run into the lines above."""


@cache
def only_ascii() -> bool:
    """Whether the locale has no letters beyond ASCII: `LC_ALL=C`, or a character set that is not UTF-8."""
    named = next((said for name in ("LC_ALL", "LC_CTYPE", "LANG") if (said := os.environ.get(name))), "")
    return "utf8" not in named.lower().replace("-", "")


def clean(text: object, longest: int = LONGEST) -> str:
    """The text with everything unprintable escaped, cut at `longest` columns."""
    whole = str(text)
    if whole.isascii() and whole.isprintable():
        return whole if len(whole) <= longest else cut(whole, longest)
    parts, marks = [], MOST_MARKS  # a mark with no letter before it would sit on whatever is printed there
    for one in whole[: longest + 1 + longest // 2]:
        marks = marks + 1 if _is_mark(one) else 0
        parts.append(one if _is_fine(one) and marks <= MOST_MARKS else escape(one))
    return cut("".join(parts), longest)


def sentence(text: str, longest: int = LONGEST) -> str:
    """A reason on one line: of an author's error its first line, without the places that it came through
    (--json has them); other ends of lines are gaps."""
    return clean(" ".join(text.partition("\n  at ")[0].split("\n")), longest)


def _is_fine(one: str) -> bool:
    return one.isprintable() and (one.isascii() or not only_ascii())


def escape(one: str) -> str:
    """One character, spelled in ASCII."""
    code = ord(one)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_mark(one: str) -> bool:
    if one.isascii():
        return False
    import unicodedata  # only who meets such letters pays for the table

    return unicodedata.category(one) in ("Mn", "Me")


def _columns(one: str) -> int:
    """How many columns a printable character takes: 0 for marks, 2 for wide ones (Unicode annex 11)."""
    import unicodedata

    if _is_mark(one) or 0x1160 <= ord(one) <= 0x11FF:  # vowels and finals that join the syllable before
        return 0
    return 2 if unicodedata.east_asian_width(one) in ("W", "F") else 1


def columns(text: str) -> int:
    """How many columns a printable text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, most: int) -> str:
    """The text in at most so many columns; a sign stands for what was left out."""
    if columns(text) <= most:
        return text
    sign = "..." if only_ascii() else "…"
    if most <= len(sign):
        sign = ""
    room = max(0, most - len(sign))
    if text.isascii():
        return text[:room] + sign
    kept = []
    for one in text:
        room -= _columns(one)
        if room < 0:
            break
        kept.append(one)
    return "".join(kept) + sign


def pad(text: str, wide: int, *, right: bool = False) -> str:
    """The text filled up with spaces to so many columns."""
    spaces = " " * (wide - columns(text))
    return spaces + text if right else text + spaces


def wrap(text: str, wide: int) -> list[str]:
    """The text in lines of at most so many columns, broken between words; a longer word stays whole."""
    lines, line = [], ""
    for word in text.split(" "):
        grown = f"{line} {word}" if line else word
        if columns(grown) > wide and line:
            lines.append(line)
            grown = word
        line = grown
    return [*lines, line]
