"""The random histories can reach what they are for: each goal is walked to by the steps they are made of.

A walk names events, not numbers: the step that stands for an event is looked for where the job is now. So a
walk tells of a law that has changed, and never of a draw that has.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, get_args

import pytest
from machine_kit import folded, opened
from test_machine_properties import CHANGED, History, began

from resumed.actors.machine.transition import ROUTES
from resumed.schemas import events
from resumed.schemas.decisions import Accepted, Compared, Decided, Failed, FanOut, Finished, HoldBack
from resumed.schemas.events import Event, Returned
from resumed.schemas.job import Ending
from resumed.schemas.ledger import WaitKind
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry

STEPS = tuple(product(range(35), range(12), range(28)))
"""Every step that a random history may be made of."""
Wish = Callable[[Any], bool]
REQUESTS = (
    events.Pause, events.Resume, events.Cancel, events.Retry, events.Skip, events.Reopen, events.Extend
)  # fmt: skip


class Walk:
    """A history that goes where it is told to, by steps of the random ones."""

    def __init__(self, *, limited: bool = False, waits: bool = False, reopens: bool = False) -> None:
        first = began(limited, waits, reopens)
        self.history = History(opened(first), [first])
        self.verdicts: set[tuple[str, str]] = set()

    def does(self, kind: type[Event], wish: Wish = lambda _: True, verdict: type[Any] = Entry) -> "Walk":
        """Take the first step that stands for such an event and has that verdict; there must be one."""
        history = self.history
        for step in STEPS:
            known = list(history.answered)
            event = history.happens(*step)
            history.answered[:] = known
            if not isinstance(event, kind) or not wish(event):
                continue
            before = history.seen.copy()
            lines = len(history.lines)
            history.turn([step])
            met = {each for each in history.seen if history.seen[each] > before[each]}
            self.verdicts |= met
            if (kind.__name__, verdict.__name__) in met:
                return self
            assert len(history.lines) == lines, f"{kind.__name__} became {met}"
        raise AssertionError(f"no step of a history is {kind.__name__} with {verdict.__name__} here")

    def at_work(self, unit: str = "") -> "Walk":
        """The unit's try is open: it is started, unless an answer has started it already."""
        if unit not in self.history.snapshot.tries:
            self.does(events.Grant, lambda event: event.unit == unit)
        return self

    def answers(self, unit: str, decided: type[Decided], like: Wish = lambda _: True, **of: Any) -> "Walk":
        """The unit's open try is answered so."""
        self.at_work(unit)

        def wish(event: Returned) -> bool:
            said = event.answer.decided
            fits = all(getattr(said, name) == value for name, value in of.items())
            return event.unit == unit and type(said) is decided and fits and like(event)

        return self.does(Returned, wish)

    def fan_out(self, then: str = "close", **of: Any) -> "Walk":
        """All items are to be read."""
        return self.answers("", FanOut, start="read", then=then, **{"items": None, "pins": {}, **of})

    def items(self, *names: str, decided: type[Decided] = Accepted) -> "Walk":
        """These items answer so, each in its turn."""
        for name in names:
            self.answers(name, decided)
        return self

    def completed(self) -> "Walk":
        """The job is done."""
        return self.fan_out().items("a", "b", "c").answers("", Finished)


def _pinned(*, reopens: bool, done: bool, changed: Any) -> Walk:
    """The sources of a second attempt are compared, and that of `a`, done or not, is another."""
    walk = Walk(reopens=reopens)
    walk.answers("", FanOut, lambda event: bool(event.answer.decided.pins))
    walk.answers("a", Accepted) if done else walk.at_work("a")
    if not walk.history.snapshot.tries:
        walk.at_work("b")
    walk.does(events.Woke, lambda event: not event.unproven)
    return walk.answers("", Compared, changed=changed, through=3)


