"""What a worker is shown of a job when it is to run a try: the frame, and how much of which items."""

import os
from pathlib import Path

from attrs import evolve

from resumed.schemas.frames import Run
from resumed.schemas.job import Item, Try
from resumed.schemas.keys import operation_key
from resumed.schemas.snapshot import Snapshot
from resumed.store import files

from . import places
from .machine import pins

INLINE_MOST = 4 * 1024 * 1024
"""Bytes of outputs that travel inside one frame; past it each is known by its digest and size only."""


def run(snapshot: Snapshot, row: Try, folder: Path, scratch: str) -> Run:
    """The frame that starts an open try of the job in `folder`; `scratch` is an absolute path."""
    job = snapshot.job
    item = snapshot.items[row.item] if row.item else None
    unit = item if item is not None else snapshot.position
    programs = places.runs_programs(snapshot)
    if row.compares:
        shown, through = pins.piece(snapshot)
    else:
        shown, through = () if item is not None else items(snapshot), 0
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
        artifacts=f"{folder}/{files.ARTIFACTS}" if programs else "",
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
        reader=job.reader if job.reader is not None and job.reader.uid not in (0, os.geteuid()) else None,
        compare=row.compares,
        through=through,
    )


def _key(snapshot: Snapshot, row: Try) -> str:
    job = snapshot.job
    return operation_key(job.id, job.sha256, row.item, row.occurrence, f"step {row.step}", 0)


def items(snapshot: Snapshot) -> tuple[Item, ...]:
    """The items for the job's own step; a workflow of programs needs them where it lists them only."""
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
