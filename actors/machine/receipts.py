"""Receipts in the law: which request was answered before, what it was answered, and what is forgotten.

A refusal leaves no receipt: it changed nothing, and may be asked again.
"""

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from resumed.schemas import codec, events
from resumed.schemas.instant import Instant, later, reached
from resumed.schemas.job import Person
from resumed.schemas.receipt import KEPT, KEPT_SECONDS, Receipt, key
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot

from . import reckoning
from .verdict import Unchanged

_NOBODY = Person(uid=0, name="", via="")


def content(event: events.Request) -> str:
    """The sha256 of what is asked, whoever asks it and under which id."""
    bare: Any = evolve(event, by=_NOBODY, request="")
    # What was looked up for the request; nobody asked it.
    if isinstance(bare, events.Extend):
        bare = evolve(bare, allowed=None)
    elif getattr(bare, "facts", None) is not None:
        bare = evolve(bare, facts=None)
    return codec.digest(type(event).__name__.encode() + b" " + codec.encode(bare))


def known(snapshot: Snapshot, event: Any, now: Instant) -> Unchanged | Refusal | None:
    """The first answer to the same request, or the conflict when its id was given to another; else None."""
    request = getattr(event, "request", "")
    receipt = snapshot.receipts.get(key(event.by.uid, request)) if request else None
    if receipt is None or _is_over(receipt, reckoning.trusted(snapshot, now)):
        return None
    if receipt.content == content(event):
        return Unchanged(reason=receipt.said, receipt=receipt)
    return Refusal(
        code="request_conflict",
        reason=f"cannot do this with {snapshot.job.id}: request id {request} was given before, to another "
        f"request, which was answered: {receipt.said}",
        commands=(f"resumectl history {snapshot.job.id}",),
    )


def _is_over(receipt: Receipt, now: Instant) -> bool:
    return reached(later(receipt.at, KEPT_SECONDS), now)


def forgotten(snapshot: Snapshot, now: Instant) -> tuple[str, ...]:
    """Which receipts go when one more is kept: those whose time is over, and the oldest past the bound."""
    return tuple(_going(snapshot.receipts, reckoning.trusted(snapshot, now)))


def _going(receipts: dict[str, Receipt], now: Instant) -> Iterator[str]:
    staying = []
    for name, receipt in receipts.items():
        if _is_over(receipt, now):
            yield name
        else:
            staying.append(name)
    yield from staying[: max(0, len(staying) + 1 - KEPT)]
