"""What is worth a second thought in a workflow that is right: facts about it, never guesses."""

from collections.abc import Iterator
from typing import Any

from . import effectadvice, templates
from .ledger import ToolContract
from .workflow import InputType, OnChange, Programs, ProgramStep


def of_workflow(programs: Programs, written: dict[str, Any]) -> Iterator[str]:
    """Sentences with their paths; `written` is the file's own value: it tells what was left to defaults."""
    for each in programs.inputs:
        if each.type is InputType.PATH and not each.roots:
            yield (
                "without roots a user's own daemon takes paths below the home folder, and any other daemon "
                f"any path that the requester may read @ $.inputs.{each.name}"
            )
    if not programs.enabled:
        yield f'a job must name "{programs.name}@{programs.version}" to get it @ $.enabled'
    tables = written.get("step", [])
    for place, step in enumerate(programs.steps):
        table = tables[place] if place < len(tables) and isinstance(tables[place], dict) else {}
        for said in _of_step(programs, step, table):
            yield f"{said} @ $.step[{place}]"


def _of_step(programs: Programs, step: ProgramStep, table: dict[str, Any]) -> Iterator[str]:
    if "timeout" not in table:
        yield "timeout is not written: each program of it is stopped after 1h"
    fixed = step.dir not in ("fresh", "item")
    if fixed and step.repeatable:
        yield "repeatable, and its programs run in a folder that keeps what an earlier try left there"
    if fixed and step.each and step.parallel > 1 and not templates.names(step.dir):
        yield f"up to {step.parallel} tries at once run in the same folder"
    if not step.repeatable and step.each and step.tries > 1:
        yield (
            "not repeatable: a try that ends with a failure is made again, one that is cut off holds its item"
        )
    publish = getattr(step, "publish", "")
    if publish and programs.items_on_change is OnChange.REOPEN:
        yield 'with on_change = "reopen" a second output meets the first one where it is published'


def of_effects(programs: Programs, tools: tuple[ToolContract, ...]) -> Iterator[str]:
    """The same of a file's effects; `tools` are their contracts."""
    for place, (effect, tool) in enumerate(zip(programs.effects, tools, strict=True)):
        for said in effectadvice.of_effect(programs, effect, tool):
            yield f"{said} @ $.effect[{place}]"


def programs_of(programs: Programs) -> Iterator[tuple[str, str]]:
    """Each program that a workflow starts, with its path in the file."""
    if programs.items_run:
        yield programs.items_run[0], "$.items.run[0]"
    for place, step in enumerate(programs.steps):
        show = step.review.show if step.review is not None else ()
        keys = (("prepare", step.prepare), ("run", step.run), ("verify", step.verify), ("review.show", show))
        for key, argv in keys:
            if argv:
                yield argv[0], f"$.step[{place}].{key}[0]"
    for place, effect in enumerate(programs.effects):
        for program, key in effectadvice.programs_of(effect):
            yield program, f"$.effect[{place}].{key}"
