"""A draft: the changes one transition is putting together, readable as if they were already in force.

It lives for one call of the law; nothing of it is seen outside before its changes are committed.
"""

from operator import attrgetter
from typing import Any

from attrs import evolve

from resumed.schemas.durations import MOST
from resumed.schemas.effecttable import EffectTable
from resumed.schemas.instant import Instant, later
from resumed.schemas.job import (
    Attempt,
    Breaker,
    Budget,
    Clocks,
    Each,
    Hold,
    Item,
    ItemState,
    Mark,
    Outcome,
    SourceReport,
    StopReason,
    Try,
)
from resumed.schemas.ledger import Approval, Effect, Errand, Performance, Question, Review, Wait
from resumed.schemas.publication import Publication
from resumed.schemas.records import replaced
from resumed.schemas.snapshot import Changes, Snapshot
from resumed.schemas.table import ItemTable
from resumed.schemas.workflow import StepContract

from . import reckoning

NOT_GONE = "not_gone"
"""The hold of a job whose last trees are not proven dead: it hides no other, and nothing starts or ends by
itself under it, however the job was told to end (DESIGN.md, I6)."""


CLEARABLE = ("each", "attempt", "pause", "cancel", "expiry", "hold", "breaker")
SCALARS = ("position", *CLEARABLE, "outcome", "budget", "used", "clocks", "waits", "sources", "questions")
"""What a change gives a whole new value, or empties."""
_scalars = attrgetter(*SCALARS)
TABLES = (("publications", "published"), ("performances", "performed"), ("reviews", "reviewed"))
"""By unit: what a change gives a new row, and what it takes away."""


