"""A loaded Python workflow: its handlers are entered, and what they return is checked and spelled.

A handler may be killed anywhere and is entered again with the same snapshot; only what it returns exists.
"""

import importlib
import inspect
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
from attrs import evolve

from resumed.schemas import codec, decisions
from resumed.schemas.decisions import Answer
from resumed.schemas.errors import AuthorError
from resumed.schemas.frames import Run
from resumed.schemas.job import Source
from resumed.schemas.workflow import Contract, Pinning, StepKind

from . import answers, authors, faulttext, outcomes, sources, states, views
from .effects import note_of
from .tools import PythonTool

Handler = Callable[..., Awaitable[Any]]


class Steps:
    """A loaded Python workflow."""

    def __init__(self, declared: type, contract: Contract) -> None:
        note = authors.note_of(declared, contract.entry)
        self.contract = contract
        self._kinds_of_effects = authors.tools_of(declared, contract.entry)
        self._tools = {
            each.tool: PythonTool(self._kinds_of_effects[each.tool], each) for each in contract.effects
        }
        self._states = states.States(note.state) if note.state is not None else None
        self._kinds = {each.name: each.kind for each in contract.steps}
        instance = declared()
        self._handlers: dict[str, Handler] = {name: getattr(instance, name) for name in self._kinds}
        self._told = frozenset(
            name for name, handler in self._handlers.items() if len(inspect.signature(handler).parameters) > 2
        )

    def tool(self, name: str) -> PythonTool:
        """What sends and looks up an effect; AuthorError when the workflow declares none of that name."""
        found = self._tools.get(name)
        if found is None:
            raise AuthorError(f"cannot act for {name}: {self.contract.workflow} declares no such effect")
        return found

    async def run(self, run: Run, trial: object) -> Answer:
        """One handler's answer; raises what the handler raises, and AuthorError for a wrong answer."""
        del trial
        handler = self._handlers.get(run.step)
        if handler is None:
            raise AuthorError(f"cannot run step {run.step}: the workflow has no such step")
        job = views.Job(run)
        told = (outcomes.given(run.given, run.artifacts),) if run.step in self._told else ()
        if self._kinds[run.step] is StepKind.ITEM:
            if run.row is None:
                raise AuthorError(f"cannot run step {run.step}: no item was given")
            given = await handler(job, views.Item(run.row), *told)
            if isinstance(given, answers.Accept) and isinstance(given.output, Path):
                # A file may be large: other tries of this worker go on while it is read.
                return await anyio.to_thread.run_sync(
                    self._answer, run, job, given, answers.ITEM_FORMS, {}, abandon_on_cancel=True
                )
            return await self._answered(run, job, given, answers.ITEM_FORMS, {})
        state = self._states.read(run.state) if self._states else None
        given = await handler(job, state, *told)
        changed = self._changed(run, state, getattr(given, "state", None))
        return await self._answered(run, job, given, answers.JOB_FORMS, changed)

    async def _answered(
        self, run: Run, job: views.Job, given: Any, forms: tuple[type, ...], changed: dict[str, str]
    ) -> Answer:
        if not isinstance(given, answers.Perform):
            return self._answer(run, job, given, forms, changed)
        self._check(run, given, forms)
        return Answer(decided=await self._performing(run, given), state=changed)

    async def _performing(self, run: Run, given: answers.Perform) -> decisions.Performing:
        """The words of what a handler wants performed: each effect as it is to be stored."""
        if not given.effects:
            raise AuthorError(f"step {run.step} performs nothing: Perform takes at least one effect")
        if run.item and given.state is not None:
            raise AuthorError(f"step {run.step} is an item's, and sets no state of the job")
        pinned = tuple([await self._pinned(each, run) for each in given.sources])
        made = tuple([await self._tool_of(each, run).call(each, run, pinned) for each in given.effects])
        return decisions.Performing(calls=made, then=given.then, otherwise=given.otherwise, back=given.back)

    def _tool_of(self, effect: Any, run: Run) -> PythonTool:
        note = note_of(type(effect))
        if note is None:
            raise AuthorError(
                f"step {run.step} performs {type(effect).__name__}, which is not decorated with @effect"
            )
        if self._kinds_of_effects.get(note.name) is not type(effect):
            raise AuthorError(
                f"step {run.step} performs {note.name}, which its workflow does not declare: "
                "name it in @workflow(..., effects=(...,))"
            )
        return self._tools[note.name]

    @staticmethod
    async def _pinned(given: Source | str | Path, run: Run) -> Source:
        """A source with what it is known by, as it is now where nothing is known of it yet."""
        source = _source(given, run.step)
        if sources.is_pinned(source):
            return source

        def pin() -> Source:
            return sources.pinned(source, Pinning.AUTO, run.reader if source.requested else None)

        try:
            return await anyio.to_thread.run_sync(pin, abandon_on_cancel=True)
        except OSError as error:
            said = faulttext.clean(f"cannot read its source {source.path}: {error.strerror or error}")
            raise AuthorError(f"step {run.step}: {said}") from None

    def _changed(self, run: Run, before: Any, after: Any) -> dict[str, str]:
        if after is None:
            return {}
        if self._states is None:
            raise AuthorError(f"cannot keep a state: {self.contract.workflow} declares none")
        return self._states.changed(run.state, before, after)

    def _answer(
        self, run: Run, job: views.Job, given: Any, forms: tuple[type, ...], changed: dict[str, str]
    ) -> Answer:
        self._check(run, given, forms)
        all_items = job.items if isinstance(given, answers.Each) else ()
        return Answer(decided=answers.spell(given, run.scratch, all_items), state=changed)

    def _check(self, run: Run, given: Any, forms: tuple[type, ...]) -> None:
        """AuthorError unless it is one of these forms, and leads to steps that there are."""
        if not isinstance(given, forms):
            expected = ", ".join(form.__name__ for form in forms)
            raise AuthorError(f"step {run.step} returned {type(given).__name__}, expected one of {expected}")
        for name, kind in _targets(given, self._kinds[run.step]):
            if self._kinds.get(name) is not kind:
                raise AuthorError(f"step {run.step} names {name!r}, which is no {kind.value} step")


