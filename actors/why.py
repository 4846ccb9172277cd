"""Why a job stands as it does: what led to it, what was checked, what it waits for, what is left undone.

Pure. Only what is true is said: a check that nobody makes is not in the list.
"""

from collections.abc import Iterable

from attrs import evolve

from resumed.schemas.instant import Instant, spell
from resumed.schemas.job import Item, ItemState, SourceReport, Status, Try
from resumed.schemas.ledger import EffectState, ErrandKind, WaitKind
from resumed.schemas.snapshot import Line, Snapshot
from resumed.schemas.views import JobRow, WhyCheck, WhyEvent, WhyView, WhyWake
from resumed.store.history import Past

from . import past, possible, views, whyasked
from .machine import breaker, due, errands, limits, reckoning, schedule, standing

MOST_EVENTS = 6
LOOK_BACK = 300
"""Lines of the past that are looked through for what led to a standing."""
MOST_CODES = 3
_STUCK = (ItemState.FAILED, ItemState.HELD)

NOT_DONE = {
    # code of a hold -> what the machine leaves undone, and why
    "items_failed": "go on to step {then}: items failed, and only a person may leave them behind",
    "items_held": "go on to step {then}: items are held, and only a person may decide about them",
    "not_gone": "start or end anything: processes of its last attempt may be alive",
    "step_failed": "enter step {at} again: its tries are used up",
    "crashes": "start it once more: each of its last starts ended without a recorded end",
    "interrupted": "run it again: it was cut off, and its step is not repeatable",
    "timeout": "run it again: it was stopped at its time limit, and its step is not repeatable",
    "items": "begin with its items: they cannot be listed as the job file says",
    "cannot_start": "start its program: it cannot be started as the workflow says",
    "question": "go on: its program asks, and nobody has answered",
    "dir": "start its program: the folder it shall run in cannot be used",
    "no_input": "start its program: what it shall be given was never made",
    "program": "go on: its program asked for a person",
    "source_changed": "start it: its source is not what it was pinned as",
    "output_exists": "publish its output: something else lies in its place",
    "publish": "publish its output: the system refuses it",
    "output_lost": "run it again: what it had staged is gone, and its step is not repeatable",
    "output_too_large": "keep its output: it is larger than the workflow allows",
    "worker": "start a worker: each one ended before it was ready",
    "protocol": "start a worker: its interpreter has another release of resumed than the daemon",
    "contract": "start a worker: the workflow cannot be run as it is declared",
    "import": "start a worker: the author's module cannot be loaded",
    "actor_died": "look after it: the daemon failed at it again and again",
    "too_large": "record what it did: it is too large for one line",
    "effect_unknown": "send again, or go on with what depends on it: nobody can tell whether it landed",
    "conflict": "go on: what is said of one of its effects does not agree",
    "effect_held": "let one of its effects go: it may not now, or nobody can tell whether it may",
    "secrets": "ask for its effect: a secret that it needs is not there",
    "http": "ask for its effect: its worker has no client to speak HTTP with",
    "call": "ask for its effect: no call can be made of what the step before left",
    reckoning.CLOCK: "go by a clock that cannot be right",
    breaker.BREAKER: "try any more: each try fails with the same reason",
    limits.BUDGET: "start anything new: it has used what it may",
    schedule.AFTER: "start: it comes after a job that will not complete by itself",
}
OTHER_CODE = "go on: {code} is for a person to decide"

STATUSES = {
    # status -> what is left undone while a job stands under it; held is told by its code
    Status.READY: "start: no worker is free for it",
    Status.RESUMING: "start: it is being examined first",
    Status.RUNNING: "",
    Status.WAITING: "start before its time",
    Status.RECONCILING: "go on: the other system is asked first",
    Status.HELD: "",
    Status.PAUSED: "start {waiting}: paused by {by}",
    Status.COMPLETED: "",
    Status.FAILED: "",
    Status.CANCELED: "",
    Status.EXPIRED: "",
    Status.QUARANTINED: "load, change or delete anything of it: its files are left as they are",
}


def view(snapshot: Snapshot, now: Instant, told: Past) -> WhyView:
    """Everything that explains a job's standing; `told` is the end of its past."""
    row = views.row(snapshot, now)
    bound = row.status in possible.BOUND
    return WhyView(
        row=row,
        reason=_reason(snapshot, row, now),
        events=events(snapshot, told.lines),
        checks=_checks(snapshot, told),
        wakes=tuple(_wakes(snapshot, row, now)),
        not_done=tuple(_not_done(snapshot, row.status)),
        record=snapshot.sequence if bound else 0,
        commands=possible.possible(snapshot, row.status),
        notes=told.notes,
    )