class Draft:
    """A snapshot with changes laid over it."""

    def __init__(self, snapshot: Snapshot, now: Instant) -> None:
        self.now = now
        self.job = snapshot.job
        self.contract = snapshot.contract
        self.items: ItemTable = snapshot.items
        self.position: Item = snapshot.position
        self.each: Each | None = snapshot.each
        self.epoch = snapshot.epoch
        self.attempt: Attempt | None = snapshot.attempt
        self.pause: Mark | None = snapshot.pause
        self.cancel: Mark | None = snapshot.cancel
        self.expiry: Mark | None = snapshot.expiry
        self.hold: Hold | None = snapshot.hold
        self.outcome: Outcome | None = snapshot.outcome
        self.budget: Budget = snapshot.budget
        self.used: Budget = snapshot.used
        self.breaker: Breaker | None = snapshot.breaker
        self.clocks: Clocks | None = snapshot.clocks
        self.waits: tuple[Wait, ...] = snapshot.waits
        self.sources: SourceReport | None = snapshot.sources
        self.newest = snapshot.newest
        self.tries: dict[str, Try] = dict(snapshot.tries)
        self.publications: dict[str, Publication] = dict(snapshot.publications)
        self.effects: EffectTable = snapshot.effects
        self.approvals: dict[str, Approval] = {}
        """Those laid over the snapshot's: see `approvals_of`."""
        self.errands: dict[str, Errand] = snapshot.errands
        self.performances: dict[str, Performance] = snapshot.performances
        self.reviews: dict[str, Review] = snapshot.reviews
        self.questions: tuple[Question, ...] = snapshot.questions
        self.state: dict[str, str] = {}
        self._effects: dict[str, Effect] = {}
        self._before = snapshot
        self._touched: dict[str, Item] = {}

    @property
    def then(self) -> Instant:
        """This moment on the clocks that limits are kept by (`reckoning`); what is recorded bears `now`."""
        return reckoning.trusted(self, self.now)

    def ahead(self, seconds: float) -> Instant:
        """A limit so far ahead, on the clocks that limits are kept by."""
        return later(self.then, seconds)

    def unit(self, name: str) -> Item | None:
        """The item of that id, or the job's own position for the empty one."""
        return self.position if name == "" else self.items.get(name)

    def step_of(self, unit: Item) -> StepContract:
        """The step a unit stands at; LookupError when the workflow declares no such step."""
        found = self.contract.step(unit.at)
        if found is not None:
            return found
        raise LookupError(f"workflow {self.contract.workflow} declares no step {unit.at!r}")

    def put(self, unit: Item) -> None:
        """Lay one row over the table."""
        if unit.id == "":
            self.position = unit
            return
        self._touched[unit.id] = unit
        self.items = self.items.put((unit,))

    def put_many(self, units: list[Item]) -> None:
        """Lay many rows over the table at once."""
        for unit in units:
            self._touched[unit.id] = unit
        self.items = self.items.put(units)

    def put_effect(self, effect: Effect) -> None:
        """Lay one effect over the table."""
        self._effects[effect.id] = effect
        self.effects = self.effects.put((effect,))

    def changed_effects(self) -> list[Effect]:
        """The effects laid over the table so far, as they are now."""
        return list(self._effects.values())

    def closed_errands(self) -> list[str]:
        """The effects whose errand is over by what was laid over so far."""
        before = self._before.errands
        return [name for name in before if name not in self.errands] if before is not self.errands else []

    def changed_units(self) -> list[Item]:
        """The units laid over the table so far, as they are now."""
        own = [] if self.position is self._before.position else [self.position]
        return own + list(self._touched.values())

    def approvals_of(self, effect: str) -> list[Approval]:
        """All decisions on one effect, or on one unit's draft, as they stand now, oldest first."""
        rows = {row.id: row for row in self._before.approvals if row.effect == effect}
        rows |= {name: row for name, row in self.approvals.items() if row.effect == effect}
        return list(rows.values())

    def all_approvals(self) -> list[Approval]:
        """All decisions, as they stand now."""
        return list(({row.id: row for row in self._before.approvals} | self.approvals).values())

    def tries_most(self, unit: Item) -> int:
        """How many counted failures the unit's step allows."""
        if unit.id and self.each is not None and self.each.tries is not None:
            return self.each.tries
        return self.step_of(unit).tries

    def start(self, unit: Item, worker: str) -> None:
        """Open a try of the unit, and an attempt if there is none; a crash until an end is recorded.

        In a fan-out the job's own unit has no step to run: its try compares the items' sources.
        """
        self.open_attempt()
        number = unit.tries + 1
        self.put(
            replaced(
                unit,
                state=ItemState.IN_PROGRESS,
                tries=number,
                crashes=unit.crashes + 1,
                started=self.now,
                ended=None,
                not_before=None,
            )
        )
        self.tries[unit.id] = Try(
            epoch=self.epoch,
            item=unit.id,
            number=number,
            step=unit.at,
            occurrence=unit.occurrence,
            started=self.now,
            until=self.ahead(min(self.step_of(unit).timeout, MOST)),
            worker=worker,
            compares=unit.id == "" and self.each is not None,
        )

    def open_attempt(self) -> None:
        """Open an attempt, under the next epoch, if there is none."""
        if self.attempt is None:
            self.epoch += 1
            self.attempt = Attempt(epoch=self.epoch, opened=self.now)

    def mark_stop(self, row: Try, reason: StopReason) -> None:
        """Mark an open try to be stopped; the first reason stays, but a skip is a person's word and takes its
        place: the item must not come back because the try was being stopped already."""
        if row.stop is None or reason is StopReason.SKIP:
            self.tries[row.item] = evolve(row, stop=reason)

    def mark_all(self, reason: StopReason) -> None:
        """Mark every open try to be stopped; the job's end also takes away what is not published yet."""
        for row in list(self.tries.values()):
            self.mark_stop(row, reason)
        if reason in (StopReason.CANCEL, StopReason.EXPIRE):
            for publication in list(self.publications.values()):
                self.mark_withdrawn(publication, reason)

    def mark_withdrawn(self, row: Publication, reason: StopReason) -> None:
        """Mark a publication as not wanted any more; the first reason stays."""
        if row.stop is None:
            self.publications[row.unit] = evolve(row, stop=reason, failures=0, not_before=None)

    def set_hold(self, code: str, reason: str) -> None:
        """Hold the job, unless it is held already: the first reason is the one to mend. Trees that may be
        alive come before any other reason."""
        if self.hold is None or (code == NOT_GONE and self.hold.code != NOT_GONE):
            self.hold = Hold(code=code, reason=reason, owner=self.job.owner, since=self.now)

    def has_ended(self) -> bool:
        """True once the job is terminal."""
        return self.outcome is not None

    def is_unproven(self) -> bool:
        """True while a tree of the job may still be alive."""
        return self.hold is not None and self.hold.code == NOT_GONE

    def stopping(self) -> bool:
        """True once a cancel or an expiry is on record."""
        return self.cancel is not None or self.expiry is not None

    def _ledger(self) -> dict[str, Any]:
        """What was laid over effects, approvals and errands."""
        before = self._before.errands
        return {
            "effects": tuple(self._effects.values()),
            "approvals": tuple(self.approvals.values()),
            "errands": tuple(row for name, row in self.errands.items() if before.get(name) is not row),
            "returned": tuple(name for name in before if name not in self.errands),
        }

    def changes(self) -> Changes:
        """Everything laid over the snapshot."""
        before = self._before
        ended = tuple([unit for unit in before.tries if unit not in self.tries])
        opened = tuple([row for unit, row in self.tries.items() if before.tries.get(unit) is not row])
        # The position permits its own step next; in a fan-out, the step that items enter by.
        step = self.position.at if self.each is None else self.each.start
        new: dict[str, Any] = {
            name: after
            for name, after, was in zip(SCALARS, _scalars(self), _scalars(before), strict=True)
            if after is not was
        }
        cleared = tuple(name for name, after in new.items() if after is None and name in CLEARABLE)
        if before.next.step != step:
            new["next"] = evolve(before.next, step=step)
        if self.epoch != before.epoch:
            new["epoch"] = self.epoch
        if self._effects or self.approvals or self.errands is not before.errands:
            new |= self._ledger()
        for table, gone in TABLES:
            now: dict[str, Any] = getattr(self, table)
            was: dict[str, Any] = getattr(before, table)
            if now is not was and (now or was):
                new[table] = tuple(row for unit, row in now.items() if was.get(unit) is not row)
                new[gone] = tuple(unit for unit in was if unit not in now)
        return Changes(
            items=tuple(self._touched.values()),
            tries=opened,
            ended=ended,
            state=self.state,
            cleared=cleared,
            **new,
        )
