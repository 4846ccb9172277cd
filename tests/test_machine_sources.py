"""The law of changed sources: when they are compared, and what becomes of an item whose source changed."""

import pytest
from attrs import evolve
from machine_kit import ANNA, Play, folded, opened, opening

from resumed.actors.machine import due, pins, standing
from resumed.schemas import decisions, events
from resumed.schemas.decisions import Accepted, Compared, FanOut, NewItem, NextStep, Seen, SourceChanged
from resumed.schemas.job import ItemState, PinKind, Source, Status
from resumed.schemas.workflow import OnChange

OLD, NEW, NEWER = (
    Source(path="/srv/x", pin=PinKind.SHA256, sha256=letter * 64, size=5) for letter in ("a", "b", "c")
)
STAT = Source(path="/srv/x", pin=PinKind.STAT, size=70_000_000, mtime=1_795_000_000_000_000, inode=12)


def play_of(*items: str, on_change: OnChange = OnChange.HOLD, parallel: int = 2) -> Play:
    """A job whose items have just been listed and pinned."""
    line = opening(on_change=on_change)
    play = Play(opened(line), [line])
    play.start("")
    new = tuple(NewItem(id=item, source=OLD) for item in items)
    play.answer("", FanOut(start="read", then="close", parallel=parallel, items=new))
    return play


def next_attempt(play: Play) -> None:
    """The daemon is killed and started again."""
    if play.snapshot.attempt is not None:
        play.does(events.Woke())


def seen(*items: str, source: Source | None = NEW) -> tuple[Seen, ...]:
    return tuple(Seen(item=item, source=source, reason="" if source else "No such file") for item in items)


# ---- when -----------------------------------------------------------------------------------------------


def test_what_was_just_pinned_is_not_compared() -> None:
    """In the attempt that listed the items they start at once."""
    play = play_of("a", "b", "c")

    assert ["a", "b"] == play.starts()


def test_next_attempt_begins_with_a_comparison() -> None:
    """After an interruption no item starts before the sources are compared, which is one try of its own."""
    play = play_of("a", "b", "c")
    next_attempt(play)
    waiting = play.starts()
    play.start("")
    row, status = play.row(""), standing.status(play.snapshot, play.now)
    during = play.starts()
    shown, through = pins.piece(play.snapshot)
    choice = play.answer("", Compared(through=through, sources=3))

    assert ([""], [], True, Status.RESUMING) == (waiting, during, row.compares, status)
    assert (["a", "b", "c"], 3) == ([item.id for item in shown], through)
    assert ("compared 3 sources: none has changed", ["a", "b"]) == (choice, play.starts())
    assert play.snapshot == folded(play.lines)


def test_its_slot_goes_on_with_an_item() -> None:
    """The answer of a comparison starts the first item in the same commit, like any other answer."""
    play = play_of("a")
    next_attempt(play)
    play.start("")
    play.answer("", Compared(through=1, sources=1), slot=True)

    assert ["a"] == list(play.snapshot.tries)


NEVER = {
    "sources are ignored": lambda: play_of("a", on_change=OnChange.IGNORE),
    "items have no sources": lambda: Play.fan_out("a"),
}


@pytest.mark.parametrize("case", NEVER)
def test_there_is_nothing_to_compare(case: str) -> None:
    """Where no source can matter an attempt begins with the items themselves."""
    play = NEVER[case]()
    play.start("a")
    next_attempt(play)

    assert ["a"] == play.starts()


