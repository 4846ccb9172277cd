"""Drafts and questions that wait, for tests of the law: items at them, and what people say to them.

play = at_review(then="write")
play.does(approve())
"""

import hashlib
from typing import Any

from attrs import evolve
from gates_kit import BO, RULE, facts
from machine_kit import ANNA, Play

from resumed.schemas import decisions, events
from resumed.schemas.approvals import Member
from resumed.schemas.job import Artifact, Person

OFFER = decisions.Offer(name="caption", sha256="0" * 64, size=1, text="x")


def words(said: str) -> Artifact:
    """A text as it is kept."""
    return Artifact(
        name="caption", sha256=hashlib.sha256(said.encode()).hexdigest(), size=len(said), text=said
    )


FIRST, BETTER, OTHER = words("a boat"), words("a red boat"), words("a ship")


def reviewing(**more: Any) -> decisions.Reviewing:
    """What a step says that wants its draft looked at."""
    return decisions.Reviewing(**({"draft": OFFER, "rule": RULE} | more))


def at_review(*, kept: Artifact = FIRST, **more: Any) -> Play:
    """Item `a` waits for its draft to be looked at; `b` is done."""
    play = Play.fan_out("a", "b")
    play.start("a", "b")
    play.answer("b", decisions.Accepted())
    play.answer("a", reviewing(**more), kept=(kept,))
    return play


def approve(who: Person = BO, *, of: Artifact = FIRST, **more: Any) -> events.Approve:
    """Their yes to the draft of `a`."""
    given = {"facts": facts(who), "fingerprint": of.sha256, "subject": "a"}
    return events.Approve(by=who, **(given | more))


def deny(who: Person = BO, *, of: Artifact = FIRST, **more: Any) -> events.Deny:
    """Their no to the draft of `a`."""
    return events.Deny(by=who, subject="a", fingerprint=of.sha256, facts=facts(who), **more)


def send_back(who: Person = BO, *, of: Artifact = FIRST, **more: Any) -> events.SendBack:
    """Their wish to have it made anew."""
    return events.SendBack(by=who, subject="a", fingerprint=of.sha256, facts=facts(who), **more)


def asking(**more: Any) -> decisions.Asking:
    """What a step says that wants to know something."""
    given = {"text": "Two customers named Li: which?", "then": "write"}
    return decisions.Asking(**(given | more))


def at_question(**more: Any) -> Play:
    """Item `a` waits for an answer."""
    play = Play.fan_out("a")
    play.start("a")
    play.answer("a", asking(**more))
    return play


def reply(who: Person = BO, answer: str = "the first", **more: Any) -> events.Reply:
    """Their answer to what `a` asks; by the facts that the shell gathers for it."""
    found = facts(who)
    members = (Member(who="user:anna", number=ANNA.uid), Member(who="group:curators", number=500))
    given = {"facts": evolve(found, members=members), "subject": "a"}
    return events.Reply(by=who, answer=answer, **(given | more))
