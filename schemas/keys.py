"""Operation keys: derived from what an operation is for, never drawn, so a restored store forms the same."""

import hashlib

import rfc8785


def operation_key(job: str, admitted: str, item: str, occurrence: int, name: str, ordinal: int) -> str:
    """The sha256, in hex, over the RFC 8785 array of these six (DESIGN.md section 5).

    `admitted` is the sha256 of the admitted bytes; `name` is an effect, or `step NAME` for one entry of a
    step: all tries of that entry have one key.
    """
    return hashlib.sha256(rfc8785.dumps([job, admitted, item, occurrence, name, ordinal])).hexdigest()
