"""The law of publishing an output: two commits around one rename (DESIGN.md section 5).

The answer of a try that staged an output is the first: destination, digest and inode are durable, the item is
in progress and no try of it is open. From then on the rename is due until what came of it is the second.
Told to leave the item out or to end the job meanwhile, the staged file is due to be taken away instead; if
it has its name already, it is published, and that is what is recorded.
"""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from resumed.schemas import decisions, events
from resumed.schemas.events import Placing
from resumed.schemas.job import Artifact, Item, ItemState, StopReason
from resumed.schemas.publication import Publication, Sequel

from .backoff import backoff
from .draft import Draft
from .ends import count_failure, hold_unit
from .verdict import Unchanged

CODE = "publishing"
EXISTS = "output_exists"
REFUSED = "publish"

CarryOut = Callable[[Draft, Item, decisions.Decided, Artifact | None], str]
"""What a decision makes of its unit."""


def offered(decided: decisions.Decided) -> decisions.Offer | None:
    """The offer in a decision that is to be published, if there is one."""
    offer: decisions.Offer | None = getattr(decided, "output", None)
    return offer if offer is not None and offer.publish is not None else None


def problem(draft: Draft, unit: Item, decided: decisions.Decided) -> str:
    """Why a staged output cannot be published; empty when it can, or there is none."""
    offer = offered(decided)
    if offer is None or offer.publish is None:
        return ""
    staged = offer.publish
    if draft.contract.entry:
        return f"step {unit.at}: only a program's output is published"
    if not _sequel(decided):
        return f"step {unit.at}: {type(decided).__name__} as it is cannot wait for an output to be published"
    if not staged.destination.startswith("/") or "/" in staged.temp or staged.temp in ("", ".", ".."):
        return f"step {unit.at}: cannot publish {staged.destination!r} from {staged.temp!r}"
    return ""


def begin(draft: Draft, unit: Item, event: events.Returned, skipped: bool) -> str:
    """The first commit: the output is staged, and its rename (or its removal) is due from here on."""
    offer = offered(event.answer.decided)
    assert offer is not None
    assert offer.publish is not None
    stop: StopReason | None = None
    if draft.stopping():
        stop = StopReason.CANCEL if draft.cancel is not None else StopReason.EXPIRE
    elif skipped:
        stop = StopReason.SKIP
    unit = _on_its_way(unit, offer.publish.destination)
    draft.put(unit)
    draft.publications[unit.id] = Publication(
        unit=unit.id,
        number=unit.publishes,
        destination=offer.publish.destination,
        temp=offer.publish.temp,
        device=offer.publish.device,
        inode=offer.publish.inode,
        sha256=offer.sha256,
        size=offer.size,
        **_sequel(event.answer.decided),
        output=event.output,
        stop=stop,
    )
    return CODE


def _sequel(decided: decisions.Decided) -> dict[str, Any]:
    """The fields of a row that say what comes after it; none for a decision that cannot wait for a rename."""
    if isinstance(decided, decisions.Accepted):
        return {"sequel": Sequel.DONE}
    if isinstance(decided, decisions.NextStep):
        return {
            "sequel": Sequel.NEXT,
            "step": decided.step,
            "waits": decided.waits,
            "data": decided.data,
        }
    if isinstance(decided, decisions.GoTo) and not decided.items:
        return {"sequel": Sequel.GOTO, "step": decided.step}
    if isinstance(decided, decisions.FanOut) and decided.items is None and decided.tries is None:
        return {
            "sequel": Sequel.EACH,
            "step": decided.start,
            "then": decided.then,
            "parallel": decided.parallel,
        }
    return {}


def _decision(row: Publication) -> decisions.Decided:
    """What comes after it, as it was decided."""
    if row.sequel is Sequel.NEXT:
        return decisions.NextStep(step=row.step, data=row.data, waits=row.waits)
    if row.sequel is Sequel.GOTO:
        return decisions.GoTo(step=row.step)
    if row.sequel is Sequel.EACH:
        return decisions.FanOut(start=row.step, then=row.then, parallel=row.parallel)
    return decisions.Accepted()


def _on_its_way(unit: Item, destination: str) -> Item:
    return evolve(
        unit,
        state=ItemState.IN_PROGRESS,
        publishes=unit.publishes + 1,
        not_before=None,
        code=CODE,
        reason=f"its output is to be {destination}",
    )


