"""A job's own records: who asked for what, its items, attempts, tries, holds and the position it stands at.

A record checks only itself; what spans records is law and lives in `actors/machine`.
"""

from enum import StrEnum

from attrs import field, frozen

from .instant import Instant


@frozen(kw_only=True)
class Reader:
    """As whom the files that a requester named are read: the user, its primary group and its other groups."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@frozen(kw_only=True)
class Job:
    """Identity that outlives every process; written once, at admission."""

    id: str
    tenant: str
    requester: str
    owner: str
    created: Instant
    workflow: str
    version: int
    key: str = ""
    """The business name of the work, by which another file of the same user finds this job."""
    title: str = ""
    objective: str = ""
    inputs: str = "{}"
    """The accepted inputs as JSON text, never structured here."""
    items_glob: str = ""
    """The pattern a job file gives in place of items; its first step lists them."""
    items_from: str = ""
    """`job`, `lines` or `jsonl` when the job file says so itself; else its workflow does."""
    items_file: str = ""
    """The list that `lines` or `jsonl` reads."""
    reader: Reader | None = None
    """The requester as it was at admission."""
    deadline: Instant | None = None
    labels: dict[str, str] = field(factory=dict)
    sha256: str = ""
    """Of the admitted bytes; operation keys are derived from it. Empty in jobs of before there were any."""
    priority: int = 0
    """From -10 to 10; a higher one gets free workers first."""
    after: tuple[str, ...] = ()
    """Jobs that must have completed before it starts, as its file names them."""
    not_before: Instant | None = None


@frozen(kw_only=True)
class Person:
    """Who gave a command: the kernel's word about the peer, never a field of a request."""

    uid: int
    name: str
    via: str = "socket"
    gid: int = 65_534
    groups: tuple[int, ...] = ()
    """By the kernel at the socket, by the user database for a dropped file; nobody's where it knows none."""
    pid: int | None = None
    """The process that connected, 0 for one outside our own namespace; None where nobody can tell."""
    start: int | None = None
    """When it started (clock ticks of this boot): with `pid` it is no other one."""


class PinKind(StrEnum):
    """How a source was pinned."""

    SHA256 = "sha256"
    STAT = "stat"
    NONE = "none"


@frozen(kw_only=True)
class Source:
    """An input a decision relied on; `size`, `mtime` (microseconds) and `inode` count for a `stat` pin.

    Both are kept as far as every JSON reader keeps them exactly: the inode's lowest 53 bits. With `ctime`
    (microseconds; 0 where it proves nothing) a `sha256` pin holds while nothing of all four has changed.
    """

    path: str
    pin: PinKind = PinKind.NONE
    sha256: str = ""
    size: int = 0
    mtime: int = 0
    inode: int = 0
    ctime: int = 0
    requested: bool = False
    """The requester named it, not the workflow: it is read as the requester where that is another user."""


@frozen(kw_only=True)
class Provenance:
    """What made an artifact."""

    job: str
    item: str = ""
    step: str = ""
    attempt: int = 0
    model: str = ""
    prompt: str = ""
    editor: str = ""


@frozen(kw_only=True)
class Artifact:
    """Immutable bytes named `name@revision`.

    Up to 16 KiB travel here: as `text` when the bytes are UTF-8, else as `base64` beside a lossy `text`
    (each undecodable byte shown as U+FFFD). Larger ones are files: `artifacts/<sha256>` in the job's folder.
    One kept by reference has no copy: it lies at `path`, where it was published, and is that very file
    (`device` and `inode`, the lowest 53 bits of each) or nothing.
    """

    name: str
    sha256: str
    size: int
    revision: int = 1
    text: str | None = None
    base64: str | None = None
    provenance: Provenance | None = None
    access_policy: str = "owner"
    path: str = ""
    device: int = 0
    inode: int = 0


class ItemState(StrEnum):
    """What is known of one unit of work."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    REVIEW = "review"
    DONE = "done"
    FAILED = "failed"
    HELD = "held"
    SKIPPED = "skipped"


@frozen(kw_only=True)
class Item:
    """A unit of work. The job's own position is kept in the same shape under the id `""`.

    `tries` counts every start and never falls; `failures` counts those that use up the step's limit since
    it was entered; `crashes` counts starts in a row whose end was never recorded.
    """

    id: str
    ordinal: int
    state: ItemState = ItemState.PENDING
    at: str = ""
    occurrence: int = 0
    tries: int = 0
    failures: int = 0
    crashes: int = 0
    not_before: Instant | None = None
    started: Instant | None = None
    ended: Instant | None = None
    inputs: str = "{}"
    data: str = "{}"
    source: Source | None = None
    seen: Source | None = None
    """What its source was found to be when it was held for having changed."""
    output: Artifact | None = None
    publishes: int = 0
    """Counts the attempts to publish an output of it, and never falls."""
    outputs: tuple[Artifact, ...] = ()
    """What its steps made so far, named by them, for the steps after them; empty again once it is done."""
    reason: str = ""
    code: str = ""
    """A slug for `reason`, set with it: `failed`, `interrupted`, `crashes`, `timeout`, `skipped`, ..."""
    note: str = ""
    """A reviewer's words, for the step that it was sent back to."""
    begun: int = 0
    """The occurrence in which it was last begun again, 0 for never: what it had written before may repeat."""
    torn: bool = False
    """A line that was lost may have let go what its step asks for: it is looked up before it is sent."""


