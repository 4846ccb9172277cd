"""What may stand next on a command line: verbs, options, job and item ids; and the scripts that ask for it.

A shell asks with each press of a key: the daemon has a moment to answer, and silence is an answer.
"""

import argparse
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from resumed.schemas import control

from . import grammar, parsing
from .client import CallError, Client, UnreachableError, default_path, whole_list
from .screen import Screen

PATIENCE = 0.5
"""Seconds for each of connecting and answering."""
FILES = ":files"
"""Said to a shell that shall complete file names itself."""
MOST = 500

OPEN = ("pause", "resume", "cancel", "retry", "skip", "reopen", "extend", "revoke")
"""Verbs about open jobs only; the others look at ended ones too."""
ASKED = {
    "inbox": ("approve", "review", "answer", "settle"),
    **dict.fromkeys(("approve", "deny", "send-back"), ("approve", "review")),
    "answer": ("answer",),
    "settle": ("settle",),
}
"""Verbs about what waits in the inbox, and the kinds that they decide."""
ITEM_STATES = {
    "output": ("done",),
    "retry": ("failed", "held", "skipped"),
    "reopen": ("done", "failed", "held", "skipped"),
}
"""Verbs that only make sense for items in these states."""

Found = list[tuple[str, str]]
"""Words that may stand there, each with what it is."""
OPTIONS = [(name.partition(", ")[2] or name.split()[0], said) for name, said in grammar.OPTIONS.items()]


def candidates(words: Sequence[str]) -> Found:
    """What the last of these words (those after `resumectl`; it may be empty) may become."""
    *before, start = words or [""]
    found = _candidates(list(before), start)
    return [(word, said) for word, said in found if word.startswith(start) or word == FILES][:MOST]


def _candidates(before: list[str], start: str) -> Found:
    verb = parsing.verb_of(before)
    if before and before[-1] == "--socket":
        return [(FILES, "")]
    if not verb:
        if start.startswith("-"):
            return OPTIONS
        return [(each.name, each.said) for each in grammar.VERBS if each.group]
    if verb not in grammar.NAMES:
        return []
    actions = parsing.actions_of(verb)
    options = {name: each for each in actions for name in each.option_strings}
    if before[-1] in options and options[before[-1]].nargs is None:
        return []  # a value that only the writer knows
    if start.startswith("-"):
        return [(name, each.help or "") for name, each in options.items() if name.startswith("--")]
    placed = _placed(before, verb, options)
    positional = [each for each in actions if not each.option_strings]
    place = min(len(placed), len(positional) - 1)
    if place < 0 or (len(placed) > place and positional[place].nargs not in ("*", "+")):
        return []
    return _words_for(positional[place], verb, placed, _socket(before))


def _placed(before: list[str], verb: str, options: dict[str, argparse.Action]) -> list[str]:
    """The words after the verb that stand in its places, without options and their values."""
    placed, skip = [], False
    for word in before[before.index(verb) + 1 :]:
        if skip:
            skip = False
        elif word.startswith("-") and word != "-":
            skip = word == "--socket" or (word in options and options[word].nargs is None)
        else:
            placed.append(word)
    return placed


def _socket(before: list[str]) -> str:
    for word, following in zip(before, [*before[1:], ""], strict=True):
        if word == "--socket" and following:
            return following
        if word.startswith("--socket="):
            return word.partition("=")[2]
    return default_path()


def _words_for(action: argparse.Action, verb: str, placed: list[str], socket: str) -> Found:
    if action.choices is not None:
        return [(str(each), "") for each in action.choices]
    if action.dest == "file":
        return [(FILES, "")]
    try:
        with Client(socket, patience=PATIENCE) as client:
            if action.dest == "job":
                return _aside(client) if verb == "quarantine" else _jobs(client, verb)
            if action.dest == "ask":
                if verb == "revoke":
                    return _jobs(client, verb)
                return _asks(client, ASKED[verb], everybody=verb == "inbox")
            if action.dest == "subject" and placed:
                return [(row["item"] or row["id"], row["what"]) for row in _asked_by(client, placed[0])]
            if action.dest in ("item", "items") and placed:
                return _items(client, verb, placed)
    except (UnreachableError, CallError, OSError):
        pass  # nobody is there, or nobody of that name
    return []


def _jobs(client: Client, verb: str) -> Found:
    answer = whole_list(client, all=verb not in OPEN)
    rows = [*answer["jobs"], *answer["ended"]]
    return [(row["id"], f"{row['status']}, {row['done']}/{row['total']}") for row in rows]


def _asks(client: Client, kinds: tuple[str, ...], *, everybody: bool) -> Found:
    """What waits for whoever types, or for anybody, of these kinds."""
    rows = [row for row in client.call("Inbox")["asks"] if row["kind"] in kinds]
    rows = [row for row in rows if everybody or row["yours"]]
    return [(row["id"], f"{row['job']}: {row['what']}") for row in rows]


