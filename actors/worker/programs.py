"""Workflows of programs: the record of a checked TOML file becomes steps that a worker runs.

Job step `start` lists and pins the items, each `[[step]]` and each `[[effect]]` is a step of its own (see
`course`), job step `finish` ends the job.
"""

import anyio.to_thread
from attrs import evolve

from resumed.schemas import codec, effecttools
from resumed.schemas.decisions import (
    Accepted,
    Answer,
    Decided,
    FanOut,
    Finished,
    HoldBack,
    Reviewing,
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

from . import credentials, faulttext, listing, onetry, proposals, values
from .course import FINISH, START, Course, contracts_of
from .programtools import ProgramTool
from .trial import Trial


def contract_of(programs: Programs, folder: str = "") -> Contract:
    """What a workflow file declares to the law.

    For a Python workflow it has no steps yet: a worker that is started with `describe` answers with the
    whole contract. `folder` is then where its module is looked for.
    """
    if programs.python is not None:
        return _undescribed(programs, programs.python, folder)
    steps = tuple(contracts_of(programs, {each.name: _step_contract(each) for each in programs.steps}))
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
        effects=tuple(effecttools.contract_of(each) for each in programs.effects),
        on_unknown=programs.on_unknown,
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
        on_unknown=programs.on_unknown,
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
        self._tools = {effect.name: ProgramTool(effect) for effect in programs.effects}

    def tool(self, name: str) -> ProgramTool:
        """What sends and looks up an effect; AuthorError when there is none of that name."""
        found = self._tools.get(name)
        if found is None:
            raise AuthorError(f"cannot act for {name}: {self.contract.workflow} declares no such effect")
        return found

    async def run(self, run: Run, trial: Trial) -> Answer:
        """Run one step's program, or one of the steps around them."""
        if run.step == START:
            return Answer(decided=await self._begin(run, trial))
        if run.step == FINISH:
            return Answer(decided=Finished())
        if run.step in self._course.behind:
            return Answer(decided=self._lead_on(run, self._course.behind[run.step]))
        number = self._course.at.get(run.step)
        if number is None or self._course.places[number].each != (run.row is not None):
            raise AuthorError(f"cannot run step {run.step}: no such step, or not for what was given")
        decided = await self._place(run, number, trial)
        return Answer(decided=decided, used=trial.used)

    def _lead_on(self, run: Run, number: int) -> Decided:
        """What follows where others have decided, and all came true."""
        if run.row is None:
            return self._course.after_job_step(number, None)
        following = self._course.after_item_step(number, None, run.row.data)
        return Accepted() if following is None else following

    async def _begin(self, run: Run, trial: Trial) -> Decided:
        if not self._course.has_item_steps:
            if run.items:
                reason = f"{len(run.items)} items were given, and the workflow has no step for items"
                return HoldBack(code="items", reason=reason)
            return self._course.begin(())
        given = values.of_job(self._programs, run)
        decided = await listing.freeze(self._programs, run, given, trial)
        return self._course.begin(decided.items or ()) if isinstance(decided, FanOut) else decided

    async def _place(self, run: Run, number: int, trial: Trial) -> Decided:
        place = self._course.places[number]
        try:
            if values.reads_files(run):
                given = await anyio.to_thread.run_sync(values.of_try, self._programs, run)
            else:
                given = values.of_try(self._programs, run)
        except OSError as error:
            reason = f"cannot hand on what earlier steps made: {error.strerror or error}"
            return TryAgain(code="no-input", reason=faulttext.clean(reason))
        if place.effect is not None:
            if absent := proposals.absent(place.effect, given):
                return _held_without(absent)
            leads = self._course.then(number), self._course.back(number)
            return await proposals.proposed(self._programs, place.effect, run, given, leads, trial)
        assert place.step is not None
        try:
            with credentials.handed(run.credentials, place.step.secrets, run.scratch) as handed:
                return await self._step(run, number, place.step, dict(given), handed, trial)
        except credentials.AbsentError as error:
            return HoldBack(code="secrets", reason=faulttext.clean(str(error)))

    async def _step(
        self,
        run: Run,
        number: int,
        step: ProgramStep,
        given: dict[str, str],
        handed: credentials.Handed,
        trial: Trial,
    ) -> Decided:
        given |= handed.paths()
        if absent := values.missing(step, given):
            return _held_without(absent)
        found = await onetry.run(run, step, given, trial, handed)
        if not isinstance(found, onetry.Done):
            return found
        made = evolve(found.output, name=step.name)
        if not step.each:
            return self._course.after_job_step(number, made)
        data = run.row.data if run.row is not None else "{}"
        if step.review is not None:
            return Reviewing(
                draft=made,
                rule=step.review.rule,
                edit=step.review.edit,
                then=self._course.then(number),
                data=data,
                shown=found.shown,
            )
        following = self._course.after_item_step(number, made, data)
        return Accepted(output=found.output) if following is None else following


def _held_without(absent: list[str]) -> HoldBack:
    reason = f"{', '.join(absent)}: that step never ended well for it"
    return HoldBack(code="no_input", reason=reason)
