"""The `[[step]]` tables of a workflow file: each becomes one step that runs a program."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from . import strict, templates, workflowapprovals, workflowwords
from .filetable import Table
from .jobfile import ID
from .workflow import ExitMeaning, ExitRule, Input, ProgramStep
from .workflowwords import argv, template

RESERVED = ("start", "finish")
"""Names of the two job steps around the items."""
MAX_OUTPUT = 16 * 1024 * 1024

# What INTERFACE names and this release does not do: refused as such, never ignored.
_LATER = ("pools",)

_CODE = re.compile(r"0|[1-9][0-9]{0,2}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS = "RESUMED_"


def steps(table: Table, inputs: tuple[Input, ...]) -> tuple[ProgramStep, ...]:
    """The steps of a file, in its order."""
    given = {f"inputs.{each.name}" for each in inputs}
    found: list[ProgramStep] = []
    for each in table.each("step"):
        step = _step(each, found, given)
        if any(step.name == before.name for before in found):
            each.problem("name", f"a step named {step.name!r} stands above")
        found.append(step)
    return tuple(found)


def _known(each: bool, before: list[ProgramStep], inputs: set[str]) -> set[str]:
    """The placeholders of a step: the job's own step sees no item, and nothing that was made for one."""
    if each:
        return set(templates.PLAIN) | inputs | {f"outputs.{step.name}" for step in before}
    made = {f"outputs.{step.name}" for step in before if not step.each}
    return (set(templates.PLAIN) - templates.OF_ITEM) | inputs | made


def _step(table: Table, before: list[ProgramStep], inputs: set[str]) -> ProgramStep:
    name = table.text("name", required=True)
    each = table.flag("each", True)
    secrets = workflowwords.secrets(table)
    known = _known(each, before, inputs) | workflowwords.placeholders(secrets)
    if name in RESERVED or (name and not ID.match(name)):
        table.problem("name", f"{name!r} cannot be a step's name")
    output = table.inner("output")
    first, most = _backoff(table.inner("backoff"))
    passed, given = _env(table.inner("env"), known)
    step = ProgramStep(
        name=name,
        run=argv(table, "run", known, required=True),
        each=each,
        prepare=argv(table, "prepare", known),
        verify=argv(table, "verify", known),
        stdin=template(table, "stdin", known),
        exits=_exits(table.inner("exit")),
        result=_result(table),
        **_output(output, each, inputs),
        dir=_dir(table, inputs),
        env_pass=passed,
        env_set=given,
        timeout=table.duration("timeout", 3600.0),
        silence=_silence(table),
        grace=table.duration("grace", 10.0),
        tries=table.number("tries", 3, 1),
        backoff_first=first,
        backoff_max=most,
        crashes=table.number("crashes", 3, 1),
        parallel=table.number("parallel", 1, 1),
        repeatable=table.flag("repeatable", required=True),
        secrets=secrets,
        review=workflowapprovals.review(table.inner("review"), known),
    )
    if not each:
        _check_job_step(table, step)
    if step.review is not None and step.publish:
        table.problem("review", "a draft is not published before it is accepted: publish it in a later step")
    if step.timeout <= 0:
        table.problem("timeout", "expected more than 0s")
    if step.output_from == "file" and not templates.uses("output", (*step.run, step.stdin)):
        table.problem("output", 'output.from = "file" needs {output} in run or stdin')
    if output is not None:
        output.close()
    table.close(_LATER)
    return step


def _result(table: Table) -> str:
    found = table.text("result", "exit")
    if found in ("claude", "codex"):
        table.problem("result", f"{found!r} is not in this release yet")
    elif found not in ("exit", "json"):
        table.problem("result", f"expected one of exit, json, got {found!r}")
    return found


