"""The door by itself: what it does beside the loop."""

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from loop import world

from resumed.actors.door import Door
from resumed.actors.submission import Submission
from resumed.actors.supervisor import Supervisor
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.instant import Instant
from resumed.schemas.job import Person, Reader
from resumed.schemas.jobfile import JobFile
from resumed.schemas.refusal import Refusal
from resumed.schemas.workflow import Contract
from resumed.store import layout

pytestmark = pytest.mark.anyio
ANNA = Person(uid=1000, name="anna", via="socket")


class Judge:
    """Knows one workflow, and refuses all inputs; remembers in which thread it was asked."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def pick(self, name: str, version: int | None) -> Contract | Refusal:
        return world.contract()

    def is_quick(self, contract: Contract) -> bool:
        """No: it is asked beside the loop."""
        return False

    def accept(self, contract: Contract, job: JobFile, what: str, reader: Reader | None = None) -> str:
        self.threads.append(threading.get_ident())
        raise FaultyInputError(what, ("no input will do",))


async def _whole(contract: Contract) -> Contract:
    return contract


class InPlace:
    """A disk that answers at once."""

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


async def test_inputs_are_judged_beside_the_loop(tmp_path: Path) -> None:
    """A pattern or a link that takes long to judge holds up no other job: the loop is not what judges."""
    judge = Judge()
    store = layout.create(tmp_path / "state", "id", Instant(wall=0, boot="b", up=0))
    supervisor = SimpleNamespace(entries={}, reads=InPlace(), layout=store)
    door = Door(cast(Supervisor, supervisor), judge, _whole)
    offered = Submission(raw=b'{"workflow":"x","items":["a"]}', name="a.json", requester=ANNA, via="socket")
    with pytest.raises(FaultyInputError, match="no input will do"):
        await door.admit(offered)

    assert 1 == len(judge.threads)
    assert threading.get_ident() not in judge.threads
