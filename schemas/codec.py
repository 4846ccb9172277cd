"""The one converter between records and JSON, strict in every type, and the digest of stored bytes.

Records are written without fields that hold their default. A default may therefore never change: a new
meaning needs a new field or a new schema level.
"""

import hashlib
import sys
import types
from collections.abc import Callable
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin

import attrs
import orjson
from cattrs import BaseValidationError, Converter, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from . import decisions, instant, strict
from .effecttable import EffectTable
from .errors import FaultyInputError
from .instant import Instant
from .job import CodeVersion, Item
from .ledger import Effect
from .table import ItemTable
from .workflow import Contract

T = TypeVar("T")
MOST_SHARED = 64
"""Records of a kind that are kept to be shared."""
_KINDS = {
    "int": "int",
    "str": "string",
    "bool": "bool",
    "float": "number",
    "NoneType": "null",
    "dict": "object",
    "list": "list",
}


class _WrongTypeError(Exception):
    """One value of the wrong type; the path is added by cattrs."""


def _wrong(expected: str, value: object) -> _WrongTypeError:
    return _WrongTypeError(
        f"expected {expected}, got {_KINDS.get(type(value).__name__, type(value).__name__)}"
    )


def _exact(kind: type, name: str) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise _wrong(name, value)
        return value

    return structure


def _int(value: Any, _: Any) -> int:
    if type(value) is not int:
        raise _wrong("int", value)
    if not -strict.MAX_INT <= value <= strict.MAX_INT:
        raise _WrongTypeError("integer beyond +-(2**53 - 1)")
    return value


