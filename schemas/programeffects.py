"""What a workflow file says of effects and reviews: records that a worker runs them from.

A program is an argv list, an HTTP call a record of its own; never both. All texts are templates
(`schemas.templates`); spans of time are seconds.
"""

from attrs import field, frozen

from .approvals import ApprovalRule


@frozen(kw_only=True)
class Place:
    """Where a word stands in an answer: a header, or a member of its JSON body (`a.b` is b within a)."""

    header: str = ""
    json: str = ""


@frozen(kw_only=True)
class HttpSend:
    """The request that is the effect, and what its statuses mean; any other status leaves it unknown.

    `body` is text, or the bytes that it names when it is one reference alone; `json` is the text of a JSON
    value whose strings are templates.
    """

    method: str
    url: str
    headers: dict[str, str] = field(factory=dict)
    body: str = ""
    json: str = ""
    key_header: str = ""
    """The header that carries the operation key; empty: none does."""
    landed: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    not_sent: tuple[int, ...] = ()
    reference: Place | None = None
    """Where the target's reference stands; None: its `Location`, or else the status."""


@frozen(kw_only=True)
class HttpAsk:
    """A request that changes nothing: `found` and `absent` are statuses, any other is unclear."""

    method: str = "GET"
    url: str
    headers: dict[str, str] = field(factory=dict)
    found: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    word: Place | None = None
    """Where the reference, or the version, stands."""


@frozen(kw_only=True)
class ProgramEffect:
    """One `[[effect]]`: a write to another system, a step of its own after the step `after`."""

    name: str
    after: str
    each: bool = True
    version: int = 1
    target: str
    address: str = ""
    account: str = ""
    send: tuple[str, ...] = ()
    send_http: HttpSend | None = None
    look_up: tuple[str, ...] = ()
    look_up_http: HttpAsk | None = None
    observe: tuple[str, ...] = ()
    observe_http: HttpAsk | None = None
    show: tuple[str, ...] = ()
    """A program whose output the reviewer is shown."""
    absent_is_final: bool = False
    unbound: tuple[str, ...] = ()
    """Placeholders whose values the fingerprint does not cover."""
    secrets: tuple[str, ...] = ()
    undo: str = ""
    irreversible: bool = False
    key_lifetime: float | None = None
    """How long the target knows a key; None: it does not deduplicate."""
    in_flight: float | None = None
    timeout: float = 30.0
    at_once: int = 1
    owner: str = ""
    """Who handles an unclear one; empty: the job's owner."""
    sources: tuple[str, ...] = ()
    check_first: bool = False
    approve: ApprovalRule | None = None

    @property
    def speaks_http(self) -> bool:
        """Whether any of it is a request."""
        return any((self.send_http, self.look_up_http, self.observe_http))

    @property
    def looks_up(self) -> bool:
        """Whether the target can be asked by key what became of a call."""
        return bool(self.look_up or self.look_up_http)

    @property
    def observes(self) -> bool:
        """Whether the version of the target's object is read."""
        return bool(self.observe or self.observe_http)


@frozen(kw_only=True)
class ProgramReview:
    """A step's `review`: its output waits for a person, who accepts, edits, sends back or refuses it."""

    rule: ApprovalRule
    edit: bool = True
    show: tuple[str, ...] = ()