def _check_job_step(table: Table, step: ProgramStep) -> None:
    """What only makes sense for items."""
    if step.dir == "item":
        table.problem("dir", "a step with each = false has no item")
    if step.parallel > 1:
        table.problem("parallel", "a step with each = false runs once")
    if any(rule.means is ExitMeaning.SKIP for rule in step.exits):
        table.problem("exit", "a step with each = false has no item to skip")
    if step.review is not None:
        table.problem("review", "a step with each = false has no item to look at")


def _output(table: Table | None, each: bool, inputs: set[str]) -> dict[str, Any]:
    if table is None:
        return {}
    keep = table.choice("keep", ("copy", "reference"), "copy")
    publish = table.text("publish")
    # What is published and not copied costs the store nothing: it has no bound of its own.
    most = MAX_OUTPUT if keep == "copy" else strict.MAX_INT
    if keep == "reference" and not publish:
        table.problem("keep", 'keep = "reference" needs publish: the published file is what is kept')
    for problem in _place_problems(publish, each, inputs) if publish else ():
        table.problem("publish", problem)
    return {
        "output_from": table.choice("from", ("stdout", "file"), ""),
        "output_max": table.number("max", most, 1),
        "publish": publish,
        "keep": keep,
    }


def _place_problems(publish: str, each: bool, inputs: set[str]) -> Iterator[str]:
    known = (templates.PUBLISHED if each else templates.PUBLISHED - templates.OF_ITEM) | inputs
    for problem in templates.problems(publish, known):
        yield f"{problem} (a place is the same at every try)" if "unknown" in problem else problem
    if not publish.startswith(("/", "{inputs.")):
        yield f"expected an absolute path, got {publish!r}"
    if publish.endswith("/"):
        yield f"expected the path of a file, got {publish!r}"


def _exits(table: Table | None) -> tuple[ExitRule, ...]:
    found: list[ExitRule] = []
    for key in table.left() if table is not None else ():
        assert table is not None
        if not _CODE.fullmatch(key) or int(key) > 255:
            table.take(key, str)
            table.problem(key, f"expected an exit status, 0 to 255, got {key!r}")
            continue
        means = table.choice(key, tuple(ExitMeaning), "")
        if means:
            found.append(ExitRule(code=int(key), means=ExitMeaning(means)))
    return tuple(sorted(found, key=lambda rule: rule.code))


def _dir(table: Table, inputs: Collection[str]) -> str:
    found = table.text("dir", "fresh")
    if found in ("fresh", "item"):
        return found
    if not found.startswith(("/", "{inputs.")):
        table.problem("dir", f"expected fresh, item or an absolute path, got {found!r}")
    for problem in templates.problems(found, inputs):
        table.problem("dir", f"{problem} (a folder is named by inputs alone)")
    return found


def _env(table: Table | None, known: Collection[str]) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    if table is None:
        return None, {}
    passed = table.texts("pass") if table.has("pass") else None
    given: dict[str, str] = {}
    inner = table.inner("set")
    for name in inner.left() if inner is not None else ():
        assert inner is not None
        given[name] = template(inner, name, known)
    for name in (*(passed or ()), *given):
        if not _VARIABLE.fullmatch(name):
            table.problems.append(f"{name!r} cannot be a variable's name @ {table.path}")
        elif name.startswith(_OURS):
            table.problems.append(f"{name}: variables of that beginning are the daemon's own @ {table.path}")
    for name in set(passed or ()) & set(given):
        table.problems.append(f"{name} stands in pass and in set @ {table.path}")
    table.close()
    return passed, given


def _silence(table: Table) -> float:
    if not table.has("silence"):
        return 0.0
    silence = table.duration("silence", 1.0)
    if silence <= 0:
        table.problem("silence", "expected more than 0s (leave it out to allow any silence)")
    return silence


def _backoff(table: Table | None) -> tuple[float, float]:
    if table is None:
        return 30.0, 900.0
    first, most = table.duration("first", 30.0), table.duration("max", 900.0)
    if most < first:
        table.problems.append(f"expected first to be at most max @ {table.path}")
    table.close()
    return first, most
