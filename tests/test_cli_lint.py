"""`resumectl lint`: every problem of a file with its path, and only true things to think about; no daemon."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from resumed.daemon import cli

STEP = "[[step]]\nname = 'a'\nrun = ['true']\nrepeatable = true\ntimeout = '5m'\n"
FLOW = (
    "version = 2\ninputs.folder = { type = 'path', roots = ['/srv'] }\n"
    f"inputs.n = {{ type = 'int' }}\n{STEP}"
)
ANYWHERE = (
    "without roots a user's own daemon takes paths below the home folder, and any other daemon any path that "
    "the requester may read @ $.inputs.x"
)
KEPT = "repeatable, and its programs run in a folder that keeps what an earlier try left there @ $.step[0]"
CUT_OFF = "not repeatable: a try that ends with a failure is made again, one that is cut off holds its item"
ABSENT = "no-such is not there to be run in /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RELATIVE = "only resumectl submit takes it; a dropped file is refused: expected an absolute path, got "
EFFECT = """[[effect]]
name = "p"
target = "t"
approve = false
send = ["/no/such"]
irreversible = true
"""
BLIND = "neither look_up nor dedup: when an answer is lost only a person can say what happened"
NO_JSON = "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"


def linted(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, Any]]:
    code = cli.main(["lint", str(path), "--json", *more])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def put(path: Path, text: str, mode: int = 0o644) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


FLOWS: dict[str, tuple[str, list[str], list[str]]] = {
    # the file -> its problems, its warnings
    "nothing": (f"version = 1\n{STEP}", [], []),
    "problems": (
        "version = 0\n[[step]]\nname = 'a'\nrun = ['true', '{b}']\nfrob = 1\n",
        [
            "expected at least 1, got 0 @ $.version",
            "unknown placeholder {b} @ $.step[0].run[1]",
            "required key 'repeatable' is missing @ $.step[0]",
            "unknown key 'frob' @ $.step[0]",
        ],
        [],
    ),
    "no TOML": ("version = ", ["not TOML: Invalid value (at end of document)"], []),
    "a path that may be anywhere": (
        f"version = 1\ninputs.x = {{ type = 'path' }}\n{STEP}",
        [],
        [ANYWHERE],
    ),
    "one that is put away": (
        f"version = 4\nenabled = false\n{STEP}",
        [],
        ['a job must name "flow@4" to get it @ $.enabled'],
    ),
    "a time that is not written": (
        f"version = 1\n{STEP}".replace("timeout = '5m'\n", ""),
        [],
        ["timeout is not written: each program of it is stopped after 1h @ $.step[0]"],
    ),
    "a folder that is kept": (
        f"version = 1\n{STEP}dir = '/srv'\nparallel = 3\n",
        [],
        [
            KEPT,
            "up to 3 tries at once run in the same folder @ $.step[0]",
        ],
    ),
    "a step that is not repeatable": (
        f"version = 1\n{STEP}".replace("true\n", "false\n"),
        [],
        [f"{CUT_OFF} @ $.step[0]"],
    ),
    "programs that are not there": (
        f"version = 1\nitems.run = ['no-such']\n{STEP}verify = ['/no/such']\n",
        [],
        [
            f"{ABSENT} @ $.items.run[0]",
            "/no/such is not there to be run @ $.step[0].verify[0]",
        ],
    ),
    "an effect that nobody can ask about": (
        f"version = 1\n{STEP}{EFFECT}",
        [],
        [
            f"{BLIND} @ $.effect[0]",
            "irreversible, and nobody is asked @ $.effect[0]",
            "/no/such is not there to be run @ $.effect[0].send[0]",
        ],
    ),
    "a class": (
        "version = 1\npython.entry = 'no.such:Class'\n",
        [],
        ["its class is not imported here: its steps were not looked at @ $.python"],
    ),
}


@pytest.mark.parametrize("case", FLOWS)
def test_workflow_file_is_looked_at(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each problem is told with its path, and what is worth a thought beside it; exit 1 when refused."""
    text, problems, warnings = FLOWS[case]
    path = put(tmp_path / "flow.toml", text)
    code, found = linted(path, capsys)

    assert {"file": str(path), "kind": "workflow file", "problems": problems, "warnings": warnings} == found
    assert bool(problems) == bool(code)


