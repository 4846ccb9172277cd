"""What people are asked, what may happen to it, and what the law then does: rows of `docs/states.md`."""

from collections.abc import Callable
from typing import Any

from attrs import evolve
from gates_kit import BO, CY, OLA, RULE, approve, deny, facts, gated, judged, let_go, revoke, row, send_back
from machine_kit import ANNA, Play
from review_kit import BETTER, at_question, at_review, reply
from review_kit import approve as accept
from review_kit import deny as refuse
from review_kit import send_back as back

from resumed.actors.machine import approvals
from resumed.actors.machine.approvals import Word
from resumed.actors.machine.verdict import Unchanged, Verdict
from resumed.schemas import events
from resumed.schemas.approvals import ApprovalRule, Facts, Member, Standing
from resumed.schemas.job import Budget
from resumed.schemas.ledger import EffectState
from resumed.schemas.limits import Limits
from resumed.schemas.refusal import Refusal

TWO = evolve(RULE, quorum=2)


def _gated(rule: ApprovalRule = RULE) -> Play:
    return gated("a", rule=rule, budget=Budget(usd="10"))


def _after(happen: Callable[[Play], Any], rule: ApprovalRule = RULE) -> Play:
    play = _gated(rule)
    happen(play)
    return play


def _sent(play: Play) -> None:
    play.does(approve(play, BO))
    let_go(play, facts(BO))


STANDINGS: dict[str, Callable[[], Play]] = {
    "asked": _gated,
    "asked, one of two has said yes": lambda: _after(
        lambda play: play.does(approve(play, BO, facts=facts(BO, rule=TWO))), TWO
    ),
    "allowed": lambda: _after(lambda play: play.does(approve(play, BO))),
    "allowed, and let go": lambda: _after(_sent),
    "denied": lambda: _after(lambda play: play.does(deny(play, BO))),
    "sent back": lambda: _after(lambda play: play.does(send_back(play, BO))),
}
"""Everywhere a call can stand with people."""


def _rule(play: Play) -> ApprovalRule:
    return play.snapshot.contract.effects[0].approve or RULE


def _time(seconds: float) -> Callable[[Play], Verdict]:
    def passes(play: Play) -> Verdict:
        play.wait(seconds)
        return play.tell(events.Tick())

    return passes


HAPPENS: dict[str, Callable[[Play], Verdict]] = {
    "`approve` by the same": lambda play: play.tell(approve(play, BO, facts=facts(BO, rule=_rule(play)))),
    "`approve` by another": lambda play: play.tell(approve(play, CY, facts=facts(CY, rule=_rule(play)))),
    "`approve` of other contents": lambda play: play.tell(approve(play, CY, fingerprint="f" * 64)),
    "`deny` by another": lambda play: play.tell(deny(play, CY, facts=facts(CY, rule=_rule(play)))),
    "`send-back` by another": lambda play: play.tell(send_back(play, CY, facts=facts(CY, rule=_rule(play)))),
    "`revoke` by the same": lambda play: play.tell(revoke(play, BO, facts=facts(BO, rule=_rule(play)))),
    "`revoke` by an operator": lambda play: play.tell(revoke(play, OLA, facts=facts(OLA, rule=_rule(play)))),
    "the yes's time is over": _time(300.0),
    "the question's time is over": _time(1000.0),
    "`extend`": lambda play: play.tell(events.Extend(by=ANNA, usd="20", allowed=Limits())),
    "`cancel`": lambda play: play.tell(events.Cancel(by=ANNA)),
}


def _call(play: Play, before: Play, verdict: Verdict) -> str:
    """What became of the call."""
    if isinstance(verdict, Refusal):
        return f"– (refused: {verdict.code})"
    effect, old = row(play), row(before)
    if effect == old and isinstance(verdict, Unchanged):
        return "– (the recorded answer)" if "already" in verdict.reason else "– (nothing changes)"
    if effect == old:
        return "– (stays as it is)"
    if effect.state is not EffectState.PROPOSED:
        return f"{effect.state}, {effect.code}" if effect.code else effect.state.value
    gate, was = effect.gate, old.gate
    assert gate is not None
    assert was is not None
    if gate.round > was.round:
        return f"asked anew: {gate.why}"
    return "allowed" if gate.met is not None else "asked, one more has said yes"


