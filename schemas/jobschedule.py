"""The keys of a job file that say when its job may run, and how far: `after`, `deadline`, `limits`, ..."""

from typing import Any

from . import limits, times
from .filetable import Table
from .jobfile import ID, MAX_AFTER

LOWEST, HIGHEST = -10, 10
"""Priorities."""


def read(table: Table, job: str) -> dict[str, Any]:
    """The fields of `JobFile` that these keys give; `job` is the id in the file, if there is one."""
    return {
        "priority": _priority(table),
        "after": _after(table, job),
        "not_before": _when(table, "not_before"),
        "deadline": _when(table, "deadline"),
        **limits.of_job(table),
    }


def _priority(table: Table) -> int:
    found: int = table.take("priority", int, 0)
    if not LOWEST <= found <= HIGHEST:
        table.problem("priority", f"expected {LOWEST} to {HIGHEST}, got {found}")
        return 0
    return found


def _after(table: Table, job: str) -> tuple[str, ...]:
    """The jobs that must have completed first, each named once by its whole id."""
    found = table.texts("after")
    if len(found) > MAX_AFTER:
        table.problem("after", f"{len(found)} jobs, the most is {MAX_AFTER}")
        return ()
    for place, other in enumerate(found):
        path = f"{table.at('after')}[{place}]"
        if not ID.match(other):
            table.problems.append(f"expected a job's whole id, got {other!r} @ {path}")
        elif other == job:
            table.problems.append(f"a job cannot wait for itself @ {path}")
        elif other in found[:place]:
            table.problems.append(f"the job {other!r} stands at {found.index(other)} already @ {path}")
    return found


def _when(table: Table, key: str) -> str:
    """The canonical text of a time (see `times`), "" when there is none."""
    if not table.has(key):
        return ""
    try:
        return times.canonical(table.whatever(key))
    except ValueError as error:
        table.problem(key, str(error))
        return ""
