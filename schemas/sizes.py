"""Sizes as people write them (`512K`, `64M`, `2G`, or a number of bytes), kept as whole bytes."""

import re

_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_SIZE = re.compile(r"([0-9]{1,15})([KMGT]?)(?:i?B)?\Z")


def read(value: object) -> int:
    """Bytes of a text or number; ValueError when it is no size."""
    expected = 'expected a size such as "512M" or "2G"'
    if type(value) is int and value > 0:
        return value
    found = _SIZE.match(value) if type(value) is str else None
    if found is None or int(found[1]) == 0:
        raise ValueError(f"{expected}, got {value!r}")
    return int(found[1]) * _UNITS[found[2]]


def spell(size: int) -> str:
    """The shortest exact text: `2G`, `1536M`, `100`."""
    for unit in ("T", "G", "M", "K"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)
