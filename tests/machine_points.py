"""Where a job can be interrupted, what can stop it there, and what the law then does, in words."""

from collections.abc import Callable

from attrs import evolve
from effect_points import GATED, checking, looking, sending, unknown, waits
from effect_points import in_words as effect_in_words
from effects_kit import BLIND, CALL, Ledger
from gates_kit import BO, facts
from machine_kit import ANNA, CONTRACT, TIMEOUT, Play, opened, opening
from review_kit import at_question, at_review

from resumed.actors.machine import due, standing
from resumed.actors.machine.verdict import Unchanged, Verdict
from resumed.schemas import decisions, events
from resumed.schemas.instant import later
from resumed.schemas.job import Budget, ItemState, PinKind, Source
from resumed.schemas.ledger import ERRAND, Obstacle
from resumed.schemas.limits import Limits
from resumed.schemas.refusal import Refusal
from resumed.schemas.workflow import OnChange

HOUR = 3600.0
LIMIT = 50.0
"""Seconds until the deadline, wherever the job stands."""


def _step_running(start: str) -> Play:
    play = Play.of("a", "b", start=start)
    play.start("")
    return play


def _item_running(at: str) -> Play:
    play = Play.fan_out("a", "b", at=at, parallel=1)
    play.start("a")
    return play


def _waiting() -> Play:
    play = Play.fan_out("a")
    play.start("a")
    play.does(play.raised("a"))
    return play


def _items_left() -> Play:
    play = Play.fan_out("a", "b", parallel=1)
    play.start("a")
    play.answer("a", decisions.Accepted())
    return play


def _paused() -> Play:
    play = _items_left()
    play.does(events.Pause(by=ANNA))
    return play


def _held() -> Play:
    play = _step_running("open")
    play.answer("", decisions.HoldBack(code="unsure", reason="which month?"))
    return play


def _failures() -> Play:
    play = _items_left()
    play.start("b")
    play.answer("b", decisions.Failed(reason="no such page"))
    return play


PINNED, NOW = (Source(path="/srv/a", pin=PinKind.SHA256, sha256=letter * 64) for letter in ("a", "b"))


def with_sources(on_change: OnChange = OnChange.HOLD) -> Play:
    """A fan-out over two items whose sources have just been pinned."""
    line = opening(on_change=on_change)
    play = Play(opened(line), [line])
    play.start("")
    items = tuple(decisions.NewItem(id=item, source=PINNED) for item in ("a", "b"))
    play.answer("", decisions.FanOut(start="read", then="close", items=items))
    return play


def comparing(on_change: OnChange = OnChange.HOLD, done: str = "") -> Play:
    """The next attempt of it, which begins with a comparison."""
    play = with_sources(on_change)
    if done:
        play.start(done)
        play.answer(done, decisions.Accepted())
    play.does(events.Woke())
    play.start("")
    return play


def _source_changed() -> Play:
    play = comparing()
    changed = tuple(decisions.Seen(item=item, source=NOW) for item in ("a", "b"))
    play.answer("", decisions.Compared(through=2, sources=2, changed=changed))
    return play


def _not_gone() -> Play:
    play = _item_running("read")
    play.does(events.Woke(unproven=("worker-1",), detail="its keeper was killed"))
    return play


def _ending() -> Play:
    play = _item_running("read")
    play.does(events.Cancel(by=ANNA))
    return play


def _terminal() -> Play:
    play = _step_running("close")
    play.answer("", decisions.Finished())
    return play


def _waits_for_time() -> Play:
    return Play.of("a", "b", not_before=500.0)


def _waits_for_job() -> Play:
    return Play.of("a", "b", after=("harbour-6",))


def _other_job_failed() -> Play:
    play = _waits_for_job()
    play.does(events.OtherJob(job="harbour-6", obstacle=Obstacle.FAILED))
    return play


def _at_its_limit() -> Play:
    contract = evolve(CONTRACT, limits=Limits(usd="5"))
    play = Play.fan_out("a", "b", parallel=1, budget=Budget(usd="1"), contract=contract)
    play.start("a")
    row = play.row("a")
    answer = decisions.Answer(decided=decisions.Accepted(), used=Budget(usd="1"))
    play.does(events.Returned(unit="a", epoch=row.epoch, number=row.number, answer=answer, slot=False))
    return play


def _failing(waits: int = 0) -> Play:
    """Two failures in a row are what this workflow takes, and the one after each of so many waits."""
    contract = evolve(CONTRACT, limits=Limits(failures_in_a_row=2))
    play = Play.fan_out("a", "b", parallel=2, contract=contract)
    play.start("a", "b")
    for unit in ("a", "b"):
        play.does(play.raised(unit))
    for _ in range(waits):
        play.wait(500.0)
        play.does(events.Tick())
        play.start("a")
        play.does(play.raised("a"))
    return play


