"""The result file that a program may write (`RESUMED_RESULT`), and what an end means.

The exit status speaks first and the file refines it: `done` needs both, so a file that was written before
its program failed makes nothing done. A program that was stopped leaves no answer, but what it spent counts.
"""

import os
import re

from attrs import frozen

from resumed.schemas import codec, strict, times
from resumed.schemas.decisions import Asking, Decided, Failed, HoldBack, Later, LeftOut, TryAgain
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Budget
from resumed.schemas.workflow import EXITS, ExitMeaning, ProgramStep

from . import faulttext, offers, program

MOST = 64 * 1024
"""Bytes of a result file."""
_WAIT = 30.0
_SOON = 1.0
"""Seconds that a `later` takes at least, whatever moment it names."""
_MONEY = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?", re.ASCII)


@frozen(kw_only=True)
class Result:
    """The file's fields; `until` is a moment with its zone or a span, `usd` decimal text to the millionth."""

    outcome: ExitMeaning | None = None
    until: str | None = None
    usd: str | None = None
    tokens: int | None = None
    reason: str | None = None
    question: str | None = None


def read(path: str, step: ProgramStep) -> Result | None:
    """The result in the file, None when there is none; FaultyInputError names all that is wrong with it."""
    what = "its result does not hold"
    try:
        with offers.open_regular(path) as file:
            raw = file.read(MOST + 1) or b""
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FaultyInputError(what, (error.strerror or str(error),)) from None
    if len(raw) > MOST:
        raise FaultyInputError(what, (f"more than {MOST} bytes",))
    found = codec.decode(raw, Result, what)
    if problems := _problems(found, step):
        raise FaultyInputError(what, tuple(problems))
    return found


def _problems(found: Result, step: ProgramStep) -> list[str]:
    problems = []
    if found.usd is not None and not _MONEY.fullmatch(found.usd):
        problems.append(f'expected an amount such as "0.05", got {found.usd!r} @ $.usd')
    if found.tokens is not None and found.tokens < 0:
        problems.append(f"expected at least 0, got {found.tokens} @ $.tokens")
    if found.question is not None and not found.question.strip():
        problems.append("expected words @ $.question")
    if found.until is not None:
        try:
            times.read(found.until)
        except ValueError as error:
            problems.append(f"{error} @ $.until")
        if found.outcome not in (None, ExitMeaning.LATER):
            problems.append('until belongs to outcome = "later" @ $.until')
    if found.outcome is ExitMeaning.SKIP and not step.each:
        problems.append("a step with each = false has no item to skip @ $.outcome")
    if step.result == "json" and found.outcome is None:
        problems.append("required key 'outcome' is missing @ $")
    return problems


def spent(path: str, step: ProgramStep) -> Budget | None:
    """What the file says was spent; None when it says nothing that can be read."""
    try:
        found = read(path, step)
    except FaultyInputError:
        return None
    return None if found is None else used(found)


def used(found: Result) -> Budget | None:
    """What a result says was spent."""
    if found.usd is None and found.tokens is None:
        return None
    return Budget(usd=found.usd, tokens=found.tokens)


def meaning_of(step: ProgramStep, status: int) -> ExitMeaning:
    """What a step says of an exit status; a signal is a failed try."""
    for rule in (*step.exits, *EXITS):
        if rule.code == status:
            return rule.means
    return ExitMeaning.RETRY


def words(ended: program.Ended) -> str:
    """How a program ended, and the last it said."""
    spelled = program.spell(ended.status)
    return faulttext.clean(f"{spelled}: {ended.last_line}" if ended.last_line else spelled)


def decided(step: ProgramStep, ended: program.Ended, path: str) -> tuple[Decided | None, Budget | None]:
    """What `run`'s end stands for, None where it did its work; and what it spent."""
    means, said = meaning_of(step, ended.status), words(ended)
    code = program.spell(ended.status).replace(" ", "-")
    try:
        found = read(path, step)
    except FaultyInputError as error:
        said, code = faulttext.clean(f"{said}; {error}"), "bad-result"
        return _decision(ExitMeaning.RETRY if means is ExitMeaning.DONE else means, said, code), None
    if found is None:
        if step.result == "json" and means is ExitMeaning.DONE:
            return TryAgain(reason=f"{said}, but it wrote no result", code="no-result"), None
        return _decision(means, said, code), None
    return _refined(step, means, said, code, found), used(found)


def _refined(step: ProgramStep, means: ExitMeaning, said: str, code: str, found: Result) -> Decided | None:
    if found.question is not None:
        # The step begins again with the answer.
        return Asking(text=strict.plain(faulttext.clean(found.question)), then=step.name)
    wanted = found.outcome or (ExitMeaning.LATER if found.until is not None else means)
    if wanted is ExitMeaning.DONE and means is not ExitMeaning.DONE:
        return _decision(means, f"{said}; its result says done, which needs both", code)
    said = faulttext.clean(found.reason) if found.reason else said
    if wanted is ExitMeaning.LATER and found.until is not None:
        return _at(found.until, said)
    return _decision(wanted, said, "result-retry" if found.outcome is ExitMeaning.RETRY else code)


def _at(until: str, said: str) -> Later:
    when = times.read(until)
    if when.seconds is not None:
        return Later(seconds=max(_SOON, when.seconds), reason=said)
    return Later(seconds=_SOON, until=when.wall, reason=said)


def _decision(means: ExitMeaning, said: str, code: str) -> Decided | None:
    if means is ExitMeaning.DONE:
        return None
    if means is ExitMeaning.LATER:
        return Later(seconds=_WAIT, reason=said)
    if means is ExitMeaning.HOLD:
        return HoldBack(code="program", reason=said)
    if means is ExitMeaning.SKIP:
        return LeftOut(reason=said)
    if means is ExitMeaning.FAIL:
        return Failed(reason=said)
    return TryAgain(reason=said, code=code)


def path_in(scratch: str) -> str:
    """Where a try's result file is."""
    return os.path.join(scratch, "result.json")