def _source(given: Source | str | Path, step: str) -> Source:
    if isinstance(given, Source):
        return given
    if not isinstance(given, str | Path):
        raise AuthorError(f"step {step} names a {type(given).__name__} as a source, expected a path")
    return Source(path=os.path.abspath(given))


def _targets(given: Any, own: StepKind) -> tuple[tuple[str, StepKind], ...]:
    if isinstance(given, answers.Goto):
        return ((given.step, StepKind.JOB),)
    if isinstance(given, answers.Next):
        return ((given.step, StepKind.ITEM),)
    if isinstance(given, answers.Each):
        return ((given.start, StepKind.ITEM), (given.then, StepKind.JOB))
    if isinstance(given, answers.Perform):
        return tuple((name, own) for name in (given.then, given.otherwise, given.back) if name)
    if isinstance(given, answers.Ask):
        return ((given.then, own),)
    if isinstance(given, answers.Review) and given.then:
        return ((given.then, own),)
    return ()


def load(asked: Contract, describe: bool) -> Steps:
    """The workflow behind `module:Class`; AuthorError when it cannot run, or is not the one asked for."""
    module, _, name = asked.entry.partition(":")
    if folder := authors.python_of(asked).folder:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()
    declared = getattr(importlib.import_module(module), name, None)
    if not isinstance(declared, type):
        raise AuthorError(f"cannot load {asked.entry}: the module has no class {name!r}")
    contract = authors.contract_of(declared, asked)
    if not describe and asked.slots == 1:
        # One that is asked to do one thing at a time, as for errands, may.
        contract = evolve(contract, slots=1)
    if not describe and contract != asked:
        raise AuthorError(f"cannot load {asked.entry}: {difference(asked, contract)}")
    return Steps(declared, contract)


def difference(asked: Contract, found: Contract) -> str:
    """Where a class differs from the contract its jobs are pinned to."""
    ours: Mapping[str, Any] = codec.to_plain(asked)
    theirs: Mapping[str, Any] = codec.to_plain(found)
    names = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return f"its {', '.join(names)} changed under version {asked.version}; give it a new version"
