"""`docs/man/resumectl.1` as text: the verbs from the grammar itself, the rest from here."""

import argparse

from resumed.daemon import grammar, parsing
from resumed.schemas import control

EXITS = {
    control.EXIT_DONE: "Done.",
    control.EXIT_REFUSED: "Refused: the reason and what may be typed now are on standard error.",
    control.EXIT_USAGE: "The command line cannot be read.",
    control.EXIT_UNREACHABLE: "No daemon answers at the socket.",
    control.EXIT_NO_SUCH: "There is no job, item or id of that name.",
    control.EXIT_NOT_PERMITTED: "The role that this needs is missing.",
    control.EXIT_MOVED: "The record moved on from the one that was named, or nobody can tell whether the "
    "command took effect: look again.",
    control.EXIT_ENDED_WITH_FAILURES: "The job ended with failed or skipped items.",
    control.EXIT_NEEDS_PERSON: "The job needs a person.",
    control.EXIT_CANCELED: "The job was canceled, or its deadline ended it.",
    control.EXIT_WAIT_OVER: "The time to wait is over; the job goes on.",
    control.EXIT_INTERRUPTED: "Interrupted; the job goes on.",
}
WAITING = (
    control.EXIT_ENDED_WITH_FAILURES,
    control.EXIT_NEEDS_PERSON,
    control.EXIT_CANCELED,
    control.EXIT_WAIT_OVER,
)

SHAPES = {
    # verb (and its word) -> what `--json` prints: one value, or `lines`, a value on each line; and its keys
    "submit": ("one", "told"),
    "submit --dry-run": ("one", "preview"),
    "lint": ("one", "file, kind, problems, warnings"),
    "list": ("one", "jobs, ended, ended_count, ended_since, you"),
    "show": ("one", "job"),
    "show --contract": ("one", "job, sha256, contract"),
    "why": ("one", "why, role, yours"),
    "history": (
        "lines",
        "sequence, at, epoch, by, transition, rule, choice, reason, started, stopped, evidence",
    ),
    "watch": ("lines", "the row of the job, as in list"),
    "logs": ("lines", "item, text"),
    "output": ("one", "sha256, size, base64"),
    "output --to": ("one", "file, sha256, size"),
    "inbox": ("one", "asks, you"),
    "approve": ("one", "told"),
    "deny": ("one", "told"),
    "send-back": ("one", "told"),
    "revoke": ("one", "told"),
    "answer": ("one", "told"),
    "settle": ("one", "told"),
    "tools": ("one", "tools, problems"),
    "pause": ("one", "told"),
    "resume": ("one", "told"),
    "cancel": ("one", "told"),
    "retry": ("one", "told"),
    "skip": ("one", "told"),
    "reopen": ("one", "told"),
    "extend": ("one", "told"),
    "status": ("one", "house, you"),
    "workflows": ("one", "workflows, problems"),
    "quarantine list": ("one", "jobs"),
    "quarantine show": ("one", "aside"),
    "quarantine restore": ("one", "told"),
    "quarantine discard": ("one", "told"),
    "prune --dry-run": ("one", "jobs, count"),
    "prune --yes": ("one", "removed"),
}

ENVIRONMENT = {
    "RESUMED_SOCKET": "The daemon's socket, where --socket names none.",
    "XDG_RUNTIME_DIR": "Where the socket of a user's own daemon is: $XDG_RUNTIME_DIR/resumed/control.",
    "NO_COLOR": "When set, nothing is coloured; the sign and the word say the same.",
    "TERM": "On a dumb terminal no line is written over, and nothing is coloured.",
    "COLUMNS": "The width of the screens, where it is not the terminal's.",
    "LC_ALL, LC_CTYPE, LANG": "Where they name no UTF-8, letters beyond ASCII are spelled (\\u65e5).",
    "TZ": "The time zone of the screens. Records and JSON have UTC.",
}
FILES = {
    "/run/resumed/control": "The socket of the host's daemon: the one for root, and for everybody who has no "
    "daemon of their own.",
    "$XDG_RUNTIME_DIR/resumed/control": "The socket of a user's own daemon.",
}
SIGNS = {
    "!": "a person must act, or the job is set aside",
    ">": "it runs",
    "o": "it waits, and goes on by itself",
    ".": "it could start",
    "=": "a person paused it",
    "?": "another system is being asked",
    "*": "it waits for you, in the inbox",
    "+": "completed",
    "x": "failed",
    "-": "canceled, expired or left out",
}


