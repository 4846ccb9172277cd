"""The `[[effect]]` tables of a workflow file: each becomes a step that asks for one write to another system.

What must be written must be written: `approve`, and `in_flight` beside `absent_is_final`. An effect without
look-up and deduplication is right as it stands, and `schemas.advice` warns of it.
"""

from typing import Any

from attrs import frozen

from . import conditions, templates, workflowhttp
from .filetable import Table, kind
from .jobfile import ID
from .programeffects import HttpAsk, HttpSend, ProgramEffect
from .workflow import Input, ProgramStep
from .workflowapprovals import approve
from .workflowsteps import RESERVED
from .workflowwords import argv, placeholders, secrets, who

BEHIND = ".next"
"""Ends the name of the step that leads on from an effect, where one is needed."""
_OF_ITEM = templates.OF_ITEM - {"note"}
_BYTES = frozenset(("source",))
"""What stands for bytes beside `outputs.*`: they are kept with the call, and sent as they are."""


def _name_private(problems: list[str], since: int, inputs: tuple[Input, ...]) -> None:
    """What is wrong with a placeholder is that its input is private, not that nobody knows it."""
    for private in (one.name for one in inputs if one.private):
        unknown = f"unknown placeholder {{inputs.{private}}}"
        why = f"{{inputs.{private}}} is private, and reviewers are shown all of a call"
        problems[since:] = [said.replace(unknown, why) for said in problems[since:]]


@frozen
class _Words:
    """The placeholders of one effect: `early` ones are texts that are known when it is asked for."""

    early: frozenset[str]
    bytes: frozenset[str]
    secrets: frozenset[str]

    def send(self, *, observed: bool) -> set[str]:
        """What may stand in the call itself."""
        return {*self.early, *self.bytes, "key", *(("observed",) if observed else ())}

    def ask(self) -> set[str]:
        """What may stand in a look-up: what is known of the call, and its key."""
        return {*self.early, "key"}


def effects(
    table: Table, inputs: tuple[Input, ...], steps: tuple[ProgramStep, ...]
) -> tuple[ProgramEffect, ...]:
    """The effects of a file, in its order."""
    found: list[ProgramEffect] = []
    for each in table.each("effect"):
        before = len(table.problems)
        effect = _effect(each, inputs, steps)
        _name_private(table.problems, before, inputs)
        if any(effect.name == before.name for before in found):
            each.problem("name", f"an effect named {effect.name!r} stands above")
        elif effect.name in RESERVED or any(effect.name == step.name for step in steps):
            each.problem("name", f"{effect.name!r} is a step's name")
        found.append(effect)
    names = {step.name for step in steps} | {effect.name for effect in found}
    for name in sorted(names):
        if f"{name}{BEHIND}" in names:
            table.problems.append(
                f"{name}{BEHIND} is the name of what may stand behind {name} @ {table.path}"
            )
    return tuple(found)


def _effect(table: Table, inputs: tuple[Input, ...], steps: tuple[ProgramStep, ...]) -> ProgramEffect:
    name = table.text("name", required=True)
    if name and not ID.match(name):
        table.problem("name", f"{name!r} cannot be an effect's name")
    after, each = _after(table, steps), table.flag("each", True)
    handed = secrets(table)
    words = _words(each, after, inputs, steps, handed)
    observe = _form(table, "observe")
    send, send_http = _send(table, words, observed=observe is not None)
    look_up, look_up_http = _look_up(table, words)
    observed, observed_http = _observe(table, words)
    approved = approve(table)
    address, target, account = _target(table, send_http)
    dedup = _dedup(table)
    has_look_up = bool(look_up or look_up_http)
    effect = ProgramEffect(
        name=name,
        after=after,
        each=each,
        version=table.number("version", 1, 1),
        target=target,
        address=address,
        account=account,
        send=send,
        send_http=send_http,
        look_up=look_up,
        look_up_http=look_up_http,
        observe=observed,
        observe_http=observed_http,
        show=argv(table, "show", words.early | words.bytes | ({"observed"} if observe else set())),
        absent_is_final=_absent_is_final(table, has_look_up),
        unbound=_unbound(table, words, send, send_http),
        secrets=handed,
        undo=table.text("undo"),
        irreversible=table.flag("irreversible"),
        key_lifetime=dedup,
        in_flight=_positive(table, "in_flight", None),
        timeout=_positive(table, "timeout", 30.0) or 30.0,
        at_once=table.number("at_once", 1, 1),
        owner=who(table, "owner"),
        sources=_sources(table, words),
        check_first=_check_first(table, has_look_up, dedup),
        approve=approved,
    )
    _check_condition(table, effect, words)
    if effect.undo and effect.irreversible:
        table.problem("irreversible", "undo says how it is undone: one of both")
    table.close()
    return effect


