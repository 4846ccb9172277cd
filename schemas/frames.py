"""Frames between the daemon and a worker: one JSON object and a newline each, over an inherited socket.

To the worker: `open` (once, first), `run`, `stop`, `close`. From it: `ready` (once), `returned`, `raised`,
`stopped`, `trouble`. A try is named by (job, epoch, item, number) in every frame about it, and `item` is
empty for the job's own step. The first answer of a try wins; an identical repeat is acknowledged by
silence; a stale or different one changes nothing. How they are written and read is `framelines`.
"""

from attrs import field, frozen

from .decisions import Answer
from .job import Artifact, Budget, Item, Reader, Source
from .ledger import EffectState, ErrandKind
from .workflow import Contract

PROTOCOL = 1
"""Named in both first frames; an end that hears another number works no further with the other."""
FIRST = 1
"""What a first frame speaks that names none."""


@frozen(kw_only=True)
class Open:
    """The first frame: which worker this is, and the workflow it runs. With `describe`, only its contract
    is wanted (`contract` then names the entry alone)."""

    worker: str
    contract: Contract
    describe: bool = False
    protocol: int = PROTOCOL


@frozen(kw_only=True)
class CallGiven:
    """What a worker is sent on an errand with: the stored call, from which all that is sent is made.

    `attempt` of it counts the sends under this key, this one included; `epoch` fences older senders.
    """

    effect: str
    kind: ErrandKind
    tool: str
    version: int
    operation_key: str
    fingerprint: str
    arguments: str
    unbound: str = "{}"
    bodies: tuple[Artifact, ...] = ()
    observed: str = ""
    sources: tuple[Source, ...] = ()
    attempt: int = 0
    timeout: float = 30.0
    """Seconds after which the errand is stopped; the worker ends its call by itself before that."""
    first: bool = False
    """With a check: its target is looked up, too, since nothing of it should be there."""


@frozen(kw_only=True)
class Outcome:
    """What became of one effect that the step before asked for."""

    effect: str
    tool: str
    state: EffectState
    arguments: str = "{}"
    code: str = ""
    """For one that was withdrawn: `denied`, `sent_back`, `changed`, `lapsed`, `skipped`, ..."""
    reference: str = ""
    reason: str = ""
    response: str = ""


@frozen(kw_only=True)
class Given:
    """What the step is given that its unit waited for: outcomes, a reviewed text, or an answer."""

    outcomes: tuple[Outcome, ...] = ()
    text: Artifact | None = None
    editor: str = ""
    """Who edited the text; empty where it was accepted as it was."""
    answer: str | None = None
    by: str = ""
    """Who reviewed or answered."""


@frozen(kw_only=True, slots=False)  # made at every step and soon gone: quicker so
class Run:
    """Start a try. `items` is filled for job steps only. `log` is the file that the try's output is appended
    to, `scratch` a folder of its own that is removed afterwards: it exists for programs, and a Python worker
    makes it when it is first asked for. `kept` is the unit's own folder, which a program's worker makes and
    which outlives the try. All are absolute paths. `key` is the operation key of this entry of the step."""

    job: str
    epoch: int
    item: str
    number: int
    step: str
    occurrence: int
    log: str
    scratch: str
    kept: str = ""
    key: str = ""
    artifacts: str = ""
    """The folder of the job's artifacts, each named by its sha256; only to be read."""
    outputs: tuple[Artifact, ...] = ()
    """What the job's own steps made so far, named by them."""
    attempt: int = 0
    interrupted: bool = False
    """The try before this one ended without a recorded end."""
    inputs: str = "{}"
    state: dict[str, str] = field(factory=dict)
    row: Item | None = None
    items: tuple[Item, ...] = ()
    items_glob: str = ""
    """The job's own pattern for its items, which takes the place of what the workflow says."""
    items_from: str = ""
    items_file: str = ""
    """As in the job's record."""
    objective: str = ""
    labels: dict[str, str] = field(factory=dict)
    reader: Reader | None = None
    """None where the requester is root, or the daemon's own user."""
    compare: bool = False
    """No step is run: the sources of `items` are compared, which are all that matter before `through`."""
    through: int = 0
    call: CallGiven | None = None
    """No step is run: the worker is sent on an errand about this effect. `item` is the errand's name."""
    given: Given | None = None
    """Of the unit's last wait, where this step is what it leads to."""
    credentials: str = ""
    """The folder that holds the daemon's credentials; a worker hands on those that its step names."""


@frozen(kw_only=True)
class Stop:
    """End a try: ask it, wait `grace` seconds, then kill its tree, and answer `stopped` when that is gone."""

    job: str
    epoch: int
    item: str
    number: int
    grace: float


@frozen(kw_only=True)
class Close:
    """No more tries: end in good order."""


@frozen(kw_only=True)
class Ready:
    """The worker can run; for Python `contract` is what the author's class declares."""

    worker: str
    contract: Contract
    protocol: int = PROTOCOL


@frozen(kw_only=True, slots=False)  # made at every step and soon gone: quicker so
class Returned:
    """A handler answered, and every process its try started is dead."""

    job: str
    epoch: int
    item: str
    number: int
    answer: Answer


@frozen(kw_only=True)
class Raised:
    """A handler ended with an error of its own (`error` is for people), and its processes are dead."""

    job: str
    epoch: int
    item: str
    number: int
    error: str


@frozen(kw_only=True)
class Stopped:
    """A try was ended on request, without an answer, and its processes are dead; `used` is what it spent."""

    job: str
    epoch: int
    item: str
    number: int
    used: Budget | None = None


@frozen(kw_only=True)
class Trouble:
    """The worker cannot run this workflow at all (an import failed, a contract differs)."""

    code: str
    reason: str


ToWorker = Open | Run | Stop | Close
FromWorker = Ready | Returned | Raised | Stopped | Trouble