class StopReason(StrEnum):
    """Why a running try was told to stop; committed on the try before anything is stopped."""

    PAUSE = "pause"
    CANCEL = "cancel"
    EXPIRE = "expire"
    SKIP = "skip"
    TIMEOUT = "timeout"
    HOLD = "hold"
    SHUTDOWN = "shutdown"


@frozen(kw_only=True)
class Try:
    """One start of an item's step (or, with item `""`, of a job step); frames carry (epoch, item, number)."""

    epoch: int
    item: str
    number: int
    step: str
    occurrence: int
    started: Instant
    until: Instant
    """When it is stopped for taking too long."""
    worker: str
    stop: StopReason | None = None
    compares: bool = False
    """No step runs: the sources of the job's items are compared before any of them starts."""


@frozen(kw_only=True)
class Attempt:
    """One period of ownership of a job, under one epoch."""

    epoch: int
    opened: Instant


@frozen(kw_only=True)
class Each:
    """The fan-out a job stands in: item steps run until all items have settled, then it goes to `then`."""

    start: str
    then: str
    parallel: int = 1
    tries: int | None = None


@frozen(kw_only=True)
class SourceReport:
    """What the wake report of attempt `epoch` says of the items' sources: those before the ordinal `through`
    have been compared, and what became of the items whose source had changed."""

    epoch: int
    at: Instant
    through: int = 0
    over: bool = False
    compared: int = 0
    held: int = 0
    reopened: int = 0
    kept: int = 0
    """Done items that stay so, whatever their source is now."""
    unreadable: int = 0


@frozen(kw_only=True)
class Next:
    """What a checkpoint permits next, beside the position itself."""

    step: str
    preconditions: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()


@frozen(kw_only=True)
class Mark:
    """A person's or a limit's durable stop: who, when and why."""

    by: str
    at: Instant
    reason: str = ""
    now: bool = False


@frozen(kw_only=True)
class Hold:
    """The machine may not decide: why, since when, and whose it is."""

    code: str
    reason: str
    owner: str
    since: Instant


class Ending(StrEnum):
    """The four final words; terminal is final."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


@frozen(kw_only=True)
class Outcome:
    """How a job ended."""

    ending: Ending
    at: Instant
    reason: str = ""


class Status(StrEnum):
    """The one word people see; derived from a snapshot, stored nowhere."""

    READY = "ready"
    RESUMING = "resuming"
    RUNNING = "running"
    WAITING = "waiting"
    RECONCILING = "reconciling"
    HELD = "held"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"
    QUARANTINED = "quarantined"


@frozen(kw_only=True)
class Budget:
    """Limits of a job and their use; `usd` is decimal text. None means no limit."""

    attempts: int | None = None
    turns: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    usd: str | None = None
    active_seconds: float | None = None
    deadline: Instant | None = None
    """When the job is ended, once it was put off; None leaves the job's own."""


@frozen(kw_only=True)
class Clocks:
    """What a job knows of time: the last moment at which wall and boot clock were believed together."""

    known: Instant
    floor: bool = False
    """The wall of `known` is only the least that it can be: this boot's wall clock is behind it."""
    jumped: Instant | None = None
    """The first look at a wall clock that has moved alone since; None while the two agree."""
    accepted: bool = False
    """A person said to go on by the time that went by, whatever the wall clock shows."""


@frozen(kw_only=True)
class Breaker:
    """Failures in a row with one reason; `units` are those that failed since the last wait, in order."""

    key: str
    """What they have in common."""
    reason: str
    """Of the last one, as it was said."""
    units: tuple[str, ...] = ()
    waits: int = 0
    """How often the job has waited because of them; above 0, one try goes ahead alone."""


@frozen(kw_only=True)
class Authority:
    """What a later worker acts under, as it was saved."""

    actor: str
    scopes: tuple[str, ...] = ()
    policy: str = ""
    approval: str = ""
    target: str = ""
    expiry: Instant | None = None


@frozen(kw_only=True)
class CodeVersion:
    """What code a snapshot was made with; `contract` is the sha256 of the pinned workflow declaration."""

    workflow: str
    version: int
    contract: str
    release: str