def test_file_that_others_may_write_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The daemon will not read it, however good it is."""
    code, found = linted(put(tmp_path / "flow.toml", f"version = 1\n{STEP}", 0o664), capsys)

    assert (1, ["others may write it (mode 0664): chmod go-w"]) == (code, found["problems"])


UNHELD = "its inputs were not held against its workflow (--workflows FOLDER, or submit --dry-run)"
JOBS: dict[str, tuple[str, list[str], list[str]]] = {
    # the file, its workflow known or not -> its problems, its warnings
    "j.json": ('{"workflow":"x","items":["a"]}', [], [UNHELD]),
    "problems.json": (
        '{"workflow":"x@0","id":"A","run":["sh"]}',
        [
            'expected "name" or "name@3", got \'x@0\' @ $.workflow',
            "expected 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit, got 'A' @ $.id",
            "unknown key 'run' @ $",
        ],
        [],
    ),
    "broken.json": (
        "{",
        [NO_JSON],
        [],
    ),
    "toml.toml": ('workflow = "x"\ninputs.day = 2026-11-29\n', [], [UNHELD]),
    "relative.json": (
        '{"workflow":"x","items":{"lines":"list"}}',
        [],
        [f"{RELATIVE}'list' @ $.items.lines", UNHELD],
    ),
    "held.json": ('{"workflow":"flow","inputs":{"folder":"/srv/a","n":1}}', [], []),
    "held-relative.json": (
        '{"workflow":"flow@2","inputs":{"folder":"a","n":"1"}}',
        ["does not lie under /srv @ $.inputs.folder", "expected int, got string @ $.inputs.n"],
        [],
    ),
    "held-only-by-submit.json": (
        '{"workflow":"flow@2","inputs":{"folder":"../../../../../../../srv/a","n":1}}',
        [],
        [f"{RELATIVE}'../../../../../../../srv/a' @ $.inputs.folder"],
    ),
    "held-items.json": (
        '{"workflow":"flow","inputs":{"folder":"/srv"},"items":[{"id":"a","inputs":{"n":1}},{"id":"b"}]}',
        ["required input 'n' is missing @ $.inputs"],
        [],
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_job_file_is_looked_at(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job file is read by the strict door, and held against its workflow where that lies at hand."""
    text, problems, warnings = JOBS[name]
    put(tmp_path / "flow.toml", FLOW)
    more = ("--workflows", str(tmp_path)) if name.startswith("held") else ()
    code, found = linted(put(tmp_path / name, text), capsys, *more)

    assert ("job file", problems, warnings) == (found["kind"], found["problems"], found["warnings"])
    assert bool(problems) == bool(code)


def test_screen_says_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Glyph and word for each line; a good job file may be rehearsed next."""
    good = cli.main(["lint", str(put(tmp_path / "flow.toml", FLOW))])
    bad = cli.main(["lint", str(put(tmp_path / "j.json", '{"workflow":"x","\\u001b":1}'))])
    job = cli.main(["lint", str(put(tmp_path / "k.json", '{"workflow":"x"}'))])
    said = capsys.readouterr().out.splitlines()

    assert (0, 1, 0) == (good, bad, job)
    assert [
        f"+ {tmp_path}/flow.toml: the workflow flow, version 2, 1 step",
        f"! {tmp_path}/j.json: this job file would be refused",
        "  ! unknown key '\\x1b' @ $",
        f"+ {tmp_path}/k.json: a job of x",
        f"  ? {UNHELD}",
        "you may",
        f"  resumectl submit --dry-run {tmp_path}/k.json",
    ] == said


def test_file_that_is_not_there_is_a_wrong_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2: nothing was looked at."""
    codes = [
        cli.main(["lint", str(tmp_path / "none")]),
        cli.main(["lint", str(put(tmp_path / "j.json", '{"workflow":"x"}')), "--workflows", str(tmp_path)]),
    ]
    said = capsys.readouterr().err

    assert [2, 2] == codes
    assert "cannot read" in said
    assert "cannot read the workflow" in said


def test_status_loads_nothing_of_it() -> None:
    """A verb pays for what it uses: asking how the daemon is loads no record."""
    code = (
        "import sys; from resumed.daemon import cli\n"
        "cli.main(['--socket', '/no/such/socket', 'status'])\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('attr', 'attrs', 'cattrs', 'orjson')))\n"
        "print('resumed.daemon.lint' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ["[]", "False"] == ran.stdout.split("\n")[-3:-1]
