"""The tool behind an `[[effect]]`: its programs, or its HTTP requests, and what their ends mean.

Only what is documented decides: exit 0 of `send` is landed, 45 surely refused, 46 surely not sent, of
`look_up` 0 is landed and 44 absent; everything else leaves open what happened. Answers are kept as bytes
before anybody reads them.
"""

import contextlib
from collections.abc import Mapping

import anyio
from attrs import frozen

from resumed.schemas import strict
from resumed.schemas.decisions import Absent, Decided, Landed, NotSent, Offer, Refused, Unsure
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.frames import CallGiven, Run
from resumed.schemas.ledger import ErrandKind
from resumed.schemas.programeffects import HttpAsk, HttpSend, Place, ProgramEffect

from . import credentials, exchange, faulttext, offers, program, programcalls, surroundings
from .runlog import RunLog
from .trial import Trial

REFUSED, NOT_SENT, ABSENT = 45, 46, 44
"""Exit statuses (INTERFACE.md): none that a traceback, a shell or a missing library could end with."""
AGAIN = 30.0
"""Seconds after which a call that surely was not sent is sent again."""
_LONGEST_WAIT = 3600.0
_LONGEST = 500
"""Characters of a target's reference."""
NOTHING = "absent"
"""The version of an object that is not there."""


class UnobservedError(Exception):
    """The version of the target's object cannot be told; the text says why."""


@frozen
class ProgramTool:
    """One effect of a workflow of programs, for a worker that is sent on errands."""

    effect: ProgramEffect

    async def send(self, run: Run, trial: Trial) -> Decided:
        """Make the stored call; TryStoppedError when it was stopped, any other error for an unknown end."""
        call = _call(run)
        with contextlib.ExitStack() as stack:
            try:
                # What is wrong in here has sent nothing.
                made = Making(self.effect, run, stack)
                if self.effect.send_http is not None:
                    request = made.stored.request(made.handed.texts())
                else:
                    made.paths = made.stored.paths()
                    argv = made.stored.argv({**made.paths, **made.handed.paths()})
            except (programcalls.UnfitError, credentials.AbsentError, OSError) as error:
                return NotSent(reason=faulttext.clean(str(error)), seconds=AGAIN)
            try:
                if self.effect.send_http is not None:
                    return await _sent(self.effect.send_http, request, made, within(call.timeout))
                return _said_of_send(await _program(argv, made, trial, within(call.timeout)), made)
            except (exchange.NotBegunError, NoProgramError) as error:
                return NotSent(reason=faulttext.clean(made.log.clean_text(str(error))), seconds=AGAIN)

    async def look_up(self, run: Run, trial: Trial) -> Landed | Absent | Unsure:
        """Ask the target by the call's key."""
        with contextlib.ExitStack() as stack:
            try:
                made = Making(self.effect, run, stack)
                seconds = _share(_call(run))
                if self.effect.look_up_http is not None:
                    return await _looked_up(self.effect.look_up_http, made, seconds)
                argv = programcalls.words(self.effect.look_up, {**made.values, **made.handed.paths()})
                return _said_of_look_up(await _program(argv, made, trial, seconds), made)
            except _NOTHING_FOUND as error:
                return Unsure(reason=faulttext.clean(str(error)))

    async def observe(self, run: Run, trial: Trial) -> str:
        """The version of the target's object as it is now; UnobservedError when it cannot be told."""
        with contextlib.ExitStack() as stack:
            try:
                made = Making(self.effect, run, stack)
            except (programcalls.UnfitError, credentials.AbsentError, OSError) as error:
                raise UnobservedError(str(error)) from None
            return await observed(made, trial, _share(_call(run)))


class Making:
    """What every call is made with: the log, the credentials, and the stored call where there is one."""

    def __init__(
        self,
        effect: ProgramEffect,
        run: Run,
        stack: contextlib.ExitStack,
        secrets: tuple[str, ...] | None = None,
    ) -> None:
        self.effect = effect
        self.run = run
        self.log = stack.enter_context(_log(run, effect))
        names = effect.secrets if secrets is None else secrets
        self.handed = stack.enter_context(credentials.handed(run.credentials, names, run.scratch))
        self.log.mask(self.handed.masks())
        self.values: Mapping[str, str] = {}
        self.paths: Mapping[str, str] = {}
        """The files that a program finds, by placeholder."""
        if run.call is not None:
            self.stored = programcalls.Stored(run.call, run.artifacts, run.scratch)
            self.values = self.stored.values


# ---- programs ------------------------------------------------------------------------------------------


class NoProgramError(Exception):
    """A program could not be started: nothing ran."""


