"""The socket's methods that look at jobs and carry people's requests to them."""

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from attrs import evolve, frozen

from resumed.schemas import control, limits, times
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.events import Cancel, Extend, Pause, Reopen, Request, Resume, Retry, Skip
from resumed.schemas.job import Status
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import ItemRow, JobRow, JobView, Told

from .desk import Desk
from .grants import Role
from .peers import Peer

FINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELED, Status.EXPIRED})
MOST_FIELDS = 400
"""Bytes of an item's, or a row's, names of fields, numbers and digest in a message."""
MOST_ESCAPED = 6
"""Bytes that one character may take in a message."""
NO_ITEM = "no_such_item"


@frozen(kw_only=True)
class SubmitAsked:
    """A job file's text, and the name it is spoken of by (one that ends in `.toml` is TOML).

    Under a `request` id the same text is answered once, and the same ever after, as long as its job is there;
    another text is a conflict. With `again` it is deliberately another job than the same text was before.
    """

    file: str
    name: str = ""
    again: bool = False
    request: str = ""


@frozen(kw_only=True)
class ListAsked:
    """With `all`, also the jobs that ended last; `since` (wall microseconds) asks how many ended since.

    For that, no more than the last two days are known.
    """

    all: bool = False
    since: int = 0


@frozen(kw_only=True)
class JobAsked:
    """A job's id or a unique prefix of it."""

    job: str


@frozen(kw_only=True)
class ShowAsked:
    """A job's id or a unique prefix of it; which of its items to begin with, and how many (0: what fits)."""

    job: str
    offset: int = 0
    limit: int = 0


@frozen(kw_only=True)
class ReasonAsked:
    """A job, and why; with a `record`, only if the job still stands at it.

    Under a `request` id the same command is answered once, and so for seven days; another is a conflict.
    """

    job: str
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class PauseAsked:
    """A job, and why; with `now`, what runs is stopped too. `record` and `request` as for Resume."""

    job: str
    reason: str = ""
    record: int = 0
    request: str = ""
    now: bool = False


@frozen(kw_only=True)
class ItemsAsked:
    """A job and some of its items (none named: all that failed or are held), and why.

    `record` and `request` as for Resume.
    """

    job: str
    items: tuple[str, ...] = ()
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class ReopenAsked:
    """A job, those of its items that shall begin again, and why: a reason that is kept. Both must be there.

    `record` and `request` as for Resume.
    """

    job: str
    items: tuple[str, ...]
    reason: str
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class ExtendAsked:
    """A job, the limits to raise and to what ("" or 0: not this one), and why.

    `usd` is decimal text, `active_time` a duration, `deadline` a moment with its zone or a span from now.
    `record` and `request` as for Resume.
    """

    job: str
    usd: str = ""
    tokens: int = 0
    turns: int = 0
    active_time: str = ""
    deadline: str = ""
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class ListAnswer:
    """Rows, oldest first; `ended` are the newest of those that ended, when they were asked for."""

    jobs: tuple[JobRow, ...]
    ended: tuple[JobRow, ...]
    ended_count: int
    """How many jobs have ended in all."""
    ended_since: int
    """How many of them since the instant asked for."""
    you: str
    """Who asks, as jobs name their owners."""


@frozen(kw_only=True)
class ShowAnswer:
    """One job with a piece of its items: `next` is where the following piece begins, 0 after the last."""

    job: JobView
    next: int


@frozen(kw_only=True)
class RowAnswer:
    """A job's row as it is now."""

    row: JobRow


@frozen(kw_only=True)
class ToldAnswer:
    """What a request did."""

    told: Told


async def submit(desk: Desk, peer: Peer, asked: SubmitAsked) -> ToldAnswer | Refusal:
    """Admit a job file; the answer comes when the job is durable."""
    told = await desk.jobs.submit(
        asked.file.encode(),
        name=asked.name or "the job file",
        requester=peer.person,
        via="socket",
        may=lambda workflow: peer.permit.of_workflow(Role.SUBMITTER, workflow),
        request=asked.request,
        again=asked.again,
    )
    return told if isinstance(told, Refusal) else ToldAnswer(told=told)


async def list_jobs(desk: Desk, peer: Peer, asked: ListAsked) -> ListAnswer:
    """The open jobs that the peer may see; with `all`, also those that ended last."""
    ended = await desk.jobs.ended(peer.permit) if asked.all else []
    jobs = tuple(desk.jobs.rows(peer.permit))
    return ListAnswer(
        jobs=jobs,
        ended=tuple(ended),
        ended_count=desk.jobs.house().ended,
        ended_since=desk.jobs.ended_since(asked.since),
        you=peer.person.name,
    )


async def list_in_pieces(
    desk: Desk, peer: Peer, asked: ListAsked
) -> AsyncGenerator[tuple[ListAnswer, bool], None]:
    """The same in as many answers as it takes: open jobs first, then those that ended."""
    whole = await list_jobs(desk, peer, asked)
    pieces = [(piece, ()) for piece in _pieces(whole.jobs)] + [((), piece) for piece in _pieces(whole.ended)]
    for place, (jobs, ended) in enumerate(pieces or [((), ())]):
        goes_on = place + 1 < len(pieces)
        yield evolve(whole, jobs=jobs, ended=ended), goes_on


