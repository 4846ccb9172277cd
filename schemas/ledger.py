"""What other systems accepted and who allowed it: effects, approvals, tool contracts, waits and questions.

The stored format carries these tables from its first level; the law that fills them comes with effects.
"""

from enum import StrEnum

from attrs import frozen

from .instant import Instant


class EffectState(StrEnum):
    """Where one write to another system stands."""

    PROPOSED = "proposed"
    DISPATCHING = "dispatching"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"


@frozen(kw_only=True)
class Effect:
    """One write to another system: the intent, and the outcome that only send, look-up or settle write."""

    id: str
    state: EffectState
    item: str
    business_object: str
    operation_key: str
    fingerprint: str
    tool: str
    target: str
    arguments: str
    expected_result: str = ""
    ordinal: int = 0
    not_before: Instant | None = None
    response: str = ""
    reference: str = ""
    confirmed_by: str = ""


@frozen(kw_only=True)
class ToolContract:
    """What an author states about an effect; spans of time are seconds."""

    tool: str
    version: int
    target: str
    approval: str = ""
    key_lifetime: float | None = None
    look_up: bool = False
    absent_is_final: bool = False
    in_flight: float | None = None
    unclear_owner: str = ""
    undo: str = ""
    irreversible: bool = False


@frozen(kw_only=True)
class Approval:
    """One decision on one effect fingerprint."""

    id: str
    effect: str
    fingerprint: str
    reviewer: str
    uid: int
    groups: tuple[str, ...]
    via: str
    decision: str
    scope: str
    policy_version: str
    given: Instant
    valid_until: Instant | None = None
    reason: str = ""
    shown: str = ""


class WaitKind(StrEnum):
    """What a job can wait for as a whole (DESIGN.md section 2)."""

    APPROVAL = "approval"
    REVIEW = "review"
    QUESTION = "question"
    TIMER = "timer"
    """The instant in `deadline`."""
    EVENT = "event"
    RATE_LIMIT = "rate_limit"
    ASYNC_JOB = "async_job"
    BREAKER = "breaker"
    """Failures in a row: one try goes ahead alone at the instant in `deadline`."""
    OTHER_JOB = "other_job"
    """The job named in `event`, until it has completed."""


class Obstacle(StrEnum):
    """Why another job will not complete by itself."""

    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"
    UNKNOWN = "unknown"
    """There is no job of that name, and there was none."""
    SET_ASIDE = "set_aside"
    """Its files cannot be read as they are."""
    CIRCLE = "circle"
    """It waits, itself or by way of others, for the job that waits for it."""


@frozen(kw_only=True)
class Wait:
    """Why a job is not running and what wakes it."""

    id: str
    kind: WaitKind
    event: str = ""
    deadline: Instant | None = None
    lease: Instant | None = None
    approver: str = ""
    owner: str = ""
    cancellation_rule: str = ""
    obstacle: Obstacle | None = None
    """Why what it waits for will not come, as far as the job was told."""


@frozen(kw_only=True)
class Question:
    """An open question to a person."""

    id: str
    text: str
    choices: tuple[str, ...] = ()
    asked_of: str = ""
    deadline: Instant | None = None
    answer: str = ""
    answered_by: str = ""
    answered: Instant | None = None
