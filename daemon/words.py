"""Words that many verbs of `resumectl` take."""

import argparse

RECORD = "only if the job still stands at this record"


def said(made: argparse.ArgumentParser, *, needed: bool = False) -> None:
    """Why, and about which record of the job."""
    told = "kept in the job's history" + ("; it must be there" if needed else "")
    made.add_argument("--reason", default="", required=needed, metavar="TEXT", help=told)
    made.add_argument("--record", type=count, default=0, metavar="N", help=RECORD)


def count(word: str) -> int:
    """A whole number that is not negative."""
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a count, got {word!r}")
    return int(word)
