"""Each exit code of `resumectl` by the real client against a real daemon, and what it says beside it."""

import contextlib
import io
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually, heeds_ctrl_c
from manual import SHAPES
from other_user import STRANGER, as_user
from test_cli_past import stands

from resumed.daemon import cli, parsing, verbs_steer, waiting
from resumed.schemas import control

CTL = [sys.executable, "-m", "resumed.daemon.cli"]


@pytest.fixture(scope="module", params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Jobs in every standing: `well`, `left-out`, `stuck`, `gone`, `works`, `still`."""
    made = Daemon(tmp_path_factory.mktemp("daemon"), request.param)
    made.root.chmod(0o755)
    made.start()
    made.ask("submit", str(made.file("well", "say", {"a": "one"})), "--wait")
    for name in ("left-out", "stuck"):
        path = made.file(name, "say", {"a": "one", "b": "two", "b.fail": ""})
        job = json.loads(path.read_text())
        job["items"] = [item for item in job["items"] if "." not in item["id"]]
        path.write_text(json.dumps(job))
        made.ask("submit", str(path), "--wait")
    made.ask("skip", "left-out")
    for name in ("gone", "works", "still"):
        made.ask("submit", str(made.file(name, "slow", {"a": "", "b": ""})))
    made.ask("cancel", "gone")
    made.ask("pause", "still", "--now")
    stands(made, "still", "paused")
    stands(made, "works", "running")
    yield made
    made.end()
    assert "Traceback" not in made.said()


CODES: dict[str, tuple[list[str], int, str]] = {
    # the case -> what is typed, its code, and a part of what is said
    "done": (["status"], control.EXIT_DONE, "daemon "),
    "done already": (["pause", "still"], control.EXIT_DONE, "is paused already"),
    "refused": (["retry", "well"], control.EXIT_REFUSED, "too late, it is completed"),
    "refused at the door": (["submit", "/dev/null"], control.EXIT_REFUSED, "@ $"),
    "refused, nothing to give": (["output", "stuck", "b"], control.EXIT_REFUSED, "no accepted output"),
    "no verb": (["frobnicate"], control.EXIT_USAGE, "there is no verb"),
    "no file": (["submit", "/no/such/file"], control.EXIT_USAGE, "cannot read /no/such/file"),
    "a word too many": (["show", "well", "b"], control.EXIT_USAGE, "unrecognized arguments: b"),
    "nobody there": (["--socket", "/no/such/socket", "list"], control.EXIT_UNREACHABLE, "cannot reach"),
    "no such job": (["why", "nobody"], control.EXIT_NO_SUCH, "there is no job 'nobody'"),
    "no such item": (["skip", "stuck", "zzz"], control.EXIT_NO_SUCH, "no item of that name"),
    "no such item to show": (["logs", "stuck", "zzz"], control.EXIT_NO_SUCH, "has no item zzz"),
    "ambiguous": (["show", "st"], control.EXIT_REFUSED, "begins 2 jobs: still, stuck"),
    "the record moved": (["cancel", "stuck", "--record", "1"], control.EXIT_MOVED, "moved on from record 1"),
    "ended with a skipped item": (["watch", "left-out"], control.EXIT_ENDED_WITH_FAILURES, "1/2 done"),
    "needs a person": (["watch", "stuck"], control.EXIT_NEEDS_PERSON, "it needs a person: "),
    "canceled": (["watch", "gone"], control.EXIT_CANCELED, "canceled: 0/2 done"),
    "the wait is over": (["watch", "works", "--timeout", "0.2"], control.EXIT_WAIT_OVER, "works goes on"),
    "the wait for all is over": (["watch", "--timeout", "0.2s"], control.EXIT_WAIT_OVER, "the jobs go on"),
}


@pytest.mark.parametrize("case", CODES)
def test_code_is_the_one_of_its_kind(case: str, daemon: Daemon) -> None:
    """A script can tell from the code alone what happened, and a person from the words."""
    words, code, said = CODES[case]
    ran = daemon.ask(*words)

    assert (code, True) == (ran.returncode, said in ran.stdout + ran.stderr), ran
    assert "Traceback" not in ran.stderr


REFUSALS = [case for case, (_, code, _) in CODES.items() if 1 <= code <= 6]


@pytest.mark.parametrize("case", REFUSALS)
def test_every_refusal_ends_with_commands(case: str, daemon: Daemon) -> None:
    """What may be typed now stands last, and the parser takes it; JSON is an object with the same reason."""
    words, code, _ = CODES[case]
    ran = daemon.ask(*words)
    lines = ran.stderr.splitlines()
    commands = lines[lines.index("you may") + 1 :]
    as_json = daemon.ask(*words, "--json")

    assert "" == ran.stdout
    assert commands
    for command in commands:
        name, *rest = shlex.split(command)
        assert name in ("resumectl", "resumed")
        assert name == "resumed" or parsing.read(rest)
    assert code == as_json.returncode
    refusal = json.loads(as_json.stdout)
    assert {"error", "parameters"} == set(refusal)
    assert refusal["parameters"]["reason"]


def client(daemon: Daemon, *words: str, **more: Any) -> "subprocess.Popen[str]":
    """One `resumectl` that goes on while the test does."""
    command = [*CTL, f"--socket={daemon.socket}", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": heeds_ctrl_c}
    return subprocess.Popen(command, text=True, **pipes, **more)


@pytest.mark.parametrize("words", [["watch", "works"], ["watch"], ["watch", "works", "--json"]])
def test_interrupted_wait_says_that_the_job_goes_on(words: list[str], daemon: Daemon) -> None:
    """Ctrl-C ends the waiting with 130, and nothing else."""
    with client(daemon, *words) as waits:
        assert waits.stdout is not None
        waits.stdout.readline()
        waits.send_signal(signal.SIGINT)
        _, said = waits.communicate(timeout=30)

    assert control.EXIT_INTERRUPTED == waits.returncode
    assert "interrupted: the job" in said
    assert "you may\n  resumectl " in said
    assert "Traceback" not in said
    assert "running" == daemon.row("works")["status"]


def test_wait_of_a_submit_is_bounded(daemon: Daemon) -> None:
    """`submit --wait --timeout` hands the job in, and leaves it at work."""
    path = daemon.file("handed", "slow", {"a": ""})
    ran = daemon.ask("submit", str(path), "--wait", "--timeout", "0.3")
    status = daemon.row("handed")["status"]
    daemon.ask("cancel", "handed")

    assert control.EXIT_WAIT_OVER == ran.returncode
    assert "handed was admitted" in ran.stdout
    assert "the time to wait is over: the job handed goes on" in ran.stderr
    assert status in ("ready", "running")


def test_reader_that_left_is_no_complaint(daemon: Daemon) -> None:
    """`| head` ends the printing without a word; whoever waited is told nothing about the job by the code."""
    for words, code in ((["list", "-a"], 0), (["watch", "works"], control.EXIT_INTERRUPTED)):
        script = f'{shlex.join([*CTL, f"--socket={daemon.socket}", *words])}; echo "code $?" >&2'
        ran = subprocess.run(["bash", "-c", f"({script}) | true"], capture_output=True, text=True, timeout=60)

        assert f"code {code}\n" == ran.stderr or (words[0] == "watch" and "code 130\n" == ran.stderr), ran


@pytest.mark.parametrize("words", [["list"], ["watch", "well"], ["output", "well", "a"]])
def test_full_disk_behind_a_redirection_is_said(words: list[str], daemon: Daemon) -> None:
    """What cannot be printed is a refusal of its own, not a crash."""
    with open("/dev/full", "w") as full:
        command = [*CTL, f"--socket={daemon.socket}", *words]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)

    assert 1 == ran.returncode
    assert b"cannot print the answer: No space left on device" in ran.stderr
    assert b"Traceback" not in ran.stderr


def test_closed_streams_are_no_crash(daemon: Daemon) -> None:
    """Whoever closed the output or the errors gets the code alone."""
    command = shlex.join([*CTL, f"--socket={daemon.socket}"])
    codes = [
        subprocess.run(["bash", "-c", f"{command} {words} {closed}"], timeout=60).returncode
        for words, closed in (("list", ">&-"), ("why nobody", "2>&-"), ("list", ">&- 2>&- <&-"))
    ]

    assert [0, 4, 0] == codes


@pytest.mark.root
def test_stranger_is_not_permitted(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a role is told which one is missing, with 5, or cannot even reach the socket, with 3."""

    def cancel() -> tuple[int, str]:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = cli.main(["--socket=control", "cancel", "works"])
        return code, said.getvalue()

    monkeypatch.chdir(daemon.root)  # the folders above are closed to others
    assert verbs_steer.steer  # loaded here: the other user cannot reach the files
    code, said = as_user(STRANGER, (), cancel)
    daemon.socket.chmod(0o666)
    permitted, why = as_user(STRANGER, (), cancel)

    assert (control.EXIT_UNREACHABLE, control.EXIT_NOT_PERMITTED) == (code, permitted)
    assert "Permission denied" in said
    assert "has not the role" in why
    assert "you may\n  resumectl status" in why
    assert "running" == daemon.row("works")["status"]


# ---- screens ----------------------------------------------------------------------------------------------


def at_terminal(daemon: Daemon, *words: str, columns: int = 80, **env: str) -> str:
    """What a terminal of that width gets to see."""
    pid, fd = pty.fork()
    if pid == 0:
        plain = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": str(columns)}
        os.execve(CTL[0], [*CTL, f"--socket={daemon.socket}", *words], plain | env)
    seen = b""
    try:
        while chunk := os.read(fd, 65536):
            seen += chunk
    except OSError:
        pass  # a terminal whose other end is closed says EIO
    os.close(fd)
    os.waitpid(pid, 0)
    return seen.decode()


def test_colour_and_writing_over_are_for_terminals(daemon: Daemon) -> None:
    """A terminal gets colours and a bar; NO_COLOR takes the colours, a dumb terminal both, a pipe both."""
    shown = at_terminal(daemon, "list")
    plain = at_terminal(daemon, "list", NO_COLOR="1")
    dumb = at_terminal(daemon, "watch", "stuck", TERM="dumb")
    live = at_terminal(daemon, "watch", "stuck")
    piped = daemon.ask("list").stdout

    assert "\x1b[31m! stuck" in shown
    assert "! stuck" in plain
    assert "\x1b" not in plain + dumb + piped
    assert "\r! stuck [" in live.replace("\x1b[31m", "")
    assert "\x1b[K" in live


def test_refusal_is_broken_where_the_terminal_ends(daemon: Daemon) -> None:
    """A long sentence on standard error is broken between words, as wide as the terminal itself is."""
    shown = (
        at_terminal(daemon, "watch", "--timeout", "x" * 30, "--record", "1").replace("\r", "").splitlines()
    )

    assert all(len(line) <= 80 for line in shown)
    assert len(shown) > 3


@pytest.mark.parametrize("columns", [120, 80, 60, 40])
@pytest.mark.parametrize(
    "words", [["list", "-a"], ["show", "stuck"], ["why", "stuck"], ["status"], ["--help"]]
)
def test_screen_fits_its_terminal(words: list[str], columns: int, daemon: Daemon) -> None:
    """No line of a table runs over; what is longer is a path or a command, to be copied whole."""
    shown = at_terminal(daemon, *words, columns=columns, NO_COLOR="1")
    over = [line for line in shown.splitlines() if len(line) > columns]

    assert [] == [line for line in over if not ("resumectl " in line or "/" in line)]


def test_locale_without_letters_gets_ascii(daemon: Daemon) -> None:
    """Under LC_ALL=C all is ASCII, on a terminal and in a pipe; a locale of another set breaks nothing."""
    path = daemon.file("letters", "slow", {"日本": "", "é": ""})
    daemon.ask("submit", str(path))
    environment = os.environ | {"LC_ALL": "C"}
    plain = daemon.ask("show", "letters", env=environment).stdout
    shown = at_terminal(daemon, "show", "letters", LC_ALL="C")
    latin = daemon.ask("show", "letters", env=os.environ | {"LC_ALL": "de_DE.ISO-8859-1"})
    whole = daemon.ask("show", "letters", env=os.environ | {"LC_ALL": "C.UTF-8"}).stdout
    daemon.ask("cancel", "letters")

    assert plain.isascii()
    assert shown.replace("\x1b", "").isascii()
    assert "\\u65e5\\u672c" in plain
    assert "日本" in whole
    assert 0 == latin.returncode


# ---- JSON -------------------------------------------------------------------------------------------------


JSON: dict[str, list[str]] = {
    "list": ["list", "-a"],
    "show": ["show", "well"],
    "show --contract": ["show", "well", "--contract"],
    "why": ["why", "stuck"],
    "history": ["history", "well"],
    "watch": ["watch", "well"],
    "logs": ["logs", "well"],
    "output": ["output", "well", "a"],
    "pause": ["pause", "still"],
    "status": ["status"],
    "workflows": ["workflows"],
    "quarantine list": ["quarantine", "list"],
    "prune --dry-run": ["prune", "--dry-run"],
}


@pytest.mark.parametrize("name", JSON)
def test_json_has_the_shape_of_the_manual(name: str, daemon: Daemon) -> None:
    """What the manual names is printed: one value or a line for each, with these keys, in ASCII."""
    form, keys = SHAPES[name]
    ran = daemon.ask(*JSON[name], "--json")
    values = (
        [json.loads(line) for line in ran.stdout.splitlines()]
        if form == "lines"
        else [json.loads(ran.stdout)]
    )

    assert ran.stdout.isascii()
    assert values
    for value in values:
        if name == "watch":
            assert "well" == value["id"]
        else:
            assert set(keys.split(", ")) == set(value)


# ---- waiting through a restart ----------------------------------------------------------------------------


def test_wait_survives_a_restart_of_the_daemon(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that is killed and started again is waited for; the waiting ends with the job."""
    path = daemon.file("long", "say", {f"item-{number}": "x" for number in range(6)})
    path.write_text(path.read_text().replace('"say"', '"slow"'))
    daemon.ask("submit", str(path))
    stands(daemon, "long", "running")
    with client(daemon, "watch", "long") as waits:
        assert waits.stdout is not None
        waits.stdout.readline()
        daemon.end(signal.SIGKILL)
        daemon.start()
        stands(daemon, "long", "running")
        daemon.ask("cancel", "long")
        out, said = waits.communicate(timeout=60)

    assert control.EXIT_CANCELED == waits.returncode
    assert "the daemon went away; waiting for it" in said
    assert "canceled" in out


def test_wait_on_a_job_that_is_set_aside_needs_a_person(daemon: Daemon) -> None:
    """A job whose files turn out damaged while somebody waits for it ends the waiting with 11."""
    daemon.ask("submit", str(daemon.file("rots", "slow", {"a": ""})))
    stands(daemon, "rots", "running")
    with client(daemon, "watch", "rots") as waits:
        assert waits.stdout is not None
        waits.stdout.readline()
        daemon.end(signal.SIGKILL)
        (folder,) = (daemon.state / "jobs").glob("*/rots")
        log = max(folder.glob("*.log"), key=lambda found: found.stat().st_mtime)
        raw = log.read_bytes()
        log.write_bytes(raw[:80] + b"XX" + raw[82:])
        daemon.start()
        _, said = waits.communicate(timeout=60)

    assert control.EXIT_NEEDS_PERSON == waits.returncode
    assert "rots is set aside: " in said
    assert "resumectl quarantine show rots" in said


def test_watch_of_all_ends_when_nothing_goes_on(tmp_path: Path) -> None:
    """Without a job every open one is followed; held and paused ones alone are not waited for."""
    made = Daemon(tmp_path, "asyncio")
    made.start()
    none = made.ask("watch")
    made.ask("submit", str(made.file("quick", "say", {"a": "x"})))
    made.ask("submit", str(made.file("still", "slow", {"a": "x"})))
    made.ask("pause", "still", "--now")
    eventually(lambda: stands(made, "still", "paused"))
    before = time.monotonic()
    rest = made.ask("watch")
    took = time.monotonic() - before
    made.end()

    assert (0, "") == (none.returncode, none.stdout)
    assert 0 == rest.returncode
    assert "= still paused: 0/1 done" in rest.stdout
    assert took < 30


SPANS = {"90": 90.0, "90s": 90.0, "1.5m": 90.0, "1h30m": 5400.0, "2d": 172_800.0}


@pytest.mark.parametrize("word", SPANS)
def test_time_is_read_as_people_write_it(word: str) -> None:
    """A number alone is seconds."""
    asked = parsing.read(["watch", "x", "--timeout", word])

    assert not isinstance(asked, str)
    assert SPANS[word] == asked.timeout


def test_exit_codes_of_endings_are_complete() -> None:
    """Every final status has its code."""
    assert {"completed", "failed", "canceled", "expired"} == set(waiting.FINAL_EXITS)
