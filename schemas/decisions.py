"""What a handler decided, as it crosses from worker to law; `actors/worker` has the authors' forms."""

from attrs import field, frozen

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


SAYS_OF_SOURCES = SourceChanged | Compared
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
)


@frozen(kw_only=True)
class Answer:
    """One handler's whole answer: the decision and the job state's changed top-level fields as JSON texts."""

    decided: Decided
    state: dict[str, str] = field(factory=dict)
    used: Budget | None = None
    """What the try spent, as far as it says so; it counts whatever was decided."""
