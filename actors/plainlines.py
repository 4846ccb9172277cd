"""The lines of plain steps and of plain calls, spelled from what they come to, without the records between.

Byte for byte what `line_io.spell_line` makes of the line that the law at large would have; wherever a test
meets one, it is held to that.
"""

from collections.abc import Callable
from typing import Any

from resumed.schemas import codec, line_io
from resumed.schemas.instant import Instant, spell_once
from resumed.schemas.job import Item, Next, Try
from resumed.schemas.ledger import Effect, Performance
from resumed.schemas.records import others

from .machine import plain, plaincall

Spelled = tuple[bytes, str]
"""A line and its digest."""
Plain = dict[str, object]

_FIXED = (
    *("id", "ordinal", "state", "at", "occurrence", "tries", "failures", "crashes", "started", "ended"),
    *("not_before", "data", "code", "reason"),
)
"""What a plain step gives the position anew, and what is always written."""
_of_position, _BARE = others(Item, *_FIXED)


def spell(
    found: plain.Going | plaincall.Calling | plaincall.Landing,
    sequence: int,
    epoch: int,
    previous: str,
    now: Instant,
) -> Spelled | None:
    """The line of what a turn comes to; None where it would be refused, or says more than most."""
    try:
        return _OF[type(found)](found, sequence, epoch, previous, now)
    except OverflowError:
        return None  # an instant that has no date


def _of_step(going: plain.Going, sequence: int, epoch: int, previous: str, now: Instant) -> Spelled | None:
    """The line of a plain step."""
    if not _is_bare(going.position, going.row.step, going.permitted):
        return None
    at = _moment(now)
    changes: Plain = {"tries": (_try(going.row, at),), "position": _started(going.position, at)}
    if going.permitted is not None:
        changes["next"] = {"step": going.permitted.step}
    if going.state:
        changes["state"] = going.state
    decision = {"by": "author", "rule": "returned", "choice": f"goto {going.row.step}"}
    entry = {"transition": "returned", "decision": decision, "changes": changes}
    return _line(sequence, epoch, previous, at, entry)


def _of_call(
    calling: plaincall.Calling, sequence: int, epoch: int, previous: str, now: Instant
) -> Spelled | None:
    """The same of a plain call that is asked for, and goes."""
    position, row = calling.position, calling.errand
    if not _is_bare(position, position.at, None) or position.failures or position.data != "{}":
        return None
    if position.started is None:
        return None
    at = _moment(now)
    changes: Plain = {
        "ended": ("",),
        "position": {
            "id": "",
            "ordinal": position.ordinal,
            "state": "in_progress",
            "at": position.at,
            "occurrence": position.occurrence,
            "tries": position.tries,
            "started": _moment(position.started),
            "ended": at,
            "reason": position.reason,
            "code": position.code,
        },
    }
    if calling.state:
        changes["state"] = calling.state
    changes["effects"] = (_effect(calling.effect, "dispatching", at, at),)
    changes["errands"] = (
        {
            "effect": row.effect,
            "kind": "send",
            "epoch": row.epoch,
            "number": row.number,
            "started": at,
            "until": _moment(row.until),
            "worker": row.worker,
        },
    )
    changes["performances"] = (_performance(calling.performance),)
    decision = {"by": "author", "rule": "returned", "choice": plaincall.CALLED}
    entry = {"transition": "returned", "decision": decision, "changes": changes}
    return _line(sequence, epoch, previous, at, entry)


def _of_landing(
    landing: plaincall.Landing, sequence: int, epoch: int, previous: str, now: Instant
) -> Spelled | None:
    """The same of the landing of one."""
    effect, position = landing.effect, landing.position
    if not _is_bare(position, landing.row.step, landing.permitted):
        return None
    if effect.proposed is None or effect.first_dispatch is None:
        return None
    at = _moment(now)
    changes: Plain = {"tries": (_try(landing.row, at),), "position": _started(position, at)}
    if landing.permitted is not None:
        changes["next"] = {"step": landing.permitted.step}
    asked = _moment(effect.proposed)
    sent = asked if effect.first_dispatch == effect.proposed else _moment(effect.first_dispatch)
    changes["effects"] = (_effect(effect, "confirmed", asked, sent) | {"settled": at},)
    changes["returned"] = (effect.id,)
    changes["performances"] = (_performance(landing.performance),)
    decision = {"by": "machine", "rule": f"effect {effect.id}", "choice": plaincall.LANDED}
    entry = {"transition": "effect", "decision": decision, "changes": changes}
    return _line(sequence, epoch, previous, at, entry)


_OF: dict[type, Callable[[Any, int, int, str, Instant], Spelled | None]] = {
    plain.Going: _of_step,
    plaincall.Calling: _of_call,
    plaincall.Landing: _of_landing,
}


def _is_bare(position: Item, step: str, permitted: Next | None) -> bool:
    """Whether all that the spellings below do not write holds its default."""
    bare: bool = _of_position(position) == _BARE and bool(step)
    return bare and (permitted is None or not (permitted.preconditions or permitted.allowed_tools))


def _moment(moment: Instant) -> Plain:
    return {"wall": spell_once(moment.wall), "boot": moment.boot, "up": moment.up}


def _try(row: Try, at: Plain) -> Plain:
    return {
        "epoch": row.epoch,
        "item": "",
        "number": row.number,
        "step": row.step,
        "occurrence": row.occurrence,
        "started": at,
        "until": _moment(row.until),
        "worker": row.worker,
    }


def _started(position: Item, at: Plain) -> Plain:
    return {
        "id": position.id,
        "ordinal": position.ordinal,
        "state": "in_progress",
        "at": position.at,
        "occurrence": position.occurrence,
        "tries": position.tries,
        "crashes": 1,
        "started": at,
    }


def _effect(effect: Effect, state: str, asked: Plain, sent: Plain) -> Plain:
    made: Plain = {
        "id": effect.id,
        "state": state,
        "item": "",
        "business_object": effect.business_object,
        "operation_key": effect.operation_key,
        "fingerprint": effect.fingerprint,
        "tool": effect.tool,
        "target": effect.target,
        "arguments": effect.arguments,
    }
    if effect.expected_result:
        made["expected_result"] = effect.expected_result
    if effect.reference:
        made["reference"] = effect.reference
    if effect.confirmed_by:
        made["confirmed_by"] = effect.confirmed_by
    if effect.version != 1:
        made["version"] = effect.version
    made["step"] = effect.step
    made["occurrence"] = effect.occurrence
    if effect.unbound != "{}":
        made["unbound"] = effect.unbound
    made["proposed"] = asked
    made["errands"] = effect.errands
    made["dispatches"] = effect.dispatches
    made["first_dispatch"] = sent
    return made


def _performance(row: Performance) -> Plain:
    made: Plain = {
        "unit": "",
        "step": row.step,
        "occurrence": row.occurrence,
        "effects": row.effects,
        "then": row.then,
    }
    if row.otherwise:
        made["otherwise"] = row.otherwise
    if row.back:
        made["back"] = row.back
    if row.over:
        made["over"] = True
        made["led"] = row.led
    return made


def _line(sequence: int, epoch: int, previous: str, at: Plain, entry: dict[str, Any]) -> Spelled | None:
    line = {"sequence": sequence, "epoch": epoch, "previous": previous, "at": at, "entries": (entry,)}
    try:
        payload = codec.dump_plain(line)
    except TypeError:
        return None
    if b"\\u0000" in payload or len(payload) > line_io.MAX_LINE // 2:
        return None
    return line_io.spell(payload)
