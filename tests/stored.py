"""Every record that is stored, found by walking from those that files begin with; and how each field reads.

Used to hold `docs/format.md` against the records: a field that is stored has its line there.
"""

import enum
import json
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import attrs

from resumed.actors.containment import Identity
from resumed.schemas import codec, effecttable, instant, job, ledger, snapshot, table, workflow
from resumed.store import claims, intake, layout, names, quarantine, receipts, retire

ROOTS = (
    layout.StoreRecord,
    snapshot.Admission,
    snapshot.Seal,
    snapshot.Line,
    snapshot.Checkpoint,
    quarantine.Reason,
    intake.Rejection,
    names.Name,
    claims.Claim,
    receipts.HouseReceipt,
    retire.Farewell,
    Identity,
    workflow.Programs,
)
"""What a file, or a text inside one, begins with."""


def hints(kind: type[Any]) -> dict[str, Any]:
    """The declared type of each field."""
    return typing.get_type_hints(kind, vars(sys.modules[kind.__module__]))


TABLES: dict[Any, type[Any]] = {table.ItemTable: job.Item, effecttable.EffectTable: ledger.Effect}
"""What is stored as a list of rows, and what a row is."""


def _parts(kind: Any) -> list[Any]:
    return [TABLES[kind]] if kind in TABLES else list(get_args(kind))


def records() -> dict[str, type[Any]]:
    """By name, all records that are stored."""
    found: dict[str, type[Any]] = {}
    waiting: list[Any] = list(ROOTS)
    while waiting:
        kind = waiting.pop()
        waiting += _parts(kind)
        if not (isinstance(kind, type) and attrs.has(kind)) or kind is instant.Instant:
            continue
        if kind.__name__ not in found:
            found[kind.__name__] = kind
            waiting += hints(kind).values()
        assert found[kind.__name__] is kind, f"two stored records are called {kind.__name__}"
    return found


def words(kind: Any) -> str:
    """A field's type as the page spells it."""
    simple: dict[Any, str] = {str: "text", int: "int", bool: "bool", float: "number"}
    if kind in simple:
        return simple[kind]
    if kind in TABLES:
        return f"list of {TABLES[kind].__name__}"
    arms = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(words(arm) for arm in arms if arm is not types.NoneType) + " or null"
    if get_origin(kind) is tuple:
        return f"list of {words(arms[0])}"
    if get_origin(kind) is dict:
        return f"map of {words(arms[1])}"
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return ", ".join(f"`{member.value}`" for member in kind)
    return str(kind.__name__)


def default(field: "attrs.Attribute[Any]") -> str:
    """What an absent field means, as JSON; `–` when it is never absent."""
    if field.default is attrs.NOTHING:
        return "–"
    factory = getattr(field.default, "factory", None)
    value = factory() if factory is not None else field.default
    return f"`{json.dumps(codec.to_plain(value))}`"


def rows(kind: type[Any]) -> dict[str, str]:
    """By field, the beginning of its line in the page: name, type, default."""
    types_of = hints(kind)
    return {
        each.name: f"| `{each.name}` | {words(types_of[each.name])} | {default(each)} |"
        for each in attrs.fields(kind)
    }


PAGE = Path(__file__).resolve().parent.parent / "docs" / "format.md"


def sections() -> dict[str, str]:
    """The page's sections on records, by record."""
    parts = re.split(r"^### (\w+)$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def missing(name: str) -> str:
    """What has to be written into the page about one record; empty when all is there, and nothing else."""
    fields = rows(records()[name])
    there = sections().get(name)
    if there is None:
        lines = "\n".join(f"{row} WHAT IT SAYS |" for row in fields.values())
        return f"docs/format.md, section 9: add `### {name}`, with a table of these lines:\n{lines}"
    if absent := [f"{row} WHAT IT SAYS |" for row in fields.values() if row not in there]:
        lines = "\n".join(absent)
        return (
            f"docs/format.md, section 9, ### {name}: write these lines, in the order of the fields:\n{lines}"
        )
    named = re.findall(r"^\| `(\w+)` \|", there, flags=re.MULTILINE)
    if named != [*fields]:
        return f"docs/format.md, section 9, ### {name}: its fields are {', '.join(fields)}, in this order"
    return ""
