"""Refusals: what a person's request is answered with, by value, when it cannot be carried out."""

from attrs import frozen


@frozen(kw_only=True)
class Refusal:
    """Why a request changes nothing: a slug, a full sentence, and the commands that are possible now."""

    code: str
    reason: str
    commands: tuple[str, ...] = ()
