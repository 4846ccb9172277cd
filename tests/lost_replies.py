"""A world for lost replies: the real law on durable lines, a target that counts its pages, faults that hit.

Time is a number. A worker is what it has still to do; the network goes on when whoever used it is dead. A
kill is named by the boundary at which it comes: before a line is durable, after it is, before an errand
begins, before its bytes leave, when they are there, when the answer is.
"""

import heapq
import http.client
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from attrs import define, evolve, field, frozen
from effect_laws import Heard, Page, check
from effects_kit import BLIND, BOTH, CALL, DEDUP, FACTS, TOOL, Ledger, asked
from machine_kit import ANNA, BOOT, WORKER, moment, opened

from resumed.actors.machine import due, errands
from resumed.actors.machine.apply import apply
from resumed.actors.machine.transition import transition
from resumed.schemas import decisions, events, line_io
from resumed.schemas.actions import Action, ActionKind
from resumed.schemas.job import Ending
from resumed.schemas.ledger import EffectState, ErrandKind, ToolContract
from resumed.schemas.snapshot import STATE_SCHEMA, Admission, Entry, Line, Snapshot
from resumed.store import admission, files, journal, layout, recovery

TOOLS: dict[str, ToolContract] = {"look-up": TOOL, "deduplication": DEDUP, "both": BOTH, "neither": BLIND}
NETWORK = 0.1
"""Seconds that a request, or an answer, is on its way."""
SLOW, LATE = 15.0, 100.0
"""Seconds that a target takes: more than the timeout (10 s), and more than the time in flight (30 s)."""
LINGERS = 0.3
"""Seconds that a worker outlives its daemon."""


class Killed(Exception):  # noqa: N818 - no error: the daemon is gone
    """The daemon ends here."""


# ---- the target -------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Fault:
    """What becomes of the first write: at which byte of request and answer the connection breaks (None: it
    does not), how long the target takes, what it answers; `lost` and `mute` are of the network."""

    cut: int | None = None
    takes: float = 0.0
    lost: bool = False
    mute: bool = False
    status: int = 201


FAULTS: dict[str, Fault] = {
    "reply lost": Fault(mute=True),
    "request lost": Fault(lost=True),
    "answer late past the timeout": Fault(takes=SLOW),
    "answer late past the time in flight": Fault(takes=LATE),
    "500 after accepting": Fault(status=500),
}


