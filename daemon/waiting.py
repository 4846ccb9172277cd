"""Following one job until it ends or needs a person, across restarts of the daemon."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from resumed.schemas import control

from . import render, render_jobs
from .client import CallError, Client, UnreachableError, WaitOverError
from .letters import clean
from .screen import Screen, complain

FINAL_EXITS = {
    "completed": control.EXIT_DONE,
    "failed": control.EXIT_ENDED_WITH_FAILURES,
    "canceled": control.EXIT_CANCELED,
    "expired": control.EXIT_CANCELED,
}
COME_BACK_WITHIN = 60.0
LINE_EVERY = 1.0
LOOK_EVERY = 0.5


class Shown:
    """A job's row as it changes: a bar that is written over on a terminal, else a line now and then."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._at = 0.0
        self._last: dict[str, Any] = {}
        self.row: dict[str, Any] = {}

    def show(self, row: dict[str, Any]) -> None:
        """The row has changed."""
        screen, self.row = self._screen, row
        if screen.as_json:
            screen.show_json(row, indent=None)
        elif screen.live:
            line = render.paint(render_jobs.progress(row, screen.width), render.glyph_of(row), screen.colour)
            print(f"\r{line}\x1b[K", end="", flush=True)
        elif time.monotonic() - self._at >= LINE_EVERY or row["status"] != self._last.get("status"):
            self._line()

    def leave(self) -> None:
        """Nothing is written over any more."""
        if self._screen.live and not self._screen.as_json and self.row:
            print(flush=True)

    def end(self) -> None:
        """How it stands at the end, and what may be typed when a person is needed."""
        self.leave()
        if self._screen.as_json:
            return
        if not self._screen.live and self._last is not self.row:
            self._line()
        if self.row["needs_person"]:
            print(f"it needs a person: {render_jobs.needs(self.row, self._screen.now, 200)}")
            print(f"you may\n  resumectl why {clean(self.row['id'])}")

    def _line(self) -> None:
        print(plain_line(self.row), flush=True)
        self._at, self._last = time.monotonic(), self.row


def plain_line(row: dict[str, Any]) -> str:
    """A job's row as a line of its own, with the time."""
    clock = time.strftime("%T")
    return f"{clock} {render.glyph_of(row)} {clean(row['id'])} {row['status']}: {render_jobs.counts(row)}"


def follow(screen: Screen, client: Client, job: str, within: float | None) -> int:
    """Shows the job's row after each change; the exit code says how it stands at the end."""
    shown = Shown(screen)
    client.deadline = None if within is None else time.monotonic() + within
    try:
        for answer in through_restarts(screen, client, "Watch", lambda: None, job=job):
            shown.show(answer["row"])
            if shown.row["needs_person"]:
                break
        shown.end()
    except KeyboardInterrupt:
        return left(shown, job, "interrupted", control.EXIT_INTERRUPTED)
    except WaitOverError:
        return left(shown, job, "the time to wait is over", control.EXIT_WAIT_OVER)
    except BrokenPipeError:
        # Nobody reads on; that says nothing about the job.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return control.EXIT_INTERRUPTED
    except CallError as error:
        if not shown.row or error.parameters.get("code") != "set_aside":
            raise
        shown.leave()
        complain(error, commands=error.parameters["commands"])
        return control.EXIT_NEEDS_PERSON
    return exit_of(shown.row)


def left(shown: Shown, job: str, why: str, code: int) -> int:
    """Whoever waited goes; the job does not."""
    name = shown.row.get("id", job)
    shown.leave()
    complain(f"{why}: the job {name} goes on", commands=(shlex.join(["resumectl", "watch", name]),))
    return code


def exit_of(row: dict[str, Any]) -> int:
    """The exit code of a waiting form for the row it ended at."""
    if row["status"] not in FINAL_EXITS:
        return control.EXIT_NEEDS_PERSON
    if row["status"] == "completed" and row["done"] < row["total"]:
        return control.EXIT_ENDED_WITH_FAILURES
    return FINAL_EXITS[row["status"]]


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
            with_client = come_back(screen, error, client.deadline)
            anew()


def come_back(screen: Screen, gone: UnreachableError, until: float | None) -> Client:
    """A new connection once the daemon is there again; the error when it stays away."""
    end_of_line = "\n" if screen.live and not screen.as_json else ""
    print(f"{end_of_line}the daemon went away; waiting for it", file=sys.stderr)
    deadline = time.monotonic() + COME_BACK_WITHIN
    while True:
        time.sleep(LOOK_EVERY)
        if until is not None and time.monotonic() > until:
            raise WaitOverError
        try:
            client = Client(gone.path)
        except UnreachableError:
            if time.monotonic() > deadline:
                raise
        else:
            client.deadline = until
            return client
