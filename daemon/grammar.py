"""The grammar of `resumectl`: every verb, what it takes, who serves it; asks nobody and prints nothing.

A verb is a row of `VERBS`. Only the rows that a command line names are built, so that a start stays light.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from .letters import wrap
from .screen import UsageError, terminal_columns

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
    made.add_argument(
        "--again", action="store_true", help="the same content once more, deliberately as another job"
    )


def _list(made: argparse.ArgumentParser) -> None:
    made.add_argument("-a", "--all", action="store_true", help="also the jobs that ended last")


def _job(made: argparse.ArgumentParser) -> None:
    made.add_argument("job", metavar="JOB", help="a job's id or a unique prefix of it")


def _show(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("--all", action="store_true", help="every item, in the job's order")


def _history(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("item", metavar="ITEM", nargs="?", help="only what touched this item")
    made.add_argument("-n", "--last", type=_count, default=0, metavar="N", help="only the last N records")


def _count(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a count, got {word!r}")
    return int(word)


def _logs(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("item", metavar="ITEM", nargs="?", help="one item; else all that were started")
    made.add_argument("-f", "--follow", action="store_true", help="go on while programs run")


def _output(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("item", metavar="ITEM", help="the item's name, whole")


def _steer(made: argparse.ArgumentParser) -> None:
    _job(made)
    _said(made)


def _said(made: argparse.ArgumentParser) -> None:
    made.add_argument("--reason", default="", metavar="TEXT", help="kept in the job's history")
    made.add_argument(
        "--record", type=_count, default=0, metavar="N", help="only if the job still stands at this record"
    )


def _pause(made: argparse.ArgumentParser) -> None:
    _steer(made)
    made.add_argument("--now", action="store_true", help="also stop what runs")


def _items(made: argparse.ArgumentParser) -> None:
    _job(made)
    made.add_argument("items", metavar="ITEM", nargs="*", help="these items; else all failed and held ones")
    _said(made)


def _quarantine(made: argparse.ArgumentParser) -> None:
    made.add_argument("what", choices=["list"], help="list: which they are, and why")


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
        "follow a job until it ends or needs a person",
        "resumectl watch attic",
        _job,
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
        "skip",
        "control",
        "verbs_steer:steer",
        "leave items out (all failed and held ones, when none is named) and go on with the others",
        "resumectl skip attic day-1.log --reason 'empty file'",
        _items,
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
        "quarantine",
        "house",
        "verbs_house:quarantine",
        "jobs that were set aside",
        "resumectl quarantine list",
        _quarantine,
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
GROUPS = {
    "work": "hand in jobs, look at them, fetch what they made",
    "control": "decide about a job",
    "house": "the daemon, and what it keeps",
}
OPTIONS = {
    "--json": "print what the daemon answered, as JSON",
    "--socket PATH": "the daemon's socket (or RESUMED_SOCKET)",
    "-h, --help": "what a verb takes, with an example",
    "--version": "which release this is",
}


class _Told(Exception):  # noqa: N818 - no error: the way out of a parser that was asked for help
    """A parser's help, on its way to whoever prints it."""


class Parser(argparse.ArgumentParser):
    """A parser that prints nothing and never exits: it raises UsageError, or its help."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        """Stock argparse asks for one with each word it is taught, and loads `shutil` for its width."""
        return argparse.HelpFormatter(self.prog, width=max(terminal_columns() - 2, 38))

    def error(self, message: str) -> NoReturn:
        """Why the words cannot be read, and what may be typed."""
        name = self.prog.partition(" ")[2]
        examples = tuple(verb.example for verb in VERBS if verb.name == name)
        raise UsageError(
            f"cannot read the command{f' {name}' if name else ''}: {message}",
            (*examples, f"resumectl {name} --help" if name else "resumectl --help"),
        )

    def print_help(self, file: object = None) -> NoReturn:
        """The help, raised."""
        del file
        raise _Told(self.format_help())


def parser(words: Sequence[str] | None = None) -> Parser:
    """The grammar: of the verbs in `words`, or of all verbs when it names none."""
    named = set(NAMES) if words is None else set(words) & set(NAMES) or set(NAMES)
    shared = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--socket", metavar="PATH", help=OPTIONS["--socket PATH"])
    shared.add_argument("--json", action="store_true", help=OPTIONS["--json"])
    top = Parser(prog="resumectl", parents=[shared], add_help=False, allow_abbrev=False)
    adding = top.add_subparsers(dest="verb", metavar="VERB", required=True, prog="resumectl")
    for verb in VERBS:
        if verb.name in named:
            made = adding.add_parser(
                verb.name,
                description=f"{verb.said[0].upper()}{verb.said[1:]}.",
                epilog=f"example: {verb.example}",
                parents=[shared],
                allow_abbrev=False,
            )
            verb.add(made)
            made.set_defaults(serve=verb.serve, alone=verb.alone)
    return top


def actions_of(name: str) -> list[argparse.Action]:
    """What one verb takes: its options, and its words in their order."""
    made = Parser(add_help=False)
    next(verb for verb in VERBS if verb.name == name).add(made)
    return made._actions


def read(words: Sequence[str]) -> argparse.Namespace | str:
    """What was asked for, or the text to print when that was help; UsageError for what cannot be read."""
    verb = verb_of(words)
    if verb == "" and "--version" in words:
        from resumed.schemas.release import VERSION

        return f"resumectl {VERSION}\n"
    if verb == "" and ("-h" in words or "--help" in words):
        return overview()
    if verb == "help":
        rest = [word for word in words if word != "help"]
        return read([*rest, "--help"])
    if verb == "":
        raise UsageError("cannot tell what to do: no verb was given", ("resumectl list", "resumectl --help"))
    if verb not in NAMES:
        raise _unknown(verb)
    try:
        return parser(words).parse_args(words)
    except _Told as told:
        return str(told)


def verb_of(words: Sequence[str]) -> str:
    """The first word that is no option and no option's value."""
    before = ""
    for word in words:
        if before != "--socket" and not word.startswith("-"):
            return word
        before = word
    return ""


def _unknown(verb: str) -> UsageError:
    import difflib

    close = difflib.get_close_matches(verb, NAMES, n=2)
    meant = f": did you mean {' or '.join(close)}?" if close else ""
    examples = tuple(row.example for row in VERBS if row.name in close)
    return UsageError(f"there is no verb {verb!r}{meant}", (*examples, "resumectl --help"))


def overview() -> str:
    """The screen of `resumectl --help`: every verb, by what it is for."""
    wide = max(terminal_columns() - 1, 40)
    last = "A job is named by its id or a unique prefix of it; resumectl VERB --help has an example."
    lines = ["usage: resumectl VERB ...", "", "Hand long jobs to resumed, watch them, steer them."]
    for group, about in GROUPS.items():
        rows = {verb.name: verb.said for verb in VERBS if verb.group == group}
        lines += ["", *wrap(f"{group}: {about}", wide), *_listed(rows, wide)]
    lines += ["", "options of every verb", *_listed(OPTIONS, wide), "", *wrap(last, wide)]
    return "\n".join(lines) + "\n"


def _listed(rows: dict[str, str], wide: int) -> list[str]:
    lines = []
    for name, said in rows.items():
        broken = wrap(said, wide - 17)
        lines += [f"  {name if i == 0 else '':<15}{part}" for i, part in enumerate(broken)]
    return lines
