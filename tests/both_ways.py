"""Quick ways that must say what the long ones say: watched, wherever any test comes by, and asked both.

What the long way raises, or finds to be otherwise, is kept and told at the end of the test: raised at once it
would be taken for whatever the tested code makes of errors.
"""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import pytest
from attrs import define, field

from resumed.actors import onward, opened
from resumed.actors.entry import JobEntry
from resumed.actors.machine import apply, due, plain, plaincall
from resumed.actors.machine.transition import at_large
from resumed.actors.sends import Sends
from resumed.schemas import codec, events, framelines, frames, line_io, plainframes
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.instant import Instant
from resumed.schemas.snapshot import Entry, Line, Snapshot

T = TypeVar("T")
Pairs = list[tuple[object, object]]


@define(eq=False)
class Watched(Generic[T]):
    """What a quick way gave, and where the long one says otherwise."""

    given: list[T] = field(factory=list)
    wrong: list[object] = field(factory=list)

    def note(self, found: T, pairs: Callable[[], Pairs]) -> None:
        """The quick way gave `found`; `pairs` are what it says and what the long way says."""
        self.given.append(found)
        try:
            self.wrong.extend(pair for pair in pairs() if pair[0] != pair[1])
        except Exception as error:  # noqa: BLE001 - whatever it is, the long way does not say the same
            self.wrong.append((found, error))

    def told(self) -> Iterator[list[T]]:
        """For a fixture: what was given, and at the end that nothing was wrong."""
        yield self.given
        assert [] == self.wrong


def of_law(monkeypatch: pytest.MonkeyPatch, module: Any) -> Watched[Entry]:
    """A module of the law whose `step` decides something in one go."""
    watched: Watched[Entry] = Watched()
    step: Callable[[Snapshot, events.Returned, Instant], Entry | None] = module.step

    def asked_twice(snapshot: Snapshot, event: events.Returned, now: Instant) -> Entry | None:
        entry = step(snapshot, event, now)
        if entry is not None:
            watched.note(entry, lambda: [(entry, at_large(snapshot, event, now))])
        return entry

    monkeypatch.setattr(module, "step", asked_twice)
    return watched


def of_steps(monkeypatch: pytest.MonkeyPatch) -> Watched[Entry]:
    """Plain steps."""
    return of_law(monkeypatch, plain)


def of_calls(monkeypatch: pytest.MonkeyPatch) -> Watched[Entry]:
    """Plain calls, and their landings."""
    return of_law(monkeypatch, plaincall)


def of_turns(monkeypatch: pytest.MonkeyPatch) -> Watched[onward.Turn]:
    """Turns that are drawn up in one go: the line to the byte, the snapshot after it, what is due then, and
    when to look again."""
    watched: Watched[onward.Turn] = Watched()
    draw = onward.draw

    def drawn_twice(
        sends: Sends,
        entry: JobEntry,
        snapshot: Snapshot,
        event: events.Returned,
        previous: str,
        now: Instant,
    ) -> onward.Turn | None:
        found = draw(sends, entry, snapshot, event, previous, now)
        if found is not None:
            watched.note(found, lambda: _turn(found, snapshot, event, previous, now))
        return found

    monkeypatch.setattr(onward, "draw", drawn_twice)
    return watched


def _turn(
    found: onward.Turn, snapshot: Snapshot, event: events.Returned, previous: str, now: Instant
) -> Pairs:
    (line, after), said = found, at_large(snapshot, event, now)
    assert isinstance(said, Entry), said
    sequence, epoch = snapshot.sequence + 1, snapshot.epoch
    long = Line(sequence=sequence, epoch=epoch, previous=previous, at=now, entries=(said,))
    then, name = apply.apply(snapshot, long), opened.name_of(line.row)
    return [
        ((line.raw, line.digest), line_io.spell_line(long)),
        (line.sequence, long.sequence),
        (after, then),
        (list(after.performances), list(then.performances)),
        (line.row, opened.row(then, name)),
        (line.until, due.next_due(then, now)),
        ([Action(ActionKind.RUN, name, line.row.number)], due.due(then, now)),
    ]


def of_runs(monkeypatch: pytest.MonkeyPatch) -> Watched[frames.Run]:
    """`run` frames that are written without the converter."""
    watched: Watched[frames.Run] = Watched()
    write = plainframes.of_run

    def written_twice(frame: frames.Run) -> dict[str, Any] | None:
        found = write(frame)
        if found is not None:
            watched.note(
                frame, lambda: [(list(found.items()), [("frame", "run"), *codec.to_plain(frame).items()])]
            )
        return found

    monkeypatch.setattr(plainframes, "of_run", written_twice)
    return watched


def _same(one: object, other: object) -> Pairs:
    """As text, too: 1, 1.0 and True are equal, and are not the same."""
    return [(one, other), (repr(one), repr(other))]


def of_reads(monkeypatch: pytest.MonkeyPatch) -> Watched[object]:
    """Frames that are read without the converter."""
    watched: Watched[object] = Watched()

    def twice(kind: type[Any], read: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
        def read_twice(value: dict[str, Any]) -> Any:
            found = read(value)
            if found is not None:
                watched.note(found, lambda: _same(found, codec.from_plain(value, kind, "a frame")))
            return found

        return read_twice

    for kind, read in framelines.PLAIN.items():
        monkeypatch.setitem(framelines.PLAIN, kind, twice(kind, read))
    return watched
