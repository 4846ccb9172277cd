"""What other systems accepted and who allowed it: effects, approvals, tool contracts, waits and questions.

Intent and outcome are separate fields: an intent is written once, when the effect is proposed, and the
outcome by send, look-up or settle alone.
"""

from enum import StrEnum

from attrs import frozen

from .approvals import ApprovalRule, Gate
from .instant import Instant
from .job import Artifact, Hold, Source, StopReason


class EffectState(StrEnum):
    """Where one write to another system stands."""

    PROPOSED = "proposed"
    DISPATCHING = "dispatching"
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"


SETTLED = frozenset({EffectState.CONFIRMED, EffectState.REJECTED, EffectState.WITHDRAWN})
"""The states that are final: what is said of such a row later is evidence, and changes nothing."""


class ErrandKind(StrEnum):
    """What a worker is sent to do about an effect."""

    CHECK = "check"
    """Compare its sources, observe its target, look it up before a first send where its contract asks so."""
    SEND = "send"
    LOOK_UP = "look_up"


ERRAND = "\x1f"
"""Begins the name that an errand goes by where a try goes by its unit's: no item's name can begin so."""


@frozen(kw_only=True)
class Errand:
    """One errand that a worker was given: open until its answer, or its tree's end, is committed."""

    effect: str
    kind: ErrandKind
    epoch: int
    number: int
    """Counts the errands of one effect, whatever their kind, and never falls."""
    started: Instant
    until: Instant
    """When it is stopped for taking too long."""
    worker: str
    stop: StopReason | None = None


@frozen(kw_only=True)
class Effect:
    """One write to another system: the intent, and the outcome that only send, look-up or settle write."""

    id: str
    state: EffectState
    item: str
    """The item, or empty for the job's own position."""
    business_object: str
    operation_key: str
    fingerprint: str
    """The sha256 over the RFC 8785 text of all that binds: see `schemas.keys.fingerprint`."""
    tool: str
    target: str
    """Name, address and account, as the reviewer is shown them."""
    arguments: str
    """All that binds, as RFC 8785 text: what is sent is made of these bytes. Others are named by sha256."""
    expected_result: str = ""
    ordinal: int = 0
    not_before: Instant | None = None
    response: str = ""
    """The sha256 of the target's last answer, whatever it said; the bytes are the job's artifact."""
    answer: Artifact | None = None
    """That artifact."""
    reference: str = ""
    confirmed_by: str = ""
    """`send`, `look_up`, or who settled it."""
    version: int = 1
    """Of the tool."""
    step: str = ""
    """Where its unit stood, and in which occurrence, when it was asked for."""
    occurrence: int = 0
    unbound: str = "{}"
    """Arguments that the fingerprint does not cover, as JSON text."""
    bodies: tuple[Artifact, ...] = ()
    """The bytes that the arguments name by their sha256, sent as they are."""
    observed: str = ""
    """The version of the target's object when it was asked for; part of the fingerprint."""
    shown: Artifact | None = None
    """What the author's `show` printed for the reviewer."""
    sources: tuple[Source, ...] = ()
    """What the call relies on, compared just before it is sent."""
    proposed: Instant | None = None
    gate: Gate | None = None
    """The round in which it is to be approved; None where its contract asks nobody."""
    again: str = ""
    """The reference of a confirmed effect that this one would repeat, since its item was begun again."""
    errands: int = 0
    """Counts the errands made for it."""
    dispatches: int = 0
    """Counts the commits that let it go."""
    first_dispatch: Instant | None = None
    """From here on the target's memory of the key counts."""
    since: Instant | None = None
    """When its sender was known gone, or had answered: its time in flight runs from here."""
    look_ups: int = 0
    """Counts the look-ups since then."""
    unclear: int = 0
    """How many of them, in a row, gave no answer that decides."""
    absent: bool = False
    """It is proven that the target has nothing of it: it may go again, under the same key."""
    resend: bool = False
    """It goes again under the same key once `not_before` has come: it is absent, or deduplicated."""
    unproven: bool = False
    """An earlier send of it may have landed: nothing has proven that it did not."""
    suspect: bool = False
    """A line that was lost may have let it go: it is looked up before it is sent."""
    renewed: bool = False
    """It was asked for after that line was lost: what is found under its key is not surely of this call."""
    found: str | None = None
    """The reference of what its target had under its key, and that is not known to be of this call."""
    foreign: str | None = None
    """The reference of that, once a person has said that it is not of this effect: it proves nothing."""
    hold: Hold | None = None
    """A person must say what happened, or what is to be done."""
    settled: Instant | None = None
    code: str = ""
    """A slug for why it stands as it does: `denied`, `sent_back`, `changed`, `refused`, `canceled`, ..."""
    reason: str = ""
    """In words: the target's, the reviewer's or the law's."""


@frozen(kw_only=True)
class Performance:
    """What a unit asked for in one decision, and where it goes from there.

    It stays while the step that it leads to has not decided: every try of that step is given the outcomes.
    """

    unit: str
    step: str
    occurrence: int
    effects: tuple[str, ...]
    """Their ids, in the order of the calls."""
    then: str = ""
    """The step that follows when all have landed; empty: the unit is done."""
    otherwise: str = ""
    """The step that is told of other outcomes; empty: what INTERFACE.md says of each of them."""
    back: str = ""
    """The step that a reviewer sends it back to; empty: `otherwise`, or the step that asked for it."""
    over: bool = False
    """All of it is settled, and the unit has gone on."""
    led: int = 0
    """The occurrence of the unit that it led to, once it is over."""


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
    address: str = ""
    """Where the target is, and under which account it is written to: part of every fingerprint."""
    account: str = ""
    approve: ApprovalRule | None = None
    """Who must allow it; None: nobody is asked."""
    timeout: float = 30.0
    at_once: int = 1
    """How many calls to the target may be under way at once, of all jobs."""
    observe: bool = False
    check_first: bool = False
    unbound: tuple[str, ...] = ()
    """The fields that the fingerprint does not cover."""


def in_flight(contract: ToolContract) -> float:
    """Seconds in which a call that was sent may still arrive (INTERFACE.md: twice the timeout)."""
    return 2 * contract.timeout if contract.in_flight is None else contract.in_flight


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
    round: int = 1
    """Of the gate it answers."""
    spent: Instant | None = None
    """When the row it allows was let go; it allows nothing else from then on."""
    operation_key: str = ""
    """What it was spent on."""
    revoked: Instant | None = None
    same_user: bool = False
    """Whether the reviewer is the user that jobs run as."""


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
    unit: str = ""
    """Who asks: an item, or empty for the job's own step."""
    then: str = ""
    """The step that is given the answer."""
    asked: Instant | None = None
    occurrence: int = 0
    widened: bool = False
    """Nobody asked had answered in time: any operator may."""
    led: int = 0
    """The occurrence of the unit that it led to, once it is answered."""


@frozen(kw_only=True)
class Review:
    """A draft of an item that waits for a person; an edit makes another revision of it.

    It stays, decided, while the step that it leads to has not decided.
    """

    unit: str
    step: str
    occurrence: int
    draft: Artifact
    """The revision that is looked at; its sha256 is what a decision must name."""
    rule: ApprovalRule
    gate: Gate
    edit: bool = True
    then: str = ""
    """The step that is given the accepted text; empty: the item is done with it."""
    data: str = "{}"
    shown: Artifact | None = None
    decision: str = ""
    """`accept` or `edit`, once it is decided so."""
    editor: str = ""
    by: str = ""
    """Whose word it was."""
    led: int = 0
    """The occurrence of the unit that it led to, once it is decided."""
