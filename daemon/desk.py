"""What the socket's methods and the incoming folder may ask for: the supervisor's and the shelf's face."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from attrs import frozen

from resumed.actors import lookback
from resumed.actors.finder import Located
from resumed.actors.once import Ask, Once
from resumed.actors.outputs import Piece
from resumed.actors.placing import Placement
from resumed.actors.printed import Printed
from resumed.actors.sight import EVERYTHING, Sight, Whose
from resumed.schemas.askviews import AskRow, AskView, ToolRow
from resumed.schemas.events import Request
from resumed.schemas.job import Artifact, Person
from resumed.schemas.limits import Limits
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import (
    AsideView,
    EndedRow,
    HouseView,
    JobRow,
    JobView,
    PreviewView,
    Quarantined,
    Told,
    WhyView,
)
from resumed.schemas.workflow import Contract, Programs

from .grants import Permit
from .growth import Ear, Growth


@frozen(kw_only=True)
class InputRow:
    """One input that a workflow declares."""

    name: str
    type: str
    required: bool


@frozen(kw_only=True)
class WorkflowRow:
    """One line of `resumectl workflows`."""

    name: str
    version: int
    enabled: bool
    description: str
    steps: tuple[str, ...]
    inputs: tuple[InputRow, ...]
    items_from: str


class Jobs(Protocol):
    """The supervisor, as the outside sees it."""

    async def submit(
        self,
        raw: bytes,
        *,
        name: str,
        requester: Person,
        via: str,
        may: Callable[[str], bool],
        request: str = "",
        again: bool = False,
    ) -> Told | Refusal:
        """Admits a job file of a workflow that `may` lets pass; FaultyInputError for a bad one."""

    async def rehearse(
        self, raw: bytes, *, name: str, requester: Person, may: Callable[[str], bool]
    ) -> PreviewView | Refusal:
        """What a job file would become; FaultyInputError for a bad one."""

    async def tell(self, job: str, request: Request) -> Told | Refusal:
        """Carries a request to a job; CommitError when its outcome is unknown."""

    def inbox(self, sight: Sight) -> list[tuple[AskRow, Whose]]:
        """What people are asked by the jobs in sight, and whose those are."""

    async def asked_of(self, job: str, subject: str) -> AskView | Refusal:
        """One thing that a job asks, whole."""

    async def revision(self, job: str, subject: str, text: str) -> Artifact | Refusal:
        """The edited text of a draft, durable; CommitError when the disk refused."""

    async def tools(self) -> tuple[tuple[ToolRow, ...], tuple[str, ...]]:
        """What the workflows in force may write to other systems; why that cannot be told of others."""

    async def locate(self, name: str, sight: Sight) -> Located | Refusal:
        """The job behind an id or a unique prefix, among those in sight."""

    async def placed(self, pid: int, start: int | None, uid: int) -> Placement:
        """Where a process stands to the process trees of attempts."""

    def rows(self, sight: Sight) -> list[JobRow]:
        """The open jobs in sight, oldest first."""

    async def ended(self, sight: Sight) -> list[JobRow]:
        """The jobs in sight that ended last."""

    def ended_since(self, since: int) -> int:
        """How many jobs ended at that wall instant or later, of the last days."""

    async def view(self, job: str) -> JobView | Refusal:
        """One job, whole; why not, when it cannot be read."""

    async def contract(self, job: str) -> tuple[Contract, str] | Refusal:
        """The workflow pinned in a job, and its digest."""

    async def why(self, job: str) -> WhyView | Refusal:
        """Why a job stands as it does."""

    async def history(self, job: str, after: int, item: str) -> lookback.Piece | Refusal:
        """A piece of a job's past."""

    async def aside(self, job: str) -> AsideView | Refusal:
        """What is wrong with a job that is set aside."""

    async def restore(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> Told | Refusal:
        """Brings a job that is set aside back; CommitError when the disk refused."""

    async def discard(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> Told | Refusal:
        """Gives up a job that is set aside; CommitError when the disk refused."""

    async def ended_before(self, seconds: float, names: tuple[str, ...]) -> tuple[tuple[EndedRow, ...], int]:
        """Jobs that ended longer ago than that, oldest first, and how many there are in all."""

    async def left(self, uid: int, request: str, name: str) -> str:
        """The job of that name that is gone for good by that very request of the user; else nothing."""

    async def prune(self, job: str, by: Person, reason: str, ask: Ask | None = None) -> bool | Refusal:
        """Removes a job that has ended; True where that request had done so; why not, when it must stay."""

    @property
    def once(self) -> Once:
        """What is remembered of commands that no job keeps."""
        ...

    async def log_file(self, job: str, item: str) -> Path | None:
        """Where an item's programs wrote what they said."""

    async def printed(self, job: str, only: str | None) -> Printed | Refusal | None:
        """Where the programs of a job's items, or of one of them, print; None without such an item."""

    async def output(self, job: str, item: str, offset: int, most: int) -> Piece | None:
        """A piece of an item's accepted output: `most` bytes from `offset` on, or what there is."""

    async def quarantined(self, sight: Sight) -> list[Quarantined]:
        """The jobs in sight that are set aside."""

    def house(self, sight: Sight = EVERYTHING) -> HouseView:
        """The daemon itself; open jobs are counted as far as they are in sight."""

    async def changed(self, job: str, sequence: int) -> JobRow | None:
        """Returns when the job's row has moved past `sequence`, or the job has ended or vanished."""


class Shelf(Protocol):
    """The workflow files, as the socket sees them."""

    def rows(self) -> list[WorkflowRow]:
        """The workflows in force, by name."""

    def allowed(self, name: str) -> Limits | None:
        """What a workflow allows its jobs today; None when it is not in force."""

    def declared(self, name: str) -> Programs | None:
        """What the workflow's file says, enabled or not; None when none of that name can be read."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Why files on the shelf are not in force, one sentence each."""


@frozen(kw_only=True)
class Reloaded:
    """What took effect when everything was read again, and what did not, one sentence each."""

    said: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    known: bool = False
    """True when the same request id was answered before: this is that first answer."""


async def _nobody_looks(_uid: int) -> Permit | None:
    return None


async def _nothing_again() -> Reloaded:
    return Reloaded()


@frozen(kw_only=True)
class Desk:
    """All that a method may reach."""

    jobs: Jobs
    shelf: Shelf
    reload: Callable[[], Awaitable[Reloaded]] = _nothing_again
    """Reads the configuration and the workflows again."""
    permit_of: Callable[[int], Awaitable[Permit | None]] = _nobody_looks
    """What a user may do by the grants of now, in the groups the host knows it in; None: nobody knows."""
    growth: Growth | None = None
    """Tells when logs grow."""

    @contextmanager
    def follow(self, folder: Path) -> Iterator[Ear]:
        """An ear for the files of a folder."""
        if self.growth is None:
            yield Ear(heard=False, names=None)
            return
        with self.growth.follow(folder) as ear:
            yield ear
