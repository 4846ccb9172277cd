"""Drafts the caption of one photo from its card: `caption.py CARD [NOTE]`, one line on stdout.

A card is a text file of `key: value` lines. NOTE is what a reviewer wrote when a caption was sent back.
"""

import sys
from pathlib import Path


def caption(card: str, note: str = "") -> str:
    """Who, where and when, as far as the card says so."""
    told = dict(line.split(": ", 1) for line in card.splitlines() if ": " in line)
    words = [told["shows"], told.get("place", "place unknown"), told.get("year", "undated")]
    return ", ".join(words) + (f" ({note})" if note else "") + ".\n"


if __name__ == "__main__":
    sys.stdout.write(caption(Path(sys.argv[1]).read_text(), *sys.argv[2:3]))
