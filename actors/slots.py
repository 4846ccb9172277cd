"""Slots: which workers there are, what each one holds, and which jobs wait for a place; fair in turn.

A slot is the set of open tries a worker holds, never a counter. This module starts and ends workers as
they are wanted, and offers a free place to the job whose turn it is (`turns`); it never commits anything.
"""

import logging
from collections.abc import Awaitable, Callable

import anyio

from resumed.schemas import frames
from resumed.schemas.errors import GoneError, ResumedError, StoreError
from resumed.schemas.workflow import Contract

from .pools import Hand, Key, Pool, Spawn, pool_for, pools_of
from .turns import ANYONE, Rank

logger = logging.getLogger(__name__)

STREAK = 16
"""Tries in a row that a job may take in one slot while others wait for the same workflow."""
PAUSE_FIRST = 1.0
PAUSE_MOST = 30.0
"""Seconds until a worker that the system refused to start is tried again: doubled each time."""
STILLBORN = 3
"""Workers of one workflow that may end before they are ready, in a row, until its jobs are held."""
TURN = 10.0
"""Seconds after which a worker gives way to a workflow that has none, when there is room for no more."""
OVERDUE = 32 * TURN
"""Seconds after which a workflow without a worker gets one, whatever the priority of those who have one."""
MOST_IDLE = 60.0
"""Seconds after which a worker that has nothing to do is ended."""
MOST_START = 120.0
"""Seconds in which a worker must be ready: what its author imports may be large and its disk cold."""