def test_comparison_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece goes on where the last one came to, also after a death in between."""
    monkeypatch.setattr(pins, "MOST", 2)
    play = play_of("a", "b", "c", "d", "e")
    next_attempt(play)
    pieces = []
    for _ in range(3):
        play.start("")
        shown, through = pins.piece(play.snapshot)
        pieces.append(([item.id for item in shown], through))
        if len(pieces) == 2:
            play.does(play.gone(""))
            play.start("")
        play.answer("", Compared(through=through, sources=len(shown)))
    report = play.snapshot.sources
    assert report is not None

    assert [(["a", "b"], 2), (["c", "d"], 4), (["e"], 5)] == pieces
    assert (5, True, ["a", "b"]) == (report.compared, report.over, play.starts())


def test_new_attempt_compares_from_the_beginning() -> None:
    """What an earlier attempt has compared may have changed since."""
    play = play_of("a", "b")
    for _ in range(2):
        next_attempt(play)
        play.start("")

        assert (["a", "b"], 2) == ([item.id for item in pins.piece(play.snapshot)[0]], 2)
        play.answer("", Compared(through=2, sources=2))
        play.start("a")


# ---- what becomes of an item -----------------------------------------------------------------------------


HOLDS = "its source /srv/x changed: sha256 aaaaaaaaaaaaaaaa, 5 bytes -> sha256 bbbbbbbbbbbbbbbb, 5 bytes"
GONE = "its source /srv/x is gone (No such file); it was pinned as sha256 aaaaaaaaaaaaaaaa, 5 bytes"

JUDGED = {
    # on_change, the item is done, its source now -> its state, its reason, its source's pin afterwards
    "hold, unfinished, changed": (OnChange.HOLD, False, NEW, ItemState.HELD, HOLDS, OLD),
    "hold, unfinished, gone": (OnChange.HOLD, False, None, ItemState.HELD, GONE, OLD),
    "hold, done, changed": (OnChange.HOLD, True, NEW, ItemState.DONE, "", OLD),
    "hold, done, gone": (OnChange.HOLD, True, None, ItemState.DONE, "", OLD),
    "reopen, unfinished, changed": (OnChange.REOPEN, False, NEW, ItemState.PENDING, HOLDS, NEW),
    "reopen, unfinished, gone": (OnChange.REOPEN, False, None, ItemState.HELD, GONE, OLD),
    "reopen, done, changed": (OnChange.REOPEN, True, NEW, ItemState.PENDING, HOLDS, NEW),
    "reopen, done, gone": (OnChange.REOPEN, True, None, ItemState.DONE, "", OLD),
}


@pytest.mark.parametrize("case", JUDGED)
def test_comparison_judges(case: str) -> None:
    """What is done stays done, unless the workflow says `reopen` and there is a file to begin again with."""
    on_change, done, now, state, reason, pin = JUDGED[case]
    play = play_of("a", "b", on_change=on_change)
    if done:
        play.start("a")
        play.answer("a", Accepted())
    before = play.unit("a")
    next_attempt(play)
    play.start("")
    play.answer("", Compared(through=2, sources=2, changed=seen("a", source=now)))
    item = play.unit("a")

    assert (state, reason, pin) == (item.state, item.reason, item.source)
    assert before.output == item.output
    assert (done and state is ItemState.PENDING) == (item.occurrence > before.occurrence)
    assert (now if state is ItemState.HELD else None) == item.seen
    assert ["a", "b"] if state is ItemState.PENDING else ["b"] == play.starts()
    assert play.snapshot == folded(play.lines)


def test_report_counts_what_became_of_them() -> None:
    """The decision and the report say how many were compared, held, begun again, and left as they are."""
    play = play_of("a", "b", "c", "d", on_change=OnChange.REOPEN)
    for item in ("a", "b"):
        play.start(item)
        play.answer(item, Accepted())
    next_attempt(play)
    play.start("")
    changed = (*seen("a", "c"), *seen("b", "d", source=None))
    choice = play.answer("", Compared(through=4, sources=5, changed=changed, unreadable=1))
    report = play.snapshot.sources
    assert report is not None

    assert "compared 5 sources: 1 held, 2 reopened, 1 kept, 1 cannot be read for now" == choice
    assert (2, 5, 1, 2, 1, 1) == (
        report.epoch, report.compared, report.held, report.reopened, report.kept, report.unreadable
    )  # fmt: skip


def test_try_that_finds_its_source_changed_is_no_failure() -> None:
    """Its step was not begun: the item is held, however little repeatable the step is, and counts nothing."""
    play = play_of("a")
    play.start("a")

    assert "held" == play.answer("a", SourceChanged(source=NEW))
    assert (ItemState.HELD, "source_changed", 0, 0) == (
        play.unit("a").state,
        play.unit("a").code,
        play.unit("a").failures,
        play.unit("a").crashes,
    )
    assert "items_held" == play.code()


def test_reopened_item_begins_at_its_first_step() -> None:
    """What earlier steps made of the old source is not gone on with."""
    play = play_of("a", on_change=OnChange.REOPEN)
    play.start("a")
    play.answer("a", NextStep(step="write", data='{"outputs":{"read":{"text":"old"}}}'))
    play.start("a")
    play.answer("a", SourceChanged(source=NEW))
    item = play.unit("a")

    assert ("read", "{}", 3, NEW, ["a"]) == (item.at, item.data, item.occurrence, item.source, play.starts())


def test_source_that_never_rests_ends_in_a_failure() -> None:
    """The first change is free; each further one in a row is a failed try, with its pause."""
    play = play_of("a", on_change=OnChange.REOPEN)
    found = []
    for source in (NEW, NEWER, NEW, NEWER):
        play.wait(60.0)
        play.start("a")
        play.answer("a", SourceChanged(source=source))
        item = play.unit("a")
        found.append((item.state, item.failures, item.not_before is not None, item.source))

    assert [
        (ItemState.PENDING, 0, False, NEW),
        (ItemState.PENDING, 1, True, NEWER),
        (ItemState.PENDING, 2, True, NEW),
        (ItemState.FAILED, 3, False, NEWER),
    ] == found


def test_person_takes_up_the_source_that_was_shown() -> None:
    """`retry` goes on with the source as the hold told it; one that changed once more is held once more."""
    play = play_of("a")
    play.start("a")
    play.answer("a", NextStep(step="write"))
    play.start("a")
    play.answer("a", SourceChanged(source=NEW))
    play.does(events.Retry(by=ANNA, items=("a",)))
    taken = play.unit("a")
    play.start("")
    play.answer("", Compared(through=1, sources=1))
    play.start("a")
    play.answer("a", SourceChanged(source=NEWER))

    assert ("read", ItemState.PENDING, NEW, None) == (taken.at, taken.state, taken.source, taken.seen)
    assert (ItemState.HELD, NEWER) == (play.unit("a").state, play.unit("a").seen)


def test_person_may_retry_a_source_that_was_gone() -> None:
    """Its pin stays: when the file is there again as it was, the item goes on."""
    play = play_of("a")
    play.start("a")
    play.answer("a", SourceChanged(reason="No such file"))
    play.does(events.Retry(by=ANNA))

    assert (ItemState.PENDING, OLD) == (play.unit("a").state, play.unit("a").source)


def test_pins_of_a_fan_out_are_kept() -> None:
    """Sources of a job file that its Python step fans out over are pinned with the fan-out, and compared."""
    play = Play.of("a", "b")
    play.start("")
    play.answer("", FanOut(start="read", then="close", pins={"a": STAT}))
    play.start("a")
    next_attempt(play)

    assert (STAT, None, [""]) == (play.unit("a").source, play.unit("b").source, play.starts())
    play.start("")
    play.answer("", Compared(through=2, sources=1, changed=seen("a", source=evolve(STAT, size=1))))
    said = "70000000 bytes of 2026-11-18T11:06:40.000000Z, inode 12 -> 1 bytes of"
    assert said in play.unit("a").reason


# ---- what goes wrong ------------------------------------------------------------------------------------


OUT_OF_PLACE: dict[str, tuple[str, decisions.Decided]] = {
    "a step's answer to a comparison": ("", FanOut(start="read", then="close")),
    "a comparison that came nowhere": ("", Compared(through=0)),
    "a comparison past the end": ("", Compared(through=3)),
    "a comparison as an item's answer": ("a", Compared(through=1)),
}


@pytest.mark.parametrize("case", OUT_OF_PLACE)
def test_answer_out_of_place_is_the_authors_error(case: str) -> None:
    """A worker that answers something else than it was asked has failed a try, no more."""
    unit, decided = OUT_OF_PLACE[case]
    play = play_of("a", "b")
    if unit == "":
        next_attempt(play)
    play.start(unit)

    assert "again" == play.answer(unit, decided)
    assert ("author_error", 1) == (play.unit(unit).code, play.unit(unit).failures)


def test_change_of_no_source_is_the_authors_error() -> None:
    """Neither a job step nor an item without a source can have found one changed."""
    play = Play.of("a")
    play.start("")
    play.answer("", SourceChanged())
    other = Play.fan_out("a")
    other.start("a")
    other.answer("a", SourceChanged())

    assert ["author_error", "author_error"] == [play.unit("").code, other.unit("a").code]


def test_comparison_that_keeps_failing_holds_the_job() -> None:
    """It has the limits of the step where the job stands; a person's resume lets it be tried afresh."""
    play = play_of("a")
    next_attempt(play)
    for _ in range(3):
        play.start("")
        play.does(play.raised("", "MemoryError"))
        waits = (play.starts(), due.next_start(play.snapshot, play.now) is not None, play.code())
        play.wait(60.0)
    play.does(events.Resume(by=ANNA))

    assert ([], False, "step_failed") == waits
    assert ([""], 0) == (play.starts(), play.unit("").failures)


