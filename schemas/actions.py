"""What the machine wants done; found by `due` alone, keyed by (kind, id, n) with n a durable number."""

from enum import StrEnum

from attrs import frozen


class ActionKind(StrEnum):
    """The kinds of action there are."""

    START = "start"
    """A claim on a slot: the unit's next try (n = its number) could start."""
    RUN = "run"
    """Try n of the unit is open: have it run."""
    STOP = "stop"
    """Try n of the unit is open and marked: end it, and know its tree is gone."""
    ERRAND = "errand"
    """A claim on a slot: errand n of the effect could start; `id` is its name as `schemas.ledger` forms it.
    Once it is open it is run and stopped like a try."""
    PUBLISH = "publish"
    """The unit's output is staged: give it its name (attempt n), and say what came of it."""
    WITHDRAW = "withdraw"
    """The unit's staged output is not wanted: take it away (attempt n), unless it has its name already."""


@frozen
class Action:
    """One thing that is due. `id` is the unit."""

    kind: ActionKind
    id: str
    n: int
