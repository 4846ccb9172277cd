"""What steps hand on: outputs, items that wait for all others; and each step's own number of tries."""

from attrs import evolve
from machine_kit import ANNA, CONTRACT, FOUND, Play, folded, step

from resumed.actors.machine import due
from resumed.schemas import events
from resumed.schemas.decisions import Accepted, FanOut, Finished, GoTo, LeftOut, NewItem, NextStep
from resumed.schemas.job import Artifact, ItemState
from resumed.schemas.workflow import StepKind


def ordered(*names: str, parallel: int | None = None) -> Play:
    """A job that has just begun, of a workflow with these steps in order: capitals are the job's own."""
    play = Play.of("a", "b", "c")
    steps = tuple(
        evolve(
            step(name.lower(), StepKind.JOB if name.isupper() else StepKind.ITEM),
            parallel=None if name.isupper() else parallel,
        )
        for name in names
    )
    contract = evolve(CONTRACT, start=names[0].lower(), steps=steps)
    position = evolve(play.snapshot.position, at=names[0].lower())
    play.snapshot = evolve(play.snapshot, contract=contract, position=position)
    play.start("")
    return play


def made(name: str) -> Artifact:
    """What a step of that name made."""
    return evolve(FOUND, name=name)


def test_outputs_are_handed_on_until_the_item_is_done() -> None:
    """Each step's output is there for the steps after it, the last of a name counts, and done keeps one."""
    play = Play.fan_out("a", "b")
    for number, (at, output) in enumerate((("write", "one"), ("read", "two"), ("write", "one"))):
        play.start("a")
        play.answer("a", NextStep(step=at), output=evolve(made(output), size=number))
    assert [("two", 1), ("one", 2)] == [(each.name, each.size) for each in play.unit("a").outputs]

    play.start("a")
    play.answer("a", Accepted(), output=made("last"))
    assert (made("last"), ()) == (play.unit("a").output, play.unit("a").outputs)
    assert play.snapshot == folded(play.lines)


def test_the_jobs_own_steps_hand_on_to_all() -> None:
    """What a job step made stays with the position, whatever the job goes on with."""
    play = ordered("S", "T", "x", "F")
    play.answer("", GoTo(step="t"), output=made("s"))
    play.start("")
    play.answer("", FanOut(start="x", then="f"), output=made("t"))

    assert (made("s"), made("t")) == play.snapshot.position.outputs


def test_items_may_come_in_without_a_step() -> None:
    """Items that a job step brings in are there, frozen, and start nothing before a fan-out takes them."""
    play = ordered("S", "T", "x", "F")
    assert "goto t" == play.answer("", GoTo(step="t", items=(NewItem(id="b"), NewItem(id="d"))))
    assert [("a", ""), ("b", ""), ("c", ""), ("d", "")] == [
        (each.id, each.at) for each in play.snapshot.items
    ]
    assert [""] == play.starts()

    play.start("")
    play.answer("", FanOut(start="x", then="f", parallel=9))
    assert ["a", "b", "c", "d"] == play.starts()


def test_a_job_step_may_not_bring_an_item_twice() -> None:
    """A faulty list of items brings none of them in."""
    play = ordered("S", "T", "x", "F")

    assert "again" == play.answer("", GoTo(step="t", items=(NewItem(id="d"), NewItem(id="d"))))
    assert 3 == len(play.snapshot.items)


def test_items_wait_for_all_others_and_keep_what_they_have() -> None:
    """The job's own step begins when every item is through, and the second fan-out takes them as they are."""
    play = ordered("S", "x", "M", "y", "F")
    play.answer("", FanOut(start="x", then="m", parallel=3))
    play.start("a", "b", "c")
    assert "waits for y" == play.answer("a", NextStep(step="y", data='{"n":1}', waits=True), output=made("x"))
    assert (ItemState.PENDING, "", 1) == (play.unit("a").state, play.unit("a").at, play.unit("a").occurrence)
    play.answer("b", LeftOut(reason="exit 2"))
    assert [] == play.starts()

    play.answer("c", NextStep(step="y", waits=True))
    assert ["", "m"] == [*play.starts(), play.snapshot.position.at]
    play.start("")
    play.answer("", FanOut(start="y", then="f", parallel=3))
    item = play.unit("a")
    assert ["a", "c"] == play.starts()
    assert ("y", 2, '{"n":1}', (made("x"),)) == (item.at, item.occurrence, item.data, item.outputs)
    assert play.snapshot.items == folded(play.lines).items


