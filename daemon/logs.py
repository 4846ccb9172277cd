"""How the daemon's log lines look: one line each on standard error, nothing in them a terminal would obey."""

import logging
import sys
from collections.abc import Mapping

LONGEST = 2000


def escape(text: str) -> str:
    """The text with everything unprintable escaped."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class OneLine(logging.Formatter):
    """Level, module and sentence on one line; a traceback follows, each of its lines indented."""

    def __init__(self, *, stamped: bool) -> None:
        stamp = "%(asctime)s " if stamped else ""
        super().__init__(f"{stamp}%(levelname).1s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        bare = logging.makeLogRecord({**record.__dict__, "exc_info": None, "exc_text": None})
        lines = [escape(super().format(bare))[:LONGEST]]
        lines += [f"    {escape(line)[:LONGEST]}" for line in trace.splitlines()]
        return "\n".join(lines)


def begin(environ: Mapping[str, str]) -> None:
    """Sends all log lines to standard error; the journal stamps them itself."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(stamped="JOURNAL_STREAM" not in environ))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
