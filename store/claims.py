"""Claims: names that submissions take, a request id or a business key; each says which job it stands for.

A claim is durable before its job is admitted, so no job is without its names. A crash between the two leaves
a claim whose job never came to be: whoever asks next drops it. Else only the request of a job that is removed
for good is ever dropped.
"""

from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.errors import DamagedError, FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import Admission

from . import names
from .layout import Layout

REQUEST = "request"
KEY = "key"


@frozen(kw_only=True)
class Claim:
    """What stands under one name of one user."""

    kind: str
    uid: int
    value: str
    job: str
    content: str
    """For a request the digest of what it covers, for a key that of the file that brought it."""
    at: Instant
    found: bool = False
    """The job was there before: the request was answered so."""


def of(admission: Admission) -> tuple[Claim, ...]:
    """The claims of a job that was admitted, as its `job.json` tells them."""
    named = ((REQUEST, admission.request, admission.content), (KEY, admission.key, admission.sha256))
    return tuple(
        Claim(
            kind=kind,
            uid=admission.uid,
            value=value,
            job=admission.id,
            content=content,
            at=admission.admitted,
        )
        for kind, value, content in named
        if value
    )


def take(layout: Layout, claim: Claim) -> Claim:
    """Make a claim durable; returns the one in force, which is that of whoever came first."""
    raw = names.keep(layout.names, claim.kind, claim.uid, claim.value, codec.encode(claim))
    return _read(raw, claim.kind, claim.value)


def bearer(layout: Layout, kind: str, uid: int, value: str) -> Claim | None:
    """The claim under a name, None when there is none; DamagedError when its bytes cannot be trusted."""
    raw = names.read(layout.names, kind, uid, value)
    return None if raw is None else _read(raw, kind, value)


def drop(layout: Layout, claim: Claim) -> None:
    """Give up a claim whose job never came to be, or is gone for good with all that it was asked."""
    names.drop(layout.names, claim.kind, claim.uid, claim.value)


def _read(raw: bytes, kind: str, value: str) -> Claim:
    try:
        return codec.decode(raw, Claim, f"cannot tell which job the {kind} {value} stands for")
    except FaultyInputError as error:
        raise DamagedError(str(error)) from None
