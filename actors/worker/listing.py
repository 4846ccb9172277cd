"""The items of a workflow of programs: listed, pinned and frozen by the job's first step."""

import glob
import hashlib
import os
import re
from collections.abc import Iterator, Mapping

from attrs import evolve

from resumed.schemas import strict, templates
from resumed.schemas.decisions import NewItem
from resumed.schemas.job import Item, PinKind, Source
from resumed.schemas.jobfile import item_name_problem
from resumed.schemas.workflow import Programs

from . import offers

HASHED = 64 * 1024 * 1024
"""Above this a source is pinned by size, mtime and inode instead of its sha256."""
_AT_ONCE = 1024 * 1024
_SHOWN = 5
_ESCAPED = re.compile(r"\[([*?[])\]")  # how glob.escape spells a plain letter


class UnfitItemsError(Exception):
    """The items cannot be frozen as they are: a person must look. The text says why."""


def pin(path: str) -> Source:
    """A source and what it is known by; OSError when it is no regular file that can be read."""
    with offers.open_regular(path) as file:
        status = os.fstat(file.fileno())
        seen = Source(
            path=path,
            size=status.st_size,
            mtime=status.st_mtime_ns // 1000,
            inode=status.st_ino & strict.MAX_INT,
        )
        if status.st_size > HASHED:
            return evolve(seen, pin=PinKind.STAT)
        digest = hashlib.sha256()
        while piece := file.read(_AT_ONCE):
            digest.update(piece)
        after = os.fstat(file.fileno())
        if (after.st_size, after.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
            raise OSError("it changed while it was read")
        return evolve(seen, pin=PinKind.SHA256, sha256=digest.hexdigest())


def base_of(pattern: str) -> str:
    """The folder that names of a glob's files are relative to: all of it before the first wild part."""
    parts = []
    for part in pattern.split("/")[:-1]:
        if glob.has_magic(_ESCAPED.sub("", part)):
            break
        parts.append(_ESCAPED.sub(r"\1", part))
    return "/".join(parts) or "/"


def pattern_of(programs: Programs, values: Mapping[str, str]) -> str:
    """The glob of a job, its inputs filled in as plain text."""
    return templates.fill(programs.items_glob, {name: glob.escape(text) for name, text in values.items()})


def relative(programs: Programs, values: Mapping[str, str], path: str) -> str:
    """What `{source.rel}` is: the name below the glob's folder; for listed items the file's own name."""
    if programs.items_from == "glob":
        base = base_of(pattern_of(programs, values)).rstrip("/") + "/"
        if path.startswith(base):
            return path[len(base) :]
    return os.path.basename(path)


def items_of(programs: Programs, values: Mapping[str, str], given: tuple[Item, ...]) -> tuple[NewItem, ...]:
    """All items of a job with their sources pinned, in a stable order; UnfitItemsError with the reasons."""
    by_glob = programs.items_from == "glob" and not given
    found = _by_glob(programs, values) if by_glob else _by_list(given)
    items: list[NewItem] = []
    unfit: list[str] = []
    for item in found:
        try:
            items.append(_pinned(item))
        except OSError as error:
            unfit.append(f"{item.id}: cannot read its source: {error.strerror or error}")
    if unfit:
        more = f" and {len(unfit) - _SHOWN} more" if len(unfit) > _SHOWN else ""
        raise UnfitItemsError("; ".join(unfit[:_SHOWN]) + more)
    if not items and not programs.allow_empty:
        where = pattern_of(programs, values) if by_glob else "the job file"
        raise UnfitItemsError(f"{where} gives no items; allow_empty = true makes that a success")
    if len({item.id for item in items}) != len(items):
        raise UnfitItemsError("two items bear the same name")
    return tuple(items)


def _pinned(item: NewItem) -> NewItem:
    return item if item.source is None else evolve(item, source=pin(item.source.path))


def _by_list(given: tuple[Item, ...]) -> Iterator[NewItem]:
    for item in given:
        yield NewItem(id=item.id, source=item.source, inputs=item.inputs)


def _by_glob(programs: Programs, values: Mapping[str, str]) -> Iterator[NewItem]:
    pattern = pattern_of(programs, values)
    if not pattern.startswith("/"):
        raise UnfitItemsError(f"the glob {pattern} does not begin at /")
    base = base_of(pattern)
    paths = []
    for path in glob.iglob(pattern, recursive=True):
        if os.path.isfile(path):
            paths.append(path)
        if len(paths) > programs.items_max:
            raise UnfitItemsError(f"{pattern} gives more than {programs.items_max} files (items.max)")
    for path in sorted(set(paths)):
        name = os.path.relpath(path, base)
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            shown = os.fsencode(path).decode("utf-8", "replace")
            raise UnfitItemsError(f"{shown}: a file name that is not UTF-8 cannot be an item") from None
        if problem := item_name_problem(name):
            raise UnfitItemsError(f"{name[:80]!a}: {problem}")
        yield NewItem(id=name, source=Source(path=path))