def _pieces(rows: tuple[JobRow, ...]) -> Iterator[tuple[JobRow, ...]]:
    """Rows in their order, as many at a time as one message surely holds."""
    piece: list[JobRow] = []
    room = control.MAX_MESSAGE // 2
    for row in rows:
        size = MOST_FIELDS + MOST_ESCAPED * sum(
            len(text) for text in (row.id, row.workflow, row.title, row.owner, row.needs)
        )
        if piece and size > room:
            yield tuple(piece)
            piece, room = [], control.MAX_MESSAGE // 2
        piece.append(row)
        room -= size
    if piece:
        yield tuple(piece)


async def show(desk: Desk, _peer: Peer, asked: ShowAsked) -> ShowAnswer | Refusal:
    """One job, its items from `offset` on as far as they fit, and what may be done with it now."""
    view = await desk.jobs.view(asked.job)
    if isinstance(view, Refusal):
        return view
    start = max(0, asked.offset)
    piece = _fitting(view.items[start : start + asked.limit if asked.limit > 0 else None])
    after = start + len(piece)
    return ShowAnswer(job=evolve(view, items=piece), next=after if after < len(view.items) else 0)


def _fitting(items: tuple[ItemRow, ...]) -> tuple[ItemRow, ...]:
    """The first of these items, as many as one message surely holds beside the job's own words."""
    room = control.MAX_MESSAGE // 2
    for place, item in enumerate(items):
        room -= MOST_FIELDS + MOST_ESCAPED * (len(item.id) + len(item.at) + len(item.code) + len(item.reason))
        if room < 0 and place > 0:
            return items[:place]
    return items


async def watch(
    desk: Desk, _peer: Peer, asked: JobAsked
) -> AsyncGenerator[tuple[RowAnswer | Refusal, bool], None]:
    """The job's row now and after each change, until the job has ended; changes in between are left out."""
    job = asked.job
    row = await _row(desk, job)
    while not isinstance(row, Refusal):
        yield RowAnswer(row=row), row.status not in FINAL
        if row.status in FINAL:
            return
        row = await desk.jobs.changed(job, row.sequence) or await _row(desk, job)
    yield row, False


async def _row(desk: Desk, job: str) -> JobRow | Refusal:
    view = await desk.jobs.view(job)
    return view if isinstance(view, Refusal) else view.row


async def pause(desk: Desk, peer: Peer, asked: PauseAsked) -> ToldAnswer | Refusal:
    """Start nothing new of a job; with `now`, also stop what runs."""
    return await _tell(desk, peer, asked, Pause, now=asked.now)


async def resume(desk: Desk, peer: Peer, asked: ReasonAsked) -> ToldAnswer | Refusal:
    """Go on with a paused or held job."""
    return await _tell(desk, peer, asked, Resume)


async def cancel(desk: Desk, peer: Peer, asked: ReasonAsked) -> ToldAnswer | Refusal:
    """End a job: nothing new starts, what runs is stopped."""
    return await _tell(desk, peer, asked, Cancel)


async def retry(desk: Desk, peer: Peer, asked: ItemsAsked) -> ToldAnswer | Refusal:
    """Give failed or held items a fresh set of tries."""
    return await _tell(desk, peer, asked, Retry, items=asked.items)


async def skip(desk: Desk, peer: Peer, asked: ItemsAsked) -> ToldAnswer | Refusal:
    """Leave items out and go on with the others."""
    return await _tell(desk, peer, asked, Skip, items=asked.items)


async def reopen(desk: Desk, peer: Peer, asked: ReopenAsked) -> ToldAnswer | Refusal:
    """Begin items again that have been settled, also those that are done."""
    return await _tell(desk, peer, asked, Reopen, items=asked.items)


async def extend(desk: Desk, peer: Peer, asked: ExtendAsked) -> ToldAnswer | Refusal:
    """Let a job use more than so far, within what its workflow allows, now or when the job came in."""
    row = await _row(desk, asked.job)
    if isinstance(row, Refusal):
        return row
    readers: dict[str, Callable[[object], Any]] = {
        "usd": limits.money,
        "tokens": limits.count,
        "turns": limits.count,
        "active_time": limits.span,
        "deadline": times.canonical,
    }
    given: dict[str, Any] = {}
    problems: list[str] = []
    for key, read in readers.items():
        if value := getattr(asked, key):
            try:
                given[key] = read(value)
            except ValueError as error:
                problems.append(f"{error} @ $.{key}")
    if problems:
        raise FaultyInputError(f"cannot extend {asked.job}", tuple(problems))
    return await _tell(desk, peer, asked, Extend, allowed=desk.shelf.allowed(row.workflow), **given)


async def _tell(
    desk: Desk,
    peer: Peer,
    asked: ReasonAsked | PauseAsked | ItemsAsked | ReopenAsked | ExtendAsked,
    kind: Callable[..., Request],
    **more: object,
) -> ToldAnswer | Refusal:
    request = kind(by=peer.person, reason=asked.reason, record=asked.record, request=asked.request, **more)
    told = await desk.jobs.tell(asked.job, request)
    return told if isinstance(told, Refusal) else ToldAnswer(told=told)


def no_item(job: str, item: str) -> Refusal:
    """What is said of an item that the job does not have."""
    return Refusal(code=NO_ITEM, reason=f"job {job} has no item {item}", commands=(f"resumectl show {job}",))
