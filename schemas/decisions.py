"""What a handler decided, as it crosses from worker to law; `actors/worker` has the authors' forms."""

from attrs import field, frozen

from .approvals import ApprovalRule
from .job import Budget, Source


@frozen(kw_only=True)
class Staged:
    """A synced file beside the place where it is to be published: `temp` is its name in that folder.

    `device` and `inode` are what it is known by: the lowest 53 bits of each.
    """

    destination: str
    temp: str
    device: int
    inode: int


@frozen(kw_only=True)
class Offer:
    """Bytes a worker offers as an output: inline (`text` or `base64`, 16 KiB at most) or a file at `path`.

    The daemon checks `size` and `sha256` against the bytes before anything names them. With `reference` no
    copy is kept: the file that is published is the output.
    """

    name: str
    sha256: str
    size: int
    text: str | None = None
    base64: str | None = None
    path: str | None = None
    publish: Staged | None = None
    reference: bool = False


@frozen(kw_only=True)
class NewItem:
    """An item a fan-out brings into the job."""

    id: str
    source: Source | None = None
    inputs: str = "{}"


@frozen(kw_only=True)
class GoTo:
    """The job goes on at another job step.

    `items` come into the job without entering a step yet; `output` is what the step before made, for those
    after it.
    """

    step: str
    items: tuple[NewItem, ...] | None = None
    output: Offer | None = None


@frozen(kw_only=True)
class FanOut:
    """Item steps run from `start` for the items named (None: all there are), then the job goes to `then`."""

    start: str
    then: str
    items: tuple[NewItem, ...] | None = None
    parallel: int = 1
    tries: int | None = None
    output: Offer | None = None
    """What the step before made, for those after it."""
    pins: dict[str, Source] = field(factory=dict)
    """The sources, by item, that were pinned on this occasion."""


@frozen(kw_only=True)
class NextStep:
    """The item goes on at another item step, with small data for it as JSON text.

    With `waits` it does so with all others: it waits for the fan-out that begins at that step. `output` is
    what the step before made, for those after it.
    """

    step: str
    data: str = "{}"
    waits: bool = False
    output: Offer | None = None


@frozen(kw_only=True)
class Accepted:
    """The item is done, with its output."""

    output: Offer | None = None


@frozen(kw_only=True)
class Finished:
    """The job is done."""


@frozen(kw_only=True)
class Failed:
    """The handler says that this cannot succeed: no further try is made."""

    reason: str


@frozen(kw_only=True)
class TryAgain:
    """The try failed; another is made within the step's limit."""

    reason: str
    code: str = "failed"


@frozen(kw_only=True)
class Later:
    """Not now: another try after `seconds`, which uses up no limit; with `until` not before that moment, too.

    `until` is microseconds since 1970 UTC.
    """

    seconds: float
    reason: str = ""
    until: int | None = None


@frozen(kw_only=True)
class HoldBack:
    """The handler may not decide: a person must."""

    code: str
    reason: str


@frozen(kw_only=True)
class LeftOut:
    """The item is left out: its handler says that there is nothing to be done for it."""

    reason: str


@frozen(kw_only=True)
class CutOff:
    """The try was ended by its worker before its time limit, for the reason given; what it did is unknown."""

    code: str
    reason: str


@frozen(kw_only=True)
class SourceChanged:
    """The item's source is not what it was pinned as: it is this now, or with None no file that can be read.

    Its step was not begun.
    """

    source: Source | None = None
    reason: str = ""


@frozen(kw_only=True)
class Seen:
    """One item's source that is not what it was pinned as, as in `SourceChanged`."""

    item: str
    source: Source | None = None
    reason: str = ""


@frozen(kw_only=True)
class Compared:
    """The sources of all items before the ordinal `through` have been compared: `sources` of them now."""

    through: int
    sources: int = 0
    changed: tuple[Seen, ...] = ()
    unreadable: int = 0
    """How many could not be read for now: no verdict."""


