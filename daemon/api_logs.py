"""The socket's method that follows what a job's programs say: piece after piece as it is written.

The order that must hold: first whether more may come, then what is there; so what was said before the end is
told before the end is.
"""

import base64
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
from anyio import to_thread
from attrs import define, field

from resumed.actors.printed import Printed, Unit
from resumed.schemas.refusal import Refusal

from .api_files import LogAnswer, LogAsked, read_piece
from .api_jobs import no_item
from .desk import Desk
from .growth import Ear
from .peers import Peer

GATHER = 0.05
"""Seconds between two looks: what is written meanwhile goes out together."""

Said = AsyncGenerator[tuple[LogAnswer | Refusal, bool], None]


@define
class _Read:
    """How far each log was read."""

    offsets: dict[str, int] = field(factory=dict)

    def due(self, units: tuple[Unit, ...], grown: set[str] | None) -> Iterator[Unit]:
        """The logs to look at: those that have grown, and those not looked at before."""
        for unit in units:
            if grown is None or unit.file in grown or unit.item not in self.offsets:
                yield unit

    async def next_piece(self, path: Path, unit: Unit) -> LogAnswer | None:
        """What is new in one log, as far as it fits an answer; None when nothing is."""
        start, content = await to_thread.run_sync(read_piece, path, self.offsets.get(unit.item, 0))
        self.offsets[unit.item] = after = start + len(content)
        if not content:
            return None
        spelled = base64.b64encode(content).decode()
        return LogAnswer(item=unit.item, content=spelled, next=after, ended=False)


async def follow(desk: Desk, _peer: Peer, asked: LogAsked) -> Said:
    """What an item's programs say, or with `all` those of every item, until there is no more to come."""
    read = _Read()
    if asked.item or not asked.all:
        read.offsets[asked.item] = max(0, asked.offset)
    with ExitStack() as following:
        ear: Ear | None = None
        while True:
            grown = ear.take() if ear is not None else None
            printed = await desk.jobs.printed(asked.job, None if asked.all else asked.item)
            if printed is None:
                yield no_item(asked.job, asked.item), False
                return
            if isinstance(printed, Refusal):
                yield printed, False
                return
            if ear is None and await to_thread.run_sync(printed.folder.is_dir):
                ear = following.enter_context(desk.follow(printed.folder))
            for unit in list(read.due(printed.units, grown)):
                while piece := await read.next_piece(printed.folder / unit.file, unit):
                    yield piece, True
            if printed.over or (not asked.all and all(unit.over for unit in printed.units)):
                after = read.offsets.get(asked.item, 0)
                yield LogAnswer(item=asked.item, content="", next=after, ended=True), False
                return
            await _until_more(desk, asked.job, printed, ear)


async def _until_more(desk: Desk, job: str, printed: Printed, ear: Ear | None) -> None:
    """Return when a log has grown, or the job has moved on."""
    async with anyio.create_task_group() as waiting:

        async def moved() -> None:
            await desk.jobs.changed(job, printed.sequence)
            waiting.cancel_scope.cancel()

        waiting.start_soon(moved)
        if ear is not None:
            await ear.wait()
            waiting.cancel_scope.cancel()
    await anyio.sleep(GATHER)