def aside(row: JobRow, detail: str, told: Past, *, moved: bool) -> WhyView:
    """The same of a job that is set aside, as far as its logs can still be read."""
    return WhyView(
        row=evolve(row, needs_person=True),
        reason=detail,
        events=_chosen([past.event(line, entry) for line in told.lines for entry in line.entries], set()),
        checks=(WhyCheck(name="integrity", said="failed, or not known to hold", good=False),),
        wakes=(WhyWake(said=f"{row.owner or 'a person'}, by restoring or discarding it"),),
        not_done=(STATUSES[Status.QUARANTINED],),
        commands=possible.aside(row.id, moved=moved),
        notes=told.notes,
    )


def _reason(snapshot: Snapshot, row: JobRow, now: Instant) -> str:
    if snapshot.outcome is not None and not snapshot.outcome.reason:
        left_out = snapshot.items.count(ItemState.SKIPPED)
        done = f"{row.done} of {row.total} items done" if row.total else "its last step finished"
        done += f", {left_out} left out" if left_out else ""
        return done + (f", {row.failed} failed and left behind" if row.failed else "")
    return standing.why(snapshot, now)


# ---- what led to it ---------------------------------------------------------------------------------------


def events(snapshot: Snapshot, lines: Iterable[Line]) -> tuple[WhyEvent, ...]:
    """The last things that explain the standing, oldest first."""
    found = [past.event(line, entry) for line in lines for entry in line.entries]
    stuck = [item for item in snapshot.items if item.state in _STUCK] if _has_stuck(snapshot) else []
    chosen = _chosen(found, set(snapshot.tries))
    told = {event.unit for event in found if event.told in chosen}
    older = [_of_item(item) for item in stuck if item.id not in told]
    older += [_of_try(row) for row in snapshot.tries.values() if row.item not in told]
    room = MOST_EVENTS - len(chosen)
    return tuple(sorted((*chosen, *older[:room]), key=lambda each: each.at))


def _has_stuck(snapshot: Snapshot) -> bool:
    return any(snapshot.items.count(state) for state in _STUCK)


def _chosen(found: list[past.Event], at_work: set[str]) -> tuple[WhyEvent, ...]:
    """What is not routine, or is about a unit at work; the last ones of all when nothing else is."""
    telling = [event for event in found if not event.routine or event.unit in at_work]
    return tuple(event.told for event in (telling or found[-2:])[-MOST_EVENTS:])


def _of_item(item: Item) -> WhyEvent:
    """What the item's own row says, where the log of it is too far back."""
    at = item.ended or item.started
    said = f"{item.id}, try {item.tries}" if item.tries else item.id
    return WhyEvent(
        at=spell(at.wall) if at is not None else "",
        word=item.state.value,
        said=f"{said}: {item.reason}" if item.reason else said,
    )


def _of_try(row: Try) -> WhyEvent:
    """A try that runs, and was started together with something else."""
    said = f"{row.item or f'step {row.step}'}, try {row.number}"
    return WhyEvent(at=spell(row.started.wall), word="started", said=said)


# ---- what was checked -------------------------------------------------------------------------------------


def _checks(snapshot: Snapshot, told: Past) -> tuple[WhyCheck, ...]:
    """What the daemon made sure of: each line of the job was verified when it was opened or written."""
    found = [WhyCheck(name="integrity", said="ok")]
    if told.torn:
        found = [WhyCheck(name="integrity", said=f"torn {told.torn}", good=False)]
    elif any(effect.suspect for effect in snapshot.effects.live()):
        found = [WhyCheck(name="integrity", said="a line was lost", good=False)]
    hold = snapshot.hold
    if hold is not None and hold.code == standing.NOT_GONE:
        found.append(WhyCheck(name="processes", said="not known to be gone", good=False))
    elif snapshot.tries:
        found.append(WhyCheck(name="processes", said=f"{len(snapshot.tries)} at work"))
    else:
        found.append(WhyCheck(name="processes", said="gone"))
    found += whyasked.checks(snapshot)
    if snapshot.expiry is not None:
        found.append(WhyCheck(name="deadline", said="passed", good=False))
    elif snapshot.job.deadline is not None:
        found.append(WhyCheck(name="deadline", said="ok"))
    if snapshot.sources is not None and snapshot.sources.compared:
        found.append(_sources(snapshot.sources))
    return tuple(found)


def _sources(report: SourceReport) -> WhyCheck:
    """How many of those that were compared at the last wake were what they had been pinned as."""
    changes = {
        "held": report.held,
        "begun again": report.reopened,
        "of done items": report.kept,
        "not readable": report.unreadable,
    }
    good = report.compared - sum(changes.values())
    words = [f"{count} {word}" for word, count in changes.items() if count]
    said = f"{good}/{report.compared}"
    return WhyCheck(
        name="sources", said=f"{said} ({', '.join(words)})" if words else said, good=good == report.compared
    )


