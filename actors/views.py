"""What people are shown of a job, made from its snapshot when somebody looks; never stored."""

from attrs import evolve

from resumed.schemas import codec, inputs
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import MICRO, Instant, spell
from resumed.schemas.job import Item, ItemState, Status
from resumed.schemas.ledger import EffectState, WaitKind
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import ItemRow, JobRow, JobView
from resumed.schemas.workflow import Programs

from . import pace, possible
from .machine import asks, due, errands, standing
from .machine.asks import Tally

MOST_REASON = 300
"""Characters of an item's reason, or of an input, as shown; the job's history and file have it whole."""


def row(snapshot: Snapshot, now: Instant) -> JobRow:
    """The job's line in a list."""
    job, count = snapshot.job, snapshot.items.count
    status = standing.status(snapshot, now)
    wakes = due.next_start(snapshot, now) if status is Status.WAITING else None
    if wakes is None and status in (Status.WAITING, Status.RECONCILING) and not snapshot.waits:
        wakes = errands.next_moment(snapshot, now)
    expected = pace.expected(snapshot, now) if status is Status.RUNNING else 0
    waiting = asks.tally(snapshot)
    return JobRow(
        id=job.id,
        status=status,
        workflow=job.workflow,
        version=job.version,
        title=job.title,
        owner=job.owner,
        done=count(ItemState.DONE),
        total=len(snapshot.items),
        failed=count(ItemState.FAILED),
        held=count(ItemState.HELD),
        running=len(snapshot.tries),
        since=standing.since(snapshot).wall,
        created=job.created.wall,
        wakes=now.wall + round(due.left(snapshot, wakes, now) * MICRO) if wakes is not None else 0,
        needs=_needs(snapshot, status, now, waiting),
        needs_person=status is Status.HELD or bool(waiting),
        sequence=snapshot.sequence,
        epoch=snapshot.epoch,
        spent=snapshot.used.usd or "",
        hold=snapshot.hold.code if status is Status.HELD and snapshot.hold is not None else "",
        expected=spell(expected - expected % MICRO) if expected else "",
    )


def _asked(found: list[Tally]) -> str:
    """What is asked, and of whom: what may have left comes first, then the kind that is asked most."""
    who = " or ".join(one.partition(":")[2] for one in found[0].whom) or found[0].role
    return f"{who}: " + ", ".join(f"{each.kind} {each.count}" for each in found)


def _needs(snapshot: Snapshot, status: Status, now: Instant, waiting: list[Tally]) -> str:
    if waiting and status is not Status.PAUSED:
        return _asked(waiting)
    if status is Status.HELD and snapshot.hold is not None:
        failed, held = snapshot.items.count(ItemState.FAILED), snapshot.items.count(ItemState.HELD)
        who = snapshot.hold.owner
        if standing.needs_items(snapshot):
            return f"{who}: retry or skip {_many(failed + held, 'item')}"
        offered = {command.split()[1] for command in standing.commands(snapshot)}
        verbs = " or ".join(verb for verb in ("extend", "resume", "cancel") if verb in offered)
        return f"{who}: {snapshot.hold.code}" + (f", {verbs}" if verbs else "")
    if snapshot.cancel is not None and snapshot.outcome is None:
        return "stopping"
    if status is Status.PAUSED or (snapshot.pause is not None and status is Status.RUNNING):
        return "paused" if status is Status.PAUSED else "pausing: running tries finish"
    if status is Status.WAITING:
        others = [row.event for row in snapshot.waits if row.event]
        if others:
            return f"after {others[0]}" + (f" and {len(others) - 1} more" if len(others) > 1 else "")
        # When, stands in `wakes`: a parked job's row is made once.
        if any(row.kind is WaitKind.BREAKER for row in snapshot.waits):
            return "too many failures: tries one"
        tries = due.next_start(snapshot, now) or errands.next_moment(snapshot, now)
        return "starts" if snapshot.waits else "tries again" if tries else ""
    if status is Status.RECONCILING:
        rows = [row for row in snapshot.effects.live() if row.state is EffectState.UNKNOWN]
        return f"asks {' and '.join(sorted({row.target.partition(' ')[0] for row in rows}))} again"
    if status is Status.READY:
        return "a free worker"
    if snapshot.outcome is not None:
        return snapshot.outcome.reason
    return ""


