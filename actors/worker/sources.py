"""Sources: what an item's input is known by, and whether it still is that. It reads, and changes nothing.

Nothing but a regular file is ever opened for reading: opening a device may already do something.
"""

import errno
import hashlib
import io
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
from attrs import evolve, frozen

from resumed.schemas import strict
from resumed.schemas.decisions import (
    Answer,
    Compared,
    Decided,
    FanOut,
    HoldBack,
    NewItem,
    Seen,
    SourceChanged,
    TryAgain,
)
from resumed.schemas.frames import Run
from resumed.schemas.job import Item, ItemState, PinKind, Reader, Source
from resumed.schemas.workflow import Contract, OnChange, Pinning

from . import faulttext, offers, reach
from .trial import Trial

if TYPE_CHECKING:
    from .main import Steps

T = TypeVar("T")

HASHED = 64 * 1024 * 1024
"""Above this `auto` pins by size, mtime and inode instead of the sha256."""
RACY = 2_000_000
"""Microseconds after a change in which another may leave no mark: kernels stamp files by their ticks of up
to 10 ms, and network file systems by a clock of their own."""
_AT_ONCE = 1024 * 1024
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


@frozen
class Now:
    """A source that is not what it was: as it is now, or None and the reason why it is no file any more."""

    source: Source | None
    reason: str = ""


def pinned(source: Source, pinning: Pinning, reader: Reader | None) -> Source:
    """A named source with its pin; OSError as in `pin`, also where its requester may not read it."""
    if source.requested:
        reach.check(source.path, reader)
    return evolve(pin(source.path, pinning), requested=source.requested)


def pin(path: str, pinning: Pinning = Pinning.AUTO) -> Source:
    """A source and what it is known by; OSError when it is no regular file that can be read.

    With `none` anything may lie under the path, and it need only be there.
    """
    if pinning is Pinning.NONE:
        os.stat(path)
        return Source(path=path)
    with offers.open_regular(path) as file:
        return _pinned(path, file, pinning)


def _pinned(path: str, file: io.FileIO, pinning: Pinning) -> Source:
    status = os.fstat(file.fileno())
    seen = _marks(path, status)
    if pinning is Pinning.STAT or (pinning is Pinning.AUTO and status.st_size > HASHED):
        return evolve(seen, pin=PinKind.STAT)
    found = _digest(file)
    after = os.fstat(file.fileno())
    if (after.st_size, after.st_mtime_ns, after.st_ctime_ns) != (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    ):
        raise OSError("it changed while it was read")
    # Nobody can set this time. Where a later change could bear the same one, only the bytes can tell.
    ctime = status.st_ctime_ns // 1000
    settled = pinning is Pinning.AUTO and ctime < time.time_ns() // 1000 - RACY
    return evolve(seen, pin=PinKind.SHA256, sha256=found, ctime=ctime if settled else 0)


def _marks(path: str, status: os.stat_result) -> Source:
    return Source(
        path=path,
        size=status.st_size,
        mtime=status.st_mtime_ns // 1000,
        inode=status.st_ino & strict.MAX_INT,
    )


def _digest(file: io.FileIO) -> str:
    digest = hashlib.sha256()
    while piece := file.read(_AT_ONCE):
        digest.update(piece)
    return digest.hexdigest()


