"""`import resumed`: what authors and client programs import; lazy, nothing else."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from resumed.actors.worker.answers import (
        Accept,
        Done,
        Each,
        Fail,
        Goto,
        Hold,
        ItemDecision,
        JobDecision,
        NewItem,
        Next,
        RetryAfter,
    )
    from resumed.actors.worker.authors import step, workflow
    from resumed.actors.worker.views import Item, Job

__all__ = [
    "Accept",
    "Done",
    "Each",
    "Fail",
    "Goto",
    "Hold",
    "Item",
    "ItemDecision",
    "Job",
    "JobDecision",
    "NewItem",
    "Next",
    "RetryAfter",
    "step",
    "workflow",
]

_HOMES = {"step": "authors", "workflow": "authors", "Item": "views", "Job": "views"}


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
