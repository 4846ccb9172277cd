"""What must hold of effects in every life of a job: asked of its lines, and of what its targets heard.

The numbers are those of the reliability page: 15 to 20 about effects, 21 to 25 about authority.
"""

from collections.abc import Iterable, Sequence

from attrs import frozen

from resumed.actors.machine import limits, reckoning
from resumed.actors.machine.apply import after
from resumed.schemas.instant import later, reached
from resumed.schemas.job import Ending
from resumed.schemas.ledger import SETTLED, Effect, EffectState, in_flight
from resumed.schemas.snapshot import Entry, Line, Snapshot

CONFIRMED, DISPATCHING = EffectState.CONFIRMED, EffectState.DISPATCHING
PROPOSED, UNKNOWN = EffectState.PROPOSED, EffectState.UNKNOWN

MOVES = {
    # state -> those that one transition may lead to
    PROPOSED: {PROPOSED, DISPATCHING, EffectState.WITHDRAWN, CONFIRMED, UNKNOWN},
    DISPATCHING: {DISPATCHING, CONFIRMED, EffectState.REJECTED, UNKNOWN, PROPOSED, EffectState.WITHDRAWN},
    UNKNOWN: {UNKNOWN, DISPATCHING, CONFIRMED, EffectState.WITHDRAWN, PROPOSED},
    CONFIRMED: {CONFIRMED},
    EffectState.REJECTED: {EffectState.REJECTED},
    EffectState.WITHDRAWN: {EffectState.WITHDRAWN},
}
"""Proposed becomes confirmed only by a look-up after a lost line, or by a person; dispatching is withdrawn
where it was surely not sent and is not wanted any more."""

FIXED = ("uid", "reviewer", "fingerprint", "decision", "given", "valid_until", "round", "policy_version")
"""What of an approval never changes."""


@frozen(kw_only=True)
class Heard:
    """Bytes that left for a target, and how the row stood on the disk when they did."""

    key: str
    fingerprint: str
    durable: Effect | None


@frozen(kw_only=True)
class Page:
    """What a target keeps: under which key, and its own reference."""

    key: str
    reference: str


def check(lines: Sequence[Line], heard: Iterable[Heard] = (), pages: Sequence[Page] = ()) -> Snapshot:
    """Live all lines once more and ask every law of each entry; the last snapshot."""
    first = lines[0].opening
    assert first is not None
    snapshot = first
    owners: dict[str, tuple[str, str]] = {}
    for line in lines:
        for entry in line.entries:
            before = snapshot
            snapshot = after(snapshot, (entry,), line.sequence, line.at)
            check_entry(before, snapshot, entry, line, owners)
    check_targets(snapshot, heard, pages)
    return snapshot


def check_entry(
    before: Snapshot, now: Snapshot, entry: Entry, line: Line, owners: dict[str, tuple[str, str]]
) -> None:
    """The laws of one transition."""
    for row in entry.changes.effects:
        old = before.effects.get(row.id)
        # 20: one operation key always bears one fingerprint, and is of one row.
        assert (row.id, row.fingerprint) == owners.setdefault(row.operation_key, (row.id, row.fingerprint))
        if old is None:
            # Asked for by a try of a job that is being ended already, it is withdrawn at once.
            assert row.state in (PROPOSED, EffectState.WITHDRAWN, DISPATCHING)
            if row.state is DISPATCHING:
                check_at_once(before, row)
                check_dispatch(before, now, None, row, line)
            continue
        assert row.state in MOVES[old.state], (row.id, old.state, row.state)
        for intent in ("operation_key", "fingerprint", "arguments", "bodies", "target", "ordinal", "item"):
            assert getattr(old, intent) == getattr(row, intent)
        assert old.dispatches <= row.dispatches <= old.dispatches + 1
        assert old.errands <= row.errands
        if row.dispatches > old.dispatches:
            check_dispatch(before, now, old, row, line)
        if old.state in SETTLED:  # 16: a settled row keeps its outcome
            assert (old.reference, old.settled) == (row.reference, row.settled)
        if row.state in SETTLED:
            assert row.settled is not None
            assert bool(row.confirmed_by) is (row.state is CONFIRMED)
    check_approvals(before, now, entry)
    check_end(before, now)


