"""An edited draft's text: from a file, or from standard input."""

import sys

from .screen import UsageError


def read(path: str) -> str:
    """The text in a file (`-`: standard input); UsageError when it cannot be read or is no text."""
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode()
        with open(path, "rb") as file:
            return file.read().decode()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"cannot read {path}: it is no UTF-8 text ({error.reason} at byte {error.start})"
        ) from None
