"""What the law answers: an entry to commit, a refusal, or that nothing would change."""

from attrs import frozen

from resumed.schemas.receipt import Receipt
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry


@frozen(kw_only=True)
class Unchanged:
    """The event finds the job as it wants it (a repeat, an answer already known): nothing to commit."""

    reason: str
    receipt: Receipt | None = None
    """The answer that the same request was given first, when that is kept."""


Verdict = Entry | Refusal | Unchanged
