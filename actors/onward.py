"""Onward: the turn of a plain step, drawn up, spelled and acted upon in one go, without the records between.

It decides nothing that the law does not (`machine/plain.py`). Where anything else is to be considered it
leaves the turn to the actor's own code, and whatever it does is held by the tests to what that would do:
line by line, to the byte.
"""

from operator import attrgetter

from attrs import fields, frozen

from resumed.schemas import codec, events, line_io
from resumed.schemas.instant import Instant, reached, spell_once
from resumed.schemas.job import Item, Try
from resumed.schemas.snapshot import Snapshot

from . import acting, verdicts
from .entry import JobEntry
from .machine import due, plain


@frozen(slots=False)  # made at every step and soon gone: quicker so
class Onward:
    """The line of a plain step, spelled, the try that it starts, and when to look at the job again."""

    sequence: int
    raw: bytes
    digest: str
    row: Try
    until: Instant | None


_FIXED = (
    *("id", "ordinal", "state", "at", "occurrence", "tries", "failures", "crashes", "started", "ended"),
    *("not_before", "data", "code", "reason"),
)
"""What a plain step gives the position anew, and what is always written."""
_rest = [each for each in fields(Item) if each.name not in _FIXED]
_of_position = attrgetter(*(each.name for each in _rest))
_BARE = tuple(each.default for each in _rest)


def draw(
    entry: JobEntry, snapshot: Snapshot, event: events.Returned, previous: str, now: Instant
) -> tuple[Onward, Snapshot] | None:
    """The line for this answer after the line of digest `previous`, and the snapshot after it; None where
    more is to be considered than a plain step."""
    limit = entry.next_due
    if limit is not None and reached(limit, now):
        return None
    going = plain.find(snapshot, event, now)
    if going is None:
        return None
    sequence = snapshot.sequence + 1
    spelled = spell_line(going, sequence, snapshot.epoch, previous, now)
    if spelled is None:
        return None
    verdicts.remember(entry, ("", event.number), event.answer)
    after = plain.after(snapshot, going, sequence, now)
    until = due.next_due(after, now) if plain.is_timed(snapshot) else going.row.until
    return Onward(sequence, *spelled, going.row, until), after


def spell_line(
    going: plain.Going, sequence: int, epoch: int, previous: str, now: Instant
) -> tuple[bytes, str] | None:
    """What `line_io.spell_line` makes of the line, byte for byte; None where it would refuse it, and where a
    field is set that is seldom so."""
    position, row, permitted = going.position, going.row, going.permitted
    if _of_position(position) != _BARE or not row.step:
        return None
    at = {"wall": spell_once(now.wall), "boot": now.boot, "up": now.up}
    until = {"wall": spell_once(row.until.wall), "boot": row.until.boot, "up": row.until.up}
    changes: dict[str, object] = {
        "tries": (
            {
                "epoch": row.epoch,
                "item": "",
                "number": row.number,
                "step": row.step,
                "occurrence": row.occurrence,
                "started": at,
                "until": until,
                "worker": row.worker,
            },
        ),
        "position": {
            "id": position.id,
            "ordinal": position.ordinal,
            "state": "in_progress",
            "at": row.step,
            "occurrence": row.occurrence,
            "tries": row.number,
            "crashes": 1,
            "started": at,
        },
    }
    if permitted is not None:
        if permitted.preconditions or permitted.allowed_tools:
            return None
        changes["next"] = {"step": permitted.step}
    if going.state:
        changes["state"] = going.state
    decision = {"by": "author", "rule": "returned", "choice": f"goto {row.step}"}
    line = {
        "sequence": sequence,
        "epoch": epoch,
        "previous": previous,
        "at": at,
        "entries": ({"transition": "returned", "decision": decision, "changes": changes},),
    }
    try:
        payload = codec.dump_plain(line)
    except TypeError:
        return None
    if b"\\u0000" in payload or len(payload) > line_io.MAX_LINE // 2:
        return None
    return line_io.spell(payload)


def go_on(house: acting.House, entry: JobEntry, snapshot: Snapshot, row: Try, now: Instant) -> bool:
    """What `acting.act` does once such a line is in force, where the try before it is all that runs."""
    running, workshop = entry.running, house.workshop
    if len(running) != 1 or entry.placing or entry.stopping or workshop.sends.concern(entry):
        return acting.act(house, entry, snapshot, now)
    (before,) = running
    if before != ("", row.number):
        workshop.run(entry, snapshot, "")
        workshop.ended(entry, *before)
    return False
