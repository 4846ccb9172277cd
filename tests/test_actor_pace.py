"""When a running job is expected to be through: said from what is on record, once enough of it is."""

from typing import Any

import pytest
from attrs import evolve
from machine_kit import ANNA, FOUND, NEXT_BOOT, Play

from resumed.actors import pace, views
from resumed.schemas import events
from resumed.schemas.decisions import Accepted, Failed, NextStep
from resumed.schemas.instant import MICRO, read
from resumed.schemas.job import Item, ItemState
from resumed.schemas.table import ItemTable


def names(count: int) -> list[str]:
    return [f"i{number:03}" for number in range(count)]


def run(play: Play, count: int, seconds: float, *, parallel: int = 2, decided: Any = None) -> None:
    """So many items are tried, `parallel` at a time, each for so long; then the next ones are at work."""
    done = 0
    while done < count:
        play.start(*play.starts()[: parallel - len(play.snapshot.tries)])
        assert play.snapshot.tries
        play.wait(seconds)
        for name in list(play.snapshot.tries)[: count - done]:
            play.answer(name, decided or Accepted(), output=FOUND)
            done += 1
    play.start(*play.starts()[: parallel - len(play.snapshot.tries)])


def left(play: Play) -> float:
    """Seconds from now until the job is expected to be through; 0 when nothing is said."""
    at = pace.expected(play.snapshot, play.now)
    return (at - play.now.wall) / MICRO if at else 0.0


def at_work(**more: Any) -> Play:
    """Twenty items, two at a time, 30 s each: six are done, two are at work."""
    play = Play.fan_out(*names(20), **more)
    play.wait(500.0)
    run(play, 6, 30.0)
    return play


def test_the_rest_takes_as_long_as_what_is_done() -> None:
    """Fourteen items are left at two in 30 s; the time that goes by does not move the end."""
    play = at_work()
    before = left(play)
    play.wait(25.0)

    assert (210.0, 185.0) == (before, left(play))


def test_fewer_than_a_handful_say_nothing() -> None:
    """With four items done nothing is said, with five it is."""
    play = Play.fan_out(*names(20))
    run(play, 4, 30.0)
    before = left(play)
    run(play, 1, 30.0)

    assert (0.0, True) == (before, left(play) > 0)


def test_what_does_not_end_moves_the_end_away() -> None:
    """Tries that take much longer than those before them put the end off; it never lies in the past."""
    play = at_work()
    play.wait(80.0)
    late = left(play)
    play.wait(1_000.0)

    # 170 s for eight (two of them about to end), and twelve more after them.
    assert (170.0 / 8 * 12, True) == (pytest.approx(late), left(play) > late)


def test_only_this_attempt_is_looked_at() -> None:
    """After an interruption the pace of before says nothing: the host may be another one."""
    play = at_work()
    play.does(events.Pause(by=ANNA, now=True))
    play.stopped()
    play.does(events.Resume(by=ANNA))
    run(play, 4, 60.0)
    before = left(play)
    run(play, 2, 60.0)

    assert (0.0, 240.0) == (before, left(play))


QUIET: dict[str, Any] = {
    # why nothing is said although enough is done
    "nothing runs": lambda play: [play.answer(name, Accepted()) for name in list(play.snapshot.tries)],
    "being paused": lambda play: play.does(events.Pause(by=ANNA)),
    "being canceled": lambda play: play.does(events.Cancel(by=ANNA)),
    "held": lambda play: play.does(events.Trouble(code="worker", reason="it cannot start")),
    "another boot": lambda play: setattr(play, "now", evolve(play.now, boot=NEXT_BOOT)),
}


@pytest.mark.parametrize("case", QUIET)
def test_nothing_is_said_of_what_does_not_go_on(case: str) -> None:
    """A job that stands, or is told to end, has no end that its pace could tell."""
    play = at_work()
    QUIET[case](play)

    assert 0.0 == left(play)


def test_failures_take_time_and_are_no_work_left() -> None:
    """Items that gave up count for the pace; alone they are no reason to say anything."""
    play = Play.fan_out(*names(20))
    run(play, 6, 30.0, decided=Failed(reason="no such page"))
    before = left(play)
    run(play, 6, 30.0)

    assert (0.0, 120.0) == (before, left(play))


def test_each_step_of_an_item_is_part_of_its_way() -> None:
    """An item that goes on to another step is not at its end: it is counted when it is."""
    play = Play.fan_out(*names(12), parallel=1)
    for name in names(6):
        play.start(name)
        play.wait(20.0)
        play.answer(name, NextStep(step="write"))
        play.start(name)
        play.wait(10.0)
        play.answer(name, Accepted(), output=FOUND)
    play.start("i006")

    # Of the first item its last step is on record: 160 s instead of 180 for six.
    assert 160.0 == pytest.approx(left(play))


def test_the_row_has_it_as_text() -> None:
    """What a list shows is RFC 3339 text in whole seconds, and nothing where nobody can tell."""
    play = at_work()
    shown = views.row(play.snapshot, play.now)
    play.does(events.Pause(by=ANNA))

    assert pace.expected(play.snapshot, play.now) == 0
    assert (play.now.wall + 210 * MICRO, "") == (
        read(shown.expected),
        views.row(play.snapshot, play.now).expected,
    )


class Counted(ItemTable):
    """A table that counts how many items are looked at."""

    looked = 0

    def __getitem__(self, name: str) -> Item:
        self.looked += 1
        return super().__getitem__(name)


def test_many_items_cost_no_more_than_few() -> None:
    """Of ten thousand items, the last ones before those that wait are looked at, up to a bound."""
    play = at_work()
    done = play.snapshot.items["i003"]
    rows = [evolve(done, id=name, ordinal=ordinal) for ordinal, name in enumerate(names(9_000))]
    fresh = [Item(id=f"j{n}", ordinal=9_000 + n, at="read", state=ItemState.PENDING) for n in range(1_000)]
    table = Counted([*rows, *fresh])
    table.settle()
    table.looked = 0
    play.snapshot = evolve(play.snapshot, items=table)

    assert left(play) > 0
    assert pace.MOST == table.looked
