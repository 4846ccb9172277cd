"""A small world for one case: one workflow, good manners, time driven by the test."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from resumed.schemas.workflow import Contract

from . import clock, laws, world
from .workers import Says, fan_out, say
from .world import Weather, World

FINISH = "finish"


@asynccontextmanager
async def made(
    root: Path,
    *,
    seed: int = 1,
    says: Says | None = None,
    contracts: Sequence[Contract] = (),
    weather: Weather | None = None,
    most_workers: int = 2,
    parallel: int = 1,
) -> AsyncIterator[World]:
    """A world without a daemon yet; at the end the laws are checked and everything in it ends."""
    sky = Weather(chance=random.Random(seed)) if weather is None else weather
    with sky:
        async with anyio.create_task_group() as group:
            speaks = usual(parallel) if says is None else says
            one = World(root, seed, contracts or [world.contract()], speaks, group, sky, most_workers)
            yield one
            await one.daemon.kill()
            sky.revive()

            assert [] == laws.check_invariants(one)
            group.cancel_scope.cancel()


def play(backend: str, case: Callable[[Path], Awaitable[None]], seed: int = 1) -> None:
    """Run one case on a fresh folder."""
    with world.folder() as root:
        clock.run(backend, seed, lambda: case(root))  # type: ignore[arg-type, return-value]  # a case awaits


def play_started(backend: str, case: Callable[[World], Awaitable[None]]) -> None:
    """Run one case in a world whose daemon has started."""

    async def started(root: Path) -> None:
        async with made(root) as one:
            await one.start()
            await case(one)

    play(backend, started)


def usual(parallel: int = 1) -> Says:
    """Fan out over the items of the file, accept each, finish."""
    from resumed.schemas.decisions import Finished

    return say({"start": fan_out(parallel=parallel), FINISH: Finished()})
