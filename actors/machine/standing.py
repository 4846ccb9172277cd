"""The one word a job stands under, and what may be done about it: derived, stored nowhere."""

from resumed.schemas.instant import Instant
from resumed.schemas.job import Status
from resumed.schemas.snapshot import Snapshot

from .due import next_start, wanted


def status(snapshot: Snapshot, now: Instant) -> Status:
    """The status of a job. A job that winds down still runs until its last try is gone."""
    if snapshot.outcome is not None:
        return Status(snapshot.outcome.ending.value)
    if snapshot.hold is not None:
        return Status.HELD
    if snapshot.tries:
        return Status.RUNNING
    if snapshot.pause is not None:
        return Status.PAUSED
    if wanted(snapshot, now, 1):
        return Status.READY
    return Status.WAITING


def since(snapshot: Snapshot) -> Instant:
    """The recorded moment that explains the status best."""
    if snapshot.outcome is not None:
        return snapshot.outcome.at
    if snapshot.hold is not None:
        return snapshot.hold.since
    if snapshot.pause is not None and not snapshot.tries:
        return snapshot.pause.at
    if snapshot.attempt is not None:
        return snapshot.attempt.opened
    return snapshot.newest


def why(snapshot: Snapshot, now: Instant) -> str:
    """One sentence (without a full stop) of why the job stands as it does."""
    if snapshot.outcome is not None:
        return snapshot.outcome.reason or f"it is {snapshot.outcome.ending}"
    mark = snapshot.cancel or snapshot.expiry
    if mark is not None:
        return f"being ended by {mark.by}: {len(snapshot.tries)} running tries are stopped first"
    if snapshot.hold is not None:
        return snapshot.hold.reason
    if snapshot.pause is not None:
        running = len(snapshot.tries)
        rest = f"; {running} running tries may finish first" if running else ""
        return f"paused by {snapshot.pause.by}{rest}"
    if snapshot.tries:
        place = f"step {snapshot.position.at}" if snapshot.each is None else "its items"
        return f"{len(snapshot.tries)} running at {place}"
    if wanted(snapshot, now, 1):
        return "ready to start as soon as a worker is free"
    if next_start(snapshot, now) is not None:
        return "waiting to try again"
    return "waiting"


def commands(snapshot: Snapshot) -> tuple[str, ...]:
    """The commands that would change something now, complete enough to paste."""
    job = snapshot.job.id
    if snapshot.outcome is not None:
        return (f"resumectl show {job}", f"resumectl logs {job}")
    if snapshot.cancel is not None or snapshot.expiry is not None:
        return (f"resumectl watch {job}",)
    if snapshot.hold is not None:
        if snapshot.each is not None:
            return (
                f"resumectl retry {job}",
                f"resumectl skip {job}",
                f"resumectl logs {job} ITEM",
                f"resumectl cancel {job}",
            )
        return (f"resumectl resume {job}", f"resumectl cancel {job}")
    if snapshot.pause is not None:
        return (f"resumectl resume {job}", f"resumectl cancel {job}")
    return (f"resumectl pause {job}", f"resumectl cancel {job}")
