"""Workflows of programs: the record of a checked TOML file becomes steps that a worker runs.

Job step `start` lists and pins the items, each `[[step]]` is an item step, job step `finish` ends the job.
"""

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from resumed.schemas import codec
from resumed.schemas.decisions import (
    Accepted,
    Answer,
    Decided,
    Finished,
    HoldBack,
    NextStep,
    Offer,
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

from . import listing, offers, onetry, values
from .trial import Trial

START, FINISH = "start", "finish"


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
            crashes=each.crashes,
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
        passed=tuple(sorted({name for each in programs.steps for name in each.env_pass or ()})),
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


def load(contract: Contract) -> "Steps":
    """The steps of a contract's definition; AuthorError when there is none."""
    if not contract.definition:
        raise AuthorError(f"cannot load {contract.workflow}: the contract has no definition")
    what = f"cannot load {contract.workflow}"
    return Steps(contract, codec.decode_own(contract.definition.encode(), Programs, what))


class Steps:
    """A loaded workflow of programs; it runs one try at a time."""

    def __init__(self, contract: Contract, programs: Programs) -> None:
        self.contract = contract
        self._programs = programs
        self._places = {step.name: place for place, step in enumerate(programs.steps)}

    async def run(self, run: Run, trial: Trial) -> Answer:
        """Run one step's program, or one of the two job steps."""
        if run.step == START:
            given = values.of_job(self._programs, run)
            return Answer(decided=await listing.freeze(self._programs, run, given, trial))
        if run.step == FINISH:
            return Answer(decided=Finished())
        place = self._places.get(run.step)
        if place is None or run.row is None:
            raise AuthorError(f"cannot run step {run.step}: no such step, or no item was given")
        return Answer(decided=await self._item(run, self._programs.steps[place], place, trial))

    async def _item(self, run: Run, step: ProgramStep, place: int, trial: Trial) -> Decided:
        given = values.of_try(self._programs, run)
        found = await onetry.run(run, step, given, trial)
        if not isinstance(found, onetry.Done):
            return found
        if place + 1 == len(self._programs.steps):
            return Accepted(output=found.output)
        return _handed_on(step, self._programs.steps[place + 1].name, values.earlier(run), found.output)


def _handed_on(step: ProgramStep, then: str, earlier: Mapping[str, Any], output: Offer) -> Decided:
    if output.path is not None:
        reason = f"step {step.name} gave {output.size} bytes; at most {offers.INLINE} are handed on"
        return HoldBack(code="output_too_large", reason=reason)
    kept = {"base64": output.base64} if output.base64 is not None else {"text": output.text}
    outputs = {**earlier, step.name: kept}
    return NextStep(step=then, data=codec.dump_plain({"outputs": outputs}).decode())
