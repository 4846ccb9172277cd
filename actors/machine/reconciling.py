"""How a job stands by its effects, in a word, a sentence and commands: derived, stored nowhere."""

import re

from resumed.schemas.instant import Instant
from resumed.schemas.job import Status
from resumed.schemas.ledger import Effect, EffectState
from resumed.schemas.snapshot import Snapshot

from . import errands
from .approvals import is_met
from .limits import Standing

_PLAIN = re.compile(r"[A-Za-z0-9@%+=:,./_-]+")
"""What a shell takes as it is: an item may be called anything."""
MOST = 3
"""Effects that a job's commands name."""


def _unknown(snapshot: Snapshot) -> list[Effect]:
    """What is being settled: in a job that a person has paused, not what waits for people alone."""
    rows = [row for row in snapshot.effects.live() if row.state is EffectState.UNKNOWN]
    return rows if snapshot.pause is None else [row for row in rows if not row.resend and row.hold is None]


def status(snapshot: Snapshot) -> Status | None:
    """What its effects say of a job that nothing else is said of: None while they say nothing."""
    if _unknown(snapshot):
        return Status.RECONCILING
    if snapshot.errands:
        return Status.RUNNING
    return None


def since(snapshot: Snapshot) -> Instant | None:
    """Since when the first of them is unknown; None when none is."""
    moments = [row.since for row in _unknown(snapshot) if row.since is not None]
    return min(moments, key=lambda at: at.wall) if moments else None


def why(snapshot: Snapshot) -> str:
    """What is being settled, or is under way; empty when nothing is."""
    rows = _unknown(snapshot)
    if rows:
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        return (
            f"nobody can tell yet whether {rows[0].id} landed{more}: {rows[0].reason or 'it is asked about'}"
        )
    for name, row in snapshot.errands.items():
        target = snapshot.effects[name].target
        return f"{name}: {row.kind.replace('_', ' ')} at {target}"
    return ""


def waits(snapshot: Snapshot) -> str:
    """What it has asked for that was not let go yet; empty when there is nothing."""
    rows = [snapshot.effects[name] for name in sorted(snapshot.effects.unsettled)]
    rows = [row for row in rows if row.state is EffectState.PROPOSED]
    asked = [row for row in rows if not is_met(row)]
    if asked:
        more = f" (and {len(asked) - 1} more)" if len(asked) > 1 else ""
        return f"waiting for somebody to allow {asked[0].id}{more}"
    if rows:
        said = f": {rows[0].reason}" if rows[0].reason else ""
        return f"{rows[0].id} waits to be let go{said}"
    return ""


def resumable(standing: Standing) -> list[Effect]:
    """What is held and has surely not left, or has settled: a person may let it be tried again, or may take
    note of it, by letting the job go on."""
    rows = [standing.effects[name] for name in sorted(standing.effects.held)]
    return [row for row in rows if row.state is not EffectState.UNKNOWN and not row.suspect]


def commands(snapshot: Snapshot) -> tuple[str, ...]:
    """How a person says what became of the effects that need one."""
    job = snapshot.job.id
    rows = [snapshot.effects[name] for name in sorted(snapshot.effects.held)]
    found: list[str] = []
    for row in [each for each in rows if errands.wants_word(each)][:MOST]:
        found += settling(job, row)
    return tuple(found)


def settling(job: str, effect: Effect) -> tuple[str, ...]:
    """What a person can say of it."""
    name = effect.id if _PLAIN.fullmatch(effect.id) else "'" + effect.id.replace("'", "'\"'\"'") + "'"
    said = f"resumectl settle {job} {name}"
    landed = f"{said} --landed REF --reason .."
    if effect.state is EffectState.DISPATCHING:
        return (landed,)  # while it is being sent nobody can say that it never arrives
    return (landed, f"{said} --absent --reason ..")
