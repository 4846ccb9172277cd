"""Completion in the shells themselves: verbs, jobs and items, quoted as each shell needs it, or silence."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_kit import Daemon

from resumed.daemon import completion, grammar

SHELLS = {"bash": shutil.which("bash"), "zsh": shutil.which("zsh"), "fish": shutil.which("fish")}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with a held job `stuck` (items of awkward names), an open `standing` and an ended `well`."""
    made = Daemon(tmp_path_factory.mktemp("daemon"), "asyncio")
    made.start()
    items = {"plain": "1", "two words": "2", "co:lon": "3", "日本": "4", "$HOME": "5", "it's": "6"}
    for name, fails in (("stuck", ["two words", "co:lon"]), ("well", [])):
        path = made.file(name, "say", items if name == "stuck" else {"a": "1"})
        for item in fails:
            (made.root / f"{name}.files" / f"{item}.fail").touch()
        job = json.loads(path.read_text())
        for item in job["items"]:
            link = made.root / f"{name}-{item['id'].encode().hex()}"
            if item["id"] in fails:
                link.with_name(f"{link.name}.fail").touch()
            link.write_text("x")
            item["source"] = str(link)
        path.write_text(json.dumps(job))
        made.ask("submit", str(path), "--wait")
    made.ask("submit", str(made.file("standing", "slow", {"a": ""})))
    folder = made.root / "bin"
    folder.mkdir()
    (folder / "resumectl").write_text(f'#!/bin/sh\nexec {sys.executable} -m resumed.daemon.cli "$@"\n')
    (folder / "resumectl").chmod(0o755)
    yield made
    made.end()


def environment(daemon: Daemon, **more: str) -> dict[str, str]:
    """Where a shell finds `resumectl` and the daemon."""
    kept = {name: os.environ[name] for name in ("HOME", "USER") if name in os.environ}
    path = f"{daemon.root / 'bin'}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "LC_ALL": "C.UTF-8", "RESUMED_SOCKET": str(daemon.socket), **more}


def asked(daemon: Daemon, *words: str) -> list[str]:
    """What may stand next, without what it is."""
    ran = subprocess.run(
        ["resumectl", "complete", "zsh", "--", *words],
        env=environment(daemon),
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (0, "") == (ran.returncode, ran.stderr)
    return [line.split("\t")[0] for line in ran.stdout.splitlines()]


ASKED: dict[str, tuple[list[str], list[str]]] = {
    "a verb": (["wa"], ["watch"]),
    "an option of all": (["--s"], ["--socket"]),
    "an option of a verb": (["logs", "stuck", "--f"], ["--follow"]),
    "a job": (["show", "st"], ["stuck", "standing"]),
    "an ended job": (["history", "w"], ["well"]),
    "an ended job is not steered": (["pause", "w"], []),
    "behind an option": (["pause", "--now", "sta"], ["standing"]),
    "behind an option's value": (["pause", "--reason", "sta", "sta"], ["standing"]),
    "an option's value": (["pause", "--reason", ""], []),
    "an item": (["logs", "stuck", "p"], ["plain"]),
    "an item of a prefix": (["logs", "stuc", "p"], ["plain"]),
    "only what is stuck": (["retry", "stuck", ""], ["two words", "co:lon"]),
    "not what is named": (["retry", "stuck", "co:lon", ""], ["two words"]),
    "only what is done": (["output", "stuck", ""], ["plain", "日本", "$HOME", "it's"]),
    "no third word": (["show", "stuck", ""], []),
    "a choice": (["completion", "z"], ["zsh"]),
    "a file": (["submit", "x"], [completion.FILES]),
    "a path": (["list", "--socket", ""], [completion.FILES]),
    "a verb that is none": (["frobnicate", ""], []),
    "a job that is none": (["logs", "nobody", ""], []),
    "no daemon": (["--socket", "/nowhere", "show", ""], []),
    "no daemon, otherwise spelled": (["--socket=/nowhere", "show", ""], []),
}


@pytest.mark.parametrize("case", ASKED)
def test_next_word_is_known(case: str, daemon: Daemon) -> None:
    """Each place of a line has its own words; where there are none, or nobody answers, there is silence."""
    words, expected = ASKED[case]

    assert expected == asked(daemon, *words)


def test_every_verb_is_offered_but_the_shells_own(daemon: Daemon) -> None:
    """An empty line offers every verb that people use."""
    assert [verb.name for verb in grammar.VERBS if verb.group] == asked(daemon, "")
    assert "complete" not in asked(daemon, "")


def test_silent_daemon_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A socket that takes a connection and says nothing is given up after a moment."""
    import socket

    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s"))
        silent.listen()
        before = time.monotonic()
        found = completion.candidates(["--socket", str(tmp_path / "s"), "show", ""])
        took = time.monotonic() - before

    assert [] == found
    assert took < 2 * completion.PATIENCE + 1


BASH_LINES: dict[str, tuple[str, list[str]]] = {
    "a job": ("resumectl show stu", ["stuck"]),
    "escaped": ("resumectl retry stuck two", ["two\\ words"]),
    "half escaped": ("resumectl retry stuck two\\ w", ["two\\ words"]),
    "in quotes": ('resumectl retry stuck "two w', ["two words"]),
    "in single quotes": ("resumectl retry stuck 'two w", ["two words"]),
    "behind a break": ("resumectl retry stuck co:l", ["lon"]),
    "at a break": ("resumectl retry stuck co:", ["lon"]),
    "a break in quotes": ("resumectl retry stuck 'co:l", ["co:lon"]),
    "a dollar": ("resumectl output stuck '$", ["$HOME"]),
    "a dollar, escaped": ("resumectl output stuck \\$", ["\\$HOME"]),
    "a dollar in quotes": ('resumectl output stuck "\\$', ["\\$HOME"]),
    "an apostrophe": ("resumectl output stuck it", ["it\\'s"]),
    "wide letters": ("resumectl output stuck 日", ["日本"]),
    "nothing yet": ("resumectl completion ", ["bash", "zsh", "fish"]),
}


@pytest.mark.parametrize("case", BASH_LINES)
def test_bash_gets_words_quoted_as_its_line_is(case: str, daemon: Daemon) -> None:
    """What bash puts in place of the word it is at, is that word when the shell reads it again."""
    line, expected = BASH_LINES[case]
    script = (
        "source <(resumectl completion bash); COMP_LINE=$1; COMP_POINT=${#1}; COMP_WORDS=(resumectl)\n"
        '_resumectl; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    ran = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", line],
        env=environment(daemon),
        capture_output=True,
        text=True,
        timeout=30,
    )

    assert (expected, "") == (ran.stdout.splitlines(), ran.stderr)


class Terminal:
    """A shell at a terminal of its own, as a person sits before it."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, env)
        self.seen = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.fd, text.encode())

    def expect(self, text: str, within: float = 20.0) -> None:
        """Return once the screen has shown this."""
        deadline = time.monotonic() + within
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} not in {self.seen!r}"
            if select.select([self.fd], [], [], 0.5)[0]:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen.split(text, 1)[1]

    def close(self) -> None:
        """Hang up."""
        os.close(self.fd)
        os.waitpid(self.pid, 0)


STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1='READY> '; source <(resumectl completion bash)\n"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "PS1='READY> '; autoload -Uz compinit; compinit -D -u; source <(resumectl completion zsh)\n",
    ),
}


@pytest.mark.parametrize("shell", STARTS)
def test_tab_completes_at_a_terminal(shell: str, daemon: Daemon, tmp_path: Path) -> None:
    """In the real shell: a tab completes the verb, the job and an awkward item, and the command then runs."""
    if SHELLS[shell] is None:
        pytest.skip(f"{shell} is not installed: its completion was not tried")
    command, first = STARTS[shell]
    at = Terminal(command, environment(daemon, TERM="dumb", HOME=str(tmp_path), HISTFILE=""))
    at.type(first)
    at.expect("READY> ")
    at.type("echo be''gun\n")
    at.expect("begun")
    at.type("resumectl his\t stu\t two\t-n 1; echo co''de=$?\n")
    at.expect("code=0")
    at.close()


@pytest.mark.skipif(SHELLS["fish"] is None, reason="fish is not installed: its completion was not tried")
def test_fish_completes(daemon: Daemon, tmp_path: Path) -> None:
    """fish offers verbs, jobs with how they stand, items, and files where a file is wanted."""
    (tmp_path / "job.json").touch()
    script = "resumectl completion fish | source; for line in $argv; complete -C $line; echo ---; end"
    lines = [f"resumectl {words}" for words in ("wat", "show stu", "retry stuck two", "submit jo", "")]
    ran = subprocess.run(
        ["fish", "--no-config", "-c", script, *lines],
        env=environment(daemon, HOME=str(tmp_path)),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    parts = [part.strip().splitlines() for part in ran.stdout.split("---\n")]

    watch = next(verb for verb in grammar.VERBS if verb.name == "watch")
    assert [f"watch\t{watch.said}"] == parts[0]
    assert "stuck\theld, 4/6" in parts[1]
    assert ["two words\tfailed"] == [line.replace("\\ ", " ") for line in parts[2]]
    assert "job.json" in parts[3][0]
    assert len(grammar.VERBS) - 1 == len(parts[4])
