"""A receipt: the first answer to a request that carried an id, kept with the job and given again."""

import re

from attrs import frozen

from .instant import Instant

REQUEST = re.compile(r"[!-~]{1,128}\Z")
"""What a request id may be: up to 128 visible ASCII characters, drawn by whoever asks."""
KEPT = 256
"""Receipts that a job keeps, the newest of them."""
KEPT_SECONDS = 7 * 86_400.0
"""How long a receipt is kept."""


@frozen(kw_only=True)
class Receipt:
    """What a user's request under one id was answered first; its row is shown as it is when asked again."""

    uid: int
    request: str
    content: str
    """sha256 of what was asked: another content under the same id is a conflict."""
    at: Instant
    said: str
    attempt: int = 0
    repeated: bool = False


def key(uid: int, request: str) -> str:
    """What a receipt is found by; no id holds a space."""
    return f"{uid} {request}"
