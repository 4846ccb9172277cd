"""Sends: which errands of a job may have a slot now, and what their workers are told.

An errand is claimed, run and stopped like a try, under a name of its own. What is particular: only workers
of one slot go on them, those that send wait for a place at their target, and one that may have reached a
worker is never taken for one that did not begin.
"""

from collections.abc import Callable

from resumed.schemas import decisions, events
from resumed.schemas.instant import Instant
from resumed.schemas.ledger import ERRAND, Effect, Errand, ErrandKind, ToolContract
from resumed.schemas.snapshot import Entry, Snapshot

from .entry import JobEntry
from .machine import errands
from .pools import Key
from .slots import Slots
from .targets import Targets, Wish, wish
from .turns import Rank

AGAIN = 30.0
"""Seconds until an errand is tried again that could not be handed to its worker."""


class Sends:
    """The errands of all jobs. `wake` is called with a job that should look again at what is due."""

    def __init__(
        self,
        slots: Slots,
        wake: Callable[[str], None],
        later: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._slots = slots
        self.targets = Targets(wake, later)

    # ---- claims ---------------------------------------------------------------------------------------

    def claim(self, entry: JobEntry, snapshot: Snapshot, now: Instant) -> bool:
        """Queue the job for a slot where an errand may begin now, and for its target where one may not yet.

        True when it waits for a slot. Also to be called once a job wants nothing more.
        """
        if not snapshot.effects.unsettled and entry.id not in self.targets:
            return False
        wanted = errands.wanted(snapshot, now)
        wishes = [found for effect, kind in wanted if (found := _wish(snapshot, effect, kind)) is not None]
        begins = self.targets.wait(entry.id, wishes) or len(wishes) < len(wanted)
        if begins:
            job = snapshot.job
            rank = Rank(job.priority, job.requester)
            self._slots.want(job.id, entry.digest, snapshot.contract, rank, errand=True)
        return begins

    def choose(
        self, entry: JobEntry, adopted: Snapshot, tentative: Snapshot, worker: str, now: Instant
    ) -> str | None:
        """The name of the errand that may start in this slot; only what rests on durable lines may."""
        if not tentative.effects.unsettled or not self._slots.does_errands(worker):
            return None
        for effect, kind in errands.wanted(tentative, now):
            name = errands.name_of(effect.id)
            needs = _wish(tentative, effect, kind)
            free = needs is None or self.targets.has_place(entry.id, needs)
            if free and errands.is_durable(adopted, tentative, name):
                return name
        return None

    def reserve(self, entry: JobEntry, before: Snapshot, event: events.Event, verdict: Entry) -> bool:
        """Keep places for the errands that a verdict opens; False, and nothing is kept, where there is none.

        From here on the places are theirs, though the verdict is not durable yet: another job's must not take
        them meanwhile. `settle` gives back those of a verdict that came to nothing.
        """
        ended = event.unit if isinstance(event, events.Returned) else ""
        changed = {effect.id: effect for effect in verdict.changes.effects}
        for row in verdict.changes.errands:
            old = before.errands.get(row.effect)
            if old is not None and old.number == row.number:
                continue  # only told to stop, or to go on
            # Opening it has counted it, on its effect's row.
            needs = _wish(before, changed[row.effect], row.kind)
            if needs is None:
                continue
            if ended == errands.name_of(row.effect):
                pass  # it was checked in the place that it had
            elif not self.targets.has_place(entry.id, needs):
                return False
            self.targets.take(key_of(entry.id, row), needs.target)
        return True

    def has_room(self, entry: JobEntry, contract: ToolContract) -> bool:
        """Whether the job may send a call of the tool now."""
        return self.targets.has_place(entry.id, wish(contract))

    def place(self, entry: JobEntry, row: Errand, contract: ToolContract) -> None:
        """Keep a place for the one errand that a plain call opens, as `reserve` does."""
        self.targets.take(key_of(entry.id, row), wish(contract).target)

    def settle(self, entry: JobEntry, snapshot: Snapshot) -> None:
        """Places are kept for what is open, or still in a worker's hands, and for nothing else."""
        if entry.id not in self.targets:
            return
        for key in self.targets.kept(entry.id):
            row = snapshot.errands.get(errands.effect_of(key[1]))
            if (row is None or row.number != key[2]) and key[1:] not in entry.running:
                self.targets.release(key)

    def over(self, key: Key) -> None:
        """An errand of a job that is out of our hands is over."""
        self.targets.release(key)

    def forget(self, entry: JobEntry) -> None:
        """The job is out of our hands: it waits for nothing, and what is not in a worker's hands is over."""
        self.targets.forget(entry.id)
        for key in self.targets.kept(entry.id):
            if key[1:] not in entry.running:
                self.targets.release(key)

    def occupy(self, entry: JobEntry, snapshot: Snapshot, row: Errand) -> None:
        """The errand is open: also one that was found so has a place."""
        needs = _wish(snapshot, snapshot.effects[row.effect], row.kind)
        if needs is not None:
            self.targets.take(key_of(entry.id, row), needs.target)


def key_of(job: str, row: Errand) -> Key:
    """By which an errand is known among what workers hold."""
    return (job, errands.name_of(row.effect), row.number)


def _wish(snapshot: Snapshot, effect: Effect, kind: ErrandKind) -> Wish | None:
    """The place that an errand needs; None where it only looks, and where no contract says."""
    if kind is ErrandKind.LOOK_UP:
        return None
    contract = snapshot.contract.tool(effect.tool)
    return None if contract is None else wish(contract)


def not_handed(row: Errand, reason: str) -> events.Returned:
    """What is heard of an errand that could surely not be handed to its worker: nothing of it has left."""
    said: decisions.Decided
    if row.kind is ErrandKind.SEND:
        said = decisions.NotSent(reason=reason, seconds=AGAIN)
    elif row.kind is ErrandKind.LOOK_UP:
        said = decisions.Unsure(reason=reason)
    else:
        said = decisions.Checked(problem=reason, seconds=AGAIN)
    answer = decisions.Answer(decided=said)
    return events.Returned(
        unit=ERRAND + row.effect, epoch=row.epoch, number=row.number, answer=answer, slot=False
    )
