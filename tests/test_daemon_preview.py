"""`submit --dry-run` through the whole daemon: what would happen is said, and nothing of it happens."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually

SHRINK = """
version = 3
inputs.folder = { type = "path", roots = ["/"] }
inputs.level = { type = "int", default = 9 }
inputs.key = { private = true, default = "hush" }
items = { from = "glob", glob = "{inputs.folder}/**/*.log", max = 20 }
[[step]]
name = "shrink"
prepare = ["test", "-s", "{source}"]
run = ["gz", "-{inputs.level}", "--key={inputs.key}", "--name={source.rel}", "--out", "{output}", "{source}"]
repeatable = true
[[step]]
name = "sum"
run = ["sha256sum", "{outputs.shrink}", "{item}", "{kept}", "{key}"]
repeatable = true
"""
LISTED = """
version = 1
items = { run = ["sh", "-c", "echo listing >&2; touch %s; seq 3; exit $RESUMED_INPUTS_CODE"] }
inputs.code = { type = "int", default = 0 }
[[step]]
name = "say"
each = false
run = ["echo", "{job}"]
repeatable = true
[[step]]
name = "tell"
run = ["echo", "{item}", "{outputs.say}", "{output}x", "{kept}", "{key}", "{attempt}"]
output.from = "stdout"
repeatable = true
"""
LABEL = """
version = 1
inputs.page = {}
[[step]]
name = "draft"
run = ["draft", "--token={secrets.model}"]
secrets = ["model"]
review = { by = "group:curators" }
repeatable = true
[[effect]]
name = "publish"
target = "cms"
secrets = ["cms"]
approve = { by = ["user:lee", "group:curators"], when = 'inputs.page != "test"' }
[effect.send]
method = "PUT"
url = "https://cms.example/{inputs.page}"
body = "{outputs.draft}"
headers = { A = "{secrets.cms}" }
statuses = { landed = [200] }
[[effect]]
name = "tell"
target = "list"
approve = false
each = false
send = ["tell", "{inputs.page}", "{key}", "{job}"]
"""


@pytest.fixture(scope="module", params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    made = Daemon(tmp_path_factory.mktemp("daemon"), request.param)
    for name, text in (("shrink", SHRINK), ("listed", LISTED % (made.root / "ran")), ("label", LABEL)):
        (made.workflows / f"{name}.toml").write_text(text)
        (made.workflows / f"{name}.toml").chmod(0o644)
    made.start()
    yield made
    made.end()
    assert "Traceback" not in made.said()


def rehearse(daemon: Daemon, job: dict[str, Any], *more: str) -> tuple[int, str]:
    path = daemon.root / "job.json"
    path.write_text(json.dumps(job))
    ran = daemon.ask("submit", "--dry-run", str(path), *more)
    return ran.returncode, ran.stdout + ran.stderr


def stored(daemon: Daemon) -> set[str]:
    """All files of the store but its lock and its log."""
    return {str(path) for path in daemon.state.rglob("*") if path.is_file()}


def folder_of(daemon: Daemon, name: str, files: int) -> Path:
    folder = daemon.root / name
    (folder / "sub").mkdir(parents=True)
    for number in range(files):
        (folder / ("sub" if number % 2 else "") / f"day {number}.log").write_text("x")
    return folder


def test_items_and_first_commands_are_those_of_the_job(daemon: Daemon) -> None:
    """What is shown is, word for word, what the job runs once it is handed in; nothing was stored before."""
    folder = folder_of(daemon, "logs", 4)
    job = {"workflow": "shrink", "id": "attic", "inputs": {"folder": str(folder)}}
    before = stored(daemon)
    code, said = rehearse(daemon, job, "--json")
    view = json.loads(said)["preview"]
    words = [row["argv"] for row in view["commands"]]

    assert (0, before, 4) == (code, stored(daemon), view["items"])
    assert ["day 0.log", "day 2.log", "sub/day 1.log", "sub/day 3.log"] == view["first"]
    assert [("day 0.log", "prepare"), ("day 0.log", "run"), ("day 2.log", "prepare")] == [
        (row["item"], row["program"]) for row in view["commands"]
    ][:3]
    assert ["test", "-s", f"{folder}/day 0.log"] == words[0]
    assert ["gz", "-9", "--key=(private)", "--name=sub/day 1.log", "--out"] == words[5][:5]
    assert f"{folder}/sub/day 1.log" == words[5][6]
    assert words[5][5].startswith(f"{daemon.state}/")
    assert (6, True) == (len(words), words[5][5].endswith("/output"))
    assert "hush" not in said

    def no_worker_is_left() -> None:
        assert [] == list((daemon.state / "workers").iterdir())

    eventually(no_worker_is_left)
    daemon.ask("submit", str(daemon.root / "job.json"))
    code, said = rehearse(daemon, job)
    assert (0, True) == (code, "attic exists already" in said)


def test_later_steps_stand_in_where_there_are_few_items(daemon: Daemon) -> None:
    """With one item the first three tries are of its own steps, with its kept folder and its key."""
    folder = folder_of(daemon, "one", 1)
    _, said = rehearse(
        daemon, {"workflow": "shrink", "id": "one", "inputs": {"folder": str(folder)}}, "--json"
    )
    rows = json.loads(said)["preview"]["commands"]
    last = rows[-1]["argv"]

    assert [("shrink", "prepare"), ("shrink", "run"), ("sum", "run")] == [
        (row["step"], row["program"]) for row in rows
    ]
    assert ("sha256sum", "day 0.log", 64) == (last[0], last[2], len(last[4]))
    assert last[1].endswith("/outputs/shrink")
    assert "/kept/" in last[3]


def test_program_that_lists_is_run_and_its_trouble_told(daemon: Daemon) -> None:
    """The listing itself is real, contained and gone afterwards; how it fails is told as its job would be."""
    good, said = rehearse(daemon, {"workflow": "listed", "id": "l1"})
    bad, why = rehearse(daemon, {"workflow": "listed", "id": "l2", "inputs": {"code": 3}})

    assert (0, 1) == (good, bad), said
    assert (daemon.root / "ran").exists()
    assert (
        "+ l1 of listed@1 would be admitted: 3 items\nitems      1, 2, 3\nfirst\n  say\n    echo l1\n" in said
    )
    assert "  1 tell\n    echo 1 " in said
    assert "nothing was admitted" in said
    assert (
        "! l2 of listed@1 would be admitted and held\n  the items are not known: sh: exit 3: listing" in why
    )
    assert set() == {row for row in daemon.ask("list", "-a").stdout.split() if row in ("l1", "l2")}


def test_command_line_is_the_one_that_runs(daemon: Daemon) -> None:
    """Word for word the program gets what was shown, but for the name of the worker that is there then."""
    job = {"workflow": "listed", "id": "same"}
    _, said = rehearse(daemon, job, "--json")
    rows = json.loads(said)["preview"]["commands"]
    shown = [" ".join(row["argv"][1:]) for row in rows if row["step"] == "tell"]
    daemon.ask("submit", str(daemon.root / "job.json"), "--wait")
    ran = [daemon.ask("output", "same", item).stdout.strip() for item in ("1", "2")]
    worker = ran[0].partition("/scratch/")[2].partition("/")[0]

    assert worker
    assert [text.replace("/WORKER/", f"/{worker}/") for text in shown] == ran


REFUSED: dict[str, tuple[dict[str, Any], int, str]] = {
    "no items": ({"workflow": "shrink", "inputs": {"folder": "/proc/fs"}}, 1, "gives no items"),
    "a path that is none": (
        {"workflow": "shrink", "inputs": {"folder": "x/../y", "level": "9"}},
        1,
        "$.inputs",
    ),
    "an unknown workflow": ({"workflow": "shrunk"}, 1, "no such workflow is in force"),
    "an unknown key": ({"workflow": "shrink", "frob": 1}, 1, "unknown key 'frob' @ $"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_be_refused_is_refused(case: str, daemon: Daemon) -> None:
    """A file that cannot be admitted is told the same as when it is handed in."""
    job, code, said = REFUSED[case]
    found, told = rehearse(daemon, job)

    assert (code, True) == (found, said in told), told


def test_effects_are_shown_as_they_would_be_asked_for(daemon: Daemon) -> None:
    """What is known only when it is sent stays a placeholder; credentials are named; who is asked is said."""
    job = {"workflow": "label", "id": "label", "inputs": {"page": "a b"}, "items": ["seven"]}
    code, said = rehearse(daemon, job, "--json")
    view = json.loads(said)["preview"]

    assert 0 == code
    assert [
        ["draft", "--token=$RESUMED_CREDENTIALS/model"],
        ["PUT", "https://cms.example/a%20b"],
        ["tell", "a b", "{key}", "label"],
    ] == [row["argv"] for row in view["commands"]]
    assert [("seven", "run"), ("seven", "send"), ("", "send")] == [
        (row["item"], row["program"]) for row in view["commands"]
    ]
    assert [
        "what draft makes waits for group:curators",
        (
            "publish writes to cms (https://cms.example): when user:lee or group:curators said yes, who is "
            'asked where inputs.page != "test"'
        ),
        "tell writes to list: nobody is asked",
    ] == view["note"].split("; ")
