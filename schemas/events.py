"""What can happen to a job: requests of persons, reports of workers, and the passing of time.

`unit` names an item, or the job's own position by the empty text.
"""

from enum import StrEnum

from attrs import frozen

from .approvals import Facts, Policy
from .decisions import Answer
from .job import Artifact, Budget, Person
from .ledger import Obstacle
from .limits import Limits


# Requests of persons. One with a `record` is meant for the job as it stood at that line, and is refused where
# the job has moved on. One with a `request` id is answered under that id once, and the same ever after.
@frozen(kw_only=True)
class Pause:
    """Start nothing new; with `now`, also stop what runs."""

    by: Person
    reason: str = ""
    record: int = 0
    request: str = ""
    now: bool = False


@frozen(kw_only=True)
class Resume:
    """Go on: lifts a pause, or a hold of the whole job."""

    by: Person
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class Cancel:
    """End the job: nothing new starts, what runs is stopped."""

    by: Person
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class Retry:
    """Give failed or held items (all of them when none is named) a fresh set of tries."""

    by: Person
    items: tuple[str, ...] = ()
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class Skip:
    """Leave items out (all failed and held ones when none is named)."""

    by: Person
    items: tuple[str, ...] = ()
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class Reopen:
    """Begin items again that have been settled: the ones named, also those that are done."""

    by: Person
    items: tuple[str, ...] = ()
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class Extend:
    """Let the job use more: each limit named (None: not this one) is raised to that value, as far as its
    workflow allows. `deadline` is a moment or a span from now, as `times` reads it; `active_time` is seconds.

    `allowed` is what the workflow of that name allows today, where it is still there.
    """

    by: Person
    reason: str = ""
    record: int = 0
    request: str = ""
    usd: str | None = None
    tokens: int | None = None
    turns: int | None = None
    active_time: float | None = None
    deadline: str | None = None
    allowed: Limits | None = None


@frozen(kw_only=True)
class Approve:
    """Allow the effect, or accept the draft, that `subject` names: as `fingerprint` says it was shown.

    `subject` is an effect's id or a review's unit. `shown` is the sha256 of what was shown. `text` is an
    edited draft's new revision, durable already.
    """

    by: Person
    subject: str
    fingerprint: str
    reason: str = ""
    record: int = 0
    request: str = ""
    shown: str = ""
    text: Artifact | None = None
    facts: Facts | None = None


@frozen(kw_only=True)
class Deny:
    """Refuse the effect, or the draft, that `subject` names."""

    by: Person
    subject: str
    fingerprint: str
    reason: str = ""
    record: int = 0
    request: str = ""
    facts: Facts | None = None


@frozen(kw_only=True)
class SendBack:
    """Have the effect, or the draft, made anew; `reason` is the note for whoever makes it."""

    by: Person
    subject: str
    fingerprint: str
    reason: str = ""
    record: int = 0
    request: str = ""
    facts: Facts | None = None


@frozen(kw_only=True)
class Revoke:
    """Take a yes back before it is spent: the effect is asked about anew."""

    by: Person
    subject: str
    reason: str = ""
    record: int = 0
    request: str = ""
    facts: Facts | None = None


@frozen(kw_only=True)
class Reply:
    """Answer the question that `subject` names."""

    by: Person
    subject: str
    answer: str
    reason: str = ""
    record: int = 0
    request: str = ""
    facts: Facts | None = None


@frozen(kw_only=True)
class Settle:
    """Say what became of an effect that may have left: it landed as `reference`, or (None) never arrived."""

    by: Person
    subject: str
    reference: str | None = None
    reason: str = ""
    record: int = 0
    request: str = ""


Deciding = Approve | Deny | SendBack | Revoke | Reply | Settle
"""What people decide about effects, drafts and questions."""
Request = (
    Pause
    | Resume
    | Cancel
    | Retry
    | Skip
    | Reopen
    | Extend
    | Approve
    | Deny
    | SendBack
    | Revoke
    | Reply
    | Settle
)


# Reports.
@frozen(kw_only=True)
class Grant:
    """A slot is free: start this unit's try, or the errand of that name, in that worker.

    `facts` come with the errand that lets an effect go, or that checks it just before.
    """

    unit: str
    worker: str
    facts: Facts | None = None


@frozen(kw_only=True, slots=False)  # made at every step and soon gone: quicker so
class Returned:
    """A handler answered; `output` is the durable artifact made of the offer in the answer, if any."""

    unit: str
    epoch: int
    number: int
    answer: Answer
    output: Artifact | None = None
    slot: bool = True
    """Whether the try's slot may take the job's next try at once."""
    late: bool = False
    """It came from a worker that did not have the try in hand: evidence, whatever is open when it is read."""
    kept: tuple[Artifact, ...] = ()
    """What was made durable of the other bytes in the answer, one for each of `decisions.offers`."""
    facts: Facts | None = None
    """With the answer to a check, or with a call that nobody is asked about: so that it can be let
    go in the same commit."""
    policies: tuple[Policy, ...] = ()
    """With what asks people: the rules in force, one for each of its tools."""


@frozen(kw_only=True)
class Raised:
    """A handler ended with an error of its own; `late` as in an answer."""

    unit: str
    epoch: int
    number: int
    error: str
    late: bool = False


@frozen(kw_only=True)
class Gone:
    """The process tree of a try is known dead and it gave no answer.

    `died` is true when nobody asked for it (a crash); `began` is false when its worker never heard of it, so
    nothing of it can have happened; `reason` says what is known.
    """

    unit: str
    epoch: int
    number: int
    died: bool
    began: bool = True
    reason: str = ""
    used: Budget | None = None
    """What it said that it had spent."""


class Placing(StrEnum):
    """What came of an attempt to publish an output, or to take it away."""

    PUBLISHED = "published"
    EXISTS = "exists"
    """Something else bears the name."""
    LOST = "lost"
    """The staged file is gone, or is not what it was."""
    REFUSED = "refused"
    """The system refused; it may work later."""
    WITHDRAWN = "withdrawn"


@frozen(kw_only=True)
class Placed:
    """An attempt to publish an output is over; `reason` says why where it did not end as it should.

    `device` and `inode` are of the file that bears the name now, where it is published.
    """

    unit: str
    number: int
    outcome: Placing
    reason: str = ""
    device: int = 0
    inode: int = 0


@frozen(kw_only=True)
class Woke:
    """The job was loaded with an attempt open: every tree of it is known dead, except those in `unproven`.

    With `most`, only so many of its tries are closed now, and the attempt stays open until none is left.
    """

    unproven: tuple[str, ...] = ()
    detail: str = ""
    most: int | None = None
    torn: bool = False
    """A line of the job may have been lost: what that line could have let go is suspect."""


@frozen(kw_only=True)
class Tick:
    """Time passed; the law looks for limits that have lapsed."""


@frozen(kw_only=True)
class Shutdown:
    """The daemon drains: tries are stopped and recorded as interrupted in good order."""


@frozen(kw_only=True)
class Trouble:
    """The machine cannot go on with this job: it is held with this code and reason."""

    code: str
    reason: str


@frozen(kw_only=True)
class OtherJob:
    """What is known of a job that this one waits for: it has completed, or why it will not, or it is open."""

    job: str
    completed: bool = False
    obstacle: Obstacle | None = None


Report = Grant | Returned | Raised | Gone | Placed | Woke | Tick | Shutdown | Trouble | OtherJob
Event = Request | Report
