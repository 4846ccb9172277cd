"""The hearing of people's decisions: which effect, draft or question is meant, and whose law it is then."""

from resumed.schemas import events
from resumed.schemas.askviews import AskKind
from resumed.schemas.refusal import Refusal

from . import asks, drafts, replies, rounds, rulings
from .draft import Draft
from .verdict import Unchanged

Choice = str | Refusal | Unchanged

GATED = frozenset({AskKind.APPROVE, AskKind.REVIEW})


def approve(draft: Draft, event: events.Approve) -> Choice:
    """Allow an effect, or accept a draft."""
    return _hear(draft, rounds.APPROVE, event)


def deny(draft: Draft, event: events.Deny) -> Choice:
    """Refuse an effect, or a draft."""
    return _hear(draft, rounds.DENY, event)


def send_back(draft: Draft, event: events.SendBack) -> Choice:
    """Have an effect, or a draft, made anew."""
    return _hear(draft, rounds.SEND_BACK, event)


def _hear(draft: Draft, decision: str, event: rounds.Decision) -> Choice:
    verb = f"{decision.replace('_', ' ')} what is asked by"
    found = asks.resolve(draft, verb, event.subject, GATED)
    if isinstance(found, Refusal):
        return found
    if found.kind is AskKind.REVIEW:
        return drafts.decide(draft, found.subject, event)
    return rulings.decide(draft, draft.effects[found.subject], decision, event)


def revoke(draft: Draft, event: events.Revoke) -> Choice:
    """Take a yes to an effect back."""
    found = asks.resolve(draft, "revoke an approval of", event.subject, frozenset({AskKind.APPROVE}))
    return found if isinstance(found, Refusal) else rulings.revoke(draft, draft.effects[found.subject], event)


def reply(draft: Draft, event: events.Reply) -> Choice:
    """Answer a question."""
    found = asks.resolve(draft, "answer what is asked by", event.subject, frozenset({AskKind.ANSWER}))
    return found if isinstance(found, Refusal) else replies.reply(draft, found.subject, event)
