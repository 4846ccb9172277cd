"""The socket's methods that hand out a job's bytes, piece by piece: what its programs said and made."""

import base64
import os
import shlex
from pathlib import Path

from anyio import to_thread
from attrs import frozen

from resumed.schemas.job import ItemState
from resumed.schemas.refusal import Refusal

from .api_jobs import FINAL, no_item
from .desk import Desk
from .peers import Peer

PIECE = 256 * 1024
"""Bytes in one answer; as base64 they stay far below the bound of a message."""


@frozen(kw_only=True)
class PieceAsked:
    """A job, one of its items, and where in its bytes to begin."""

    job: str
    item: str = ""
    offset: int = 0


@frozen(kw_only=True)
class LogAsked:
    """A job, one of its items ("" for the job's own steps), and where in its bytes to begin.

    A negative offset counts from the end. With `more` it is followed until the item, or else the job, has
    ended; with `all` that goes for whatever was or will be started of the job, each from its beginning.
    """

    job: str
    item: str = ""
    offset: int = 0
    all: bool = False


@frozen(kw_only=True)
class LogAnswer:
    """A piece of an item's log: `next` is where the following one begins.

    `ended` says that nothing more is there now and that no try of the item is under way.
    """

    item: str
    content: str
    next: int
    ended: bool


@frozen(kw_only=True)
class OutputAnswer:
    """A piece of an item's accepted output, whose whole has this size and sha256."""

    content: str
    next: int
    ended: bool
    size: int
    sha256: str


async def log(desk: Desk, _peer: Peer, asked: LogAsked) -> LogAnswer | Refusal:
    """What an item's programs said, as base64, from an offset on."""
    if asked.all:
        return Refusal(code="needs_more", reason="the logs of all items are told to a call with `more` only")
    path = await desk.jobs.log_file(asked.job, asked.item)
    start, content = asked.offset, b""
    if path is not None:
        start, content = await to_thread.run_sync(read_piece, path, start)
    after = max(0, start) + len(content)
    if content:
        return LogAnswer(item=asked.item, content=_spell(content), next=after, ended=False)
    state = await _state_of(desk, asked.job, asked.item)
    if isinstance(state, Refusal):
        return state
    over = state is not ItemState.IN_PROGRESS
    return LogAnswer(item=asked.item, content="", next=after, ended=over)


async def output(desk: Desk, _peer: Peer, asked: PieceAsked) -> OutputAnswer | Refusal:
    """An item's accepted output, as base64, from an offset on."""
    job = asked.job
    piece = await desk.jobs.output(job, asked.item, asked.offset, PIECE)
    if piece is None:
        if isinstance(state := await _state_of(desk, job, asked.item), Refusal):
            return state
        return Refusal(
            code="no_output",
            reason=f"item {asked.item} of job {job} has no accepted output",
            commands=(f"resumectl show {job}", f"resumectl logs {job} {shlex.quote(asked.item)}"),
        )
    after = piece.start + len(piece.content)
    return OutputAnswer(
        content=_spell(piece.content),
        next=after,
        ended=after == piece.size,
        size=piece.size,
        sha256=piece.sha256,
    )


async def _state_of(desk: Desk, job: str, item: str) -> ItemState | Refusal:
    view = await desk.jobs.view(job)
    if isinstance(view, Refusal):
        return view
    if item == "":  # the job's own steps: they may go on until the job has ended
        return ItemState.DONE if view.row.status in FINAL else ItemState.IN_PROGRESS
    return next((ItemState(each.state) for each in view.items if each.id == item), no_item(job, item))


def _spell(piece: bytes) -> str:
    return base64.b64encode(piece).decode()


def read_piece(path: Path, offset: int) -> tuple[int, bytes]:
    """Where the bytes begin, and the bytes, none when the file is gone; a link is not followed.

    A negative `offset` counts from the end. A file that ends before `offset` was started anew since: it is
    read from its beginning.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return offset, b""
    try:
        size = os.fstat(descriptor).st_size
        start = max(0, size + offset) if offset < 0 else offset if offset <= size else 0
        return start, os.pread(descriptor, PIECE, start)
    finally:
        os.close(descriptor)
