"""Operation keys: derived from what an operation is for, never drawn, so a restored store forms the same."""

import hashlib
from typing import Any

import rfc8785

from . import codec, strict
from .approvals import ApprovalRule
from .ledger import Effect, ToolContract


def operation_key(job: str, admitted: str, item: str, occurrence: int, name: str, ordinal: int) -> str:
    """The sha256, in hex, over the RFC 8785 array of these six (DESIGN.md section 5).

    `admitted` is the sha256 of the admitted bytes; `name` is an effect, or `step NAME` for one entry of a
    step: all tries of that entry have one key.
    """
    return hashlib.sha256(rfc8785.dumps([job, admitted, item, occurrence, name, ordinal])).hexdigest()


def fingerprint(effect: Effect, contract: ToolContract) -> str:
    """The sha256, in hex, of what an approval of the effect covers: the RFC 8785 text of tool and version,
    target with its address and account, every bound argument, the bytes those name, and what was observed.

    FaultyInputError when the arguments are no JSON that RFC 8785 can spell. By RFC 8785 1 and 1.0 are one
    value, and `true` and 1 are two.
    """
    covered = {
        "tool": effect.tool,
        "version": effect.version,
        "target": contract.target,
        "address": contract.address,
        "account": contract.account,
        "arguments": strict.parse_own(effect.arguments.encode(), f"cannot tell what {effect.id} asks for"),
        "bodies": [body.sha256 for body in effect.bodies],
        "observed": effect.observed,
    }
    return hashlib.sha256(rfc8785.dumps(covered)).hexdigest()


def policy(rule: ApprovalRule) -> str:
    """The sha256, in hex, of a rule as RFC 8785 spells it: the version of the policy that decisions bear."""
    return hashlib.sha256(rfc8785.dumps(codec.to_plain(rule))).hexdigest()


def canonical(value: Any) -> str:
    """The RFC 8785 text of a plain value; ValueError when it has none (an integer beyond 2^53 - 1, NaN)."""
    return rfc8785.dumps(value).decode()
