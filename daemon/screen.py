"""Where a verb's output goes: a terminal or a pipe, text or JSON."""

import json
import os
import sys
import time
from collections.abc import Iterable

from . import render


class UsageError(Exception):
    """A command line that cannot mean anything; exit code 2."""


class Screen:
    """Where output goes: its width, and whether a person looks at it."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.live = sys.stdout.isatty()
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self.now = time.time()

    @property
    def width(self) -> int:
        """Columns; a pipe takes any number."""
        if asked := os.environ.get("COLUMNS", ""):
            return int(asked) if asked.isdecimal() else 80
        return os.get_terminal_size(sys.stdout.fileno()).columns if self.live else 10_000

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
        if not self.live:
            sys.stdout.flush()
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        else:
            shown = "".join(one if one.isprintable() or one in "\n\t" else render.clean(one) for one in text)
            print(shown, end="", flush=True)
