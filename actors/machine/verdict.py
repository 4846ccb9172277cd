"""What the law answers: an entry to commit, a refusal, or that nothing would change."""

from attrs import frozen

from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry


@frozen(kw_only=True)
class Unchanged:
    """The event finds the job as it wants it (a repeat, an answer already known): nothing to commit."""

    reason: str


Verdict = Entry | Refusal | Unchanged
