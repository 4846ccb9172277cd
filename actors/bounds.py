"""What the administrator lets rules of approval say at most: a contract's rule is never looser than this."""

from functools import lru_cache

from attrs import evolve, frozen

from resumed.schemas import keys
from resumed.schemas.approvals import ApprovalRule, Policy
from resumed.schemas.durations import spell


@frozen(kw_only=True)
class Only:
    """Who, beside what a rule says, must be among those that say yes: to some tools, of some workflows."""

    by: tuple[str, ...]
    tools: tuple[str, ...] | None = None
    """None: all, and drafts of items."""
    workflows: tuple[str, ...] | None = None

    def fits(self, workflow: str, tool: str) -> bool:
        """Whether it is about this tool (for a draft: the empty name) of this workflow."""
        if self.workflows is not None and workflow not in self.workflows:
            return False
        return self.tools is None or tool in self.tools


@frozen(kw_only=True)
class Bounds:
    """The bounds in force; spans are seconds, None where there is no bound."""

    valid_for: float | None = None
    decide_within: float | None = None
    quorum: int = 1
    """At least so many must say yes."""
    not_requester: bool = False
    """The requester's own yes is none, whatever a rule says."""
    same_user: bool = True
    """Whether a yes of the user that jobs run as counts at all."""
    only: tuple[Only, ...] = ()
    """The first one that fits is in force."""
    alone: bool = False
    """One person has the daemon for itself: a rule that does not say otherwise lets it allow its own."""

    def __str__(self) -> str:
        said = [] if self.valid_for is None else [f"a yes is good for {spell(self.valid_for)} at most"]
        if self.decide_within is not None:
            said.append(f"a question stands {spell(self.decide_within)} at most")
        said += [f"{self.quorum} must say yes at least"] if self.quorum > 1 else []
        said += ["never the requester"] if self.not_requester else []
        said += [] if self.same_user else ["never the user that jobs run as"]
        said += [f"{len(self.only)} tables say who else"] if self.only else []
        if self.alone and not self.not_requester:
            said.append("the requester may say yes to its own unless a rule says otherwise")
        return ", ".join(said) or "without bounds"


@lru_cache(maxsize=1024)
def in_force(bounds: Bounds, stated: ApprovalRule, workflow: str, tool: str) -> ApprovalRule:
    """The rule that is in force today for a tool (for a draft: the empty name), as its contract states it."""
    also = next((each.by for each in bounds.only if each.fits(workflow, tool)), stated.also)
    not_requester = not bounds.alone if stated.not_requester is None else stated.not_requester
    return evolve(
        stated,
        quorum=max(stated.quorum, bounds.quorum),
        not_requester=not_requester or bounds.not_requester,
        decide_within=_least(stated.decide_within, bounds.decide_within),
        valid_for=_least(stated.valid_for, bounds.valid_for),
        same_user=stated.same_user and bounds.same_user,
        also=also,
    )


def _least(stated: float, bound: float | None) -> float:
    return stated if bound is None else min(stated, bound)


@lru_cache(maxsize=1024)
def policy(bounds: Bounds, stated: ApprovalRule, workflow: str, tool: str) -> Policy:
    """The same with its digest."""
    rule = in_force(bounds, stated, workflow, tool)
    return Policy(tool=tool, rule=rule, policy=keys.policy(rule))
