"""The inbox: what people are asked, over all open jobs; it shows and keeps texts, and decides nothing."""

from pathlib import Path

from attrs import evolve

from resumed.schemas import codec
from resumed.schemas.askviews import AskKind, AskRow, AskView, BodyView
from resumed.schemas.instant import moment
from resumed.schemas.job import Artifact, Provenance
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot
from resumed.store import artifacts

from . import asked, outputs
from .machine import asks
from .sight import Sight, Whose
from .supervisor import Supervisor

MOST_SHOWN = 64 * 1024
"""Bytes of a draft, or of what a call sends, that are shown; `resumectl output` has all of them."""


def rows(supervisor: Supervisor, sight: Sight) -> list[tuple[AskRow, Whose]]:
    """All rows of the jobs in sight. Of a job that cannot be read nothing is known."""
    now = supervisor.clock.now()
    found: list[tuple[AskRow, Whose]] = []
    for entry in list(supervisor.entries.values()):
        snapshot = entry.snapshot
        there = entry.asks if snapshot is None else supervisor.witness.asks(snapshot, now)
        if not there:
            continue
        row = supervisor.row(entry)
        whose = Whose("" if row is None else row.workflow, entry.uid)
        if sight.everything or sight.sees(whose):
            found += [(one, whose) for one in there]
    return found


def whole(snapshot: Snapshot, folder: Path, name: str, rows: list[AskRow]) -> AskView | Refusal:
    """One of the things that a job asks (`rows`), with the texts that lie in files; DamagedError when one is
    missing."""
    if not name and len(rows) == 1:
        name = rows[0].subject
    found = asks.resolve(snapshot, "show", name, frozenset(AskKind))
    if isinstance(found, Refusal):
        return found
    row = next((one for one in rows if (one.kind, one.subject) == (found.kind, found.subject)), None)
    if row is None:
        reason = f"cannot show {found.subject or found.id} of {snapshot.job.id}: it is asked no more"
        reason += _became(snapshot, found)
        return Refusal(code="no_such_ask", reason=reason, commands=(f"resumectl history {snapshot.job.id}",))
    view = asked.view(snapshot, row)
    effect, review = snapshot.effects.get(row.subject), snapshot.reviews.get(row.subject)
    if row.kind is AskKind.REVIEW and review is not None:
        shown = "" if review.shown is None else text_of(folder, review.shown)
        view = evolve(view, text=text_of(folder, review.draft), shown=shown)
    elif effect is not None:
        bodies = tuple(
            BodyView(name=body.name, sha256=body.sha256, size=body.size, text=text_of(folder, body))
            for body in effect.bodies
        )
        shown = "" if effect.shown is None else text_of(folder, effect.shown)
        view = evolve(view, bodies=bodies, shown=shown)
    return evolve(view, digest=codec.digest(codec.encode(evolve(view, digest=""))))


def _became(snapshot: Snapshot, found: asks.Asked) -> str:
    """Who decided last, and how a call stands, for whoever comes too late."""
    rows = [row for row in snapshot.approvals if row.effect == found.subject and row.revoked is None]
    said = f"; {asked.past(rows[-1])} by {rows[-1].reviewer} at {moment(rows[-1].given.wall)}" if rows else ""
    effect = snapshot.effects.get(found.subject) if found.kind in (AskKind.APPROVE, AskKind.SETTLE) else None
    if effect is None:
        return said
    return f"{said}; it is {effect.state}" + (f" as {effect.reference}" if effect.reference else "")


def text_of(folder: Path, artifact: Artifact) -> str:
    """The beginning of an artifact as text; empty where its bytes are none."""
    piece = outputs.piece(folder, artifact, 0, MOST_SHOWN)
    raw = piece.content
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        # A letter may be cut where the piece ends.
        whole_letters = error.start > len(raw) - 4 and len(raw) < artifact.size
        return raw[: error.start].decode() if whole_letters else ""


def keep(snapshot: Snapshot, folder: Path, name: str, text: str) -> Artifact | Refusal:
    """The edited text as the draft's next revision. A crash here leaves an artifact that nothing names."""
    found = asks.resolve(snapshot, "edit", name, frozenset({AskKind.REVIEW}))
    if isinstance(found, Refusal):
        return found
    review = snapshot.reviews.get(found.subject)
    raw, digest = text.encode(), codec.digest(text.encode())
    inline = len(raw) <= outputs.INLINE
    if review is None:
        # Decided long since: only whether it is the same text matters.
        return Artifact(name="", sha256=digest, size=len(raw))
    if not inline:
        artifacts.put(folder, raw)
    made = review.draft.provenance or Provenance(job=snapshot.job.id, item=review.unit, step=review.step)
    return Artifact(
        name=review.draft.name,
        sha256=digest,
        size=len(raw),
        revision=review.draft.revision + 1,
        text=text if inline else None,
        provenance=made,
        access_policy=review.draft.access_policy,
    )
