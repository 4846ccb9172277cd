"""The breaker: many failures in a row with one reason are not the items' fault, so the job waits, then asks.

In a row means: with nothing between them that ended another way. Rate-limit waits and interruptions are
neither, and change nothing here. When it opens, those tries are taken back: they use up no item's limit. The
job waits, then one try goes ahead alone; as long as that fails with the same reason the wait is doubled, and
after `MOST_WAITS` of them the job is held. Anything that ends another way closes it.
"""

import re

from attrs import evolve

from resumed.schemas.durations import MOST
from resumed.schemas.job import Breaker, Item, ItemState
from resumed.schemas.ledger import Wait, WaitKind
from resumed.schemas.snapshot import Snapshot

from .draft import Draft

BREAKER = "breaker"
"""The code of the hold, and the id of the wait before it."""
MOST_WAITS = 3
MOST_KEY = 300

_NUMBER = re.compile(r"\d+")


def one_reason(code: str, reason: str, unit: Item) -> str:
    """What two failures must share to have one reason: the code and the words, but for numbers and the name
    and source of the item that failed."""
    source = unit.source.path if unit.source is not None else ""
    for name in (source, source.rpartition("/")[2], unit.id):
        if name:
            reason = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "*", reason)
    return f"{code} {_NUMBER.sub('#', reason)}"[:MOST_KEY]


def is_waiting(draft: Draft) -> bool:
    """True while the job waits because of its breaker."""
    return any(row.kind is WaitKind.BREAKER for row in draft.waits)


def failed(draft: Draft, unit: Item, code: str, reason: str) -> int | None:
    """A try of the unit has failed. While the breaker is open, as it may be by this very failure, that does
    not count: then how many failures of the unit count now; else None."""
    most = draft.contract.limits.failures_in_a_row
    if most == 0:
        return None
    key, before = one_reason(code, reason, unit), draft.breaker
    if before is not None and is_waiting(draft):
        return unit.failures if key == before.key else None  # one that ran on when it opened
    if before is None or before.key != key:
        before = Breaker(key=key, reason=reason, waits=0)
    now = evolve(before, reason=reason, units=(*before.units, unit.id))
    draft.breaker = now
    if len(now.units) < (most if now.waits == 0 else 1):
        return None
    _open(draft, now, unit)
    return max(0, unit.failures - now.units.count(unit.id) + 1)


def _open(draft: Draft, breaker: Breaker, last: Item) -> None:
    for name in dict.fromkeys(breaker.units):
        unit = draft.unit(name)
        if unit is not None and name != last.id:
            _take_back(draft, unit, breaker.units.count(name))
    draft.breaker = evolve(breaker, units=(), waits=breaker.waits + 1)
    if breaker.waits >= MOST_WAITS:
        most = draft.contract.limits.failures_in_a_row
        draft.set_hold(
            BREAKER,
            f"{most} tries in a row failed with one reason, and one more after each of {MOST_WAITS} waits: "
            f"{breaker.reason}",
        )
        return
    seconds = min(draft.step_of(last).backoff_max * 2**breaker.waits, MOST)
    row = Wait(
        id=BREAKER,
        kind=WaitKind.BREAKER,
        deadline=draft.ahead(seconds),
        owner=draft.job.owner,
    )
    draft.waits = (*draft.waits, row)


def _take_back(draft: Draft, unit: Item, count: int) -> None:
    """The failures of a unit do not count: it is tried again when the wait is over, also one that had failed
    for good by them. What a person has done with it since stays."""
    if unit.state is ItemState.FAILED:
        unit = evolve(unit, state=ItemState.PENDING)
    elif unit.state not in (ItemState.PENDING, ItemState.IN_PROGRESS):
        return
    draft.put(evolve(unit, failures=max(0, unit.failures - count), not_before=None))


def close(draft: Draft) -> None:
    """Something ended another way, or a person says to go on: no failures in a row are known any more."""
    draft.breaker = None
    if is_waiting(draft):
        draft.waits = tuple(row for row in draft.waits if row.kind is not WaitKind.BREAKER)


def alone(standing: Snapshot | Draft) -> bool:
    """True while one try goes ahead alone, to see whether the reason is gone."""
    return standing.breaker is not None and standing.breaker.waits > 0