def _doubted() -> Play:
    play = Play.fan_out("a", "b", parallel=2, deadline=HOUR)
    _set_clock(play, 2 * HOUR)
    return play


def _set_clock(play: Play, seconds: float) -> Verdict:
    """Somebody sets the wall clock, and the job is looked at."""
    play.now = evolve(play.now, wall=play.now.wall + round(seconds * 1e6))
    return play.tell(events.Tick())


def _there_already() -> Play:
    play = checking()
    play.says(CALL, decisions.Checked(found="p0"))
    return play


def _ending_unknown() -> Play:
    play = unknown()
    play.does(events.Cancel(by=ANNA))
    return play


POINTS: dict[str, tuple[str, Callable[[], Play]]] = {
    # the point -> the unit that is looked at, and a job that stands there
    "Waiting for its time to start": ("", _waits_for_time),
    "Waiting for another job": ("", _waits_for_job),
    "Held: the job that it waits for failed": ("", _other_job_failed),
    "Ready, not started": ("", lambda: Play.of("a", "b")),
    "A job step runs, repeatable": ("", lambda: _step_running("open")),
    "A job step runs, not repeatable": ("", lambda: _step_running("ship")),
    "An item runs, repeatable": ("a", lambda: _item_running("read")),
    "An item runs, not repeatable": ("a", lambda: _item_running("post")),
    "Waiting for a retry": ("a", _waiting),
    "Waiting, too many tries have failed in a row": ("a", _failing),
    "Held: they go on failing": ("a", lambda: _failing(3)),
    "A fan-out with items left, none running": ("b", _items_left),
    "Paused": ("b", _paused),
    "Held, at a job step": ("", _held),
    "Held: all items are settled, one has failed": ("b", _failures),
    "The items' sources are being compared": ("", comparing),
    "Held: the items' sources have changed": ("a", _source_changed),
    "Held: what it may spend is spent": ("b", _at_its_limit),
    "Held: only a wall clock that was set says that its deadline has passed": ("a", _doubted),
    "Held: a worker's end is not proven": ("a", _not_gone),
    "Being canceled, an item is being stopped": ("a", _ending),
    "An effect waits for somebody to allow it": ("", lambda: waits(GATED)),
    "An effect waits to be let go": ("", waits),
    "An effect is being checked": ("", checking),
    "An effect is being sent": ("", sending),
    "An effect may have left, and is being looked up": ("", looking),
    "Held: an effect may have left, and nobody can be asked": ("", lambda: unknown(BLIND)),
    "Held: an effect is there already": ("", _there_already),
    "Being canceled, an effect may have left": ("", _ending_unknown),
    "A draft waits to be looked at": ("a", lambda: at_review(then="write")),
    "A question waits for its answer": ("a", lambda: at_question(of="group:curators")),
    "Terminal": ("", _terminal),
}


def _limit(play: Play, unit: str) -> Verdict:
    del unit
    job = evolve(play.snapshot.job, deadline=later(play.now, LIMIT))
    play.snapshot = evolve(play.snapshot, job=job)
    play.wait(LIMIT)
    return play.tell(events.Tick())


def _timeout(play: Play, unit: str) -> Verdict:
    del unit
    play.wait(TIMEOUT)
    return play.tell(events.Tick())


def _death(play: Play, unit: str) -> Verdict:
    for name, errand in play.snapshot.errands.items():
        gone = events.Gone(unit=ERRAND + name, epoch=errand.epoch, number=errand.number, died=True)
        return play.tell(gone)
    if unit in play.snapshot.tries:
        return play.tell(play.gone(unit))
    return play.tell(events.Gone(unit=unit, epoch=1, number=1, died=True))


def _skip(play: Play, unit: str) -> Verdict:
    return play.tell(events.Skip(by=ANNA, items=(unit,) if unit else ()))


def _reopen(play: Play, unit: str) -> Verdict:
    return play.tell(events.Reopen(by=ANNA, items=(unit or "a",), reason="wrong"))


def _start_comes(play: Play, unit: str) -> Verdict:
    """Far from any other limit: what runs has no time limit meanwhile."""
    del unit
    tries = {name: evolve(row, until=later(play.now, 9_999.0)) for name, row in play.snapshot.tries.items()}
    play.snapshot = evolve(play.snapshot, tries=tries)
    play.wait(600.0)
    return play.tell(events.Tick())


def _active_time(play: Play, unit: str) -> Verdict:
    """So much time at work is allowed as has passed since its attempt began."""
    del unit
    play.wait(TIMEOUT / 2)
    play.snapshot = evolve(play.snapshot, budget=evolve(play.snapshot.budget, active_seconds=TIMEOUT / 2))
    return play.tell(events.Tick())


