"""Where a verb's output goes: a terminal or a pipe, text or JSON; it knows no verb and no daemon."""

import json
import os
import sys
import time
from collections.abc import Iterable
from typing import TextIO

from . import letters


class UsageError(Exception):
    """A command line that cannot mean anything; exit code 2. `commands` are what may be typed instead."""

    def __init__(self, said: str, commands: tuple[str, ...] = ()) -> None:
        super().__init__(said)
        self.commands = commands


class Screen:
    """Where output goes: its width, and whether a person looks at it."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.terminal = sys.stdout.isatty()
        dumb = os.environ.get("TERM", "") in ("", "dumb")
        self.live = self.terminal and not dumb
        """Whether a line can be written over."""
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self.now = time.time()

    @property
    def width(self) -> int:
        """Columns; a pipe takes any number."""
        return terminal_columns(of_a_pipe=10_000)

    def show_json(self, value: object, *, indent: int | None = 2) -> None:
        """One JSON value, escaped to ASCII, so that no terminal takes any of it for a command."""
        print(json.dumps(value, indent=indent), flush=indent is None)

    def show(self, answer: object, lines: Iterable[str]) -> None:
        """The answer as JSON when that was asked for, else the lines."""
        if self.as_json:
            self.show_json(answer)
        else:
            print("\n".join(lines))

    def bytes(self, chunk: bytes, text: str) -> None:
        """Foreign bytes as they are into a pipe, but as escaped text onto a terminal."""
        if not self.terminal:
            sys.stdout.flush()
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        else:
            shown = "".join(one if one.isprintable() or one in "\n\t" else letters.clean(one) for one in text)
            print(shown, end="", flush=True)


def _columns_of(stream: TextIO) -> int:
    """The width of the terminal behind a stream; a file takes any number."""
    try:
        return max(20, os.get_terminal_size(stream.fileno()).columns or 80)
    except (OSError, ValueError):
        return 10_000


def terminal_columns(of_a_pipe: int = 80) -> int:
    """The width of the terminal that shows what we print, or what `COLUMNS` says it is."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return of_a_pipe


def complain(said: object, *, more: Iterable[object] = (), commands: Iterable[str] = ()) -> None:
    """A refusal on standard error: the sentence, what more is known, and what may be typed now."""
    wide = _columns_of(sys.stderr)
    lines = letters.wrap(f"resumectl: {letters.clean(said, 2000)}", wide)
    for one in more:
        lines += [f"  {part}" for part in letters.wrap(letters.clean(one, 500), wide - 2)]
    if possible := [f"  {letters.clean(command, 500)}" for command in commands]:
        lines += ["you may", *possible]
    print("\n".join(lines), file=sys.stderr)


def remark(said: object) -> None:
    """A sentence beside the output, on standard error."""
    print(f"resumectl: {letters.clean(said, 500)}", file=sys.stderr)


def prepare() -> None:
    """Make the two streams take every text: a letter that the locale does not have is spelled in ASCII."""
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - it is open as long as we live
        elif (change := getattr(stream, "reconfigure", None)) is not None:
            change(errors="backslashreplace")
