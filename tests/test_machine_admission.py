"""The first snapshot: what the door let in, and nothing has begun."""

from machine_kit import Play, moment, opened, opening, reread

from resumed.actors.machine import due, standing
from resumed.actors.machine.admission import first_line
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.job import ItemState, PinKind, Source, Status
from resumed.schemas.jobfile import FileItem


def test_admission_gives_a_job_that_has_not_begun() -> None:
    """After line 1 the job stands at its first step, with no epoch, no attempt and no try."""
    snapshot = opened(opening("a", "b"))

    assert (1, 0, None, {}) == (snapshot.sequence, snapshot.epoch, snapshot.attempt, snapshot.tries)
    assert ("open", 1, ItemState.PENDING) == (
        snapshot.position.at,
        snapshot.position.occurrence,
        snapshot.position.state,
    )
    assert ("open", "admit") == (snapshot.next.step, snapshot.last_transition)
    assert Status.READY == standing.status(snapshot, moment())


def test_admission_keeps_items_in_the_order_of_the_file() -> None:
    """Items are pending at no step, in the order they were written, with their sources unpinned."""
    line = opening()
    assert line.opening is not None
    files = (FileItem(id="b", source="/srv/b", inputs='{"year":1}'), FileItem(id="a"))
    made = first_line(
        line.opening.job, line.opening.contract, files, line.opening.code_version, "1" * 64, moment()
    )
    rows = list(opened(made).items)

    assert [("b", 0), ("a", 1)] == [(row.id, row.ordinal) for row in rows]
    assert [Source(path="/srv/b", pin=PinKind.NONE, requested=True), None] == [row.source for row in rows]
    assert ['{"year":1}', "{}"] == [row.inputs for row in rows]
    assert {("", ItemState.PENDING, 0, 0)} == {(row.at, row.state, row.occurrence, row.tries) for row in rows}


def test_admission_wants_the_first_step_and_no_item() -> None:
    """Items that no fan-out has taken in are not due: the job's first step is."""
    play = Play.of("a", "b")

    assert [Action(ActionKind.START, "", 1)] == play.due()
    assert due.next_due(play.snapshot, play.now) is None


def test_admission_line_reads_back_as_it_was() -> None:
    """Line 1 carries the opening snapshot through the strict door unchanged."""
    line = opening("a", "b", deadline=3600.0)

    assert line == reread(line)
