"""What people are asked: pure, from one snapshot; and which of it a person means who names it.

Every question has a short id that stays the same as long as it is asked. Position is no identity: a decision
that could mean two questions, or that names the job alone, means none.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from attrs import frozen

from resumed.schemas import jcs
from resumed.schemas.approvals import ApprovalRule, Gate
from resumed.schemas.askviews import AskKind, AskRow
from resumed.schemas.durations import spell
from resumed.schemas.instant import Instant, seconds_until
from resumed.schemas.job import Item
from resumed.schemas.ledger import Approval, Effect, EffectState, Question
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot

from . import approvals, errands, questions, reviews, rounds
from .draft import Draft

Standing = Snapshot | Draft
InForce = Callable[[str, ApprovalRule], ApprovalRule]

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letter that is read for another, or for a digit."""
LENGTH = 6
MOST_NAMED = 20
"""Questions that a refusal names."""
MOST_WORDS = 80
UNSETTLED = (EffectState.DISPATCHING, EffectState.UNKNOWN)


@lru_cache(maxsize=65_536)
def short(job: str, kind: AskKind, subject: str, number: int) -> str:
    """The short id of one question in one round; another round is another question."""
    digest = hashlib.sha256("\0".join((job, kind, subject, str(number))).encode()).digest()
    value = int.from_bytes(digest[:4]) >> 2
    return "".join(ALPHABET[value >> 5 * (LENGTH - 1 - place) & 31] for place in range(LENGTH))


@frozen(kw_only=True)
class Asked:
    """One thing that is, or was, asked of people; `since` is a wall instant, 0 where it is over."""

    job: str
    kind: AskKind
    subject: str
    item: str
    round: int
    since: int = 0

    @property
    def id(self) -> str:
        """Its short id."""
        return short(self.job, self.kind, self.subject, self.round)


def _asked(
    standing: Standing, kind: AskKind, subject: str, item: str, number: int, since: Instant | None = None
) -> Asked:
    wall = 0 if since is None else since.wall
    return Asked(job=standing.job.id, kind=kind, subject=subject, item=item, round=number, since=wall)


# ---- what is asked now ------------------------------------------------------------------------------------


def wants_approval(effect: Effect) -> bool:
    """Whether an effect waits for a yes."""
    return effect.state is EffectState.PROPOSED and not approvals.is_met(effect)


def _unit(standing: Standing, name: str) -> Item | None:
    return standing.position if name == "" else standing.items.get(name)


def _open(standing: Standing) -> Iterator[Asked]:
    """What is asked now; of a job that has ended, or is being ended, only what left."""
    table, ending = standing.effects, standing.cancel is not None or standing.expiry is not None
    for name in table.held:
        effect = table[name]
        if errands.wants_word(effect):
            since = None if effect.hold is None else effect.hold.since
            yield _asked(standing, AskKind.SETTLE, name, effect.item, effect.dispatches, since)
    if standing.outcome is not None:
        return
    for name in table.unsettled:
        effect = table[name]
        if effect.gate is not None and wants_approval(effect) and not (ending or errands.wants_word(effect)):
            gate = effect.gate
            yield _asked(standing, AskKind.APPROVE, name, effect.item, gate.round, gate.asked)
    if ending:
        return
    for review in standing.reviews.values():
        if reviews.is_open(standing.items.get(review.unit), review):
            gate = review.gate
            yield _asked(standing, AskKind.REVIEW, review.unit, review.unit, gate.round, gate.asked)
    for question in standing.questions:
        if questions.waits(_unit(standing, question.unit), question):
            yield _asked(standing, AskKind.ANSWER, question.id, question.unit, 1, question.asked)


@frozen(kw_only=True)
class Tally:
    """How much of one kind is asked now, and of whom the oldest of it is asked."""

    kind: AskKind
    count: int
    whom: tuple[str, ...] = ()
    role: str = ""


def tally(snapshot: Snapshot) -> list[Tally]:
    """What the job asks of people now, counted: cheap, also when it asks very much. What may have left comes
    first, then the kind that is asked most."""
    kinds: dict[AskKind, list[Asked]] = {}
    for each in _open(snapshot):
        kinds.setdefault(each.kind, []).append(each)
    found = []
    for kind, asked in kinds.items():
        first = _row(snapshot, min(asked, key=lambda each: each.since), [], as_stated)
        found.append(Tally(kind=kind, count=len(asked), whom=first.whom, role=first.role))
    return sorted(found, key=lambda each: (each.kind is not AskKind.SETTLE, -each.count))


def as_stated(tool: str, stated: ApprovalRule) -> ApprovalRule:
    """The rule that a contract states, where nobody bounds it."""
    del tool
    return stated