_NOTHING_FOUND = (
    programcalls.UnfitError,
    credentials.AbsentError,
    exchange.NotBegunError,
    NoProgramError,
    OSError,
)


@frozen
class _End:
    """How a program ended; `ended` is None when it was ended for taking too long."""

    ended: program.Ended | None
    seconds: float


async def _program(argv: tuple[str, ...], made: Making, trial: Trial, seconds: float) -> _End:
    """Run a program within its time; NoProgramError when it did not start.

    Whatever happens its whole tree is dead afterwards: nothing of a call outlives its errand.
    """
    env = surroundings.usual({**made.values, **made.paths, **made.handed.paths()})
    if made.handed.folder:
        env[credentials.FOLDER] = made.handed.folder
    call = program.Call(argv=argv, env=env, folder=made.run.scratch, keep=exchange.MOST)
    ended: program.Ended | None = None
    with anyio.move_on_after(seconds):
        try:
            ended = await program.run(call, made.log, trial)
        except program.NotStartedError as error:
            raise NoProgramError(f"cannot start {argv[0]}: {error.strerror}") from None
    return _End(ended, seconds)


def _share(call: CallGiven) -> float:
    """Seconds of one question: a check may ask two."""
    return within(call.timeout / 2 if call.kind is ErrandKind.CHECK else call.timeout)


def within(timeout: float) -> float:
    """Seconds after which a worker ends a call by itself: a little before its errand is stopped."""
    return max(timeout / 2, timeout - min(2.0, timeout / 10))


def _said_of_send(end: _End, made: Making) -> Decided:
    if end.ended is None:
        return Unsure(reason=f"send did not end within {end.seconds:g} s, and was killed")
    said, kept = words(end.ended, made.log), _kept(end.ended.stdout, made)
    if end.ended.status == 0:
        return Landed(reference=_reference(end.ended.stdout, made.log), response=kept)
    if end.ended.status == REFUSED:
        return Refused(reason=said, response=kept)
    if end.ended.status == NOT_SENT:
        return NotSent(reason=said, seconds=AGAIN)
    return Unsure(reason=said, response=kept)


def _said_of_look_up(end: _End, made: Making) -> Landed | Absent | Unsure:
    if end.ended is None:
        return Unsure(reason=f"look_up did not end within {end.seconds:g} s, and was killed")
    kept = _kept(end.ended.stdout, made)
    if end.ended.status == 0:
        return Landed(reference=_reference(end.ended.stdout, made.log), response=kept)
    if end.ended.status == ABSENT:
        return Absent(response=kept)
    return Unsure(reason=words(end.ended, made.log), response=kept)


def words(ended: program.Ended, log: RunLog) -> str:
    """How a program ended, and the last it said."""
    said = ended.last_line or log.clean(ended.stdout).decode("utf-8", "replace").strip()[-_LONGEST:]
    spelled = program.spell(ended.status)
    return faulttext.clean(f"{spelled}: {said}" if said else spelled)


def _reference(stdout: bytes, log: RunLog) -> str:
    lines = log.clean(stdout[: 64 * 1024]).decode("utf-8", "replace").split("\n")
    return faulttext.clean(next((line.strip() for line in lines if line.strip()), ""), _LONGEST)


def _kept(raw: bytes, made: Making) -> Offer | None:
    """What was answered, as bytes that are kept; None where there are none, or no place for them.

    What the target said counts without them: a full disk makes nothing unknown.
    """
    try:
        return offers.of_bytes("response", made.log.clean(raw), made.run.scratch) if raw else None
    except OSError as error:
        made.log.note(f"the answer cannot be kept: {error.strerror}")
        return None


# ---- requests ------------------------------------------------------------------------------------------


async def _sent(http: HttpSend, request: programcalls.Request, made: Making, seconds: float) -> Decided:
    made.log.note(f"{request.method} {request.url}")
    try:
        answer = await exchange.exchange(request, seconds)
    except exchange.BrokenError as error:
        return _broken(error, made)
    said, kept = _answered(answer, made.log), _kept(answer.raw(), made)
    if answer.status in http.refused:
        return Refused(reason=said, response=kept)
    if answer.status in http.not_sent:
        return NotSent(reason=said, seconds=_wait(answer))
    if answer.status not in http.landed:
        return Unsure(reason=said, response=kept)
    return _landed(http.reference, answer, said, kept, made)


