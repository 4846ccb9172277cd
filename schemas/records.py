"""Records by their fields: with some replaced, and all but some of them read.

`replaced` is `attrs.evolve` for the few places that do it for every step of a job. One function is made for
each class of record, as attrs makes its `__init__`: half the time of the general one, which looks at each
field's description anew (`docs/adr/0016`).
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

from attrs import NOTHING, fields

T = TypeVar("T")


def replaced(record: T, **changes: Any) -> T:
    """A copy of a frozen record with other values in the fields named; TypeError for a name it has not."""
    key: tuple[Any, ...] = (type(record), *changes)
    maker = _MAKERS.get(key)
    if maker is None:
        maker = _maker(type(record), *changes)
        if len(_MAKERS) < MOST_MAKERS:
            _MAKERS[key] = maker
    made: T = maker(record, *changes.values())
    return made


_MAKERS: dict[tuple[Any, ...], Callable[..., Any]] = {}
"""By class and the names of what is changed, in the order they are given in."""
MOST_MAKERS = 1024
"""More than there are places in the code that change a record, with all that each may change."""


def _maker(kind: type[Any], *changed: str) -> Callable[..., Any]:
    names = [each.name for each in fields(kind)]
    if unknown := set(changed) - set(names):
        raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(unknown))}")
    space: dict[str, Any] = {"_new": object.__new__, "_kind": kind}
    lines = [f"def make({', '.join(['_old', *changed])}):", " _made = _new(_kind)"]
    if "__slots__" in vars(kind):
        space |= {f"_set_{name}": getattr(kind, name).__set__ for name in names}
        lines += [f" _set_{name}(_made, {name if name in changed else f'_old.{name}'})" for name in names]
    else:
        lines.append(
            f" _made.__dict__.update(_old.__dict__, {', '.join(f'{name}={name}' for name in changed)})"
        )
    # Names of fields only: nothing of a record's content is ever part of this text.
    exec("\n".join([*lines, " return _made"]), space)
    made: Callable[..., Any] = space["make"]
    return made


def others(kind: type[Any], *known: str) -> tuple[Any, Any]:
    """What reads all fields of a kind of record but the known ones, and the defaults they have.

    TypeError where one has none: whoever knows only some fields must know of that one, too.
    """
    rest = [each for each in fields(kind) if each.name not in known]
    made = [each.default.factory() if hasattr(each.default, "factory") else each.default for each in rest]
    if NOTHING in made:
        raise TypeError(f"{kind.__name__} has a field without a default that is not known")
    if not rest:
        return _nothing, ()
    # What reads one field alone gives it bare.
    return attrgetter(*(each.name for each in rest)), tuple(made) if len(made) > 1 else made[0]


def _nothing(_record: object) -> tuple[()]:
    """What is read of a record that has no other fields: until it gets one."""
    return ()
