"""What people are shown of jobs: plain rows derived from snapshots, for the socket; durable nowhere."""

from attrs import field, frozen

from .job import Status


@frozen(kw_only=True)
class JobRow:
    """One line of `resumectl list`. Instants are wall microseconds, 0 when there is none."""

    id: str
    status: Status
    workflow: str
    version: int
    title: str
    owner: str
    done: int
    total: int
    failed: int
    held: int
    running: int
    since: int
    """When the job came to this status, as far as its records say."""
    created: int
    wakes: int = 0
    needs: str = ""
    """What it needs or does next, in a few words; `needs_person` says whether a person must act."""
    needs_person: bool = False
    sequence: int = 0
    epoch: int = 0


@frozen(kw_only=True)
class ItemRow:
    """One item as shown."""

    id: str
    state: str
    at: str
    tries: int
    failures: int
    code: str = ""
    reason: str = ""
    started: int = 0
    ended: int = 0
    not_before: int = 0
    output: str = ""
    """sha256 of the accepted output."""
    size: int = 0


@frozen(kw_only=True)
class JobView:
    """`resumectl show`: the row, who asked, what stops it, its items, and what may be done now."""

    row: JobRow
    requester: str
    objective: str
    labels: dict[str, str] = field(factory=dict)
    step: str = ""
    reason: str = ""
    items: tuple[ItemRow, ...] = ()
    commands: tuple[str, ...] = ()
    folder: str = ""


@frozen(kw_only=True)
class Quarantined:
    """A job set aside or unreadable: what is known of it."""

    id: str
    reason: str
    detail: str
    since: int
    moved: bool
    """False when it is only shown as set aside (unreadable), still in its place."""


@frozen(kw_only=True)
class HouseView:
    """`resumectl status`."""

    release: str
    store: str
    pid: int
    backend: str
    uptime: int
    """Whole seconds since the daemon was ready."""
    containment: str
    open: int
    running: int
    held: int
    quarantined: int
    ended: int
    workers: int
    loading: int
    workflows: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()


@frozen(kw_only=True)
class Told:
    """What a request did: the job's row afterwards, and a sentence that says it."""

    row: JobRow
    said: str
    attempt: int = 0
    """The attempt (epoch) that runs now or will run next; 0 when none will."""
    repeated: bool = False
    """True when the job already stood so and nothing was written."""