def _number(value: Any, _: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise _wrong("number", value)
    if type(value) is int:
        _int(value, int)
    return float(value)


def _is_tagged(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType) and kind == decisions.Decided


def _optional(kind: Any) -> bool:
    if get_origin(kind) not in (Union, types.UnionType):
        return False
    arms = get_args(kind)
    return len(arms) == 2 and types.NoneType in arms


def _make(*, named: bool) -> Converter:
    """A converter; with `named`, what it refuses is named with its path, which takes twice the time."""
    made = Converter(forbid_extra_keys=True, omit_if_default=True, detailed_validation=named)
    # By class: cattrs asks hooks by predicate only after its own, coercing ones for these four.
    made.register_structure_hook(int, _int)
    made.register_structure_hook(str, _exact(str, "string"))
    made.register_structure_hook(bool, _exact(bool, "bool"))
    made.register_structure_hook(float, _number)

    def optional(kind: Any) -> Callable[[Any, Any], Any]:
        inner = next(arm for arm in get_args(kind) if arm is not types.NoneType)
        return lambda value, _: None if value is None else made.structure(value, inner)

    made.register_structure_hook_factory(_optional, optional)

    def enumerated(value: Any, kind: Any) -> Any:
        if type(value) is not str:
            raise _wrong("string", value)
        try:
            return kind(value)
        except ValueError:
            words = ", ".join(member.value for member in kind)
            raise _WrongTypeError(f"expected one of {words}, got {value!r}") from None

    # By class too, and nearer than str: an enum would load as any text otherwise.
    made.register_structure_hook(StrEnum, enumerated)

    def is_tuple(kind: Any) -> bool:
        return get_origin(kind) is tuple

    def tuples(kind: Any) -> Callable[[Any, Any], Any]:
        listed: Any = types.GenericAlias(list, (get_args(kind)[0],))
        as_list = made.get_structure_hook(listed)

        def structure(value: Any, _: Any) -> Any:
            if type(value) is not list:
                raise _wrong("list", value)
            return tuple(as_list(value, listed))

        return structure

    made.register_structure_hook_factory(is_tuple, tuples)

    def is_map(kind: Any) -> bool:
        return get_origin(kind) is dict

    def maps(kind: Any) -> Callable[[Any, Any], Any]:
        inner = get_args(kind)[1]
        hook = made.get_structure_hook(inner)

        def structure(value: Any, _: Any) -> Any:
            if type(value) is not dict:
                raise _wrong("object", value)
            return {key: hook(one, inner) for key, one in value.items()}

        return structure

    made.register_structure_hook_factory(is_map, maps)

    def records(kind: Any) -> Callable[[Any, Any], Any]:
        inner = make_dict_structure_fn(
            kind, made, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=named
        )

        def structure(value: Any, to: Any) -> Any:
            if type(value) is not dict:
                raise _wrong("object", value)
            return inner(value, to)

        return structure

    made.register_structure_hook_factory(attrs.has, records)
    _moments(made)
    _tables(made)
    _unions(made)
    if not named:
        _shared(made)
    return made


def _moments(made: Converter) -> None:
    def structure(value: Any, _: Any) -> Instant:
        if type(value) is not dict or set(value) != {"wall", "boot", "up"}:
            raise _WrongTypeError("expected an instant {wall, boot, up}")
        if type(value["wall"]) is not str or type(value["boot"]) is not str or type(value["up"]) is not int:
            raise _WrongTypeError("expected an instant {wall: UTC text, boot: string, up: int}")
        try:
            wall, boot = instant.read(value["wall"]), sys.intern(value["boot"])
            return Instant(wall=wall, boot=boot, up=_int(value["up"], int))
        except ValueError as error:
            raise _WrongTypeError(str(error)) from None

    made.register_structure_hook(Instant, structure)
    made.register_unstructure_hook(
        Instant, lambda moment: {"wall": instant.spell(moment.wall), "boot": moment.boot, "up": moment.up}
    )


def _tables(made: Converter) -> None:
    def structure(value: Any, _: Any) -> ItemTable:
        try:
            return ItemTable(made.structure(value, tuple[Item, ...]))
        except ValueError as error:
            raise _WrongTypeError(str(error)) from None

    made.register_structure_hook(ItemTable, structure)
    made.register_unstructure_hook(ItemTable, lambda table: [made.unstructure(item) for item in table])

    def effects(value: Any, _: Any) -> EffectTable:
        try:
            return EffectTable(made.structure(value, tuple[Effect, ...]))
        except ValueError as error:
            raise _WrongTypeError(str(error)) from None

    made.register_structure_hook(EffectTable, effects)
    made.register_unstructure_hook(EffectTable, lambda table: [made.unstructure(row) for row in table])


def _shared(made: Converter) -> None:
    """What many jobs have in common is read once and then the same object: nobody changes a record, and
    nobody the plain value that it is written as."""
    for kind in (Contract, CodeVersion):
        made.register_structure_hook(kind, _once(made.get_structure_hook(kind)))
    made.register_unstructure_hook(Contract, _once_written(made))


def _once_written(made: Converter) -> Callable[[Any], Any]:
    write: list[Callable[[Any], Any]] = []
    known: dict[int, tuple[Any, Any]] = {}

    def unstructure(record: Any) -> Any:
        # By identity: to compare two contracts takes as long as to write one.
        found = known.get(id(record))
        if found is None:
            if not write:  # not at the start: to make it takes a while
                write.append(make_dict_unstructure_fn(Contract, made, _cattrs_omit_if_default=True))
            if len(known) >= MOST_SHARED:
                known.clear()
            # The record is kept with it, so that its number cannot become another's.
            found = known[id(record)] = record, write[0](record)
        return found[1]

    return unstructure


def _once(read: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    known: dict[bytes, Any] = {}

    def structure(value: Any, to: Any) -> Any:
        key = orjson.dumps(value)
        found = known.get(key)
        if found is None:
            found = read(value, to)
            if len(known) >= MOST_SHARED:
                known.clear()
            known[key] = found
        return found

    return structure


def _unions(made: Converter) -> None:
    arms = {arm.__name__: arm for arm in get_args(decisions.Decided)}

    @cache
    def writer(kind: str) -> Callable[[Any], dict[str, Any]]:
        """Made when the first of its kind is written: all of them took a fortieth of a start."""
        return make_dict_unstructure_fn(arms[kind], made, _cattrs_omit_if_default=True)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not dict or type(value.get("kind")) is not str:
            raise _WrongTypeError("expected a decision with its kind")
        arm = arms.get(value["kind"])
        if arm is None:
            raise _WrongTypeError(f"expected one of {', '.join(arms)}, got {value['kind']!r}")
        return made.structure({key: one for key, one in value.items() if key != "kind"}, arm)

    def unstructure(value: Any) -> dict[str, Any]:
        kind = type(value).__name__
        return {"kind": kind, **writer(kind)(value)}

    made.register_structure_hook_func(_is_tagged, structure)
    made.register_unstructure_hook_func(_is_tagged, unstructure)


_CONVERTER = _make(named=False)


@cache
def _naming() -> Converter:
    """For what the quick one refused: most values fit, and nobody needs a path for them."""
    return _make(named=True)


def _spell_problem(error: BaseException, kind: type | None) -> str:
    del kind
    if isinstance(error, _WrongTypeError):
        return str(error)
    if isinstance(error, KeyError):
        return f"required field {error.args[0]!r} is missing"
    names = getattr(error, "extra_fields", None)
    if names:
        return f"unknown key {', '.join(repr(name) for name in sorted(names))}"
    return str(error) or type(error).__name__


def to_plain(record: object) -> Any:
    """The plain JSON value of a record."""
    return _CONVERTER.unstructure(record)


def from_plain(value: Any, kind: type[T], what: str) -> T:
    """The record of a plain value; FaultyInputError names each field that does not fit, with its path."""
    try:
        return _CONVERTER.structure(value, kind)
    except Exception:  # noqa: BLE001 - whatever it met, the other one meets it too, and says it
        pass
    try:
        return _naming().structure(value, kind)
    except BaseValidationError as error:
        problems = transform_error(error, format_exception=_spell_problem)
        raise FaultyInputError(what, tuple(problems[:20])) from None
    except _WrongTypeError as error:
        raise FaultyInputError(what, (f"{error} @ $",)) from None


def encode(record: object) -> bytes:
    """The record as compact JSON bytes, without a newline."""
    return orjson.dumps(_CONVERTER.unstructure(record))


def encode_pretty(record: object) -> bytes:
    """The record as indented JSON that ends with a newline, for files that people open."""
    return orjson.dumps(_CONVERTER.unstructure(record), option=strict.PRETTY)


def dump_plain(value: Any) -> bytes:
    """A plain value as compact JSON bytes."""
    return orjson.dumps(value)


def dump_whole(value: Any) -> bytes:
    """A plain value with records in it as compact JSON bytes; each record with all its fields, in order."""
    return orjson.dumps(value, default=_whole)


def _whole(record: Any) -> dict[str, Any]:
    names = _NAMES.get(type(record))
    if names is None:
        names = _NAMES[type(record)] = tuple(each.name for each in attrs.fields(type(record)))
    return {name: getattr(record, name) for name in names}


_NAMES: dict[type, tuple[str, ...]] = {}


def dump_pretty(value: Any) -> bytes:
    """A plain value as indented JSON that ends with a newline."""
    return orjson.dumps(value, option=strict.PRETTY)


def decode(raw: bytes, kind: type[T], what: str) -> T:
    """The record in bytes of any writer, through the strict door."""
    return from_plain(strict.parse(raw, what), kind, what)


def decode_own(raw: bytes, kind: type[T], what: str) -> T:
    """The record in bytes our own encoder should have written, through the same door."""
    return from_plain(strict.parse_own(raw, what), kind, what)


def digest(raw: bytes) -> str:
    """The sha256 of stored bytes, in hex; never of re-serialised objects."""
    return hashlib.sha256(raw).hexdigest()


@lru_cache(maxsize=1024)
def shard(job: str) -> str:
    """The two-letter folder that a job's id falls in."""
    return hashlib.sha256(job.encode()).hexdigest()[:2]
