"""The socket's methods about the daemon itself: its status, its workflows, what it set aside."""

from attrs import frozen

from resumed.schemas.views import HouseView, Quarantined

from .desk import Desk, Reloaded, WorkflowRow
from .peers import Peer


@frozen(kw_only=True)
class Nothing:
    """No parameters."""


@frozen(kw_only=True)
class StatusAnswer:
    """How the daemon is."""

    house: HouseView


@frozen(kw_only=True)
class WorkflowsAnswer:
    """The workflows in force, and why other files are not."""

    workflows: tuple[WorkflowRow, ...]
    problems: tuple[str, ...]


@frozen(kw_only=True)
class QuarantinedAnswer:
    """The jobs set aside."""

    jobs: tuple[Quarantined, ...]


async def status(desk: Desk, _peer: Peer, _asked: Nothing) -> StatusAnswer:
    """How the daemon is."""
    return StatusAnswer(house=desk.jobs.house())


async def workflows(desk: Desk, _peer: Peer, _asked: Nothing) -> WorkflowsAnswer:
    """Which workflows a job file may name."""
    return WorkflowsAnswer(workflows=tuple(desk.shelf.rows()), problems=desk.shelf.problems)


async def quarantined(desk: Desk, _peer: Peer, _asked: Nothing) -> QuarantinedAnswer:
    """The jobs that were set aside, and why."""
    return QuarantinedAnswer(jobs=tuple(desk.jobs.quarantined()))


async def reload(desk: Desk, _peer: Peer, _asked: Nothing) -> Reloaded:
    """Reads the configuration and the workflows again; answers when that is done."""
    return await desk.reload()
