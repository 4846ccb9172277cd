"""What every test may ask for: the scale of the fault drills, and a skip where root is needed."""

import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from resumed.actors import onward, opened
from resumed.actors.entry import JobEntry
from resumed.actors.machine import apply, due, plain, plaincall
from resumed.actors.machine.transition import at_large
from resumed.actors.sends import Sends
from resumed.schemas import codec, events, framelines, frames, line_io, plainframes
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import Entry, Line, Snapshot

_step, _call, _draw, _plain_run = plain.step, plaincall.step, onward.draw, plainframes.of_run


@pytest.fixture(autouse=True)
def plain_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Entry]]:
    """Wherever the plain step answers, in any test, the law at large is asked too and says the same."""
    given: list[Entry] = []
    wrong: list[tuple[Entry, object]] = []

    def asked_twice(snapshot: Snapshot, event: events.Returned, now: Instant) -> Entry | None:
        entry = _step(snapshot, event, now)
        if entry is not None:
            given.append(entry)
            if entry != (other := at_large(snapshot, event, now)):
                wrong.append((entry, other))
        return entry

    monkeypatch.setattr(plain, "step", asked_twice)
    yield given
    assert [] == wrong


@pytest.fixture(autouse=True)
def plain_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Entry]]:
    """The same of a plain call, and of its landing."""
    given: list[Entry] = []
    wrong: list[tuple[Entry, object]] = []

    def asked_twice(snapshot: Snapshot, event: events.Returned, now: Instant) -> Entry | None:
        entry = _call(snapshot, event, now)
        if entry is not None:
            given.append(entry)
            if entry != (other := at_large(snapshot, event, now)):
                wrong.append((entry, other))
        return entry

    monkeypatch.setattr(plaincall, "step", asked_twice)
    yield given
    assert [] == wrong


@pytest.fixture(autouse=True)
def onward_turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[onward.Turn]]:
    """Wherever a plain step or call is drawn up in one go, in any test, all the long ways say the same: the
    line to the byte, the snapshot after it, what is due then, and when to look again."""
    given: list[onward.Turn] = []
    wrong: list[object] = []

    def drawn_twice(
        sends: Sends,
        entry: JobEntry,
        snapshot: Snapshot,
        event: events.Returned,
        previous: str,
        now: Instant,
    ) -> onward.Turn | None:
        found = _draw(sends, entry, snapshot, event, previous, now)
        if found is not None:
            given.append(found)
            (line, after), said = found, at_large(snapshot, event, now)
            assert isinstance(said, Entry)
            long = Line(
                sequence=snapshot.sequence + 1,
                epoch=snapshot.epoch,
                previous=previous,
                at=now,
                entries=(said,),
            )
            then = apply.apply(snapshot, long)
            wrong.extend(
                pair
                for pair in (
                    ((line.raw, line.digest), line_io.spell_line(long)),
                    (line.sequence, long.sequence),
                    (after, then),
                    (line.row, opened.row(then, opened.name_of(line.row))),
                    (line.until, due.next_due(then, now)),
                    ([Action(ActionKind.RUN, opened.name_of(line.row), line.row.number)], due.due(then, now)),
                )
                if pair[0] != pair[1]
            )
        return found

    monkeypatch.setattr(onward, "draw", drawn_twice)
    yield given
    assert [] == wrong


@pytest.fixture(autouse=True)
def plain_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[frames.Run]]:
    """Wherever a `run` is written without the converter, in any test, the converter writes the same."""
    given: list[frames.Run] = []
    wrong: list[object] = []

    def written_twice(frame: frames.Run) -> dict[str, Any] | None:
        found = _plain_run(frame)
        if found is not None:
            given.append(frame)
            other = {"frame": "run", **codec.to_plain(frame)}
            if list(found.items()) != list(other.items()):
                wrong.append((found, other))
        return found

    monkeypatch.setattr(plainframes, "of_run", written_twice)
    yield given
    assert [] == wrong


@pytest.fixture(autouse=True)
def plain_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Wherever a frame is read without the converter, in any test, the converter reads the same."""
    given: list[object] = []
    wrong: list[object] = []

    def watched(kind: type[Any], read: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        def read_twice(value: dict[str, Any]) -> Any:
            found = read(value)
            if found is not None:
                given.append(found)
                if found != (other := codec.from_plain(value, kind, "a frame")):
                    wrong.append((found, other))
            return found

        return read_twice

    for kind, read in framelines.PLAIN.items():
        monkeypatch.setitem(framelines.PLAIN, kind, watched(kind, read))
    yield given
    assert [] == wrong


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `root` is skipped, with the reason, for everybody else."""
    if os.geteuid() == 0:
        return
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(pytest.mark.skip(reason="needs to run as root"))


@pytest.fixture(scope="session")
def faults_scale() -> float:
    """The share of its full count a fault drill runs: 0.1 in `./dev test`, 1 in `./dev faults`."""
    return float(os.environ.get("RESUMED_FAULTS_SCALE", "0.1"))


@pytest.fixture
def quiet() -> Iterator[None]:
    """Faults and damage on purpose need no log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def ram(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: thousands of small stores come and go."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    root = Path(tempfile.mkdtemp(prefix="resumed-test-", dir="/dev/shm"))
    yield root
    shutil.rmtree(root)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter and read."""
    root = Path(tempfile.mkdtemp(prefix="resumed-open-", dir="/tmp"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)
