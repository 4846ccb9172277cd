"""All authority on one screen: method, the role it needs, what it takes and gives, who serves it.

A method that is not in the table does not exist. The interface text is drawn from the same table (`idl`).
"""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from . import api_files, api_house, api_jobs, api_past
from .api_files import LogAnswer, OutputAnswer, PieceAsked
from .api_house import Nothing, QuarantinedAnswer, StatusAnswer, WorkflowsAnswer
from .api_jobs import (
    ItemsAsked,
    JobAsked,
    ListAnswer,
    ListAsked,
    PauseAsked,
    ReasonAsked,
    RowAnswer,
    ShowAnswer,
    ShowAsked,
    SubmitAsked,
    ToldAnswer,
)
from .api_past import HistoryAnswer, HistoryAsked, WhyAnswer
from .desk import Reloaded
from .peers import Role


@frozen
class Method:
    """One method: `serve(desk, peer, asked)` answers once, or with `more` yields answers."""

    role: Role
    takes: type
    gives: type
    serve: Callable[..., Any]
    more: bool = False


METHODS = {
    "Status": Method(Role.VIEWER, Nothing, StatusAnswer, api_house.status),
    "Workflows": Method(Role.VIEWER, Nothing, WorkflowsAnswer, api_house.workflows),
    "Quarantined": Method(Role.VIEWER, Nothing, QuarantinedAnswer, api_house.quarantined),
    "List": Method(Role.VIEWER, ListAsked, ListAnswer, api_jobs.list_jobs),
    "Show": Method(Role.VIEWER, ShowAsked, ShowAnswer, api_jobs.show),
    "Why": Method(Role.VIEWER, JobAsked, WhyAnswer, api_past.why),
    "History": Method(Role.VIEWER, HistoryAsked, HistoryAnswer, api_past.history),
    "Watch": Method(Role.VIEWER, JobAsked, RowAnswer, api_jobs.watch, more=True),
    "Log": Method(Role.VIEWER, PieceAsked, LogAnswer, api_files.log),
    "Output": Method(Role.VIEWER, PieceAsked, OutputAnswer, api_files.output),
    "Reload": Method(Role.OPERATOR, Nothing, Reloaded, api_house.reload),
    "Submit": Method(Role.SUBMITTER, SubmitAsked, ToldAnswer, api_jobs.submit),
    "Pause": Method(Role.OPERATOR, PauseAsked, ToldAnswer, api_jobs.pause),
    "Resume": Method(Role.OPERATOR, ReasonAsked, ToldAnswer, api_jobs.resume),
    "Cancel": Method(Role.OPERATOR, ReasonAsked, ToldAnswer, api_jobs.cancel),
    "Retry": Method(Role.OPERATOR, ItemsAsked, ToldAnswer, api_jobs.retry),
    "Skip": Method(Role.OPERATOR, ItemsAsked, ToldAnswer, api_jobs.skip),
}
