"""What a seed draws of time and limits: schedules in job files, caps and breakers in workflows, clocks that
are set, machines that go down. It draws from a stream of its own, so that other seeds tell what they told.
"""

import random
from typing import Any

from attrs import evolve

from resumed.schemas.limits import Limits, OnFailed
from resumed.schemas.workflow import Contract

from .world import World

HOUR = 3600.0
JUMPS = (-2 * HOUR, 2 * HOUR, -90.0, 90.0, 1.0, -1.0)
AWAY = (5.0, 600.0, 2 * HOUR)


class Fate:
    """One seed's."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(f"fate {seed}")
        self.did: dict[str, int] = {}
        self.jumpy = self.chance.choice((0.0, 0.1, 0.4))
        self.down = self.chance.choice((0.0, 0.03))

    def contract(self, contract: Contract) -> Contract:
        """The workflow with limits, and with what becomes of failures."""
        draw = self.chance
        allowed = Limits(
            active_time=draw.choice((None, 30.0, 600.0)),
            failures_in_a_row=draw.choice((0, 2, 3, 5)),
        )
        return evolve(contract, limits=allowed, on_failed=draw.choice(tuple(OnFailed)))

    def keys(self, number: int) -> dict[str, Any]:
        """More keys of the job file of `job-<number>`: it may come after any other, also one that comes later
        or never, so that circles close.
        """
        draw = self.chance
        others = [f"job-{other}" for other in (0, 1, 2, 9) if other != number]
        found: dict[str, Any] = {
            "priority": draw.choice((-10, 0, 0, 5)),
            "after": draw.sample(others, draw.choice((0, 0, 0, 1, 2))),
        }
        if draw.random() < 0.3:
            found["not_before"] = draw.choice(("1s", "30s", "5m"))
        if draw.random() < 0.4:
            found["deadline"] = draw.choice(("6m", "20m", "10h"))
        if draw.random() < 0.2:
            found["limits"] = {"active_time": draw.choice(("5s", "20s"))}
        return found

    async def event(self, made: World) -> None:
        """Now and then somebody sets the clock, or the machine goes down."""
        draw = self.chance
        if draw.random() < self.jumpy:
            made.clock.jump(draw.choice(JUMPS))
            self._count("jump")
        if draw.random() < self.down and not made.daemon.over.is_set():
            await made.reboot(draw.choice(AWAY))
            self._count("reboot")
            if draw.random() < 0.5:
                made.clock.jump(draw.choice(JUMPS))

    def request(self) -> tuple[str, dict[str, Any]]:
        """A person raises a limit, within what the workflow allows or beyond, or has an item begin again."""
        if self.chance.random() < 0.3:
            return "Reopen", {"items": (f"item-{self.chance.randrange(5)}",)}
        active = self.chance.choice((10.0, 25.0, 500.0, 5000.0))
        return "Extend", {"active_time": active, "deadline": self.chance.choice((None, "1h", "1s"))}

    def _count(self, what: str) -> None:
        self.did[what] = self.did.get(what, 0) + 1


BEYOND = Limits(active_time=None)
"""What a workflow's file may allow by now: as much as anybody likes."""
