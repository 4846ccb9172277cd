"""One valid sample of every record, made from its declared types, and what each type must refuse."""

import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any, Union, get_args, get_origin

import attrs

from resumed.schemas import (
    approvals,
    askviews,
    decisions,
    frames,
    instant,
    job,
    jobfile,
    ledger,
    snapshot,
    table,
    views,
    workflow,
)
from resumed.schemas.effecttable import EffectTable
from resumed.schemas.instant import Instant
from resumed.schemas.table import ItemTable

MODULES = (approvals, askviews, decisions, frames, job, jobfile, ledger, snapshot, views, workflow)
RECORDS: dict[str, type[Any]] = {
    f"{module.__name__.rsplit('.', 1)[-1]}.{name}": kind
    for module in MODULES
    for name, kind in vars(module).items()
    if isinstance(kind, type) and attrs.has(kind) and kind.__module__ == module.__name__
}
"""Every record of the schemas that crosses a door."""
WHEN = Instant(wall=1_795_000_000_000_000, boot="6f1c", up=5)

Plain = Any


def field_types(kind: type[Any]) -> dict[str, Any]:
    """The declared type of each field of a record."""
    names = {**vars(job), **vars(table), **vars(instant), **vars(typing)}
    hints = typing.get_type_hints(
        kind, globalns={**vars(__import__(kind.__module__, fromlist=["x"])), **names}
    )
    return {field.name: hints[field.name] for field in attrs.fields(kind)}


def _arms(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else ()


def optional(kind: Any) -> Any:
    """The type inside `X | None`, else None."""
    arms = _arms(kind)
    if len(arms) == 2 and types.NoneType in arms:
        return next(arm for arm in arms if arm is not types.NoneType)
    return None


def sample(kind: Any) -> Any:
    """A valid value of the type, no field of which holds its default where that can be helped."""
    inner = optional(kind)
    if inner is not None:
        return sample(inner)
    if _arms(kind) == get_args(decisions.Decided):
        return decisions.TryAgain(reason="busy", code="busy")
    simple: dict[Any, Any] = {int: 7, str: "x", bool: True, float: 2.5, Instant: WHEN}
    if kind in simple:
        return simple[kind]
    if kind is ItemTable:
        return ItemTable([attrs.evolve(sample(job.Item), ordinal=0)])
    if kind is EffectTable:
        return EffectTable([sample(ledger.Effect)])
    if get_origin(kind) is tuple:
        return (sample(get_args(kind)[0]),)
    if get_origin(kind) is dict:
        return {"k": sample(get_args(kind)[1])}
    if issubclass(kind, Enum):
        return list(kind)[-1]
    return kind(**{name: sample(of) for name, of in field_types(kind).items()})


_NOT = {
    "bool": ["false", "no", "true", "", 0, 1, 1.0, [], {}, {"status": "denied"}],
    "int": ["3", "", 3.7, 1.0, True, [], {}, 2**53, -(2**53)],
    "float": ["2.5", True, [], {}, 2**53],
    "text": [3, 2.5, True, [], {}, ["x"]],
    "list": ["abc", "", 3, True, {}, {"0": "x"}],
    "map": ["abc", 3, True, [], [["k", "x"]]],
    "word": ["nonsense", "", 0, True, [], {}],
    "record": ["x", "", 3, True, [], ["x"]],
}


def _name(kind: Any) -> str:
    simple = {int: "int", str: "text", bool: "bool", float: "float"}
    if kind in simple:
        return simple[kind]
    if get_origin(kind) is tuple or kind in (ItemTable, EffectTable):
        return "list"
    if get_origin(kind) is dict:
        return "map"
    return "word" if isinstance(kind, type) and issubclass(kind, Enum) else "record"


def wrong_values(kind: Any) -> Iterator[Plain]:
    """Plain values that a field of this type must refuse: what coercion would let through."""
    inner = optional(kind)
    if inner is None:
        yield None
    yield from _NOT[_name(kind if inner is None else inner)]