async def _looked_up(http: HttpAsk, made: Making, seconds: float) -> Landed | Absent | Unsure:
    request = programcalls.asked(http, made.values, made.handed.texts())
    made.log.note(f"{request.method} {request.url}")
    try:
        answer = await exchange.exchange(request, seconds)
    except exchange.BrokenError as error:
        return _broken(error, made)
    said, kept = _answered(answer, made.log), _kept(answer.raw(), made)
    if answer.status in http.absent:
        return Absent(response=kept)
    if answer.status not in http.found:
        return Unsure(reason=said, response=kept)
    return _landed(http.word, answer, said, kept, made)


def _landed(
    place: Place | None, answer: exchange.Answer, said: str, kept: Offer | None, made: Making
) -> Landed | Unsure:
    if place is None:
        usual = answer.header("Location") or f"HTTP {answer.status}"
        return Landed(reference=faulttext.clean(made.log.clean_text(usual), _LONGEST), response=kept)
    reference = _found(place, answer, made.log)
    if reference is None:
        return Unsure(reason=f"{said}, but its reference is not where it should be", response=kept)
    return Landed(reference=reference, response=kept)


def _broken(error: exchange.BrokenError, made: Making) -> Unsure:
    kept = _kept(error.received.raw(), made) if error.received is not None else None
    said = made.log.clean_text(str(error))
    made.log.note(said)
    return Unsure(reason=faulttext.clean(said), response=kept)


def _answered(answer: exchange.Answer, log: RunLog) -> str:
    """The status and the beginning of the body, which is often the reason in words."""
    log.note(f"answered {answer.status}, {len(answer.body)} bytes")
    body = log.clean(answer.body[:1000]).decode("utf-8", "replace").strip()
    return faulttext.clean(f"HTTP {answer.status}: {body}" if body else f"HTTP {answer.status}", _LONGEST)


def _found(place: Place, answer: exchange.Answer, log: RunLog) -> str | None:
    """The word at its place in an answer; None when it is not there, or the answer cannot be read."""
    if place.header:
        return faulttext.clean(log.clean_text(answer.header(place.header)), _LONGEST) or None
    if answer.cut:
        return None
    try:
        value = strict.parse(answer.body, "")
    except FaultyInputError:
        return None
    for name in place.json.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        return None
    return faulttext.clean(log.clean_text(str(value)), _LONGEST)


def _wait(answer: exchange.Answer) -> float:
    """Seconds that a target asks to wait, within reason."""
    text = answer.header("Retry-After")
    return min(float(text), _LONGEST_WAIT) if text.isascii() and text.isdigit() else AGAIN


# ---- observing -----------------------------------------------------------------------------------------


async def observed(made: Making, trial: Trial, seconds: float) -> str:
    """The version of the target's object as it is now; UnobservedError when it cannot be told."""
    effect = made.effect
    try:
        if effect.observe_http is not None:
            return await _version(effect.observe_http, made, seconds)
        argv = programcalls.words(effect.observe, {**made.values, **made.handed.paths()})
        end = await _program(argv, made, trial, seconds)
    except _NOTHING_FOUND as error:
        raise UnobservedError(str(error)) from None
    if end.ended is None:
        raise UnobservedError(f"observe did not end within {end.seconds:g} s, and was killed")
    version = _reference(end.ended.stdout, made.log)
    if end.ended.status or not version:
        raise UnobservedError(f"observe: {words(end.ended, made.log)}, and told no version")
    return version


async def _version(http: HttpAsk, made: Making, seconds: float) -> str:
    request = programcalls.asked(http, made.values, made.handed.texts())
    made.log.note(f"{request.method} {request.url}")
    try:
        answer = await exchange.exchange(request, seconds)
    except exchange.BrokenError as error:
        raise UnobservedError(made.log.clean_text(str(error))) from None
    said = _answered(answer, made.log)
    if answer.status in http.absent:
        return NOTHING
    found = _found(http.word, answer, made.log) if answer.status in http.found and http.word else None
    if found is None:
        raise UnobservedError(f"observe: {said}, and no version where it should be")
    return found


async def shown(made: Making, argv: tuple[str, ...], trial: Trial, seconds: float) -> program.Ended | None:
    """How the program ended that prints what a reviewer is shown; None when it took too long.

    It is handed no credentials: what it prints is for everybody who may decide.
    """
    return (await _program(argv, made, trial, seconds)).ended


def _call(run: Run) -> CallGiven:
    assert run.call is not None
    return run.call


def _log(run: Run, effect: ProgramEffect) -> RunLog:
    if run.call is None:
        return RunLog(run.log, program.stamped(f"{run.item} {effect.name} try {run.number}".strip()))
    return RunLog(run.log, program.stamped(f"{effect.name} {run.call.kind.value} {run.call.effect}"))