@frozen(kw_only=True)
class Call:
    """One effect that a handler asks for. `arguments` is the RFC 8785 text of all that binds, `unbound` of
    what does not; bytes they name by sha256 come along in `bodies`.

    `observed` is the version of the target's object as it was just now, `shown` what a reviewer is shown.
    """

    tool: str
    arguments: str
    unbound: str = "{}"
    bodies: tuple[Offer, ...] = ()
    business_object: str = ""
    expected_result: str = ""
    observed: str = ""
    shown: Offer | None = None
    sources: tuple[Source, ...] = ()


@frozen(kw_only=True)
class Performing:
    """The unit waits until its calls are settled, and goes on as `schemas.ledger.Performance` says."""

    calls: tuple[Call, ...]
    then: str = ""
    otherwise: str = ""
    back: str = ""


@frozen(kw_only=True)
class Reviewing:
    """The item waits for a person to look at `draft`; then it goes on as `schemas.ledger.Review` says."""

    draft: Offer
    rule: ApprovalRule
    edit: bool = True
    then: str = ""
    data: str = "{}"
    shown: Offer | None = None


@frozen(kw_only=True)
class Asking:
    """The unit waits for an answer, which `then` is given; `of` is who is asked, `within` seconds."""

    text: str
    then: str
    choices: tuple[str, ...] = ()
    of: str = ""
    within: float | None = None


@frozen(kw_only=True)
class Landed:
    """The target has it, under this reference of its own; `response` is what it answered."""

    reference: str
    response: Offer | None = None


@frozen(kw_only=True)
class Refused:
    """The target surely refused: it did not happen, and will not."""

    reason: str
    response: Offer | None = None


@frozen(kw_only=True)
class NotSent:
    """Surely nothing reached the target; `seconds` until it may be tried again."""

    reason: str
    seconds: float = 0.0


@frozen(kw_only=True)
class Absent:
    """The target has nothing under this key."""

    response: Offer | None = None


@frozen(kw_only=True)
class Unsure:
    """Nobody can tell from this answer; it is kept, and changes nothing by itself."""

    reason: str
    response: Offer | None = None


@frozen(kw_only=True)
class Checked:
    """What was found just before an effect is let go: `observed` (None: its contract observes nothing), its
    sources that are not what they were, and with `found` that the target has something under its key already.

    With a `problem` nothing was found out, and it is checked again after `seconds`.
    """

    observed: str | None = None
    changed: tuple[Seen, ...] = ()
    found: str | None = None
    problem: str = ""
    seconds: float = 0.0


WAITS_FOR_OTHERS = Performing | Reviewing | Asking
"""Decisions after which the unit waits, without a try, for other systems or for people."""
SAYS_OF_EFFECTS = Landed | Refused | NotSent | Absent | Unsure | Checked
"""What a worker answers when it was sent on an errand, and at no other time."""

SAYS_OF_SOURCES = (SourceChanged, Compared)
"""What a worker answers by itself, before any step of an author."""

Decided = (
    GoTo
    | FanOut
    | NextStep
    | Accepted
    | Finished
    | Failed
    | TryAgain
    | Later
    | HoldBack
    | LeftOut
    | CutOff
    | SourceChanged
    | Compared
    | Performing
    | Reviewing
    | Asking
    | Landed
    | Refused
    | NotSent
    | Absent
    | Unsure
    | Checked
)


def offers(decided: Decided) -> tuple[Offer, ...]:
    """The bytes that come with a decision beside its `output`, in a fixed order."""
    if isinstance(decided, Performing):
        shown = [call.shown for call in decided.calls if call.shown is not None]
        return (*(body for call in decided.calls for body in call.bodies), *shown)
    if isinstance(decided, Reviewing):
        return (decided.draft,) if decided.shown is None else (decided.draft, decided.shown)
    response: Offer | None = getattr(decided, "response", None)
    return () if response is None else (response,)


@frozen(kw_only=True)
class Answer:
    """One handler's whole answer: the decision and the job state's changed top-level fields as JSON texts."""

    decided: Decided
    state: dict[str, str] = field(factory=dict)
    used: Budget | None = None
    """What the try spent, as far as it says so; it counts whatever was decided."""
