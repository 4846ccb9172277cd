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
    """What it needs or does next (then at `wakes`, if that is not 0), in a few words; `needs_person` says
    whether a person must act."""
    needs_person: bool = False
    sequence: int = 0
    epoch: int = 0
    spent: str = ""
    """US dollars that its programs say they have spent, as decimal text; empty when none said anything."""
    hold: str = ""
    """The code of its hold, while it is held."""
    expected: str = ""
    """When its items are expected to be through, as RFC 3339 text in UTC: an estimate of now, from the pace
    of those that ended last; empty where too few have ended to tell."""


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
    priority: int = 0
    after: tuple[str, ...] = ()
    """Jobs that it still waits for."""
    deadline: int = 0
    """When it is ended, wall microseconds; 0 when it has no deadline."""
    inputs: dict[str, str] = field(factory=dict)
    """What it was given, long texts cut short; of a private one only that it was given."""


@frozen(kw_only=True)
class CommandRow:
    """One program as it would be started; `item` is empty for a step of the job itself."""

    item: str
    step: str
    program: str
    """`prepare`, `run` or `verify`, or `send` of an effect; that of a request is its method and URL."""
    argv: tuple[str, ...]
    """Private inputs are hidden. `WORKER` stands for the name of a worker that is not there yet."""


@frozen(kw_only=True)
class PreviewView:
    """What a job file would become: its items, and the programs of its first tries. Nothing was admitted."""

    job: str
    workflow: str
    version: int
    exists: bool = False
    """The file is a job that is there already; nothing else was looked at."""
    items: int = 0
    first: tuple[str, ...] = ()
    """The first of the items."""
    commands: tuple[CommandRow, ...] = ()
    problem: str = ""
    """Why its items cannot be listed as things are: it would be held, or tried again."""
    said: str = ""
    """The end of what was noted or printed while they were listed."""
    note: str = ""


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
    """True when the job already stood so and nothing of it was changed."""
    known: bool = False
    """True when the same request id was answered before: this is that first answer, beside the row of now."""


@frozen(kw_only=True)
class HistoryRow:
    """One transition of a job as its log has it: who or what decided, by which rule, what, and why."""

    sequence: int
    at: str
    """UTC text, as in the records."""
    epoch: int
    by: str
    transition: str
    rule: str
    choice: str
    reason: str = ""
    started: tuple[str, ...] = ()
    """Items (or `step NAME`) of which a try was started in the same commit."""
    stopped: tuple[str, ...] = ()
    """Items (or `step NAME`) of which the running try was told to stop."""
    evidence: str = ""
    """What changed nothing and was kept, as JSON text, cut where it is long."""


@frozen(kw_only=True)
class WhyEvent:
    """One thing that happened to a job: when (UTC text), a word, and the rest."""

    at: str
    word: str
    said: str


@frozen(kw_only=True)
class WhyCheck:
    """One thing that was really checked, and what came of it."""

    name: str
    said: str
    good: bool = True


@frozen(kw_only=True)
class WhyWake:
    """What lets the job go on: at a time (UTC text), or without one when something else must happen."""

    said: str
    at: str = ""


@frozen(kw_only=True)
class Possible:
    """A command that would change or show something now, and what it does."""

    command: str
    means: str


@frozen(kw_only=True)
class WhyView:
    """`resumectl why`: why a job stands as it does, and what may be done about it."""

    row: JobRow
    reason: str
    events: tuple[WhyEvent, ...] = ()
    checks: tuple[WhyCheck, ...] = ()
    wakes: tuple[WhyWake, ...] = ()
    not_done: tuple[str, ...] = ()
    """What the machine leaves undone, and for which reason."""
    record: int = 0
    """The record that the commands are bound to, 0 when they are not."""
    commands: tuple[Possible, ...] = ()
    notes: tuple[str, ...] = ()
    """What of the job's past cannot be told, and why."""


@frozen(kw_only=True)
class Found:
    """One thing that is wrong with a file of a job: what stops the job is `fatal`."""

    path: str
    code: str
    detail: str
    fatal: bool = False


@frozen(kw_only=True)
class AsideView:
    """`resumectl quarantine show`: a job that is set aside, and every file of it looked at."""

    job: Quarantined
    folder: str
    requester: str = ""
    file: str = ""
    """The name of the job file it came in as; empty when not even that can be read."""
    admitted: str = ""
    """UTC text."""
    loads: bool = False
    """Whether it would load now."""
    findings: tuple[Found, ...] = ()
    more: int = 0
    """How many findings are left out."""
    commands: tuple[Possible, ...] = ()


@frozen(kw_only=True)
class EndedRow:
    """A job that has ended: when (UTC text), and how many bytes it keeps."""

    id: str
    ended: str
    size: int
