"""Workflows of programs: the record of a checked TOML file becomes steps that a worker runs.

Job step `start` lists and pins the items, each `[[step]]` is a step of its own (see `course`), job step
`finish` ends the job.
"""

import anyio.to_thread
from attrs import evolve

from resumed.schemas import codec
from resumed.schemas.decisions import (
    Accepted,
    Answer,
    Decided,
    FanOut,
    Finished,
    HoldBack,
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

from . import faulttext, listing, onetry, values
from .course import FINISH, START, Course
from .errands import Tool
from .trial import Trial


def contract_of(programs: Programs, folder: str = "") -> Contract:
    """What a workflow file declares to the law.

    For a Python workflow it has no steps yet: a worker that is started with `describe` answers with the
    whole contract. `folder` is then where its module is looked for.
    """
    if programs.python is not None:
        return _undescribed(programs, programs.python, folder)
    steps = (
        StepContract(name=START, kind=StepKind.JOB),
        *(_step_contract(each) for each in programs.steps),
        StepContract(name=FINISH, kind=StepKind.JOB),
    )
    return Contract(
        workflow=programs.name,
        version=programs.version,
        start=START,
        steps=steps,
        description=programs.description,
        owner=programs.owner,
        definition=codec.encode(programs).decode(),
        limits=programs.limits,
        on_failed=programs.on_failed,
        passed=tuple(sorted({name for each in programs.steps for name in each.env_pass or ()})),
        pin=programs.items_pin,
        on_change=programs.items_on_change,
    )


def _step_contract(step: ProgramStep) -> StepContract:
    return StepContract(
        name=step.name,
        kind=StepKind.ITEM if step.each else StepKind.JOB,
        repeatable=step.repeatable,
        timeout=step.timeout,
        grace=step.grace,
        tries=step.tries,
        backoff_first=step.backoff_first,
        backoff_max=step.backoff_max,
        crashes=step.crashes,
        parallel=step.parallel if step.each else None,
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
        pin=programs.items_pin,
        on_change=programs.items_on_change,
        limits=programs.limits,
        on_failed=programs.on_failed,
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
        self._course = Course(contract, programs)
        self._places = {step.name: place for place, step in enumerate(programs.steps)}

    async def run(self, run: Run, trial: Trial) -> Answer:
        """Run one step's program, or one of the two steps around them."""
        if run.step == START:
            return Answer(decided=await self._begin(run, trial))
        if run.step == FINISH:
            return Answer(decided=Finished())
        place = self._places.get(run.step)
        if place is None or self._programs.steps[place].each != (run.row is not None):
            raise AuthorError(f"cannot run step {run.step}: no such step, or not for what was given")
        decided = await self._step(run, place, trial)
        return Answer(decided=decided, used=trial.used)

    def tool(self, name: str) -> Tool:
        """What sends and looks up an effect."""
        raise AuthorError(f"cannot act for {name}: {self.contract.workflow} declares no such effect")

    async def _begin(self, run: Run, trial: Trial) -> Decided:
        if not self._course.has_item_steps:
            if run.items:
                reason = f"{len(run.items)} items were given, and the workflow has no step for items"
                return HoldBack(code="items", reason=reason)
            return self._course.begin(())
        given = values.of_job(self._programs, run)
        decided = await listing.freeze(self._programs, run, given, trial)
        return self._course.begin(decided.items or ()) if isinstance(decided, FanOut) else decided

    async def _step(self, run: Run, place: int, trial: Trial) -> Decided:
        step = self._programs.steps[place]
        try:
            if values.reads_files(run):
                given = await anyio.to_thread.run_sync(values.of_try, self._programs, run)
            else:
                given = values.of_try(self._programs, run)
        except OSError as error:
            reason = f"cannot hand on what earlier steps made: {error.strerror or error}"
            return TryAgain(code="no-input", reason=faulttext.clean(reason))
        if absent := values.missing(step, given):
            reason = f"{', '.join(absent)}: that step never ended well for it"
            return HoldBack(code="no_input", reason=reason)
        found = await onetry.run(run, step, given, trial)
        if not isinstance(found, onetry.Done):
            return found
        handed = evolve(found.output, name=step.name)
        if not step.each:
            return self._course.after_job_step(place, handed)
        data = run.row.data if run.row is not None else "{}"
        following = self._course.after_item_step(place, handed, data)
        return Accepted(output=found.output) if following is None else following
