"""The migration registry: one pure step between two neighbouring schema levels of a stored record.

A step takes and gives plain JSON values. Steps run in memory only; a migrated snapshot becomes durable as
one line that carries it whole.

From 1 to 2 nothing is rewritten: level 2 only adds fields, each with a default that means what level 1 meant.
"""

from collections.abc import Callable, Mapping
from typing import Any

from .errors import DamagedError, NewerSchemaError
from .snapshot import STATE_SCHEMA

Step = Callable[[Any], Any]

RECORDS = ("admission", "seal", "line", "checkpoint", "snapshot")
"""What is stored with a level. Lines and checkpoints hold snapshots: a step for these is part of theirs."""


def _same(value: Any) -> Any:
    return value


STEPS: Mapping[tuple[str, int], Step] = {(record, 1): _same for record in RECORDS}
"""By (record, level it reads): the step to the next level."""


def level_of(value: Any, key: str, what: str) -> int:
    """The schema level a stored value names under `key`; DamagedError when it names none."""
    level = value.get(key) if isinstance(value, dict) else None
    if type(level) is not int or level < 1:
        raise DamagedError(f"{what}: expected a schema level under {key!r}, got {level!r}")
    return level


def migrate(
    record: str,
    value: Any,
    level: int,
    what: str,
    *,
    steps: Mapping[tuple[str, int], Step] = STEPS,
    known: int = STATE_SCHEMA,
) -> Any:
    """The value brought from `level` to `known`.

    NewerSchemaError when it is above; DamagedError when a step is missing.
    """
    if level > known:
        raise NewerSchemaError(what, level, known)
    while level < known:
        step = steps.get((record, level))
        if step is None:
            raise DamagedError(f"{what}: no migration of {record} from schema {level} to {level + 1}")
        value = step(value)
        level += 1
    return value
