"""Publishing: two commits around one rename, and what a person, an end and the system do to it meanwhile."""

import pytest
from attrs import evolve
from machine_kit import ANNA, CONTRACT, FOUND, Play, folded

from resumed.actors.machine import due, standing
from resumed.actors.machine.settle import enter
from resumed.schemas import events
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.decisions import Accepted, Decided, FanOut, Finished, GoTo, NextStep, Offer, Staged
from resumed.schemas.events import Placing
from resumed.schemas.job import Ending, ItemState, Status

STAGED = Staged(destination="/srv/small/a.mp4", temp=".resumed-1.tmp", device=5, inode=77)
OFFER = Offer(name="output", sha256="a" * 64, size=2, text="{}", publish=STAGED)
DONE = Accepted(output=OFFER)


def staged(decided: Decided = DONE, at: str = "read", **fan_out: object) -> Play:
    """A job whose item `a` has answered with an output to be published; `b` waits."""
    play = Play.fan_out("a", "b", at=at, **fan_out)  # type: ignore[arg-type]
    play.start("a")
    assert "publishing" == play.answer("a", decided, output=FOUND)
    return play


def placed(play: Play, outcome: Placing, unit: str = "a", reason: str = "") -> str:
    """What came of the attempt that is on record."""
    number = play.snapshot.publications[unit].number
    return play.does(events.Placed(unit=unit, number=number, outcome=outcome, reason=reason))


def of(play: Play, unit: str = "a") -> list[Action]:
    """What is due of the unit."""
    return [action for action in play.due() if action.id == unit]


PUBLISH, WITHDRAW = ActionKind.PUBLISH, ActionKind.WITHDRAW


def test_output_is_done_only_once_it_is_published() -> None:
    """Destination, digest and inode are durable before the rename is due, and the item is done after it."""
    play = staged()
    row = play.snapshot.publications["a"]

    assert (ItemState.IN_PROGRESS, None) == (play.unit("a").state, play.unit("a").output)
    assert (STAGED.destination, STAGED.temp, 5, 77) == (row.destination, row.temp, row.device, row.inode)
    assert (OFFER.sha256, OFFER.size) == (row.sha256, row.size)
    assert [Action(PUBLISH, "a", 1)] == of(play)
    assert Status.RUNNING == standing.status(play.snapshot, play.now)
    assert "done" == placed(play, Placing.PUBLISHED)
    assert (ItemState.DONE, FOUND) == (play.unit("a").state, play.unit("a").output)
    assert ({}, []) == (play.snapshot.publications, of(play))
    assert play.snapshot == folded(play.lines)


def test_output_by_reference_is_the_file_that_bears_the_name() -> None:
    """Which file that is comes with the rename, and is kept: nothing else is ever taken for the output."""
    play = staged()
    far = evolve(FOUND, text=None, path=STAGED.destination)
    play.snapshot = evolve(
        play.snapshot, publications={"a": evolve(play.snapshot.publications["a"], output=far)}
    )
    play.does(events.Placed(unit="a", number=1, outcome=Placing.PUBLISHED, device=5, inode=78))

    assert evolve(far, device=5, inode=78) == play.unit("a").output


def test_restart_finds_the_rename_still_due() -> None:
    """Nothing but the files is needed: after a kill the same attempt is due, and its answer counts once."""
    play = staged()
    play.does(events.Woke())
    assert [Action(PUBLISH, "a", 1)] == [
        one for one in due.due(folded(play.lines), play.now) if one.id == "a"
    ]

    placed(play, Placing.PUBLISHED)
    late = events.Placed(unit="a", number=1, outcome=Placing.EXISTS)
    assert play.changes_nothing(late)


CARRIED: dict[str, tuple[Decided, str, str]] = {
    "an item's next step": (NextStep(step="write", output=OFFER), "next write", "write"),
    "an item that waits": (NextStep(step="write", waits=True, output=OFFER), "next write", "write"),
}


@pytest.mark.parametrize("case", CARRIED)
def test_what_its_step_decided_is_carried_out_then(case: str) -> None:
    """A published output is handed on like any other, once it is published."""
    decided, choice, at = CARRIED[case]
    play = staged(decided, at="write" if case == "an item that waits" else "read")

    assert choice == placed(play, Placing.PUBLISHED)
    assert (at, (FOUND,)) == (play.unit("a").at, play.unit("a").outputs)