# what changes between the yes and the dispatch -> the facts then, what becomes of the call, and why
AGAIN: dict[str, tuple[Callable[[Play], Any], Facts | None, Word, str]] = {
    "all as it was": (lambda play: None, facts(BO), Word.GO, ""),
    "nobody could say": (lambda play: None, None, Word.HOLD, "names"),
    "the names service is away": (lambda play: None, facts(BO, problem="away"), Word.HOLD, "names"),
    "the host was not asked about the reviewer": (lambda play: None, facts(), Word.HOLD, "names"),
    "nobody can tell the reviewer's groups": (
        lambda play: None,
        facts(people=(Standing(uid=BO.uid, gids=None),)),
        Word.HOLD,
        "names",
    ),
    "the host does not know the rule's group any more": (
        lambda play: None,
        facts(BO, members=(Member(who="group:curators"),)),
        Word.HOLD,
        "names",
    ),
    "nobody can tell the requester's access": (
        lambda play: None,
        facts(BO, requester=None),
        Word.HOLD,
        "names",
    ),
    "the requester lost its access": (lambda play: None, facts(BO, requester=False), Word.HOLD, "access"),
    "the reviewer has left the group": (
        lambda play: None,
        facts(people=(Standing(uid=BO.uid, gids=(1002,)),)),
        Word.ANEW,
        "member",
    ),
    "the host does not know the reviewer any more": (
        lambda play: None,
        facts(people=(Standing(uid=BO.uid, gids=()),)),
        Word.ANEW,
        "member",
    ),
    "the rule has changed": (
        lambda play: None,
        facts(BO, rule=evolve(RULE, valid_for=9e4)),
        Word.ANEW,
        "policy",
    ),
    "the yes's time is over": (lambda play: play.wait(300.0), facts(BO), Word.ANEW, "expired"),
    "the yes was taken back": (
        lambda play: play.does(revoke(play, BO)),
        facts(BO),
        Word.UNASKED,
        "approval",
    ),
}

WORDS = {
    Word.GO: "it is let go, and the yes is spent on its key",
    Word.UNASKED: "it stays asked",
    Word.ANEW: "it is asked anew",
    Word.HOLD: "it is held, and judged again later",
    Word.CHANGED: "it is withdrawn",
}


def judged_again(case: str) -> approvals.Judgement:
    """What becomes of a call that was allowed, when that has changed since."""
    change, found, _, _ = AGAIN[case]
    play = gated("a")
    play.does(approve(play, BO))
    change(play)
    return judged(play, found)


DRAFT: dict[str, Callable[[Play], Verdict]] = {
    "`approve`": lambda play: play.tell(accept()),
    "`approve`, with a text of its own": lambda play: play.tell(accept(text=BETTER)),
    "`approve` of another revision": lambda play: play.tell(accept(of=BETTER)),
    "`deny`": lambda play: play.tell(refuse()),
    "`send-back`": lambda play: play.tell(back(reason="name the boat")),
    "its time is over": _time(1000.0),
    "`skip`": lambda play: play.tell(events.Skip(by=ANNA, items=("a",))),
    "`cancel`": lambda play: play.tell(events.Cancel(by=ANNA)),
}
QUESTION: dict[str, Callable[[Play], Verdict]] = {
    "`answer`": lambda play: play.tell(reply()),
    "`answer`, an operator's": lambda play: play.tell(reply(OLA)),
    "its time is over": _time(100.0),
    "`answer`, an operator's, after its time": lambda play: (_time(100.0)(play), play.tell(reply(OLA)))[1],
    "`skip`": lambda play: play.tell(events.Skip(by=ANNA, items=("a",))),
    "`cancel`": lambda play: play.tell(events.Cancel(by=ANNA)),
}


def _unit(play: Play, verdict: Verdict) -> str:
    if isinstance(verdict, Refusal):
        return f"– (refused: {verdict.code})"
    unit, review = play.unit("a"), play.snapshot.reviews.get("a")
    said = [unit.state.value]
    if play.snapshot.outcome is not None:
        said = [f"its job is {play.snapshot.outcome.ending}"]
    elif unit.state.value == "pending":
        said = [f"step `{unit.at}` begins", *(["with the note"] if unit.note else [])]
    if review is not None and review.gate.round > 1:
        said.append(f"asked anew: {review.gate.why}")
    if review is not None and review.draft.revision > 1:
        said.append(f"with revision {review.draft.revision}")
    if any(each.widened and each.answered is None for each in play.snapshot.questions):
        said.append("the operators are asked")
    return ", ".join(said)


def lines() -> list[str]:
    """The tables."""
    text = ["| a call is | what happens | becomes |", "|---|---|---|"]
    for standing, make in STANDINGS.items():
        for words, happen in HAPPENS.items():
            before, play = make(), make()
            text.append(f"| {standing} | {words} | {_call(play, before, happen(play))} |")
    text += ["", "What allowed a call is judged once more in the commit that lets it go:", ""]
    text += ["| since the yes | then | code |", "|---|---|---|"]
    for words in AGAIN:
        judgement = judged_again(words)
        text.append(f"| {words} | {WORDS[judgement.word]} | {judgement.code} |")
    text += ["", "A draft of an item, made at step `read` and followed by step `write`:", ""]
    text += ["| what happens | the item |", "|---|---|"]
    for words, happen in DRAFT.items():
        play = at_review(then="write")
        text.append(f"| {words} | {_unit(play, happen(play))} |")
    text += ["", "A question put to a group, whose answer step `write` is given:", ""]
    text += ["| what happens | the item |", "|---|---|"]
    for words, happen in QUESTION.items():
        play = at_question(of="group:curators", within=100.0)
        text.append(f"| {words} | {_unit(play, happen(play))} |")
    return text
