"""The plain step: it answers where nothing else is to be considered, and there says what the law says."""

from typing import Any

import pytest
from attrs import evolve
from machine_kit import Play, moment

from resumed.actors.machine import plain
from resumed.actors.machine.transition import at_large
from resumed.schemas import decisions, events
from resumed.schemas.job import Breaker, Budget, Hold, Mark, StopReason
from resumed.schemas.snapshot import Entry


def begun() -> tuple[Play, events.Returned]:
    """A job whose first step is open, and its answer: on to `ship`, with some state."""
    play = Play.of("a", "b")
    play.start("")
    row = play.snapshot.tries[""]
    answer = decisions.Answer(decided=decisions.GoTo(step="ship"), state={"count": "1"})
    return play, events.Returned(unit="", epoch=row.epoch, number=row.number, answer=answer)


def test_a_plain_step_is_what_the_law_says(plain_steps: list[Entry]) -> None:
    """Step after step, to itself and to others: the same entry as the law's at large, to the last field."""
    play, event = begun()
    for turn, name in enumerate(("ship", "ship", "close", "open", "open")):
        row = play.snapshot.tries[""]
        answer = decisions.Answer(decided=decisions.GoTo(step=name), state={"count": str(turn)})
        event = events.Returned(unit="", epoch=row.epoch, number=row.number, answer=answer)
        found = plain.step(play.snapshot, event, play.now)

        assert found == at_large(play.snapshot, event, play.now)
        assert found is not None
        play.tell(event)
    assert len(plain_steps) >= 10


MARK = Mark(by="uid:1000 anna", at=moment(1.0))
OFFER = decisions.Offer(name="card", sha256="", size=0)
NOT_PLAIN: dict[str, Any] = {
    "another decision": {"decided": decisions.Finished()},
    "it brings items": {"decided": decisions.GoTo(step="ship", items=(decisions.NewItem(id="c"),))},
    "an output": {"decided": decisions.GoTo(step="ship", output=OFFER)},
    "no such step": {"decided": decisions.GoTo(step="nowhere")},
    "a step of each item": {"decided": decisions.GoTo(step="read")},
    "it spent something": {"used": Budget(tokens=1)},
    "its state is no JSON": {"state": {"count": "one"}},
    "no slot": {"slot": False},
    "late": {"late": True},
    "another try": {"number": 7},
    "another epoch": {"epoch": 7},
    "held": {"hold": Hold(code="x", reason="y", owner="anna", since=moment())},
    "paused": {"pause": MARK},
    "canceled": {"cancel": MARK},
    "expired": {"expiry": MARK},
    "failures in a row": {"breaker": Breaker(key="k", reason="r", waits=1)},
    "no clocks on record": {"clocks": None},
    "at its limit": {"budget": Budget(active_seconds=0.0)},
    "stopped": {"stop": StopReason.PAUSE},
}


@pytest.mark.parametrize("why", NOT_PLAIN)
def test_anything_else_is_the_laws(why: str) -> None:
    """Whatever else there is to be considered, of the answer or the job, the plain step leaves it."""
    play, event = begun()
    snapshot = play.snapshot
    for name, value in NOT_PLAIN[why].items():
        if name in ("decided", "state", "used"):
            event = evolve(event, answer=evolve(event.answer, **{name: value}))
        elif name in ("slot", "late", "number", "epoch"):
            event = evolve(event, **{name: value})
        elif name == "stop":
            snapshot = evolve(snapshot, tries={"": evolve(snapshot.tries[""], stop=value)})
        else:
            snapshot = evolve(snapshot, **{name: value})

    assert plain.step(snapshot, event, play.now) is None
