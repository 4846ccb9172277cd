"""The grammar of `resumectl` as a table: every verb, what it takes, who serves it; `parsing` reads by it."""

import argparse
from collections.abc import Callable
from typing import NamedTuple

from . import grammar_people as people
from .words import count as _count
from .words import said as _said

Add = Callable[[argparse.ArgumentParser], None]


class Verb(NamedTuple):
    """One verb: `serve` is `module:function` of the client half, imported when the verb is used."""

    name: str
    group: str
    serve: str
    said: str
    example: str
    add: Add
    """Adds what the verb takes to its parser."""
    alone: bool = False
    """It needs no daemon: its function is not given a client."""


def _nothing(_: argparse.ArgumentParser) -> None:
    """The verb takes no words."""


def _submit(made: argparse.ArgumentParser) -> None:
    made.add_argument("file", metavar="FILE|-", help="a job file, JSON or TOML; - reads standard input")
    made.add_argument("--wait", action="store_true", help="watch the job until it ends or needs a person")
    _timeout(made)
    made.add_argument(
        "--dry-run", action="store_true", help="only say what it would become: its items, its first commands"
    )
    made.add_argument(
        "--again", action="store_true", help="the same content once more, deliberately as another job"
    )


def _lint(made: argparse.ArgumentParser) -> None:
    made.add_argument("file", metavar="FILE", help="a workflow or a job file")
    made.add_argument(
        "--workflows",
        default="",
        metavar="FOLDER",
        help="hold a job file's inputs against its workflow there",
    )


def _list(made: argparse.ArgumentParser) -> None:
    made.add_argument("-a", "--all", action="store_true", help="also the jobs that ended last")


def _job(made: argparse.ArgumentParser) -> None:
    made.add_argument("job", metavar="JOB", help="a job's id or a unique prefix of it")


def _timeout(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--timeout",
        type=_seconds,
        metavar="TIME",
        help="wait no longer than this (90s, 1h30m); the job goes on",
    )


UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def _seconds(word: str) -> float:
    """A span of time as people write it; a number alone is seconds."""
    total, number = 0.0, ""
    for one in word if word[-1:] in UNITS else f"{word}s":
        if one in UNITS and number:
            total, number = total + float(number) * UNITS[one], ""
        elif one.isdecimal() or (one == "." and "." not in number):
            number += one
        else:
            raise argparse.ArgumentTypeError(f"expected a time such as 90s or 1h30m, got {word!r}")
    return total


def _watch(made: argparse.ArgumentParser) -> None:
    made.add_argument("job", metavar="JOB", nargs="?", help="the job; else all open ones")
    _timeout(made)


