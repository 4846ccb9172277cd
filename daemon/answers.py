"""From a call and its peer to the messages that answer it: the one place where authority is asked for.

The order that must hold: the method exists, the peer has its role over something, the parameters pass the
strict door, the job is in the peer's sight, the peer has the role over that job and is no part of what the
job runs; only then the method's own code runs.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import cache
from typing import Any

import attrs
from attrs import frozen

from resumed.schemas import codec, control
from resumed.schemas.errors import CommitError, FaultyInputError, GoneError, ResumedError
from resumed.schemas.receipt import REQUEST
from resumed.schemas.refusal import Refusal

from . import varlink
from .desk import Desk
from .grants import Role
from .idl import interface_text
from .methods import METHODS, Method, Over
from .peers import Peer
from .varlink import Call, Fault

log = logging.getLogger(__name__)


class _FaultError(Exception):
    """An error answer on its way out of a method's preconditions."""

    def __init__(self, error: str, **parameters: Any) -> None:
        super().__init__(error)
        self.fault = Fault(error=error, parameters=parameters)


class _RefusedError(Exception):
    """A refusal on its way out of a method's preconditions."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


DECIDING = frozenset({Role.OPERATOR, Role.APPROVER})
"""The roles under which a person decides what a job is to do, or lets pass what it wants to do."""


@frozen
class Answers:
    """What the daemon answers; `release` is its version."""

    desk: Desk
    release: str

    async def one(self, call: Call, peer: Peer) -> bytes:
        """The message that answers a call without `more`."""
        try:
            if call.interface == varlink.SERVICE:
                return varlink.spell_answer(self._about_the_service(call))
            method, asked = await self._asked(call, peer)
            assert method.serve is not None
            return _spell(call, _heard(call, peer, method, await method.serve(self.desk, peer, asked)))
        except Exception as error:  # noqa: BLE001  # one call's failure must not end the daemon
            return varlink.spell_fault(_fault_of(error, call))

    async def to(self, call: Call, peer: Peer) -> AsyncGenerator[bytes, None]:
        """The messages that answer a call: one, or for a streaming method one after the other."""
        if not call.more or call.interface == varlink.SERVICE:
            yield await self.one(call, peer)
            return
        try:
            method, asked = await self._asked(call, peer)
            if method.stream is None:
                assert method.serve is not None
                yield _spell(call, _heard(call, peer, method, await method.serve(self.desk, peer, asked)))
                return
            async with aclosing(method.stream(self.desk, peer, asked)) as answers:
                async for answer, goes_on in answers:
                    yield _spell(call, answer, continues=goes_on)
        except Exception as error:  # noqa: BLE001  # nor must a stream's
            yield varlink.spell_fault(_fault_of(error, call))

    async def _asked(self, call: Call, peer: Peer) -> tuple[Method, Any]:
        """The method, and its parameters as a record, once the peer may call it with them."""
        method = self._permitted(call, peer)
        what = f"cannot read the parameters of {call.method}"
        asked: Any = codec.from_plain(_without_nulls(call, method), method.takes, what)
        if not REQUEST.match(getattr(asked, "request", "") or "-"):
            raise FaultyInputError(what, ("expected up to 128 visible ASCII characters @ $.request",))
        if method.over is Over.JOB:
            asked = attrs.evolve(asked, job=await self._job(call, method, peer, asked))
        elif DECIDING.intersection(method.roles):
            await self._refuse_insiders(call, peer, None)
        return method, asked

    def _permitted(self, call: Call, peer: Peer) -> Method:
        if call.interface != control.INTERFACE:
            raise _FaultError(varlink.ERROR_INTERFACE_NOT_FOUND, interface=call.interface)
        method = METHODS.get(call.method.rpartition(".")[2])
        if method is None:
            raise _FaultError(varlink.ERROR_METHOD_NOT_FOUND, method=call.method)
        whole = method.over is Over.ALL
        holds = peer.permit.everywhere if whole else peer.permit.anywhere
        has = any(holds(role) for role in method.roles)
        # Whoever has no role at all may still look at the jobs that are its own, and say no to them.
        if not has and not (method.over is Over.JOB and (method.role is Role.VIEWER or method.own)):
            raise _lacking(call, peer, method, " over every job" if whole else "")
        if call.upgrade:
            raise _FaultError(varlink.ERROR_INVALID_PARAMETER, parameter="upgrade")
        if method.serve is None and not call.more:
            raise _FaultError(varlink.ERROR_EXPECTED_MORE)
        return method

    async def _job(self, call: Call, method: Method, peer: Peer, asked: Any) -> str:
        """The whole id of the job that a call is about, once the peer may make that call about it."""
        permit = peer.permit
        found = await self.desk.jobs.locate(asked.job, permit)
        if isinstance(found, Refusal):
            if method.leaves and asked.request:
                # Asked again after it took effect: nothing is left that anybody could have a role over.
                await self._refuse_insiders(call, peer, None)
                if left := await self.desk.jobs.left(peer.uid, asked.request, asked.job):
                    return left
            if not permit.anywhere(Role.VIEWER):
                raise _lacking(call, peer, method)
            _heard(call, peer, method, found)
            raise _RefusedError(found)
        over = any(
            permit.everywhere(role) or (found.whose is not None and permit.over(role, found.whose))
            for role in method.roles
        )
        mine = method.own and found.whose is not None and found.whose.uid == permit.uid
        if not (over or mine):
            raise _lacking(call, peer, method, f" over job {found.job}")
        if found.aside is not None and not method.aside:
            raise _RefusedError(found.aside)
        if method.people or DECIDING.intersection(method.roles):
            await self._refuse_insiders(call, peer, found.job, people=method.people)
        return found.job

    async def _refuse_insiders(
        self, call: Call, peer: Peer, job: str | None, *, people: bool = False
    ) -> None:
        """A job cannot decide anything about itself, whoever's user it runs as; and nothing at all where
        people are asked."""
        placement = await self.desk.jobs.placed(peer.pid, peer.start, peer.uid)
        if placement.may_decide(None if people else job):
            return
        log.warning("The call %s about %s was refused: %s.", call.method, job or "all jobs", placement.why)
        said = "no process of a job decides what people are asked" if people else ""
        reason = f"{said or 'a job cannot decide anything about itself'}: {placement.why}"
        raise _FaultError(control.ERROR_NOT_PERMITTED, method=call.method, reason=reason)

    def _about_the_service(self, call: Call) -> dict[str, Any]:
        """What anybody may ask: who we are, and the text of the interface."""
        match call.method.rpartition(".")[2]:
            case "GetInfo":
                return {
                    "vendor": control.VENDOR,
                    "product": control.PRODUCT,
                    "version": self.release,
                    "url": "https://varlink.org",
                    "interfaces": [varlink.SERVICE, control.INTERFACE],
                }
            case "GetInterfaceDescription":
                return {"description": _description(call.parameters.get("interface"))}
            case _:
                raise _FaultError(varlink.ERROR_METHOD_NOT_FOUND, method=call.method)


def _heard(call: Call, peer: Peer, method: Method, answer: Any) -> Any:
    """The answer; that somebody tried to decide what it may not is written down."""
    if method.people and isinstance(answer, Refusal):
        _note(call, peer, answer.reason)
    return answer


def _note(call: Call, peer: Peer, why: str) -> None:
    job = call.parameters.get("job")
    about = job if isinstance(job, str) else "no job"
    log.warning("The call %s about %s of uid %d was refused: %s.", call.method, about[:128], peer.uid, why)


def _either(method: Method) -> str:
    return " or ".join(role.value for role in method.roles)


def _lacking(call: Call, peer: Peer, method: Method, over: str = "") -> _FaultError:
    what = f"{_either(method)}{over}"
    reason = f"user {peer.name} (uid {peer.uid}) has not the role {what}; the administrator grants it"
    if method.people:
        _note(call, peer, reason)
    return _FaultError(control.ERROR_NOT_PERMITTED, method=call.method, reason=reason)


def _description(name: object) -> str:
    match name:
        case control.INTERFACE:
            return interface_text()
        case varlink.SERVICE:
            return varlink.SERVICE_TEXT
        case str():
            raise _FaultError(varlink.ERROR_INTERFACE_NOT_FOUND, interface=name)
        case _:
            raise _FaultError(varlink.ERROR_INVALID_PARAMETER, parameter="interface")


@cache
def _optional(takes: type) -> frozenset[str]:
    return frozenset(each.name for each in attrs.fields(takes) if each.default is not attrs.NOTHING)


def _without_nulls(call: Call, method: Method) -> dict[str, Any]:
    """The parameters without those left out by a null, where the interface lets them be left out."""
    if None not in call.parameters.values():
        return call.parameters
    optional = _optional(method.takes)
    return {
        name: value for name, value in call.parameters.items() if not (value is None and name in optional)
    }


def _spell(call: Call, answer: Any, *, continues: bool = False) -> bytes:
    """An answer's message; records are written whole, so that no reader needs to know our defaults."""
    if isinstance(answer, Refusal):
        return varlink.spell_fault(_fault_of_refusal(answer, call))
    message = varlink.spell_answer(answer, continues=continues)
    if len(message) > control.MAX_MESSAGE:
        reason = "the answer is too long for one message: ask for less, or with `more`"
        return varlink.spell_fault(_fault_of_refusal(Refusal(code="too_long", reason=reason), call))
    return message


