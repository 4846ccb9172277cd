"""Reading a command line of `resumectl` by the grammar: what was asked, or help, or what was wrong with it.

It asks nobody and prints nothing. Only the verbs that a line names are built, so that a start stays light.
"""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from . import grammar
from .letters import wrap
from .screen import UsageError, terminal_columns


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
        examples = tuple(verb.example for verb in grammar.VERBS if verb.name == name)
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
    named = set(grammar.NAMES) if words is None else set(words) & set(grammar.NAMES) or set(grammar.NAMES)
    shared = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--socket", metavar="PATH", help=grammar.OPTIONS["--socket PATH"])
    shared.add_argument("--json", action="store_true", help=grammar.OPTIONS["--json"])
    top = Parser(prog="resumectl", parents=[shared], add_help=False, allow_abbrev=False)
    adding = top.add_subparsers(dest="verb", metavar="VERB", required=True, prog="resumectl")
    for verb in grammar.VERBS:
        if verb.name in named:
            made = adding.add_parser(
                verb.name,
                description=f"{verb.said[0].upper()}{verb.said[1:]}.",
                epilog=f"example: {verb.example}",
                parents=[shared],
                allow_abbrev=False,
            )
            verb.add(made)
            made.set_defaults(serve=verb.serve, alone=verb.alone, changes=verb.name in grammar.CHANGING)
    return top


def actions_of(name: str) -> list[argparse.Action]:
    """What one verb takes: its options, and its words in their order."""
    made = Parser(add_help=False)
    next(verb for verb in grammar.VERBS if verb.name == name).add(made)
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
    if verb not in grammar.NAMES:
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

    close = difflib.get_close_matches(verb, grammar.NAMES, n=2)
    meant = f": did you mean {' or '.join(close)}?" if close else ""
    examples = tuple(row.example for row in grammar.VERBS if row.name in close)
    return UsageError(f"there is no verb {verb!r}{meant}", (*examples, "resumectl --help"))


def overview() -> str:
    """The screen of `resumectl --help`: every verb, by what it is for."""
    wide = max(terminal_columns() - 1, 40)
    last = "A job is named by its id or a unique prefix of it; resumectl VERB --help has an example."
    about = "Hand long jobs to resumed, watch them, steer them."
    lines = ["usage: resumectl VERB ...", "", *wrap(about, wide)]
    for group, about in grammar.GROUPS.items():
        rows = {verb.name: verb.said for verb in grammar.VERBS if verb.group == group}
        lines += ["", *wrap(f"{group}: {about}", wide), *_listed(rows, wide)]
    lines += ["", "options of every verb", *_listed(grammar.OPTIONS, wide), "", *wrap(last, wide)]
    return "\n".join(lines) + "\n"


def _listed(rows: dict[str, str], wide: int) -> list[str]:
    lines = []
    for name, said in rows.items():
        broken = wrap(said, wide - 17)
        lines += [f"  {name if i == 0 else '':<15}{part}" for i, part in enumerate(broken)]
    return lines
