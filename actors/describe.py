"""Asking a worker what contract a Python workflow declares; the daemon itself never imports authors' code."""

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.abc

from resumed.schemas import codec, frames
from resumed.schemas.errors import AuthorError
from resumed.schemas.instant import Instant, later, reached
from resumed.schemas.workflow import Contract

from . import errand
from .clock import Clock
from .containment import Containment
from .errand import Errand

FRESH_SECONDS = 5.0
"""How long an answer, also a bad one, is used again: a burst of files asks once, an edit is seen soon."""
PATIENCE = 30.0
"""Seconds a module may take to import."""


class Describer:
    """Answers by contract (as the shelf has it, without steps) for a short while."""

    def __init__(self, workers: Path, contained: Containment, clock: Clock, name: Callable[[], str]) -> None:
        self._workers = workers
        self._contained = contained
        self._clock = clock
        self._name = name
        self._known: dict[str, tuple[Instant, Contract | str]] = {}
        self._busy: dict[str, anyio.Lock] = {}
        """One a contract: a module that hangs holds up those that wait for the same one alone."""
        self.group: anyio.abc.TaskGroup | None = None
        """Where the worker's tasks run; set while the house is alive."""

    async def whole(self, contract: Contract) -> Contract:
        """The contract with its steps; AuthorError says why the class cannot be run."""
        if contract.steps or not contract.entry:
            return contract
        key = codec.digest(codec.encode(contract))
        async with self._busy.setdefault(key, anyio.Lock()):
            known = self._known.get(key)
            if known is None or reached(later(known[0], FRESH_SECONDS), self._clock.now()):
                found = await self._ask_once(contract)
                known = self._known[key] = (self._clock.now(), found)
        if isinstance(known[1], str):
            raise AuthorError(known[1])
        return known[1]

    async def _ask_once(self, contract: Contract) -> Contract | str:
        try:
            return await self._ask(contract)
        except AuthorError as error:
            return str(error)

    async def _ask(self, contract: Contract) -> Contract:
        if self.group is None:
            raise AuthorError(f"cannot load {contract.entry}: the daemon is ending")
        asked = Errand(name=self._name(), contract=contract, patience=PATIENCE)
        said = await errand.send(asked, self._workers, self._contained, self.group)
        first = _declared(said)
        if isinstance(first, str):
            raise AuthorError(
                first if first.startswith("cannot load") else f"cannot load {contract.entry}: {first}"
            )
        return first


def _declared(said: frames.FromWorker | str | None) -> Contract | str:
    """The contract that was declared; else why there is none."""
    if isinstance(said, frames.Ready):
        return said.contract
    if isinstance(said, frames.Trouble):
        return said.reason
    if said is None:
        return f"it took longer than {PATIENCE:g} s to import"
    return said if isinstance(said, str) else "its worker answered what nobody asked"
