"""All authority on one screen: method, the role it needs and over what, what it takes and gives, its server.

A method that is not in the table does not exist. The interface text is drawn from the same table (`idl`).
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from attrs import frozen

from . import (
    api_asks,
    api_contract,
    api_files,
    api_house,
    api_jobs,
    api_logs,
    api_past,
    api_preview,
    api_retire,
)
from .api_asks import (
    AnswerAsked,
    ApproveAsked,
    AskedAnswer,
    DenyAsked,
    InboxAnswer,
    InboxAsked,
    RevokeAsked,
    SettleAsked,
    SubjectAsked,
    ToolsAnswer,
)
from .api_contract import ContractAnswer
from .api_files import LogAnswer, LogAsked, OutputAnswer, PieceAsked
from .api_house import Nothing, QuarantinedAnswer, ReloadAsked, StatusAnswer, WorkflowsAnswer
from .api_jobs import (
    ExtendAsked,
    ItemsAsked,
    JobAsked,
    ListAnswer,
    ListAsked,
    PauseAsked,
    ReasonAsked,
    ReopenAsked,
    RowAnswer,
    ShowAnswer,
    ShowAsked,
    SubmitAsked,
    ToldAnswer,
)
from .api_past import HistoryAnswer, HistoryAsked, WhyAnswer
from .api_preview import PreviewAnswer, PreviewAsked
from .api_retire import AsideAnswer, EndedAnswer, EndedAsked, LeaveAsked, PrunedAnswer
from .desk import Reloaded
from .grants import Role


class Over(StrEnum):
    """Over what a peer must have the role."""

    ANY = "any"
    """Over anything at all: what is shown is cut to what the peer may see."""
    FILE = "file"
    """Over the workflow that the job file names; asked again at the door."""
    JOB = "job"
    """Over the job that `job` names. Whoever handed a job in may always look at it."""
    ALL = "all"
    """Over every job: what is set aside has no workflow that could be asked for."""


@frozen
class Method:
    """One method: `serve(desk, peer, asked)` answers once, `stream(desk, peer, asked)` a call with `more`.

    A stream yields (answer, whether it goes on). Without `serve` the method needs `more`. Where the role is
    needed over a job, `asked.job` is that job's whole id by then.
    """

    role: Role
    over: Over
    takes: type
    gives: type
    serve: Callable[..., Any] | None
    stream: Callable[..., Any] | None = None
    aside: bool = False
    """Also about a job that is set aside; the others are answered with why it is."""
    leaves: bool = False
    """Afterwards there is no job of that name any more."""
    also: tuple[Role, ...] = ()
    """Roles that do as well."""
    own: bool = False
    """Whoever handed the job in may, too, whatever its roles: a no to what it asked for itself."""
    people: bool = False
    """People decide so about effects, drafts and questions: no process of a job may, of whichever job."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles, of which one is needed."""
        return (self.role, *self.also)

    @property
    def doc(self) -> Callable[..., Any]:
        """What says in a sentence what the method does."""
        said = self.serve or self.stream
        assert said is not None
        return said


OPERATOR = (Role.OPERATOR,)

