"""The environment that a program sees: made here, never the daemon's own and never the worker's."""

import os
from collections.abc import Mapping

from resumed.schemas import templates
from resumed.schemas.frames import Run
from resumed.schemas.workflow import ProgramStep

PASSED = "RESUMED_PASSED_"
"""How the worker's own environment bears a variable of the daemon's that a step passes on: under this
beginning, so that it means nothing to the worker itself."""
MARK = "RESUMED_WORKER"
"""What the daemon knows a worker's processes by."""
_USUAL = ("LANG", "TZ")


def usual(values: Mapping[str, str]) -> dict[str, str]:
    """What every program sees: `PATH`, the mark, `LANG`, `TZ`, `HOME` of a user's own daemon, the values."""
    own = ("HOME",) if os.geteuid() else ()
    return _ours(values) | _of_worker(*_USUAL, *own)


def of_step(step: ProgramStep, run: Run, values: Mapping[str, str], result: str) -> dict[str, str]:
    """What the programs of a try see: what the step passes on takes the place of what is usual."""
    found = usual(values) if step.env_pass is None else _ours(values) | _passed(step.env_pass)
    found |= {name: templates.fill(text, values) for name, text in step.env_set.items()}
    found["RESUMED_RESULT"] = result
    if run.given is not None and run.given.answer is not None:
        found["RESUMED_ANSWER"] = run.given.answer
    if run.interrupted:
        found["RESUMED_INTERRUPTED"] = "1"
    return found


def _ours(values: Mapping[str, str]) -> dict[str, str]:
    return _of_worker("PATH", MARK) | {templates.variable(name): value for name, value in values.items()}


def _of_worker(*names: str) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


def _passed(names: tuple[str, ...]) -> dict[str, str]:
    return {name: os.environ[PASSED + name] for name in names if PASSED + name in os.environ}
