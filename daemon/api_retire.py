"""The socket's methods by which jobs leave: out of the quarantine, back or for good; ended ones for good."""

from attrs import evolve, frozen

from resumed.actors.once import Ask
from resumed.schemas import codec, durations
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
    """A job, and why it leaves.

    Under a `request` id the same command is answered once, and so for seven days; another is a conflict.
    """

    job: str
    reason: str = ""
    request: str = ""


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
    """The job that is gone; `known` says that the same request had removed it before."""

    job: str
    known: bool = False


async def aside(desk: Desk, _peer: Peer, asked: JobAsked) -> AsideAnswer | Refusal:
    """What is wrong with a job that is set aside, and where."""
    found = await desk.jobs.aside(asked.job)
    return found if isinstance(found, Refusal) else AsideAnswer(aside=found)


def asking(method: str, peer: Peer, asked: LeaveAsked) -> Ask:
    """The command as it is remembered: the job by its whole id, however it was named."""
    content = codec.encode(evolve(asked, request="")).decode()
    return Ask(uid=peer.uid, request=asked.request, method=method, content=content)


async def restore(desk: Desk, peer: Peer, asked: LeaveAsked) -> ToldAnswer | Refusal:
    """Bring a job that is set aside back to its place, once its files hold."""
    told = await desk.jobs.restore(asked.job, peer.person, asked.reason, asking("Restore", peer, asked))
    return told if isinstance(told, Refusal) else ToldAnswer(told=told)


async def discard(desk: Desk, peer: Peer, asked: LeaveAsked) -> ToldAnswer | Refusal:
    """Give up a job that is set aside: its folder is removed, its id stays known for ever."""
    told = await desk.jobs.discard(asked.job, peer.person, asked.reason, asking("Discard", peer, asked))
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
    found = await desk.jobs.prune(asked.job, peer.person, asked.reason, asking("Prune", peer, asked))
    return found if isinstance(found, Refusal) else PrunedAnswer(job=asked.job, known=found)
