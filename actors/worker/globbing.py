"""Files by pattern: an own walk, since Python's follows linked folders below `**` round and round.

`*`, `?` and `[..]` stand for parts of one name and never for a leading dot; `**` as a whole part stands for
any number of folders, hidden and linked ones excepted. It opens no file.
"""

import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator

_MAGIC = re.compile(r"[*?[]")
_ESCAPED = re.compile(r"\[([*?[])\]")  # how glob.escape spells a plain letter
_ANY = "**"


def is_wild(part: str) -> bool:
    """Whether a part of a pattern can stand for more than one name."""
    return _MAGIC.search(_ESCAPED.sub("", part)) is not None


def plain(part: str) -> str:
    """The name that a part stands for which is not wild."""
    return _ESCAPED.sub(r"\1", part)


def escape(text: str) -> str:
    """The pattern that stands for this very text."""
    return glob.escape(text)


def base_of(pattern: str) -> str:
    """The folder that names of a pattern's files are relative to: all of it before the first wild part."""
    parts = []
    for part in pattern.split("/")[:-1]:
        if is_wild(part):
            break
        parts.append(plain(part))
    return "/".join(parts) or "/"


def files(pattern: str, most: int, left_out: Callable[[str], None]) -> list[str]:
    """The regular files that an absolute pattern names, sorted; one more than `most` at most.

    `left_out` is told of each folder that may not be listed; OSError when one cannot be for another reason.
    """
    found: set[str] = set()
    # A stack, since folders may nest deeper than calls do.
    waiting = [("/", _parts(pattern))]
    while waiting and len(found) <= most:
        folder, parts = waiting.pop()
        if not is_wild(parts[0]):
            _plain(folder, parts, found, waiting)
            continue
        try:
            with os.scandir(folder) as listing:
                look = _any if parts[0] == _ANY else _wild
                for path, rest in look(folder, listing, parts):
                    if rest:
                        waiting.append((path, rest))
                    elif len(found) <= most:
                        found.add(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            left_out(folder)
    return sorted(found)


def _parts(pattern: str) -> tuple[str, ...]:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part and part != "." and not (part == _ANY and parts[-1:] == [_ANY]):
            parts.append(part)
    return tuple(parts) or (_ANY,)


_Rest = tuple[str, ...]


def _plain(folder: str, parts: _Rest, found: set[str], waiting: list[tuple[str, _Rest]]) -> None:
    path = os.path.join(folder, plain(parts[0]))
    if len(parts) > 1:
        waiting.append((path, parts[1:]))
    elif os.path.isfile(path):
        found.add(path)


def _any(folder: str, listing: Iterable[os.DirEntry[str]], parts: _Rest) -> Iterator[tuple[str, _Rest]]:
    """What a `**` leads to: here, each folder below, and where it is the last part each file."""
    if len(parts) > 1:
        yield folder, parts[1:]
    for entry in listing:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield os.path.join(folder, entry.name), parts
        elif len(parts) == 1 and _is_file(entry):
            yield os.path.join(folder, entry.name), ()


def _wild(folder: str, listing: Iterable[os.DirEntry[str]], parts: _Rest) -> Iterator[tuple[str, _Rest]]:
    matches = re.compile(fnmatch.translate(parts[0])).match
    for entry in listing:
        if (entry.name.startswith(".") and not parts[0].startswith(".")) or not matches(entry.name):
            continue
        if len(parts) > 1 or _is_file(entry):
            yield os.path.join(folder, entry.name), parts[1:]


def _is_file(entry: os.DirEntry[str]) -> bool:
    """True for a regular file, also behind links; a loop of links leads to none."""
    try:
        return entry.is_file()
    except OSError:
        return False