def compare(source: Source, pinning: Pinning, *, quick: bool = False) -> Now | None:
    """What a pinned source has become; None when it is what it was.

    OSError when nobody can tell for now. With `quick` a file that looks untouched is not read again.
    """
    try:
        with offers.open_regular(source.path) as file:
            status = os.fstat(file.fileno())
            seen = _marks(source.path, status)
            untouched = (seen.size, seen.mtime, seen.inode) == (source.size, source.mtime, source.inode)
            if source.pin is PinKind.STAT:
                same = untouched
            elif untouched and (quick or (source.ctime and source.ctime == status.st_ctime_ns // 1000)):
                same = True
            else:
                same = seen.size == source.size and _digest(file) == source.sha256
            if same:
                return None
            file.seek(0)
            return Now(evolve(_pinned(source.path, file, pinning), requested=source.requested))
    except OSError as error:
        if error.errno in _GONE or isinstance(error, offers.NotRegularError):
            return Now(None, error.strerror or str(error))
        raise


def compared_as(reader: Reader | None, source: Source, pinning: Pinning, quick: bool = False) -> Now | None:
    """The same with the rights of whoever named the source."""

    def look() -> Now | None:
        return compare(source, pinning, quick=quick)

    if not source.requested:
        return look()
    reach.check(source.path, reader)
    return reach.run_as(reader, look)


def is_pinned(source: Source | None) -> bool:
    """Whether there is anything to compare."""
    return source is not None and source.pin is not PinKind.NONE


def before_step(contract: Contract, row: Item, reader: Reader | None = None) -> Decided | None:
    """What a try answers in place of its step, whose source is not what it relies on; None when it is."""
    assert row.source is not None
    try:
        now = compared_as(reader, row.source, contract.pin)
    except OSError as error:
        return TryAgain(reason=f"cannot read its source: {error.strerror or error}", code="source")
    return None if now is None else SourceChanged(source=now.source, reason=faulttext.clean(now.reason))


def compared(contract: Contract, run: Run) -> Compared:
    """The answer of a try that compares the sources of many items."""
    changed: list[Seen] = []
    unreadable = 0
    for item in run.items:
        assert item.source is not None
        # What is done stays done: whether it was touched is all that is wanted.
        quick = item.state is ItemState.DONE and contract.on_change is OnChange.HOLD
        try:
            now = compared_as(run.reader, item.source, contract.pin, quick)
        except OSError:
            unreadable += 1
            continue
        if now is not None:
            changed.append(Seen(item=item.id, source=now.source, reason=faulttext.clean(now.reason)))
    return Compared(
        through=run.through, sources=len(run.items), changed=tuple(changed), unreadable=unreadable
    )


async def answered(steps: "Steps", run: Run, trial: Trial) -> Answer:
    """The answer of a try: of its step, unless its source is not what was pinned, or of a comparison.

    All reading is done in threads: other tries of the worker go on meanwhile, and a `stop` is heard.
    """
    contract = steps.contract
    if run.compare:
        return Answer(decided=await _in_thread(compared, contract, run))
    row = run.row
    if row is not None and is_pinned(row.source) and contract.on_change is not OnChange.IGNORE:
        early = await _in_thread(before_step, contract, row, run.reader)
        if early is not None:
            return Answer(decided=early)
    answer = await steps.run(run, trial)
    if isinstance(answer.decided, FanOut) and contract.pin is not Pinning.NONE:
        return await _with_pins(contract, run, answer, answer.decided)
    return answer


async def _with_pins(contract: Contract, run: Run, answer: Answer, fan_out: FanOut) -> Answer:
    """The fan-out with a pin for each source that has none yet: a job file's, or an author's own."""
    given: tuple[Item | NewItem, ...] = run.items if fan_out.items is None else fan_out.items
    bare = {each.id: each.source for each in given if each.source and not is_pinned(each.source)}
    if not bare:
        return answer
    try:
        pins = await _in_thread(_pins, contract, bare, run.reader)
    except OSError as error:
        return evolve(answer, decided=HoldBack(code="items", reason=faulttext.clean(str(error))))
    return evolve(answer, decided=evolve(fan_out, pins=pins))


def _pins(contract: Contract, bare: dict[str, Source], reader: Reader | None) -> dict[str, Source]:
    found = {}
    for name, source in bare.items():
        as_whom = reader if source.requested else None
        try:
            found[name] = reach.run_as(as_whom, pinned, source, contract.pin, as_whom)
        except offers.NotRegularError:
            continue  # a folder is known by nothing: what it relies on in there is its author's to say
        except OSError as error:
            raise OSError(f"{name}: cannot read its source: {error.strerror or error}") from None
    return found


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    return await anyio.to_thread.run_sync(function, *args, abandon_on_cancel=True)
