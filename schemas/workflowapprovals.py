"""`effect.approve` and `step.review` of a workflow file: who is asked, and for how long."""

from collections.abc import Collection

from . import conditions
from .approvals import DECIDE_WITHIN, VALID_FOR, ApprovalRule
from .filetable import Table
from .programeffects import ProgramReview
from .workflowwords import argv, people

VIA = ("socket",)
"""The ways a decision may come in; what lies in the watched folder decides nothing."""


def approve(table: Table) -> ApprovalRule | None:
    """The rule of an effect, None where it says that nobody is asked; which of both must be written."""
    if table.has("approve") and table.peek("approve") is False:
        table.whatever("approve")
        return None
    if table.has("approve") and not isinstance(table.peek("approve"), dict):
        table.whatever("approve")
        table.problem("approve", 'expected false, or a table such as { by = "group:curators" }')
        return None
    inner = table.inner("approve")
    if inner is None:
        table.problems.append(
            f"required key 'approve' is missing (false, or who must say yes) @ {table.path}"
        )
        return None
    rule = ApprovalRule(
        by=_by(inner),
        quorum=inner.number("quorum", 1, 1),
        not_requester=inner.flag("not_requester") if inner.has("not_requester") else None,
        decide_within=_span(inner, "decide_within", DECIDE_WITHIN),
        valid_for=_span(inner, "valid_for", VALID_FOR),
        via=_via(inner),
        when=_when(inner),
    )
    users = [name for name in rule.by if name.startswith("user:")]
    if rule.by and len(users) == len(rule.by) < rule.quorum:
        inner.problem("quorum", f"only {len(users)} of {rule.quorum} people are named in by")
    inner.close()
    return rule


def review(table: Table | None, known: Collection[str]) -> ProgramReview | None:
    """A step's review. Whoever asked for the job may look at its drafts: no key of it says otherwise."""
    if table is None:
        return None
    found = ProgramReview(
        rule=ApprovalRule(
            by=_by(table), not_requester=False, decide_within=_span(table, "decide_within", DECIDE_WITHIN)
        ),
        edit=table.flag("edit", True),
        show=argv(table, "show", known),
    )
    table.close()
    return found


def _by(table: Table) -> tuple[str, ...]:
    found = people(table, "by")
    for place, name in enumerate(found):
        if name in found[:place]:
            table.problem("by", f"{name} stands twice")
    return found


def _span(table: Table, key: str, default: float) -> float:
    found = table.duration(key, default)
    if found <= 0:
        table.problem(key, "expected more than 0s")
        return default
    return found


def _via(table: Table) -> tuple[str, ...]:
    found = table.texts("via")
    for place, name in enumerate(found):
        if name not in VIA:
            table.problems.append(
                f"expected one of {', '.join(VIA)}, got {name!r} @ {table.at('via')}[{place}]"
            )
    return found


def _when(table: Table) -> str:
    text = table.text("when")
    if text or table.has("when"):
        try:
            conditions.read(text)
        except ValueError as error:
            table.problem("when", str(error))
            return ""
    return text