def test_the_jobs_own_step_publishes_too() -> None:
    """The position waits for its rename like an item: nothing else of the job begins meanwhile."""
    for decided in (GoTo(step="close", output=OFFER), FanOut(start="read", then="close", output=OFFER)):
        play = Play.of("a")
        play.start("")
        play.answer("", decided, output=FOUND)
        assert [Action(PUBLISH, "", 1)] == play.due()
        assert "publishing /srv/small/a.mp4" == standing.why(play.snapshot, play.now)

        placed(play, Placing.PUBLISHED, "")
        assert (FOUND,) == play.snapshot.position.outputs
        assert play.starts() == (["a"] if isinstance(decided, FanOut) else [""])


def test_taken_name_is_a_persons_affair() -> None:
    """What is there is never replaced: held with the reason; retried, the same output is published again."""
    play = staged()
    play.start("b")
    play.answer("b", Accepted())
    said = "cannot publish /srv/small/a.mp4: something else is there already"
    assert "held" == placed(play, Placing.EXISTS, reason=said)
    assert (ItemState.HELD, "output_exists", said) == (
        play.unit("a").state,
        play.unit("a").code,
        play.unit("a").reason,
    )
    assert ([], "items_held") == (of(play), play.code())
    assert Status.HELD == standing.status(play.snapshot, play.now)

    play.does(events.Retry(by=ANNA))
    assert ([Action(PUBLISH, "a", 3)], 1) == (of(play), play.unit("a").tries)
    placed(play, Placing.PUBLISHED)
    assert ItemState.DONE == play.unit("a").state


def test_taken_name_holds_the_jobs_own_step() -> None:
    """The same for a step of the job itself: resumed, it publishes again and runs nothing."""
    play = Play.of("a")
    play.start("")
    play.answer("", GoTo(step="close", output=OFFER), output=FOUND)
    placed(play, Placing.EXISTS, "", "taken")
    assert "output_exists" == play.code()

    play.does(events.Resume(by=ANNA))
    assert [Action(PUBLISH, "", 3)] == play.due()


@pytest.mark.parametrize("held", [False, True])
def test_item_left_out_before_it_is_published(held: bool) -> None:
    """Left out while it is on its way, or held: the staged file is taken away first, then it is skipped."""
    play = staged()
    if held:
        placed(play, Placing.EXISTS, reason="taken")
    number = 2 if held else 1
    play.does(events.Skip(by=ANNA, items=("a",)))
    assert [Action(WITHDRAW, "a", number)] == of(play)
    assert play.changes_nothing(events.Skip(by=ANNA, items=("a",)))

    assert "skipped" == placed(play, Placing.WITHDRAWN)
    assert (ItemState.SKIPPED, {}) == (play.unit("a").state, play.snapshot.publications)


def test_published_before_it_could_be_left_out_is_done() -> None:
    """What has its name cannot be called back, and is recorded as what it is."""
    play = staged()
    play.does(events.Skip(by=ANNA, items=("a",)))
    placed(play, Placing.PUBLISHED)

    assert (ItemState.DONE, FOUND) == (play.unit("a").state, play.unit("a").output)


@pytest.mark.parametrize("held", [False, True])
def test_job_ends_only_when_nothing_is_staged(held: bool) -> None:
    """A cancel closes the gate at once: what is not published is taken away, then the job is canceled."""
    play = staged()
    if held:
        placed(play, Placing.EXISTS, reason="taken")
    assert "canceling" == play.does(events.Cancel(by=ANNA))
    number = 2 if held else 1
    assert ([Action(WITHDRAW, "a", number)], None) == (play.due(), play.snapshot.outcome)
    assert Status.RUNNING == standing.status(play.snapshot, play.now)
    assert "being ended by anna: 1 outputs are taken away first" == standing.why(play.snapshot, play.now)

    placed(play, Placing.WITHDRAWN)
    assert play.snapshot.outcome is not None
    assert (Ending.CANCELED, "canceled") == (play.snapshot.outcome.ending, play.unit("a").code)


def test_rename_that_was_on_its_way_is_waited_for() -> None:
    """A rename told to stop while it runs ends first: refused, its file is taken away under a new number."""
    for outcome in (Placing.EXISTS, Placing.REFUSED):
        play = staged()
        play.does(events.Cancel(by=ANNA))
        placed(play, outcome, reason="no")
        play.wait(60.0)
        assert [Action(WITHDRAW, "a", 2)] == play.due()

        placed(play, Placing.WITHDRAWN)
        assert play.snapshot.outcome is not None


def test_answer_after_a_stop_stages_nothing_anew() -> None:
    """A try that answers though it was told to stop for good is not published: its file is taken away."""
    for request in (events.Cancel(by=ANNA), events.Skip(by=ANNA, items=("a",))):
        play = Play.fan_out("a", "b")
        play.start("a")
        play.does(request)
        play.answer("a", DONE, output=FOUND)

        assert [Action(WITHDRAW, "a", 1)] == of(play)
        placed(play, Placing.WITHDRAWN)
        assert play.unit("a").state in (ItemState.SKIPPED, ItemState.PENDING)
        assert (play.snapshot.outcome is not None) == isinstance(request, events.Cancel)


