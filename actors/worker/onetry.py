"""One try of a step: its programs one after the other, and what came of them.

The order that must hold: `prepare`, `run`, `verify`, each with its whole tree gone before the next; only
then is the output looked at. It decides nothing about what follows for the item or the job.
"""

import errno
import os
from collections.abc import Mapping

import anyio.to_thread
from attrs import evolve, frozen

from resumed.schemas import templates
from resumed.schemas.decisions import (
    Asking,
    CutOff,
    Decided,
    Failed,
    HoldBack,
    Later,
    LeftOut,
    Offer,
    TryAgain,
)
from resumed.schemas.frames import Run
from resumed.schemas.workflow import ProgramStep

from . import credentials, faulttext, offers, program, results, staging, surroundings
from .runlog import RunLog
from .trial import Trial, TryStoppedError

SHOWN_MOST = 256 * 1024
"""Bytes of what a reviewer is shown."""
_WAIT = 30.0
_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOEXEC)
_SHORT = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


@frozen(kw_only=True)
class Done:
    """The programs did what they should: `output` is what they made, `shown` what a reviewer sees of it."""

    output: Offer
    shown: Offer | None = None


class _EndedError(Exception):
    """The try is over before its end; `decided` says how."""

    def __init__(self, decided: Decided) -> None:
        super().__init__(decided)
        self.decided = decided


def uses_file(step: ProgramStep) -> bool:
    """True where the file at `{output}` is the step's output, not what it prints."""
    if step.output_from:
        return step.output_from == "file"
    return templates.uses("output", (*step.run, step.stdin))


async def run(
    run: Run,
    step: ProgramStep,
    given: Mapping[str, str],
    trial: Trial,
    handed: credentials.Handed = credentials.Handed(),  # noqa: B008 - frozen, and holds nothing
) -> Decided | Done:
    """Run the programs of one try; TryStoppedError when it was stopped."""
    with RunLog(run.log, program.stamped(f"{run.item} {step.name} try {run.number}".strip())) as log:
        log.mask(handed.masks())
        try:
            programs = _Programs(run, step, given, trial, log, handed.folder)
            return _hiding(await programs.result(), log)
        except (_EndedError, staging.UnfitError) as ended:
            if isinstance(ended, staging.UnfitError):
                log.note(faulttext.clean(getattr(ended.decided, "reason", ""), 300))
            return _hiding(ended.decided, log)


def _hiding(found: Decided | Done, log: RunLog) -> Decided | Done:
    """What was decided, without the credentials that a program put into its reason or its question."""
    if isinstance(found, Asking):
        return evolve(found, text=log.clean_text(found.text))
    if isinstance(found, TryAgain | HoldBack | Later | Failed | LeftOut | CutOff):
        return evolve(found, reason=log.clean_text(found.reason))
    return found