def request(key: str) -> bytes:
    """A write, as it goes over the wire."""
    body = '{"page":"7"}'
    lines = ("PUT /pages/7 HTTP/1.1", "Host: cms", f"Idempotency-Key: {key}", f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def answer(status: int, reference: str) -> bytes:
    """What the target says to a write."""
    body = json.dumps({"reference": reference} if status < 300 else {"error": "later"})
    word = "Created" if status < 300 else "Internal Server Error"
    lines = (f"HTTP/1.1 {status} {word}", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def wire() -> bytes:
    """One whole exchange: where it can break."""
    return request("0" * 64) + answer(201, "p1")


def boundaries() -> list[int]:
    """Every offset at which a field of the exchange begins or ends."""
    text, found = wire(), {0, len(wire()), len(request("0" * 64))}
    for mark in (b" ", b": ", b"\r\n", b"\r\n\r\n", b'"', b"{", b"}"):
        at = -1
        while (at := text.find(mark, at + 1)) != -1:
            found |= {at, at + len(mark)}
    return sorted(found)


class _Wire:
    """A socket that has received so many bytes."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, mode: str) -> io.BytesIO:
        """What `http.client` reads from."""
        del mode
        return io.BytesIO(self._raw)


def read(raw: bytes) -> decisions.Decided:
    """What a careful client makes of the bytes that came: all that is not surely one thing is unsure."""
    found = http.client.HTTPResponse(_Wire(raw))  # type: ignore[arg-type]
    try:
        found.begin()
        body = json.loads(found.read())
        if found.status == 201 and isinstance(body["reference"], str):
            return decisions.Landed(reference=body["reference"])
        return decisions.Unsure(reason=f"HTTP {found.status}")
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        return decisions.Unsure(reason=f"{type(error).__name__}: the answer broke off")


@define(eq=False)
class Target:
    """It keeps pages, and counts them; it deduplicates by key where its contract says so."""

    tool: ToolContract
    pages: list[Page] = field(factory=list)
    received: int = 0

    def accept(self, key: str) -> str:
        """A whole write has arrived: the reference of its page."""
        self.received += 1
        if self.tool.key_lifetime is not None:
            for page in self.pages:
                if page.key == key:
                    return page.reference
        self.pages.append(Page(key=key, reference=f"p{len(self.pages) + 1}"))
        return self.pages[-1].reference

    def look_up(self, key: str) -> decisions.Decided:
        """What is there under a key now."""
        for page in self.pages:
            if page.key == key:
                return decisions.Landed(reference=page.reference)
        return decisions.Absent()


# ---- the disk ---------------------------------------------------------------------------------------------


class Disk(Protocol):
    """Where lines become durable, and are read again."""

    def append(self, line: Line) -> None:
        """From here on the line is there."""
        ...

    def load(self) -> Snapshot:
        """The job as the lines tell it."""
        ...


class Memory:
    """The bytes of the lines, through the spelling that the store uses."""

    def __init__(self, play: Ledger) -> None:
        self._first = play.snapshot
        self._raw: list[bytes] = []

    def append(self, line: Line) -> None:
        """Spelled as on the disk."""
        self._raw.append(line_io.spell_line(line)[0])

    def load(self) -> Snapshot:
        """The lines since the scene began, read again."""
        snapshot = self._first
        for raw in self._raw:
            payload = line_io.verified(raw.rstrip(b"\n"))
            assert payload is not None
            snapshot = apply(snapshot, line_io.read_line(payload, STATE_SCHEMA, "cannot read a line"))
        return snapshot


class Stored:
    """A job's own folder: the journal and the recovery of the product."""

    def __init__(self, play: Ledger, root: Path) -> None:
        place = layout.create(root, "store-1", moment())
        record = Admission(
            schema=STATE_SCHEMA, id="harbour-7", admitted=moment(), requester="ada", uid=1000,
            via="test", name="job.json", sha256="0" * 64, text="{}",
        )  # fmt: skip
        first = evolve(play.lines[0], previous=admission.job_digest(record))
        admission.admit(place, record, first)
        self.folder = place.job("harbour-7")
        self._journal = self._open()
        for line in play.lines[1:]:
            self.append(line)

    def _open(self) -> journal.Journal:
        return journal.open_for_writing(self.folder, recovery.load(self.folder, apply))

    def append(self, line: Line) -> None:
        """One line, synced."""
        raw, digest = line_io.spell_line(evolve(line, previous=self._journal.digest))
        self._journal.append(raw, line.sequence, digest)

    def load(self) -> Snapshot:
        """What recovery makes of the folder; it goes on in a log of its own."""
        found = recovery.load(self.folder, apply)
        assert files.listing(self.folder).logs
        self._journal = journal.open_for_writing(self.folder, found)
        return found.snapshot


# ---- the world --------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Kill:
    """Who dies at which boundary: `daemon` (its worker some moments later), `worker`, or `both` at once."""

    who: str
    at: int


@define(eq=False)
class World:
    """One scene: it goes on until the job has ended, with a person who says the truth when asked."""

    tool: ToolContract
    fault: Fault
    disk: Disk
    play: Ledger
    kill: Kill | None = None
    killed_at: float | None = None
    """When the daemon is killed, wherever it is then."""
    patient: bool = False
    """Whether the worker waits until it is stopped, instead of giving up before."""
    target: Target = field(init=False)
    time: float = 1.0
    crossed: list[str] = field(factory=list)
    killed: bool = False
    hit: bool = False
    """Whether the fault has come about."""
    heard: list[Heard] = field(factory=list)
    held: list[str] = field(factory=list)
    """The owners of the holds that a person had to lift."""
    _queue: list[tuple[float, int, str, Callable[[], None]]] = field(factory=list)
    _serial: int = 0
    _running: dict[tuple[str, int], str] = field(factory=dict)
    """Workers at work, by the errand's name and number."""
    _armed: bool = True

    def __attrs_post_init__(self) -> None:
        self.target = Target(self.tool)
        self._set(self.time)
        if self.killed_at is not None:
            self.after(self.killed_at, "net", self._killed_now)

    # ---- time, and what is on its way ----

    def after(self, seconds: float, who: str, what: Callable[[], None]) -> None:
        """Something will happen; it does not where `who` is dead by then."""
        self._serial += 1
        heapq.heappush(self._queue, (self.time + seconds, self._serial, who, what))

    def dies(self, who: str, *, lingers: float = 0.0) -> None:
        """What it had still to do does not happen."""
        end = self.time + lingers
        self._queue = [one for one in self._queue if one[2] != who or one[0] <= end]
        heapq.heapify(self._queue)

    def boundary(self, name: str, worker: str = "") -> None:
        """A point at which somebody may die."""
        self.crossed.append(name)
        if self.kill is None or len(self.crossed) - 1 != self.kill.at:
            return
        at_work = list(self._running.items())
        if self.kill.who == "worker":
            for (unit, number), who in at_work:
                self.killed = True
                self.dies(who)
                self.after(0.05, "net", lambda unit=unit, number=number: self._gone(unit, number, died=True))  # type: ignore[misc]
            if self.killed and worker:
                raise _DeadError
            return
        self.killed = True
        for _, who in at_work:
            self.dies(who, lingers=LINGERS if self.kill.who == "daemon" else 0.0)
        raise Killed

    def _killed_now(self) -> None:
        self.killed = True
        for who in list(self._running.values()):
            self.dies(who, lingers=LINGERS)
        raise Killed

    # ---- the daemon ----

    def live(self) -> Snapshot:
        """To the end of the job; the last snapshot."""
        for _ in range(4):
            try:
                self._live()
                return self.play.snapshot
            except Killed:
                self._restart()
        raise AssertionError("killed more than once")

    def _restart(self) -> None:
        self._pass(self.time + 1.0, daemon=False)
        self._running.clear()
        self.play.snapshot = self.disk.load()
        if self.play.snapshot.attempt is not None:
            self._tell(events.Woke())

    def _live(self) -> None:
        for _ in range(2000):
            self._act()
            snapshot = self.play.snapshot
            if snapshot.outcome is not None:
                return
            at = due.next_due(snapshot, self.play.now)
            moments = [at.up / 1e6] if at is not None else []
            if self._queue:
                moments.append(self._queue[0][0])
            if moments:
                self._pass(max(self.time, min(moments)))
                if at is not None and self.time >= at.up / 1e6:
                    self._tell(events.Tick())
            else:
                self._person()
        raise AssertionError("the scene does not end")

    def _pass(self, until: float, *, daemon: bool = True) -> None:
        """Time passes, and what falls into it happens."""
        while self._queue and self._queue[0][0] <= until:
            at, _, _, what = heapq.heappop(self._queue)
            self._set(at)
            try:
                what()
            except _DeadError:
                pass
            except Killed:
                if daemon:
                    raise
            if daemon:
                return
        self._set(until)

    def _set(self, time: float) -> None:
        self.time = max(self.time, time)
        self.play.now = moment(self.time)

    def _tell(self, event: events.Event) -> None:
        verdict = transition(self.play.snapshot, event, self.play.now)
        if not isinstance(verdict, Entry):
            return
        self.boundary(f"before {verdict.transition} {verdict.decision.choice} is durable")
        self.play.commit(verdict)
        self.disk.append(self.play.lines[-1])
        self.boundary(f"after {verdict.transition} {verdict.decision.choice}")

    def _act(self) -> None:
        for _ in range(50):
            before = self.play.snapshot.sequence
            for action in due.due(self.play.snapshot, self.play.now):
                self._does(action)
                if self.play.snapshot.sequence != before:
                    break
            else:
                return
        raise AssertionError("it is never done with what is due")

    def _does(self, action: Action) -> None:
        key = (action.id, action.n)
        if action.kind is ActionKind.STOP:
            self.dies(self._running.get(key, ""))
            self._gone(action.id, action.n, died=False)
        elif action.kind is ActionKind.ERRAND:
            self._tell(events.Grant(unit=action.id, worker=WORKER, facts=FACTS))
        elif action.kind is ActionKind.RUN and key not in self._running:
            self.boundary("before an errand begins")
            self._begin(action)

    def _gone(self, unit: str, number: int, *, died: bool) -> None:
        self._running.pop((unit, number), None)
        row = self.play.snapshot.errands.get(errands.effect_of(unit))
        if row is not None and row.number == number:
            self._tell(events.Gone(unit=unit, epoch=row.epoch, number=number, died=died))

    def _person(self) -> None:
        """Nothing more happens by itself: the job must be held, and a person looks at the target."""
        hold = self.play.snapshot.hold
        assert hold is not None, "the job is stuck"
        assert hold.owner
        assert hold.code in errands.JOB_HOLDS
        row = self.play.snapshot.effects[CALL]
        self.held.append(hold.owner)
        assert len(self.held) < 4
        page = next((page for page in self.target.pages if page.key == row.operation_key), None)
        reference = page.reference if page is not None else None
        self._tell(events.Settle(by=ANNA, subject=CALL, reference=reference, reason="looked"))

    # ---- workers ----

    def _begin(self, action: Action) -> None:
        row = self.play.snapshot.errands[errands.effect_of(action.id)]
        who = f"worker {action.n}"
        self._running[action.id, action.n] = who
        work = self._send if row.kind is ErrandKind.SEND else self._look_up
        self.after(0.01, who, lambda: work(action, who))

    def _answers(self, action: Action, decided: decisions.Decided) -> None:
        row = self.play.snapshot.errands.get(errands.effect_of(action.id))
        self._running.pop((action.id, action.n), None)
        said = decisions.Answer(decided=decided)
        epoch = row.epoch if row is not None else 0
        self._tell(events.Returned(unit=action.id, epoch=epoch, number=action.n, answer=said, slot=False))

    def _look_up(self, action: Action, who: str) -> None:
        key = self.play.snapshot.effects[CALL].operation_key
        found = self.target.look_up(key)
        self.after(NETWORK, who, lambda: self._answers(action, found))

    def _send(self, action: Action, who: str) -> None:
        """The bytes leave; whatever becomes of the worker, they are on their way from here on."""
        self.boundary("before its bytes leave", who)
        durable = self.play.snapshot.effects.get(CALL)
        assert durable is not None
        key = durable.operation_key
        fault = self.fault if self._armed else Fault()
        self.hit, self._armed = self.hit or self._armed, False
        if fault.cut == 0:
            self.after(NETWORK, who, lambda: self._answers(action, decisions.NotSent(reason="refused")))
            return
        self.heard.append(Heard(key=key, fingerprint=durable.fingerprint, durable=durable))
        whole = len(request(key))
        if not self.patient:
            give_up = decisions.Unsure(reason="no answer")
            self.after(self.tool.timeout * 0.9, who, lambda: self._ends(action, who, give_up))
        if fault.lost:
            return
        if fault.cut is not None and fault.cut < whole:
            self.after(NETWORK, who, lambda: self._ends(action, who, decisions.Unsure(reason="reset")))
            return
        self.after(NETWORK + fault.takes, "net", lambda: self._arrives(action, who, key, fault))

    def _arrives(self, action: Action, who: str, key: str, fault: Fault) -> None:
        reference = self.target.accept(key)
        self.boundary("when it is accepted")
        if fault.mute:
            return
        raw = answer(fault.status, reference)
        if fault.cut is not None:
            raw = raw[: max(0, fault.cut - len(request(key)))]
        self.after(NETWORK, who, lambda: self._hears(action, who, raw))

    def _hears(self, action: Action, who: str, raw: bytes) -> None:
        self.boundary("when its answer is there", who)
        self._ends(action, who, read(raw))

    def _ends(self, action: Action, who: str, decided: decisions.Decided) -> None:
        if (action.id, action.n) in self._running:
            self.dies(who)
            self._answers(action, decided)


class _DeadError(Exception):
    """The worker that was about to go on is dead."""


def begun(tool: ToolContract) -> Ledger:
    """A job whose step has asked for one call; it is done when that has landed."""
    return asked(tools=(tool,), then="")


def copied(play: Ledger) -> Ledger:
    """The same job, to be lived once more."""
    return Ledger(play.snapshot, list(play.lines), play.now)


def checked(world: World) -> None:
    """What must hold at the end of every scene."""
    snapshot = world.play.snapshot
    pages = world.target.pages
    assert check(world.play.lines, world.heard, pages) == snapshot
    assert world.hit, "the fault did not come about"
    assert 1 == len(pages), pages
    assert snapshot.outcome is not None
    assert Ending.COMPLETED is snapshot.outcome.ending
    row = snapshot.effects[CALL]
    assert (EffectState.CONFIRMED, pages[0].reference) == (row.state, row.reference)
    assert opened(world.play.lines[0]).job.id == snapshot.job.id
    assert BOOT == world.play.now.boot


def lived(
    tool: ToolContract, fault: Fault, kill: Kill | None = None, *, root: Path | None = None, **more: Any
) -> World:
    """One scene, lived and checked, unless its kill found nobody to kill."""
    play = copied(begun(tool))
    disk: Disk = Memory(play) if root is None else Stored(play, root)
    world = World(tool=tool, fault=fault, disk=disk, play=play, kill=kill, **more)
    world.live()
    if kill is None or world.killed:
        checked(world)
    return world
