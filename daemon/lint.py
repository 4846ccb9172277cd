"""`resumectl lint`: what is wrong with a workflow or job file, and what is worth a second thought.

It needs no daemon, and changes nothing. Records are loaded only here: no other verb is slower for it.
"""

import argparse
import os
import shutil
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

from resumed.schemas import control

from .letters import clean
from .render import paint
from .screen import Screen, UsageError

_SAID = 500


class Found(NamedTuple):
    """What a file is, and what was found in it; `said` sums it up when nothing is wrong."""

    kind: str
    problems: list[str]
    warnings: list[str]
    said: str = ""


def lint(screen: Screen, asked: argparse.Namespace) -> int:
    """Look at one file; exit 1 when something in it would be refused."""
    path = asked.file
    try:
        with open(path, "rb") as file:
            raw = file.read(_MOST + 1)
            status = os.fstat(file.fileno())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", ("resumectl lint --help",)) from None
    value = _value(raw, path)
    found = _job(raw, path, value, asked.workflows) if _is_job(value, path) else _workflow(raw, path, status)
    answer = {
        "file": path,
        "kind": found.kind,
        "problems": found.problems,
        "warnings": found.warnings,
    }
    screen.show(answer, _lines(screen, path, found))
    return control.EXIT_REFUSED if found.problems else control.EXIT_DONE


_MOST = 1024 * 1024


def _lines(screen: Screen, path: str, found: Found) -> Iterator[str]:
    shown = clean(path)
    if found.problems:
        yield paint(f"! {shown}: this {found.kind} would be refused", "!", screen.colour)
    else:
        yield paint(f"+ {shown}: {clean(found.said, _SAID)}", "+", screen.colour)
    yield from (f"  ! {clean(each, _SAID)}" for each in found.problems)
    yield from (f"  ? {clean(each, _SAID)}" for each in found.warnings)
    if found.kind == "job file" and not found.problems:
        yield "you may"
        yield f"  resumectl submit --dry-run {shown}"


def _value(raw: bytes, path: str) -> Any:
    """What the file says, in either spelling; None when it is neither."""
    from resumed.schemas import strict, tomltext
    from resumed.schemas.errors import FaultyInputError

    try:
        return tomltext.parse(raw, "", _MOST) if path.endswith(".toml") else strict.parse(raw, "")
    except FaultyInputError:
        return None


def _is_job(value: Any, path: str) -> bool:
    """A job file names a workflow; a workflow file is TOML, and names none."""
    if isinstance(value, dict):
        return "workflow" in value or not path.endswith(".toml")
    return not path.endswith(".toml")


def _workflow(raw: bytes, path: str, status: os.stat_result) -> Found:
    from importlib.util import find_spec

    from resumed.schemas import advice, tomltext, workflowfile
    from resumed.schemas.errors import FaultyInputError

    name = os.path.basename(path).removesuffix(".toml")
    problems = list(_rights(status))
    try:
        programs = workflowfile.read(raw, name)
        written = tomltext.parse(raw, "", _MOST)
    except FaultyInputError as error:
        return Found("workflow file", [*error.problems, *problems], [])
    warnings = [*advice.of_workflow(programs, written), *advice.of_effects(programs, _tools(programs))]
    warnings += _absent(advice.programs_of(programs))
    if any(effect.speaks_http for effect in programs.effects) and find_spec("httpx") is None:
        warnings.append("httpx is not installed here: pip install 'resumed[http]' @ $.effect")
    steps, effects = len(programs.steps), len(programs.effects)
    what = f"class {programs.python.entry}" if programs.python else f"{steps} step{'s' * (steps != 1)}"
    if effects:
        what += f", {effects} effect{'s' * (effects != 1)}"
    if programs.python:
        warnings.append("its class is not imported here: its steps were not looked at @ $.python")
    said = f"the workflow {programs.name}, version {programs.version}, {what}"
    return Found("workflow file", problems, warnings, said)


def _tools(programs: Any) -> Any:
    from resumed.schemas import effecttools

    return tuple(effecttools.contract_of(each) for each in programs.effects)


def _rights(status: os.stat_result) -> Iterator[str]:
    if status.st_mode & 0o022:
        yield f"others may write it (mode {stat.S_IMODE(status.st_mode):04o}): chmod go-w"


def _absent(programs: Iterator[tuple[str, str]]) -> Iterator[str]:
    from resumed.schemas.workflow import PATH

    for program, place in programs:
        if shutil.which(program, path=PATH) is None:
            where = "" if "/" in program else f" in {PATH}"
            yield f"{program} is not there to be run{where} @ {place}"


def _job(raw: bytes, path: str, value: Any, workflows: str) -> Found:
    from resumed.schemas import jobfilereader

    from . import jobtext

    name = os.path.basename(path)
    folder = os.path.dirname(os.path.abspath(path))
    flows, declared = _declared(value, workflows)
    try:
        absolute, called = jobtext.with_absolute_paths(raw, name, folder, flows)
    except UnicodeDecodeError:
        absolute, called = raw, name
    dropped, problems = _problems(raw, name, declared), _problems(absolute, called, declared)
    if problems:
        return Found("job file", problems, [])
    # What only `submit` mends is no fault of a file that is handed in by it.
    warnings = [f"only resumectl submit takes it; a dropped file is refused: {each}" for each in dropped]
    if declared is None:
        warnings.append(_UNHELD)
    job = jobfilereader.read(absolute, called)
    count = "" if job.items is None else f", {len(job.items)} items"
    return Found("job file", [], warnings, f"a job of {job.workflow}{count}")


_UNHELD = "its inputs were not held against its workflow (--workflows FOLDER, or submit --dry-run)"


def _problems(raw: bytes, name: str, declared: Any) -> list[str]:
    """What is wrong with a job file's form, or else with its inputs where its workflow is known."""
    from resumed.schemas import inputs, jobfilereader
    from resumed.schemas.errors import FaultyInputError

    try:
        job = jobfilereader.read(raw, name)
        if declared is not None:
            spared = inputs.left_to_items(declared, job)
            inputs.check_inputs(declared.inputs, job.inputs, "", by_items=spared)
            for place, item in enumerate(job.items or ()):
                inputs.check_item_inputs(declared.inputs, item.inputs, "", f"$.items[{place}].inputs")
    except FaultyInputError as error:
        return list(error.problems)
    return []


def _declared(value: Any, workflows: str) -> tuple[dict[str, Any], Any]:
    """What a job's workflow declares, for its paths and for its inputs; None when it is not known."""
    from resumed.schemas import workflowfile
    from resumed.schemas.errors import FaultyInputError

    name = str(value.get("workflow", "")).partition("@")[0] if isinstance(value, dict) else ""
    if not workflows:
        return {}, None
    path = os.path.join(workflows, f"{os.path.basename(name)}.toml")
    try:
        with open(path, "rb") as file:
            programs = workflowfile.read(file.read(_MOST + 1), name)
    except OSError as error:
        raise UsageError(f"cannot read the workflow {path}: {error.strerror}") from None
    except FaultyInputError as error:
        raise UsageError(str(error), (f"resumectl lint {path}",)) from None
    rows = [{"name": each.name, "type": each.type.value} for each in programs.inputs]
    return {name: {"inputs": rows}}, programs
