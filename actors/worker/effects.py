"""Effects as authors declare them: a class whose fields are the arguments, and what is true of its target.

The decorator makes the class a frozen record and leaves a note on it; everything is checked when a workflow
that uses it is loaded.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, dataclass_transform

import attrs
from attrs import frozen

from resumed.schemas import conditions
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.errors import AuthorError
from resumed.schemas.ledger import ToolContract

from . import calls
from .durations import span

_EFFECT = "__resumed_effect__"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z")
_WHO = re.compile(r"(user|group):[^\s:/]+\Z")

E = TypeVar("E", bound=calls.Sends)


@frozen(kw_only=True)
class EffectNote:
    """What `@effect` was given."""

    name: str
    version: int
    target: str
    address: str
    account: str
    approve: ApprovalRule | Literal[False]
    dedup: str | float | Literal[False]
    in_flight: str | float | None
    absent_is_final: bool
    timeout: str | float
    at_once: int
    unbound: tuple[str, ...]
    undo: str
    irreversible: bool
    owner: str
    check_first: bool | None
    about: str
    expects: str
    secrets: tuple[str, ...]


def by(
    *who: str,
    quorum: int = 1,
    decide_within: str | float = "7d",
    valid_for: str | float = "24h",
    not_requester: bool | None = None,
    via: tuple[str, ...] = (),
    when: str = "",
) -> ApprovalRule:
    """Who must allow a call: `by("group:curators")`; nobody named is whoever may approve for the job.

    `quorum` different people say yes, the requester not among them (unless one person has the daemon alone).
    A question stands for `decide_within` and is then asked anew, never granted; a yes is good for `valid_for`
    until the call is sent. `via` names the ways that a yes may come. With `when`, a condition on an argument
    such as `"amount >= 1000"`, nobody is asked where it surely does not hold.
    """
    what = f"cannot use by({', '.join(map(repr, who))})"
    for name in who:
        check_who(name, what)
    if type(quorum) is not int or quorum < 1:
        raise AuthorError(f"{what}: quorum is a whole number of at least 1, got {quorum!r}")
    return ApprovalRule(
        by=who,
        quorum=quorum,
        not_requester=None if not_requester is None else _yes_or_no(not_requester, f"{what}: not_requester"),
        decide_within=span(f"{what}: decide_within", decide_within),
        valid_for=span(f"{what}: valid_for", valid_for),
        via=words(via, f"{what}: via"),
        when=_condition(when, what),
    )


def _condition(when: Any, what: str) -> str:
    try:
        if when:
            conditions.read(when)
    except (TypeError, ValueError) as error:
        raise AuthorError(f"{what}: when: {error}") from None
    return str(when)


def check_who(name: Any, what: str) -> None:
    """AuthorError unless it names a user or a group."""
    if not (isinstance(name, str) and _WHO.match(name)):
        raise AuthorError(f'{what}: expected "user:NAME" or "group:NAME", got {name!r}')


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(attrs.field,))
def effect(
    name: str,
    /,
    *,
    version: int,
    target: str,
    approve: ApprovalRule | Literal[False],
    address: str = "",
    account: str = "",
    dedup: str | float | Literal[False] = False,
    in_flight: str | float | None = None,
    absent_is_final: bool = False,
    timeout: str | float = "30s",
    at_once: int = 1,
    unbound: tuple[str, ...] = (),
    undo: str = "",
    irreversible: bool = False,
    owner: str = "",
    check_first: bool | None = None,
    about: str = "",
    expects: str = "",
    secrets: tuple[str, ...] = (),
) -> Callable[[type[E]], type[E]]:
    """Declare a class as the effect `name`: its fields are the arguments, `send` does it.

    Every field binds, bytes and artifacts by their digest; those in `unbound` are shown to a reviewer as not
    covered. `approve` is `by(...)`, or False where nobody is asked. What is true of the target, and of it
    alone: `dedup` is how long it knows a key again (False: it does not), `in_flight` how long a call may take
    effect after its sender is gone (twice `timeout`, unless written), `absent_is_final` whether "it is not
    there" may be relied on after that. With neither `dedup` nor a `look_up` an unknown outcome waits for a
    person, `owner` or the job's. `check_first` looks a call up before it is sent first: on where there is a
    `look_up` and no `dedup`. `about` is the field that names the business object, `expects` what should be
    true afterwards, in words; `undo` names what takes it back, or it is `irreversible`. `secrets` are the
    names of credentials that it is handed, and no step of the workflow.
    """
    note = EffectNote(
        name=name,
        version=version,
        target=target,
        address=address,
        account=account,
        approve=approve,
        dedup=dedup,
        in_flight=in_flight,
        absent_is_final=absent_is_final,
        timeout=timeout,
        at_once=at_once,
        unbound=unbound,
        undo=undo,
        irreversible=irreversible,
        owner=owner,
        check_first=check_first,
        about=about,
        expects=expects,
        secrets=secrets,
    )

    def leave(declared: type[E]) -> type[E]:
        made: type[E] = attrs.frozen(declared, kw_only=True, slots=False)
        setattr(made, _EFFECT, note)
        return made

    return leave


def note_of(kind: type) -> EffectNote | None:
    """What a class was declared with; None when it is no effect."""
    return kind.__dict__.get(_EFFECT)


def find(module: str, named: Iterable[type] | None, what: str) -> dict[str, type]:
    """The effects that a workflow uses, by name: those `named`, or all that its module knows."""
    known = vars(sys.modules[module]).values() if named is None else tuple(named)
    found: dict[str, type] = {}
    for each in known:
        note = note_of(each) if isinstance(each, type) else None
        if note is None:
            if named is not None:
                raise AuthorError(f"{what}: {each!r} is not decorated with @effect")
            continue
        if found.setdefault(note.name, each) is not each:
            raise AuthorError(f"{what}: two classes are the effect {note.name!r}")
    return dict(sorted(found.items()))


# ---- what a declaration says ----------------------------------------------------------------------------


def contract_of(kind: type) -> ToolContract:
    """What a class declares of its target; AuthorError for what cannot hold."""
    note = note_of(kind)
    assert note is not None
    what = f"cannot load effect {note.name!r}"
    if not _NAME.match(str(note.name)):
        raise AuthorError(f"{what}: a name is of a-z, 0-9, ., _ and -, 64 characters at most")
    for field, value in (("version", note.version), ("at_once", note.at_once)):
        if type(value) is not int or value < 1:
            raise AuthorError(f"{what}: {field} is a whole number of at least 1, got {value!r}")
    for field in ("target", "address", "account", "undo", "owner", "about", "expects"):
        if not isinstance(getattr(note, field), str):
            raise AuthorError(f"{what}: {field} is a text, got {getattr(note, field)!r}")
    if not note.target:
        raise AuthorError(f"{what}: target names the system it writes to, got an empty text")
    if note.owner:
        check_who(note.owner, f"{what}: owner")
    if note.undo and note.irreversible:
        raise AuthorError(f"{what}: it is irreversible, or undo says how it is taken back")
    words(note.secrets, f"{what}: secrets")
    fields = _fields(kind, note, what)
    looks = _method(kind, "look_up", what)
    _method(kind, "send", what, needed=True)
    _check_show(kind, what)
    return ToolContract(
        tool=note.name,
        version=note.version,
        target=note.target,
        address=note.address,
        account=note.account,
        approve=_rule(note.approve, what),
        look_up=looks,
        observe=_method(kind, "observe", what),
        unbound=_unbound(fields, note, what),
        undo=note.undo,
        irreversible=_yes_or_no(note.irreversible, f"{what}: irreversible"),
        unclear_owner=note.owner,
        at_once=note.at_once,
        **_times(note, looks, what),
    )


def _times(note: EffectNote, looks: bool, what: str) -> dict[str, Any]:
    """How long what is true of the target, and what may be relied on after that."""
    timeout = span(f"{what}: timeout", note.timeout)
    life = None if note.dedup is False else span(f"{what}: dedup", note.dedup)
    in_flight = None if note.in_flight is None else span(f"{what}: in_flight", note.in_flight, zero=True)
    final = _yes_or_no(note.absent_is_final, f"{what}: absent_is_final")
    if final and (in_flight is None or not looks):
        raise AuthorError(f"{what}: absent_is_final needs a look_up, and in_flight written beside it")
    longest = timeout + (2 * timeout if in_flight is None else in_flight)
    if life is not None and life <= longest:
        raise AuthorError(
            f"{what}: dedup is how long the target knows a key; {life:g} s do not outlast "
            f"timeout and in_flight, {longest:g} s"
        )
    first = looks and life is None if note.check_first is None else note.check_first
    if _yes_or_no(first, f"{what}: check_first") and not looks:
        raise AuthorError(f"{what}: check_first needs a look_up")
    return {
        "timeout": timeout,
        "key_lifetime": life,
        "in_flight": in_flight,
        "absent_is_final": final,
        "check_first": first,
    }


def _rule(given: Any, what: str) -> ApprovalRule | None:
    if given is False:
        return None
    if not isinstance(given, ApprovalRule):
        raise AuthorError(f"{what}: approve is by(...) or False, got {given!r}")
    return given


def _fields(kind: type, note: EffectNote, what: str) -> dict[str, Any]:
    try:
        attrs.resolve_types(kind)
    except NameError as error:
        raise AuthorError(f"{what}: {error}") from None
    found = {each.name: each.type for each in attrs.fields(kind)}
    for name, type_ in found.items():
        if type_ not in calls.PLAIN + calls.BYTES:
            raise AuthorError(f"{what}: {name} is of {type_}, and an argument is {calls.KINDS}")
    if note.about and found.get(note.about) not in calls.PLAIN:
        raise AuthorError(
            f"{what}: about names {note.about!r}, which is no field of it that has a plain value"
        )
    return found


def _unbound(fields: dict[str, Any], note: EffectNote, what: str) -> tuple[str, ...]:
    for name in words(note.unbound, f"{what}: unbound"):
        if name not in fields:
            raise AuthorError(f"{what}: unbound names {name!r}, which is no field of it")
        if fields[name] in calls.BYTES:
            raise AuthorError(f"{what}: unbound names {name!r}, and bytes always bind")
    return note.unbound


def _method(kind: type, name: str, what: str, *, needed: bool = False) -> bool:
    """Whether the class has this method, which must be an `async def` of two."""
    function = getattr(kind, name, None)
    if function is None:
        if needed:
            raise AuthorError(f"{what}: it has no {name}")
        return False
    if not inspect.iscoroutinefunction(function) or len(inspect.signature(function).parameters) != 2:
        # One that blocks in a thread of its own could go on sending after it was cut off.
        raise AuthorError(f"{what}: {name} is an `async def {name}(self, call)`")
    return True


def _check_show(kind: type, what: str) -> None:
    function = getattr(kind, "show", None)
    if function is None:
        return
    if inspect.iscoroutinefunction(function) or len(inspect.signature(function).parameters) != 1:
        raise AuthorError(f"{what}: show is a `def show(self)` that returns text")


def _yes_or_no(given: Any, what: str) -> bool:
    if not isinstance(given, bool):
        raise AuthorError(f"{what} is True or False, got {given!r}")
    return given


def words(given: Any, what: str) -> tuple[str, ...]:
    """The tuple of texts itself; AuthorError for anything else."""
    if not isinstance(given, tuple) or not all(isinstance(each, str) for each in given):
        raise AuthorError(f"{what} is a tuple of texts, got {given!r}")
    return given
