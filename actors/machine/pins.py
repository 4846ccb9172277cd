"""When the sources of a job's items are to be compared, and which of them come next: pure questions.

A comparison is a try of the job's own unit in the middle of a fan-out. It comes before the first item of
every attempt but the one in which the sources were pinned, and it goes through the items in pieces.
"""

from resumed.schemas.job import Item, ItemState, PinKind, Source
from resumed.schemas.snapshot import Snapshot

from .draft import Draft

Standing = Snapshot | Draft

MOST, MOST_PATHS = 1000, 1024 * 1024
"""Items, and characters of their names and paths, in one piece: its frame and its line stay small."""

_COMPARED = (ItemState.PENDING, ItemState.DONE)


def is_pinned(source: Source | None) -> bool:
    """Whether there is anything to compare."""
    return source is not None and source.pin is not PinKind.NONE


def is_due(standing: Standing) -> bool:
    """True while the items may not start because their sources have to be compared first."""
    report = standing.sources
    if report is None or standing.each is None:
        return False
    # Without an attempt a new one is about to begin, which no report is of.
    return standing.attempt is None or report.epoch != standing.attempt.epoch or not report.over


def through(standing: Standing) -> int:
    """The ordinal of the first item that is not compared yet in this attempt."""
    report, attempt = standing.sources, standing.attempt
    if report is None or attempt is None or report.epoch != attempt.epoch:
        return 0
    return report.through


def piece(snapshot: Snapshot) -> tuple[tuple[Item, ...], int]:
    """The items to compare next, with no more than what that needs, and the ordinal they lead up to."""
    found: list[Item] = []
    first, room = through(snapshot), MOST_PATHS
    for item in snapshot.items:
        if item.ordinal < first or item.state not in _COMPARED or not is_pinned(item.source):
            continue
        assert item.source is not None
        room -= len(item.id) + len(item.source.path)
        if found and (len(found) == MOST or room < 0):
            return tuple(found), item.ordinal
        found.append(Item(id=item.id, ordinal=item.ordinal, state=item.state, source=item.source))
    return tuple(found), len(snapshot.items)
