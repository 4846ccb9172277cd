"""What the placeholders of one try stand for."""

import base64
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from resumed.schemas import inputs, strict, templates
from resumed.schemas.frames import Run
from resumed.schemas.job import Artifact
from resumed.schemas.workflow import Programs, ProgramStep

from . import listing

_AT_ONCE = 1024 * 1024


def parsed(text: str, what: str) -> dict[str, Any]:
    """The object in a JSON text of ours."""
    value = strict.parse_own(text.encode("utf-8", "surrogatepass"), what)
    return value if isinstance(value, dict) else {}


def of_inputs(programs: Programs, run: Run) -> dict[str, str]:
    """Inputs by placeholder; an item's own stand over the job's."""
    found = {
        each.name: strict.parse_own(each.default.encode(), "cannot read a default")
        for each in programs.inputs
        if each.default is not None
    }
    found |= parsed(run.inputs, "cannot read a job's inputs")
    if run.row is not None:
        found |= parsed(run.row.inputs, "cannot read an item's inputs")
    return {f"inputs.{name}": inputs.spell(value) for name, value in found.items()}


def reads_files(run: Run) -> bool:
    """Whether something large is handed on: it takes a thread of its own to copy."""
    handed = (*run.outputs, *(run.row.outputs if run.row is not None else ()), *_reviewed(run))
    return any(each.text is None and each.base64 is None and not each.path for each in handed)


def of_job(programs: Programs, run: Run) -> dict[str, str]:
    """The placeholders of the step that lists."""
    return of_inputs(programs, run) | {"job": run.job, "attempt": str(run.attempt)}


def of_try(programs: Programs, run: Run) -> dict[str, str]:
    """Every placeholder of one try of a step."""
    return of_unit(programs, run) | {f"outputs.{name}": path for name, path in _earlier(run)}


def of_unit(programs: Programs, run: Run) -> dict[str, str]:
    """The placeholders of one try that do not stand for what earlier steps made; touches no file."""
    values = of_job(programs, run)
    values |= {
        "output": os.path.join(run.scratch, "output"),
        "kept": run.kept or os.path.join(run.scratch, "kept"),
        "key": run.key,
    }
    if run.row is not None:
        path = run.row.source.path if run.row.source else ""
        values |= {
            "item": run.item,
            "source": path,
            "source.stem": os.path.splitext(os.path.basename(path))[0],
            "source.rel": listing.origin_of(programs, run, values).relative(path) if path else "",
            "note": run.row.note,
        }
    return values


def output_file(run: Run, step: str) -> str:
    """Where a try finds what an earlier step made."""
    return os.path.join(run.scratch, "outputs", step)


def missing(step: ProgramStep, values: Mapping[str, str]) -> list[str]:
    """The placeholders of a step that stand for nothing: outputs of steps that never ran for this unit."""
    show = step.review.show if step.review is not None else ()
    texts = (*step.run, *step.prepare, *step.verify, *show, step.stdin, *step.env_set.values())
    return sorted({name for text in texts for name in templates.names(text)} - values.keys())


def _earlier(run: Run) -> Iterator[tuple[str, str]]:
    """Files with what earlier steps made, each in a folder of this try; OSError when one cannot be made.

    Copies: what a program does to them changes no output that is kept.
    """
    folder = Path(run.scratch, "outputs")
    folder.mkdir(exist_ok=True)
    row = run.row
    if row is not None:
        # As releases of before `outputs` handed them on.
        for name, kept in parsed(row.data, "cannot read an item's data").get("outputs", {}).items():
            raw = base64.b64decode(kept["base64"]) if "base64" in kept else kept.get("text", "").encode()
            (folder / name).write_bytes(raw)
            yield name, str(folder / name)
    for made in (*run.outputs, *(row.outputs if row is not None else ()), *_reviewed(run)):
        if made.base64 is not None:
            (folder / made.name).write_bytes(base64.b64decode(made.base64))
        elif made.text is not None:
            (folder / made.name).write_bytes(made.text.encode())
        elif made.path:
            there = os.lstat(made.path)
            known = (there.st_dev & strict.MAX_INT, there.st_ino & strict.MAX_INT, there.st_size)
            if known != (made.device, made.inode, made.size):
                raise OSError(f"{made.path} is not the file that was published there")
            yield made.name, made.path
            continue
        else:
            _copy(Path(run.artifacts, made.sha256), folder / made.name, made.sha256)
        yield made.name, str(folder / made.name)


def _reviewed(run: Run) -> tuple[Artifact, ...]:
    """The text that a person accepted, in place of the draft that its step made."""
    return (run.given.text,) if run.given is not None and run.given.text is not None else ()


def _copy(source: Path, target: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    with open(source, "rb") as reading, open(target, "wb") as writing:
        while piece := reading.read(_AT_ONCE):
            digest.update(piece)
            writing.write(piece)
    if digest.hexdigest() != sha256:
        raise OSError(f"the bytes kept as {sha256} fail their digest")