def test_comparison_is_repeatable_wherever_the_job_stands() -> None:
    """A death in it holds nothing, though the step that fanned out may not be run again."""
    play = Play.of(start="ship")
    play.start("")
    play.answer("", FanOut(start="read", then="close", items=(NewItem(id="a", source=OLD),)))
    next_attempt(play)
    play.start("")
    died = play.does(play.gone(""))
    play.start("")
    next_attempt(play)

    assert ("again", [""]) == (died, play.starts())


def test_comparison_is_stopped_like_any_try() -> None:
    """A pause, a cancel and a shutdown end it, and what was skipped meanwhile stays so."""
    play = play_of("a", "b")
    next_attempt(play)
    play.start("")
    play.does(events.Skip(by=ANNA, items=("a",)))
    play.does(events.Pause(by=ANNA, now=True))
    play.stopped()
    play.does(events.Resume(by=ANNA))
    play.start("")
    shown = [item.id for item in pins.piece(play.snapshot)[0]]
    play.answer("", Compared(through=2, sources=1, changed=seen("a", "b")))

    assert (["b"], ItemState.SKIPPED, ItemState.HELD) == (shown, play.unit("a").state, play.unit("b").state)


def test_piece_is_bounded_by_names_and_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long paths make shorter pieces, and one item always goes through."""
    monkeypatch.setattr(pins, "MOST_PATHS", 10)
    play = play_of("a", "b", "c")
    next_attempt(play)
    play.start("")

    shown, through = pins.piece(play.snapshot)

    assert (["a"], 1) == ([item.id for item in shown], through)
