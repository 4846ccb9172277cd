"""Frames between the daemon and a worker: one JSON object and a newline each, over an inherited socket.

To the worker: `open` (once, first), `run`, `stop`, `close`. From it: `ready` (once), `returned`, `raised`,
`stopped`, `trouble`. A try is named by (job, epoch, item, number) in every frame about it, and `item` is
empty for the job's own step. The first answer of a try wins; an identical repeat is acknowledged by
silence; a stale or different one changes nothing.
"""

from operator import attrgetter
from typing import Any

import orjson
from attrs import field, fields, frozen

from . import codec, strict
from .decisions import Answer, GoTo
from .errors import FaultyInputError, ProtocolError
from .job import Artifact, Budget, Item, Reader, Source
from .ledger import EffectState, ErrandKind
from .workflow import Contract

PROTOCOL = 1
"""Named in both first frames; an end that hears another number works no further with the other."""
FIRST = 1
"""What a first frame speaks that names none."""
MAX_FRAME = 16 * 1024 * 1024


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

_TO_WORKER: dict[str, type[Any]] = {"open": Open, "run": Run, "stop": Stop, "close": Close}
_FROM_WORKER: dict[str, type[Any]] = {
    "ready": Ready,
    "returned": Returned,
    "raised": Raised,
    "stopped": Stopped,
    "trouble": Trouble,
}
_WORDS = {kind: word for table in (_TO_WORKER, _FROM_WORKER) for word, kind in table.items()}


def write(frame: ToWorker | FromWorker) -> bytes:
    """The bytes of a frame, newline included; FaultyInputError when it is too large to send."""
    plain = plain_run(frame) if type(frame) is Run else None
    if plain is None:
        plain = {"frame": _WORDS[type(frame)], **codec.to_plain(frame)}
    if isinstance(frame, Open | Ready):
        # Always written, though it is a default: the other side may be of another release.
        plain["protocol"] = frame.protocol
    raw = orjson.dumps(plain) + b"\n"
    if len(raw) > MAX_FRAME:
        raise FaultyInputError("cannot send a frame", (f"{len(raw)} bytes, the most is {MAX_FRAME}",))
    return raw


_KNOWN = (
    *("job", "epoch", "item", "number", "step", "occurrence", "log", "scratch", "attempt", "interrupted"),
    *("inputs", "state", "objective", "labels", "credentials"),
)
_others = [each for each in fields(Run) if each.name not in _KNOWN]
_of_run = attrgetter(*(each.name for each in _others))
_BARE = tuple(each.default for each in _others)


def plain_run(frame: Run) -> dict[str, Any] | None:
    """The plain value of a `run` as most of them are: a step of the job, of which nothing waited.

    Written without the converter, which looks at each field and its default. None for any other.
    """
    if _of_run(frame) != _BARE:
        return None
    plain = {
        "frame": "run",
        "job": frame.job,
        "epoch": frame.epoch,
        "item": frame.item,
        "number": frame.number,
        "step": frame.step,
        "occurrence": frame.occurrence,
        "log": frame.log,
        "scratch": frame.scratch,
    }
    if frame.attempt:
        plain["attempt"] = frame.attempt
    if frame.interrupted:
        plain["interrupted"] = True
    if frame.inputs != "{}":
        plain["inputs"] = frame.inputs
    if frame.state:
        plain["state"] = frame.state
    if frame.objective:
        plain["objective"] = frame.objective
    if frame.labels:
        plain["labels"] = frame.labels
    if frame.credentials:
        plain["credentials"] = frame.credentials
    return plain


def _read(raw: bytes, table: dict[str, type[Any]], what: str) -> Any:
    value = strict.parse_own(raw, what)
    word = value.pop("frame", None) if isinstance(value, dict) else None
    kind = table.get(word) if isinstance(word, str) else None
    if kind is None:
        raise FaultyInputError(
            what, (f"expected one of {', '.join(table)} as frame, got {word!r} @ $.frame",)
        )
    # Before anything else of it is looked at: what another protocol says beside its number, nobody knows.
    if kind in (Open, Ready) and (spoken := value.get("protocol", FIRST)) != PROTOCOL:
        raise ProtocolError(what, spoken, PROTOCOL)
    if kind is Returned and (plain := goes_on(value)) is not None:
        return plain
    return codec.from_plain(value, kind, what)


def goes_on(value: dict[str, Any]) -> Returned | None:
    """A `returned` by which the job goes on at a step, with nothing else to it, of a plain value.

    Read without the converter, which takes three times as long. None for any other, and for one that does
    not hold: of that the converter says what is wrong.
    """
    # By the order in which our own workers write.
    if [*value] != _RETURNED:
        return None
    job, epoch, item, number, answer = value.values()
    if type(answer) is not dict or [*answer] != _ANSWER:
        return None
    decided, state = answer.values()
    if type(decided) is not dict or [*decided] != _GOTO or decided["kind"] != "GoTo":
        return None
    step = decided["step"]
    if type(step) is not str or type(job) is not str or type(item) is not str or type(state) is not dict:
        return None
    if type(epoch) is not int or type(number) is not int or not {*map(type, state.values())} <= _TEXT:
        return None
    if not (-strict.MAX_INT <= epoch <= strict.MAX_INT and -strict.MAX_INT <= number <= strict.MAX_INT):
        return None
    given = Answer(decided=GoTo(step=step), state=state)
    return Returned(job=job, epoch=epoch, item=item, number=number, answer=given)


_RETURNED = ["job", "epoch", "item", "number", "answer"]
_ANSWER = ["decided", "state"]
_GOTO = ["kind", "step"]
_TEXT = {str}


def read_from_worker(raw: bytes) -> FromWorker:
    """The frame in a line that a worker sent, newline excluded; FaultyInputError when it does not hold,
    ProtocolError for a `ready` of another protocol."""
    frame: FromWorker = _read(raw, _FROM_WORKER, "cannot read a worker's frame")
    return frame


def read_to_worker(raw: bytes) -> ToWorker:
    """The frame in a line that the daemon sent, newline excluded; FaultyInputError when it does not hold,
    ProtocolError for an `open` of another protocol."""
    frame: ToWorker = _read(raw, _TO_WORKER, "cannot read the daemon's frame")
    return frame
