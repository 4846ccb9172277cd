"""Records with some fields replaced: `attrs.evolve` for the few places that do it for every step of a job.

One function is made for each class of record, as attrs makes its `__init__`: half the time of the general
one, which looks at each field's description anew (`docs/adr/0016`).
"""

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import fields

T = TypeVar("T")


def replaced(record: T, **changes: Any) -> T:
    """A copy of a frozen record with other values in the fields named; TypeError for a name it has not."""
    kind: type[Any] = type(record)
    maker = _MAKERS.get(kind)
    if maker is None:
        maker = _MAKERS[kind] = _maker(kind)
    made: T = maker(record, **changes)
    return made


_MAKERS: dict[type[Any], Callable[..., Any]] = {}


def _maker(kind: type[Any]) -> Callable[..., Any]:
    names = [each.name for each in fields(kind)]
    space: dict[str, Any] = {f"_set_{name}": getattr(kind, name).__set__ for name in names}
    space |= {"_new": object.__new__, "_kind": kind, "_same": object()}
    lines = [f"def make(_old, *, {', '.join(f'{name}=_same' for name in names)}):", " _made = _new(_kind)"]
    lines += [f" _set_{name}(_made, _old.{name} if {name} is _same else {name})" for name in names]
    # Names of fields only: nothing of a record's content is ever part of this text.
    exec("\n".join([*lines, " return _made"]), space)
    made: Callable[..., Any] = space["make"]
    return made
