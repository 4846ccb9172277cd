"""Workflows of programs: the record of a checked TOML file becomes steps that a worker runs.

Job step `start` lists and pins the items, each `[[step]]` is an item step, job step `finish` ends the job.
"""

import base64
import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
from attrs import evolve

from resumed.schemas import codec, inputs, strict, templates
from resumed.schemas.decisions import (
    Accepted,
    Answer,
    Decided,
    Finished,
    HoldBack,
    Later,
    NextStep,
    Offer,
    TryAgain,
)
from resumed.schemas.errors import AuthorError
from resumed.schemas.frames import Run
from resumed.schemas.workflow import (
    Contract,
    Programs,
    ProgramStep,
    PythonEntry,
    StepContract,
    StepKind,
)

from . import faulttext, listing, offers, program
from .runlog import RunLog
from .trial import Trial

START, FINISH = "start", "finish"
LATER, HOLD = 75, 78  # EX_TEMPFAIL and EX_CONFIG of sysexits.h
_WAIT = 30.0
_NO_PROGRAM = (errno.ENOENT, errno.EACCES, errno.ENOEXEC)
_SHORT = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


def contract_of(programs: Programs, folder: str = "") -> Contract:
    """What a workflow file declares to the law.

    For a Python workflow it has no steps yet: a worker that is started with `describe` answers with the
    whole contract. `folder` is then where its module is looked for.
    """
    if programs.python is not None:
        return _undescribed(programs, programs.python, folder)
    job_steps = tuple(StepContract(name=name, kind=StepKind.JOB) for name in (START, FINISH))
    items = tuple(
        StepContract(
            name=each.name,
            kind=StepKind.ITEM,
            repeatable=each.repeatable,
            timeout=each.timeout,
            grace=each.grace,
            tries=each.tries,
            backoff_first=each.backoff_first,
            backoff_max=each.backoff_max,
        )
        for each in programs.steps
    )
    return Contract(
        workflow=programs.name,
        version=programs.version,
        start=START,
        steps=(job_steps[0], *items, job_steps[1]),
        description=programs.description,
        owner=programs.owner,
        definition=codec.encode(programs).decode(),
    )


def _undescribed(programs: Programs, python: PythonEntry, folder: str) -> Contract:
    placed = evolve(programs, python=evolve(python, folder=folder or python.folder))
    return Contract(
        workflow=programs.name,
        version=programs.version,
        start="",
        steps=(),
        description=programs.description,
        owner=programs.owner,
        entry=python.entry,
        interpreter=python.interpreter,
        definition=codec.encode(placed).decode(),
    )


def uses_file(step: ProgramStep) -> bool:
    """True where the file at `{output}` is the step's output, not what it prints."""
    if step.output_from:
        return step.output_from == "file"
    return templates.uses("output", (*step.run, step.stdin))


def load(contract: Contract) -> "Steps":
    """The steps of a contract's definition; AuthorError when there is none."""
    if not contract.definition:
        raise AuthorError(f"cannot load {contract.workflow}: the contract has no definition")
    what = f"cannot load {contract.workflow}"
    return Steps(contract, codec.decode_own(contract.definition.encode(), Programs, what))


def _parsed(text: str, what: str) -> dict[str, Any]:
    value = strict.parse_own(text.encode("utf-8", "surrogatepass"), what)
    return value if isinstance(value, dict) else {}


