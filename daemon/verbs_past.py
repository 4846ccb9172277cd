"""The verbs that look back: why, history."""

import argparse

from resumed.schemas import control

from . import render_past
from .client import Client
from .screen import Screen, remark


def why(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Why a job stands as it does."""
    answer = client.call("Why", job=asked.job)
    lines = render_past.why_view(answer, screen.now, screen.width, screen.colour)
    screen.show(answer, lines)
    return control.EXIT_DONE


def history(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """All that happened to a job, piece by piece; as JSON, a line for each transition."""
    job, after, widths = asked.job, -asked.last, [4, 19, 4, 8, 8]
    notes: set[str] = set()
    while True:
        answer = client.call("History", job=job, after=after, item=asked.item or "")
        if screen.as_json:
            for row in answer["rows"]:
                screen.show_json(row, indent=None)
        elif answer["rows"]:
            print("\n".join(render_past.history_rows(answer["rows"], screen.width, widths)), flush=True)
        for note in answer["notes"]:
            if note not in notes:
                remark(note)
        notes.update(answer["notes"])
        job, after = answer["job"], answer["next"]
        if not after:
            return control.EXIT_DONE
