"""Calls that bring no bytes, through the loop: their turns are drawn up in one go, and a disk that fails in
one of them costs no place at the target.
"""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from loop import cases, target, world
from loop.target import Target

from resumed.actors import onward
from resumed.schemas import decisions, frames
from resumed.schemas.job import Ending
from resumed.schemas.ledger import Errand

BACKENDS = ("asyncio", "trio")
pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.usefixtures("quiet")]
CALLS = 3


def says(frame: frames.Run) -> decisions.Answer:
    """One call after the other, then the end."""
    if frame.step != "start" or frame.occurrence > CALLS:
        return decisions.Answer(decided=decisions.Finished())
    calls = (target.call(f"p{frame.occurrence}", bare=True),)
    return decisions.Answer(decided=decisions.Performing(calls=calls, then="start"))


def lived(backend: str) -> tuple[Target, int]:
    """A job that asks for all of them, alone at its target; how many landed, and in how many sends."""
    cms = Target()

    async def started(root: Path) -> None:
        contract = target.with_tools(world.contract())
        async with cases.made(root, contracts=[contract], says=says) as one:
            cms.over(one.machine)
            await one.start()
            await one.admit("harbour", [])
            assert await one.until(lambda: one.rests("harbour"))
            snapshot = one.snapshot("harbour")

            assert [] == target.broken(cms, snapshot)
            assert snapshot.outcome is not None
            assert Ending.COMPLETED is snapshot.outcome.ending

    cases.play(backend, started)
    return cms, len(cms.landed)


def test_a_call_and_its_landing_are_turns_of_their_own(backend: str, onward_turns: list[onward.Turn]) -> None:
    """Each is asked for and let go in one such turn, and goes on in another."""
    cms, landed = lived(backend)
    began = [isinstance(line.row, Errand) for line, _ in onward_turns]

    assert (CALLS, CALLS) == (cms.sends, landed)
    assert [True, False] * CALLS == began


def test_a_line_that_failed_keeps_no_place(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fails as a call is let go, and takes the line the next time: it goes at once again, in one
    line, though its target takes one call at a time."""
    wrote: list[bytes] = []
    mutate = world.Weather._mutate

    def fails_once(weather: world.Weather, name: str, args: Any) -> Any:
        if name == "pwrite" and b'"state":"dispatching"' in bytes(args[1]):
            wrote.append(bytes(args[1]))
            if len(wrote) == 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        return mutate(weather, name, args)

    monkeypatch.setattr(world.Weather, "_mutate", fails_once)
    cms, landed = lived(backend)

    assert (CALLS, CALLS) == (cms.sends, landed)
    assert CALLS + 1 == len(wrote), "the first of them twice, each other one once"
    assert all(b"asks for 1 effect, sent" in line for line in wrote)
