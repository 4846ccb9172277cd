"""The Python half: how authors declare a workflow, and how a worker checks, loads and runs it.

A handler may be killed anywhere and is entered again with the same snapshot; only what it returns exists.
The decorators only leave a note on the class or function; everything is checked in `load`.
"""

import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

import anyio.to_thread
from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.decisions import Answer
from resumed.schemas.errors import AuthorError
from resumed.schemas.frames import Run
from resumed.schemas.workflow import Contract, Programs, PythonEntry, StepContract, StepKind

from . import answers, states, views

_STEP = "__resumed_step__"
_WORKFLOW = "__resumed_workflow__"

C = TypeVar("C", bound=type)
H = TypeVar("H", bound=Callable[..., Any])
Handler = Callable[[views.Job, Any], Awaitable[Any]]


@frozen(kw_only=True)
class StepNote:
    """What `@step` was given."""

    start: bool
    item: bool
    repeatable: bool
    timeout: str | float
    grace: str | float
    tries: int
    backoff: tuple[str | float, str | float]
    version: int


@frozen(kw_only=True)
class WorkflowNote:
    """What `@workflow` was given."""

    name: str
    version: int
    state: type | None
    slots: int
    description: str
    owner: str


@overload
def step(handler: H, /) -> H: ...
@overload
def step(
    *,
    start: bool = False,
    item: bool = False,
    repeatable: bool = True,
    timeout: str | float = "1h",
    grace: str | float = "10s",
    tries: int = 3,
    backoff: tuple[str | float, str | float] = ("30s", "15m"),
    version: int = 1,
) -> Callable[[H], H]: ...
def step(
    handler: Any = None,
    /,
    *,
    start: bool = False,
    item: bool = False,
    repeatable: bool = True,
    timeout: str | float = "1h",
    grace: str | float = "10s",
    tries: int = 3,
    backoff: tuple[str | float, str | float] = ("30s", "15m"),
    version: int = 1,
) -> Any:
    """Declare a handler: `async def name(self, job, state)`, or with `item=True` `(self, job, item)`.

    `start` marks the job step a new job begins with. `timeout` and `grace` are durations; `backoff` is the
    first and the longest pause between tries. `repeatable=False` holds a step that was cut off, for a person.
    """
    note = StepNote(
        start=start,
        item=item,
        repeatable=repeatable,
        timeout=timeout,
        grace=grace,
        tries=tries,
        backoff=backoff,
        version=version,
    )

    def leave(function: H) -> H:
        setattr(function, _STEP, note)
        return function

    return leave if handler is None else leave(handler)


def workflow(
    name: str,
    /,
    *,
    version: int,
    state: type | None = None,
    slots: int = 1,
    description: str = "",
    owner: str = "",
) -> Callable[[C], C]:
    """Declare a class as the workflow `name`, under the same name as its file in `workflows.d`.

    `state` is a frozen attrs class of the job's state. `slots` is how many tries one worker process runs at
    once; more than 1 only where handlers start no child processes.
    """
    note = WorkflowNote(
        name=name, version=version, state=state, slots=slots, description=description, owner=owner
    )

    def leave(declared: C) -> C:
        setattr(declared, _WORKFLOW, note)
        return declared

    return leave


def _step_contract(name: str, function: Any) -> StepContract:
    note: StepNote = getattr(function, _STEP)
    if not inspect.iscoroutinefunction(function):
        raise AuthorError(f"cannot load step {name}: a handler is an `async def`")
    if len(inspect.signature(function).parameters) != 3:
        raise AuthorError(f"cannot load step {name}: a handler takes (self, job, {_third(note)})")
    if note.start and note.item:
        raise AuthorError(f"cannot load step {name}: a job begins with a job step")
    first, most = _backoff(name, note.backoff)
    _check_count(f"cannot load step {name}: tries", note.tries)
    return StepContract(
        name=name,
        kind=StepKind.ITEM if note.item else StepKind.JOB,
        version=note.version,
        repeatable=note.repeatable,
        timeout=_span(name, "timeout", note.timeout),
        grace=_span(name, "grace", note.grace),
        tries=note.tries,
        backoff_first=first,
        backoff_max=most,
    )


def _span(name: str, what: str, given: Any) -> float:
    """Seconds of one of a step's limits, which must let time pass."""
    wanted = f"cannot load step {name}: {what}"
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise AuthorError(f"{wanted} is a duration, got {given!r}")
    try:
        found = answers.seconds(given)
    except AuthorError as error:
        raise AuthorError(f"{wanted}: {error}") from None
    if not found > 0:
        raise AuthorError(f"{wanted} is more than 0 seconds, got {given!r}")
    return found


def _backoff(name: str, given: Any) -> tuple[float, float]:
    if not isinstance(given, tuple) or len(given) != 2:
        raise AuthorError(f"cannot load step {name}: backoff is two durations, got {given!r}")
    first, most = (_span(name, "backoff", each) for each in given)
    if most < first:
        raise AuthorError(f"cannot load step {name}: backoff is the first and the longest, got {given!r}")
    return first, most


def _check_count(what: str, given: Any) -> None:
    if type(given) is not int or given < 1:
        raise AuthorError(f"{what} is a whole number of at least 1, got {given!r}")


def _third(note: StepNote) -> str:
    return "item" if note.item else "state"