def _check_condition(table: Table, effect: ProgramEffect, words: _Words) -> None:
    """A condition that could never be told would ask always, and say nothing of it."""
    if effect.approve is None or not effect.approve.when:
        return
    condition = conditions.read(effect.approve.when)
    name = ".".join(condition.path)
    if name not in words.early or name in effect.unbound:
        known = sorted(words.early - set(effect.unbound))
        table.problem("approve", f"when: expected one of {', '.join(known)}, got {name!r}")
    elif condition.value is None or isinstance(condition.value, bool):
        table.problem("approve", 'when: values are numbers or texts here (write "true" for a bool)')


def _after(table: Table, steps: tuple[ProgramStep, ...]) -> str:
    after = table.text("after", steps[-1].name if steps else "")
    if after not in {step.name for step in steps}:
        names = ", ".join(step.name for step in steps) or "a [[step]]"
        table.problem("after", f"expected one of {names}, got {after!r}")
    return after


def _words(
    each: bool, after: str, inputs: tuple[Input, ...], steps: tuple[ProgramStep, ...], handed: tuple[str, ...]
) -> _Words:
    place = next((n for n, step in enumerate(steps) if step.name == after), -1)
    made = {f"outputs.{step.name}" for step in steps[: place + 1] if each or not step.each}
    early = {"job"} | {f"inputs.{one.name}" for one in inputs if not one.private}
    if each:
        early |= _OF_ITEM - _BYTES
    return _Words(
        early=frozenset(early),
        bytes=frozenset(made | (_BYTES if each else set())),
        secrets=frozenset(placeholders(handed)),
    )


def _form(table: Table, key: str) -> Any:
    """What stands under a key that is an argv list or a table; None when it is neither."""
    value = table.peek(key)
    if value is None or isinstance(value, list | dict):
        return value
    table.whatever(key)
    table.problem(key, f"expected an argv list, or a table of an HTTP request, got {kind(value)}")
    return None


def _send(table: Table, words: _Words, *, observed: bool) -> tuple[tuple[str, ...], HttpSend | None]:
    known = words.send(observed=observed)
    if isinstance(_form(table, "send"), dict):
        inner = table.inner("send")
        assert inner is not None
        return (), workflowhttp.send(inner, known, words.secrets)
    return argv(table, "send", known | words.secrets, required=True), None


def _look_up(table: Table, words: _Words) -> tuple[tuple[str, ...], HttpAsk | None]:
    if isinstance(_form(table, "look_up"), dict):
        inner = table.inner("look_up")
        assert inner is not None
        return (), workflowhttp.look_up(inner, words.ask(), words.secrets)
    return argv(table, "look_up", words.ask() | words.secrets), None


def _observe(table: Table, words: _Words) -> tuple[tuple[str, ...], HttpAsk | None]:
    if isinstance(_form(table, "observe"), dict):
        inner = table.inner("observe")
        assert inner is not None
        return (), workflowhttp.observe(inner, words.early, words.secrets)
    return argv(table, "observe", words.early | words.secrets), None


def _target(table: Table, http: HttpSend | None) -> tuple[str, str, str]:
    """Address, name and account of the target; an HTTP call's address is where its URL leads."""
    where = workflowhttp.origin(http.url) if http is not None else ""
    if not isinstance(table.peek("target"), dict):
        name = table.text("target", required=True)
        if table.peek("target") is None and not name:
            table.problems.append(f"expected the target's name @ {table.at('target')}")
        return where, name, ""
    inner = table.inner("target")
    assert inner is not None
    name = inner.text("name", required=True)
    address, account = inner.text("address", where), inner.text("account")
    inner.close()
    return address, name, account


