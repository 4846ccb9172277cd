"""What became of effects, as authors say it of their targets and are told of it by their handlers.

`send` answers `Landed`, `Refused` or `NotSent`, `look_up` answers `Landed` or `Absent`; anything else, be it
`Unsure`, an exception, a cut-off or silence, is unknown. A handler is given what a person or a target
decided: every form there is, so that a type checker can make its author match all of them.
"""

from typing import Any

from attrs import frozen

from resumed.schemas import decisions
from resumed.schemas.errors import AuthorError
from resumed.schemas.frames import Given, Outcome, Run
from resumed.schemas.ledger import EffectState

from . import calls, faulttext, offers
from .durations import seconds


@frozen
class Landed:
    """The target has it, under `reference`, a name of its own; `response` is what it answered."""

    reference: str
    response: str | bytes | None = None


@frozen
class Refused:
    """The target surely refused: it did not happen, and will not."""

    reason: str
    response: str | bytes | None = None


@frozen
class NotSent:
    """Surely nothing reached the target; it may be tried again after `wait`, a duration or seconds."""

    reason: str
    wait: str | float = "30s"


@frozen
class Absent:
    """The target has nothing under this key."""

    response: str | bytes | None = None


@frozen
class Unsure:
    """Nobody can tell from what the target answered."""

    reason: str
    response: str | bytes | None = None


@frozen
class Denied:
    """A reviewer refused; `reason` in their words."""

    reason: str


@frozen
class SentBack:
    """A reviewer wants it made anew; `note` says what is to change."""

    note: str


@frozen
class Changed:
    """A source, or the target's object, was no longer what the call relies on: nothing was sent."""

    reason: str


@frozen
class Lapsed:
    """What was asked is over without a yes: nothing was sent."""

    reason: str


@frozen
class Withdrawn:
    """It was taken back for another reason, which `code` names: nothing was sent."""

    code: str
    reason: str


SendAnswer = Landed | Refused | NotSent | Unsure
LookUpAnswer = Landed | Absent | Unsure
SEND_FORMS = (Landed, Refused, NotSent, Unsure)
LOOK_UP_FORMS = (Landed, Absent, Unsure)
Unlanded = Refused | Denied | SentBack | Changed | Lapsed | Withdrawn
"""What a step named by `otherwise` is given of an effect that did not land."""
AnyOutcome = Landed | Unlanded
"""What it is given of each effect when there were several: those that landed, too."""


def spell(said: Any, forms: tuple[type, ...], what: str, run: Run) -> Any:
    """The words on the wire for what `send` or `look_up` returned; AuthorError when it is no such answer."""
    if not isinstance(said, forms):
        expected = ", ".join(form.__name__ for form in forms)
        raise AuthorError(f"{what} returned {type(said).__name__}, expected one of {expected}")
    if isinstance(said, NotSent):
        return decisions.NotSent(reason=_text(said.reason, what), seconds=seconds(said.wait))
    response = _response(getattr(said, "response", None), what, run)
    if isinstance(said, Landed):
        return decisions.Landed(reference=_text(said.reference, what), response=response)
    if isinstance(said, Refused):
        return decisions.Refused(reason=_text(said.reason, what), response=response)
    if isinstance(said, Unsure):
        return decisions.Unsure(reason=_text(said.reason, what), response=response)
    return decisions.Absent(response=response)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise AuthorError(f"{what} answered with {type(value).__name__} where a text belongs")
    return faulttext.clean(value)


def _response(value: Any, what: str, run: Run) -> decisions.Offer | None:
    if value is None:
        return None
    if isinstance(value, str):
        return offers.of_text("response", value, run.scratch)
    if isinstance(value, bytes):
        return offers.of_bytes("response", value, run.scratch)
    raise AuthorError(f"{what} answered with a response of {type(value).__name__}, expected text or bytes")


def given(given: Given | None, folder: str) -> Any:
    """What a handler is given: one outcome or a tuple of them, a reviewed text, or an answer; None when its
    unit waited for nothing. A text that is not UTF-8 comes as bytes.
    """
    if given is None:
        return None
    if given.outcomes:
        found = tuple(_outcome(each) for each in given.outcomes)
        return found[0] if len(found) == 1 else found
    if given.text is not None:
        raw = calls.read(given.text, folder)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw
    return given.answer


def _outcome(outcome: Outcome) -> AnyOutcome:
    if outcome.state is EffectState.CONFIRMED:
        return Landed(outcome.reference)
    if outcome.state is EffectState.REJECTED:
        return Refused(outcome.reason)
    if outcome.code == "denied":
        return Denied(outcome.reason)
    if outcome.code == "sent_back":
        return SentBack(outcome.reason)
    if outcome.code == "changed":
        return Changed(outcome.reason)
    if outcome.code == "lapsed":
        return Lapsed(outcome.reason)
    return Withdrawn(outcome.code, outcome.reason)
