"""The daemon's log lines: one record is one line, and nothing in it is a command to a terminal."""

import logging
import sys

import pytest

from resumed.daemon import check, logs
from resumed.store.examine import Finding


def spelled(message: str, *arguments: object, trace: bool = False, journal: bool = False) -> list[str]:
    exc = None
    if trace:
        try:
            raise ValueError("a\x1b[31mb")
        except ValueError:
            exc = sys.exc_info()
    record = logging.LogRecord("resumed", logging.WARNING, __file__, 1, message, arguments, exc)
    return logs.OneLine(stamped=False, journal=journal).format(record).split("\n")


def test_hostile_text_is_spelled_out() -> None:
    """A name with line feeds and escapes cannot forge a second line or reach the terminal."""
    lines = spelled("The file %s was refused.", "a\nE forged\x1b[2J\u202e\x9b")

    assert ["W The file a\\nE forged\\x1b[2J\\u202e\\x9b was refused."] == lines


def test_traceback_is_indented_and_spelled_out() -> None:
    """A traceback follows its sentence line by line, escaped like it."""
    lines = spelled("It failed.", trace=True)

    assert "W It failed." == lines[0]
    assert all(line.startswith("    ") and line.isprintable() for line in lines[1:])
    assert "    ValueError: a\\x1b[31mb" == lines[-1]


def test_long_line_is_cut() -> None:
    """No record floods the journal."""
    assert logs.LONGEST == len(spelled("%s", "x" * 100_000)[0])


VERDICTS = {
    "nothing": ((), 0),
    "what a crash leaves": (("temporary", "torn", "stray", "unfinished"), 0),
    "damage": (("temporary", "damaged"), 1),
    "a missing file": (("missing",), 1),
    "a later release's record": (("newer",), 1),
    "what could not be read": (("unreadable", "stray"), 3),
    "both": (("unreadable", "damaged"), 1),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_fsck_verdict(case: str) -> None:
    """0 is clean, 1 is damage, 3 is that not all could be read; damage outweighs the rest."""
    codes, verdict = VERDICTS[case]
    findings = tuple(Finding(path="p", job="j", code=code, detail="d") for code in codes)

    assert verdict == check.verdict_of(findings)