def _dedup(table: Table) -> float | None:
    if table.peek("dedup") is False:
        table.whatever("dedup")
        return None
    if table.peek("dedup") is True:
        table.whatever("dedup")
        table.problem("dedup", 'expected false, or how long the target knows a key such as "24h"')
        return None
    return _positive(table, "dedup", None)


def _positive(table: Table, key: str, default: float | None) -> float | None:
    if not table.has(key):
        return default
    found = table.duration(key, 1.0)
    if found <= 0:
        table.problem(key, "expected more than 0s")
    return found


def _absent_is_final(table: Table, has_look_up: bool) -> bool:
    final = table.flag("absent_is_final")
    if final and not has_look_up:
        table.problem("absent_is_final", "without look_up nobody says that it is absent")
    if final and not table.has("in_flight"):
        table.problem(
            "absent_is_final", "in_flight must be written beside it: how long a lost call may still arrive"
        )
    return final


def _check_first(table: Table, has_look_up: bool, dedup: float | None) -> bool:
    found = table.flag("check_first", has_look_up and dedup is None)
    if found and not has_look_up:
        table.problem("check_first", "it needs look_up")
    return found


def _unbound(table: Table, words: _Words, send: tuple[str, ...], http: HttpSend | None) -> tuple[str, ...]:
    found = table.texts("unbound")
    used = {name for text in (*send, *_texts(http)) for name in templates.names(text)}
    for place, name in enumerate(found):
        at = f"{table.at('unbound')}[{place}]"
        if name not in words.early:
            table.problems.append(f"expected one of {', '.join(sorted(words.early))}, got {name!r} @ {at}")
        elif name not in used:
            table.problems.append(f"send does not use {{{name}}} @ {at}")
        elif name in found[:place]:
            table.problems.append(f"{name!r} stands twice @ {at}")
    return found


def _texts(http: HttpSend | None) -> tuple[str, ...]:
    """Every template of a request."""
    if http is None:
        return ()
    inner = tuple(workflowhttp.texts_of(workflowhttp.json_of(http)))
    return (http.url, http.body, *http.headers.values(), *inner)


def _sources(table: Table, words: _Words) -> tuple[str, ...]:
    found = table.texts("sources")
    known = words.early | (words.bytes & _BYTES)
    for place, text in enumerate(found):
        at = f"{table.at('sources')}[{place}]"
        for problem in templates.problems(text, known):
            table.problems.append(f"{problem} @ {at}")
        if not text.startswith(("/", "{inputs.", "{source}")):
            table.problems.append(f"expected an absolute path, got {text!r} @ {at}")
    return found


def values_of(effect: ProgramEffect) -> tuple[str, ...]:
    """The placeholders whose values are known when it is asked for, and are kept with the call."""
    asks = [one for one in (effect.look_up_http, effect.observe_http) if one is not None]
    texts = [*effect.send, *_texts(effect.send_http), *effect.look_up, *effect.observe, *effect.show]
    texts += [text for one in asks for text in (one.url, *one.headers.values())]
    found = {name for text in texts for name in templates.names(text)}
    if effect.approve is not None and effect.approve.when:
        found.add(".".join(conditions.read(effect.approve.when).path))
    return tuple(sorted(name for name in found if not is_late(name)))


def bytes_of(effect: ProgramEffect) -> tuple[str, ...]:
    """The placeholders that stand for bytes, which come along with the call."""
    texts = (*effect.send, *_texts(effect.send_http), *effect.show)
    found = {name for text in texts for name in templates.names(text)}
    return tuple(sorted(name for name in found if is_bytes(name)))


def is_bytes(name: str) -> bool:
    """Whether a placeholder of an effect stands for bytes."""
    return name in _BYTES or name.startswith("outputs.")


def is_late(name: str) -> bool:
    """Whether a placeholder is filled only when the call is made."""
    return is_bytes(name) or name in ("key", "observed") or name.startswith("secrets.")
