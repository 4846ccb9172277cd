"""Sources in a worker: whether a file still is what it was pinned as, found out without ever waiting."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from worker_kit import contract, desk, python_desk

from resumed.actors.worker import sources
from resumed.schemas.decisions import Accepted, Compared, FanOut, HoldBack, SourceChanged, TryAgain
from resumed.schemas.job import Item, ItemState, PinKind, Source
from resumed.schemas.workflow import Pinning

HOUR = 3600


def old_file(path: Path, text: str = "text") -> Path:
    """A file that has not changed for an hour, as far as anybody can set that."""
    path.write_text(text)
    os.utime(path, (time.time() - HOUR, time.time() - HOUR))
    return path


def touched(path: Path) -> None:
    os.utime(path)


def rewritten(path: Path) -> None:
    path.write_text("tExt")


def grown(path: Path) -> None:
    path.write_text("text and more")


def replaced(path: Path) -> None:
    other = old_file(path.with_name("other"), "tExt")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    os.replace(other, path)


def disguised(path: Path) -> None:
    """Other bytes under the same size, inode and time."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"tExt")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def untouched(path: Path) -> None:
    pass


CHANGES: dict[str, tuple[Callable[[Path], None], bool, bool, bool]] = {
    # what was done -> whether it is seen with sha256, with stat, and with sha256 where done stays done
    "nothing": (untouched, False, False, False),
    "a new time": (touched, False, True, False),
    "other bytes": (rewritten, True, True, True),
    "more bytes": (grown, True, True, True),
    "another file": (replaced, True, True, True),
    "other bytes under the old time": (disguised, True, False, False),
}


@pytest.mark.parametrize("case", CHANGES)
@pytest.mark.parametrize("pinning", [Pinning.AUTO, Pinning.SHA256])
def test_change_of_bytes_is_seen(case: str, pinning: Pinning, tmp_path: Path) -> None:
    """A digest tells bytes, whatever the times say; size, time and inode tell what they can."""
    change, *expected = CHANGES[case]
    path = old_file(tmp_path / "x")
    pin, stat = sources.pin(str(path), pinning), sources.pin(str(path), Pinning.STAT)
    change(path)
    found = [
        sources.compare(pin, pinning),
        sources.compare(stat, Pinning.STAT),
        sources.compare(pin, pinning, quick=True),
    ]

    assert expected == [now is not None for now in found]
    for now in found:
        assert now is None or now.source is not None
    if found[0] is not None and found[0].source is not None:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == found[0].source.sha256


