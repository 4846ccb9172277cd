"""Receipts at work: the answer to a request goes into the entry that commits the request, or nowhere."""

from typing import Any

from attrs import evolve

from resumed.schemas.instant import Instant
from resumed.schemas.receipt import Receipt
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Changes, Decision, Entry, Snapshot

from . import views
from .machine import receipts
from .machine.apply import after
from .machine.verdict import Unchanged, Verdict

UNCHANGED = "unchanged"
"""The choice of a request that found the job as it wants it."""


def with_receipt(before: Snapshot, event: Any, verdict: Verdict, sequence: int, now: Instant) -> Verdict:
    """The verdict on a request with an id, as an entry of line `sequence` that keeps the answer.

    What finds the job as it wants it is kept as well: asked again later, it must not begin to change
    anything. A refusal is not kept, and nothing is written to a job that has ended.
    """
    request = getattr(event, "request", "")
    if not request or isinstance(verdict, Refusal) or before.outcome is not None:
        return verdict
    repeated = isinstance(verdict, Unchanged)
    if isinstance(verdict, Unchanged):
        if verdict.receipt is not None:
            return verdict
        entry = Entry(
            transition=type(event).__name__.lower(),
            decision=Decision(
                by=f"uid:{event.by.uid} {event.by.name}",
                rule=type(event).__name__.lower(),
                choice=UNCHANGED,
                reason=verdict.reason,
            ),
            changes=Changes(),
        )
        said = verdict.reason
    else:
        entry = verdict
    then = after(before, (entry,), sequence, now)
    if not repeated:
        said = views.said(then, entry.decision.choice)
    receipt = Receipt(
        uid=event.by.uid,
        request=request,
        content=receipts.content(event),
        at=now,
        said=said,
        attempt=views.attempt(then, now),
        repeated=repeated,
    )
    changes = evolve(entry.changes, receipt=receipt, forgotten=receipts.forgotten(before, now))
    return evolve(entry, changes=changes)
