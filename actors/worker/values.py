"""What the placeholders of one try stand for."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resumed.schemas import inputs, strict
from resumed.schemas.frames import Run
from resumed.schemas.workflow import Programs

from . import listing


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


def of_job(programs: Programs, run: Run) -> dict[str, str]:
    """The placeholders of the step that lists."""
    return of_inputs(programs, run) | {"job": run.job, "attempt": str(run.attempt)}


def of_try(programs: Programs, run: Run) -> dict[str, str]:
    """Every placeholder of one try of a step."""
    row = run.row
    path = row.source.path if row is not None and row.source else ""
    values = of_job(programs, run)
    values |= {
        "item": run.item,
        "source": path,
        "source.stem": os.path.splitext(os.path.basename(path))[0],
        "source.rel": listing.origin_of(programs, run, values).relative(path) if path else "",
        "note": "",
        "output": os.path.join(run.scratch, "output"),
        "kept": run.kept or os.path.join(run.scratch, "kept"),
        "key": run.key,
    }
    for name, kept in earlier(run).items():
        values[f"outputs.{name}"] = _restored(run.scratch, name, kept)
    return values


def earlier(run: Run) -> dict[str, Any]:
    """What earlier steps handed on to this one, by step."""
    found = {} if run.row is None else parsed(run.row.data, "cannot read an item's data").get("outputs", {})
    return found if isinstance(found, dict) else {}


def _restored(scratch: str, name: str, kept: Mapping[str, str]) -> str:
    """The file in this try's scratch folder that holds an earlier step's output."""
    folder = Path(scratch, "outputs")
    folder.mkdir(exist_ok=True)
    raw = base64.b64decode(kept["base64"]) if "base64" in kept else kept.get("text", "").encode()
    (folder / name).write_bytes(raw)
    return str(folder / name)
