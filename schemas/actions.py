"""What the machine wants done; found by `due` alone, keyed by (kind, id, n) with n a durable number."""

from enum import StrEnum

from attrs import frozen


class ActionKind(StrEnum):
    """The kinds of action there are."""

    START = "start"
    """Wants a slot: start the unit's next try (n = its number)."""
    STOP = "stop"
    """End the running try n of the unit, and know its tree is gone."""
    END_ATTEMPT = "end_attempt"
    """Close the attempt row (n = its epoch): nothing of it runs and nothing is due."""


@frozen
class Action:
    """One thing that is due. `id` is the unit."""

    kind: ActionKind
    id: str
    n: int
