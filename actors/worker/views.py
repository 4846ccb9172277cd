"""What a handler sees of its job and item: read-only, structured when first looked at."""

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from resumed.schemas import strict
from resumed.schemas.frames import Run
from resumed.schemas.job import Artifact as Artifact  # authors import it from here
from resumed.schemas.job import Item as Row
from resumed.schemas.job import ItemState, Source


def _object(text: str, what: str) -> Mapping[str, Any]:
    value = strict.parse_own(text.encode("utf-8", "surrogatepass"), what)
    return value if isinstance(value, dict) else {}


class Item:
    """One unit of work, as it stood when the try began."""

    def __init__(self, row: Row) -> None:
        self._row = row

    def __repr__(self) -> str:
        return f"<item {self._row.id!r}>"

    @property
    def id(self) -> str:
        """Its name within the job."""
        return self._row.id

    @property
    def state(self) -> ItemState:
        """Where it stands; `in_progress` in its own handler."""
        return self._row.state

    @property
    def source(self) -> Source | None:
        """The input it was listed from, as it was pinned."""
        return self._row.source

    @property
    def output(self) -> Artifact | None:
        """What it was accepted with."""
        return self._row.output

    @property
    def reason(self) -> str:
        """Why it failed or is held."""
        return self._row.reason

    @property
    def note(self) -> str:
        """What a reviewer wants changed, when it was sent back."""
        return self._row.note

    @property
    def tries(self) -> int:
        """How many times a step of it was started, this one included."""
        return self._row.tries

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """The inputs given for this item alone."""
        return _object(self._row.inputs, "cannot read an item's inputs")

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """What the step before handed on with `Next(step, data)`."""
        return _object(self._row.data, "cannot read an item's data")


class Job:
    """One job, as it stood when the try began."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __repr__(self) -> str:
        return f"<job {self._run.job!r}>"

    @property
    def id(self) -> str:
        """Its id."""
        return self._run.job

    @property
    def attempt(self) -> int:
        """Which attempt this is."""
        return self._run.attempt

    @property
    def interrupted(self) -> bool:
        """True when the try before this one ended without a recorded end."""
        return self._run.interrupted

    @property
    def objective(self) -> str:
        """What the requester wants, in words."""
        return self._run.objective

    @property
    def labels(self) -> Mapping[str, str]:
        """The requester's labels."""
        return self._run.labels

    @cached_property
    def scratch(self) -> str:
        """A folder for this try alone, made when it is first asked for, removed after the try."""
        os.makedirs(self._run.scratch, 0o700, exist_ok=True)
        return self._run.scratch

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """The accepted inputs."""
        return _object(self._run.inputs, "cannot read a job's inputs")

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """All its items; in item steps it is empty."""
        return tuple(Item(row) for row in self._run.items)