def check_at_once(before: Snapshot, row: Effect) -> None:
    """One commit asks for a call and lets it go only where nobody is asked, where nothing is found out just
    before, and where no line that was lost can have sent one under its key."""
    tool = before.contract.tool(row.tool)
    assert tool is not None
    assert (None, 1, False) == (row.gate, row.dispatches, row.suspect)
    assert (False, ()) == (tool.observe, row.sources)
    assert not tool.check_first or not tool.look_up
    unit = before.items.get(row.item) if row.item else before.position
    assert unit is not None
    assert not unit.torn
    assert row.item in before.tries


def check_dispatch(before: Snapshot, now: Snapshot, old: Effect | None, row: Effect, line: Line) -> None:
    """15, 17, 19, 21, 24: what one commit that lets an effect go must find."""
    assert DISPATCHING is row.state
    assert row.id in now.errands
    tool, then = before.contract.tool(row.tool), reckoning.trusted(before, line.at)
    assert tool is not None
    assert old is None or old.state in (PROPOSED, UNKNOWN)
    if old is not None and old.state is UNKNOWN and not old.absent:
        assert tool.key_lifetime is not None
        assert old.since is not None
        assert old.first_dispatch is not None
        assert reached(later(old.since, in_flight(tool)), then)
        assert not reached(later(old.first_dispatch, tool.key_lifetime), then)
    if old is not None and old.state is UNKNOWN and old.absent:
        assert tool.look_up
        assert tool.absent_is_final
    assert before.cancel is None
    assert before.expiry is None
    assert before.pause is None
    deadline = limits.deadline(before)
    assert deadline is None or not reached(deadline, then)
    if row.gate is not None:
        given = [
            one
            for one in now.approvals
            if one.effect == row.id and one.round == row.gate.round and one.operation_key == row.operation_key
        ]
        assert given
        for one in given:
            assert (row.fingerprint, None) == (one.fingerprint, one.revoked)
            assert one.spent is not None
            assert one.decision == "approve"
            assert one.valid_until is None or not reached(one.valid_until, then)
        if tool.approve is not None:  # an administrator may only ask for more
            assert len({one.uid for one in given}) >= tool.approve.quorum
        assert 1 == len({one.policy_version for one in given})


def check_approvals(before: Snapshot, now: Snapshot, entry: Entry) -> None:
    """22, 23, 25: a yes is spent on one key, is whose the kernel says, and is never stretched."""
    known = {one.id: one for one in before.approvals}
    for one in entry.changes.approvals:
        old = known.get(one.id)
        if old is None:
            assert entry.decision.by == f"uid:{one.uid} {one.reviewer}"
            continue
        for name in FIXED:
            assert getattr(old, name) == getattr(one, name)
        assert old.operation_key in ("", one.operation_key) or one.operation_key == ""
    for row in now.effects:
        old_row = before.effects.get(row.id)
        if row.gate is not None and old_row is not None and old_row.gate is not None:
            assert old_row.gate.round <= row.gate.round


def check_end(before: Snapshot, now: Snapshot) -> None:
    """24, and I7: after a cancel or an expiry nothing new starts; the end waits for what may have left."""
    ending = now.cancel is not None or now.expiry is not None
    if ending and (before.cancel is not None or before.expiry is not None):
        assert set(now.tries) <= set(before.tries)
    if now.outcome is not None and before.outcome is None:
        assert not now.effects.unsettled
        assert not now.errands
        if now.outcome.ending is Ending.COMPLETED:
            assert not now.effects.unsettled
    # 19, I11: what nobody can be asked about is held, with an owner.
    for row in now.effects.live():
        tool = now.contract.tool(row.tool)
        if row.state is UNKNOWN and tool is not None and not (tool.look_up or row.resend):
            assert row.hold is not None
            assert row.hold.owner


def check_targets(snapshot: Snapshot, heard: Iterable[Heard], pages: Sequence[Page]) -> None:
    """15, 18, 22: what left was durably let go, and no key has two pages."""
    for one in heard:
        assert one.durable is not None
        assert DISPATCHING is one.durable.state
        assert (one.key, one.fingerprint) == (one.durable.operation_key, one.durable.fingerprint)
    keys = [page.key for page in pages]
    assert len(keys) == len(set(keys)), keys
    by_key = {page.key: page for page in pages}
    for row in snapshot.effects:
        page = by_key.get(row.operation_key)
        if row.state is CONFIRMED:
            assert page is not None, f"{row.id} is said to have landed, and its target has nothing"
            assert page.reference == row.reference
        elif page is not None:
            assert row.state in (UNKNOWN, DISPATCHING) or row.hold is not None or row.suspect, row.state
