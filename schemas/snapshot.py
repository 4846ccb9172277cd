"""All of one job's typed state, what may change in it, and the line that makes a change durable."""

from attrs import field, frozen

from .effecttable import EffectTable
from .instant import Instant
from .job import (
    Attempt,
    Authority,
    Breaker,
    Budget,
    Clocks,
    CodeVersion,
    Each,
    Hold,
    Item,
    Job,
    Mark,
    Next,
    Outcome,
    SourceReport,
    Try,
)
from .ledger import Approval, Effect, Errand, Performance, Question, Review, Wait
from .publication import Publication
from .receipt import Receipt
from .table import ItemTable
from .workflow import Contract

STATE_SCHEMA = 2
"""The level of the stored records that this release writes."""


@frozen(kw_only=True)
class Snapshot:
    """A job's state after line `sequence`. `tries` holds open tries only, by unit."""

    job: Job
    contract: Contract
    code_version: CodeVersion
    sequence: int = 0
    epoch: int = 0
    newest: Instant
    """The newest recorded moment."""
    last_transition: str = ""
    position: Item
    next: Next
    each: Each | None = None
    state: dict[str, str] = field(factory=dict)
    items: ItemTable = field(factory=ItemTable)
    attempt: Attempt | None = None
    tries: dict[str, Try] = field(factory=dict)
    publications: dict[str, Publication] = field(factory=dict)
    """Outputs on their way to the names they are published under, by unit."""
    pause: Mark | None = None
    cancel: Mark | None = None
    expiry: Mark | None = None
    hold: Hold | None = None
    outcome: Outcome | None = None
    budget: Budget = field(factory=Budget)
    used: Budget = field(factory=Budget)
    breaker: Breaker | None = None
    clocks: Clocks | None = None
    authority: Authority | None = None
    effects: EffectTable = field(factory=EffectTable)
    approvals: tuple[Approval, ...] = ()
    waits: tuple[Wait, ...] = ()
    questions: tuple[Question, ...] = ()
    sources: SourceReport | None = None
    errands: dict[str, Errand] = field(factory=dict)
    """Open errands, by effect."""
    performances: dict[str, Performance] = field(factory=dict)
    """What units asked for and were given, by unit."""
    reviews: dict[str, Review] = field(factory=dict)
    """Drafts that wait for a person, or were decided, by unit."""
    receipts: dict[str, Receipt] = field(factory=dict)
    """What requests with an id were answered first, by `receipt.key`, oldest first."""


@frozen(kw_only=True, slots=False)  # many fields, made at every commit and soon gone: quicker so
class Changes:
    """Upserts of rows and scalars; `cleared` names scalars emptied, `ended` the units whose try closed."""

    items: tuple[Item, ...] = ()
    tries: tuple[Try, ...] = ()
    ended: tuple[str, ...] = ()
    publications: tuple[Publication, ...] = ()
    published: tuple[str, ...] = ()
    """Units whose publication is over, however it ended."""
    position: Item | None = None
    next: Next | None = None
    each: Each | None = None
    state: dict[str, str] = field(factory=dict)
    epoch: int | None = None
    attempt: Attempt | None = None
    pause: Mark | None = None
    cancel: Mark | None = None
    expiry: Mark | None = None
    hold: Hold | None = None
    outcome: Outcome | None = None
    budget: Budget | None = None
    used: Budget | None = None
    breaker: Breaker | None = None
    clocks: Clocks | None = None
    waits: tuple[Wait, ...] | None = None
    """All open waits, when any of them changed."""
    sources: SourceReport | None = None
    effects: tuple[Effect, ...] = ()
    approvals: tuple[Approval, ...] = ()
    """New ones, and those of the same id in their place."""
    errands: tuple[Errand, ...] = ()
    returned: tuple[str, ...] = ()
    """Effects whose errand is over."""
    performances: tuple[Performance, ...] = ()
    performed: tuple[str, ...] = ()
    """Units whose performance is of no more use."""
    reviews: tuple[Review, ...] = ()
    reviewed: tuple[str, ...] = ()
    """Units whose review is of no more use."""
    questions: tuple[Question, ...] | None = None
    """All questions, when any of them changed."""
    cleared: tuple[str, ...] = ()
    receipt: Receipt | None = None
    forgotten: tuple[str, ...] = ()
    """The receipts that go as this one comes."""


@frozen(kw_only=True)
class Decision:
    """One committed row per choice that moved a job: who or what decided, by which rule, and why."""

    by: str
    rule: str
    choice: str
    relied_on: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    reason: str = ""


@frozen(kw_only=True)
class Entry:
    """One transition within a line. `evidence` keeps what changed nothing but must not be lost."""

    transition: str
    decision: Decision
    changes: Changes
    evidence: str = ""


@frozen(kw_only=True)
class Line:
    """One commit. `previous` is the digest of the line before (line 1: of job.json); `opening` only in line 1
    and in migrations: the whole snapshot, before the entries are applied.

    An opening too large for a line is the artifact of that sha256, `opening_artifact`, at the log's level.
    """

    sequence: int
    epoch: int
    previous: str
    at: Instant
    entries: tuple[Entry, ...] = ()
    opening: Snapshot | None = None
    opening_artifact: str = ""


@frozen(kw_only=True)
class Torn:
    """A tail that was cut: it did not verify, and it could have been an acknowledged line that rotted."""

    log: str
    offset: int
    sequence: int
    """The sequence the cut line would have had."""


@frozen(kw_only=True)
class Seal:
    """The first line of every log: the sequence and digest of the line before it, and why it was begun."""

    seal: int
    digest: str
    why: str
    job: str
    """sha256 of job.json."""
    state_schema: int = 1
    """The level of the log's lines. Seals of level 1 do not write theirs."""
    through: int = 0
    """The last line that was copied in before the log got its name; up to it nothing can be torn."""
    torn: tuple[Torn, ...] = ()


@frozen(kw_only=True)
class Checkpoint:
    """A job's durable snapshot; its integrity hash is the digest in the file's name."""

    sequence: int
    epoch: int
    previous: str
    """The digest of line `sequence`."""
    state_schema: int
    code_version: CodeVersion
    last_transition: str
    job: str
    torn: tuple[Torn, ...] = ()
    pinned: tuple[int, ...] = ()
    """The sequences of older checkpoints that stay: from each of them a migration began."""
    snapshot: Snapshot


@frozen(kw_only=True)
class Admission:
    """`job.json`: how the job came in, and the admitted file's own bytes (as `text` or `base64`)."""

    schema: int
    id: str
    admitted: Instant
    requester: str
    uid: int
    via: str
    name: str
    sha256: str
    """Of the admitted bytes."""
    text: str | None = None
    base64: str | None = None
    workflow: str = ""
    """The workflow's name, so that whose affair a job is can be told without reading it whole."""
    key: str = ""
    """The business name of its work."""
    request: str = ""
    """The request id it was handed in under, and the digest of what that id covers."""
    content: str = ""
