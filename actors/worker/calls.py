"""Calls: an author's effect becomes the words that are stored, and is made again of these words alone.

A field binds by its value, bytes by their sha256 and size. What is sent is never what a handler made: it is
read back from the stored call, so that a resend is the same to the byte.
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, Protocol

import attrs

from resumed.schemas import jcs, keys, strict
from resumed.schemas.decisions import Offer
from resumed.schemas.errors import AuthorError, FaultyInputError
from resumed.schemas.frames import CallGiven, Run
from resumed.schemas.job import Artifact
from resumed.schemas.ledger import ToolContract

from . import faulttext, offers

PLAIN: tuple[type, ...] = (str, int, bool, float, Decimal)
BYTES: tuple[type, ...] = (bytes, Artifact)
KINDS = "str, int, bool, float, Decimal, bytes or Artifact"


class Call:
    """One call on its way: what `send` and `look_up` are given beside the arguments.

    In `observe` before anything is stored, `key` is empty and `attempt` 0.
    """

    def __init__(
        self, run: Run, contract: ToolContract, secrets: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        self._run = run
        self._call = run.call
        self._contract = contract
        self._secrets = secrets

    def __repr__(self) -> str:
        return f"<call {self.key or 'of ' + self._contract.tool!r}>"

    @property
    def key(self) -> str:
        """The operation key, 64 hex digits: the same for every send of this call, and for no other call."""
        return self._call.operation_key if self._call is not None else ""

    @property
    def epoch(self) -> int:
        """It never falls: a target that keeps the highest one it saw can refuse older senders."""
        return self._run.epoch

    @property
    def attempt(self) -> int:
        """Counts the sends under this key, this one included."""
        return self._call.attempt if self._call is not None else 0

    @property
    def timeout(self) -> float:
        """Seconds after which the call is cut off, and its outcome is unknown."""
        return self._call.timeout if self._call is not None else self._contract.timeout

    @property
    def job(self) -> str:
        """The job that it is made for."""
        return self._run.job

    @property
    def target(self) -> str:
        """The target's name, as the effect declares it."""
        return self._contract.target

    @property
    def address(self) -> str:
        """Where the target is."""
        return self._contract.address

    @property
    def account(self) -> str:
        """Under which account it is written to."""
        return self._contract.account

    def body(self, of: Artifact) -> bytes:
        """The bytes of an artifact among the arguments; AuthorError when they are missing or damaged."""
        return read(of, self._run.artifacts)

    def secret(self, name: str) -> bytes:
        """The credential of that name, which the effect must name in its `secrets`; it is stored nowhere."""
        found = self._secrets.get(name)
        if found is None:
            named = ", ".join(self._secrets) or "none"
            raise AuthorError(f"{self._contract.tool} asks for the credential {name!r}, and names {named}")
        return found


class Sends(Protocol):
    """What an effect's class must have; `look_up`, `observe` and `show` are its own choice."""

    async def send(self, call: Call, /) -> Any:
        """Do it once."""


def read(artifact: Artifact, folder: str) -> bytes:
    """An artifact's bytes, held against its digest; `folder` holds those that do not travel in the record."""
    if artifact.base64 is not None:
        raw = base64.b64decode(artifact.base64)
    elif artifact.text is not None:
        raw = artifact.text.encode()
    else:
        try:
            with open(artifact.path or os.path.join(folder, artifact.sha256), "rb") as file:
                raw = file.read()
        except OSError as error:
            said = error.strerror or str(error)
            raise AuthorError(f"cannot read artifact {artifact.name} ({artifact.sha256}): {said}") from None
    if hashlib.sha256(raw).hexdigest() != artifact.sha256:
        raise AuthorError(
            f"cannot read artifact {artifact.name} ({artifact.sha256}): its bytes fail the digest"
        )
    return raw


# ---- to words -------------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Spelled:
    """One effect in words: what binds and what does not, each as RFC 8785 text, and the bytes they name."""

    arguments: str
    unbound: str
    bodies: tuple[Offer, ...]


def spell(effect: Any, tool: str, unbound: tuple[str, ...], run: Run) -> Spelled:
    """The words of an author's effect; AuthorError for a value that is not of its field's kind."""
    bodies: dict[str, Offer] = {}
    binding: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for each in attrs.fields(type(effect)):
        value = getattr(effect, each.name)
        what = f"cannot perform {tool}: {each.name}"
        if each.type in BYTES:
            offered = _offer(each.name, value, each.type, run, what)
            bodies.setdefault(offered.sha256, offered)
            binding[each.name] = {"sha256": offered.sha256, "size": offered.size}
        else:
            (rest if each.name in unbound else binding)[each.name] = _plain(value, each.type, what)
    return Spelled(
        arguments=_text(binding, f"cannot perform {tool}"),
        unbound=_text(rest, f"cannot perform {tool}"),
        bodies=tuple(bodies.values()),
    )


def _text(found: Mapping[str, Any], what: str) -> str:
    try:
        return keys.canonical(strict.check(dict(found), what))
    except FaultyInputError as error:
        raise AuthorError(str(error)) from None


def _plain(value: Any, kind: Any, what: str) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise AuthorError(f"{what}: expected {kind.__name__}, got {type(value).__name__}")
    if kind is not Decimal:
        return value
    if not value.is_finite():
        raise AuthorError(f"{what}: expected a finite number, got {value}")
    return str(value)


def _offer(name: str, value: Any, kind: Any, run: Run, what: str) -> Offer:
    if type(value) is not kind:
        raise AuthorError(f"{what}: expected {kind.__name__}, got {type(value).__name__}")
    if isinstance(value, bytes):
        return offers.of_bytes(name, value, run.scratch)
    offered = Offer(
        name=value.name, sha256=value.sha256, size=value.size, text=value.text, base64=value.base64
    )
    if value.text is None and value.base64 is None:
        return attrs.evolve(offered, path=value.path or os.path.join(run.artifacts, value.sha256))
    return offered


# ---- and back -------------------------------------------------------------------------------------------


def rebuild(kind: type, call: CallGiven, folder: str) -> Any:
    """The effect that a stored call is of; AuthorError when its words or bytes do not make one."""
    what = f"cannot rebuild {call.effect}"
    words: dict[str, Any] = {}
    for text in (call.arguments, call.unbound):
        found = jcs.read(text, what)
        if twice := words.keys() & found.keys():
            raise AuthorError(f"{what}: {min(twice)} is said to bind and not to bind")
        words |= found
    bodies = {body.sha256: body for body in call.bodies}
    values: dict[str, Any] = {}
    for each in attrs.fields(kind):
        if each.name not in words:
            raise AuthorError(f"{what}: it says nothing of {each.name}")
        word = words.pop(each.name)
        values[each.alias or each.name] = _value(word, each.type, bodies, folder, f"{what}: {each.name}")
    if words:
        raise AuthorError(f"{what}: the effect has no field {next(iter(words))!r}")
    return kind(**values)


def _value(word: Any, kind: Any, bodies: Mapping[str, Artifact], folder: str, what: str) -> Any:
    if kind in BYTES:
        body = bodies.get(word.get("sha256", "")) if isinstance(word, dict) else None
        if body is None:
            raise AuthorError(f"{what} names bytes that did not come along")
        return body if kind is Artifact else read(body, folder)
    try:
        made = float(word) if kind is float else Decimal(word) if kind is Decimal else word
    except (TypeError, ValueError, InvalidOperation):
        made = None
    if type(made) is not kind:
        raise AuthorError(f"{what}: expected {kind.__name__}, got {faulttext.clean(repr(word), 100)}")
    return made
