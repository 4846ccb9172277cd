"""The screen that shows the workflow a job was admitted with: its steps, what they run, their limits."""

import json
import shlex
from typing import Any

from .letters import clean, wrap
from .render import facts, span


def contract_view(answer: dict[str, Any], width: int) -> list[str]:
    """The screen of `resumectl show --contract`."""
    contract = answer["contract"]
    definition = json.loads(contract["definition"]) if contract["definition"] else {}
    head = f"{clean(answer['job'])} keeps the workflow {clean(contract['workflow'])}@{contract['version']}"
    known = {
        "about": contract["description"],
        "owner": contract["owner"],
        "digest": answer["sha256"],
        "code": contract["entry"],
        "run by": contract["interpreter"],
        "starts at": contract["start"],
        "inputs": ", ".join(_input(each) for each in definition.get("inputs", ())),
        "items": _plain(definition.get("items", "")),
    }
    lines = [*wrap(f"{head}, as it was admitted with", width), *facts(known, width)]
    programs = {step["name"]: step for step in definition.get("steps", ())}
    for step in contract["steps"]:
        if programs and step["name"] not in programs:
            continue  # the steps that list and end a job of programs are no author's
        lines += ["", *wrap(_step(step), width)]
        named = {
            clean(key, 20): _plain(value)
            for key, value in programs.get(step["name"], {}).items()
            if key not in TOLD
        }
        lines += [f"  {line}" for line in facts(named, width - 2)]
    for effect in definition.get("effects", ()):
        lines += ["", *wrap(_effect(effect), width)]
        named = {clean(key, 20): _plain(value) for key, value in effect.items() if key not in TOLD_OF_EFFECT}
        lines += [f"  {line}" for line in facts(named, width - 2)]
    return lines


TOLD = frozenset({"name", "timeout", "tries", "repeatable", "backoff_first", "backoff_max", "crashes"})
"""Keys of a step that its first line tells."""


TOLD_OF_EFFECT = frozenset({"name", "after", "each", "target", "address", "account", "approve"})


def _effect(effect: dict[str, Any]) -> str:
    where = " ".join(clean(effect.get(key, ""), 300) for key in ("target", "address", "account")).strip()
    rule = effect.get("approve")
    who = "nobody is asked"
    if rule is not None:
        who = f"approved by {clean(' or '.join(rule.get('by', ())), 300) or 'an approver'}"
        who += f" ({rule['quorum']} of them)" if rule.get("quorum", 1) > 1 else ""
    each = "each item" if effect.get("each", True) else "once"
    name, after = clean(effect["name"], 64), clean(effect["after"], 64)
    return f"effect {name}: {each}, after {after}, to {where}, {who}"


def _step(step: dict[str, Any]) -> str:
    parts = [
        f"{'each item' if step['kind'] == 'item' else 'once'}",
        f"{step['tries']} {'try' if step['tries'] == 1 else 'tries'} of {span(step['timeout'])}",
        f"{step['parallel']} at once" if step["parallel"] else "",
        "repeatable" if step["repeatable"] else "not repeatable",
    ]
    return f"step {clean(step['name'], 64)}: {', '.join(part for part in parts if part)}"


def _input(each: dict[str, Any]) -> str:
    kind = each.get("type", "string")
    return f"{each['name']} ({kind}{', default ' + each['default'] if 'default' in each else ''})"


def _plain(value: Any) -> str:
    """A value of the definition on one line: an argv as a shell would take it, a table as its pairs."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return shlex.join(value)
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_plain(one)}" for key, one in value.items())
    if isinstance(value, list):
        return "; ".join(_plain(one) for one in value)
    return str(value)
