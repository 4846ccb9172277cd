"""The tool contract that an effect of a workflow file states."""

from .ledger import ToolContract
from .programeffects import ProgramEffect


def contract_of(effect: ProgramEffect) -> ToolContract:
    """What the law is told of it."""
    return ToolContract(
        tool=effect.name,
        version=effect.version,
        target=effect.target,
        key_lifetime=effect.key_lifetime,
        look_up=effect.looks_up,
        absent_is_final=effect.absent_is_final,
        in_flight=effect.in_flight,
        unclear_owner=effect.owner,
        undo=effect.undo,
        irreversible=effect.irreversible,
        address=effect.address,
        account=effect.account,
        approve=effect.approve,
        timeout=effect.timeout,
        at_once=effect.at_once,
        observe=effect.observes,
        check_first=effect.check_first,
        unbound=effect.unbound,
    )
