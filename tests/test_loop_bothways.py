"""Whole lives with effects, each lived twice: with the quick turns, and by the actor's own way alone.

All that reaches the disk and the workers must be the same, in the same order, whatever comes in between.
"""

import re
from typing import Any

import pytest
from loop import story, trade, workers, world

from resumed.actors import job, straight, workshop
from resumed.actors.machine import plain, plaincall
from resumed.schemas import frames

pytestmark = pytest.mark.usefixtures("quiet")

SEEDS = 24
MORTAL = [(workshop.Workshop, name) for name in ("run", "stop", "ended")]
"""Where actors may die: where both ways come by, and as often."""
_FOLDER = re.compile(r"/[a-z/]+/resumed-loop-[a-z0-9_]+")


class Life:
    """What one life did: each change of the disk, and each frame that a worker was sent."""

    def __init__(self) -> None:
        self.did: list[tuple[str, str]] = []
        self.quick = 0
        """Turns that were drawn up in one go."""

    def live(self, patch: pytest.MonkeyPatch, seed: int, backend: str, *, quick: bool) -> trade.Told:
        """Live it, with the quick ways or without."""
        mutate, send, draw = world.Weather._mutate, workers.FakeWorker.send, job.JobActor.draw_plain

        def mutated(weather: world.Weather, name: str, args: Any) -> Any:
            self._note(name, bytes(args[1]) if name == "pwrite" else b"")
            return mutate(weather, name, args)

        def sent(worker: workers.FakeWorker, frame: frames.ToWorker) -> None:
            self._note(worker.name, frame)
            send(worker, frame)

        def drawn(actor: job.JobActor, messages: list[Any]) -> straight.Drawn | None:
            found = draw(actor, messages) if quick else None
            self.quick += found is not None
            return found

        with patch.context() as patched:
            patched.setattr(story, "PLACES", MORTAL)
            patched.setattr(world.Weather, "_mutate", mutated)
            patched.setattr(workers.FakeWorker, "send", sent)
            patched.setattr(job.JobActor, "draw_plain", drawn)
            if not quick:
                for module in (plain, plaincall):
                    patched.setattr(module, "step", lambda *_: None)
            return trade.run(seed, backend)

    def _note(self, what: str, of: object) -> None:
        self.did.append((what, _FOLDER.sub("", repr(of))))


def test_a_life_is_the_same_whichever_way_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills, deaths, lost replies, failed disks, jobs at one target: the same bytes to the disk, and the same
    frames to the same workers, one after the other; and there were quick turns in it."""
    quick = 0
    for seed in range(SEEDS):
        backend = ("asyncio", "trio")[seed // 2 % 2]
        one, other = Life(), Life()
        told = one.live(monkeypatch, seed, backend, quick=True)
        again = other.live(monkeypatch, seed, backend, quick=False)

        differs = next((pair for pair in zip(one.did, other.did, strict=False) if pair[0] != pair[1]), None)
        assert differs is None, f"seed {seed}, {backend}"
        assert (len(one.did), told.did, told.broken) == (len(other.did), again.did, []), f"seed {seed}"
        quick += one.quick
    assert quick > 40