METHODS = {
    "Status": Method(Role.VIEWER, Over.ANY, Nothing, StatusAnswer, api_house.status),
    "Workflows": Method(Role.VIEWER, Over.ANY, Nothing, WorkflowsAnswer, api_house.workflows),
    "Quarantined": Method(Role.VIEWER, Over.ANY, Nothing, QuarantinedAnswer, api_house.quarantined),
    "List": Method(Role.VIEWER, Over.ANY, ListAsked, ListAnswer, api_jobs.list_jobs, api_jobs.list_in_pieces),
    "Show": Method(Role.VIEWER, Over.JOB, ShowAsked, ShowAnswer, api_jobs.show),
    "ShowContract": Method(Role.VIEWER, Over.JOB, JobAsked, ContractAnswer, api_contract.contract),
    "Why": Method(Role.VIEWER, Over.JOB, JobAsked, WhyAnswer, api_past.why, aside=True),
    "History": Method(Role.VIEWER, Over.JOB, HistoryAsked, HistoryAnswer, api_past.history, aside=True),
    "Watch": Method(Role.VIEWER, Over.JOB, JobAsked, RowAnswer, None, api_jobs.watch),
    "Log": Method(Role.VIEWER, Over.JOB, LogAsked, LogAnswer, api_files.log, api_logs.follow),
    "Output": Method(Role.VIEWER, Over.JOB, PieceAsked, OutputAnswer, api_files.output),
    "Aside": Method(Role.VIEWER, Over.JOB, JobAsked, AsideAnswer, api_retire.aside, aside=True),
    "Restore": Method(Role.OPERATOR, Over.JOB, LeaveAsked, ToldAnswer, api_retire.restore, aside=True),
    "Discard": Method(
        Role.OPERATOR, Over.JOB, LeaveAsked, ToldAnswer, api_retire.discard, aside=True, leaves=True
    ),
    "Ended": Method(Role.VIEWER, Over.ALL, EndedAsked, EndedAnswer, api_retire.ended),
    "Prune": Method(Role.OPERATOR, Over.JOB, LeaveAsked, PrunedAnswer, api_retire.prune, leaves=True),
    "Reload": Method(Role.OPERATOR, Over.ALL, ReloadAsked, Reloaded, api_house.reload),
    "Submit": Method(Role.SUBMITTER, Over.FILE, SubmitAsked, ToldAnswer, api_jobs.submit),
    "Preview": Method(Role.SUBMITTER, Over.FILE, PreviewAsked, PreviewAnswer, api_preview.preview),
    "Inbox": Method(Role.VIEWER, Over.ANY, InboxAsked, InboxAnswer, api_asks.inbox),
    "Asked": Method(Role.VIEWER, Over.JOB, SubjectAsked, AskedAnswer, api_asks.ask),
    "Tools": Method(Role.VIEWER, Over.ANY, Nothing, ToolsAnswer, api_asks.tools),
    "Approve": Method(Role.APPROVER, Over.JOB, ApproveAsked, ToldAnswer, api_asks.approve, people=True),
    "Deny": Method(Role.APPROVER, Over.JOB, DenyAsked, ToldAnswer, api_asks.deny, own=True, people=True),
    "SendBack": Method(
        Role.APPROVER, Over.JOB, DenyAsked, ToldAnswer, api_asks.send_back, own=True, people=True
    ),
    "Revoke": Method(
        Role.APPROVER, Over.JOB, RevokeAsked, ToldAnswer, api_asks.revoke, also=OPERATOR, people=True
    ),
    # Whom a question is put to may have no other role than to see it; who that is, the law judges.
    "Answer": Method(Role.VIEWER, Over.JOB, AnswerAsked, ToldAnswer, api_asks.answer, people=True),
    "Settle": Method(Role.OPERATOR, Over.JOB, SettleAsked, ToldAnswer, api_asks.settle, people=True),
    "Pause": Method(Role.OPERATOR, Over.JOB, PauseAsked, ToldAnswer, api_jobs.pause),
    "Resume": Method(Role.OPERATOR, Over.JOB, ReasonAsked, ToldAnswer, api_jobs.resume),
    "Cancel": Method(Role.OPERATOR, Over.JOB, ReasonAsked, ToldAnswer, api_jobs.cancel),
    "Retry": Method(Role.OPERATOR, Over.JOB, ItemsAsked, ToldAnswer, api_jobs.retry),
    "Reopen": Method(Role.OPERATOR, Over.JOB, ReopenAsked, ToldAnswer, api_jobs.reopen),
    "Extend": Method(Role.OPERATOR, Over.JOB, ExtendAsked, ToldAnswer, api_jobs.extend),
    "Skip": Method(Role.OPERATOR, Over.JOB, ItemsAsked, ToldAnswer, api_jobs.skip),
}