class Slots:
    """All pools. `offer` is called with (job, worker name); `trouble` with (job, code, reason)."""

    def __init__(
        self,
        *,
        spawn: Spawn,
        most: int,
        start_soon: Callable[[Callable[..., Awaitable[None]], Pool], None],
        offer: Callable[[str, str], None],
        trouble: Callable[[str, str, str], None],
        name: Callable[[], str],
        seconds: Callable[[], float],
        wait: Callable[[float], Awaitable[None]],
    ) -> None:
        self._spawn = spawn
        self.most = most
        self._start_soon = start_soon
        self._offer = offer
        self._trouble = trouble
        self._name = name
        self._seconds = seconds
        self._wait = wait
        self.pools: dict[str, Pool] = {}
        self.hands: dict[str, Hand] = {}
        self.draining = False
        self.resting = False
        """Nothing is started for a while; what runs goes on."""
        self._left = anyio.Event()
        self._freed: anyio.Event | None = None

    def want(
        self, job: str, digest: str, contract: Contract, rank: Rank = ANYONE, *, errand: bool = False
    ) -> None:
        """Queue the job for a slot; once, however often it asks, and not while an offer is on its way to it.

        Whoever takes or declines an offer asks again when more is due; a place in the queue that nobody wants
        would cost the job its own turn (`may_go_on`). Errands are for workers of one slot: a workflow whose
        own have more has others for them.
        """
        pool = pool_for(self.pools, digest, contract, errand)
        if not any(job in hand.offered for hand in pool.hands.values()):
            pool.waiting.add(job, rank)
        self.pump(pool)
        self._is_overdue(pool)  # notes since when it has waited

    def unwant(self, job: str, digest: str) -> None:
        """The job does not want a slot any more."""
        for pool in pools_of(self.pools, digest):
            pool.waiting.remove(job)

    def pump(self, pool: Pool) -> None:
        """Offer free places to those who wait; start a worker when there is none free."""
        while pool.waiting and not (self.draining or self.resting):
            hand = next((hand for hand in pool.hands.values() if hand.free()), None)
            if hand is None:
                self._grow(pool)
                return
            job, hand.priority = pool.waiting.take()
            if job in hand.offered:
                continue
            hand.offered.add(job)
            self._offer(job, hand.worker.name)

    def rest(self, resting: bool) -> None:
        """Starts nothing more, or goes on."""
        self.resting = resting
        if not resting:
            self._pump_all()

    def _pump_all(self) -> None:
        """A place is free: the highest priority comes first, then who got a worker the longest ago."""
        waiting = [(pool, pool.waiting.top()) for pool in self.pools.values()]
        turns = [
            (not self._is_overdue(pool), -top, pool.grown, place)
            for place, (pool, top) in enumerate(waiting)
            if top is not None
        ]
        for *_, place in sorted(turns):
            self.pump(waiting[place][0])

    def _is_overdue(self, pool: Pool) -> bool:
        """True once a workflow whose jobs wait has been without a worker for too long."""
        if not pool.starves():
            pool.hungry = None
            return False
        pool.hungry = self._seconds() if pool.hungry is None else pool.hungry
        return self._seconds() - pool.hungry >= OVERDUE

    def _grow(self, pool: Pool) -> None:
        if pool.pausing:
            return
        coming = sum(hand.worker.slots for hand in pool.hands.values() if not hand.ready)
        coming += pool.starting * pool.contract.slots
        if coming >= len(pool.waiting):
            return
        total = len(self.hands) + sum(each.starting for each in self.pools.values())
        if total >= self.most and not self._end_idle(pool):
            return
        pool.starting += 1
        pool.grown = self._seconds()
        self._start_soon(self._start, pool)

    def _end_idle(self, wanting: Pool) -> bool:
        """Make room: the worker that has been idle longest, of a workflow nobody waits for, is ended."""
        idle = [hand for hand in self.hands.values() if hand.pool is not wanting and hand.is_spare()]
        if not idle:
            return False
        hand = min(idle, key=lambda each: each.idle_since)
        hand.ending = True
        hand.worker.kill()
        # Its place is free when its end is known: `gone` pumps all pools.
        return False

    async def _start(self, pool: Pool) -> None:
        name = self._name()
        try:
            worker = await self._spawn(name, pool.contract)
        except (OSError, StoreError, RuntimeError) as error:
            await self._refused(pool, error)
            return
        except ResumedError as error:
            pool.starting -= 1
            self._born_dead(pool, f"a worker could not be started: {error}")
            return
        pool.starting -= 1
        pool.trouble, pool.refused = "", 0
        now = self._seconds()
        hand = Hand(worker, pool, born=now, idle_since=now)
        pool.hands[name] = self.hands[name] = hand

    async def _refused(self, pool: Pool, error: Exception) -> None:
        """The system is short of something: nobody's jobs are at fault, and it is tried again."""
        pool.starting -= 1
        pool.trouble = f"no worker of {pool.contract.workflow} could be started: {error}"
        logger.warning("%s", pool.trouble)
        pause = min(PAUSE_FIRST * 2.0**pool.refused, PAUSE_MOST)
        pool.refused = min(pool.refused + 1, 16)
        pool.pausing = True
        # Its place among the workers is free: another workflow may have waited for just that.
        self._pump_all()
        await self._wait(pause)
        pool.pausing = False
        self.pump(pool)

    def troubles(self) -> tuple[str, ...]:
        """What keeps workers that are wanted from being started, for people."""
        return tuple(pool.trouble for pool in self.pools.values() if pool.trouble and pool.waiting)

    def ready(self, name: str) -> None:
        """The worker has said that it can run."""
        hand = self.hands.get(name)
        if hand is None:
            return
        hand.ready = True
        hand.pool.stillborn = 0
        if hand.worker.slots < 1:
            self.troubled(name, "contract", "its workflow's contract gives its workers no slots")
        self.pump(hand.pool)
        self._pass_on(hand)

    def troubled(self, name: str, code: str, reason: str) -> None:
        """The worker says that it cannot run its workflow: every job that waits for it is held."""
        hand = self.hands.get(name)
        if hand is None:
            return
        hand.ending = True
        for job in [*hand.pool.waiting.clear(), *hand.offered]:
            self._trouble(job, code, reason)
        hand.worker.kill()

    def gone(self, name: str) -> list[Key]:
        """The worker is known gone; returns the tries it held."""
        hand = self.hands.pop(name, None)
        if hand is None:
            return []
        hand.pool.hands.pop(name, None)
        self._left.set()
        self._tell_freed()
        if not hand.ready and not hand.ending:
            said = hand.worker.stderr_tail(300).strip()
            self._born_dead(hand.pool, f"its worker ended before it was ready: {said or 'it said nothing'}")
        self._pump_all()
        return sorted(hand.held)

    def _born_dead(self, pool: Pool, reason: str) -> None:
        pool.stillborn += 1
        if pool.stillborn >= STILLBORN:
            pool.stillborn = 0
            for job in pool.waiting.clear():
                self._trouble(job, "worker", reason)
        # Its place among the workers is free: another workflow may have waited for just that.
        self._pump_all()

    def holds(self, name: str, key: Key) -> bool:
        """True while the worker has the try in hand."""
        hand = self.hands.get(name)
        return hand is not None and key in hand.held

    def alive(self, name: str) -> bool:
        """True while a worker of this name may still run something."""
        return name in self.hands

    def offers(self, name: str, job: str) -> bool:
        """True when the place that was offered to the job in this worker is still there to be used."""
        hand = self.hands.get(name)
        if hand is None or hand.ending or job not in hand.offered:
            return False
        # A try that was found open after a death may have taken the place meanwhile.
        return len(hand.held) + len(hand.offered) <= hand.worker.slots

    def does_errands(self, name: str) -> bool:
        """Whether this worker may be sent on errands: it has one slot."""
        hand = self.hands.get(name)
        return hand is not None and hand.worker.slots == 1

    def does_tries(self, name: str) -> bool:
        """Whether this worker runs tries, too."""
        hand = self.hands.get(name)
        return hand is not None and not hand.pool.errands

    def take(self, name: str, key: Key) -> None:
        """The place offered to the try's job is the try's from now on, whether or not it is ever run."""
        hand = self.hands.get(name)
        if hand is not None:
            hand.offered.discard(key[0])
            hand.held.add(key)

    def occupy(self, name: str, key: Key) -> None:
        """The try is in the worker's hands from now on."""
        hand = self.hands.get(name)
        if hand is not None:
            hand.held.add(key)

    def release(self, name: str, key: Key) -> None:
        """The try is over; its place is free."""
        hand = self.hands.get(name)
        if hand is None:
            return
        hand.held.discard(key)
        self._tell_freed()
        if not hand.held:
            hand.idle_since = self._seconds()
        self._give_way(hand)
        if hand.pool.waiting:
            self.pump(hand.pool)
        self._pass_on(hand)

    def decline(self, name: str, job: str) -> None:
        """The job did not use the place it was offered."""
        hand = self.hands.get(name)
        if hand is None:
            return
        hand.offered.discard(job)
        if not hand.held:
            hand.idle_since = self._seconds()
        self._give_way(hand)
        self.pump(hand.pool)
        self._pass_on(hand)

    def _pass_on(self, hand: Hand) -> None:
        """A worker that nobody wants gives way before its turn is over where a workflow has none: not in this
        very turn of the loop, in which its own job may ask for the place again."""
        if hand.is_spare() and any(pool.starves() for pool in self.pools.values()):
            self._start_soon(self._make_room, hand.pool)

    async def _make_room(self, _left: Pool) -> None:
        self._pump_all()

    def _give_way(self, hand: Hand) -> None:
        """A worker that has had its turn ends when a workflow without any waits for its place."""
        if len(self.pools) < 2 and not hand.closing:
            return  # there is no other workflow
        turn = not hand.closing and self._seconds() - hand.born >= TURN
        starving = sum(self._goes_before(pool, hand) for pool in self.pools.values()) if turn else 0
        if starving:
            hand.closing = starving > sum(each.ending or each.closing for each in self.hands.values())
        if hand.closing and not (hand.held or hand.offered or hand.ending):
            hand.ending = True
            hand.worker.kill()

    def _goes_before(self, pool: Pool, hand: Hand) -> bool:
        """True when a workflow without a worker waits for this place, by its priority or for too long."""
        overdue = self._is_overdue(pool)
        top, own = pool.waiting.top(), hand.pool.waiting.top()
        if top is None or not pool.starves():
            return False
        return overdue or top >= max(hand.priority, hand.priority if own is None else own)

    def may_go_on(self, name: str, priority: int = 0) -> bool:
        """Whether a job of this priority may take its next try in the slot it holds: others who wait get
        their turn, those of a higher priority at once."""
        hand = self.hands.get(name)
        if hand is None or hand.ending or self.draining or self.resting:
            return False
        self._give_way(hand)
        if hand.closing:
            return False
        top = hand.pool.waiting.top()
        if top is None:
            hand.streak = 0
            return True
        hand.streak += 1
        if hand.streak < STREAK and top <= priority:
            return True
        hand.streak = 0
        return False

    def send(self, name: str, frame: frames.ToWorker) -> bool:
        """Send to a worker; False when it is gone."""
        hand = self.hands.get(name)
        if hand is None:
            return False
        try:
            hand.worker.send(frame)
        except GoneError:
            return False
        return True

    def kill(self, name: str) -> None:
        """End a worker that does not do as it is told."""
        hand = self.hands.get(name)
        if hand is not None:
            hand.ending = True
            hand.worker.kill()

    async def until_free(self, job: str) -> None:
        """Return when no worker holds a try of the job."""
        while any(key[0] == job for hand in self.hands.values() for key in hand.held):
            self._freed = self._freed or anyio.Event()
            await self._freed.wait()

    def _tell_freed(self) -> None:
        if self._freed is not None:
            self._freed.set()
            self._freed = None

    async def until_empty(self) -> None:
        """Return when no worker is left."""
        while self.hands:
            self._left = anyio.Event()
            await self._left.wait()

    def look(self) -> None:
        """End workers that nobody has needed for long, and those that do not get ready; drop empty pools."""
        now = self._seconds()
        self.pools = {digest: pool for digest, pool in self.pools.items() if not pool.is_idle()}
        for hand in list(self.hands.values()):
            if hand.ending:
                continue
            if not hand.ready and hand.idle_since < now - MOST_START:
                # Not `ending`: it counts as one that ended before it was ready.
                hand.worker.kill()
            if hand.ready:
                self._give_way(hand)
                self._end_quiet(hand, now)

    def _end_quiet(self, hand: Hand, now: float) -> None:
        busy = hand.ending or hand.held or hand.offered or hand.pool.waiting
        if not busy and hand.idle_since < now - MOST_IDLE:
            hand.ending = True
            hand.worker.kill()