def asks(snapshot: Snapshot, now: Instant, in_force: InForce = as_stated) -> list[AskRow]:
    """What the job asks of people now, oldest first.

    `in_force` gives the rule for a tool (for a draft: the empty name) that its contract states so.
    """
    found = list(_open(snapshot))
    if not found:
        return []
    given: dict[str, list[Approval]] = {}
    for row in snapshot.approvals:
        given.setdefault(row.effect, []).append(row)
    rows = [_row(snapshot, each, given.get(each.subject, []), in_force) for each in found]
    return sorted(rows, key=lambda row: (row.asked, row.id))


def _row(snapshot: Snapshot, asked: Asked, given: list[Approval], in_force: InForce) -> AskRow:
    if asked.kind is AskKind.ANSWER:
        question = next(row for row in snapshot.questions if row.id == asked.subject)
        return _answer(snapshot, asked, question)
    if asked.kind is AskKind.REVIEW:
        review = snapshot.reviews[asked.subject]
        rule = in_force("", review.rule)
        what = f"{review.unit}, revision {review.draft.revision}"
        return _gated(snapshot, asked, review.gate, rule, given, what, review.draft.sha256)
    effect = snapshot.effects[asked.subject]
    if asked.kind is AskKind.APPROVE:
        tool, gate = snapshot.contract.tool(effect.tool), effect.gate
        rule = ApprovalRule() if tool is None else in_force(effect.tool, approvals.rule_of(tool))
        assert gate is not None
        what = f"{words(effect)}, again after {effect.again}" if effect.again else words(effect)
        return _gated(snapshot, asked, gate, rule, given, what, effect.fingerprint)
    return _settle(snapshot, asked, effect)


def _gated(
    snapshot: Snapshot,
    asked: Asked,
    gate: Gate,
    rule: ApprovalRule,
    given: list[Approval],
    what: str,
    fingerprint: str,
) -> AskRow:
    return AskRow(
        id=asked.id,
        kind=asked.kind,
        job=snapshot.job.id,
        subject=asked.subject,
        item=asked.item,
        what=what,
        asked=asked.since,
        until=0 if gate.until is None else gate.until.wall,
        otherwise="asked again",
        whom=rule.by,
        also=rule.also,
        given=len({row.uid for row in rounds.given(given, gate)}),
        quorum=rule.quorum,
        not_requester=rule.not_requester is not False,
        requester=snapshot.job.requester,
        fingerprint=fingerprint,
        round=gate.round,
        again=rounds.WHYS.get(gate.why, gate.why),
        record=snapshot.sequence,
    )


def _answer(snapshot: Snapshot, asked: Asked, question: Question) -> AskRow:
    until = question.deadline
    lapses = until is not None and not question.widened
    return AskRow(
        id=asked.id,
        kind=asked.kind,
        job=snapshot.job.id,
        subject=asked.subject,
        item=asked.item,
        what=question.text,
        asked=asked.since,
        until=until.wall if until is not None and lapses else 0,
        otherwise="goes to operators" if lapses else "stays asked",
        whom=() if question.widened else (questions.asked_of(question, snapshot.job.owner),),
        role="operator" if question.widened else "viewer",
        requester=snapshot.job.requester,
        record=snapshot.sequence,
    )


def _settle(snapshot: Snapshot, asked: Asked, effect: Effect) -> AskRow:
    hold = effect.hold
    return AskRow(
        id=asked.id,
        kind=asked.kind,
        job=snapshot.job.id,
        subject=asked.subject,
        item=asked.item,
        what=f"{words(effect)}: did it land?",
        asked=asked.since,
        otherwise="stays held",
        whom=() if hold is None or ":" not in hold.owner else (hold.owner,),
        role="operator",
        requester=snapshot.job.requester,
        record=snapshot.sequence,
    )


def words(effect: Effect) -> str:
    """An effect in a few words: what for, and where to."""
    said = effect.business_object or _arguments(effect.arguments)
    said = said if len(said) <= MOST_WORDS else f"{said[: MOST_WORDS - 2]}.."
    return f"{effect.tool} {said} to {effect.target}" if said else f"{effect.tool} to {effect.target}"


@lru_cache(maxsize=16_384)
def _arguments(text: str) -> str:
    values = jcs.read(text, "cannot tell what is asked for")
    pairs = values.items() if isinstance(values, dict) else ()
    plain = [f"{name}={_spelled(value)}" for name, value in pairs if not isinstance(value, dict | list)]
    return ", ".join(plain)[: MOST_WORDS + 1]  # what is made of others is too long for a line


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else jcs.spell(value).decode()