def test_pause_lets_an_output_be_published() -> None:
    """What is begun is finished: a pause, and a hold of the job, stop no rename."""
    play = staged()
    play.does(events.Pause(by=ANNA, now=True))
    play.does(events.Trouble(code="worker", reason="it cannot start"))

    assert [Action(PUBLISH, "a", 1)] == of(play)


def test_refusing_system_is_tried_again_and_then_held() -> None:
    """A full or absent disk loses no work: it is tried again after a pause, and at last a person is asked."""
    play = staged()
    play.start("b")
    play.answer("b", Accepted())
    numbers = []
    for _ in range(2):
        assert "again" == placed(play, Placing.REFUSED, reason="cannot publish: No space left on device")
        assert [] == of(play)
        assert Status.WAITING == standing.status(play.snapshot, play.now)
        at = due.next_due(play.snapshot, play.now)
        assert at is not None
        assert due.next_placing(play.snapshot, play.now) == at
        play.wait(60.0)
        numbers += [action.n for action in of(play)]
    assert "held" == placed(play, Placing.REFUSED, reason="cannot publish: No space left on device")

    assert [2, 3] == numbers
    assert ("publish", 1, 0) == (play.unit("a").code, play.unit("a").tries, play.unit("a").failures)
    play.does(events.Retry(by=ANNA))
    placed(play, Placing.PUBLISHED)
    assert ItemState.DONE == play.unit("a").state


@pytest.mark.parametrize("repeatable", [True, False])
def test_staged_file_that_is_gone_is_made_again_if_it_may(repeatable: bool) -> None:
    """Nothing was published: the step is a failed try where it may be repeated, else a person decides."""
    play = staged(at="read" if repeatable else "post")
    placed(play, Placing.LOST, reason="what was staged is gone")

    state = ItemState.PENDING if repeatable else ItemState.HELD
    assert (state, "output_lost") == (play.unit("a").state, play.unit("a").code)
    assert {} == play.snapshot.publications


def test_what_cannot_be_taken_away_does_not_hold_the_job_for_ever() -> None:
    """After its tries the job ends, and the file stays beside the place it was for."""
    play = staged()
    play.does(events.Cancel(by=ANNA))
    for _ in range(3):
        assert play.snapshot.outcome is None
        placed(play, Placing.REFUSED, reason="cannot take away: Read-only file system")
        play.wait(60.0)

    assert play.snapshot.outcome is not None


def test_job_that_ends_around_a_held_item_leaves_nothing_staged() -> None:
    """Where a job goes on without an item, what was staged for it goes before the job ends; it stays held."""
    play = staged()
    placed(play, Placing.EXISTS, reason="taken")
    play.snapshot = evolve(
        play.snapshot, each=None, hold=None, position=enter(play.snapshot.position, "close")
    )
    play.start("")
    play.answer("", Finished())
    assert ([Action(WITHDRAW, "a", 2)], None) == (play.due(), play.snapshot.outcome)

    placed(play, Placing.WITHDRAWN)
    assert play.snapshot.outcome is not None
    assert (Ending.COMPLETED, ItemState.HELD) == (play.snapshot.outcome.ending, play.unit("a").state)


FAULTY = {
    "a relative destination": evolve(STAGED, destination="small/a.mp4"),
    "a staged file elsewhere": evolve(STAGED, temp="../a"),
    "no staged file": evolve(STAGED, temp=""),
}


@pytest.mark.parametrize("case", FAULTY)
def test_staged_output_that_makes_no_sense_is_the_workers_error(case: str) -> None:
    """A worker's word is checked: nothing is due of a place that is none."""
    play = Play.fan_out("a", "b")
    play.start("a")
    play.answer("a", Accepted(output=evolve(OFFER, publish=FAULTY[case])), output=FOUND)

    assert ("author_error", {}) == (play.unit("a").code, play.snapshot.publications)


def test_python_handlers_publish_nothing() -> None:
    """A frame that claims to have staged something for a Python workflow is an error of its own."""
    play = Play.fan_out("a", "b")
    play.snapshot = evolve(play.snapshot, contract=evolve(CONTRACT, entry="scan:Scan"))
    play.start("a")
    play.answer("a", DONE, output=FOUND)

    assert ("author_error", {}) == (play.unit("a").code, play.snapshot.publications)