class Steps:
    """A loaded workflow of programs; it runs one try at a time."""

    def __init__(self, contract: Contract, programs: Programs) -> None:
        self.contract = contract
        self._programs = programs
        self._places = {step.name: place for place, step in enumerate(programs.steps)}

    async def run(self, run: Run, trial: Trial) -> Answer:
        """Run one step's program, or one of the two job steps."""
        if run.step == START:
            values = self._inputs(run) | {"job": run.job, "attempt": str(run.attempt)}
            return Answer(decided=await listing.freeze(self._programs, run, values, trial))
        if run.step == FINISH:
            return Answer(decided=Finished())
        place = self._places.get(run.step)
        if place is None or run.row is None:
            raise AuthorError(f"cannot run step {run.step}: no such step, or no item was given")
        return Answer(decided=await self._item(run, self._programs.steps[place], place, trial))

    def _inputs(self, run: Run) -> dict[str, str]:
        """Inputs by placeholder; an item's own stand over the job's."""
        found = {
            each.name: strict.parse_own(each.default.encode(), "cannot read a default")
            for each in self._programs.inputs
            if each.default is not None
        }
        found |= _parsed(run.inputs, "cannot read a job's inputs")
        if run.row is not None:
            found |= _parsed(run.row.inputs, "cannot read an item's inputs")
        return {f"inputs.{name}": inputs.spell(value) for name, value in found.items()}

    async def _item(self, run: Run, step: ProgramStep, place: int, trial: Trial) -> Decided:
        assert run.row is not None
        earlier = _parsed(run.row.data, "cannot read an item's data").get("outputs", {})
        values = self._values(run, earlier)
        call = self._call(run, step, values)
        header = program.stamped(f"{run.item} {step.name} try {run.number}")
        with RunLog(run.log, header) as log:
            try:
                ended = await program.run(call, log, trial)
            except OSError as error:
                reason = f"cannot start {call.argv[0]}: {error.strerror or error}"
                log.note(faulttext.clean(reason, 300))
                return _not_started(error, call.argv[0], faulttext.clean(reason))
        unfinished = _unfinished(ended)
        if unfinished is not None:
            return unfinished
        found = await anyio.to_thread.run_sync(_output, step, values["output"], ended, run.scratch)
        if not isinstance(found, Offer):
            return found
        if place + 1 == len(self._programs.steps):
            return Accepted(output=found)
        return _handed_on(step, self._programs.steps[place + 1].name, earlier, found)

    def _values(self, run: Run, earlier: Mapping[str, Any]) -> dict[str, str]:
        row = run.row
        assert row is not None
        path = row.source.path if row.source else ""
        values = self._inputs(run)
        values |= {
            "item": run.item,
            "source": path,
            "source.stem": os.path.splitext(os.path.basename(path))[0],
            "source.rel": listing.origin_of(self._programs, run, values).relative(path) if path else "",
            "output": os.path.join(run.scratch, "output"),
            "job": run.job,
            "attempt": str(run.attempt),
        }
        for name, kept in earlier.items():
            values[f"outputs.{name}"] = _restored(run.scratch, name, kept)
        return values

    def _call(self, run: Run, step: ProgramStep, values: Mapping[str, str]) -> program.Call:
        env = dict(os.environ) | {templates.variable(name): value for name, value in values.items()}
        if run.interrupted:
            env["RESUMED_INTERRUPTED"] = "1"
        return program.Call(
            argv=tuple(templates.fill_word(word, values) for word in step.run),
            env=env,
            stdin=templates.fill(step.stdin, values).encode("utf-8", "surrogateescape"),
            folder=run.scratch,
            keep=0 if uses_file(step) else step.output_max,
        )


def _not_started(error: OSError, program: str, reason: str) -> Decided:
    """A program that cannot be one is a person's affair; a system that is short of something recovers."""
    if error.filename == program and error.errno in _NO_PROGRAM:
        return HoldBack(code="cannot_start", reason=reason)
    if error.errno in _SHORT:
        return Later(seconds=_WAIT, reason=reason)
    return TryAgain(reason=reason, code="cannot_start")


def _unfinished(ended: program.Ended) -> Decided | None:
    """What every end but exit 0 means."""
    if ended.status == 0:
        return None
    spelled = program.spell(ended.status)
    said = faulttext.clean(f"{spelled}: {ended.last_line}" if ended.last_line else spelled)
    if ended.status == LATER:
        return Later(seconds=_WAIT, reason=said)
    if ended.status == HOLD:
        return HoldBack(code="program", reason=said)
    return TryAgain(reason=said, code=spelled.replace(" ", "-"))


def _output(step: ProgramStep, path: str, ended: program.Ended, scratch: str) -> Decided | Offer:
    if not uses_file(step):
        if ended.printed > step.output_max:
            return _too_large(f"it printed {ended.printed} bytes", step.output_max)
        return offers.of_bytes("output", ended.stdout, scratch)
    try:
        size = os.stat(path).st_size
        if size > step.output_max:
            return _too_large(f"its output file has {size} bytes", step.output_max)
        return offers.of_file("output", path)
    except OSError as error:
        reason = f"exit 0, but its output file cannot be read: {error.strerror or error}"
        return TryAgain(reason=reason, code="no-output")


def _too_large(what: str, most: int) -> TryAgain:
    return TryAgain(reason=f"exit 0, but {what}, the most is {most} (output.max)", code="output-too-large")


def _handed_on(step: ProgramStep, then: str, earlier: Mapping[str, Any], output: Offer) -> Decided:
    if output.path is not None:
        reason = f"step {step.name} gave {output.size} bytes; at most {offers.INLINE} are handed on"
        return HoldBack(code="output_too_large", reason=reason)
    kept = {"base64": output.base64} if output.base64 is not None else {"text": output.text}
    outputs = {**earlier, step.name: kept}
    return NextStep(step=then, data=codec.dump_plain({"outputs": outputs}).decode())


def _restored(scratch: str, name: str, kept: Mapping[str, str]) -> str:
    """The file in this try's scratch folder that holds an earlier step's output."""
    folder = Path(scratch, "outputs")
    folder.mkdir(exist_ok=True)
    raw = base64.b64decode(kept["base64"]) if "base64" in kept else kept.get("text", "").encode()
    (folder / name).write_bytes(raw)
    return str(folder / name)
