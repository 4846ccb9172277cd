"""What each verb of `resumectl` asks and shows; errors of the daemon go up to `cli`."""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from resumed.schemas import control

from . import render
from .client import Client, UnreachableError, whole_job

FINAL_EXITS = {
    "completed": control.EXIT_DONE,
    "failed": control.EXIT_ENDED_WITH_FAILURES,
    "canceled": control.EXIT_CANCELED,
    "expired": control.EXIT_CANCELED,
}
COME_BACK_WITHIN = 60.0
LINE_EVERY = 1.0
LOOK_EVERY = 0.5


class UsageError(Exception):
    """A command line that cannot mean anything; exit code 2."""


class Screen:
    """Where output goes: its width, and whether a person looks at it."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.live = sys.stdout.isatty()
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self.now = time.time()

    @property
    def width(self) -> int:
        """Columns; a pipe takes any number."""
        if asked := os.environ.get("COLUMNS", ""):
            return int(asked) if asked.isdecimal() else 80
        return os.get_terminal_size(sys.stdout.fileno()).columns if self.live else 10_000

    def show_json(self, value: object, *, indent: int | None = 2) -> None:
        """One JSON value, escaped to ASCII, so that no terminal takes any of it for a command."""
        print(json.dumps(value, indent=indent), flush=indent is None)

    def show(self, answer: object, lines: Iterable[str]) -> None:
        """The answer as JSON when that was asked for, else the lines."""
        if self.as_json:
            self.show_json(answer)
        else:
            print("\n".join(lines))

    def bytes(self, chunk: bytes, text: str) -> None:
        """Foreign bytes as they are into a pipe, but as escaped text onto a terminal."""
        if not self.live:
            sys.stdout.flush()
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
        else:
            shown = "".join(one if one.isprintable() or one in "\n\t" else render.clean(one) for one in text)
            print(shown, end="", flush=True)


def status(screen: Screen, client: Client, _asked: argparse.Namespace) -> int:
    """How the daemon is."""
    answer = client.call("Status")
    screen.show(answer, render.house_view(answer["house"], client.path))
    return control.EXIT_DONE


def workflows(screen: Screen, client: Client, _asked: argparse.Namespace) -> int:
    """Which workflows a job file may name."""
    answer = client.call("Workflows")
    screen.show(answer, render.workflow_list(answer, screen.width, screen.colour))
    return control.EXIT_DONE


def quarantine(screen: Screen, client: Client, _asked: argparse.Namespace) -> int:
    """The jobs that were set aside."""
    answer = client.call("Quarantined")
    screen.show(answer, render.quarantine_list(answer["jobs"], screen.now, screen.width, screen.colour))
    return control.EXIT_DONE


def list_jobs(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """The open jobs."""
    answer = client.call("List", all=asked.all)
    screen.show(answer, render.job_list(answer, screen.now, screen.width, screen.colour, asked.all))
    return control.EXIT_DONE


def show(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """One job, whole."""
    answer = whole_job(client, asked.job)
    screen.show(answer, render.job_view(answer["job"], screen.now, screen.width, screen.colour, asked.all))
    return control.EXIT_DONE


def steer(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Pause, resume, cancel, retry, skip."""
    parameters: dict[str, Any] = {"job": asked.job, "reason": asked.reason}
    if asked.verb in ("retry", "skip"):
        parameters["items"] = asked.items
    if asked.verb == "pause":
        parameters["now"] = asked.now
    answer = client.call(asked.verb.capitalize(), **parameters)
    _show_told(screen, answer)
    return control.EXIT_DONE


def _show_told(screen: Screen, answer: dict[str, Any]) -> None:
    told = answer["told"]
    glyph = render.glyph_of(told["row"])
    screen.show(answer, [render.paint(f"{glyph} {render.clean(told['said'], 500)}", glyph, screen.colour)])


def submit(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Hand in a job file, its relative paths made absolute."""
    from . import jobtext

    try:
        raw = sys.stdin.buffer.read() if asked.file == "-" else _read(asked.file)
    except OSError as error:
        raise UsageError(f"cannot read {asked.file}: {error.strerror}") from None
    name = "standard input" if asked.file == "-" else os.path.basename(asked.file)
    folder = os.getcwd() if asked.file == "-" else os.path.dirname(os.path.abspath(asked.file))
    known = {row["name"]: row for row in client.call("Workflows")["workflows"]}
    try:
        raw, name = jobtext.with_absolute_paths(raw, name, folder, known)
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot submit {name}: not UTF-8 at byte {error.start}") from None
    answer = client.call("Submit", file=text, name=name)
    if not (asked.wait and screen.as_json):
        _show_told(screen, answer)
    return _watch(screen, client, answer["told"]["row"]["id"]) if asked.wait else control.EXIT_DONE


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def watch(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """Follow a job until it ends or needs a person."""
    return _watch(screen, client, asked.job)


def _watch(screen: Screen, client: Client, job: str) -> int:
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
                line = render.paint(render.progress(row, screen.width), glyph, screen.colour)
                print(f"\r{line}\x1b[K", end="", flush=True)
            elif time.monotonic() - shown_at >= LINE_EVERY or row["status"] != shown.get("status"):
                _plain_line(row)
                shown_at, shown = time.monotonic(), row
            if row["needs_person"]:
                break
    except KeyboardInterrupt:
        end_of_line = "\n" if screen.live and not screen.as_json else ""
        print(f"{end_of_line}interrupted: the job {render.clean(job)} goes on", file=sys.stderr)
        return control.EXIT_INTERRUPTED
    if not screen.as_json:
        _last_words(screen, row, already=shown is row)
    return exit_of(row)


def _plain_line(row: dict[str, Any]) -> None:
    clock = time.strftime("%T")
    line = f"{clock} {render.glyph_of(row)} {render.clean(row['id'])} {row['status']}: {render.counts(row)}"
    print(line, flush=True)


def _last_words(screen: Screen, row: dict[str, Any], *, already: bool) -> None:
    if screen.live:
        print()
    elif not already:
        _plain_line(row)
    if row["needs_person"]:
        print(f"it needs a person: {render.needs(row, screen.now, 200)}")
        print(f"you may\n  resumectl show {render.clean(row['id'])}")


def exit_of(row: dict[str, Any]) -> int:
    """The exit code of a waiting form for the row it ended at."""
    if row["status"] not in FINAL_EXITS:
        return control.EXIT_NEEDS_PERSON
    if row["status"] == "completed" and row["done"] < row["total"]:
        return control.EXIT_ENDED_WITH_FAILURES
    return FINAL_EXITS[row["status"]]


def _rows(screen: Screen, client: Client, job: str) -> Iterator[dict[str, Any]]:
    """Row after row, across restarts of the daemon."""
    with_client = client
    while True:
        try:
            for answer in with_client.stream("Watch", job=job):
                job = answer["row"]["id"]
                yield answer["row"]
            return
        except UnreachableError as error:
            end_of_line = "\n" if screen.live and not screen.as_json else ""
            print(f"{end_of_line}the daemon went away; waiting for it", file=sys.stderr)
            with_client = _come_back(error)


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


def logs(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """What the programs of a job said."""
    from .pieces import follow_logs

    return follow_logs(screen, client, asked.job, asked.item, asked.follow)


def output(screen: Screen, client: Client, asked: argparse.Namespace) -> int:
    """An item's accepted output, byte for byte."""
    from .pieces import print_output

    return print_output(screen, client, asked.job, asked.item)
