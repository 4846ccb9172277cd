"""The door by itself: what it does beside the loop."""

import threading
from typing import cast

import pytest
from loop import world

from resumed.actors.door import Door
from resumed.actors.supervisor import Supervisor
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Person
from resumed.schemas.jobfile import JobFile
from resumed.schemas.refusal import Refusal
from resumed.schemas.workflow import Contract

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

    def accept(self, contract: Contract, job: JobFile, what: str) -> str:
        self.threads.append(threading.get_ident())
        raise FaultyInputError(what, ("no input will do",))


async def _whole(contract: Contract) -> Contract:
    return contract


async def test_inputs_are_judged_beside_the_loop() -> None:
    """A pattern or a link that takes long to judge holds up no other job: the loop is not what judges."""
    judge = Judge()
    door = Door(cast(Supervisor, None), judge, _whole)
    with pytest.raises(FaultyInputError, match="no input will do"):
        await door.admit(b'{"workflow":"x","items":["a"]}', name="a.json", requester=ANNA, via="socket")

    assert 1 == len(judge.threads)
    assert threading.get_ident() not in judge.threads
