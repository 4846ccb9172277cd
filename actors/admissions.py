"""Admissions that wait together are made durable together: the first of them hands all to one disk thread."""

from contextlib import suppress
from pathlib import Path

import anyio
from attrs import define, field

from resumed.schemas.errors import CommitError
from resumed.schemas.snapshot import Admission, Line
from resumed.store import admission, admissions
from resumed.store.layout import Layout

from .bell import Bell
from .disk import Disk


@define(eq=False)
class _Waiting:
    record: Admission
    line: Line
    bell: Bell = field(factory=Bell)
    leads: bool = False
    error: Exception | None = None


class Admissions:
    """The way of new jobs into one store."""

    def __init__(self, layout: Layout, disk: Disk) -> None:
        self._layout = layout
        self._disk = disk
        self._shards: set[Path] = set()
        self._waiting: list[_Waiting] = []
        self._led = False
        """Whether somebody is at it, and will call the next."""

    async def admit(self, record: Admission, line: Line) -> None:
        """Make the job durable with its first line, shielded; the errors are those of `admission.admit`."""
        mine = _Waiting(record, line)
        self._waiting.append(mine)
        if not self._led:
            self._led = True
            with anyio.CancelScope(shield=True):
                await self._lead()
        else:
            try:
                await mine.bell.wait()
            except anyio.get_cancelled_exc_class():
                # A scope for each job of a burst would cost as much as the rest.
                with anyio.CancelScope(shield=True):
                    await mine.bell.wait()
                    await self._lead_if_called(mine)
                raise
            await self._lead_if_called(mine)
        if mine.error is not None:
            raise mine.error

    async def _lead_if_called(self, mine: _Waiting) -> None:
        if mine.leads:
            with anyio.CancelScope(shield=True):
                await self._lead()

    async def _lead(self) -> None:
        """Admit those that wait, the one who leads first among them; then the next in line leads."""
        some, self._waiting = self._waiting[: admissions.MOST], self._waiting[admissions.MOST :]
        try:
            found = await self._made(some)
        except Exception as error:  # noqa: BLE001 - it is raised where each of them waits
            found = [error] * len(some)
        for each, failed in zip(some, found, strict=True):
            each.error = failed
            each.bell.ring()
        self._led = bool(self._waiting)
        if self._led:
            self._waiting[0].leads = True
            self._waiting[0].bell.ring()

    async def _made(self, some: list[_Waiting]) -> list[Exception | None]:
        if len(some) == 1:
            await self._disk.call(admission.admit, self._layout, some[0].record, some[0].line)
            return [None]
        jobs = [(each.record, each.line) for each in some]
        found = await self._disk.call(admissions.admit_each, self._layout, jobs, self._shards)
        if refused := next((error for error in found if isinstance(error, CommitError)), None):
            # Raised by a call, so that whoever watches the disk hears of it.
            with suppress(CommitError):
                await self._disk.call(_refuse, refused)
        return found


def _refuse(error: CommitError) -> None:
    raise error