def _fault_of_refusal(refusal: Refusal, call: Call) -> Fault:
    if refusal.code.startswith("no_such_"):
        kind = refusal.code.removeprefix("no_such_")
        return Fault(
            error=control.ERROR_NO_SUCH,
            parameters={"kind": kind, "name": str(call.parameters.get(kind, "")), "reason": refusal.reason},
        )
    if refusal.code == "not_permitted":
        parameters = {"method": call.method, "reason": refusal.reason}
        return Fault(error=control.ERROR_NOT_PERMITTED, parameters=parameters)
    return Fault(
        error=control.ERROR_REFUSED,
        parameters={
            "code": refusal.code,
            "reason": refusal.reason,
            "commands": list(refusal.commands),
        },
    )


def faulty(error: FaultyInputError) -> Fault:
    """The answer to what a strict door refused."""
    return Fault(
        error=control.ERROR_FAULTY,
        parameters={"reason": error.what, "problems": list(error.problems)},
    )


def _fault_of(error: Exception, call: Call) -> Fault:
    match error:
        case _FaultError():
            return error.fault
        case _RefusedError():
            return _fault_of_refusal(error.refusal, call)
        case FaultyInputError():
            return faulty(error)
        case CommitError():
            return Fault(error=control.ERROR_UNKNOWN_OUTCOME, parameters={"reason": str(error)})
        case GoneError():
            reason = f"the daemon is shutting down: {error}"
            return Fault(error=control.ERROR_UNKNOWN_OUTCOME, parameters={"reason": reason})
        case ResumedError():
            return _fault_of_refusal(Refusal(code="trouble", reason=str(error)), call)
        case _:
            log.error("The call %s failed.", call.method, exc_info=error)
            reason = "the daemon failed at this call; its log says how"
            return Fault(error=control.ERROR_UNKNOWN_OUTCOME, parameters={"reason": reason})
