"""The frames of plain steps and of plain calls, written and read without the converter, which looks at each
field and its default and takes three times as long.

Where they answer, the converter would say the same, and the tests ask both wherever one is met. None for any
other frame, and for one that does not hold: of that the converter says what is wrong.
"""

from typing import Any

from attrs import fields

from . import strict
from .decisions import Answer, Call, Decided, GoTo, Landed, Performing
from .frames import CallGiven, Given, Outcome, Returned, Run
from .ledger import EffectState, ErrandKind
from .records import others

Plain = dict[str, Any]


# ---- written ----------------------------------------------------------------------------------------------

_OF_RUN = (
    *("job", "epoch", "item", "number", "step", "occurrence", "log", "scratch", "key", "artifacts"),
    *("attempt", "interrupted", "inputs", "state", "objective", "labels", "call", "given", "credentials"),
)
_of_run, _BARE_RUN = others(Run, *_OF_RUN)
_OF_CALL = (
    *("effect", "kind", "tool", "version", "operation_key", "fingerprint", "arguments", "unbound"),
    *("attempt", "timeout", "first"),
)
_of_call, _BARE_CALL = others(CallGiven, *_OF_CALL)
_of_given, _BARE_GIVEN = others(Given, "outcomes")
_TIMEOUT = fields(CallGiven).timeout.default


def of_run(frame: Run) -> Plain | None:
    """The plain value of a `run` as most of them are: a step of the job, which was given outcomes at most,
    or a call that brings no bytes."""
    if _of_run(frame) != _BARE_RUN:
        return None
    plain: Plain = {
        "frame": "run",
        "job": frame.job,
        "epoch": frame.epoch,
        "item": frame.item,
        "number": frame.number,
        "step": frame.step,
        "occurrence": frame.occurrence,
        "log": frame.log,
        "scratch": frame.scratch,
    }
    if frame.key:
        plain["key"] = frame.key
    if frame.artifacts:
        plain["artifacts"] = frame.artifacts
    if frame.attempt:
        plain["attempt"] = frame.attempt
    if frame.interrupted:
        plain["interrupted"] = True
    if frame.inputs != "{}":
        plain["inputs"] = frame.inputs
    if frame.state:
        plain["state"] = frame.state
    if frame.objective:
        plain["objective"] = frame.objective
    if frame.labels:
        plain["labels"] = frame.labels
    if frame.call is not None:
        if _of_call(frame.call) != _BARE_CALL:
            return None
        plain["call"] = _call_of(frame.call)
    if frame.given is not None:
        if _of_given(frame.given) != _BARE_GIVEN or not frame.given.outcomes:
            return None
        plain["given"] = {"outcomes": [_outcome_of(each) for each in frame.given.outcomes]}
    if frame.credentials:
        plain["credentials"] = frame.credentials
    return plain


def _call_of(call: CallGiven) -> Plain:
    plain: Plain = {
        "effect": call.effect,
        "kind": call.kind,
        "tool": call.tool,
        "version": call.version,
        "operation_key": call.operation_key,
        "fingerprint": call.fingerprint,
        "arguments": call.arguments,
    }
    if call.unbound != "{}":
        plain["unbound"] = call.unbound
    if call.attempt:
        plain["attempt"] = call.attempt
    if call.timeout != _TIMEOUT:
        plain["timeout"] = call.timeout
    if call.first:
        plain["first"] = True
    return plain


def _outcome_of(outcome: Outcome) -> Plain:
    plain: Plain = {"effect": outcome.effect, "tool": outcome.tool, "state": outcome.state}
    if outcome.arguments != "{}":
        plain["arguments"] = outcome.arguments
    if outcome.code:
        plain["code"] = outcome.code
    if outcome.reference:
        plain["reference"] = outcome.reference
    if outcome.reason:
        plain["reason"] = outcome.reason
    if outcome.response:
        plain["response"] = outcome.response
    return plain


# ---- read by a worker -------------------------------------------------------------------------------------

