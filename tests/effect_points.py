"""How an effect can stand, what can happen to it there, and what the law then makes of it, in words."""

from collections.abc import Callable
from typing import Any

from attrs import evolve
from effects_kit import BLIND, BOTH, CALL, DEDUP, FACTS, TOOL, Ledger, asked, call
from gates_kit import BO, RULE, facts
from machine_kit import ANNA, WORKER

from resumed.actors.machine import errands
from resumed.actors.machine.verdict import Unchanged, Verdict
from resumed.schemas import decisions, events
from resumed.schemas.decisions import Absent, Checked, Landed, NotSent, Refused, Unsure
from resumed.schemas.job import PinKind, Source
from resumed.schemas.ledger import EffectState, ToolContract
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry

GATED = evolve(TOOL, approve=RULE)
PINNED = Source(path="/srv/a", pin=PinKind.SHA256, sha256="a" * 64, size=3)
CHECKED = evolve(TOOL, check_first=True)
IN_FLIGHT = 30.0


def waits(tool: ToolContract = TOOL) -> Ledger:
    """It is proposed, and nothing has been done about it."""
    return asked(tools=(tool,), otherwise="ship")


def checking() -> Ledger:
    """It is being checked."""
    play = asked(call(sources=(PINNED,)), tools=(CHECKED,), otherwise="ship")
    play.grant()
    return play


def sending(tool: ToolContract = TOOL) -> Ledger:
    """It is being sent."""
    play = waits(tool)
    if tool.approve is not None:
        play.does(yes(play))
    play.does(granted(play))
    return play


def unknown(tool: ToolContract = TOOL) -> Ledger:
    """Its sender is gone, without an answer."""
    play = sending(tool)
    play.lost()
    return play


def looking(tool: ToolContract = TOOL, passed: float = 0.0, before: int = 0) -> Ledger:
    """It is being looked up, so long after its sender was gone, so often in vain before."""
    play = unknown(tool)
    for _ in range(before):
        play.looks_up(Unsure(reason="503"))
        play.wait(900.0)
    play.wait(passed)
    play.grant()
    return play


def resent(tool: ToolContract) -> Ledger:
    """It is being sent once more."""
    play = unknown(tool)
    play.wait(IN_FLIGHT)
    if tool.look_up:
        play.looks_up(Absent())
    play.grant()
    return play


def settled(decided: decisions.Decided) -> Ledger:
    """It is settled by that answer."""
    play = sending()
    play.says(CALL, decided)
    return play


def withdrawn() -> Ledger:
    """A reviewer has denied it."""
    play = waits(GATED)
    fingerprint = play.effect().fingerprint
    play.does(events.Deny(by=BO, subject=CALL, fingerprint=fingerprint, facts=facts(BO)))
    return play


def yes(play: Ledger) -> events.Approve:
    """Somebody allows it as it stands."""
    row = play.snapshot.effects.get(CALL)
    fingerprint = row.fingerprint if row is not None else ""
    return events.Approve(by=BO, subject=CALL, fingerprint=fingerprint, facts=facts(BO))


def granted(play: Ledger) -> events.Grant:
    """A slot is given for its errand."""
    gated = play.effect().gate is not None
    return events.Grant(unit=errands.name_of(CALL), worker=WORKER, facts=facts(BO) if gated else FACTS)


def late(play: Ledger) -> events.Returned:
    """Somebody who sent it once says that it landed."""
    answer = decisions.Answer(decided=Landed(reference="p9"))
    return events.Returned(unit=errands.name_of(CALL), epoch=1, number=99, answer=answer, late=True)


Make = Callable[[], Ledger]
STATES: dict[EffectState, tuple[str, Make]] = {
    EffectState.PROPOSED: ("It is asked for and stored whole; surely nothing of it has left.", waits),
    EffectState.DISPATCHING: (
        "It was let go, and that is durable: it may be leaving, and its sender is awaited.",
        sending,
    ),
    EffectState.UNKNOWN: (
        "It may have left, and nobody can tell yet: its target is asked, or a person.",
        unknown,
    ),
    EffectState.CONFIRMED: (
        "It landed, under a reference of the target's own. Final.",
        lambda: settled(Landed(reference="p1")),
    ),
    EffectState.REJECTED: (
        "Its target said that it did not happen, and will not. Final.",
        lambda: settled(Refused(reason="no")),
    ),
    EffectState.WITHDRAWN: ("It was not sent, or surely never arrived, and is not wanted. Final.", withdrawn),
}

ALWAYS: dict[str, Callable[[Ledger], Verdict]] = {
    "a slot is given": lambda play: play.tell(granted(play)),
    "`approve`": lambda play: play.tell(yes(play)),
    "`settle --landed`": lambda play: play.tell(events.Settle(by=ANNA, subject=CALL, reference="p9")),
    "`settle --absent`": lambda play: play.tell(events.Settle(by=ANNA, subject=CALL)),
    "`cancel`": lambda play: play.tell(events.Cancel(by=ANNA)),
    "a late answer says that it landed": lambda play: play.tell(late(play)),
    "the daemon is killed": lambda play: play.tell(events.Woke()),
    "its job's last line may be lost": lambda play: play.tell(events.Woke(torn=True)),
}