# ---- what it waits for, and what is left undone -----------------------------------------------------------


def _wakes(snapshot: Snapshot, row: JobRow, now: Instant) -> Iterable[WhyWake]:
    if snapshot.outcome is not None:
        return
    status = row.status
    if status is Status.HELD:
        others = [wait.event for wait in snapshot.waits if wait.obstacle in schedule.PASSING]
        owner = snapshot.hold.owner if snapshot.hold else row.owner
        asking = tuple(_asking(snapshot, now))
        more = "" if asking else ", and nothing else"
        if others:
            more = f", or {', '.join(others)} coming back"
        if row.hold == reckoning.CLOCK:
            more = ", or the clock, once it is known"
        yield WhyWake(said=f"{owner}{more}")
        yield from asking
    elif status is Status.PAUSED:
        yield WhyWake(said="whoever lets it go on, and nothing else")
    elif status is Status.READY:
        yield WhyWake(said="a free worker")
    elif status in (Status.RESUMING, Status.RUNNING):
        yield WhyWake(said="the end of what runs")
        ends = [each.until for each in snapshot.tries.values()]
        ends += [each.until for each in snapshot.errands.values()]
        until = min(ends, key=lambda at: at.wall, default=None)
        if until is not None:
            yield WhyWake(said="the first time limit of these", at=spell(until.wall))
    else:
        yield from whyasked.wakes(snapshot)
        for wait in snapshot.waits:
            if wait.event:
                yield WhyWake(said=f"{wait.event}, once it has completed")
            elif wait.deadline is not None:
                tried = wait.kind is WaitKind.BREAKER
                said = "trying one item alone" if tried else "its time to start"
                yield WhyWake(said=said, at=spell(wait.deadline.wall))
        if not snapshot.waits and (at := due.next_start(snapshot, now)) is not None:
            yield WhyWake(said="starting", at=spell(at.wall))
        yield from _asking(snapshot, now)
    if snapshot.job.deadline is not None and snapshot.expiry is None and snapshot.cancel is None:
        yield WhyWake(said="its deadline, which ends it", at=spell(snapshot.job.deadline.wall))


def _asking(snapshot: Snapshot, now: Instant) -> Iterable[WhyWake]:
    """When a target answers, or is asked again about what may have landed there."""
    for row in snapshot.errands.values():
        if snapshot.effects[row.effect].state is EffectState.UNKNOWN:
            yield WhyWake(said="its target's answer", at=spell(row.until.wall))
    if any(kind is ErrandKind.LOOK_UP for _, kind in errands.wanted(snapshot, now)):
        yield WhyWake(said="a free worker, to ask its target")
    if snapshot.effects.unsettled and (at := errands.next_moment(snapshot, now)) is not None:
        rows = [row for row in snapshot.effects.live() if row.not_before == at]
        asked = any(row.suspect or (row.state is EffectState.UNKNOWN and not row.resend) for row in rows)
        said = "its target, which is asked again" if asked else "one of its effects, which is tried again"
        yield WhyWake(said=said, at=spell(at.wall))


def _not_done(snapshot: Snapshot, status: Status) -> Iterable[str]:
    hold, names = snapshot.hold, _names(snapshot)
    if hold is not None and snapshot.outcome is None:
        yield NOT_DONE.get(hold.code, OTHER_CODE).format(code=hold.code, **names)
        kinds = _held_codes(snapshot) - {hold.code}
        yield from (NOT_DONE[code].format(**names) for code in sorted(kinds & set(NOT_DONE))[:MOST_CODES])
        return
    mark = snapshot.cancel or snapshot.expiry
    if status is Status.RUNNING and mark is not None:
        yield f"start anything new: being ended by {mark.by}"
    elif status is Status.RUNNING and snapshot.pause is not None:
        yield STATUSES[Status.PAUSED].format(**names)
    elif status is Status.WAITING and any(wait.event for wait in snapshot.waits):
        yield "start before the jobs that it comes after"
    elif status is Status.WAITING and (asked := whyasked.not_done(snapshot)):
        yield asked
    elif STATUSES[status]:
        yield STATUSES[status].format(**names)


def _held_codes(snapshot: Snapshot) -> set[str]:
    """Why items are held, each reason once."""
    if not snapshot.items.count(ItemState.HELD):
        return set()
    return {item.code for item in snapshot.items if item.state is ItemState.HELD}


def _names(snapshot: Snapshot) -> dict[str, str]:
    waiting = snapshot.items.count(ItemState.PENDING)
    return {
        "at": snapshot.position.at,
        "then": snapshot.each.then if snapshot.each is not None else snapshot.position.at,
        "by": snapshot.pause.by if snapshot.pause is not None else "",
        "waiting": f"{waiting} waiting items" if waiting else "anything new",
    }