def test_file_that_has_rested_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change time well in the past cannot come back: while it stands the bytes are the same."""
    path = old_file(tmp_path / "x")
    fresh = sources.pin(str(path))
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 3_000_000_000)
    rested, thorough = sources.pin(str(path)), sources.pin(str(path), Pinning.SHA256)
    # A pin with another digest shows whether the bytes were read.
    wrong = [evolve(each, sha256="0" * 64) for each in (fresh, rested, thorough)]

    assert (0, path.stat().st_ctime_ns // 1000, 0) == (fresh.ctime, rested.ctime, thorough.ctime)
    assert [True, False, True] == [sources.compare(each, Pinning.AUTO) is not None for each in wrong]
    path.chmod(0o600)
    assert sources.compare(wrong[1], Pinning.AUTO) is not None


NO_FILE = {
    "nothing": (lambda path: path.unlink(), "No such file or directory"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "it is not a regular file"),
    "a pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "it is not a regular file"),
    "a device": (lambda path: (path.unlink(), path.symlink_to("/dev/zero")), "it is not a regular file"),
    "a loop of links": (
        lambda path: (path.unlink(), path.symlink_to(path.name)),
        "Too many levels of symbolic links",
    ),
    "a folder that became a file": (
        lambda path: (path.unlink(), path.parent.rmdir(), path.parent.touch()),
        "Not a directory",
    ),
}


@pytest.mark.parametrize("case", NO_FILE)
def test_source_that_is_no_file_any_more_is_gone(case: str, tmp_path: Path) -> None:
    """Nothing that lies under its name now is waited for or touched; it is said what it is."""
    (tmp_path / "d").mkdir()
    path = old_file(tmp_path / "d" / "x")
    pin = sources.pin(str(path))
    NO_FILE[case][0](path)  # type: ignore[no-untyped-call]

    assert sources.Now(None, NO_FILE[case][1]) == sources.compare(pin, Pinning.AUTO)


def test_read_that_fails_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that does not answer says nothing about the source: a try fails, a comparison leaves it out."""
    path = old_file(tmp_path / "x")
    row = Item(id="a", ordinal=0, source=sources.pin(str(path)))
    made = contract(FLOW.replace("ON_CHANGE", "hold"))

    def failing(path: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(sources.offers, "open_regular", failing)
    frame = evolve(sources_frame(), items=(row,), through=1)

    assert TryAgain(
        reason="cannot read its source: Input/output error", code="source"
    ) == sources.before_step(made, row)
    assert Compared(through=1, sources=1, unreadable=1) == sources.compared(made, frame)


def sources_frame() -> sources.Run:
    """The frame of a comparison."""
    return sources.Run(
        job="j", epoch=2, item="", number=2, step="start", occurrence=1, log="", scratch="", compare=True
    )


FLOW = """
version = 1
items = { glob = "/x/*", on_change = "ON_CHANGE" }
[[step]]
name = "only"
repeatable = true
run = ["cat", "{source}"]
"""


@pytest.mark.anyio
@pytest.mark.parametrize("on_change", ["hold", "reopen", "ignore"])
async def test_source_is_compared_before_its_step(on_change: str, tmp_path: Path) -> None:
    """No program is started on a source that is not what it was pinned as, unless that is of no matter."""
    path = old_file(tmp_path / "x")
    row = Item(id="a", ordinal=0, source=sources.pin(str(path)))
    async with desk(tmp_path, contract(FLOW.replace("ON_CHANGE", on_change))) as made:
        same = (await made.run(item="a", row=row)).answer.decided
        rewritten(path)
        other = (await made.run(item="a", number=2, row=row)).answer.decided

        assert isinstance(same, Accepted)
        if on_change == "ignore":
            assert isinstance(other, Accepted)
        else:
            assert SourceChanged(source=sources.pin(str(path))) == other
            assert 1 == made.log().count(b"--- a only try")


@pytest.mark.anyio
async def test_sources_are_compared_without_a_step(tmp_path: Path) -> None:
    """A comparison answers with what has changed, runs nothing, and can be stopped like any try."""
    paths = [old_file(tmp_path / name) for name in ("a", "b", "c")]
    rows = [Item(id=path.name, ordinal=n, source=sources.pin(str(path))) for n, path in enumerate(paths)]
    rewritten(paths[0])
    paths[1].unlink()
    async with desk(tmp_path, contract(FLOW.replace("ON_CHANGE", "hold"))) as made:
        frame = made.frame("start", "", items=tuple(rows), compare=True, through=7)
        made.worker.send(frame)
        decided = (await made.heard()).answer.decided  # type: ignore[union-attr]

        assert (7, 3, ["a", "b"]) == (
            decided.through,
            decided.sources,
            [seen.item for seen in decided.changed],
        )
        assert [sources.pin(str(paths[0])), None] == [seen.source for seen in decided.changed]
        assert not (tmp_path / "run.log").exists()


def test_what_is_done_is_looked_at_only(tmp_path: Path) -> None:
    """Where done items stay done they are not read again at each wake, however they were pinned."""
    path = old_file(tmp_path / "x")
    row = Item(id="a", ordinal=0, state=ItemState.DONE, source=sources.pin(str(path), Pinning.SHA256))
    disguised(path)
    frame = evolve(sources_frame(), items=(row,), through=1)
    found = [
        sources.compared(contract(FLOW.replace("ON_CHANGE", on_change)), frame).changed
        for on_change in ("hold", "reopen")
    ]

    assert [0, 1] == [len(changed) for changed in found]


@pytest.mark.anyio
async def test_python_step_pins_what_it_fans_out_over(tmp_path: Path) -> None:
    """Sources that a job file or an author names are pinned in the answer; what is no file has no pin."""
    path = old_file(tmp_path / "x")
    rows = tuple(
        Item(id=name, ordinal=n, source=Source(path=str(place)))
        for n, (name, place) in enumerate((("file", path), ("folder", tmp_path)))
    )
    async with python_desk(tmp_path, "author_flow:Relying", "relying") as made:
        decided = (await made.run("begin", "", items=rows)).answer.decided
        gone = (await made.run("begin", "", 2, items=(evolve(rows[0], source=Source(path="/no/x")),))).answer
        pinned = evolve(rows[0], source=decided.pins["file"])
        rewritten(path)
        changed = (await made.run("use", "file", row=pinned)).answer.decided

        assert isinstance(decided, FanOut)
        assert {"file": PinKind.SHA256} == {name: source.pin for name, source in decided.pins.items()}
        assert (
            HoldBack(code="items", reason="file: cannot read its source: No such file or directory")
            == gone.decided
        )
        assert isinstance(changed, SourceChanged)
