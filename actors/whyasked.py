"""What effects and open questions add to why a job stands as it does: pure, nothing for jobs without any."""

import shlex
from collections.abc import Iterator

from resumed.schemas.askviews import AskKind, AskRow
from resumed.schemas.ledger import EffectState
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import Possible, WhyCheck, WhyWake

from .machine import asks

MOST = 3
"""Questions that are named one by one."""
TYPED = {
    AskKind.APPROVE: ("resumectl approve {id}", "show it, and allow it or not"),
    AskKind.REVIEW: ("resumectl approve {id}", "show the draft, and accept it or not"),
    AskKind.ANSWER: ("resumectl answer {id} TEXT", "answer: {what}"),
}
"""What may be typed about a question of each kind; what settles an effect the law names itself."""
MOST_WORDS = 60


def open_asks(snapshot: Snapshot) -> list[AskRow]:
    """What the job asks of people, as of its last record."""
    return asks.asks(snapshot, snapshot.newest)


def commands(snapshot: Snapshot) -> tuple[Possible, ...]:
    """What people may type about what is asked, the first few."""
    rows = [row for row in open_asks(snapshot) if row.kind in TYPED]
    found = []
    for row in rows[:MOST]:
        command, means = TYPED[row.kind]
        what = row.what if len(row.what) <= MOST_WORDS else f"{row.what[: MOST_WORDS - 3]}..."
        said = means.format(what=what)
        found.append(Possible(command=command.format(id=shlex.quote(row.id)), means=said))
    if len(rows) > MOST:
        found.append(Possible(command="resumectl inbox", means=f"all {len(rows)} that it asks"))
    return tuple(found)


def checks(snapshot: Snapshot) -> Iterator[WhyCheck]:
    """How its approvals stand, and how many of its effects nobody can tell of."""
    rows = snapshot.effects.open()
    asked = sum(row.kind is AskKind.APPROVE for row in open_asks(snapshot)) if rows else 0
    spent = sum(row.spent is not None for row in snapshot.approvals)
    words = [f"{asked} asked" if asked else "", f"{spent} spent" if spent else ""]
    if any(words):
        yield WhyCheck(name="approval", said=", ".join(filter(None, words)), good=True)
    if unknown := sum(row.state is EffectState.UNKNOWN for row in rows):
        yield WhyCheck(name="unknown", said=str(unknown), good=False)


def wakes(snapshot: Snapshot) -> Iterator[WhyWake]:
    """Whose answer is waited for: a target's, and people's."""
    for effect in snapshot.effects.open():
        if effect.state is EffectState.DISPATCHING:
            yield WhyWake(said=f"the answer of {effect.target}")
    rows = open_asks(snapshot)
    for row in rows[:MOST]:
        who = " or ".join(row.whom) or f"any {row.role}"
        yield WhyWake(said=f"{who}, deciding {row.id}")
    if len(rows) > MOST:
        yield WhyWake(said=f"{len(rows) - MOST} more decisions")


def not_done(snapshot: Snapshot) -> str:
    """What is left undone while people are asked; empty when nobody is."""
    rows = open_asks(snapshot)
    kinds = {row.kind for row in rows}
    if AskKind.APPROVE in kinds:
        return "send anything that nobody has allowed"
    if AskKind.REVIEW in kinds:
        return "go on with a draft that nobody has accepted"
    if AskKind.ANSWER in kinds:
        return "go on without an answer"
    unseen = any(effect.code == "check" for effect in snapshot.effects.live())
    return "send what it could not look at first" if unseen else ""