def _asked_by(client: Client, job: str) -> list[dict[str, Any]]:
    return [row for row in client.call("Inbox")["asks"] if row["job"] == job]


def _aside(client: Client) -> Found:
    return [(row["id"], row["reason"]) for row in client.call("Quarantined")["jobs"]]


def _items(client: Client, verb: str, placed: list[str]) -> Found:
    """The first items of the job, as many as one answer holds; those named already are left out."""
    states = ITEM_STATES.get(verb)
    items = client.call("Show", job=placed[0])["job"]["items"]
    return [
        (each["id"], each["state"])
        for each in items
        # Lines are what the words are parted by.
        if (states is None or each["state"] in states)
        and each["id"] not in placed[1:]
        and each["id"].isprintable()
    ]


# ---- what bash needs to be told ---------------------------------------------------------------------------


class Typed(NamedTuple):
    """An unfinished line: its words as the shell would read them, and where bash takes up the last one.

    Bash replaces only what stands behind the last quote or word break of the last word.
    """

    words: list[str]
    lead: int
    """How many characters of the last word stay as they are."""
    quote: str
    """The quote that is still open."""


def typed(line: str, breaks: str) -> Typed:
    """The words of a line up to the cursor; `breaks` is what bash breaks words at (`COMP_WORDBREAKS`)."""
    words: list[str] = []
    word, lead, quote, escaped, inside = "", 0, "", False, False
    for one in line:
        if escaped:
            word, escaped = word + one, False
        elif one == "\\" and quote != "'":
            escaped = inside = True
        elif quote:
            quote, word = ("", word) if one == quote else (quote, word + one)
        elif one in "'\"":
            quote, inside, lead = one, True, len(word)
        elif one in " \t\n":
            words, word, lead, inside = ([*words, word] if inside else words), "", 0, False
        else:
            word, inside = word + one, True
            lead = len(word) if one in breaks else lead
    return Typed([*words, word], lead, quote)


def for_bash(word: str, line: Typed) -> str:
    """What bash shall put in place of the word it is at, quoted as the line is."""
    rest = word[line.lead :]
    if line.quote == "'":
        return rest.replace("'", "'\\''")
    special = r'([\\"$`])' if line.quote else r"""([^\w@%+=:,./\x80-\U0010ffff-])"""
    return re.sub(special, r"\\\1", rest)


# ---- the verbs --------------------------------------------------------------------------------------------


def script(_screen: Screen, asked: argparse.Namespace) -> int:
    """Prints the script of a shell."""
    print(SCRIPTS[asked.shell], end="")
    return control.EXIT_DONE


def complete(_screen: Screen, asked: argparse.Namespace) -> int:
    """What a script asks: the words that may stand next, one a line, each with what it is behind a tab.

    From bash come the line up to the cursor and its word breaks, and it gets the words alone, quoted.
    """
    if asked.shell == "bash" and len(asked.words) == 2:
        line = typed(*asked.words)
        found = [(word, "") for word, _ in candidates(line.words[1:])]
        lines = [word if word == FILES else for_bash(word, line) for word, _ in found]
    else:
        lines = [f"{word}\t{said}" if said else word for word, said in candidates(asked.words)]
    print("".join(f"{line}\n" for line in lines), end="")
    return control.EXIT_DONE


BASH = """\
# Completion of resumectl for bash. To have it in every shell:
#   resumectl completion bash > ~/.local/share/bash-completion/completions/resumectl
_resumectl() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o default
            COMPREPLY=()
            return
        fi
        COMPREPLY+=("$line")
    done < <("${COMP_WORDS[0]/#\\~/$HOME}" complete bash -- \\
        "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2> /dev/null)
}
complete -F _resumectl resumectl
"""
ZSH = """\
#compdef resumectl
# Completion of resumectl for zsh. To have it in every shell, in a folder of $fpath:
#   resumectl completion zsh > ~/.zsh/completions/_resumectl
_resumectl() {
    local -a values shown
    local value said
    while IFS=$'\\t' read -r value said; do
        if [[ $value == :files ]]; then
            _files
            return
        fi
        values+=("$value")
        shown+=("$value${said:+  -- $said}")
    done < <(${(Q)words[1]} complete zsh -- "${(@Q)words[2,CURRENT]}" 2> /dev/null)
    compadd -l -d shown -a values
}
if [[ $funcstack[1] == _resumectl ]]; then
    _resumectl "$@"
else
    compdef _resumectl resumectl
fi
"""
FISH = """\
# Completion of resumectl for fish. To have it in every shell:
#   resumectl completion fish > ~/.config/fish/completions/resumectl.fish
function __resumectl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct | string unescape)
    set -l found ($words[1] complete fish -- $words[2..-1] "$current" 2> /dev/null)
    if test "$found[1]" = :files
        __fish_complete_path "$current"
    else
        printf '%s\\n' $found
    end
end
complete -c resumectl -f -a '(__resumectl_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