def test_an_item_that_was_left_behind_catches_up() -> None:
    """Tried again while a later fan-out runs, an item goes through its earlier steps and on."""
    play = ordered("S", "x", "M", "y", "N", "z", "F")
    play.answer("", FanOut(start="x", then="m", parallel=3))
    play.start("a", "b", "c")
    play.answer("a", NextStep(step="y", waits=True))
    play.answer("b", LeftOut(reason="exit 2"))
    play.answer("c", NextStep(step="y", waits=True))
    for then, start in (("n", "y"), ("f", "z")):
        play.start("")
        play.answer("", FanOut(start=start, then=then, parallel=3))
        play.start("a", "c")
        if start == "y":
            play.answer("a", NextStep(step="z", waits=True))
            play.answer("c", NextStep(step="z", waits=True))
    play.does(events.Retry(by=ANNA, items=("b",)))
    for at in ("x", "y", "z"):
        assert at == play.unit("b").at
        play.start("b")
        play.answer("b", NextStep(step={"x": "y", "y": "z"}[at], waits=True) if at != "z" else Accepted())

    play.answer("a", Accepted())
    play.answer("c", Accepted())
    play.start("")
    play.answer("", Finished())
    assert {ItemState.DONE: 3} == {state: n for state, n in play.snapshot.items.counts.items() if n}


def test_an_item_left_out_while_it_waits_may_be_taken_back() -> None:
    """Skipped between two fan-outs and tried again in the second, it has what the first one gave it."""
    play = ordered("S", "x", "M", "y", "F")
    play.answer("", FanOut(start="x", then="m", parallel=3))
    play.start("a", "b", "c")
    play.answer("a", NextStep(step="y", data='{"n":1}', waits=True), output=made("x"))
    play.does(events.Skip(by=ANNA, items=("a",)))
    play.answer("b", NextStep(step="y", waits=True))
    play.answer("c", NextStep(step="y", waits=True))
    play.start("")
    play.answer("", FanOut(start="y", then="f", parallel=3))
    play.does(events.Retry(by=ANNA, items=("a",)))

    assert ("y", '{"n":1}', (made("x"),)) == (play.unit("a").at, play.unit("a").data, play.unit("a").outputs)


def test_each_step_is_held_to_its_own_number() -> None:
    """No step runs more tries at once than it may, and one that is full does not hold up the others."""
    play = ordered("S", "x", "y", "F", parallel=1)
    play.answer("", FanOut(start="x", then="f", parallel=2))
    assert ["a"] == play.starts()

    play.start("a")
    assert [] == play.starts()
    play.answer("a", NextStep(step="y"))
    assert ["a", "b"] == play.starts()
    play.start("b")
    play.answer("b", NextStep(step="y"))
    assert ["a", "c"] == play.starts()
    play.start("a")
    assert ["c"] == play.starts()
    play.start("c")
    assert [] == play.starts()
    play.answer("a", Accepted())
    assert ["b"] == play.starts()


def test_steps_ahead_wait_when_many_wait_behind() -> None:
    """A step whose results nobody takes makes no more of them for now, and goes on when they are taken."""
    names = [f"i{n:03}" for n in range(due.BEHIND + 10)]
    play = ordered("S", "x", "y", "F", parallel=1)
    play.answer("", FanOut(start="x", then="f", parallel=2, items=tuple(NewItem(id=n) for n in names)))
    play.start("i000")
    play.answer("i000", NextStep(step="y"))
    play.start("i000")
    ahead = 0
    while len(found := play.starts()) and ahead < len(names):
        play.start(found[0])
        play.answer(found[0], NextStep(step="y"))
        ahead += 1

    assert due.BEHIND <= ahead < due.BEHIND + 3
    play.answer("i000", Accepted())
    assert ["i001", names[ahead + 1]] == play.starts()
