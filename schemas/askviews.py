"""What people are asked, as they are shown it: rows of the inbox, and one call, draft or question whole.

Plain rows derived from snapshots when somebody looks, for the socket; durable nowhere. Instants are wall
microseconds, 0 when there is none.
"""

from enum import StrEnum

from attrs import frozen


class AskKind(StrEnum):
    """What is wanted of a person."""

    SETTLE = "settle"
    """Say what became of an effect that may have left."""
    APPROVE = "approve"
    """Allow an effect, or not."""
    REVIEW = "review"
    """Look at a draft."""
    ANSWER = "answer"
    """Answer a question."""


@frozen(kw_only=True)
class AskRow:
    """One line of `resumectl inbox`."""

    id: str
    """Short and stable: the same in every list, as long as it is asked."""
    kind: AskKind
    job: str
    subject: str
    """The effect's id, the draft's unit, or the question's id: what a decision names."""
    item: str
    """Whose it is; empty for the job's own step."""
    what: str
    asked: int
    until: int = 0
    """When the question lapses."""
    otherwise: str = ""
    """What happens if nobody answers, in a few words."""
    whom: tuple[str, ...] = ()
    """`user:NAME` and `group:NAME`; empty: whoever has the role."""
    also: tuple[str, ...] = ()
    """The administrator's: who says yes must be one of these, too."""
    role: str = "approver"
    """The role over the job that is needed beside."""
    given: int = 0
    """How many have said yes in this round, of `quorum`."""
    quorum: int = 1
    not_requester: bool = False
    requester: str = ""
    fingerprint: str = ""
    """What a decision must name; empty where it need not."""
    round: int = 1
    again: str = ""
    """Why it is asked anew, in a few words; empty in the first round."""
    record: int = 0
    """The record of the job that this was read from."""
    yours: bool = True
    """Whether whoever asks has the role; the rule itself is judged when a decision comes in."""


@frozen(kw_only=True)
class NamedText:
    """One argument as shown: text as it is, everything else as JSON text."""

    name: str
    value: str


@frozen(kw_only=True)
class ChangedText:
    """One argument that is not what it was when the last call of this kind was decided."""

    name: str
    before: str
    after: str


@frozen(kw_only=True)
class BodyView:
    """Bytes that a call sends; `text` is their beginning, or empty where they are no text."""

    name: str
    sha256: str
    size: int
    text: str = ""


@frozen(kw_only=True)
class DecisionRow:
    """One decision on it so far."""

    by: str
    at: int
    decision: str
    round: int = 1
    reason: str = ""
    until: int = 0
    spent: int = 0
    revoked: int = 0
    same_user: bool = False


@frozen(kw_only=True)
class AskView:
    """All that a person is shown before deciding."""

    row: AskRow
    text: str = ""
    """The draft, or the question."""
    choices: tuple[str, ...] = ()
    edit: bool = False
    """A reviewer may change the draft."""
    tool: str = ""
    version: int = 0
    target: str = ""
    business_object: str = ""
    expected: str = ""
    arguments: tuple[NamedText, ...] = ()
    unbound: tuple[NamedText, ...] = ()
    """What the fingerprint does not cover: it may be another when the call is sent."""
    bodies: tuple[BodyView, ...] = ()
    observed: str = ""
    """The version of the target's object when it was asked for."""
    shown: str = ""
    """What the author's `show` printed."""
    sources: tuple[NamedText, ...] = ()
    """What the call relies on, and how that was pinned."""
    changed: tuple[ChangedText, ...] = ()
    """What is not as it was when the last one was decided, which `since` names."""
    since: str = ""
    holds: tuple[str, ...] = ()
    """What holds of the target by its contract, a sentence each: deduplicated, looked up, or neither."""
    undo: str = ""
    irreversible: bool = False
    again: str = ""
    """The reference of the confirmed effect that this one would repeat."""
    reason: str = ""
    """Why nobody can tell what became of it, for one that is to be settled."""
    key: str = ""
    """Its operation key."""
    decisions: tuple[DecisionRow, ...] = ()
    digest: str = ""
    """The sha256 of all that is shown here: a decision says that it was made on it."""


@frozen(kw_only=True)
class ToolRow:
    """One tool contract of a workflow in force; spans are seconds."""

    tool: str
    version: int
    workflow: str
    workflow_version: int
    target: str
    address: str
    account: str
    approve: str
    """Who must allow it, in words; empty: nobody is asked."""
    look_up: bool
    absent_is_final: bool
    key_lifetime: float
    """0: the target does not deduplicate."""
    in_flight: float
    timeout: float
    at_once: int
    observe: bool
    check_first: bool
    undo: str
    irreversible: bool
    unclear_owner: str
    unbound: tuple[str, ...]
    holds: tuple[str, ...]
    """What holds of it, a sentence each."""
    warnings: tuple[str, ...]