def came(draft: Draft, event: events.Placed, carry_out: CarryOut) -> str | Unchanged:
    """The second commit: what came of an attempt to publish, or to take away."""
    row = draft.publications.get(event.unit)
    if row is None or row.number != event.number:
        return Unchanged(reason="stale: no such attempt to publish is open")
    unit = draft.unit(event.unit)
    assert unit is not None
    if event.outcome is Placing.PUBLISHED:
        del draft.publications[event.unit]
        if row.stop is StopReason.SKIP and row.sequel is not Sequel.DONE:
            return _dropped(draft, unit, row.stop)
        output = row.output
        if output is not None and output.path:
            output = evolve(output, device=event.device, inode=event.inode)
        return carry_out(draft, unit, _decision(row), output)
    if row.stop is not None:
        return _taken_away(draft, unit, row, event)
    if event.outcome is Placing.LOST:
        del draft.publications[event.unit]
        return _lost(draft, unit, event.reason)
    if event.outcome is Placing.EXISTS:
        return _hold(draft, unit, row, EXISTS, event.reason)
    return _refused(draft, unit, row, event.reason)


def _taken_away(draft: Draft, unit: Item, row: Publication, event: events.Placed) -> str:
    assert row.stop is not None
    if event.outcome in (Placing.WITHDRAWN, Placing.LOST):
        del draft.publications[unit.id]
        return _dropped(draft, unit, row.stop)
    if event.outcome is Placing.EXISTS:  # of the rename that was on its way when it was told to stop
        draft.publications[unit.id] = evolve(row, number=unit.publishes + 1)
    elif row.failures + 1 >= draft.step_of(unit).tries:
        # What cannot be taken away stays beside the place it was for; the job's end does not wait for it.
        del draft.publications[unit.id]
        return _dropped(draft, unit, row.stop)
    else:
        _once_more(draft, unit, row)
    draft.put(evolve(unit, publishes=unit.publishes + 1))
    return "again"


def _dropped(draft: Draft, unit: Item, stop: StopReason) -> str:
    if stop is StopReason.HOLD:
        return "taken away"  # the job ends around an item that stays held
    if stop is StopReason.SKIP:
        reason = "left out by a person before it was published"
        draft.put(evolve(unit, state=ItemState.SKIPPED, code="skipped", reason=reason))
        return "skipped"
    code = "canceled" if stop is StopReason.CANCEL else "expired"
    reason = "the job was ended before its output was published"
    draft.put(evolve(unit, state=ItemState.PENDING, code=code, reason=reason))
    return code


def _lost(draft: Draft, unit: Item, reason: str) -> str:
    """Nothing was published, and what was staged is gone: the step is to be done again, if it may be."""
    if draft.step_of(unit).repeatable:
        return count_failure(draft, unit, "output_lost", reason)
    hold_unit(draft, unit, "output_lost", f"{reason}; its step is not repeatable")
    return "held"


def _hold(draft: Draft, unit: Item, row: Publication, code: str, reason: str) -> str:
    # A number of its own: the attempt that ended here is over, and whatever comes next is another.
    unit = evolve(unit, publishes=unit.publishes + 1)
    draft.publications[unit.id] = evolve(row, number=unit.publishes, blocked=True)
    hold_unit(draft, unit, code, reason)
    return "held"


def _refused(draft: Draft, unit: Item, row: Publication, reason: str) -> str:
    """The system's own no: tried again like the step, held when its tries are used up. Nothing is lost."""
    if row.failures + 1 >= draft.step_of(unit).tries:
        return _hold(draft, unit, row, REFUSED, reason)
    _once_more(draft, unit, row)
    draft.put(evolve(unit, publishes=unit.publishes + 1, reason=reason))
    return "again"


def _once_more(draft: Draft, unit: Item, row: Publication) -> None:
    wait = backoff(draft.step_of(unit), row.failures + 1, draft.job.id, unit.id)
    draft.publications[unit.id] = evolve(
        row, number=unit.publishes + 1, failures=row.failures + 1, not_before=draft.ahead(wait)
    )


def renewed(draft: Draft, unit: Item) -> Item | None:
    """The unit with its output on its way again, after a person looked; None when none is staged."""
    row = draft.publications.get(unit.id)
    if row is None:
        return None
    unit = _on_its_way(unit, row.destination)
    draft.publications[unit.id] = evolve(
        row, number=unit.publishes, failures=0, not_before=None, blocked=False
    )
    return unit


def leave_out(draft: Draft, unit: Item) -> bool:
    """A person leaves the unit out: its staged output is to be taken away; False when none is staged."""
    row = draft.publications.get(unit.id)
    if row is None:
        return False
    draft.mark_withdrawn(row, StopReason.SKIP)
    draft.put(evolve(unit, state=ItemState.IN_PROGRESS, code=CODE, reason="left out by a person"))
    return True
