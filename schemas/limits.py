"""Limits of a job as files write them: what a workflow allows, and how far a job's own file tightens it."""

import re
from decimal import Decimal
from enum import StrEnum
from typing import Any

from attrs import evolve, frozen

from . import durations, sizes
from .errors import FaultyInputError
from .filetable import Table

ACTIVE_TIME = 86_400.0
PIDS = 256
FAILURES_IN_A_ROW = 5
"""What holds where a workflow says nothing (INTERFACE.md)."""
NONE = "none"
"""How a workflow file says that there is no such limit."""
MOST_COUNT = 10**12
MOST_FAILURES = 1000

_MONEY = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?\Z")


class OnFailed(StrEnum):
    """What becomes of a job when an item of it has failed; from the loosest to the tightest."""

    CONTINUE = "continue"
    """The others go on, and the job goes on after them with that item left behind."""
    HOLD = "hold"
    """The others go on, then the job is held for a person."""
    STOP = "stop"
    """Nothing new starts, and the job is held for a person at once."""


@frozen(kw_only=True)
class Limits:
    """What a job may use: `usd` is decimal text, times are seconds, `memory` bytes; None is no limit.

    `pids` None is the default, 0 no limit. `memory` and `pids` hold for a worker process and all below it.
    """

    usd: str | None = None
    tokens: int | None = None
    turns: int | None = None
    active_time: float | None = ACTIVE_TIME
    deadline: float | None = None
    memory: int | None = None
    pids: int | None = None
    failures_in_a_row: int = FAILURES_IN_A_ROW
    """0: no number of failures in a row means anything."""
    best_effort: bool = False
    """Whether `memory` and `pids` may go unenforced where no control group is delegated."""

    def pids_most(self) -> int | None:
        """The processes that may exist at once; None where they are not limited."""
        return PIDS if self.pids is None else self.pids or None


@frozen(kw_only=True)
class Tighter:
    """What a job's file gives of its own; None where it gives nothing."""

    usd: str | None = None
    tokens: int | None = None
    turns: int | None = None
    active_time: float | None = None
    deadline: float | None = None
    memory: int | None = None
    pids: int | None = None
    failures_in_a_row: int | None = None


# ---- reading ----------------------------------------------------------------------------------------------


def of_workflow(table: Table) -> dict[str, Any]:
    """`limits` and `on_failed` of a workflow file, as fields of `Programs`."""
    inner = table.inner("limits")
    found: dict[str, Any] = {}
    if inner is not None:
        found["best_effort"] = inner.flag("best_effort")
        found |= _given(inner, none=True)
    on_failed = table.choice("on_failed", tuple(OnFailed), OnFailed.HOLD)
    return {"limits": Limits(**found), "on_failed": OnFailed(on_failed)}


def of_job(table: Table) -> dict[str, Any]:
    """`limits` and `on_failed` of a job file, as fields of `JobFile`."""
    inner = table.inner("limits")
    found = _given(inner, none=False) if inner is not None else {}
    on_failed = table.choice("on_failed", tuple(OnFailed), "")
    return {"limits": Tighter(**found), "on_failed": OnFailed(on_failed) if on_failed else None}


def _given(table: Table, *, none: bool) -> dict[str, Any]:
    """The limits that a table names, by field. "none" stands for no limit, where that may be said."""
    found: dict[str, Any] = {}
    for key, read in _READERS.items():
        if not table.has(key):
            continue
        value = table.whatever(key)
        if value == NONE and none:
            found[key] = 0 if key in ("pids", "failures_in_a_row") else None
            continue
        try:
            found[key] = read(value)
        except ValueError as error:
            table.problem(key, str(error))
    table.close()
    return found


def money(value: object) -> str:
    """Decimal text of an amount, to the millionth; ValueError for anything else, a float too."""
    text = str(value) if type(value) is int else value
    if type(text) is not str or not _MONEY.match(text):
        raise ValueError(f'expected an amount as text, such as "12.50", got {value!r}')
    return f"{Decimal(text).normalize():f}"


def count(value: object) -> int:
    """A number of at least 1."""
    if type(value) is not int or not 1 <= value <= MOST_COUNT:
        raise ValueError(f"expected a number of at least 1, got {value!r}")
    return value


def failures(value: object) -> int:
    """A number of failures in a row, small enough to be kept one by one."""
    if count(value) > MOST_FAILURES:
        raise ValueError(f"expected at most {MOST_FAILURES}, got {value}")
    return count(value)


def span(value: object) -> float:
    """Seconds of a duration text, more than none."""
    if type(value) is not str:
        raise ValueError(f'expected a duration such as "24h", got {value!r}')
    seconds = durations.read(value)
    if seconds <= 0:
        raise ValueError(f"expected more than 0s, got {value!r}")
    return seconds


_READERS: dict[str, Any] = {
    "usd": money,
    "tokens": count,
    "turns": count,
    "active_time": span,
    "deadline": span,
    "memory": sizes.read,
    "pids": count,
    "failures_in_a_row": failures,
}


def spell(key: str, value: Any) -> str:
    """The text of a limit, as a file would write it."""
    if key in ("active_time", "deadline"):
        return durations.exact(value)
    return sizes.spell(value) if key == "memory" else str(value)


# ---- tightening -------------------------------------------------------------------------------------------


def exceeds(key: str, value: Any, most: Any) -> bool:
    """True when a limit lies above another, None being none at all."""
    if most is None:
        return False
    return Decimal(value) > Decimal(most) if key == "usd" else bool(value > most)


def tightened(allowed: Limits, asked: Tighter, what: str) -> Limits:
    """What holds for a job; FaultyInputError (begun by `what`) names each limit above the workflow's."""
    problems: list[str] = []
    found: dict[str, Any] = {}
    for key in _READERS:
        value = getattr(asked, key)
        if value is None:
            continue
        most = allowed.pids_most() if key == "pids" else getattr(allowed, key) or None
        if exceeds(key, value, most):
            problems.append(
                f"a job may only tighten: the workflow allows {spell(key, most)}, got {spell(key, value)} "
                f"@ $.limits.{key}"
            )
        found[key] = value
    if problems:
        raise FaultyInputError(what, tuple(problems))
    return evolve(allowed, **found) if found else allowed


def tighter_on_failed(allowed: OnFailed, asked: OnFailed | None, what: str) -> OnFailed:
    """What holds for a job when an item fails; FaultyInputError where its file would loosen it."""
    order = list(OnFailed)
    if asked is None:
        return allowed
    if order.index(asked) < order.index(allowed):
        said = f"a job may only tighten: the workflow says {allowed}, got {asked} @ $.on_failed"
        raise FaultyInputError(what, (said,))
    return asked


def unenforced(limits: Limits | Tighter, allowed: Limits, path: str) -> tuple[str, ...]:
    """The limits that only control groups can hold, where there are none and the workflow insists."""
    if allowed.best_effort:
        return ()
    return tuple(
        f"cannot hold {key} without control groups: delegate some to the daemon, or say best_effort = true "
        f"in the workflow @ {path}.{key}"
        for key in ("memory", "pids")
        if getattr(limits, key)
    )
