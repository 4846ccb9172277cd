"""Who may decide: the kernel's word about a person, held against the rule in force and the host's word today.

Nothing of it is taken from a request. What nobody can tell is never a yes.
"""

from collections.abc import Iterable

from resumed.schemas.approvals import ApprovalRule, Facts, Standing
from resumed.schemas.job import Person
from resumed.schemas.refusal import Refusal

from .draft import Draft

NOBODY = 65_534
"""The number under which the kernel shows users that it cannot map here: anybody may be behind it."""
NAMES = "names"
"""The code of what cannot be told while the host does not say who somebody is."""
APPROVER, OPERATOR = "approver", "operator"


def standing_of(facts: Facts, uid: int) -> Standing | None:
    """What the host says today of that user; None where it was not asked, or cannot tell."""
    for each in facts.people:
        if each.uid == uid:
            return None if each.gids is None or each.roles is None else each
    return None


def is_one_of(whom: Iterable[str], facts: Facts, uid: int, gids: Iterable[int]) -> bool | None:
    """Whether a user with these groups is one of `user:NAME` and `group:NAME`, by today's numbers.

    None where it is none of those that the host knows, and does not know all of them.
    """
    numbers = {each.who: each.number for each in facts.members}
    groups = frozenset(gids)
    all_known = True
    for who in whom:
        number = numbers.get(who)
        if number is None:
            all_known = False
        elif number in groups if who.startswith("group:") else number == uid:
            return True
    return False if all_known else None


def is_let(
    rule: ApprovalRule, facts: Facts, uid: int, gids: Iterable[int], roles: Iterable[str]
) -> bool | None:
    """Whether the rule lets that user say yes; None while nobody can tell."""
    gids = tuple(gids)
    named = is_one_of(rule.by, facts, uid, gids) if rule.by else APPROVER in roles
    also = is_one_of(rule.also, facts, uid, gids) if rule.also else True
    if named is False or also is False:
        return False
    return None if named is None or also is None else True


def unknown(facts: Facts) -> str:
    """The names of a rule that the host does not know."""
    return ", ".join(each.who for each in facts.members if each.number is None)


def whom(rule: ApprovalRule) -> str:
    """Who is asked, for people."""
    asked = " or ".join(rule.by) if rule.by else "whoever has the role of an approver"
    return f"{asked}, of {' or '.join(rule.also)}" if rule.also else asked


def unplaced(draft: Draft, verb: str, facts: Facts | None, person: Person) -> Refusal | None:
    """Why this person can decide nothing at all now; None when that may be looked at further."""
    if facts is None or facts.problem:
        why = facts.problem if facts is not None else "nobody could say who may"
        return refused(draft, verb, NAMES, f"{why}; nothing was decided, ask again")
    if facts.placed:
        return refused(draft, verb, "placed", facts.placed)
    if person.uid == NOBODY:
        return refused(draft, verb, "nobody", f"uid {NOBODY} may be anybody")
    return None


def objection(draft: Draft, verb: str, facts: Facts | None, person: Person, *, yes: bool) -> Refusal | None:
    """Why this person may not decide so; None when it may. A no is the requester's as well."""
    if refusal := unplaced(draft, verb, facts, person):
        return refusal
    assert facts is not None
    rule = facts.rule
    if rule.via and person.via not in rule.via:
        return refused(
            draft, verb, "via", f"expected a decision by {' or '.join(rule.via)}, got {person.via}"
        )
    if not yes and person.uid == facts.requester_uid:
        return None
    today = standing_of(facts, person.uid)
    if today is None or today.gids is None or today.roles is None:
        said = f"nobody can tell now which groups uid {person.uid} is in"
        return refused(draft, verb, NAMES, f"{said}; nothing was decided, ask again")
    name = f"{person.name} (uid {person.uid})"
    kernel = (person.gid, *person.groups)
    for gids, when in ((kernel, ""), (today.gids, " today")):
        is_asked = is_let(rule, facts, person.uid, gids, today.roles)
        if is_asked is None:
            said = f"{whom(rule)} is asked, and this host does not know {unknown(facts)}"
            return refused(draft, verb, NAMES, f"{said}; nothing was decided")
        if not is_asked:
            said = f"{whom(rule)} is asked, and {name} is not one of them{when}"
            return refused(draft, verb, "not_asked", said)
    if yes:
        return _own(draft, verb, facts, person)
    return None


def _own(draft: Draft, verb: str, facts: Facts, person: Person) -> Refusal | None:
    """Why a yes of this person would be no other's."""
    if facts.rule.not_requester is not False:
        if facts.requester_uid == -1:
            return refused(draft, verb, NAMES, "nobody can tell whether it is asked by its requester")
        if facts.requester_uid == person.uid:
            return refused(
                draft, verb, "requester", f"{person.name} asked for it, and another person must allow it"
            )
    if not facts.rule.same_user and facts.jobs_uid == person.uid:
        said = f"jobs run as {person.name} (uid {person.uid}), and the policy wants somebody else"
        return refused(draft, verb, "same_user", said)
    return None


def fallen(facts: Facts, uids: Iterable[int]) -> tuple[str, str]:
    """Why one of those who said yes may not any more today: a code and a sentence; empty when all may.

    The code is `names` where nobody can tell.
    """
    for uid in uids:
        today = standing_of(facts, uid)
        if today is None or today.gids is None or today.roles is None:
            return NAMES, f"nobody can tell now which groups uid {uid} is in"
        is_asked = is_let(facts.rule, facts, uid, today.gids, today.roles)
        if is_asked is None:
            return NAMES, f"this host does not know {unknown(facts)}, one of which uid {uid} may be"
        if not is_asked:
            return "member", f"uid {uid}, who said yes, is not of {whom(facts.rule)} any more"
        if not facts.rule.same_user and facts.jobs_uid == uid:
            return "member", f"jobs run as uid {uid} by now, who said yes"
    return "", ""


def refused(draft: Draft, verb: str, code: str, reason: str, *commands: str) -> Refusal:
    """A refusal, with what to look at."""
    job = draft.job.id
    more = commands or (f"resumectl why {job}",)
    return Refusal(code=code, reason=f"cannot {verb} of {job}: {reason}", commands=more)