WALKS: dict[str, Callable[[], Walk]] = {
    "it completes": lambda: Walk().completed(),
    "it fails": lambda: Walk().answers("", Failed),
    "it is canceled": lambda: Walk().at_work().does(events.Cancel).does(events.Gone),
    "paused and let go on": lambda: Walk().does(events.Pause).does(events.Resume),
    "skipped and taken back": lambda: (
        Walk().fan_out().does(events.Skip, lambda event: event.items == ("a",))
        .does(events.Retry, lambda event: event.items == ("a",))
    ),
    "begun again by a person": lambda: (
        Walk().fan_out().items("a").does(events.Reopen, lambda event: event.items == ("a",) and event.reason)
    ),
    "a try runs too long": lambda: Walk().at_work().does(events.Tick),
    "the daemon ends": lambda: Walk().at_work().does(events.Shutdown),
    "an error, then a death": lambda: (
        Walk().fan_out().at_work("a").does(events.Raised).at_work("b")
        .does(events.Gone, lambda event: event.unit == "b" and event.died)
    ),
    "other jobs complete": lambda: Walk(waits=True).does(events.OtherJob, lambda event: event.completed),
    "held: items_failed": lambda: Walk().fan_out().items("a", decided=Failed).items("b", "c"),
    "held: items_held": lambda: Walk().fan_out().items("a", decided=HoldBack).items("b", "c"),
    "held: not_gone": lambda: Walk().at_work().does(events.Woke, lambda event: event.unproven),
    "held: worker": lambda: Walk().does(events.Trouble, lambda event: event.code == "worker"),
    "held: interrupted": lambda: (
        Walk().fan_out("ship", parallel=3, tries=None).items("a", "b", "c").at_work().does(events.Gone)
    ),
    "held: after": lambda: (
        Walk(waits=True).does(events.OtherJob, lambda event: event.job == "p" and event.obstacle is not None)
    ),
    "held: budget, and extended": lambda: (
        Walk(limited=True)
        .answers("", FanOut, lambda event: event.answer.used, start="read", then="close", items=None, pins={})
        .answers("a", Accepted, lambda event: event.answer.used)
        .does(events.Extend)
    ),
    "the breaker opens": lambda: (
        Walk(reopens=True).fan_out(parallel=2).at_work("a").at_work("b")
        .does(events.Raised, lambda event: event.unit == "a")
        .does(events.Raised, lambda event: event.unit == "b")
    ),
    "compared: kept": lambda: _pinned(reopens=False, done=True, changed=CHANGED[1]),
    "compared: held": lambda: _pinned(reopens=False, done=False, changed=CHANGED[1]),
    "compared: reopened": lambda: _pinned(reopens=True, done=False, changed=CHANGED[1]),
    "what has ended refuses all requests": lambda: _refuses(Walk().completed()),
}  # fmt: skip


def _refuses(walk: Walk) -> Walk:
    for kind in REQUESTS:
        walk.does(kind, verdict=Refusal)
    return walk


def marks(walk: Walk) -> set[str]:
    """What a walk has met, in words."""
    history = walk.history
    entries = [entry for line in history.lines for entry in line.entries]
    found = {f"{event} {verdict}" for event, verdict in walk.verdicts}
    found |= {f"hold {entry.changes.hold.code}" for entry in entries if entry.changes.hold is not None}
    for entry in entries:
        report = entry.changes.sources
        if report is not None and report.compared:
            found |= {word for word in ("held", "reopened", "kept", "over") if getattr(report, word)}
        if any(row.kind is WaitKind.BREAKER for row in entry.changes.waits or ()):
            found.add("breaker")
    outcome = history.snapshot.outcome
    return found | {"open" if outcome is None else outcome.ending.value}


ELSEWHERE = (events.Placed, *get_args(events.Deciding))
"""Events that other tests walk to."""
GOALS = (
    {f"{kind.__name__} Entry" for kind in ROUTES if kind not in ELSEWHERE}
    | {f"{kind.__name__} Refusal" for kind in REQUESTS}
    | {"open", *(ending.value for ending in Ending if ending is not Ending.EXPIRED)}
    | {"held", "reopened", "kept", "over", "breaker"}
    | {f"hold {code}" for code in ("items_failed", "items_held", "not_gone", "worker", "interrupted")}
    | {"hold after", "hold budget"}
)
"""What random histories are for: a generator that could not come here would prove little of the law."""


def test_histories_reach_what_they_are_for() -> None:
    """Every kind of event, with each of its verdicts that matters, every hold, ending and comparison."""
    met: set[str] = set()
    for name, walked in WALKS.items():
        walk = walked()
        met |= marks(walk)
        assert walk.history.snapshot == folded(walk.history.lines), name

    assert set() == GOALS - met


@pytest.mark.parametrize("name", [name for name in WALKS if name.startswith("held: ")])
def test_walk_ends_where_its_name_says(name: str) -> None:
    """A walk that is said to end in a hold has met that hold."""
    code = name.removeprefix("held: ").split(",")[0]

    assert f"hold {code}" in marks(WALKS[name]())
