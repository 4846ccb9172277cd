"""Following all open jobs until none goes on by itself: a screen drawn anew, or a line for each change."""

import os
import time
from typing import Any

from resumed.schemas import control

from . import render_jobs, waiting
from .client import Client, UnreachableError, WaitOverError, whole_list
from .screen import Screen, complain
from .verbs_jobs import midnight

LOOK_EVERY = 1.0
SHARE = 20
"""Looks take a twentieth of the time at most, however many jobs there are."""
MOVING = frozenset({"ready", "resuming", "running", "waiting", "reconciling"})
"""Under these a job goes on by itself."""


def follow_all(screen: Screen, client: Client, within: float | None) -> int:
    """Shows the open jobs as they change; 11 when some need a person at the end."""
    until = None if within is None else time.monotonic() + within
    known: dict[str, tuple[str, int]] = {}
    try:
        while True:
            began = time.monotonic()
            client, answer = _asked(screen, client, until)
            rows = answer["jobs"]
            _show(screen, answer, known)
            if not any(row["status"] in MOVING for row in rows):
                break
            pause = max(LOOK_EVERY, SHARE * (time.monotonic() - began))
            if until is not None and time.monotonic() + pause > until:
                return _over()
            time.sleep(pause)
    except KeyboardInterrupt:
        complain("interrupted: the jobs go on", commands=("resumectl list",))
        return control.EXIT_INTERRUPTED
    except WaitOverError:
        return _over()
    return control.EXIT_NEEDS_PERSON if any(row["needs_person"] for row in rows) else control.EXIT_DONE


def _over() -> int:
    complain("the time to wait is over: the jobs go on", commands=("resumectl list",))
    return control.EXIT_WAIT_OVER


def _asked(screen: Screen, client: Client, until: float | None) -> tuple[Client, dict[str, Any]]:
    """What there is now, from a daemon that may have been started anew; the client that it was asked by."""
    while True:
        try:
            return client, whole_list(client, all=False, since=midnight(time.time()))
        except UnreachableError as error:
            client = waiting.come_back(screen, error, until)


def _show(screen: Screen, answer: dict[str, Any], known: dict[str, tuple[str, int]]) -> None:
    if screen.live and not screen.as_json:
        screen.now = time.time()
        lines = render_jobs.job_list(answer, screen.now, screen.width, screen.colour, everything=False)
        room = max(3, os.get_terminal_size().lines - 2)
        if len(lines) > room:
            lines = [*lines[: room - 2], f"  and {len(lines) - room + 1} more", lines[-1]]
        print("\x1b[H\x1b[2J" + "\n".join(lines), flush=True)
        return
    for row in answer["jobs"]:
        stands = (row["status"], row["done"])
        if known.get(row["id"]) != stands:
            known[row["id"]] = stands
            if screen.as_json:
                screen.show_json(row, indent=None)
            else:
                print(waiting.plain_line(row), flush=True)
    for gone in known.keys() - {row["id"] for row in answer["jobs"]}:
        del known[gone]
        if not screen.as_json:
            print(f"{time.strftime('%T')} + {gone} is no longer open", flush=True)
