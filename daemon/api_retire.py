"""The socket's methods by which jobs leave: out of the quarantine, back or for good; ended ones for good."""

from attrs import frozen

from resumed.schemas import durations
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import AsideView, EndedRow

from .api_jobs import JobAsked, ToldAnswer
from .desk import Desk
from .peers import Peer


@frozen(kw_only=True)
class AsideAnswer:
    """A job that is set aside, and every file of it looked at."""

    aside: AsideView


@frozen(kw_only=True)
class LeaveAsked:
    """A job, and why it leaves."""

    job: str
    reason: str = ""


@frozen(kw_only=True)
class EndedAsked:
    """With `older_than` (such as `30d`), only jobs that ended longer ago; with `jobs`, only those."""

    older_than: str = ""
    jobs: tuple[str, ...] = ()


@frozen(kw_only=True)
class EndedAnswer:
    """Ended jobs, those that ended first first; `count` is how many there are beside those listed too."""

    jobs: tuple[EndedRow, ...]
    count: int


@frozen(kw_only=True)
class PrunedAnswer:
    """The job that is gone."""

    job: str


async def aside(desk: Desk, _peer: Peer, asked: JobAsked) -> AsideAnswer | Refusal:
    """What is wrong with a job that is set aside, and where."""
    found = await desk.jobs.aside(asked.job)
    return found if isinstance(found, Refusal) else AsideAnswer(aside=found)


async def restore(desk: Desk, peer: Peer, asked: LeaveAsked) -> ToldAnswer | Refusal:
    """Bring a job that is set aside back to its place, once its files hold."""
    told = await desk.jobs.restore(asked.job, peer.person, asked.reason)
    return told if isinstance(told, Refusal) else ToldAnswer(told=told)


async def discard(desk: Desk, peer: Peer, asked: LeaveAsked) -> ToldAnswer | Refusal:
    """Give up a job that is set aside: its folder is removed, its id stays known for ever."""
    told = await desk.jobs.discard(asked.job, peer.person, asked.reason)
    return told if isinstance(told, Refusal) else ToldAnswer(told=told)


async def ended(desk: Desk, _peer: Peer, asked: EndedAsked) -> EndedAnswer:
    """The jobs that have ended: when, and how many bytes they keep."""
    try:
        seconds = durations.read(asked.older_than) if asked.older_than else 0.0
    except ValueError as error:
        raise FaultyInputError("cannot look for ended jobs", (f"{error} @ $.older_than",)) from None
    jobs, count = await desk.jobs.ended_before(seconds, asked.jobs)
    return EndedAnswer(jobs=jobs, count=count)


async def prune(desk: Desk, peer: Peer, asked: LeaveAsked) -> PrunedAnswer | Refusal:
    """Remove a job that has ended for good: its id stays known for ever."""
    refusal = await desk.jobs.prune(asked.job, peer.person, asked.reason)
    return refusal if refusal is not None else PrunedAnswer(job=asked.job)
