"""Following a job until it ends or needs a person, across restarts of the daemon."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from resumed.schemas import control

from . import render, render_jobs
from .client import Client, UnreachableError
from .letters import clean
from .screen import Screen

FINAL_EXITS = {
    "completed": control.EXIT_DONE,
    "failed": control.EXIT_ENDED_WITH_FAILURES,
    "canceled": control.EXIT_CANCELED,
    "expired": control.EXIT_CANCELED,
}
COME_BACK_WITHIN = 60.0
LINE_EVERY = 1.0
LOOK_EVERY = 0.5


def follow(screen: Screen, client: Client, job: str) -> int:
    """Shows the job's row after each change; the exit code says how it stands at the end."""
    row: dict[str, Any] = {}
    shown_at = 0.0
    shown: dict[str, Any] = {}
    try:
        for row in _rows(screen, client, job):
            job = row["id"]
            if screen.as_json:
                screen.show_json(row, indent=None)
            elif screen.live:
                glyph = render.glyph_of(row)
                line = render.paint(render_jobs.progress(row, screen.width), glyph, screen.colour)
                print(f"\r{line}\x1b[K", end="", flush=True)
            elif time.monotonic() - shown_at >= LINE_EVERY or row["status"] != shown.get("status"):
                _plain_line(row)
                shown_at, shown = time.monotonic(), row
            if row["needs_person"]:
                break
    except KeyboardInterrupt:
        end_of_line = "\n" if screen.live and not screen.as_json else ""
        print(f"{end_of_line}interrupted: the job {clean(job)} goes on", file=sys.stderr)
        return control.EXIT_INTERRUPTED
    if not screen.as_json:
        _last_words(screen, row, already=shown is row)
    return exit_of(row)


def _plain_line(row: dict[str, Any]) -> None:
    clock = time.strftime("%T")
    line = f"{clock} {render.glyph_of(row)} {clean(row['id'])} {row['status']}: {render_jobs.counts(row)}"
    print(line, flush=True)


def _last_words(screen: Screen, row: dict[str, Any], *, already: bool) -> None:
    if screen.live:
        print()
    elif not already:
        _plain_line(row)
    if row["needs_person"]:
        print(f"it needs a person: {render_jobs.needs(row, screen.now, 200)}")
        print(f"you may\n  resumectl show {clean(row['id'])}")


def exit_of(row: dict[str, Any]) -> int:
    """The exit code of a waiting form for the row it ended at."""
    if row["status"] not in FINAL_EXITS:
        return control.EXIT_NEEDS_PERSON
    if row["status"] == "completed" and row["done"] < row["total"]:
        return control.EXIT_ENDED_WITH_FAILURES
    return FINAL_EXITS[row["status"]]


def _rows(screen: Screen, client: Client, job: str) -> Iterator[dict[str, Any]]:
    """Row after row, across restarts of the daemon."""
    asked = {"job": job}
    for answer in through_restarts(screen, client, "Watch", lambda: None, **asked):
        yield answer["row"]


def through_restarts(
    screen: Screen, client: Client, method: str, anew: Callable[[], None], **parameters: Any
) -> Iterator[dict[str, Any]]:
    """Answer after answer of a stream, which begins anew when the daemon has gone away and is back."""
    with_client = client
    while True:
        try:
            yield from with_client.stream(method, **parameters)
            return
        except UnreachableError as error:
            end_of_line = "\n" if screen.live and not screen.as_json else ""
            print(f"{end_of_line}the daemon went away; waiting for it", file=sys.stderr)
            with_client = _come_back(error)
            anew()


def _come_back(gone: UnreachableError) -> Client:
    """A new connection once the daemon is there again; the error when it stays away."""
    deadline = time.monotonic() + COME_BACK_WITHIN
    while True:
        time.sleep(LOOK_EVERY)
        try:
            return Client(gone.path)
        except UnreachableError:
            if time.monotonic() > deadline:
                raise
