"""The store alone: real lines through real journals and disk threads, one task a job; no law, no worker."""

from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import jobs
from attrs import evolve
from syncs import counted

from resumed.actors.clock import SystemClock
from resumed.actors.disk import ThreadDisk
from resumed.actors.machine.apply import apply
from resumed.schemas import line_io
from resumed.schemas.job import Item, ItemState
from resumed.schemas.snapshot import Changes, Decision, Entry, Line
from resumed.store import admission, journal, layout, recovery
from resumed.store.journal import Journal


def measure(folder: Path, size: int, commits: int) -> tuple[float, float]:
    """(transitions a second, syncs a transition) of `size` jobs with `commits` commits each."""
    store = layout.create(folder / "state", "bench", SystemClock().now())
    opened = [_admit(store, number) for number in range(size)]
    try:
        return anyio.run(partial(_drive, opened, commits))
    finally:
        for one in opened:
            one.close()


def _admit(store: layout.Layout, number: int) -> Journal:
    record, line = jobs.admitted(f"job-{number}", jobs.contract(slots=1), steps=1)
    admission.admit(store, record, line)
    folder = store.job(record.id)
    return journal.open_for_writing(folder, recovery.load(folder, apply))


async def _drive(opened: list[Journal], commits: int) -> tuple[float, float]:
    disk = ThreadDisk()
    begin = anyio.Event()

    async def job(one: Journal) -> None:
        line = _line(one)
        await begin.wait()
        for number in range(commits):
            raw, digest = line_io.spell_line(_next(line, one, number))
            await disk.append(one, raw, one.sequence + 1, digest)

    async with anyio.create_task_group() as base:
        await base.start(disk.run)
        with counted() as syncs:
            async with anyio.create_task_group() as group:
                for one in opened:
                    group.start_soon(job, one)
                await anyio.sleep(0.1)
                before, begun = syncs.value(), perf_counter()
                begin.set()
            passed = perf_counter() - begun
            found = syncs.value() - before
        disk.close()
    made = len(opened) * commits
    return made / passed, found / made


def _line(one: Journal) -> Line:
    """A line as a returned step makes it: the position, and the state's changed field."""
    now = SystemClock().now()
    position = Item(
        id="", ordinal=0, state=ItemState.IN_PROGRESS, at="tick", occurrence=1, tries=1, started=now
    )
    entry = Entry(
        transition="returned",
        decision=Decision(by="author", rule="returned", choice="goto tick"),
        changes=Changes(position=position),
    )
    return Line(sequence=one.sequence, epoch=1, previous=one.digest, at=now, entries=(entry,))


def _next(line: Line, one: Journal, number: int) -> Line:
    entry = line.entries[0]
    state: dict[str, Any] = {"text": f'"{number:024d}{"x" * 1000}"'}
    changes = evolve(entry.changes, state=state)
    return evolve(
        line,
        sequence=one.sequence + 1,
        previous=one.digest,
        entries=(evolve(entry, changes=changes),),
    )
