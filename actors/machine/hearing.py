"""The hearing of people's decisions: which effect, draft or question is meant, and whose law it is then."""

from resumed.schemas import events
from resumed.schemas.askviews import AskKind
from resumed.schemas.refusal import Refusal

from . import asks, rounds, rulings
from .draft import Draft
from .verdict import Unchanged

Choice = str | Refusal | Unchanged

GATED = frozenset({AskKind.APPROVE})


def approve(draft: Draft, event: events.Approve) -> Choice:
    """Allow an effect."""
    return _on_effect(draft, rounds.APPROVE, event)


def deny(draft: Draft, event: events.Deny) -> Choice:
    """Refuse an effect."""
    return _on_effect(draft, rounds.DENY, event)


def send_back(draft: Draft, event: events.SendBack) -> Choice:
    """Have an effect made anew."""
    return _on_effect(draft, rounds.SEND_BACK, event)


def revoke(draft: Draft, event: events.Revoke) -> Choice:
    """Take a yes back."""
    found = asks.resolve(draft, "revoke an approval of", event.subject, GATED)
    return found if isinstance(found, Refusal) else rulings.revoke(draft, draft.effects[found.subject], event)


def _on_effect(draft: Draft, decision: str, event: events.Approve | events.Deny | events.SendBack) -> Choice:
    found = asks.resolve(draft, f"{decision.replace('_', ' ')} what is asked by", event.subject, GATED)
    if isinstance(found, Refusal):
        return found
    return rulings.decide(draft, draft.effects[found.subject], decision, event)
