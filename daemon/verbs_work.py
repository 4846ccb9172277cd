"""The verbs that hand in a job and follow it: submit, watch."""

import argparse
import os
import sys

from resumed.schemas import control

from . import waiting
from .client import Client
from .screen import Screen, UsageError
from .verbs_steer import show_told

INSTEAD = ("resumectl workflows", "resumectl submit --help")
"""What may be typed when a job file cannot be read."""


def submit(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Hand in a job file, its relative paths made absolute."""
    from . import jobtext

    try:
        raw = sys.stdin.buffer.read() if asked.file == "-" else _read(asked.file)
    except OSError as error:
        raise UsageError(f"cannot read {asked.file}: {error.strerror}", INSTEAD) from None
    name = "standard input" if asked.file == "-" else os.path.basename(asked.file)
    folder = os.getcwd() if asked.file == "-" else os.path.dirname(os.path.abspath(asked.file))
    known = {row["name"]: row for row in client.call("Workflows")["workflows"]}
    try:
        raw, name = jobtext.with_absolute_paths(raw, name, folder, known)
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot submit {name}: not UTF-8 at byte {error.start}", INSTEAD) from None
    if asked.dry_run:
        return _rehearse(screen, client, text, name)
    answer = client.call("Submit", file=text, name=name, again=asked.again)
    if not (asked.wait and screen.as_json):
        show_told(screen, answer)
    if not asked.wait:
        return control.EXIT_DONE
    return waiting.follow(screen, client, answer["told"]["row"]["id"], asked.timeout)


def _rehearse(screen: Screen, client: Client, text: str, name: str) -> int:
    """Say what the job would become; exit 1 when it would be held."""
    from .render_preview import preview

    answer = client.call("Preview", file=text, name=name)
    screen.show(answer, preview(answer["preview"], screen.colour))
    return control.EXIT_REFUSED if answer["preview"]["problem"] else control.EXIT_DONE


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def watch(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Follow a job until it ends or needs a person; or all of them."""
    if asked.job:
        return waiting.follow(screen, client, asked.job, asked.timeout)
    from .watching import follow_all

    return follow_all(screen, client, asked.timeout)
