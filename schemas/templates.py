"""Placeholders in argv words and stdin: checked when the workflow is loaded, filled in for one try."""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

_SHELLS = frozenset(("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash"))
_SCRIPT = re.compile(r"[-+][A-Za-z]*c[A-Za-z]*\Z")
_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
OF_ITEM = frozenset(("item", "source", "source.stem", "source.rel", "note"))
"""What only an item has."""
PLAIN = OF_ITEM | frozenset(("output", "kept", "key", "job", "attempt"))
PUBLISHED = frozenset(("item", "source", "source.stem", "source.rel", "key", "job"))
"""What may name a published output, beside inputs: what is the same at every try."""
PATHS = frozenset(("item", "source", "source.stem", "source.rel", "output", "kept"))
"""Values that become `./-name` where they would begin a word with a dash."""


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    """The pieces of a template: (literal text, None) or (the piece as written, a placeholder's name)."""
    at = 0
    for found in _PART.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], None
        at = found.end()
        if found[0] in ("{{", "}}"):
            yield found[0][0], None
        else:
            # A brace on its own is no name: it stands for itself, so that `problems` sees it.
            yield found[0], found[0] if found[1] is None else found[1]
    if at < len(text):
        yield text[at:], None


def literal(text: str) -> str:
    """The template that stands for this very text."""
    return text.replace("{", "{{").replace("}", "}}")


def names(text: str) -> tuple[str, ...]:
    """The placeholders a template uses."""
    return tuple(name for _, name in _parts(text) if name is not None)


def uses(name: str, texts: Iterable[str]) -> bool:
    """Whether any of these templates uses a placeholder."""
    return any(name in names(text) for text in texts)


def problems(text: str, known: Collection[str]) -> Iterator[str]:
    """What is wrong with a template, given the placeholders that exist where it stands."""
    for piece, name in _parts(text):
        if name in ("{", "}"):
            yield f"a single {piece!r}: write {piece}{piece} for the character itself"
        elif name is not None and name not in known:
            yield f"unknown placeholder {{{name}}}"


def argv_problems(argv: tuple[str, ...], known: Collection[str]) -> Iterator[tuple[int, str]]:
    """What is wrong with an argv list, by the word's place in it."""
    for place, word in enumerate(argv):
        for problem in problems(word, known):
            yield place, problem
    if argv and names(argv[0]):
        yield 0, "the program itself is never a placeholder"
    for place in _scripts(argv):
        if names(argv[place]):
            yield place, 'no placeholder inside a shell\'s script: pass it as an argument, and use "$1"'


def _scripts(argv: tuple[str, ...]) -> Iterator[int]:
    """The places of words that some shell in this argv reads as a script."""
    for place, word in enumerate(argv):
        if posixpath.basename(word) not in _SHELLS:
            continue
        reads_script = False
        for after in range(place + 1, len(argv)):
            if argv[after].startswith(("-", "+")) and argv[after] != "-":
                reads_script = reads_script or _SCRIPT.match(argv[after]) is not None
                continue
            if reads_script:
                yield after
            break


def fill(text: str, values: Mapping[str, str]) -> str:
    """A template with its values; KeyError for one that has none."""
    return "".join(piece if name is None else values[name] for piece, name in _parts(text))


def fill_word(word: str, values: Mapping[str, str]) -> str:
    """An argv word with its values, where no path can be taken for an option."""
    filled = fill(word, values)
    first = next(iter(_parts(word)), ("", None))[1]
    if filled.startswith("-") and first is not None and (first in PATHS or first.startswith("outputs.")):
        return f"./{filled}"
    return filled


def fill_some(text: str, values: Mapping[str, str]) -> str:
    """A template in which the values that are known stand for themselves; the rest is filled later."""
    return "".join(
        literal(piece if name is None else values[name]) if name is None or name in values else piece
        for piece, name in _parts(text)
    )


def fill_word_some(word: str, values: Mapping[str, str]) -> str:
    """`fill_some` for an argv word, where no path can be taken for an option."""
    filled = fill_some(word, values)
    first = next(iter(_parts(word)), ("", None))[1]
    return f"./{filled}" if filled.startswith("-") and first in PATHS else filled


def variable(name: str) -> str:
    """The environment variable that carries a placeholder's value."""
    return "RESUMED_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
