"""What people answer to questions: the first answer counts, and who comes later is told whose it was."""

from attrs import evolve

from resumed.schemas import events
from resumed.schemas.approvals import Facts
from resumed.schemas.instant import moment
from resumed.schemas.job import Person
from resumed.schemas.ledger import Question
from resumed.schemas.refusal import Refusal

from . import deciders, questions
from .deciders import refused
from .draft import Draft
from .handing import enter
from .requests import ended, stopping
from .settle import settle
from .verdict import Unchanged

Choice = str | Refusal | Unchanged

MOST = 64 * 1024
"""Bytes of an answer: it travels in the job's own line."""


def reply(draft: Draft, name: str, event: events.Reply) -> Choice:
    """One person's answer to one question."""
    verb = f"answer {name}"
    row = next((each for each in draft.questions if each.id == name), None)
    if row is not None and row.answered is not None:
        said = f"answered already by {row.answered_by}, at {moment(row.answered.wall)}: {row.answer[:200]!r}"
        if row.answer == event.answer:
            return Unchanged(reason=f"{name} is {said}")
        return refused(draft, verb, "decided", said, f"resumectl show {draft.job.id}")
    if refusal := ended(draft, f"{verb} of") or stopping(draft, f"{verb} of"):
        return refusal
    unit = None if row is None else draft.unit(row.unit)
    if row is None or unit is None or not questions.waits(unit, row):
        return refused(draft, verb, "decided", "it does not wait for an answer any more")
    if refusal := deciders.unplaced(draft, verb, event.facts, event.by) or _wrong(draft, verb, row, event):
        return refusal
    assert event.facts is not None
    if refusal := _objection(draft, verb, row, event.facts, event.by):
        return refusal
    unit = enter(unit, row.then, data=unit.data)
    answered = evolve(
        row, answer=event.answer, answered_by=event.by.name, answered=draft.now, led=unit.occurrence
    )
    questions.put(draft, answered)
    draft.put(unit)
    settle(draft)
    return f"answered {name}"


def _wrong(draft: Draft, verb: str, row: Question, event: events.Reply) -> Refusal | None:
    """Why this is no answer to the question."""
    if not event.answer.strip():
        return refused(draft, verb, "no_answer", f"the answer is empty; it asks: {row.text}")
    if len(event.answer.encode()) > MOST:
        return refused(draft, verb, "no_answer", f"the answer is longer than {MOST} bytes")
    if row.choices and event.answer not in row.choices:
        named = ", ".join(row.choices)
        return refused(draft, verb, "no_choice", f"expected one of {named}; got {event.answer[:80]!r}")
    return None


def _objection(draft: Draft, verb: str, row: Question, facts: Facts, person: Person) -> Refusal | None:
    """Why this person's answer is not asked for; None when it is."""
    today = deciders.standing_of(facts, person.uid)
    if today is None or today.gids is None or today.roles is None:
        said = f"nobody can tell now which groups uid {person.uid} is in"
        return refused(draft, verb, deciders.NAMES, f"{said}; nothing was decided, ask again")
    whom = questions.asked_of(row, draft.job.owner)
    found = [
        deciders.is_one_of((whom,), facts, person.uid, gids)
        for gids in ((person.gid, *person.groups), today.gids)
    ]
    if all(found):
        return None
    if (row.widened or not row.asked_of) and deciders.OPERATOR in today.roles:
        return None
    if None in found:
        said = f"{whom} is asked, and this host does not know {deciders.unknown(facts)}"
        return refused(draft, verb, deciders.NAMES, f"{said}; nothing was decided")
    name = f"{person.name} (uid {person.uid})"
    return refused(draft, verb, "not_asked", f"{whom} is asked, and {name} is not")
