"""Who may allow a call, what was asked, and what a shell found out about people: records of rules and gates.

A rule is the author's, bounded by the administrator; it names people by name, and a decision is judged by the
numbers that those names stand for at that moment. Nothing here comes from a request.
"""

from attrs import frozen

from .instant import Instant

DECIDE_WITHIN = 7 * 86_400.0
VALID_FOR = 86_400.0
"""Seconds that a question stands, and that a yes is good for until dispatch (INTERFACE.md)."""


@frozen(kw_only=True)
class ApprovalRule:
    """Who may decide, and for how long a question and a yes stand; spans of time are seconds.

    `by` holds `user:NAME` and `group:NAME`; empty is whoever has the role of an approver over the job.
    """

    by: tuple[str, ...] = ()
    quorum: int = 1
    """How many different people must say yes."""
    not_requester: bool | None = None
    """Whether the requester's own yes is none; None: that is so, but not where one person has the daemon
    alone. In a rule that is in force it is never None."""
    decide_within: float = DECIDE_WITHIN
    valid_for: float = VALID_FOR
    via: tuple[str, ...] = ()
    """The ways a decision may come in; empty: any."""
    when: str = ""
    """A condition on an argument, as `workflows.d` writes it: where it does not hold, nobody is asked."""
    same_user: bool = True
    """Whether somebody who is the user that jobs run as may say yes."""
    also: tuple[str, ...] = ()
    """The administrator's: who says yes must be one of these, too; empty: no matter."""


@frozen(kw_only=True)
class Gate:
    """One round of asking: since when it stands, and under which rule."""

    round: int = 1
    """Counts the rounds of one row; an approval of an earlier round is no answer."""
    asked: Instant
    policy: str = ""
    """The sha256 of the rule in force when it was asked."""
    why: str = ""
    """Why it is asked anew: `lapsed`, `expired`, `revoked`, `policy`, `member`, `extended`, `absent`, ..."""
    within: float = DECIDE_WITHIN
    """Seconds that a question stands, by the rule in force when it was asked."""
    until: Instant | None = None
    """When this round is over: undecided, or because a yes given in it is good no longer."""
    met: Instant | None = None
    """When as many had said yes as the rule in force then wanted."""


@frozen(kw_only=True)
class Policy:
    """The rule in force for one tool (for a draft: the empty name) when something was asked."""

    tool: str
    rule: ApprovalRule
    policy: str
    """The sha256 of that rule, spelled by RFC 8785."""


@frozen(kw_only=True)
class Member:
    """What a name in a rule stands for on this host now; `number` is None where the host does not know it."""

    who: str
    number: int | None = None


@frozen(kw_only=True)
class Standing:
    """What the host says today of somebody: its groups by number, None while nobody can tell."""

    uid: int
    gids: tuple[int, ...] | None = None
    """Its primary group and all others; empty where the host does not know the user any more."""
    roles: tuple[str, ...] | None = ()
    """Its roles over the job; None while nobody can tell."""


@frozen(kw_only=True)
class Facts:
    """What the shell found out just before a decision or a dispatch is judged; the law judges, purely.

    `rule` is what is in force today for this tool or review: the contract's, bounded by the administrator.
    """

    rule: ApprovalRule
    policy: str
    """The sha256 of that rule, spelled by RFC 8785."""
    members: tuple[Member, ...] = ()
    """One for each name in the rule's `by` and `also`."""
    people: tuple[Standing, ...] = ()
    """One for each whose yes stands, and for who decides now."""
    names: tuple[str, ...] = ()
    """The names, now, of the groups of who decides."""
    requester: bool | None = True
    """Whether the requester may still hand in such a job; None while nobody can tell."""
    jobs_uid: int = -1
    """The user that jobs run as; -1 where jobs do not share anybody's."""
    requester_uid: int = -1
    """The requester's number; -1 where nobody knows it."""
    problem: str = ""
    """Why not all of it could be found out: then nothing is allowed."""
    placed: str = ""
    """Why who decides cannot be placed outside the process trees of all attempts; empty when it can."""
