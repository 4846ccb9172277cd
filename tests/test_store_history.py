"""A job's past as its logs tell it: every line once, in pieces; damage is noted and hides nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
from faults import world

from resumed.store import archive, durable, files, history, recovery


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A job of 12 lines in three logs: 1 to 5, 6 to 9, 10 to 12."""
    made = world.admit(world.store(tmp_path / "store"))
    opened = world.open_job(made)
    world.append(opened, 4)
    world.checkpoint(opened)
    world.append(opened, 4)
    world.checkpoint(opened)
    world.append(opened, 3)
    opened.close()
    return made


def sequences(past: history.Past) -> list[int]:
    """The lines of a piece."""
    return [line.sequence for line in past.lines]


PIECES = {
    "all": (0, 100, [*range(1, 13)], 0),
    "the first": (0, 3, [1, 2, 3], 3),
    "over a log's end": (3, 4, [4, 5, 6, 7], 7),
    "from a log's end": (5, 2, [6, 7], 7),
    "up to the last": (9, 3, [10, 11, 12], 0),
    "past the last": (12, 3, [], 0),
    "the last ones": (-2, 100, [11, 12], 0),
    "more than there are": (-50, 100, [*range(1, 13)], 0),
}


@pytest.mark.parametrize("case", PIECES)
def test_piece_is_where_it_was_asked_for(case: str, folder: Path) -> None:
    """Lines come in their order, and the answer says where the next piece begins."""
    after, most, expected, following = PIECES[case]
    past = history.read(folder, after, most)

    assert (expected, following, ()) == (sequences(past), past.following, past.notes)


def test_pieces_make_the_whole(folder: Path) -> None:
    """Piece after piece tells every line once, whatever their size."""
    for most in (1, 2, 5, 7, 12):
        seen: list[int] = []
        after = 0
        while True:
            past = history.read(folder, after, most)
            seen += sequences(past)
            if not (after := past.following):
                break

        assert [*range(1, 13)] == seen


def test_piece_is_bounded_in_bytes(folder: Path) -> None:
    """Long lines make short pieces, and a line that is longer than any piece still comes."""
    opened = world.open_job(folder)
    world.append(opened, 3, "x" * (history.MOST_BYTES // 2))
    world.append(opened, 1, "x" * (2 * history.MOST_BYTES))
    opened.close()

    assert [[13], [14], [15], [16]] == [
        sequences(history.read(folder, place, 100)) for place in range(12, 16)
    ]


def test_opening_snapshot_is_left_out(folder: Path) -> None:
    """Line 1 is told without all the state that it opens with."""
    assert history.read(folder, 0, 1).lines[0].opening is None


def test_job_being_written_is_read_beside_its_writer(folder: Path) -> None:
    """Free space behind the lines, and the log's other copies, are no past."""
    opened = world.open_job(folder)
    world.append(opened)
    past = history.read(folder, -2, 10)
    opened.close()

    assert ([12, 13], ()) == (sequences(past), past.notes)


def test_archived_job_keeps_its_past(tmp_path: Path) -> None:
    """What has ended can still be looked up."""
    place = world.store(tmp_path / "store")
    opened = world.open_job(world.admit(place))
    world.append(opened, 2)
    world.checkpoint(opened, fill=False)
    opened.close()

    assert [1, 2, 3] == sequences(history.read(archive.move(place, "harbour-7"), 0, 10))


def flip(path: Path, what: bytes) -> None:
    """One bit of some bytes is another."""
    raw = path.read_bytes()
    at = raw.index(what)
    path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])


def line(path: Path, number: int) -> bytes:
    """The line of that number within its log, 0 being the seal."""
    return path.read_bytes().split(b"\n")[number]


Damage = Callable[[Path], object]

DAMAGED: dict[str, tuple[Damage, list[int], str]] = {
    "a line in the middle": (
        lambda at: flip(at / "6.0.log", line(at / "6.0.log", 2)),
        [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12],
        "line 7 is not there",
    ),
    "a newline, two lines are one": (
        lambda at: flip(at / "6.0.log", b"\n" + line(at / "6.0.log", 3)),
        [1, 2, 3, 4, 5, 6, 9, 10, 11, 12],
        "lines 7 to 8 are not there",
    ),
    "a seal": (
        lambda at: flip(at / "6.0.log", b"0"),
        [1, 2, 3, 4, 5, 10, 11, 12],
        "lines 6 to 9 are not there",
    ),
    "the end of a log": (
        lambda at: (at / "6.0.log").write_bytes((at / "6.0.log").read_bytes()[:500]),
        [1, 2, 3, 4, 5, 10, 11, 12],
        "lines 6 to 9 are not there",
    ),
    "an old log is gone": (
        lambda at: durable.unlink(at / "1.1.log"),
        [*range(6, 13)],
        "lines 1 to 5 are not there",
    ),
    "a log that is a folder": (
        lambda at: (durable.unlink(at / "6.0.log"), durable.make_folder(at / "6.0.log")),
        [1, 2, 3, 4, 5, 10, 11, 12],
        "cannot read",
    ),
    "the last line, torn": (
        lambda at: flip(at / "10.0.log", line(at / "10.0.log", 3)),
        [*range(1, 12)],
        "",
    ),
    "the newest seal": (lambda at: flip(at / "10.0.log", b"0"), [*range(1, 10)], "does not verify"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damage_is_noted_and_hides_nothing(case: str, folder: Path) -> None:
    """What verifies is told; what does not is named; and each look says the same."""
    damage, expected, note = DAMAGED[case]
    if case == "an old log is gone":
        assert (folder / "1.1.log").exists()
    damage(folder)
    past, again = history.read(folder, 0, 100), history.read(folder, 0, 100)

    assert (expected, past) == (sequences(past), again)
    assert note in " ".join(past.notes)
    assert bool(note) == bool(past.notes)


def test_piece_after_damage_misses_no_line(folder: Path) -> None:
    """Lines are found by their own number: one that was cut in two shifts no other out of sight."""
    path = folder / "6.0.log"
    raw = path.read_bytes()
    at = raw.index(line(path, 1)) + 100
    path.write_bytes(raw[:at] + b"\n" + raw[at:])

    assert [8, 9] == sequences(history.read(folder, 7, 2))


def test_log_that_is_superseded_meanwhile_is_no_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer may publish the same lines under the next number between two looks: they are read there."""
    looks = iter([files.listing(folder)])
    opened = world.open_job(folder)
    assert not (folder / "10.0.log").exists()
    look = files.listing
    monkeypatch.setattr(files, "listing", lambda at: next(looks, None) or look(at))
    past = history.read(folder, 8, 10)
    opened.close()

    assert ([9, 10, 11, 12], ()) == (sequences(past), past.notes)


def test_torn_tails_are_counted(folder: Path) -> None:
    """How many tails were cut and never cleared is read from the newest log."""
    path = folder / "10.0.log"
    path.write_bytes(path.read_bytes() + b"half a line")
    before = history.read(folder, 0, 1).torn
    world.open_job(folder).close()

    assert (0, 1) == (before, history.read(folder, 0, 1).torn)
    assert 12 == recovery.load(folder, world.apply).sequence