def _past_deadline(play: Play, unit: str) -> Verdict:
    """The job has an hour left."""
    del unit
    job = evolve(play.snapshot.job, deadline=later(play.now, HOUR))
    play.snapshot = evolve(play.snapshot, job=job)
    return _set_clock(play, 2 * HOUR)


def _yes(play: Play) -> events.Approve:
    row = play.snapshot.effects.get(CALL)
    fingerprint = row.fingerprint if row is not None else ""
    return events.Approve(by=BO, subject=CALL, fingerprint=fingerprint, facts=facts(BO))


CONDITIONS: dict[str, Callable[[Play, str], Verdict]] = {
    "`pause`": lambda play, unit: play.tell(events.Pause(by=ANNA)),
    "`pause --now`": lambda play, unit: play.tell(events.Pause(by=ANNA, now=True)),
    "`resume`": lambda play, unit: play.tell(events.Resume(by=ANNA)),
    "`cancel`": lambda play, unit: play.tell(events.Cancel(by=ANNA)),
    "the deadline": _limit,
    "the try's time limit": _timeout,
    "`skip`": _skip,
    "`retry`": lambda play, unit: play.tell(events.Retry(by=ANNA)),
    "`reopen`": _reopen,
    "`extend --usd 2`": lambda play, unit: play.tell(events.Extend(by=ANNA, usd="2")),
    "its active time is used up": _active_time,
    "the wall clock is set past its deadline": _past_deadline,
    "the wall clock is set back": lambda play, unit: _set_clock(play, -2 * HOUR),
    "its worker dies": _death,
    "the daemon is killed": lambda play, unit: play.tell(events.Woke()),
    "the daemon shuts down": lambda play, unit: play.tell(events.Shutdown()),
    "its time to start comes": _start_comes,
    "the other job completes": lambda play, unit: play.tell(events.OtherJob(job="harbour-6", completed=True)),
    "the other job ends otherwise": lambda play, unit: play.tell(
        events.OtherJob(job="harbour-6", obstacle=Obstacle.CANCELED)
    ),
    "its actor dies three times": lambda play, unit: play.tell(
        events.Trouble(code="actor_died", reason="its actor died 3 times in a row")
    ),
}


ON_EFFECTS: dict[str, Callable[[Play, str], Verdict]] = {
    "`approve`": lambda play, unit: play.tell(_yes(play)),
    "`settle --landed`": lambda play, unit: play.tell(events.Settle(by=ANNA, subject=CALL, reference="p9")),
    "`settle --absent`": lambda play, unit: play.tell(events.Settle(by=ANNA, subject=CALL)),
}
"""What people say of an effect, where there is one."""


def conditions(point: str) -> list[str]:
    """What is asked of a point."""
    has_effects = isinstance(POINTS[point][1](), Ledger)
    return [*CONDITIONS, *(ON_EFFECTS if has_effects else ())]


def in_words(play: Play, unit: str) -> str:
    """Where the job stands, and where the unit that is looked at does."""
    snapshot = play.snapshot
    status = standing.status(snapshot, play.now).value
    if snapshot.hold is not None and status == "held":
        status = f"held: {snapshot.hold.code}"
    effect = f", the effect is {effect_in_words(play)}" if isinstance(play, Ledger) else ""
    return f"**{status}**, {_unit(play, unit)}{effect}"


def _unit(play: Play, unit: str) -> str:
    row, name = play.unit(unit), unit or f"step {play.unit(unit).at}"
    if unit in play.snapshot.tries:
        stop = play.row(unit).stop
        return f"{name} runs on" if stop is None else f"{name} is being stopped ({stop.value})"
    said = f" ({row.code})" if row.code else ""
    if row.state is not ItemState.PENDING:
        return f"{name} is {row.state.value}{said}"
    if due.blocked(play.snapshot):
        return f"{name} is pending{said}"
    if unit in play.starts():
        return f"{name} starts as soon as a slot is free{said}"
    if row.not_before is not None:
        return f"{name} starts again after its pause{said}"
    return f"{name} is pending{said}"


def outcome(point: str, condition: str) -> str:
    """What the law does there, and what is left when the stops it asks for have been carried out."""
    unit, made = POINTS[point]
    play = made()
    verdict = {**CONDITIONS, **ON_EFFECTS}[condition](play, unit)
    if isinstance(verdict, Refusal):
        why = verdict.reason.split(": ", 1)[1].replace("harbour-7", "the job")
        return f"refused ({verdict.code}): {why}"
    if isinstance(verdict, Unchanged):
        return f"nothing changes: {verdict.reason.replace('harbour-7', 'the job')}"
    at_once = in_words(play, unit)
    if not play.stopped():
        return at_once
    return f"{at_once}; when its tree is gone: {in_words(play, unit)}"
