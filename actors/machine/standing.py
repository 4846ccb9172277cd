"""The one word a job stands under, and what may be done about it: derived, stored nowhere."""

from resumed.schemas.instant import Instant
from resumed.schemas.job import ItemState, Status
from resumed.schemas.snapshot import Snapshot

from . import asks, errands, limits, reconciling, schedule
from .draft import NOT_GONE as NOT_GONE
from .due import next_placing, next_start, placings, wanted
from .requests import ITEM_HOLDS

MEANS: dict[Status, str] = {
    Status.READY: "It could start now, and waits for a free worker.",
    Status.RESUMING: "It is being examined after an interruption, before anything of it may start.",
    Status.RUNNING: "At least one try is open, or an output is on its way to its place, or an effect to its "
    "target; or they are being stopped.",
    Status.WAITING: "Nothing of it runs, and it goes on by itself: at an instant, after another job, or once "
    "a person has said what it asks; that is on record.",
    Status.RECONCILING: "Something may have reached another system, and is settled before anything else: its "
    "target is asked about it, now or at an instant that is on record.",
    Status.HELD: "The machine may not decide: its reason, its owner and the next commands are on record.",
    Status.PAUSED: "A person stopped it: nothing runs until a person lets it go on.",
    Status.COMPLETED: "Its last step said that it is finished. Final.",
    Status.FAILED: "A job step said that it cannot succeed. Final.",
    Status.CANCELED: "A person ended it, and everything that ran is gone. Final.",
    Status.EXPIRED: "Its deadline ended it, and everything that ran is gone. Final.",
    Status.QUARANTINED: "Its files do not hold, or not for this release: set aside as they are.",
}
"""One honest sentence for every status."""

MOST_OTHERS = 3
"""Other jobs that a job's commands name."""

GIVEN_BY_LAW = frozenset(Status) - {Status.QUARANTINED}
"""What `status` may answer; the other one is said of jobs without a snapshot."""


def status(snapshot: Snapshot, now: Instant) -> Status:
    """The status of a job. A job that winds down still runs until its last try is gone."""
    if snapshot.outcome is not None:
        return Status(snapshot.outcome.ending.value)
    at_work = bool(snapshot.tries) or bool(placings(snapshot, now))
    if at_work and _is_ending(snapshot):
        return Status.RUNNING
    if snapshot.hold is not None:
        return Status.HELD
    if snapshot.tries:
        return Status.RESUMING if _is_compared(snapshot) else Status.RUNNING
    if at_work:
        return Status.RUNNING
    if (snapshot.effects.unsettled or snapshot.errands) and (found := reconciling.status(snapshot)):
        return found
    if snapshot.pause is not None:
        return Status.PAUSED
    if wanted(snapshot, now, 1) or errands.wanted(snapshot, now, 1):
        return Status.READY
    return Status.WAITING


def _is_compared(snapshot: Snapshot) -> bool:
    return any(row.compares for row in snapshot.tries.values())


def _is_ending(snapshot: Snapshot) -> bool:
    return snapshot.cancel is not None or snapshot.expiry is not None


def needs_items(snapshot: Snapshot) -> bool:
    """True when the job is held only because items of it are failed or held."""
    return snapshot.each is not None and snapshot.hold is not None and snapshot.hold.code in ITEM_HOLDS


def since(snapshot: Snapshot) -> Instant:
    """The recorded moment that explains the status best."""
    if snapshot.outcome is not None:
        return snapshot.outcome.at
    if snapshot.hold is not None:
        return snapshot.hold.since
    if snapshot.effects.unsettled and not snapshot.tries and (at := reconciling.since(snapshot)) is not None:
        return at
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
    if mark is not None and snapshot.tries:
        return f"being ended by {mark.by}: {len(snapshot.tries)} running tries are stopped first"
    if mark is not None and snapshot.publications and snapshot.hold is None:
        return f"being ended by {mark.by}: {len(snapshot.publications)} outputs are taken away first"
    if snapshot.hold is not None:
        return snapshot.hold.reason
    at_work = snapshot.effects.unsettled or snapshot.errands
    if at_work and not snapshot.tries and (said := reconciling.why(snapshot)):
        return f"being ended by {mark.by}: {said}" if mark is not None else said
    if snapshot.pause is not None:
        running = len(snapshot.tries)
        rest = f"; {running} running tries may finish first" if running else ""
        return f"paused by {snapshot.pause.by}{rest}"
    if _is_compared(snapshot):
        return "its items' sources are being compared, before any of them starts"
    if snapshot.tries:
        place = f"step {snapshot.position.at}" if snapshot.each is None else "its items"
        return f"{len(snapshot.tries)} running at {place}"
    if snapshot.effects.unsettled and (asked := reconciling.waits(snapshot)):
        return asked
    if asked := asks.said(snapshot):
        return asked
    if placings(snapshot, now):
        row = next(iter(snapshot.publications.values()))
        return f"publishing {row.destination}"
    if snapshot.waits:
        return schedule.said(snapshot)
    if wanted(snapshot, now, 1):
        return "ready to start as soon as a worker is free"
    if next_start(snapshot, now) is not None:
        return "waiting to try again"
    if next_placing(snapshot, now) is not None:
        return "waiting to publish again: " + next(iter(snapshot.publications.values())).destination
    return "waiting"


def commands(snapshot: Snapshot) -> tuple[str, ...]:
    """The commands that would change something now, complete enough to paste."""
    job = snapshot.job.id
    if snapshot.outcome is not None:
        return (f"resumectl show {job}", f"resumectl logs {job}")
    hold, ending = snapshot.hold, _is_ending(snapshot)
    settling = reconciling.commands(snapshot)
    if ending and (hold is None or hold.code != NOT_GONE):
        return (*settling, f"resumectl watch {job}")
    stuck = snapshot.items.count(ItemState.FAILED) + snapshot.items.count(ItemState.HELD)
    possible: list[str] = []
    at_limit = hold is not None and hold.code == limits.BUDGET
    needs_word = hold is not None and hold.code in errands.JOB_HOLDS and not reconciling.resumable(snapshot)
    stands = hold is not None and not at_limit and not needs_items(snapshot) and not needs_word
    if snapshot.pause is not None or stands:
        possible.append("resume")
    if stuck and snapshot.each is not None and not ending:
        possible += ["retry", "skip"]
    if hold is None and snapshot.pause is None:
        possible.append("pause")
    if not ending:
        possible.append("cancel")
    logs = [f"resumectl logs {job} ITEM"] if stuck else []
    others = [f"resumectl show {row.event}" for row in snapshot.waits if row.event][:MOST_OTHERS]
    raising = limits.commands(snapshot, hold.since) if hold is not None and at_limit else ()
    return (*settling, *raising, *(f"resumectl {verb} {job}" for verb in possible), *logs, *others)