def hindered(job: str, known: JobRow | None, since: int, why: str) -> JobRow:
    """The line of a job that cannot be read now, after what was known of it before."""
    row = known or JobRow(
        id=job, status=Status.QUARANTINED, workflow="", version=0, title="", owner="", done=0, total=0,
        failed=0, held=0, running=0, since=since, created=0,
    )  # fmt: skip
    needs = f"cannot be read: {why}"
    return evolve(row, status=Status.QUARANTINED, since=since, wakes=0, needs=needs, needs_person=True)


def item_row(item: Item) -> ItemRow:
    """One item as shown."""
    return ItemRow(
        id=item.id,
        state=item.state.value,
        at=item.at,
        tries=item.tries,
        failures=item.failures,
        code=item.code,
        reason=_cut(item.reason),
        started=item.started.wall if item.started is not None else 0,
        ended=item.ended.wall if item.ended is not None else 0,
        not_before=item.not_before.wall if item.not_before is not None else 0,
        output=item.output.sha256 if item.output is not None else "",
        size=item.output.size if item.output is not None else 0,
    )


def view(snapshot: Snapshot, now: Instant, folder: str) -> JobView:
    """Everything about one job."""
    shown = row(snapshot, now)
    return JobView(
        row=shown,
        requester=snapshot.job.requester,
        objective=snapshot.job.objective,
        labels=snapshot.job.labels,
        step=snapshot.position.at if snapshot.each is None else snapshot.each.start,
        reason=standing.why(snapshot, now),
        items=tuple(item_row(item) for item in snapshot.items),
        commands=tuple(each.command for each in possible.possible(snapshot, shown.status)),
        folder=folder,
        priority=snapshot.job.priority,
        after=tuple(row.event for row in snapshot.waits if row.event),
        deadline=snapshot.job.deadline.wall if snapshot.job.deadline is not None else 0,
        inputs=_inputs(snapshot),
    )


def attempt(snapshot: Snapshot, now: Instant) -> int:
    """The attempt (epoch) that is open, or will be opened next when the job is to run; else the last one."""
    will_run = standing.status(snapshot, now) in (
        Status.READY,
        Status.RESUMING,
        Status.RUNNING,
        Status.WAITING,
    )
    return snapshot.epoch if snapshot.attempt is not None or not will_run else snapshot.epoch + 1


def _inputs(snapshot: Snapshot) -> dict[str, str]:
    """The job's inputs as people are shown them: the workflow it was admitted with says which are private."""
    definition = snapshot.contract.definition
    try:
        declared = codec.decode_own(definition.encode(), Programs, "").inputs if definition else ()
        found = inputs.shown(declared, snapshot.job.inputs)
    except FaultyInputError:
        return {}  # of a release that declared them otherwise: nothing is shown that may be private
    return {name: _cut(text) for name, text in found.items()}


def _cut(text: str) -> str:
    return text if len(text) <= MOST_REASON else f"{text[: MOST_REASON - 3]}..."


def said(snapshot: Snapshot, choice: str) -> str:
    """What a request did, as a sentence."""
    job = snapshot.job.id
    running = len(snapshot.tries)
    words = {
        "paused": f"{job} is paused"
        + (
            f"; {_many(running, 'running try', 'running tries')} "
            f"{'to be stopped' if _stops(snapshot) else 'may finish'}"
            if running
            else ""
        ),
        "resumed": f"{job} continued",
        "canceled": f"{job} is canceled: nothing ran after line {snapshot.sequence}",
        "canceling": f"{job} is being canceled: {_many(running, 'running try', 'running tries')} to be "
        "stopped first"
        if running
        else f"{job} is being canceled: {standing.why(snapshot, snapshot.newest)}",
    }
    return words.get(choice, f"{job}: {choice}")


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def _stops(snapshot: Snapshot) -> bool:
    return any(row.stop is not None for row in snapshot.tries.values())