def _show(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("--all", action="store_true", help="every item, in the job's order")
    made.add_argument("--contract", action="store_true", help="the workflow that it was admitted with")


def _history(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("item", metavar="ITEM", nargs="?", help="only what touched this item")
    made.add_argument("-n", "--last", type=_count, default=0, metavar="N", help="only the last N records")


def _logs(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("item", metavar="ITEM", nargs="?", help="one item; else the last lines of all")
    made.add_argument("-n", "--lines", type=_count, default=0, metavar="N", help="the last N lines of each")
    made.add_argument("-f", "--follow", action="store_true", help="go on while programs run")


def _output(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("item", metavar="ITEM", help="the item's name, whole")
    made.add_argument("-o", "--to", default="", metavar="FILE", help="into a new file; none is replaced")


def _steer(made: argparse.ArgumentParser) -> None:
    _job(made)
    _said(made)


def _extend(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("--usd", metavar="AMOUNT", help="what it may spend in all")
    made.add_argument("--tokens", type=_count, metavar="N", help="the tokens it may use in all")
    made.add_argument("--turns", type=_count, metavar="N", help="the turns it may take in all")
    made.add_argument("--active-time", metavar="SPAN", help="how long it may be at work in all, such as 48h")
    made.add_argument("--deadline", metavar="TIME", help="when it ends: a moment with its zone, or a span")
    _said(made)


def _pause(made: argparse.ArgumentParser) -> None:
    _steer(made)
    made.add_argument("--now", action="store_true", help="also stop what runs")


def _items(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("items", metavar="ITEM", nargs="*", help="these items; else all failed and held ones")
    _said(made)


def _reopen(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("items", metavar="ITEM", nargs="+", help="these items; each must have been settled")
    _said(made, needed=True)


def _quarantine(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "what",
        choices=["list", "show", "restore", "discard"],
        help="list: which they are; show: what is wrong, and where; restore: back, once its files hold; "
        "discard: give it up",
    )
    made.add_argument("job", metavar="JOB", nargs="?", help="the job, for all but list")
    made.add_argument("--reason", default="", metavar="TEXT", help="kept for ever with the id")
    made.add_argument("--yes", action="store_true", help="discard cannot be taken back: say that you mean it")


def _prune(made: argparse.ArgumentParser) -> None:
    made.add_argument("jobs", metavar="JOB", nargs="*", help="these ended jobs")
    made.add_argument("--older-than", default="", metavar="TIME", help="jobs that ended so long ago (30d)")
    made.add_argument("--dry-run", action="store_true", help="only say which, and how large they are")
    made.add_argument("--reason", default="", metavar="TEXT", help="kept for ever with the ids")
    made.add_argument("--yes", action="store_true", help="it cannot be taken back: say that you mean it")


def _completion(made: argparse.ArgumentParser) -> None:
    made.add_argument("shell", metavar="bash|zsh|fish", choices=SHELLS, help="which shell")


def _complete(made: argparse.ArgumentParser) -> None:
    made.add_argument("shell", choices=SHELLS)
    made.add_argument("words", nargs="*")


SHELLS = ("bash", "zsh", "fish")

VERBS = (
    Verb(
        "submit",
        "work",
        "verbs_work:submit",
        "hand in a job file",
        "resumectl submit attic.json --wait",
        _submit,
    ),
    Verb(
        "lint",
        "work",
        "lint:lint",
        "what is wrong with a workflow or job file, and what is worth a second thought",
        "resumectl lint workflows.d/shrink.toml",
        _lint,
        alone=True,
    ),
    Verb(
        "list",
        "work",
        "verbs_jobs:list_jobs",
        "the open jobs, oldest first",
        "resumectl list -a",
        _list,
    ),
    Verb(
        "show",
        "work",
        "verbs_jobs:show",
        "one job, its items, and what may be done with it now",
        "resumectl show attic",
        _show,
    ),
    Verb(
        "why",
        "work",
        "verbs_past:why",
        "why a job stands as it does, and what may be done about it",
        "resumectl why attic",
        _job,
    ),
    Verb(
        "history",
        "work",
        "verbs_past:history",
        "all that happened to a job: when, who or what decided, and why",
        "resumectl history attic -n 20",
        _history,
    ),
    Verb(
        "watch",
        "work",
        "verbs_work:watch",
        "follow a job until it ends or needs a person; without one, all that are open",
        "resumectl watch attic --timeout 30m",
        _watch,
    ),
    Verb(
        "logs",
        "work",
        "verbs_jobs:logs",
        "what the programs of a job said",
        "resumectl logs attic day-1.log -f",
        _logs,
    ),
    Verb(
        "output",
        "work",
        "verbs_jobs:output",
        "an item's accepted output, byte for byte",
        "resumectl output attic day-1.log > day-1.log.gz",
        _output,
    ),
    *(Verb(*row) for row in people.VERBS),
    Verb(
        "pause",
        "control",
        "verbs_steer:steer",
        "start nothing new of a job; what runs may finish",
        "resumectl pause attic --now",
        _pause,
    ),
    Verb(
        "resume",
        "control",
        "verbs_steer:steer",
        "go on with a paused or held job",
        "resumectl resume attic",
        _steer,
    ),
    Verb(
        "cancel",
        "control",
        "verbs_steer:steer",
        "end a job: nothing new starts, what runs is stopped",
        "resumectl cancel attic --reason 'wrong folder'",
        _steer,
    ),
    Verb(
        "retry",
        "control",
        "verbs_steer:steer",
        "give failed or held items (all of them, when none is named) a fresh set of tries",
        "resumectl retry attic day-1.log",
        _items,
    ),
    Verb(
        "extend",
        "control",
        "verbs_steer:steer",
        "let a job use more, within what its workflow allows",
        "resumectl extend attic --active-time 48h",
        _extend,
    ),
    Verb(
        "skip",
        "control",
        "verbs_steer:steer",
        "leave items out (all failed and held ones, when none is named) and go on with the others",
        "resumectl skip attic day-1.log --reason 'empty file'",
        _items,
    ),
    Verb(
        "reopen",
        "control",
        "verbs_steer:steer",
        "begin settled items again, also done ones; what was accepted stays in the job's history",
        "resumectl reopen attic day-1.log --reason 'its source was cut short'",
        _reopen,
    ),
    Verb(
        "status",
        "house",
        "verbs_house:status",
        "how the daemon is",
        "resumectl status --json",
        _nothing,
    ),
    Verb(
        "workflows",
        "house",
        "verbs_house:workflows",
        "which workflows a job file may name",
        "resumectl workflows",
        _nothing,
    ),
    Verb(
        "tools",
        "house",
        "verbs_people:tools",
        "what workflows may write to other systems, and what holds of each",
        "resumectl tools",
        _nothing,
    ),
    Verb(
        "quarantine",
        "house",
        "verbs_retire:quarantine",
        "jobs that were set aside: what is wrong with them; back, or for good",
        "resumectl quarantine show attic",
        _quarantine,
    ),
    Verb(
        "prune",
        "house",
        "verbs_retire:prune",
        "remove jobs that have ended, for good; their ids stay known",
        "resumectl prune --older-than 90d --dry-run",
        _prune,
    ),
    Verb(
        "completion",
        "house",
        "completion:script",
        "the script that completes verbs, jobs and items in your shell",
        "resumectl completion bash",
        _completion,
        alone=True,
    ),
    Verb(
        "complete",
        "",  # shells ask it
        "completion:complete",
        "what may stand next on a line",
        "resumectl complete zsh -- show",
        _complete,
        alone=True,
    ),
)
NAMES = tuple(verb.name for verb in VERBS)
CHANGING = frozenset(verb.name for verb in VERBS if verb.group in ("control", "people")) - {"inbox"} | {
    "submit",
    "quarantine",
    "prune",
}
"""Verbs after whose interruption nobody can tell whether they took effect."""
GROUPS = {
    "work": "hand in jobs, look at them, fetch what they made",
    "people": "what waits for a person, and what persons decide",
    "control": "decide about a job",
    "house": "the daemon, and what it keeps",
}
OPTIONS = {
    "--json": "print what the daemon answered, as JSON",
    "--socket PATH": "the daemon's socket (or RESUMED_SOCKET)",
    "-h, --help": "what a verb takes, with an example",
    "--version": "which release this is",
}
