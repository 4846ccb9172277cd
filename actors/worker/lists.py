"""Lists of items: the lines of a file or of what a program printed, each a name, a path or a JSON object."""

import os
from collections.abc import Callable, Iterator
from typing import Any

from attrs import frozen

from resumed.schemas import codec, inputs, strict
from resumed.schemas.decisions import NewItem
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Source
from resumed.schemas.jobfile import item_name_problem, path_problem
from resumed.schemas.workflow import Input

from . import offers

MAX_BYTES = 16 * 1024 * 1024
"""Bytes of a whole list: more than a frame holds can never be frozen."""
MAX_LINE = 64 * 1024
_SHOWN = 5


class UnfitItemsError(Exception):
    """The items cannot be frozen as they are: a person must look. The text says why."""


class _FaultyLineError(Exception):
    pass


@frozen(kw_only=True)
class Members:
    """What the JSON lines of a job may hold: `key` names the id, `given` are the inputs that the job has."""

    key: str
    declared: tuple[Input, ...] = ()
    given: frozenset[str] = frozenset()


def read(path: str) -> bytes:
    """The bytes of a list file; UnfitItemsError when it cannot be read or is too large to be one."""
    try:
        with offers.open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise UnfitItemsError(f"{path} has more than {MAX_BYTES} bytes")
            raw = bytearray()
            while piece := file.read(MAX_BYTES + 1 - len(raw)):
                raw += piece
    except OSError as error:
        raise UnfitItemsError(f"cannot read the list {path}: {error.strerror or error}") from None
    if len(raw) > MAX_BYTES:
        raise UnfitItemsError(f"{path} has more than {MAX_BYTES} bytes")
    return bytes(raw)


def items(raw: bytes, base: str, members: Members | None, what: str) -> Iterator[NewItem]:
    """One item for each line that is not empty; UnfitItemsError names the lines that are none.

    A line is a JSON object where `members` are given; else it is the absolute path of a source, whose id is
    its name below the folder `base`, or without its first slash where it lies elsewhere; or it is a name.
    """
    made: Callable[[str], NewItem]
    made = _by_name(base) if members is None else _by_member(members)
    faults: list[str] = []
    for number, line in enumerate(raw.split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        if not line:
            continue
        try:
            item = made(_text(line))
            if problem := item_name_problem(item.id):
                raise _FaultyLineError(f"{item.id[:80]!a}: {problem}")
        except _FaultyLineError as error:
            faults.append(f"line {number}: {error}")
            if len(faults) == _SHOWN:
                break
            continue
        if not faults:
            yield item
    if faults:
        raise UnfitItemsError(f"{what}: {'; '.join(faults)}")


def _text(line: bytes) -> str:
    if len(line) > MAX_LINE:
        raise _FaultyLineError(f"{len(line)} bytes, the most is {MAX_LINE}")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _FaultyLineError(f"not UTF-8 at byte {error.start}") from None


def name_below(base: str, path: str) -> str:
    """What a listed path is called: its name below the folder, or without its first slash."""
    return path.removeprefix(f"{base.rstrip('/')}/").removeprefix("/")


def _by_name(base: str) -> Callable[[str], NewItem]:
    def made(text: str) -> NewItem:
        if not text.startswith("/"):
            return NewItem(id=text)
        if problem := path_problem(text):
            raise _FaultyLineError(f"{text[:80]!a}: {problem}")
        return NewItem(id=name_below(base, text), source=Source(path=text))

    return made


def _by_member(members: Members) -> Callable[[str], NewItem]:
    known = {each.name for each in members.declared}
    needed = [
        each.name for each in members.declared if each.default is None and each.name not in members.given
    ]

    def made(text: str) -> NewItem:
        try:
            value = strict.parse(text.encode(), "")
            if not isinstance(value, dict):
                raise _FaultyLineError("expected an object @ $")
            name, path = _id(value, members.key), _source(value)
            for each in value.keys() - known:
                raise _FaultyLineError(f"unknown key {each[:80]!a} @ $: the workflow declares no such input")
            for each in needed:
                if each not in value:
                    raise _FaultyLineError(f"required input {each!r} is missing @ $")
            spelled = codec.dump_plain(value).decode()
            inputs.check_item_inputs(members.declared, spelled, "", "$")
        except FaultyInputError as error:
            raise _FaultyLineError("; ".join(error.problems)) from None
        return NewItem(id=name, source=Source(path=path) if path else None, inputs=spelled)

    return made


def _id(value: dict[str, Any], key: str) -> str:
    if key not in value:
        raise _FaultyLineError(f"required key {key!r} is missing @ $")
    name = value.pop(key)
    if type(name) is int:
        return str(name)
    if not isinstance(name, str):
        raise _FaultyLineError(f"expected string or int @ {strict.step('$', key)}")
    return name


def _source(value: dict[str, Any]) -> str:
    path = value.pop("source", "")
    if path != "":
        problem = path_problem(path) if isinstance(path, str) else "expected string"
        if problem:
            raise _FaultyLineError(f"{problem} @ $.source")
    return str(path)
