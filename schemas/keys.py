"""Operation keys: derived from what an operation is for, never drawn, so a restored store forms the same."""

import hashlib
from functools import lru_cache
from typing import Any

import rfc8785

from . import codec, jcs
from .approvals import ApprovalRule
from .errors import FaultyInputError
from .ledger import Effect, ToolContract

REMEMBERED = 1024
"""Keys and fingerprints that are not worked out again: a call is judged by its own several times in a row."""
SHORT = 4096
"""Characters of arguments up to which their fingerprint is remembered."""


@lru_cache(maxsize=REMEMBERED, typed=True)
def operation_key(job: str, admitted: str, item: str, occurrence: int, name: str, ordinal: int) -> str:
    """The sha256, in hex, over the RFC 8785 array of these six (DESIGN.md section 5).

    `admitted` is the sha256 of the admitted bytes; `name` is an effect, or `step NAME` for one entry of a
    step: all tries of that entry have one key.
    """
    return hashlib.sha256(jcs.spell([job, admitted, item, occurrence, name, ordinal])).hexdigest()


def fingerprint(effect: Effect, contract: ToolContract) -> str:
    """The sha256, in hex, of what an approval of the effect covers: the RFC 8785 text of tool and version,
    target with its address and account, every bound argument, the bytes those name, and what was observed.

    FaultyInputError when the arguments are no JSON that RFC 8785 can spell. By RFC 8785 1 and 1.0 are one
    value, and `true` and 1 are two.
    """
    bodies = tuple([body.sha256 for body in effect.bodies])
    make = _remembered if len(effect.arguments) <= SHORT else _fingerprint
    try:
        return make(effect.tool, effect.version, _at(contract), effect.arguments, bodies, effect.observed)
    except FaultyInputError as error:
        raise FaultyInputError(f"cannot tell what {effect.id} asks for", error.problems) from None


def fingerprint_of(contract: ToolContract, arguments: str) -> str:
    """The same for a call of the tool that names no bytes, to a target that is not observed."""
    make = _remembered if len(arguments) <= SHORT else _fingerprint
    return make(contract.tool, contract.version, _at(contract), arguments, (), "")


def _at(contract: ToolContract) -> tuple[str, str, str]:
    return (contract.target, contract.address, contract.account)


def _fingerprint(
    tool: str,
    version: int,
    target: tuple[str, str, str],
    arguments: str,
    bodies: tuple[str, ...],
    observed: str,
) -> str:
    covered = {
        "tool": tool,
        "version": version,
        "target": target[0],
        "address": target[1],
        "account": target[2],
        "arguments": jcs.read(arguments, ""),
        "bodies": list(bodies),
        "observed": observed,
    }
    return hashlib.sha256(jcs.spell(covered)).hexdigest()


_remembered = lru_cache(maxsize=REMEMBERED, typed=True)(_fingerprint)


@lru_cache(maxsize=REMEMBERED)
def policy(rule: ApprovalRule) -> str:
    """The sha256, in hex, of a rule as RFC 8785 spells it: the version of the policy that decisions bear."""
    return hashlib.sha256(rfc8785.dumps(codec.to_plain(rule))).hexdigest()


def canonical(value: Any) -> str:
    """The RFC 8785 text of a plain value; ValueError when it has none (an integer beyond 2^53 - 1, NaN)."""
    return jcs.spell(value).decode()
