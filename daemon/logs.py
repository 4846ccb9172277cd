"""How the daemon's log lines look: one line each on standard error, nothing in them a terminal would obey."""

import logging
import os
import sys
from collections.abc import Mapping
from typing import TextIO

LONGEST = 2000
PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))


def escape(text: str) -> str:
    """The text with everything unprintable escaped."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class OneLine(logging.Formatter):
    """Level, module and sentence on one line; a traceback follows, each of its lines indented.

    For the journal each line begins with its priority (sd-daemon(3)), which the journal takes away again.
    """

    def __init__(self, *, stamped: bool, journal: bool = False) -> None:
        stamp = "%(asctime)s " if stamped else ""
        super().__init__(f"{stamp}%(levelname).1s %(message)s")
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        bare = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None})
        lines = [escape(super().format(bare))[:LONGEST]]
        lines += [f"    {escape(line)[:LONGEST]}" for line in trace.splitlines()]
        before = f"<{_priority(record.levelno)}>" if self._journal else ""
        return "\n".join(before + line for line in lines)


def _priority(level: int) -> int:
    """syslog's number for a level."""
    return next((number for least, number in PRIORITIES if level >= least), 7)


def begin(environ: Mapping[str, str]) -> None:
    """Sends all log lines to standard error; the journal stamps them itself."""
    handler = logging.StreamHandler(sys.stderr)
    journal = _is_journal(environ, sys.stderr)
    handler.setFormatter(OneLine(stamped=not journal, journal=journal))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)


def _is_journal(environ: Mapping[str, str], stream: TextIO) -> bool:
    """Whether the stream is the very one that the variable names: a child's redirected one is not."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