_RUN: dict[str, type] = {
    **dict.fromkeys(("job", "item", "step", "log", "scratch", "key", "artifacts"), str),
    **dict.fromkeys(("inputs", "objective", "credentials"), str),
    **dict.fromkeys(("epoch", "number", "occurrence", "attempt"), int),
    "interrupted": bool,
    **dict.fromkeys(("state", "labels", "call", "given"), dict),
}
_CALL: dict[str, type] = {
    **dict.fromkeys(("effect", "kind", "tool", "operation_key", "fingerprint", "arguments", "unbound"), str),
    **dict.fromkeys(("version", "attempt"), int),
    "timeout": float,
    "first": bool,
}
_OUTCOME: dict[str, type] = dict.fromkeys(
    ("effect", "tool", "state", "arguments", "code", "reference", "reason", "response"), str
)
_KINDS: dict[str, ErrandKind] = {each.value: each for each in ErrandKind}
_STATES: dict[str, EffectState] = {each.value: each for each in EffectState}
_TEXT = {str}


def run(value: Plain) -> Run | None:
    """The `run` in a plain value, as `of_run` writes it."""
    if not _fits(value, _RUN):
        return None
    made = dict(value)
    for name in ("state", "labels"):
        if name in made and not {*map(type, made[name].values())} <= _TEXT:
            return None
    if "call" in made and (call := _call(made["call"])) is None:
        return None
    elif "call" in made:
        made["call"] = call
    if "given" in made and (given := _given(made["given"])) is None:
        return None
    elif "given" in made:
        made["given"] = given
    try:
        return Run(**made)
    except TypeError:
        return None  # something is missing


def _fits(value: Plain, kinds: dict[str, type]) -> bool:
    """Whether all of it is known, and of its type."""
    for name, each in value.items():
        kind = type(each)
        if kind is not kinds.get(name) or (kind is int and not -strict.MAX_INT <= each <= strict.MAX_INT):
            return False
    return True


def _call(value: Plain) -> CallGiven | None:
    kind = _KINDS.get(value.get("kind", "")) if _fits(value, _CALL) else None
    if kind is None:
        return None
    try:
        return CallGiven(**{**value, "kind": kind})
    except TypeError:
        return None


def _given(value: Plain) -> Given | None:
    if [*value] != ["outcomes"] or type(value["outcomes"]) is not list:
        return None
    found = []
    for each in value["outcomes"]:
        fits = type(each) is dict and _fits(each, _OUTCOME)
        state = _STATES.get(each.get("state", "")) if fits else None
        if state is None:
            return None
        try:
            found.append(Outcome(**{**each, "state": state}))
        except TypeError:
            return None
    return Given(outcomes=tuple(found))


# ---- read by the daemon -----------------------------------------------------------------------------------

_RETURNED = ["job", "epoch", "item", "number", "answer"]
_ANSWERS = (["decided", "state"], ["decided"])
_CALLED: dict[str, type] = dict.fromkeys(
    ("tool", "arguments", "unbound", "business_object", "expected_result"), str
)
_PERFORMING: dict[str, type] = {
    "kind": str,
    "calls": list,
    **dict.fromkeys(("then", "otherwise", "back"), str),
}


def returned(value: Plain) -> Returned | None:
    """A `returned` by which the job goes on at a step, asks for calls that bring no bytes, or one landed."""
    # By the order in which our own workers write.
    if [*value] != _RETURNED:
        return None
    job, epoch, item, number, answer = value.values()
    if type(answer) is not dict or [*answer] not in _ANSWERS:
        return None
    decided = _decided(answer["decided"])
    state = answer.get("state", {})
    if decided is None or type(job) is not str or type(item) is not str or type(state) is not dict:
        return None
    if type(epoch) is not int or type(number) is not int or not {*map(type, state.values())} <= _TEXT:
        return None
    if not (-strict.MAX_INT <= epoch <= strict.MAX_INT and -strict.MAX_INT <= number <= strict.MAX_INT):
        return None
    given = Answer(decided=decided, state=state)
    return Returned(job=job, epoch=epoch, item=item, number=number, answer=given)


def _decided(value: object) -> Decided | None:
    if type(value) is not dict:
        return None
    kind = value.get("kind")
    if kind == "GoTo" and [*value] == ["kind", "step"] and type(value["step"]) is str:
        return GoTo(step=value["step"])
    if kind == "Landed" and [*value] == ["kind", "reference"] and type(value["reference"]) is str:
        return Landed(reference=value["reference"])
    if kind != "Performing" or not _fits(value, _PERFORMING) or "calls" not in value:
        return None
    calls = value["calls"]
    for each in calls:
        if type(each) is not dict or not _fits(each, _CALLED) or not ("tool" in each and "arguments" in each):
            return None
    return Performing(
        calls=tuple([Call(**each) for each in calls]),
        then=value.get("then", ""),
        otherwise=value.get("otherwise", ""),
        back=value.get("back", ""),
    )
