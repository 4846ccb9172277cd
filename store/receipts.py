"""Receipts of commands that no job can keep, a name each: what brings jobs back or removes them, a reload.

That of a job's leaving is there before anything is done: asked again after a crash, it is known what was
begun. What was refused is given up again, as nobody was told that it was done.
"""

from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.errors import DamagedError, FaultyInputError
from resumed.schemas.instant import Instant

from . import names
from .layout import Layout

KIND = "command"


@frozen(kw_only=True)
class HouseReceipt:
    """What a user's request id stands for that was given to a command about no open job."""

    kind: str = KIND
    uid: int
    value: str
    """The request id."""
    method: str
    content: str
    """sha256 of what was asked."""
    at: Instant
    job: str = ""
    """The whole id of the job that it is about."""
    since: int = 0
    """Of a restore: since when the job was set aside, as wall microseconds; 0 where it lay in its place."""
    said: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """What a reload answered, which is kept once it is done."""


def keep(layout: Layout, receipt: HouseReceipt) -> HouseReceipt:
    """Make a receipt durable; returns the one in force, which is that of whoever came first."""
    raw = names.keep(layout.names, KIND, receipt.uid, receipt.value, codec.encode(receipt))
    return _read(raw, receipt.value)


def find(layout: Layout, uid: int, request: str) -> HouseReceipt | None:
    """The receipt of a request id, None when there is none; DamagedError when it cannot be trusted."""
    raw = names.read(layout.names, KIND, uid, request)
    return None if raw is None else _read(raw, request)


def drop(layout: Layout, receipt: HouseReceipt) -> None:
    """Give up a receipt: of what was refused, or of so long ago that it means nothing any more."""
    names.drop(layout.names, KIND, receipt.uid, receipt.value)


def _read(raw: bytes, request: str) -> HouseReceipt:
    try:
        return codec.decode(raw, HouseReceipt, f"cannot tell what the request {request} was")
    except FaultyInputError as error:
        raise DamagedError(str(error)) from None
