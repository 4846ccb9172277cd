"""Applying committed changes to a snapshot: plain rows in, plain rows out, the same live and in recovery.

Never decides anything: a newer release must read old lines as they were meant when they were written.
"""

from operator import attrgetter
from typing import Any

from resumed.schemas import receipt
from resumed.schemas.instant import Instant
from resumed.schemas.records import replaced
from resumed.schemas.snapshot import Changes, Entry, Line, Snapshot

SCALARS = (
    *("position", "next", "each", "epoch", "attempt", "pause", "cancel", "expiry", "hold", "outcome"),
    *("budget", "used", "breaker", "clocks", "waits", "sources", "questions"),
)
_scalars = attrgetter(*SCALARS)
CLEARABLE = frozenset({"each", "attempt", "pause", "cancel", "expiry", "hold", "breaker"})


def apply_changes(snapshot: Snapshot, changes: Changes) -> dict[str, Any]:
    """The fields of `snapshot` that `changes` gives another value."""
    fields: dict[str, Any] = {name: None for name in changes.cleared if name in CLEARABLE}
    named = zip(SCALARS, _scalars(changes), strict=True)
    fields |= {name: value for name, value in named if value is not None}
    if changes.items:
        fields["items"] = snapshot.items.put(changes.items)
    if changes.state:
        fields["state"] = {**snapshot.state, **changes.state}
    if changes.receipt is not None:
        kept = {name: one for name, one in snapshot.receipts.items() if name not in changes.forgotten}
        kept[receipt.key(changes.receipt.uid, changes.receipt.request)] = changes.receipt
        fields["receipts"] = kept
    if changes.tries or changes.ended:
        tries = {unit: row for unit, row in snapshot.tries.items() if unit not in changes.ended}
        for row in changes.tries:
            tries[row.item] = row
        fields["tries"] = tries
    if changes.publications or changes.published:
        left = {unit: row for unit, row in snapshot.publications.items() if unit not in changes.published}
        fields["publications"] = left | {row.unit: row for row in changes.publications}
    _apply_ledger(snapshot, changes, fields)
    return fields


def _apply_ledger(snapshot: Snapshot, changes: Changes, fields: dict[str, Any]) -> None:
    """What a change says of effects, and of what people are asked."""
    if changes.effects:
        fields["effects"] = snapshot.effects.put(changes.effects)
    if changes.approvals:
        kept = {row.id: row for row in snapshot.approvals} | {row.id: row for row in changes.approvals}
        fields["approvals"] = tuple(kept.values())
    if changes.errands or changes.returned:
        errands = {name: row for name, row in snapshot.errands.items() if name not in changes.returned}
        fields["errands"] = errands | {row.effect: row for row in changes.errands}
    if changes.performances or changes.performed:
        left = {unit: row for unit, row in snapshot.performances.items() if unit not in changes.performed}
        fields["performances"] = left | {row.unit: row for row in changes.performances}
    if changes.reviews or changes.reviewed:
        open_ = {unit: row for unit, row in snapshot.reviews.items() if unit not in changes.reviewed}
        fields["reviews"] = open_ | {row.unit: row for row in changes.reviews}


def apply(snapshot: Snapshot, line: Line) -> Snapshot:
    """The snapshot after `line`; it shares storage with the one before (see `ItemTable.settle`)."""
    return after(snapshot, line.entries, line.sequence, line.at)


def after(snapshot: Snapshot, entries: tuple[Entry, ...], sequence: int, at: Instant) -> Snapshot:
    """The snapshot after these entries of line `sequence`, written at `at`."""
    fields: dict[str, Any] = {}
    for entry in entries:
        fields = apply_changes(snapshot, entry.changes)
        if len(entries) > 1:
            snapshot = replaced(snapshot, **fields)
            fields = {}
    newest = at if at.wall >= snapshot.newest.wall else snapshot.newest
    if entries:
        fields["last_transition"] = entries[-1].transition
    return replaced(snapshot, sequence=sequence, newest=newest, **fields)
