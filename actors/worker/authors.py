"""The Python half: how authors declare a workflow, and what a class declares to the law.

The decorators only leave a note on the class or function; everything is checked when it is loaded.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.errors import AuthorError
from resumed.schemas.workflow import Contract, Programs, PythonEntry, StepContract, StepKind

from . import effects
from .durations import span

_STEP = "__resumed_step__"
_WORKFLOW = "__resumed_workflow__"

C = TypeVar("C", bound=type)
H = TypeVar("H", bound=Callable[..., Any])


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
    effects: tuple[type, ...] | None


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

    One that something leads to which was waited for may take a third: the outcome of an effect (a tuple, of
    several), the text that was reviewed, or an answer; None when it is entered in another way.
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
    effects: Iterable[type] | None = None,
) -> Callable[[C], C]:
    """Declare a class as the workflow `name`, under the same name as its file in `workflows.d`.

    `state` is a frozen attrs class of the job's state. `slots` is how many tries one worker process runs at
    once; more than 1 only where handlers start no child processes. `effects` are what it may perform: without
    it, all that its module knows.
    """
    note = WorkflowNote(
        name=name,
        version=version,
        state=state,
        slots=slots,
        description=description,
        owner=owner,
        effects=None if effects is None else tuple(effects),
    )

    def leave(declared: C) -> C:
        setattr(declared, _WORKFLOW, note)
        return declared

    return leave


def _step_contract(name: str, function: Any) -> StepContract:
    note: StepNote = getattr(function, _STEP)
    if not inspect.iscoroutinefunction(function):
        raise AuthorError(f"cannot load step {name}: a handler is an `async def`")
    if len(inspect.signature(function).parameters) not in (3, 4):
        raise AuthorError(
            f"cannot load step {name}: a handler takes (self, job, {_third(note)}), and, where it is given "
            "what was waited for, one more"
        )
    if note.start and note.item:
        raise AuthorError(f"cannot load step {name}: a job begins with a job step")
    first, most = _backoff(name, note.backoff)
    _check_count(f"cannot load step {name}: tries", note.tries)
    return StepContract(
        name=name,
        kind=StepKind.ITEM if note.item else StepKind.JOB,
        version=note.version,
        repeatable=note.repeatable,
        timeout=span(f"cannot load step {name}: timeout", note.timeout),
        grace=span(f"cannot load step {name}: grace", note.grace),
        tries=note.tries,
        backoff_first=first,
        backoff_max=most,
    )


def _backoff(name: str, given: Any) -> tuple[float, float]:
    if not isinstance(given, tuple) or len(given) != 2:
        raise AuthorError(f"cannot load step {name}: backoff is two durations, got {given!r}")
    first, most = (span(f"cannot load step {name}: backoff", each) for each in given)
    if most < first:
        raise AuthorError(f"cannot load step {name}: backoff is the first and the longest, got {given!r}")
    return first, most


def _check_count(what: str, given: Any) -> None:
    if type(given) is not int or given < 1:
        raise AuthorError(f"{what} is a whole number of at least 1, got {given!r}")


def _third(note: StepNote) -> str:
    return "item" if note.item else "state"


def note_of(declared: type, entry: str) -> WorkflowNote:
    """What a class was declared with; AuthorError when it is no workflow."""
    note: WorkflowNote | None = declared.__dict__.get(_WORKFLOW)
    if note is None:
        raise AuthorError(f"cannot load {entry}: the class is not decorated with @workflow")
    return note


def tools_of(declared: type, entry: str) -> dict[str, type]:
    """The effects that a workflow may perform, by name."""
    named = note_of(declared, entry).effects
    return effects.find(declared.__module__, named, f"cannot load {entry}")


def contract_of(declared: type, asked: Contract) -> Contract:
    """The contract a class declares, for the entry that was asked for; AuthorError for what cannot run."""
    note = note_of(declared, asked.entry)
    functions = {name: found for name, found in inspect.getmembers(declared) if hasattr(found, _STEP)}
    steps = tuple(_step_contract(name, function) for name, function in functions.items())
    starts = [name for name, function in functions.items() if getattr(function, _STEP).start]
    if len(starts) != 1:
        raise AuthorError(f"cannot load {asked.entry}: expected one step with start=True, got {len(starts)}")
    if (note.name, note.version) != (asked.workflow, asked.version):
        found, wanted = f"{note.name}@{note.version}", f"{asked.workflow}@{asked.version}"
        raise AuthorError(f"cannot load {asked.entry}: it declares {found}, expected {wanted}")
    written = python_of(asked).slots
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
        effects=tuple(effects.contract_of(kind) for kind in tools_of(declared, asked.entry).values()),
        on_unknown=asked.on_unknown,
    )


def python_of(asked: Contract) -> PythonEntry:
    """What its file says of a Python workflow."""
    if not asked.definition:
        return PythonEntry(entry=asked.entry)
    file = codec.decode_own(asked.definition.encode(), Programs, f"cannot load {asked.entry}")
    return file.python or PythonEntry(entry=asked.entry)
