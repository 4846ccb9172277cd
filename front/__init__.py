"""`import resumed`: what authors and client programs import; lazy, nothing else."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resumed.actors.worker.answers import (
        Accept,
        Ask,
        Done,
        Each,
        Fail,
        Goto,
        Hold,
        ItemDecision,
        JobDecision,
        NewItem,
        Next,
        Perform,
        RetryAfter,
        Review,
    )
    from resumed.actors.worker.authors import step, workflow
    from resumed.actors.worker.calls import Call
    from resumed.actors.worker.effects import by, effect
    from resumed.actors.worker.outcomes import (
        Absent,
        AnyOutcome,
        Changed,
        Denied,
        Landed,
        Lapsed,
        LookUpAnswer,
        NotSent,
        Refused,
        SendAnswer,
        SentBack,
        Unlanded,
        Unsure,
        Withdrawn,
    )
    from resumed.actors.worker.views import Artifact, Item, Job

__all__ = [
    "Absent",
    "Accept",
    "AnyOutcome",
    "Artifact",
    "Ask",
    "Call",
    "Changed",
    "Denied",
    "Done",
    "Each",
    "Fail",
    "Goto",
    "Hold",
    "Item",
    "ItemDecision",
    "Job",
    "JobDecision",
    "Landed",
    "Lapsed",
    "LookUpAnswer",
    "NewItem",
    "Next",
    "NotSent",
    "Perform",
    "Refused",
    "RetryAfter",
    "Review",
    "SendAnswer",
    "SentBack",
    "Unlanded",
    "Unsure",
    "Withdrawn",
    "by",
    "effect",
    "step",
    "workflow",
]

_HOMES = {
    "Absent": "outcomes",
    "AnyOutcome": "outcomes",
    "Artifact": "views",
    "Call": "calls",
    "Changed": "outcomes",
    "Denied": "outcomes",
    "Item": "views",
    "Job": "views",
    "Landed": "outcomes",
    "Lapsed": "outcomes",
    "LookUpAnswer": "outcomes",
    "NotSent": "outcomes",
    "Refused": "outcomes",
    "SendAnswer": "outcomes",
    "SentBack": "outcomes",
    "Unlanded": "outcomes",
    "Unsure": "outcomes",
    "Withdrawn": "outcomes",
    "by": "effects",
    "effect": "effects",
    "step": "authors",
    "workflow": "authors",
}


def __getattr__(name: str) -> object:
    """Load a name when it is first used, so that `resumectl` and tools that only import us start light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(f"resumed.actors.worker.{_HOMES.get(name, 'answers')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
