"""What a job is given against what its workflow asks for: values, then places, as its requester reaches them.

It runs beside the loop: paths may lie on a disk that is slow to answer.
"""

import os
from pathlib import Path

from attrs import evolve

from resumed.actors.worker import reach
from resumed.schemas import inputs, strict
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Reader
from resumed.schemas.jobfile import JobFile
from resumed.schemas.workflow import Input, InputType, Programs

MOST = 20
"""Problems that are told at once."""


def rooted(programs: Programs, home: Path | None) -> Programs:
    """The workflow with the roots of paths that name none: the home folder, for a user's own daemon."""
    if home is None:
        return programs
    roots = tuple(dict.fromkeys((str(home), os.path.realpath(home))))

    def with_roots(each: Input) -> Input:
        bare = each.type is InputType.PATH and not each.roots
        return evolve(each, roots=roots) if bare else each

    return evolve(programs, inputs=tuple(with_roots(each) for each in programs.inputs))


def accepted(programs: Programs, job: JobFile, what: str, reader: Reader | None) -> str:
    """The job's inputs with defaults, as JSON text; FaultyInputError begun by `what` otherwise.

    A path must lie under its input's roots also where its links lead, and the reader must be able to read it.
    """
    declared = programs.inputs
    if job.items is not None and len(job.items) > programs.items_max:
        said = f"{len(job.items)} items, the most is {programs.items_max} (items.max) @ $.items"
        raise FaultyInputError(what, (said,))
    by_items = inputs.left_to_items(programs, job)
    found = inputs.check_inputs(declared, job.inputs, what, by_items=by_items)
    problems = _misplaced(declared, found, "$.inputs", reader)
    for number, item in enumerate(job.items or ()):
        path = f"$.items[{number}].inputs"
        if item.inputs != "{}":
            inputs.check_item_inputs(declared, item.inputs, what, path)
            problems += _misplaced(declared, item.inputs, path, reader)
        if len(problems) >= MOST:
            break
    if problems:
        raise FaultyInputError(what, tuple(problems[:MOST]))
    return found


def _misplaced(declared: tuple[Input, ...], given: str, at: str, reader: Reader | None) -> list[str]:
    values = strict.parse_own(given.encode(), "cannot read inputs")
    return [f"{said} @ {at}.{name}" for name, said in reach.problems(declared, values, reader)]
