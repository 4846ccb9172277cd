"""A job's state as its author declares it: a frozen attrs class, strict in every field, both ways."""

import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Union, get_args, get_origin

import attrs

from resumed.schemas import codec, strict
from resumed.schemas.errors import AuthorError, FaultyInputError

_PLAIN = (int, str, bool, float)


def _problem(kind: Any, path: str) -> str:
    """Why a field's type cannot be kept exactly; empty when it can."""
    if kind in _PLAIN:
        return ""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return (
            "" if all(type(each.value) is str for each in kind) else f"{path}: an Enum's values must be text"
        )
    if isinstance(kind, type) and attrs.has(kind):
        return _class_problem(kind, path)
    arms = get_args(kind)
    if get_origin(kind) is tuple and len(arms) == 2 and arms[1] is Ellipsis:
        return _problem(arms[0], path)
    if get_origin(kind) is dict and arms[0] is str:
        return _problem(arms[1], path)
    if get_origin(kind) in (Union, types.UnionType) and len(arms) == 2 and types.NoneType in arms:
        return _problem(next(arm for arm in arms if arm is not types.NoneType), path)
    return (
        f"{path}: {kind} cannot be kept; use int, str, bool, float, a text Enum, tuple[X, ...], "
        "dict[str, X], X | None, or a frozen attrs class"
    )


def _is_frozen(kind: type) -> bool:
    fields = attrs.fields(kind)
    if not fields:
        return True
    try:
        setattr(object.__new__(kind), fields[0].name, None)
    except attrs.exceptions.FrozenInstanceError:
        return True
    return False


def _holds_maps(kind: Any) -> bool:
    """Whether a value of this type can be changed in place."""
    if attrs.has(kind):
        return any(_holds_maps(each.type) for each in attrs.fields(kind))
    return get_origin(kind) is dict or any(_holds_maps(arm) for arm in get_args(kind))


def _class_problem(kind: type, path: str) -> str:
    # A change made in place could not be told from no change.
    if not _is_frozen(kind):
        return f"{path}: {kind.__name__} is not frozen"
    attrs.resolve_types(kind)
    for each in attrs.fields(kind):
        if problem := _problem(each.type, f"{path}.{each.name}"):
            return problem
    return ""


class States:
    """Reads and spells one state class; every value an author returns is read back before it leaves."""

    def __init__(self, kind: type) -> None:
        if not attrs.has(kind):
            raise AuthorError(f"cannot use {kind!r} as a state: expected a frozen attrs class")
        if problem := _class_problem(kind, kind.__name__):
            raise AuthorError(f"cannot use {kind.__name__} as a state: {problem}")
        self._kind = kind
        self._types = {each.name: each.type for each in attrs.fields(kind)}
        self._maps = {name for name, type_ in self._types.items() if _holds_maps(type_)}
        self._whats = {name: f"cannot read the state's {name}" for name in self._types}
        self._aliases = {each.name: each.alias or each.name for each in attrs.fields(kind)}

    def read(self, texts: Mapping[str, str]) -> Any:
        """The state of a snapshot; fields it has no text for take their default."""
        values = {}
        for name, text in texts.items():
            if name not in self._types:
                raise AuthorError(f"cannot read the state: {self._kind.__name__} has no field {name!r}")
            values[self._aliases[name]] = self._field(name, text)
        try:
            return self._kind(**values)
        except TypeError as error:
            raise AuthorError(f"cannot read the state: {error}; give new fields a default") from None

    def _field(self, name: str, text: str) -> Any:
        what, kind = self._whats[name], self._types[name]
        value = strict.parse_own(text.encode(), what)
        if type(value) is kind and kind in (str, bool):
            return value  # what the converter would give back, without its detour
        return codec.from_plain(value, kind, what)

    def changed(self, texts: Mapping[str, str], before: Any, after: Any) -> dict[str, str]:
        """The JSON texts of the fields in which `after` differs, and of those that were never written."""
        if type(after) is not self._kind:
            got = type(after).__name__
            raise AuthorError(f"cannot keep a state: expected {self._kind.__name__}, got {got}")
        found = {}
        for name in self._types:
            value = getattr(after, name)
            if name in texts and value is getattr(before, name) and name not in self._maps:
                continue
            text = self._spell(name, value)
            if texts.get(name) != text:
                found[name] = text
        return found

    def _spell(self, name: str, value: Any) -> str:
        what = f"cannot keep the state's {name}"
        try:
            raw = codec.dump_plain(codec.to_plain(value))
            # Read back: NaN becomes null, a subclass its base, a list a tuple; none of it may pass unseen.
            kept = codec.from_plain(strict.parse_own(raw, what), self._types[name], what)
        except (TypeError, FaultyInputError, RecursionError) as error:
            raise AuthorError(f"{what}: {error}" if isinstance(error, TypeError) else str(error)) from None
        if kept != value:
            raise AuthorError(f"{what}: it reads back as {kept!r}")
        return raw.decode()
