"""Rehearsals: what a job would begin with, found by a worker of its own and told, never committed.

The worker lists the items under the same containment as any; it is ended afterwards, whatever it does. The
law is asked what it would make of the answer, and nothing of that is adopted.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import anyio.abc
from attrs import evolve

from resumed.schemas import codec, decisions, events, frames
from resumed.schemas.instant import Instant
from resumed.schemas.job import Try
from resumed.schemas.snapshot import Entry, Line, Snapshot
from resumed.schemas.views import CommandRow, PreviewView
from resumed.schemas.workflow import Contract, Pinning, Programs
from resumed.store.layout import Layout

from . import errand, places, rehearsed, scratch, shown
from .clock import Clock
from .containment import Containment
from .disk import Disk
from .errand import Errand
from .machine.apply import apply
from .machine.draft import Draft
from .machine.transition import transition
from .worker import course

PATIENCE = 60.0
"""Seconds that listing the items may take."""
AT_ONCE = 2
"""Rehearsals at a time; others wait for their turn."""
FIRST = 10
"""Items that are named."""
TRIES = 3
"""First tries whose programs are shown."""
_SAID = 2000
_WORKER = "WORKER"


class Rehearser:
    """Workers for rehearsals, one after the other."""

    def __init__(
        self, layout: Layout, contained: Containment, clock: Clock, disk: Disk, name: Callable[[], str]
    ) -> None:
        self._layout = layout
        self._contained = contained
        self._clock = clock
        self._disk = disk
        self._name = name
        self._places = anyio.Semaphore(AT_ONCE)
        self.group: anyio.abc.TaskGroup | None = None
        """Where the workers' tasks run; set while the house is alive."""

    async def rehearse(self, line: Line) -> PreviewView:
        """What the job of this first line would begin with; ResumedError when no worker can be started."""
        assert line.opening is not None
        now = self._clock.now()
        snapshot = apply(line.opening, line)
        contract, job = snapshot.contract, snapshot.job
        view = PreviewView(job=job.id, workflow=job.workflow, version=job.version, items=len(snapshot.items))
        if contract.entry or not contract.definition:
            named = tuple(item.id for item in snapshot.items)[:FIRST]
            note = f"its class {contract.entry} decides what it begins with, and is not asked here"
            return evolve(view, first=named, note=note)
        async with self._places:
            answer, said = await self._list(_started(snapshot, now))
        if isinstance(answer, str):
            return evolve(view, problem=answer, said=said)
        listed = apply_answer(_started(snapshot, now), answer, now)
        programs = codec.decode_own(contract.definition.encode(), Programs, f"cannot load {job.workflow}")
        ids = tuple(item.id for item in listed.items)
        folder = self._layout.job(job.id)
        commands = tuple(_commands(listed, programs, folder, self._layout.scratch))
        note = "; ".join(rehearsed.asks(programs))
        return evolve(view, items=len(ids), first=ids[:FIRST], commands=commands, said=said, note=note)

    async def _list(self, snapshot: Snapshot) -> tuple[decisions.Answer | str, str]:
        """The answer of the step that lists, or why there is none; and what was said meanwhile."""
        name = self._name()
        row = evolve(snapshot.tries[""], worker=name)
        folder = self._layout.scratch / name
        place = places.scratch_folder(self._layout.scratch, snapshot.job.id, row.item, row)
        await self._disk.call(scratch.make, Path(place))
        try:
            log = folder / "log"
            frame = evolve(shown.run(snapshot, row, folder, place), log=str(log))
            found = await self._ask(name, _quick(snapshot.contract), frame)
            return found, await self._disk.call(_tail, log)
        finally:
            await self._disk.call(scratch.remove, folder)

    async def _ask(self, name: str, contract: Contract, frame: frames.Run) -> decisions.Answer | str:
        if self.group is None:
            return "the daemon is ending"
        asked = Errand(name=name, contract=contract, patience=PATIENCE, run=frame)
        said = await errand.send(asked, self._layout.workers, self._contained, self.group)
        return f"they were not listed within {PATIENCE:g} s" if said is None else _meant(said)


def _started(snapshot: Snapshot, now: Instant) -> Snapshot:
    """The job with the first try of its first step open, whatever it would have to wait for before."""
    draft = Draft(snapshot, now)
    draft.start(snapshot.position, _WORKER)
    return evolve(
        snapshot, tries=draft.tries, attempt=draft.attempt, epoch=draft.epoch, position=draft.position
    )


def _quick(contract: Contract) -> Contract:
    """The workflow with sources looked at, not read: their bytes say nothing about how a job begins."""
    programs = codec.decode_own(contract.definition.encode(), Programs, f"cannot load {contract.workflow}")
    if programs.items_pin is Pinning.NONE:
        return contract
    looked_at = evolve(programs, items_pin=Pinning.STAT)
    return evolve(contract, definition=codec.encode(looked_at).decode(), pin=Pinning.STAT)


def _meant(said: frames.FromWorker | str) -> decisions.Answer | str:
    """What the listing step answered, when it is a beginning; else why it is none."""
    if isinstance(said, str):
        return said
    if isinstance(said, frames.Returned):
        decided = said.answer.decided
        reason = getattr(decided, "reason", "")
        return reason or said.answer
    if isinstance(said, frames.Raised):
        return said.error
    return said.reason if isinstance(said, frames.Trouble) else "its worker stopped"


def apply_answer(snapshot: Snapshot, answer: decisions.Answer, now: Instant) -> Snapshot:
    """The job as the law would have it after this answer to its open first try."""
    row = snapshot.tries[""]
    event = events.Returned(unit="", epoch=row.epoch, number=row.number, answer=answer, slot=False)
    verdict = transition(snapshot, event, now)
    assert isinstance(verdict, Entry)
    return apply(snapshot, Line(sequence=2, epoch=row.epoch, previous="", at=now, entries=(verdict,)))


def _commands(snapshot: Snapshot, programs: Programs, folder: Path, root: Path) -> Iterator[CommandRow]:
    """The programs of the first tries, in the order of the steps and of the items."""
    left = TRIES
    before: list[str] = []
    # What each unit's first tries are numbered: the job's own comes after the one that listed.
    ordinals = {True: 0, False: 1}
    for place in course.places_of(programs):
        ordinals[place.each] += 1
        units = [item.id for item in snapshot.items][:left] if place.each else [""]
        for unit in units:
            row = Try(
                epoch=1,
                item=unit,
                number=ordinals[place.each],
                step=place.name,
                occurrence=ordinals[place.each],
                started=snapshot.newest,
                until=snapshot.newest,
                worker=_WORKER,
            )
            folder_of = places.scratch_folder(root, snapshot.job.id, row.item, row)
            frame = shown.run(snapshot, row, folder, folder_of)
            yield from rehearsed.commands(programs, place, frame, before)
        left -= len(units)
        if place.step is not None:
            before.append(place.name)
        if left <= 0:
            return


def _tail(log: Path) -> str:
    """The end of what was noted and printed, as text for people."""
    try:
        raw = log.read_bytes()
    except OSError:
        return ""
    return raw[-_SAID:].decode("utf-8", "replace").replace("\x00", "\ufffd")
