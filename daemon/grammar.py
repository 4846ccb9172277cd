"""The grammar of `resumectl`: every verb, what it takes, who serves it; asks nobody and prints nothing.

A verb is a row of `VERBS`. Only the rows that a command line names are built, so that a start stays light.
"""

import argparse
from collections.abc import Callable, Iterable
from typing import NamedTuple

Add = Callable[[argparse.ArgumentParser], None]


class Verb(NamedTuple):
    """One verb: `serve` is `module:function` of the client half, imported when the verb is used."""

    name: str
    serve: str
    said: str
    example: str
    add: Add
    """Adds what the verb takes to its parser."""


def _nothing(_: argparse.ArgumentParser) -> None:
    """The verb takes no words."""


def _submit(made: argparse.ArgumentParser) -> None:
    made.add_argument("file", metavar="FILE|-", help="a job file, JSON or TOML; - reads standard input")
    made.add_argument("--wait", action="store_true", help="watch the job until it ends or needs a person")


def _list(made: argparse.ArgumentParser) -> None:
    made.add_argument("-a", "--all", action="store_true", help="also the jobs that ended last")


def _job(made: argparse.ArgumentParser) -> None:
    made.add_argument("job", metavar="JOB", help="a job's id or a unique prefix of it")


def _show(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("--all", action="store_true", help="every item, in the job's order")


def _logs(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("item", metavar="ITEM", nargs="?", help="one item; else all that were started")
    made.add_argument("-f", "--follow", action="store_true", help="go on while programs run")


def _output(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("item", metavar="ITEM", help="the item's name, whole")


def _steer(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("--reason", default="", metavar="TEXT", help="kept in the job's history")


def _pause(made: argparse.ArgumentParser) -> None:
    _steer(made)
    made.add_argument("--now", action="store_true", help="also stop what runs")


def _items(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("items", metavar="ITEM", nargs="*", help="these items; else all failed and held ones")
    made.add_argument("--reason", default="", metavar="TEXT", help="kept in the job's history")


def _quarantine(made: argparse.ArgumentParser) -> None:
    made.add_argument("what", choices=["list"], help="list: which they are, and why")


VERBS = (
    # ---- work
    Verb(
        "submit",
        "verbs_work:submit",
        "hand in a job file",
        "resumectl submit attic.json --wait",
        _submit,
    ),
    Verb(
        "list",
        "verbs_jobs:list_jobs",
        "the open jobs, oldest first",
        "resumectl list -a",
        _list,
    ),
    Verb(
        "show",
        "verbs_jobs:show",
        "one job, its items, and what may be done with it now",
        "resumectl show attic",
        _show,
    ),
    Verb(
        "watch",
        "verbs_work:watch",
        "follow a job until it ends or needs a person",
        "resumectl watch attic",
        _job,
    ),
    Verb(
        "logs",
        "verbs_jobs:logs",
        "what the programs of a job said",
        "resumectl logs attic day-1.log -f",
        _logs,
    ),
    Verb(
        "output",
        "verbs_jobs:output",
        "an item's accepted output, byte for byte",
        "resumectl output attic day-1.log > day-1.log.gz",
        _output,
    ),
    # ---- control
    Verb(
        "pause",
        "verbs_steer:steer",
        "start nothing new of a job; what runs may finish",
        "resumectl pause attic --now",
        _pause,
    ),
    Verb(
        "resume",
        "verbs_steer:steer",
        "go on with a paused or held job",
        "resumectl resume attic",
        _steer,
    ),
    Verb(
        "cancel",
        "verbs_steer:steer",
        "end a job: nothing new starts, what runs is stopped",
        "resumectl cancel attic --reason 'wrong folder'",
        _steer,
    ),
    Verb(
        "retry",
        "verbs_steer:steer",
        "give failed or held items (all of them, when none is named) a fresh set of tries",
        "resumectl retry attic day-1.log",
        _items,
    ),
    Verb(
        "skip",
        "verbs_steer:steer",
        "leave items out (all failed and held ones, when none is named) and go on with the others",
        "resumectl skip attic day-1.log --reason 'empty file'",
        _items,
    ),
    # ---- house
    Verb(
        "status",
        "verbs_house:status",
        "how the daemon is",
        "resumectl status --json",
        _nothing,
    ),
    Verb(
        "workflows",
        "verbs_house:workflows",
        "which workflows a job file may name",
        "resumectl workflows",
        _nothing,
    ),
    Verb(
        "quarantine",
        "verbs_house:quarantine",
        "jobs that were set aside",
        "resumectl quarantine list",
        _quarantine,
    ),
)
NAMES = tuple(verb.name for verb in VERBS)


def parser(words: Iterable[str] | None = None) -> argparse.ArgumentParser:
    """The grammar: of the verbs in `words`, or of all verbs when it names none."""
    named = set(NAMES) if words is None else set(words) & set(NAMES) or set(NAMES)
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--socket", metavar="PATH", help="the daemon's socket (or RESUMED_SOCKET)")
    shared.add_argument("--json", action="store_true", help="print what the daemon answered, as JSON")
    top = argparse.ArgumentParser(
        prog="resumectl",
        description="Hand long jobs to resumed, watch them, steer them.",
        parents=[shared],
        allow_abbrev=False,
    )
    adding = top.add_subparsers(dest="verb", metavar="VERB", required=True, prog="resumectl")
    for verb in VERBS:
        if verb.name not in named:
            continue
        made = adding.add_parser(
            verb.name,
            help=verb.said,
            description=verb.said,
            epilog=f"example: {verb.example}",
            parents=[shared],
            allow_abbrev=False,
        )
        verb.add(made)
        made.set_defaults(serve=verb.serve)
    return top
