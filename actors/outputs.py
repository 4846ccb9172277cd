"""Making offered bytes durable before any line names them; what an offer says of its bytes is checked."""

import base64
import binascii
from pathlib import Path

from attrs import evolve, frozen

from resumed.schemas import codec, decisions, events
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Artifact, Provenance
from resumed.schemas.ledger import ERRAND
from resumed.store import artifacts

INLINE = 16 * 1024
"""Bytes of an output, or of a draft, that travel in the line; larger ones are files."""


@frozen
class Piece:
    """Some bytes of an accepted output, from `start` on; what the whole is by its record."""

    start: int
    content: bytes
    size: int
    sha256: str


def offers_of(event: events.Returned) -> tuple[decisions.Offer, ...]:
    """All bytes that come with an answer: its output, and what `decisions.offers` names."""
    decided = event.answer.decided
    output: decisions.Offer | None = getattr(decided, "output", None)
    rest = decisions.offers(decided)
    return rest if output is None else (output, *rest)


def is_to_keep(event: events.Returned) -> bool:
    """True while bytes come with it that are not durable yet."""
    decided = event.answer.decided
    if event.output is None and getattr(decided, "output", None) is not None:
        return True
    return not event.kept and bool(decisions.offers(decided))


def keep(folder: Path, job: str, event: events.Returned) -> events.Returned | events.Raised:
    """The answer with its bytes as durable artifacts; a faulty offer is the handler's error.

    A late answer is evidence, no more: nothing is kept of what it offers, and its faults are nobody's.
    StoreError when the disk refuses. A crash here leaves an artifact that nothing names.
    """
    offers = offers_of(event)
    if not offers or event.late:
        return event
    # A draft may become an output; what belongs to an effect is named by its digest alone.
    most = INLINE if isinstance(event.answer.decided, decisions.Reviewing) else 0
    item = "" if event.unit.startswith(ERRAND) else event.unit
    made = Provenance(job=job, item=item, attempt=event.epoch)
    output: decisions.Offer | None = getattr(event.answer.decided, "output", None)
    try:
        first = None if output is None else evolve(_keep(folder, output), provenance=made)
        rest = decisions.offers(event.answer.decided)
        kept = tuple(evolve(_keep(folder, offer, most), provenance=made) for offer in rest)
    except FaultyInputError as error:
        return events.Raised(unit=event.unit, epoch=event.epoch, number=event.number, error=str(error))
    return evolve(event, output=first, kept=kept)


def _keep(folder: Path, offer: decisions.Offer, most: int = INLINE) -> Artifact:
    """The artifact of an offer: in the line up to `most` bytes, else a file."""
    what = f"cannot keep output {offer.name!r}"
    if offer.reference:
        if offer.publish is None:
            raise FaultyInputError(what, ("by reference, and not published",))
        return Artifact(name=offer.name, sha256=offer.sha256, size=offer.size, path=offer.publish.destination)
    if offer.path is not None:
        artifacts.adopt(folder, Path(offer.path), offer.sha256, offer.size)
        return Artifact(name=offer.name, sha256=offer.sha256, size=offer.size)
    if offer.base64 is not None:
        try:
            raw = base64.b64decode(offer.base64, validate=True)
        except (binascii.Error, ValueError) as error:
            raise FaultyInputError(what, (f"not base64: {error}",)) from None
    elif offer.text is not None:
        raw = offer.text.encode()
    else:
        raise FaultyInputError(what, ("expected text, base64 or a path, got none",))
    if len(raw) != offer.size or codec.digest(raw) != offer.sha256:
        raise FaultyInputError(what, ("its bytes do not have the size and sha256 it was offered with",))
    if len(raw) > most:
        artifacts.put(folder, raw)
        return Artifact(name=offer.name, sha256=offer.sha256, size=offer.size)
    return Artifact(
        name=offer.name, sha256=offer.sha256, size=offer.size, text=offer.text, base64=offer.base64
    )


def piece(folder: Path, artifact: Artifact, offset: int, most: int) -> Piece:
    """Up to `most` bytes of an accepted output; of a file no more is read than those.

    Nothing is hashed: whoever has all pieces can hold them against the digest. DamagedError when the file is
    missing or shorter than its record, UnreadableError when the disk refuses.
    """
    start = min(max(0, offset), artifact.size)
    if artifact.base64 is not None:
        content = base64.b64decode(artifact.base64)[start : start + most]
    elif artifact.text is not None:
        content = artifact.text.encode()[start : start + most]
    elif artifact.path:
        known = (artifact.device, artifact.inode)
        content = artifacts.read_piece_of(Path(artifact.path), start, min(most, artifact.size - start), known)
    else:
        content = artifacts.read_piece(folder, artifact.sha256, start, min(most, artifact.size - start))
    return Piece(start, content, artifact.size, artifact.sha256)