def said(snapshot: Snapshot) -> str:
    """How many drafts and questions of the job wait for people, in words; empty when none does."""
    if not (snapshot.reviews or snapshot.questions):
        return ""
    found = [each for each in _open(snapshot) if each.kind in (AskKind.REVIEW, AskKind.ANSWER)]
    drafts = sum(each.kind is AskKind.REVIEW for each in found)
    counts = ((drafts, "draft"), (len(found) - drafts, "question"))
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    return f"waiting for people: {' and '.join(parts)}" if parts else ""


def left(row: AskRow, now: Instant) -> str:
    """How long a question still stands, in words; empty when it stands until it is answered."""
    if not row.until:
        return ""
    return spell(seconds_until(Instant(wall=row.until, boot="", up=0), now))


# ---- which of it is meant ---------------------------------------------------------------------------------


def resolve(standing: Standing, verb: str, name: str, kinds: frozenset[AskKind]) -> Asked | Refusal:
    """What a person means by a name: an effect's id, a question's, a unit's, or a short id or a beginning of
    one. What is decided already is found as well, so that the same decision made again is answered."""
    if (found := _exact(standing, name, kinds)) is not None:
        return found
    now = sorted((each for each in _open(standing) if each.kind in kinds), key=lambda each: each.subject)
    if not name:
        return _refused(standing, verb, "which", "it does not say which of what it asks" if now else "", now)
    past = [each for each in _all(standing) if each.kind in kinds]
    for pool in (now, past):
        if exact := [each for each in pool if each.subject == name]:
            return exact[-1]
    lower = name.lower()
    for pool in (now, past):
        meant = [each for each in pool if each.id.startswith(lower) or (each.item and each.item == name)]
        if len({(each.kind, each.subject) for each in meant}) == 1:
            return meant[-1]
        if meant:
            return _refused(standing, verb, "ambiguous", f"{name} may mean more than one question", meant)
    return _refused(standing, verb, "no_such_ask", f"nothing that it asks is called {name}", now)


def _exact(standing: Standing, name: str, kinds: frozenset[AskKind]) -> Asked | None:
    """What bears the name whole, and is on record; looked up, not looked for, so that many cost little."""
    effect = standing.effects.get(name)
    if effect is not None:
        word = errands.wants_word(effect) or AskKind.APPROVE not in kinds or effect.gate is None
        if AskKind.SETTLE in kinds and word and effect.dispatches:
            return _asked(standing, AskKind.SETTLE, name, effect.item, effect.dispatches)
        if AskKind.APPROVE in kinds and effect.gate is not None:
            return _asked(standing, AskKind.APPROVE, name, effect.item, effect.gate.round)
    review = standing.reviews.get(name)
    if AskKind.REVIEW in kinds and review is not None:
        return _asked(standing, AskKind.REVIEW, name, name, review.gate.round)
    if AskKind.ANSWER in kinds and any(row.id == name for row in standing.questions):
        row = next(row for row in standing.questions if row.id == name)
        return _asked(standing, AskKind.ANSWER, name, row.unit, 1)
    return None


def _all(standing: Standing) -> Iterator[Asked]:
    """All that was ever asked and is still on record, each round of it."""
    for effect in standing.effects:
        for number in range(1, effect.gate.round + 1) if effect.gate is not None else ():
            yield _asked(standing, AskKind.APPROVE, effect.id, effect.item, number)
        for number in range(1, effect.dispatches + 1):
            yield _asked(standing, AskKind.SETTLE, effect.id, effect.item, number)
    given = standing.approvals if isinstance(standing, Snapshot) else standing.all_approvals()
    for row in given:
        if row.scope == rounds.DRAFT:
            yield _asked(standing, AskKind.REVIEW, row.effect, row.effect, row.round)
    for review in standing.reviews.values():
        yield _asked(standing, AskKind.REVIEW, review.unit, review.unit, review.gate.round)
    for question in standing.questions:
        yield _asked(standing, AskKind.ANSWER, question.id, question.unit, 1)


def _refused(standing: Standing, verb: str, code: str, reason: str, found: list[Asked]) -> Refusal:
    job = standing.job.id
    names = [f"{each.id} ({each.kind} {each.subject or 'the job'})" for each in found[:MOST_NAMED]]
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    asked = f"it asks {', '.join(names)}{more}" if names else "it asks nobody anything now"
    said = f"cannot {verb} {job}: {reason}; {asked}" if reason else f"cannot {verb} {job}: {asked}"
    commands = ("resumectl inbox",) if names else (f"resumectl history {job}",)
    return Refusal(code=code, reason=said, commands=commands)
