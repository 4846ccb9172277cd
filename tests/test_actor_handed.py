"""What workers say out of turn: evidence at most, once, and never at another job's expense."""

from pathlib import Path

import pytest
from attrs import evolve
from loop import cases, clock, world
from machine_kit import Play

from resumed.actors import handed, outputs, workshop
from resumed.actors.handed import MOST_FAULTS, Handed, Heard
from resumed.schemas import decisions, events, frames

pytestmark = pytest.mark.usefixtures("quiet")

TRY = ("harbour", 1, "a", 1)


def test_a_try_is_answered_once_and_contradicted_once() -> None:
    """The first word is the answer, the second is evidence, every further one is a fault."""
    made = Handed()
    made.hand(TRY)

    assert [Heard.ANSWER, Heard.EVIDENCE, Heard.FAULT, Heard.FAULT] == [made.hear(TRY) for _ in range(4)]


def test_a_try_never_handed_is_nobodys_to_answer() -> None:
    """Another job, epoch, item or number than the one handed over is a fault each time, and soon too many."""
    made = Handed()
    made.hand(TRY)
    heard = [made.hear(("harbour", 1, "a", number)) for number in range(2, 2 + MOST_FAULTS)]

    assert {Heard.FAULT} == set(heard)
    assert made.is_faulty()


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a worker that lives for months only the last answers are known; its open tries are never lost."""
    monkeypatch.setattr(handed, "REMEMBERED", 3)
    made = Handed()
    made.hand(TRY)
    for number in range(2, 10):
        made.hand(("harbour", 1, "b", number))
        made.hear(("harbour", 1, "b", number))

    assert 3 == len(made.answered)
    assert Heard.ANSWER is made.hear(TRY)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_worker_floods_no_log_of_another_job(backend: str) -> None:
    """Answers for a job it was never handed write nothing there, and end the worker after a few."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            one.machine.lasts = lambda run: 30.0 if run.job == "harbour" and run.item else 0.1
            await one.start()
            await one.admit("victim", ["a"])
            one.daemon.soon(one.daemon.ask, "victim", "Pause")
            await one.until(lambda: one.entry("victim").row.status == "paused")  # type: ignore[union-attr]
            await one.admit("harbour", ["a"])
            await one.until(lambda: one.witness.runs("harbour", "a") > 0)
            (worker,) = [each for each in one.machine.living() if each.open]
            before = one.snapshot("victim").sequence
            said = decisions.Answer(decided=decisions.Failed(reason="r" * 1000))
            for _ in range(MOST_FAULTS):
                assert not worker._dying.is_set()
                frame = frames.Returned(job="victim", epoch=1, item="a", number=5, answer=said)
                one.daemon.on_frame(worker, frame)
                await one.passes(0.1)

            assert worker._dying.is_set()
            assert before == one.snapshot("victim").sequence
            await one.until(lambda: one.rests("harbour"))

    with world.folder() as root:
        clock.run(backend, 1, lambda: case(root))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_worker_fills_no_box_without_end(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more lies undecided than a job may have in its box, whoever adds to it is ended."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            one.machine.lasts = lambda run: 5.0
            await one.start()
            await one.admit("harbour", ["a"])
            await one.until(lambda: any(each.open for each in one.machine.living()))
            (worker,) = [each for each in one.machine.living() if each.open]
            with monkeypatch.context() as patch:
                patch.setattr(workshop, "MOST_UNDECIDED", 0)
                await one.until(worker._dying.is_set)

            assert await one.until(lambda: one.rests("harbour"))
            assert "completed" == one.snapshot("harbour").outcome.ending  # type: ignore[union-attr]

    with world.folder() as root:
        clock.run(backend, 1, lambda: case(root))  # type: ignore[arg-type, return-value]


FAULTY = decisions.Accepted(output=decisions.Offer(name="card", sha256="0" * 64, size=4, text="card"))


def test_a_late_answer_with_a_faulty_offer_stays_evidence(tmp_path: Path) -> None:
    """Only what has the try in hand can fail it: a late offer that does not hold is not a late failure."""
    play = Play.fan_out("a", "b")
    play.start("a")
    late = evolve(play.returned("a", FAULTY), late=True)

    assert late is outputs.keep(tmp_path, "harbour", late)
    assert isinstance(outputs.keep(tmp_path, "harbour", evolve(late, late=False)), events.Raised)


def test_a_late_error_fails_no_try() -> None:
    """What became of a late answer that could not be kept changes nothing, whatever is open."""
    play = Play.fan_out("a", "b")
    play.start("a")

    assert play.changes_nothing(evolve(play.raised("a"), late=True))
