"""Patterns of inputs, held against a text in a time that grows with its length and with nothing else.

Python's own matcher goes back and tries again, may do so for centuries over a short text, and lets nothing
else of its process run meanwhile. Here all that the pattern may stand for is followed at once, step by step.
The syntax is Python's, as its parser reads it; what would need to go back is refused.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from re import _constants as c  # type: ignore[attr-defined]  # the parser's own words have no other home
from re import _parser as parser  # type: ignore[attr-defined]  # the same
from re import error as syntax_error
from typing import Any

MAX_PATTERN = 1000
"""Characters of a pattern."""
MAX_STATES = 2000
"""Places a pattern may stand at: a count such as `{500}` makes that many of what it counts."""

_Test = Callable[[str], bool]
_At = Callable[[str, str], bool]
_REFUSED = {
    "GROUPREF": "refer back to a group",
    "GROUPREF_EXISTS": "ask for a group",
    "ASSERT": "look ahead or behind",
    "ASSERT_NOT": "look ahead or behind",
    "ATOMIC_GROUP": "keep what it took (`(?>..)`)",
    "POSSESSIVE_REPEAT": "keep what it took (`*+`)",
}


def _is_word(one: str) -> bool:
    return one.isalnum() or one == "_"


def _is_boundary(before: str, after: str) -> bool:
    return (before != "" and _is_word(before)) != (after != "" and _is_word(after))


_CATEGORIES: dict[Any, _Test] = {
    c.CATEGORY_DIGIT: str.isdecimal,
    c.CATEGORY_NOT_DIGIT: lambda one: not one.isdecimal(),
    c.CATEGORY_SPACE: str.isspace,
    c.CATEGORY_NOT_SPACE: lambda one: not one.isspace(),
    c.CATEGORY_WORD: _is_word,
    c.CATEGORY_NOT_WORD: lambda one: not _is_word(one),
}
_PLACES: dict[Any, _At] = {
    # What must hold between the character before ("" at the beginning) and all that follows.
    c.AT_BEGINNING: lambda before, rest: before == "",
    c.AT_BEGINNING_STRING: lambda before, rest: before == "",
    c.AT_END: lambda before, rest: rest in ("", "\n"),
    c.AT_END_STRING: lambda before, rest: rest == "",
    c.AT_BOUNDARY: lambda before, rest: _is_boundary(before, rest[:1]),
    c.AT_NON_BOUNDARY: lambda before, rest: not _is_boundary(before, rest[:1]),
}


class Pattern:
    """A pattern that a whole text matches or does not."""

    def __init__(self, text: str) -> None:
        """ValueError says why a text is no pattern, or none that can be followed step by step."""
        if len(text) > MAX_PATTERN:
            raise ValueError(f"{len(text)} characters, the most is {MAX_PATTERN}")
        try:
            parsed = parser.parse(text)
        except (syntax_error, OverflowError, RecursionError) as error:
            raise ValueError(f"not a pattern: {error}") from None
        if parsed.state.flags & ~c.SRE_FLAG_UNICODE:
            raise ValueError("a pattern may not set flags")
        # For each place: where it leads without a character (under a condition), and with which characters.
        self._free: list[list[tuple[_At | None, int]]] = []
        self._by: list[list[tuple[_Test, int]]] = []
        self._end = self._place()
        self._start = self._sequence(parsed, self._end)

    def matches(self, text: str) -> bool:
        """Whether the pattern stands for the whole text."""
        now = self._reached((self._start,), "", text)
        for place, one in enumerate(text):
            found = {to for at in now for test, to in self._by[at] if test(one)}
            if not found:
                return False
            now = self._reached(found, one, text[place + 1 :])
        return self._end in now

    def _reached(self, places: Iterable[int], before: str, rest: str) -> set[int]:
        """These places and all that they lead to without a character."""
        waiting, found = list(places), set(places)
        while waiting:
            for holds, to in self._free[waiting.pop()]:
                if to not in found and (holds is None or holds(before, rest)):
                    found.add(to)
                    waiting.append(to)
        return found

    # ---- building it, from the end to the beginning ----------------------------------------------------

    def _place(self) -> int:
        if len(self._free) == MAX_STATES:
            raise ValueError(f"it counts too far: more than {MAX_STATES} places to stand at")
        self._free.append([])
        self._by.append([])
        return len(self._free) - 1

    def _sequence(self, nodes: Any, then: int) -> int:
        for kind, given in reversed(list(nodes)):
            then = self._node(kind, given, then)
        return then

    def _node(self, kind: Any, given: Any, then: int) -> int:
        if kind in (c.MAX_REPEAT, c.MIN_REPEAT):
            least, most, inner = given
            return self._repeat(least, most, inner, then)
        if kind is c.SUBPATTERN:
            _, add, remove, inner = given
            if add or remove:
                raise ValueError("a pattern may not set flags")
            return self._sequence(inner, then)
        if kind is c.BRANCH:
            made = self._place()
            self._free[made] = [(None, self._sequence(arm, then)) for arm in given[1]]
            return made
        if kind is c.AT:
            made = self._place()
            self._free[made] = [(_PLACES[given], then)]
            return made
        made = self._place()
        self._by[made] = [(_test(kind, given), then)]
        return made

    def _repeat(self, least: int, most: Any, inner: Any, then: int) -> int:
        if most is c.MAXREPEAT:
            made = self._place()
            self._free[made] = [(None, then)]
            self._free[made].append((None, self._sequence(inner, made)))
        else:
            made = then
            for _ in range(most - least):
                optional = self._place()
                self._free[optional] = [(None, then), (None, self._sequence(inner, made))]
                made = optional
        for _ in range(least):
            made = self._sequence(inner, made)
        return made


def _test(kind: Any, given: Any) -> _Test:
    """What one character must be."""
    if kind is c.LITERAL:
        return chr(given).__eq__
    if kind is c.NOT_LITERAL:
        return chr(given).__ne__
    if kind is c.ANY:
        return "\n".__ne__
    if kind is c.CATEGORY:
        return _CATEGORIES[given]
    if kind is c.RANGE:
        first, last = chr(given[0]), chr(given[1])
        return lambda one: first <= one <= last
    if kind is c.IN:
        negated = given[0][0] is c.NEGATE
        tests = [_test(*each) for each in given[negated:]]
        return lambda one: any(test(one) for test in tests) != negated
    refused = _REFUSED.get(str(kind), f"use {kind}")
    raise ValueError(f"a pattern may not {refused}")


@lru_cache(maxsize=256)
def compiled(text: str) -> Pattern:
    """The pattern in a text; ValueError as in its making."""
    return Pattern(text)
