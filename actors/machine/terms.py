"""Terms: when a job may run and how far, as its workflow and its file say together; judged at the door."""

from attrs import evolve, frozen

from resumed.schemas import limits
from resumed.schemas.durations import exact
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant, later
from resumed.schemas.job import Budget
from resumed.schemas.jobfile import JobFile
from resumed.schemas.workflow import Contract

from . import schedule


@frozen(kw_only=True)
class Terms:
    """What a job is admitted under. `contract` still says what the workflow allows of money, tokens, turns
    and time, so that what the job may use can be raised again up to that."""

    contract: Contract
    budget: Budget
    not_before: Instant | None
    deadline: Instant | None


def terms(file: JobFile, contract: Contract, now: Instant, what: str) -> Terms:
    """The terms of a job that is admitted now.

    FaultyInputError (begun by `what`) where its file asks for more than the workflow allows, or for times
    that make no sense.
    """
    allowed = contract.limits
    held = limits.tightened(allowed, file.limits, what)
    not_before, deadline = schedule.instants(file, now, what)
    if allowed.deadline is not None and deadline is not None:
        latest = later(now, allowed.deadline)
        if deadline.wall > latest.wall:
            said = f"a job may only tighten: the workflow allows {exact(allowed.deadline)} @ $.deadline"
            raise FaultyInputError(what, (said,))
    if held.deadline is not None:
        own = later(now, held.deadline)
        deadline = own if deadline is None or own.wall < deadline.wall else deadline
    if deadline is not None and not_before is not None and deadline.wall <= not_before.wall:
        raise FaultyInputError(what, ("the deadline comes before the job may start @ $.not_before",))
    on_failed = limits.tighter_on_failed(contract.on_failed, file.on_failed, what)
    bounds = (
        allowed
        if held is allowed
        else evolve(allowed, memory=held.memory, pids=held.pids, failures_in_a_row=held.failures_in_a_row)
    )
    if on_failed is not contract.on_failed or bounds != allowed:
        # Else it stays the very same record, which is spelled once for all its jobs.
        contract = evolve(contract, on_failed=on_failed, limits=bounds)
    return Terms(
        contract=contract,
        budget=Budget(usd=held.usd, tokens=held.tokens, turns=held.turns, active_seconds=held.active_time),
        not_before=not_before,
        deadline=deadline,
    )
