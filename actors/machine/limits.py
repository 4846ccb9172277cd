"""Limits of a job: what it may use in all, what it has used, and when it must ask before it uses more."""

import re
from decimal import Decimal

from attrs import evolve

from resumed.schemas.job import Budget

from .draft import Draft

_AMOUNT = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,6})?", re.ASCII)


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
    return one if more is None else (one or 0.0) + max(0.0, more)


def _money(one: str | None, more: str | None) -> str | None:
    """Decimal text, exact to the millionth; a negative amount counts as none."""
    if more is None:
        return one
    return spell_money(Decimal(one or "0") + max(Decimal(0), Decimal(more)))


def spell_money(amount: Decimal) -> str:
    """The shortest text of an amount, to the millionth: `7.41`, `0.000001`, `12`."""
    text = f"{amount:.6f}".rstrip("0").rstrip(".")
    return text or "0"