def page() -> str:
    """The whole page, in man(7) macros."""
    lines = [
        '.\\" Drawn by tests/test_cli_manual.py; it is not edited.',
        '.TH RESUMECTL 1 "" resumed "User Commands"',
        ".SH NAME",
        "resumectl \\- hand long jobs to resumed, watch them, steer them",
        ".SH SYNOPSIS",
        ".B resumectl",
        ".I VERB",
        "[options] [words]",
        ".SH DESCRIPTION",
        ".B resumectl",
        "is the client of",
        ".BR resumed (8),",
        "a daemon for long jobs on one Linux host.",
        "It asks over a Unix socket, prints what it is told, and holds no state of its own.",
        ".PP",
        _text(
            "A job is named by its id or a unique prefix of it: open jobs come first, then those that have "
            "ended or are set aside. Every refusal, and every why, ends with the exact commands that are "
            "possible now."
        ),
        ".SH VERBS",
    ]
    for group, about in grammar.GROUPS.items():
        lines.append(f'.SS "{_text(f"{group}: {about}")}"')
        for verb in grammar.VERBS:
            if verb.group == group:
                lines += _verb(verb)
    lines += [".SH OPTIONS", _text("Before or after the verb:"), *_listed(grammar.OPTIONS)]
    lines += [".SH SCREENS", _text("The first sign of a line says how a job or an item stands:")]
    lines += _listed(SIGNS)
    lines += [
        ".PP",
        _text(
            "Columns go from the right where the terminal is narrow. What jobs, files and programs call "
            "themselves is printed with everything unprintable spelled, so that no terminal obeys it."
        ),
        *_json(),
        ".SH EXIT STATUS",
        *_listed({str(code): said for code, said in EXITS.items()}),
        ".PP",
        _text(f"{', '.join(map(str, WAITING))} come from the waiting forms only: watch, and submit --wait."),
        ".SH ENVIRONMENT",
        *_listed(ENVIRONMENT),
        ".SH FILES",
        *_listed(FILES),
        ".SH SEE ALSO",
        ".BR resumed (8)",
    ]
    return "\n".join(lines) + "\n"


def _json() -> list[str]:
    lines = [
        ".SH JSON",
        _text(
            "With --json each verb prints what the daemon answered, in ASCII: one object, or where answers "
            "come one after the other an object on each line. The records are those of the interface "
            "org.resumed.Control, whose text the daemon hands out (varlinkctl introspect). Keys are added in "
            "later releases, and none is taken away or given another meaning. A refusal is an object too, "
            "with the keys error and parameters."
        ),
    ]
    for verb, (form, keys) in SHAPES.items():
        lines += [".TP", f".B {_text(verb)}", _text(keys if form == "one" else f"each line: {keys}")]
    return lines


def _verb(verb: grammar.Verb) -> list[str]:
    actions = parsing.actions_of(verb.name)
    words = [_usage(each) for each in actions if not each.option_strings]
    lines = [
        ".TP",
        f".B {_text(' '.join([verb.name, *words, *_options(actions)]))}",
        _text(_sentence(verb.said)),
    ]
    for each in actions:
        name = ", ".join(each.option_strings) or _usage(each)
        value = f" {each.metavar}" if each.option_strings and each.nargs is None else ""
        if each.help:
            lines += [".RS", ".TP", f".B {_text(name + value)}", _text(_sentence(each.help)), ".RE"]
    return [*lines, ".RS", ".PP", f".EX\n{_text(verb.example)}\n.EE", ".RE"]


def _usage(action: argparse.Action) -> str:
    name = str(action.metavar or "|".join(map(str, action.choices or [action.dest])))
    return {"?": f"[{name}]", "*": f"[{name} ...]"}.get(str(action.nargs), name)


def _options(actions: list[argparse.Action]) -> list[str]:
    return [
        f"[{each.option_strings[0]}{f' {each.metavar}' if each.nargs is None else ''}]"
        for each in actions
        if each.option_strings
    ]


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}" + ("" if said.endswith(".") else ".")


def _listed(rows: dict[str, str]) -> list[str]:
    return [
        line for name, said in rows.items() for line in (".TP", f".B {_text(name)}", _text(_sentence(said)))
    ]


def _text(said: str) -> str:
    """The text with what the macros would take for their own spelled out."""
    spelled = said.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{spelled}" if spelled.startswith((".", "'")) else spelled
