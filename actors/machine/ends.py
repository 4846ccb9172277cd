"""How a try that gave no answer ends: one table over why it was stopped and whether its step is repeatable.

A stop that we asked for is a recorded end and clears the crash count; a death is not, and does not.
"""

from enum import StrEnum

from attrs import evolve, frozen

from resumed.schemas.job import Item, ItemState, StopReason

from . import breaker
from .backoff import backoff
from .draft import Draft


class EndKind(StrEnum):
    """Where a unit goes when its try ended without an answer."""

    AGAIN = "again"
    """Pending, at once; uses up no try."""
    HELD = "held"
    """Its outcome is unknown: a person decides."""
    FAILURE = "failure"
    """Counts as a failed try."""
    SKIPPED = "skipped"


@frozen
class _End:
    kind: EndKind
    code: str


DIED = "died"
"""The row for a death nobody asked for: of the program's worker, the keeper, the daemon or the machine."""

SILENCE = "silence"
"""The row for a try that its own worker ended, since its program printed nothing for too long."""

ENDS: dict[tuple[str, bool], _End] = {
    # (why it ended, the step is repeatable) -> what becomes of the unit
    (DIED, True): _End(EndKind.AGAIN, "interrupted"),
    (DIED, False): _End(EndKind.HELD, "interrupted"),
    (StopReason.PAUSE, True): _End(EndKind.AGAIN, "interrupted"),
    (StopReason.PAUSE, False): _End(EndKind.HELD, "interrupted"),
    (StopReason.SHUTDOWN, True): _End(EndKind.AGAIN, "interrupted"),
    (StopReason.SHUTDOWN, False): _End(EndKind.HELD, "interrupted"),
    (StopReason.HOLD, True): _End(EndKind.AGAIN, "interrupted"),
    (StopReason.HOLD, False): _End(EndKind.HELD, "interrupted"),
    (StopReason.CANCEL, True): _End(EndKind.AGAIN, "canceled"),
    (StopReason.CANCEL, False): _End(EndKind.HELD, "canceled"),
    (StopReason.EXPIRE, True): _End(EndKind.AGAIN, "expired"),
    (StopReason.EXPIRE, False): _End(EndKind.HELD, "expired"),
    (StopReason.TIMEOUT, True): _End(EndKind.FAILURE, "timeout"),
    (StopReason.TIMEOUT, False): _End(EndKind.HELD, "timeout"),
    (SILENCE, True): _End(EndKind.FAILURE, "silence"),
    (SILENCE, False): _End(EndKind.HELD, "silence"),
    (StopReason.SKIP, True): _End(EndKind.SKIPPED, "skipped"),
    (StopReason.SKIP, False): _End(EndKind.SKIPPED, "skipped"),
}

_SENTENCES = {
    "interrupted": "interrupted while it ran",
    "canceled": "stopped by a cancel while it ran",
    "expired": "stopped by the deadline while it ran",
    "timeout": "ran longer than its time limit and was stopped",
    "skipped": "left out by a person while it ran",
}


def end_without_answer(
    draft: Draft, unit: Item, stop: StopReason | None, *, died: bool, began: bool = True, reason: str = ""
) -> str:
    """Close the unit's try that gave no answer; returns the choice made, for the decision row.

    A try that never began is as good as one of a repeatable step, and its start was no crash; so is one that
    only compared sources.
    """
    step = draft.step_of(unit)
    row = draft.tries.pop(unit.id, None)
    again = step.repeatable or not began or (row is not None and row.compares)
    end = ENDS[DIED if stop is None else stop, again]
    said = _said(end.code, stop, reason)
    crashes = (unit.crashes if died else 0) if began else max(0, unit.crashes - 1)
    unit = evolve(unit, ended=draft.now, crashes=crashes)
    if end.kind is EndKind.FAILURE:
        return count_failure(draft, unit, end.code, said)
    if end.kind is EndKind.SKIPPED:
        draft.put(evolve(unit, state=ItemState.SKIPPED, code=end.code, reason=said))
        return "skipped"
    if end.kind is EndKind.HELD:
        hold_unit(draft, unit, end.code, f"{said}; its outcome is unknown, and its step is not repeatable")
        return "held"
    if crashes >= step.crashes:
        hold_unit(draft, unit, "crashes", f"{crashes} starts in a row ended without a recorded end; {said}")
        return "held"
    draft.put(evolve(unit, state=ItemState.PENDING, code=end.code, reason=said))
    return "again"


def cut_off(draft: Draft, unit: Item, code: str, reason: str) -> str:
    """Decide a try that its own worker ended before its time limit: like one that ran out of time."""
    if ENDS[SILENCE, draft.step_of(unit).repeatable].kind is EndKind.FAILURE:
        return count_failure(draft, unit, code, reason)
    hold_unit(draft, unit, code, f"{reason}; its outcome is unknown, and its step is not repeatable")
    return "held"


def _said(code: str, stop: StopReason | None, reason: str) -> str:
    """Why it ended: of a stop that we asked for, that comes first, however its worker then died."""
    if stop is None:
        return reason or _SENTENCES[code]
    return f"{_SENTENCES[code]}; {reason}" if reason else _SENTENCES[code]


def count_failure(draft: Draft, unit: Item, code: str, reason: str) -> str:
    """Count a failed try of the unit: another after a pause while the limit allows, else an item has failed
    and a job step is held."""
    step = draft.step_of(unit)
    left = breaker.failed(draft, unit, code, reason)
    if left is not None:
        # The wait before the next try is the job's own.
        unit = evolve(unit, state=ItemState.PENDING, failures=left, crashes=0, not_before=None)
        draft.put(evolve(unit, code=code, reason=reason))
        return "again"
    failures = unit.failures + 1
    unit = evolve(unit, failures=failures, crashes=0, code=code, reason=reason)
    if failures >= draft.tries_most(unit):
        if unit.id == "":
            # Not failed: a person may have it tried again. `failed` is the handler's own word.
            hold_unit(draft, unit, "step_failed", f"failed {failures} times; last: {reason}")
            return "held"
        draft.put(evolve(unit, state=ItemState.FAILED, not_before=None))
        return "failed"
    wait = backoff(step, failures, draft.job.id, unit.id)
    draft.put(evolve(unit, state=ItemState.PENDING, not_before=draft.ahead(wait)))
    return "again"


def hold_unit(draft: Draft, unit: Item, code: str, reason: str) -> None:
    """Hold an item, or the whole job when the unit is the job's own position."""
    code, reason = code or "held", reason or "no reason was given"
    draft.put(evolve(unit, state=ItemState.HELD, not_before=None, code=code, reason=reason))
    if unit.id == "":
        draft.set_hold(code, f"step {unit.at}: {reason}")
