"""What a worker is shown of a job when it is to run a try: the frame, and how much of which items."""

import os
from pathlib import Path

from attrs import evolve

from resumed.schemas.frames import CallGiven, Given, Outcome, Run
from resumed.schemas.job import Item, Reader, Try
from resumed.schemas.keys import operation_key
from resumed.schemas.ledger import ERRAND, Effect, Errand
from resumed.schemas.snapshot import Snapshot
from resumed.store import files

from . import places
from .machine import pins, questions, reviews

INLINE_MOST = 4 * 1024 * 1024
"""Bytes of outputs that travel inside one frame; past it each is known by its digest and size only."""


def run(snapshot: Snapshot, row: Try, folder: Path, scratch: str, credentials: str = "") -> Run:
    """The frame that starts an open try of the job in `folder`; `scratch` is an absolute path.

    `credentials` is the folder that holds those that steps and effects name.
    """
    job = snapshot.job
    item = snapshot.items[row.item] if row.item else None
    unit = item if item is not None else snapshot.position
    programs = places.runs_programs(snapshot)
    if row.compares:
        shown, through = pins.piece(snapshot)
    else:
        shown, through = () if item is not None else items(snapshot), 0
    told = given(snapshot, row) if _has_waited(snapshot) else None
    return Run(
        job=job.id,
        epoch=row.epoch,
        item=row.item,
        number=row.number,
        step=row.step,
        occurrence=row.occurrence,
        log=places.log_file(folder, row.item),
        scratch=scratch,
        kept=places.kept_folder(folder, row.item) if programs else "",
        key=_key(snapshot, row) if programs else "",
        artifacts=f"{folder}/{files.ARTIFACTS}" if programs or told or snapshot.contract.effects else "",
        outputs=snapshot.position.outputs,
        attempt=row.epoch,
        interrupted=unit.crashes > 1 or unit.code == "interrupted",
        inputs=job.inputs,
        state=snapshot.state,
        row=item,
        items=shown,
        items_glob=job.items_glob,
        items_from=job.items_from,
        items_file=job.items_file,
        objective=job.objective,
        labels=job.labels,
        reader=_reader(snapshot),
        compare=row.compares,
        through=through,
        given=told,
        credentials=credentials,
    )


def errand(snapshot: Snapshot, row: Errand, folder: Path, scratch: str, credentials: str = "") -> Run:
    """The frame that sends a worker on an open errand: what it does is made of the stored row alone."""
    job, effect = snapshot.job, snapshot.effects[row.effect]
    contract = snapshot.contract.tool(effect.tool)
    if contract is None:
        raise LookupError(f"workflow {snapshot.contract.workflow} declares no effect {effect.tool!r}")
    programs = places.runs_programs(snapshot)
    return Run(
        job=job.id,
        epoch=row.epoch,
        item=ERRAND + effect.id,
        number=row.number,
        step=effect.step,
        occurrence=effect.occurrence,
        log=places.log_file(folder, effect.item),
        scratch=scratch,
        kept=places.kept_folder(folder, effect.item) if programs else "",
        key=effect.operation_key,
        artifacts=f"{folder}/{files.ARTIFACTS}",
        attempt=row.epoch,
        inputs=job.inputs,
        row=snapshot.items.get(effect.item) if effect.item else None,
        objective=job.objective,
        labels=job.labels,
        reader=_reader(snapshot),
        call=CallGiven(
            effect=effect.id,
            kind=row.kind,
            tool=effect.tool,
            version=effect.version,
            operation_key=effect.operation_key,
            fingerprint=effect.fingerprint,
            arguments=effect.arguments,
            unbound=effect.unbound,
            bodies=effect.bodies,
            observed=effect.observed,
            sources=effect.sources,
            attempt=effect.dispatches,
            timeout=contract.timeout,
            first=effect.suspect or (contract.check_first and effect.dispatches == 0),
        ),
        credentials=credentials,
    )


def _has_waited(snapshot: Snapshot) -> bool:
    return bool(snapshot.performances or snapshot.reviews or snapshot.questions)


def given(snapshot: Snapshot, row: Try) -> Given | None:
    """What the unit waited for before this step, where this step is what that led to."""
    performance = snapshot.performances.get(row.item)
    if performance is not None and performance.over and performance.led == row.occurrence:
        return Given(outcomes=tuple(_outcome(snapshot.effects[name]) for name in performance.effects))
    return reviews.given(snapshot, row.item) or questions.given(snapshot, row.item)


def _outcome(effect: Effect) -> Outcome:
    return Outcome(
        effect=effect.id,
        tool=effect.tool,
        state=effect.state,
        arguments=effect.arguments,
        code=effect.code,
        reference=effect.reference,
        reason=effect.reason,
        response=effect.response,
    )


def _reader(snapshot: Snapshot) -> Reader | None:
    """Whose rights count when files are read; None where they are the daemon's own, or all there are."""
    reader = snapshot.job.reader
    return reader if reader is not None and reader.uid not in (0, os.geteuid()) else None


def _key(snapshot: Snapshot, row: Try) -> str:
    job = snapshot.job
    return operation_key(job.id, job.sha256, row.item, row.occurrence, f"step {row.step}", 0)


def items(snapshot: Snapshot) -> tuple[Item, ...]:
    """The items for the job's own step; a workflow of programs needs them where it lists them only."""
    if not len(snapshot.items):
        return ()
    if places.runs_programs(snapshot) and snapshot.position.at != snapshot.contract.start:
        return ()
    found = tuple(snapshot.items)
    weight = sum(item.output.size for item in found if item.output is not None and _is_inline(item))
    return found if weight <= INLINE_MOST else tuple(_by_reference(item) for item in found)


def _is_inline(item: Item) -> bool:
    return item.output is not None and (item.output.text is not None or item.output.base64 is not None)


def _by_reference(item: Item) -> Item:
    if item.output is None or not _is_inline(item):
        return item
    return evolve(item, output=evolve(item.output, text=None, base64=None))
