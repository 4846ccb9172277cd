"""The first snapshot of a job, from what the door let in."""

from resumed.schemas.instant import Instant
from resumed.schemas.job import Budget, CodeVersion, Item, Job, Next, PinKind, Source
from resumed.schemas.jobfile import FileItem
from resumed.schemas.snapshot import Changes, Decision, Entry, Line, Snapshot
from resumed.schemas.table import ItemTable
from resumed.schemas.workflow import Contract

from . import reckoning, schedule


def first_line(
    job: Job,
    contract: Contract,
    items: tuple[FileItem, ...],
    code: CodeVersion,
    previous: str,
    now: Instant,
    budget: Budget | None = None,
) -> Line:
    """Line 1: the opening snapshot; `previous` is the sha256 of job.json, `budget` what it may use."""
    rows = [
        Item(
            id=item.id,
            ordinal=ordinal,
            inputs=item.inputs,
            source=Source(path=item.source, pin=PinKind.NONE, requested=True) if item.source else None,
        )
        for ordinal, item in enumerate(items)
    ]
    opening = Snapshot(
        job=job,
        contract=contract,
        code_version=code,
        newest=now,
        position=Item(id="", ordinal=0, at=contract.start, occurrence=1),
        next=Next(step=contract.start),
        items=ItemTable(rows),
        waits=schedule.opening(job, now),
        clocks=reckoning.created(job),
        budget=budget or Budget(),
    )
    admitted = Entry(
        transition="admit",
        decision=Decision(
            by=job.requester,
            rule="admit",
            choice=f"admitted with {len(rows)} item{'' if len(rows) == 1 else 's'}",
        ),
        changes=Changes(),
    )
    return Line(sequence=1, epoch=0, previous=previous, at=now, entries=(admitted,), opening=opening)
