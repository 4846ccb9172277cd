"""Limits of a job: what it may use in all, what it has used, and when it must ask before it uses more.

Nothing new starts once a limit is reached; what runs may finish, so a limit is exceeded by no more than what
was open. The deadline is not asked about: it ends the job (`course`).
"""

import re
from decimal import Decimal
from typing import Any

from attrs import evolve

from resumed.schemas.durations import exact, spell
from resumed.schemas.instant import Instant, later, seconds_between
from resumed.schemas.job import Budget, ItemState
from resumed.schemas.limits import exceeds
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.workflowsteps import RESERVED

from . import reckoning
from .draft import Draft

Standing = Snapshot | Draft

OPTIONS = {
    # field of Budget -> the key in files, and the option of `resumectl extend`
    "usd": "usd",
    "tokens": "tokens",
    "turns": "turns",
    "active_seconds": "active_time",
}
BUDGET = "budget"
"""The code of a hold that only says that a limit is reached."""


_AMOUNT = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,6})?", re.ASCII)


# ---- what is used -----------------------------------------------------------------------------------------


def fault_of(spent: Budget | None) -> str:
    """Why what a try reports cannot be added up; empty when it can."""
    if spent is None or spent.usd is None or _AMOUNT.fullmatch(spent.usd):
        return ""
    return f"it reports an amount that is none: {spent.usd[:40]!r}"


def spend(draft: Draft, spent: Budget) -> None:
    """Add what a try reports (fields left at None: nothing) to what the job has used; it never falls."""
    used = draft.used
    draft.used = evolve(
        used,
        attempts=_sum(used.attempts, spent.attempts),
        turns=_sum(used.turns, spent.turns),
        tool_calls=_sum(used.tool_calls, spent.tool_calls),
        tokens=_sum(used.tokens, spent.tokens),
        usd=_money(used.usd, spent.usd),
        active_seconds=_seconds(used.active_seconds, spent.active_seconds),
    )


def _sum(one: int | None, more: int | None) -> int | None:
    return one if more is None else (one or 0) + max(0, more)


def _seconds(one: float | None, more: float | None) -> float | None:
    return one if more is None else round((one or 0.0) + max(0.0, more), 6)


def _money(one: str | None, more: str | None) -> str | None:
    """Decimal text, exact to the millionth; a negative amount counts as none."""
    return one if more is None else add_money(one, more)


def add_money(one: str | None, more: str) -> str:
    """The sum of two amounts; a negative one counts as none."""
    return spell_money(Decimal(one or "0") + max(Decimal(0), Decimal(more)))


def spell_money(amount: Decimal) -> str:
    """The shortest text of an amount, to the millionth: `7.41`, `0.000001`, `12`."""
    text = f"{amount:.6f}".rstrip("0").rstrip(".")
    return text or "0"


def active(standing: Standing, now: Instant) -> float:
    """Seconds in which attempts of the job were open, the present one up to now."""
    used = standing.used.active_seconds or 0.0
    if standing.attempt is None:
        return used
    return used + seconds_between(standing.attempt.opened, reckoning.trusted(standing, now))


def close_attempt(draft: Draft, end: Instant) -> None:
    """The attempt is over; how long it was open is added up for good."""
    if draft.attempt is not None:
        spend(draft, Budget(active_seconds=seconds_between(draft.attempt.opened, end)))
        draft.attempt = None


def last_known(draft: Draft) -> Instant:
    """Until when an attempt that was found open is taken to have run: now, or as long as its tries could.

    Nobody saw its end: what may have been used counts, and not the time that the daemon was away.
    """
    ends = [row.until for row in draft.tries.values()] + [row.until for row in draft.errands.values()]
    if not ends:
        return draft.newest
    end = max(ends, key=lambda at: at.wall)
    return end if seconds_between(end, draft.then) > 0 else draft.then


# ---- what is reached --------------------------------------------------------------------------------------


def reached(standing: Standing, now: Instant) -> tuple[str, ...]:
    """The limits that the job has reached, by the names of their fields."""
    most, used = standing.budget, standing.used
    found = [
        name
        for name in ("usd", "tokens", "turns")
        if (cap := getattr(most, name)) is not None
        and (spent := getattr(used, name)) is not None
        and not exceeds(name, cap, spent)
    ]
    if most.active_seconds is not None and active(standing, now) >= most.active_seconds:
        found.append("active_seconds")
    return tuple(found)


def deadline(standing: Standing) -> Instant | None:
    """When the job is ended, as its file said or as it was put off since; None when it has no deadline."""
    return standing.budget.deadline or standing.job.deadline


def next_reached(standing: Standing, now: Instant) -> Instant | None:
    """When the open attempt uses up the job's active time; None when nothing would come of that."""
    most = standing.budget.active_seconds
    if most is None or standing.attempt is None or _only_finishes(standing):
        return None
    return later(reckoning.trusted(standing, now), max(0.0, most - active(standing, now)))


def settle(draft: Draft) -> bool:
    """A job with work left that has reached a limit is held, unless it is held already or only finishes; True
    when it was."""
    if draft.hold is not None or draft.stopping() or draft.outcome is not None or _only_finishes(draft):
        return False
    found = reached(draft, draft.now)
    if found:
        draft.set_hold(BUDGET, "; ".join(said(draft, name, draft.now) for name in found))
    return bool(found)


def _only_finishes(standing: Standing) -> bool:
    """True where nothing is left but the end: the last step of a workflow of programs uses nothing."""
    position, contract = standing.position, standing.contract
    if position.state in (ItemState.DONE, ItemState.FAILED):
        return True
    programs = bool(contract.definition and not contract.entry)
    return programs and standing.each is None and position.at == RESERVED[1]


def said(standing: Standing, name: str, now: Instant) -> str:
    """A limit that is reached, as a sentence."""
    cap = getattr(standing.budget, name)
    if name == "active_seconds":
        return f"it has been at work for {spell(active(standing, now))} of {spell(cap)}"
    return f"it has used {getattr(standing.used, name)} of {cap} {name}"


# ---- what may be typed ------------------------------------------------------------------------------------


def commands(standing: Standing, now: Instant) -> tuple[str, ...]:
    """The commands that raise the limits which hold a job, as far as its workflow allows by what it keeps."""
    allowed = standing.contract.limits
    found: list[str] = []
    for field in reached(standing, now):
        key, most = OPTIONS[field], getattr(standing.budget, field)
        top = getattr(allowed, key)
        value = _more(standing.budget, standing.used, field) if top is None else top
        if exceeds(key, value, most):
            found.append(f"--{key.replace('_', '-')} {text(key, value)}")
    job = standing.job.id
    return (f"resumectl extend {job} {' '.join(found)}",) if found else ()


def _more(budget: Budget, used: Budget, field: str) -> Any:
    """As much again as it might use, on top of what it has used: for limits that nothing stands above."""
    most, spent = getattr(budget, field), getattr(used, field)
    if field == "usd":
        return add_money(spent, most)
    if field == "active_seconds":
        return float(round(spent or 0.0) // 3600 * 3600 + 3600 + most)
    return (spent or 0) + most


def text(key: str, value: Any) -> str:
    """A limit's value as a person types it."""
    return exact(value) if key == "active_time" else str(value)
