"""What is worth a second thought in an effect that is right: what will happen when an answer is lost."""

from collections.abc import Iterator

from . import templates, workflowhttp
from .ledger import ToolContract, in_flight
from .programeffects import HttpAsk, HttpSend, ProgramEffect
from .workflow import InputType, Programs

BEARERS = frozenset(("authorization", "cookie", "x-api-key", "x-auth-token", "private-token"))
"""Headers that bear credentials, as targets commonly name them."""
LOCAL = ("http://127.", "http://localhost", "http://[::1]")


def blind(tool: ToolContract) -> str:
    """Why an unknown call of this tool can be settled by nobody but a person; empty when it can."""
    if not tool.look_up and tool.key_lifetime is None:
        return "neither look_up nor dedup: when an answer is lost only a person can say what happened"
    return ""


def of_tool(tool: ToolContract) -> Iterator[str]:
    """Sentences about what an author states of a target, in whichever language."""
    if said := blind(tool):
        yield said
    elif tool.look_up and not tool.absent_is_final and tool.key_lifetime is None:
        yield (
            'its "absent" is never final and it does not deduplicate: a call that got lost waits for a '
            "person (absent_is_final, or dedup)"
        )
    if tool.key_lifetime is not None and tool.key_lifetime <= tool.timeout + in_flight(tool):
        yield "dedup does not outlast timeout and in_flight: no call is ever repeated by it"
    if not tool.undo and not tool.irreversible:
        yield "neither undo nor irreversible: a reviewer is not told whether it can be undone"
    if tool.approve is None and tool.irreversible:
        yield "irreversible, and nobody is asked"


def of_effect(programs: Programs, effect: ProgramEffect, tool: ToolContract) -> Iterator[str]:
    """Sentences about one effect of a workflow file."""
    yield from of_tool(tool)
    if tool.key_lifetime is not None and not _sends_key(effect):
        yield "dedup, and its request bears no key: name a key_header, or put {key} in it"
    if effect.look_up_http is not None and "key" not in _names(effect.look_up_http):
        yield "look_up does not ask by {key}: it cannot tell this call from another of the same words"
    yield from _uncovered(programs, effect)
    yield from _in_clear(effect)
    yield from _written_down(effect)


def _names(http: HttpSend | HttpAsk) -> set[str]:
    return {name for text in (http.url, *http.headers.values()) for name in templates.names(text)}


def _sends_key(effect: ProgramEffect) -> bool:
    """A program always finds the key in its environment."""
    http = effect.send_http
    if http is None or http.key_header or "key" in _names(http) or "key" in templates.names(http.body):
        return True
    return any("key" in templates.names(text) for text in workflowhttp.texts_of(workflowhttp.json_of(http)))


def _uncovered(programs: Programs, effect: ProgramEffect) -> Iterator[str]:
    """Paths in the words of a program: what lies there may change after it was approved."""
    paths = {f"inputs.{each.name}" for each in programs.inputs if each.type is InputType.PATH}
    named = {name for text in effect.send for name in templates.names(text)} & paths
    listed = {name for text in effect.sources for name in templates.names(text)}
    for name in sorted(named - listed):
        yield f"what lies at {{{name}}} is not covered by an approval: name it in sources"


def _in_clear(effect: ProgramEffect) -> Iterator[str]:
    requests = (
        ("send", effect.send_http),
        ("look_up", effect.look_up_http),
        ("observe", effect.observe_http),
    )
    for key, http in requests:
        if http is None or not http.url.startswith("http://") or http.url.startswith(LOCAL):
            continue
        secret = any(name.startswith("secrets.") for name in _names(http))
        yield f"{key} goes over the network in clear{', with a credential' if secret else ''}: use https"


def _written_down(effect: ProgramEffect) -> Iterator[str]:
    """Headers that bear credentials, and whose values stand in the file."""
    requests = (effect.send_http, effect.look_up_http, effect.observe_http)
    for http in requests:
        for name, text in http.headers.items() if http is not None else ():
            secret = any(one.startswith("secrets.") for one in templates.names(text))
            if name.lower() in BEARERS and not secret:
                yield f"the header {name} is written in the file, stored and shown: use a credential"


def programs_of(effect: ProgramEffect) -> Iterator[tuple[str, str]]:
    """Each program that an effect starts, with the key it stands under."""
    for key in ("send", "look_up", "observe", "show"):
        argv: tuple[str, ...] = getattr(effect, key)
        if argv:
            yield argv[0], f"{key}[0]"