class _Programs:
    def __init__(
        self, run: Run, step: ProgramStep, given: Mapping[str, str], trial: Trial, log: RunLog, secrets: str
    ) -> None:
        self._run = run
        self._step = step
        self._values = given
        self._trial = trial
        self._log = log
        self._folder = self._where()
        self._result = results.path_in(run.scratch)
        self._env = surroundings.of_step(step, run, given, self._result)
        if secrets:
            self._env[credentials.FOLDER] = secrets

    def _where(self) -> str:
        kept = self._values["kept"]
        try:
            os.makedirs(kept, 0o700, exist_ok=True)
        except OSError as error:
            reason = faulttext.clean(f"cannot make the folder {kept}: {error.strerror}")
            raise _EndedError(TryAgain(code="no-folder", reason=reason)) from None
        if self._step.dir == "fresh":
            return self._run.scratch
        if self._step.dir == "item":
            return kept
        folder = templates.fill(self._step.dir, self._values)
        if not os.path.isdir(folder):
            reason = faulttext.clean(f"cannot run in {folder}: there is no such folder")
            self._log.note(faulttext.clean(reason, 300))
            raise _EndedError(HoldBack(code="dir", reason=reason))
        return folder

    async def result(self) -> Decided | Done:
        step = self._step
        place: staging.Place | None = None
        if step.publish:
            place = staging.place_of(step, self._values, self._values["kept"])
            # Before anything is run for it: hours of work may go before a folder that is not there.
            await anyio.to_thread.run_sync(staging.check, place)
        if step.prepare:
            self._said("prepare", await self._program("prepare", step.prepare))
        keep = 0 if uses_file(step) else step.output_max
        try:
            ended = await self._program("run", step.run, stdin=step.stdin, keep=keep)
        except (TryStoppedError, _EndedError):
            self._trial.used = results.spent(self._result, step)
            raise
        unfinished, self._trial.used = results.decided(step, ended, self._result)
        if unfinished is not None:
            return unfinished
        self._check_size(ended)
        if step.verify:
            if not uses_file(step) and not ended.spooled:
                await anyio.to_thread.run_sync(_write, self._values["output"], ended.stdout)
            self._said("verify", await self._program("verify", step.verify))
        shown = await self._shown(ended)
        made = await anyio.to_thread.run_sync(self._output, ended, place)
        return evolve(made, shown=shown) if isinstance(made, Done) else made

    async def _shown(self, ended: program.Ended) -> Offer | None:
        """What a reviewer is shown of the draft, where the step has a program for that."""
        step = self._step
        if step.review is None or not step.review.show:
            return None
        if not uses_file(step) and not ended.spooled:
            await anyio.to_thread.run_sync(_write, self._values["output"], ended.stdout)
        found = await self._program("show", step.review.show, keep=SHOWN_MOST, spool=False)
        self._said("show", found)
        return offers.of_bytes("shown", found.stdout, self._run.scratch)

    async def _program(
        self, name: str, argv: tuple[str, ...], *, stdin: str = "", keep: int = 0, spool: bool = True
    ) -> program.Ended:
        step = self._step
        call = program.Call(
            argv=tuple(templates.fill_word(word, self._values) for word in argv),
            env=self._env,
            stdin=templates.fill(stdin, self._values).encode("utf-8", "surrogateescape"),
            folder=self._folder,
            keep=keep,
            spool=self._values["output"] if keep and spool else "",
            silence=step.silence,
            grace=step.grace,
        )
        if step.prepare or step.verify or step.review is not None:
            self._log.note(name)
        try:
            ended = await program.run(call, self._log, self._trial)
        except OSError as error:
            reason = f"cannot start {call.argv[0]}: {error.strerror or error}"
            self._log.note(faulttext.clean(reason, 300))
            raise _EndedError(_not_started(error, call.argv[0], faulttext.clean(reason))) from None
        if ended.silent:
            raise _EndedError(CutOff(code="silence", reason=_silent(name, step, ended)))
        return ended

    def _said(self, name: str, ended: program.Ended) -> None:
        """What every end but exit 0 of a program beside `run` means: the try failed, in its words."""
        if ended.status:
            spelled = program.spell(ended.status)
            code = f"{name}-{spelled.replace(' ', '-')}"
            raise _EndedError(TryAgain(reason=f"{name}: {results.words(ended)}", code=code))

    def _check_size(self, ended: program.Ended) -> None:
        if not uses_file(self._step) and ended.printed > self._step.output_max:
            said = f"it printed {ended.printed} bytes"
            raise _EndedError(_too_large(said, self._step.output_max, ended))

    def _output(self, ended: program.Ended, place: staging.Place | None) -> Decided | Done:
        step, content = self._step, ended.stdout if self._is_in_memory(ended) else self._values["output"]
        try:
            if isinstance(content, bytes):
                offer = offers.of_bytes("output", content, self._run.scratch)
            else:
                size = os.stat(content).st_size
                if size > step.output_max:
                    return _too_large(f"its output file has {size} bytes", step.output_max, ended)
                offer = offers.of_file("output", content)
        except OSError as error:
            said = f"but its output file cannot be read: {error.strerror or error}"
            reason = f"{program.spell(ended.status)}, {said}"
            return TryAgain(reason=reason, code="no-output")
        if place is not None:
            offer = staging.stage(place, offer, content, reference=step.keep == "reference")
        return Done(output=offer)

    def _is_in_memory(self, ended: program.Ended) -> bool:
        return not uses_file(self._step) and not ended.spooled


def _write(path: str, raw: bytes) -> None:
    with open(path, "wb") as file:
        file.write(raw)


def _not_started(error: OSError, program: str, reason: str) -> Decided:
    """A program that cannot be one is a person's affair; a system that is short of something recovers."""
    if error.filename == program and error.errno in _NO_PROGRAM:
        return HoldBack(code="cannot_start", reason=reason)
    if error.errno in _SHORT:
        return Later(seconds=_WAIT, reason=reason)
    return TryAgain(reason=reason, code="cannot_start")


def _silent(name: str, step: ProgramStep, ended: program.Ended) -> str:
    said = f"{name} printed nothing for {step.silence:g} s and was stopped"
    return faulttext.clean(f"{said}; last: {ended.last_line}" if ended.last_line else said)


def _too_large(what: str, most: int, ended: program.Ended) -> TryAgain:
    reason = f"{program.spell(ended.status)}, but {what}, the most is {most} (output.max)"
    return TryAgain(reason=reason, code="output-too-large")
