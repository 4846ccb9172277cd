"""Lines too long to commit: what a job does when one line cannot hold what is to be said."""

from functools import partial
from pathlib import Path

import pytest
from loop import cases, clock, laws, target, workers, world
from loop.workers import Manners

from resumed.schemas import line_io
from resumed.schemas.refusal import Refusal

pytestmark = pytest.mark.usefixtures("quiet")

BACKENDS = ("asyncio", "trio")


@pytest.mark.parametrize("torn", [False, True], ids=["", "its last line lost"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wake_too_large_for_one_line_is_told_in_several(
    backend: str, torn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attempt whose end does not fit one line is closed in portions, and then the job goes on; each of
    them says that a line may be lost."""
    names = [f"item-{number}" for number in range(8)]

    async def case(root: Path) -> None:
        contract = target.with_tools(world.contract())
        async with cases.made(root, parallel=8, most_workers=8, contracts=[contract]) as one:
            await one.start()
            await one.admit("harbour", names)
            assert await one.until(lambda: one.snapshot("harbour").each is not None, 100.0)
            one.machine.manners = Manners(silent=1.0)
            assert await one.until(lambda: len(one.snapshot("harbour").tries) >= 6, 50.0)
            before = one.snapshot("harbour")
            await one.kill()
            if torn:
                world.tear(one.place("harbour"), before.sequence)
            one.machine.manners = workers.GOOD
            monkeypatch.setattr(line_io, "MAX_LINE", 2500)
            await one.start()
            ended = await one.until(lambda: one.entry("harbour") is None, 1000.0)
            folder = one.place("harbour")
            assert folder is not None
            wakes = [step for step in laws.history(folder)[0] if step.entry.transition == "wake"]

            assert ended
            assert len(wakes) > 1
            marked = {item.id for step in wakes for item in step.after.items if item.torn}
            assert marked == (set(before.tries) if torn else set())

    with world.folder() as root:
        clock.run(backend, 1, lambda: case(root))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_request_too_large_for_one_line_is_refused(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that would not fit one line changes nothing, and says what to do instead."""
    names = [f"item-{number}" for number in range(40)]

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("harbour", names)
            assert await one.until(lambda: bool(one.snapshot("harbour").tries), 100.0)
            monkeypatch.setattr(line_io, "MAX_LINE", 2500)
            one.daemon.soon(partial(one.daemon.ask, items=tuple(names[10:])), "harbour", "Skip")
            await one.passes(1.0)
            answer = one.asked[0].answer

            assert isinstance(answer, Refusal)
            assert "too_large" == answer.code
            assert one.snapshot("harbour").hold is None

    with world.folder() as root:
        clock.run(backend, 1, lambda: case(root))
