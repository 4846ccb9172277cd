"""The loop's fuzz with effects: whole lives of jobs that write to a target, by seed, in virtual time.

RESUMED_TRADE_SEED=asyncio:24 runs that one seed and nothing else.
"""

import os

import pytest
from loop import trade

pytestmark = pytest.mark.usefixtures("quiet")

SEEDS = 60
PART = 15
PINNED = {
    "a paused job that only waited to send again was said to be reconciling": ("asyncio", 24),
}
"""Each of these showed a fault once."""


def replay() -> tuple[str, int] | None:
    """The one seed asked for by name."""
    backend, _, seed = os.environ.get("RESUMED_TRADE_SEED", "").partition(":")
    return (backend, int(seed)) if seed else None


def tell(backend: str, seed: int, seen: dict[str, int]) -> None:
    """Run a seed; it fails by its name."""
    told = trade.run(seed, backend)

    assert [] == told.broken, f"RESUMED_TRADE_SEED={backend}:{seed}"
    for what, count in {**told.did, "kill": told.kills}.items():
        seen[what] = seen.get(what, 0) + count


@pytest.mark.skipif(replay() is not None, reason="one seed was asked for by name")
@pytest.mark.parametrize("part", range(SEEDS // PART))
def test_nothing_lands_twice_whatever_comes_together(part: int) -> None:
    """Kills at any call of the disk, deaths, lost replies, people, clocks that run: the target's count is one
    for each key, every row says what the target says, and every job comes to its end."""
    seen: dict[str, int] = {}
    backend = ("asyncio", "trio")[part % 2]
    for seed in range(part * PART, (part + 1) * PART):
        tell(backend, seed, seen)

    assert seen["effect confirmed"] > 0
    assert seen["kill"] > 0
    assert seen.get("sent again", 0) > 0


@pytest.mark.parametrize("fault", PINNED)
def test_pinned_seed_keeps_the_laws(fault: str) -> None:
    """A seed that showed a fault once does not show it again."""
    tell(*PINNED[fault], {})


@pytest.mark.skipif(replay() is None, reason="no seed was asked for by name")
def test_one_seed() -> None:
    """The seed that was asked for."""
    found = replay()
    assert found is not None
    tell(*found, {})
