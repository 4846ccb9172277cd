"""Tool contracts as people are shown them: what holds of each target, and what is worth a second thought."""

from resumed.schemas import effectadvice
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.askviews import ToolRow
from resumed.schemas.durations import spell
from resumed.schemas.ledger import ToolContract, in_flight
from resumed.schemas.workflow import Contract

from .machine.asks import InForce, as_stated


def holds(tool: ToolContract) -> tuple[str, ...]:
    """What keeps a call from landing twice, or from being lost: never more than its contract says."""
    said: list[str] = []
    if tool.key_lifetime is not None:
        said.append(f"the target takes one call under a key, for {spell(tool.key_lifetime)}")
    if tool.look_up:
        final = "its word that nothing came is final" if tool.absent_is_final else "only its yes is final"
        said.append(f"the target can be asked what became of it: {final}")
    if not said:
        said.append("nobody can tell what became of a call without an answer: a person is asked")
    if tool.check_first:
        said.append("it is looked up before it is sent first")
    if tool.observe:
        said.append("the target's object is looked at before it is sent")
    return tuple(said)


def rule(found: ApprovalRule | None) -> str:
    """Who must allow it, in words; empty when nobody is asked."""
    if found is None:
        return ""
    who = " or ".join(found.by) or "any approver"
    if found.quorum > 1:
        who = f"{found.quorum} of {', '.join(found.by)}" if found.by else f"{found.quorum} approvers"
    parts = [who]
    if found.also:
        parts.append(f"of {' or '.join(found.also)}")
    parts.append("the requester, too" if found.not_requester is False else "not the requester")
    if not found.same_user:
        parts.append("not the user that jobs run as")
    if found.when:
        parts.append(f"when {found.when}")
    parts.append(f"asked for {spell(found.decide_within)}, a yes is good for {spell(found.valid_for)}")
    return ", ".join(parts)


def rows(contract: Contract, in_force: InForce = as_stated) -> tuple[ToolRow, ...]:
    """What a workflow may write to other systems; `in_force` gives the rule for a tool that states one."""
    return tuple(
        ToolRow(
            tool=tool.tool,
            version=tool.version,
            workflow=contract.workflow,
            workflow_version=contract.version,
            target=tool.target,
            address=tool.address,
            account=tool.account,
            approve=rule(None if tool.approve is None else in_force(tool.tool, tool.approve)),
            look_up=tool.look_up,
            absent_is_final=tool.absent_is_final,
            key_lifetime=tool.key_lifetime or 0.0,
            in_flight=in_flight(tool),
            timeout=tool.timeout,
            at_once=tool.at_once,
            observe=tool.observe,
            check_first=tool.check_first,
            undo=tool.undo,
            irreversible=tool.irreversible,
            unclear_owner=tool.unclear_owner,
            unbound=tool.unbound,
            holds=holds(tool),
            warnings=tuple(effectadvice.of_tool(tool)),
        )
        for tool in contract.effects
    )