def _checked(answer: Checked, **more: Any) -> Make:
    def make() -> Ledger:
        play = checking()
        play.says(CALL, answer, slot=True, facts=FACTS, **more)
        return play

    return make


def _says(play: Make, decided: decisions.Decided) -> Make:
    def make() -> Ledger:
        found = play()
        found.says(CALL, decided)
        return found

    return make


def _lost(play: Make, **how: Any) -> Make:
    def make() -> Ledger:
        found = play()
        found.lost(**how)
        return found

    return make


CHANGED = decisions.Seen(item="/srv/a", source=evolve(PINNED, sha256="b" * 64))
UNFINAL, KNOWN = evolve(TOOL, absent_is_final=False), evolve(BOTH, absent_is_final=False)
CASES: dict[EffectState, dict[str, Make]] = {
    EffectState.PROPOSED: {
        "its gate is met, and a slot is given": lambda: sending(GATED),
        "its check finds all as it was": _checked(Checked()),
        "its check finds a source changed": _checked(Checked(changed=(CHANGED,))),
        "its check finds it there already": _checked(Checked(found="p0")),
        "its check finds nothing out": _checked(Checked(problem="?")),
    },
    EffectState.DISPATCHING: {
        "its sender says: landed": _says(sending, Landed(reference="p1")),
        "its sender says: refused": _says(sending, Refused(reason="no")),
        "its sender says: surely not sent": _says(sending, NotSent(reason="no route", seconds=5.0)),
        "its sender says anything else": _says(sending, Unsure(reason="500")),
        "its sender dies, or is stopped": _lost(sending),
        "its sender never heard of it": _lost(sending, began=False),
        "sent again to a target that knows keys, its sender says: refused": _says(
            lambda: resent(DEDUP), Refused(reason="409")
        ),
        "sent again to a target that knows keys, its sender says: surely not sent": _says(
            lambda: resent(DEDUP), NotSent(reason="no route")
        ),
        "sent again after it was absent, its sender says: surely not sent": _says(
            lambda: resent(TOOL), NotSent(reason="no route", seconds=5.0)
        ),
    },
    EffectState.UNKNOWN: {
        "a look-up finds it": _says(looking, Landed(reference="p1")),
        "a look-up finds nothing, while it may be in flight": _says(looking, Absent()),
        "a look-up finds nothing after that, and that is final": _says(
            lambda: looking(passed=IN_FLIGHT), Absent()
        ),
        "a look-up finds nothing after that, and that is not final": _says(
            lambda: looking(UNFINAL, passed=IN_FLIGHT), Absent()
        ),
        "the same, of a target that knows keys": _says(lambda: looking(KNOWN, passed=IN_FLIGHT), Absent()),
        "a look-up decides nothing": _says(looking, Unsure(reason="503")),
        "a look-up decides nothing for the third time": _says(
            lambda: looking(before=2), Unsure(reason="503")
        ),
        "its look-up's worker dies": _lost(looking),
        "there is no look-up, its target knows keys": lambda: unknown(DEDUP),
        "there is neither": lambda: unknown(BLIND),
    },
}
"""What can happen to it in one state only."""


def in_words(play: Ledger) -> str:
    """How the effect stands."""
    row = play.effect()
    found = [row.state.value]
    if row.id in play.snapshot.errands:
        found.append(f"a {play.errand().kind.value.replace('_', '-')} is under way")
    if row.state is EffectState.UNKNOWN and row.resend:
        found.append("it goes again" + (" later" if row.not_before and play.wants() is None else ""))
    elif row.not_before is not None:
        found.append("looked up later" if row.state is EffectState.UNKNOWN or row.suspect else "tried later")
    if row.suspect:
        found.append("not before it was looked up")
    if row.gate is not None and row.gate.met is None and row.state is EffectState.PROPOSED:
        found.append("somebody is asked")
    if row.hold is not None:
        found.append(f"held: {row.hold.code}")
    elif row.code and row.state in (EffectState.WITHDRAWN, EffectState.PROPOSED):
        found.append(row.code)
    return ", ".join(found)


def outcome(state: EffectState, happens: str) -> str:
    """What becomes of an effect in that state, in words."""
    play = STATES[state][1]()
    before = play.effect()
    verdict = ALWAYS[happens](play)
    if isinstance(verdict, Refusal):
        return f"– (refused: {verdict.code})"
    if isinstance(verdict, Unchanged):
        return "– (nothing changes)"
    assert isinstance(verdict, Entry)
    if play.effect() == before:
        return "– (kept as evidence)" if verdict.evidence else "– (stays as it is)"
    return in_words(play)


def lines() -> list[str]:
    """The chapter on effects of the page."""
    drawn = ["| state | what it says |", "|---|---|"]
    drawn += [f"| {state.value} | {words} |" for state, (words, _) in STATES.items()]
    drawn += ["", "| state | what happens | becomes |", "|---|---|---|"]
    for state, (_, made) in STATES.items():
        assert state is made().effect().state
        drawn += [f"| {state.value} | {happens} | {outcome(state, happens)} |" for happens in ALWAYS]
        for happens, make in CASES.get(state, {}).items():
            drawn.append(f"| {state.value} | {happens} | {in_words(make())} |")
    return drawn
