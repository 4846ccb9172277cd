"""Reading a person's file by hand: keys are taken by name and type, and every problem keeps its path."""

from collections.abc import Collection, Iterator
from typing import Any

from . import durations
from .strict import step

_KINDS = {"int": "int", "str": "string", "bool": "bool", "float": "number", "NoneType": "null"}
_KINDS |= {"dict": "table", "list": "list"}


def kind(value: object) -> str:
    """The word for a value's type in a person's file."""
    return _KINDS.get(type(value).__name__, type(value).__name__)


class Table:
    """One table of a file. What it cannot give is noted in `problems`, and a default stands in."""

    def __init__(self, value: Any, path: str, problems: list[str]) -> None:
        self.path = path
        self.problems = problems
        self._left: dict[str, Any] = {}
        if isinstance(value, dict):
            self._left = dict(value)
        else:
            problems.append(f"expected table, got {kind(value)} @ {path}")

    def at(self, key: str) -> str:
        """The path of a key."""
        return step(self.path, key)

    def problem(self, key: str, text: str) -> None:
        """Note what is wrong with a key."""
        self.problems.append(f"{text} @ {self.at(key)}")

    def has(self, key: str) -> bool:
        """Whether the key is there and not taken yet."""
        return key in self._left

    def take(self, key: str, expected: type, default: Any = None, *, required: bool = False) -> Any:
        """A key's value when it is exactly of the type expected, else the default."""
        if key not in self._left:
            if required:
                self.problems.append(f"required key {key!r} is missing @ {self.path}")
            return default
        value = self._left.pop(key)
        if type(value) is not expected:
            wanted = _KINDS[expected.__name__]
            self.problem(key, f"expected {wanted}, got {kind(value)}")
            return default
        return value

    def whatever(self, key: str) -> Any:
        """A key's value of any type; None when it is absent."""
        return self._left.pop(key, None)

    def peek(self, key: str) -> Any:
        """A key's value of any type, which is still to be taken; None when it is absent."""
        return self._left.get(key)

    def text(self, key: str, default: str = "", *, required: bool = False) -> str:
        """A string."""
        found: str = self.take(key, str, default, required=required)
        return found

    def number(self, key: str, default: int, least: int, *, required: bool = False) -> int:
        """An integer of at least `least`."""
        found: int = self.take(key, int, default, required=required)
        if found < least:
            self.problem(key, f"expected at least {least}, got {found}")
            return default
        return found

    def flag(self, key: str, default: bool = False, *, required: bool = False) -> bool:
        """A bool."""
        found: bool = self.take(key, bool, default, required=required)
        return found

    def duration(self, key: str, default: float) -> float:
        """A span of time as seconds."""
        text = self.take(key, str, None)
        if text is None:
            return default
        try:
            return durations.read(text)
        except ValueError as error:
            self.problem(key, str(error))
            return default

    def choice(self, key: str, choices: Collection[str], default: str) -> str:
        """One of a few words."""
        found = self.text(key, default)
        if found not in choices and found != default:
            self.problem(key, f"expected one of {', '.join(choices)}, got {found!r}")
            return default
        return found

    def texts(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        """A list of strings."""
        found = []
        for place, value in enumerate(self.take(key, list, [], required=required)):
            if type(value) is str:
                found.append(value)
            else:
                self.problems.append(f"expected string, got {kind(value)} @ {self.at(key)}[{place}]")
        return tuple(found)

    def inner(self, key: str) -> "Table | None":
        """A table inside this one; None when it is absent."""
        return Table(self._left.pop(key), self.at(key), self.problems) if key in self._left else None

    def each(self, key: str) -> "Iterator[Table]":
        """The tables of a list of tables."""
        for place, value in enumerate(self.take(key, list, [])):
            yield Table(value, f"{self.at(key)}[{place}]", self.problems)

    def left(self) -> tuple[str, ...]:
        """The keys not taken yet, in the file's order."""
        return tuple(self._left)

    def close(self, later: Collection[str] = ()) -> None:
        """Note every key that was not taken; those in `later` are known, only not to this release."""
        for key in self._left:
            known = key in later
            self.problems.append(
                f"key {key!r} is not in this release yet @ {self.path}"
                if known
                else f"unknown key {key!r} @ {self.path}"
            )
        self._left = {}