def contract_of(declared: type, asked: Contract) -> Contract:
    """The contract a class declares, for the entry that was asked for; AuthorError for what cannot run."""
    note: WorkflowNote | None = declared.__dict__.get(_WORKFLOW)
    if note is None:
        raise AuthorError(f"cannot load {asked.entry}: the class is not decorated with @workflow")
    functions = {name: found for name, found in inspect.getmembers(declared) if hasattr(found, _STEP)}
    steps = tuple(_step_contract(name, function) for name, function in functions.items())
    starts = [name for name, function in functions.items() if getattr(function, _STEP).start]
    if len(starts) != 1:
        raise AuthorError(f"cannot load {asked.entry}: expected one step with start=True, got {len(starts)}")
    if (note.name, note.version) != (asked.workflow, asked.version):
        found, wanted = f"{note.name}@{note.version}", f"{asked.workflow}@{asked.version}"
        raise AuthorError(f"cannot load {asked.entry}: it declares {found}, expected {wanted}")
    written = _python(asked).slots
    slots = note.slots if written is None else written
    _check_count(f"cannot load {asked.entry}: slots", slots)
    return Contract(
        workflow=note.name,
        version=note.version,
        start=starts[0],
        steps=steps,
        description=asked.description or note.description,
        owner=asked.owner or note.owner,
        entry=asked.entry,
        interpreter=asked.interpreter,
        definition=asked.definition,
        slots=slots,
        pin=asked.pin,
        on_change=asked.on_change,
        limits=asked.limits,
        on_failed=asked.on_failed,
    )


def _python(asked: Contract) -> PythonEntry:
    if not asked.definition:
        return PythonEntry(entry=asked.entry)
    file = codec.decode_own(asked.definition.encode(), Programs, f"cannot load {asked.entry}")
    return file.python or PythonEntry(entry=asked.entry)


class Steps:
    """A loaded Python workflow."""

    def __init__(self, declared: type, contract: Contract) -> None:
        note: WorkflowNote = getattr(declared, _WORKFLOW)
        self.contract = contract
        self._states = states.States(note.state) if note.state is not None else None
        self._kinds = {each.name: each.kind for each in contract.steps}
        instance = declared()
        self._handlers: dict[str, Handler] = {name: getattr(instance, name) for name in self._kinds}

    async def run(self, run: Run, trial: object) -> Answer:
        """One handler's answer; raises what the handler raises, and AuthorError for a wrong answer."""
        del trial
        handler = self._handlers.get(run.step)
        if handler is None:
            raise AuthorError(f"cannot run step {run.step}: the workflow has no such step")
        job = views.Job(run)
        if self._kinds[run.step] is StepKind.ITEM:
            if run.row is None:
                raise AuthorError(f"cannot run step {run.step}: no item was given")
            given = await handler(job, views.Item(run.row))
            if isinstance(given, answers.Accept) and isinstance(given.output, Path):
                # A file may be large: other tries of this worker go on while it is read.
                return await anyio.to_thread.run_sync(
                    self._answer, run, job, given, answers.ITEM_FORMS, {}, abandon_on_cancel=True
                )
            return self._answer(run, job, given, answers.ITEM_FORMS, {})
        state = self._states.read(run.state) if self._states else None
        given = await handler(job, state)
        changed = self._changed(run, state, getattr(given, "state", None))
        return self._answer(run, job, given, answers.JOB_FORMS, changed)

    def _changed(self, run: Run, before: Any, after: Any) -> dict[str, str]:
        if after is None:
            return {}
        if self._states is None:
            raise AuthorError(f"cannot keep a state: {self.contract.workflow} declares none")
        return self._states.changed(run.state, before, after)

    def _answer(
        self, run: Run, job: views.Job, given: Any, forms: tuple[type, ...], changed: dict[str, str]
    ) -> Answer:
        if not isinstance(given, forms):
            expected = ", ".join(form.__name__ for form in forms)
            raise AuthorError(f"step {run.step} returned {type(given).__name__}, expected one of {expected}")
        for name, kind in _targets(given):
            if self._kinds.get(name) is not kind:
                raise AuthorError(f"step {run.step} names {name!r}, which is no {kind.value} step")
        all_items = job.items if isinstance(given, answers.Each) else ()
        return Answer(decided=answers.spell(given, run.scratch, all_items), state=changed)


def _targets(given: Any) -> tuple[tuple[str, StepKind], ...]:
    if isinstance(given, answers.Goto):
        return ((given.step, StepKind.JOB),)
    if isinstance(given, answers.Next):
        return ((given.step, StepKind.ITEM),)
    if isinstance(given, answers.Each):
        return ((given.start, StepKind.ITEM), (given.then, StepKind.JOB))
    return ()


def load(asked: Contract, describe: bool) -> Steps:
    """The workflow behind `module:Class`; AuthorError when it cannot run, or is not the one asked for."""
    module, _, name = asked.entry.partition(":")
    if folder := _python(asked).folder:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    declared = getattr(importlib.import_module(module), name, None)
    if not isinstance(declared, type):
        raise AuthorError(f"cannot load {asked.entry}: the module has no class {name!r}")
    contract = contract_of(declared, asked)
    if not describe and contract != asked:
        raise AuthorError(f"cannot load {asked.entry}: {difference(asked, contract)}")
    return Steps(declared, contract)


def difference(asked: Contract, found: Contract) -> str:
    """Where a class differs from the contract its jobs are pinned to."""
    ours: Mapping[str, Any] = codec.to_plain(asked)
    theirs: Mapping[str, Any] = codec.to_plain(found)
    names = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return f"its {', '.join(names)} changed under version {asked.version}; give it a new version"
