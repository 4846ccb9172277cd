"""The host's word about users and groups: numbers of names, and who is in which group, asked of libc.

`pwd` and `grp` say the same of a name that is not there and of a service that does not answer; here the two
are told apart, since nobody's answer must pass for a no. It may block for long: call it beside the loop.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Iterable
from typing import Any

from attrs import field, frozen

ABSENT = frozenset({0, errno.ENOENT, errno.ESRCH})
"""What getpwnam_r(3) and its kin return for a name that is not there; all else is a failure."""
MOST_BYTES = 4 * 1024 * 1024
"""A group of very many members is one long row."""

_NUMBER, _TEXT = ctypes.c_uint32, ctypes.c_char_p


class _User(ctypes.Structure):
    """`struct passwd`, the same in glibc and musl."""

    _fields_ = (
        ("name", _TEXT),
        ("password", _TEXT),
        ("uid", _NUMBER),
        ("gid", _NUMBER),
        ("gecos", _TEXT),
        ("folder", _TEXT),
        ("shell", _TEXT),
    )


class _Group(ctypes.Structure):
    """`struct group`."""

    _fields_ = (("name", _TEXT), ("password", _TEXT), ("gid", _NUMBER), ("members", ctypes.c_void_p))


@frozen(kw_only=True)
class Looked:
    """What the host said. `problem` is why not all of it could be found out."""

    numbers: dict[str, int | None] = field(factory=dict)
    """By `user:NAME` or `group:NAME`; None for a name that it does not know."""
    groups: dict[int, tuple[int, ...]] = field(factory=dict)
    """By uid; empty for a user that it does not know."""
    names: dict[int, str] = field(factory=dict)
    """Of groups, as far as it knows them."""
    problem: str = ""


def look(whom: Iterable[str], uids: Iterable[int], gids: Iterable[int]) -> Looked:
    """What the host knows of these rule names, users and groups now."""
    numbers: dict[str, int | None] = {}
    groups: dict[int, tuple[int, ...]] = {}
    names: dict[int, str] = {}
    try:
        for who in whom:
            kind, _, name = who.partition(":")
            numbers[who] = _number_of(kind, name)
        for uid in uids:
            groups[uid] = _groups_of(uid)
        for gid in gids:
            row = _ask("getgrgid_r", _NUMBER(gid), _Group)
            names[gid] = str(gid) if row is None else row[0]
    except (OSError, ValueError) as error:  # ValueError: a name that no host could bear
        why = getattr(error, "strerror", None) or str(error)
        return Looked(problem=f"this host cannot say now who its users are ({why})")
    return Looked(numbers=numbers, groups=groups, names=names)


def _number_of(kind: str, name: str) -> int | None:
    raw = name.encode(errors="surrogateescape")
    if kind == "group":
        row = _ask("getgrnam_r", _TEXT(raw), _Group)
    else:
        row = _ask("getpwnam_r", _TEXT(raw), _User)
    if row is not None:
        return row[1]
    return int(name) if name.isdecimal() and name.isascii() else None


def _groups_of(uid: int) -> tuple[int, ...]:
    row = _ask("getpwuid_r", _NUMBER(uid), _User)
    return () if row is None else tuple(os.getgrouplist(row[0], row[2]))


def _ask(function: str, key: Any, kind: type[Any]) -> tuple[str, int, int] | None:
    """Name, number and (of a user) primary group; None where there is none. OSError when nobody can tell."""
    ask: Callable[..., int] = getattr(ctypes.CDLL(None), function)
    size = 4096
    while True:
        room, row, found = ctypes.create_string_buffer(size), kind(), ctypes.c_void_p()
        code = ask(key, ctypes.byref(row), room, ctypes.c_size_t(size), ctypes.byref(found))
        if code == errno.ERANGE and size < MOST_BYTES:
            size *= 4
        elif found.value is not None:
            name = row.name.decode(errors="surrogateescape")
            return (name, row.gid, row.gid) if kind is _Group else (name, row.uid, row.gid)
        elif code in ABSENT:
            return None
        else:
            raise OSError(code, os.strerror(code))
