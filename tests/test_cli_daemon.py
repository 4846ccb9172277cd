"""`resumectl` and `resumed serve` as people run them: real processes, real files, real exit codes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_kit import LOOPS, Daemon, eventually, heeds_ctrl_c


@pytest.fixture(scope="module", params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    made = Daemon(tmp_path_factory.mktemp("daemon"), request.param)
    made.start()
    yield made
    assert made.process is not None
    if made.process.poll() is None:
        made.end()
    assert "Traceback" not in made.said()


def test_submit_and_wait(daemon: Daemon) -> None:
    """A job that ends well ends its waiting form with 0, and its outputs are there byte for byte."""
    path = daemon.file("well", "say", {"a": "one\n", "b": "two\n"})
    ran = daemon.ask("submit", str(path), "--wait")
    outputs = [daemon.ask("output", "well", item).stdout for item in ("a", "b")]
    logs = daemon.ask("logs", "well", "a").stdout

    assert (0, ["one\n", "two\n"]) == (ran.returncode, outputs), ran
    assert "heard" in logs
    assert "well" in daemon.ask("list", "-a").stdout


def test_same_file_again_is_the_same_job(daemon: Daemon) -> None:
    """Handing a file in twice makes one job, and says so; another file under its id is refused."""
    path = daemon.file("twice", "say", {"a": "one"})
    first = json.loads(daemon.ask("submit", str(path), "--json").stdout)["told"]
    second = json.loads(daemon.ask("submit", str(path), "--json").stdout)["told"]
    path.write_text(path.read_text().replace("twice.files", "twice.file2"))
    third = daemon.ask("submit", str(path))

    assert [False, True] == [first["repeated"], second["repeated"]]
    assert 1 == third.returncode
    assert "you may" in third.stderr


def test_same_words_spelled_otherwise_are_the_same_job(daemon: Daemon) -> None:
    """A job file without an id is known by what it says: other spaces make no other job, and no conflict."""
    source = daemon.root / "spelled"
    source.write_text("x")
    job = {"workflow": "say", "items": [{"id": "x", "source": str(source)}]}
    told = []
    for name, spaces in (("first", None), ("second", 4)):
        path = daemon.root / f"{name}.json"
        path.write_text(json.dumps(job, indent=spaces))
        told.append(json.loads(daemon.ask("submit", str(path), "--json").stdout)["told"])

    assert [False, True] == [each["repeated"] for each in told]
    assert told[0]["row"]["id"] == told[1]["row"]["id"]


def test_failed_items_hold_the_job_until_somebody_decides(daemon: Daemon) -> None:
    """A waiting form ends with 11; retry and skip do what they say; a skipped item ends it with 10."""
    path = daemon.file("fails", "say", {"a": "one", "b": "two", "b.fail": "", "c": "x", "c.fail": ""})
    job = json.loads(path.read_text())
    job["items"] = [item for item in job["items"] if "." not in item["id"]]
    path.write_text(json.dumps(job))
    first = daemon.ask("submit", str(path), "--wait")
    held = daemon.row("fails")
    (daemon.root / "fails.files" / "b.fail").unlink()
    retried = daemon.ask("retry", "fails", "b", "--reason", "it is there now")
    second = daemon.ask("watch", "fails")
    skipped = daemon.ask("skip", "fails", "c")
    third = daemon.ask("watch", "fails")
    again = daemon.ask("skip", "fails", "c")

    assert [11, 0, 11, 0, 10, 1] == [
        each.returncode for each in (first, retried, second, skipped, third, again)
    ]
    assert ("held", 1, True) == (held["status"], held["done"], held["needs_person"])
    assert ("completed", 2) == (daemon.row("fails")["status"], daemon.row("fails")["done"])


def test_done_item_is_begun_again_by_a_person(daemon: Daemon) -> None:
    """While another item is stuck, a done one is reopened: done anew, from what its source is now; not twice,
    not without a reason, not while nothing is named, and not once the job has ended."""
    path = daemon.file("anew", "say", {"a": "one", "b": "two", "b.fail": ""})
    job = json.loads(path.read_text())
    job["items"] = [item for item in job["items"] if "." not in item["id"]]
    path.write_text(json.dumps(job))
    first = daemon.ask("submit", str(path), "--wait")
    bare = daemon.ask("reopen", "anew", "a")
    none = daemon.ask("reopen", "anew", "--reason", "wrong")
    opened = daemon.ask("reopen", "anew", "a", "--reason", "wrong page")
    second = daemon.ask("watch", "anew")
    item = json.loads(daemon.ask("show", "anew", "--json").stdout)["job"]["items"][0]
    told = daemon.ask("history", "anew", "a").stdout
    output = daemon.ask("output", "anew", "a")
    daemon.ask("skip", "anew", "b")
    late = daemon.ask("reopen", "anew", "a", "--reason", "wrong page")

    assert [11, 2, 2, 0, 11, 1] == [each.returncode for each in (first, bare, none, opened, second, late)]
    assert ("done", 2, "one") == (item["state"], item["tries"], output.stdout)
    assert "wrong page" in told


def test_pause_resume_cancel(daemon: Daemon) -> None:
    """A job at work is stopped, goes on and is ended; its waiting form ends with 12."""
    path = daemon.file("stops", "slow", {"a": ""})
    daemon.ask("submit", str(path))
    paused = daemon.ask("pause", "stops", "--now", "--reason", "tea")
    resumed = daemon.ask("resume", "stops")
    canceled = daemon.ask("cancel", "stops", "--reason", "enough")
    ended = daemon.ask("watch", "stops")
    late = daemon.ask("resume", "stops")

    assert [0, 0, 0, 12, 1] == [each.returncode for each in (paused, resumed, canceled, ended, late)]
    assert "canceled" == daemon.row("stops")["status"]


def test_house_verbs(daemon: Daemon) -> None:
    """Status, workflows and quarantine say how the daemon is, as text and as JSON."""
    status = json.loads(daemon.ask("status", "--json").stdout)["house"]
    flows = daemon.ask("workflows")
    aside = daemon.ask("quarantine", "list")

    assert (daemon.backend, ["say", "slow"]) == (status["backend"], status["workflows"])
    assert "say@1" in flows.stdout
    assert "no job is set aside\n" == aside.stdout


REFUSALS = {
    "unknown job": (("show", "nobody"), 4),
    "unknown item": (("output", "well", "zzz"), 4),
    "job without its word": (("show",), 2),
    "unknown verb": (("frobnicate",), 2),
    "unknown option": (("list", "--frob"), 2),
    "no file": (("submit", "/does/not/exist"), 2),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal_has_its_code(case: str, daemon: Daemon) -> None:
    """Each kind of refusal has an exit code of its own, and says why on standard error."""
    words, code = REFUSALS[case]
    ran = daemon.ask(*words)

    assert (code, "") == (ran.returncode, ran.stdout)
    assert ran.stderr
    assert code == 2 or "you may" in ran.stderr


def test_json_tells_refusals_too(daemon: Daemon) -> None:
    """With --json an error is an object on standard output, beside the exit code."""
    ran = daemon.ask("show", "nobody", "--json")

    assert (4, "org.resumed.Control.NoSuch") == (ran.returncode, json.loads(ran.stdout)["error"])


WRONG = {
    "labels with a yes": {"labels": {"x": True}},
    "labels as text": {"labels": "x"},
    "title as a number": {"title": 3},
    "items as text": {"items": "abc"},
    "items as an object of no kind": {"items": {"status": "denied"}},
    "item as a number": {"items": [1]},
    "source as a no": {"items": [{"id": "a", "source": False}]},
    "id as a number": {"id": 7},
    "id as a yes": {"id": True},
    "workflow as a list": {"workflow": ["say"]},
    "inputs as text": {"inputs": "false"},
    "an input of the wrong type": {"inputs": {"word": 0}},
    "an unknown input": {"inputs": {"wrod": "x"}},
    "an unknown key": {"run": ["rm"]},
    "null for a text": {"title": None},
}


@pytest.fixture(scope="module")
def wrong_files(daemon: Daemon) -> dict[str, Path]:
    """All the wrong files, handed to the socket's door from here, and dropped into the folder all at once."""
    paths = {}
    for case, keys in WRONG.items():
        paths[case] = path = daemon.root / f"{case.replace(' ', '-')}.json"
        job = {"workflow": "say", "items": [{"id": "a", "source": "/dev/null"}]} | keys
        path.write_text(json.dumps(job))
        path.chmod(0o600)
        copy = daemon.state / "incoming" / f".{path.name}"
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o600)
        copy.rename(copy.with_name(path.name))
    return paths


@pytest.mark.parametrize("case", WRONG)
def test_wrong_job_file_is_refused_at_both_doors(
    case: str, daemon: Daemon, wrong_files: dict[str, Path]
) -> None:
    """Nothing is coerced: the folder and the socket name the field, and no job comes of it (C27)."""
    path = wrong_files[case]
    before = json.loads(daemon.ask("list", "-a", "--json").stdout)
    by_socket = daemon.ask("submit", str(path))
    place = daemon.state / "rejected" / f"{path.name}.reason.json"
    reason = eventually(lambda: json.loads(place.read_text()))
    after = json.loads(daemon.ask("list", "-a", "--json").stdout)

    assert 1 == by_socket.returncode, by_socket
    assert "@ $" in by_socket.stderr
    assert "@ $" in reason["problems"][0]
    assert len(before["jobs"]) + before["ended_count"] == len(after["jobs"]) + after["ended_count"]


def test_dropped_file_becomes_a_job(daemon: Daemon) -> None:
    """A file in the watched folder is a job of its owner a moment later, and the folder is empty."""
    path = daemon.file("dropped", "say", {"a": "one"})
    path.rename(daemon.state / "incoming" / "dropped.json")
    eventually(lambda: daemon.row("dropped"))
    ended = daemon.ask("watch", "dropped")

    assert 0 == ended.returncode
    assert [] == os.listdir(daemon.state / "incoming") + os.listdir(daemon.state / "claimed")


def test_damaged_job_is_set_aside_and_shown(daemon: Daemon) -> None:
    """A job whose bytes do not hold is moved aside with its reason, shown, and stops no other."""
    for name in ("good", "bad"):
        daemon.ask("submit", str(daemon.file(name, "slow", {"a": ""})))
    daemon.end(signal.SIGKILL)
    (folder,) = (daemon.state / "jobs").glob("*/bad")
    for log in folder.glob("*.log"):
        raw = log.read_bytes()
        log.write_bytes(raw[:80] + b"XX" + raw[82:])
    daemon.start()
    row = eventually(lambda: json.loads(daemon.ask("quarantine", "list", "--json").stdout)["jobs"][0])
    shown = daemon.ask("quarantine", "list")
    fsck = [sys.executable, "-m", "resumed.daemon.main", "fsck", str(daemon.state)]
    codes = [
        subprocess.run(fsck, capture_output=True, timeout=60).returncode,
        daemon.ask("cancel", "good").returncode,
    ]
    told = [daemon.ask(*words) for words in (("show", "ba"), ("resume", "bad"), ("output", "bad", "a"))]
    told.append(daemon.ask("submit", str(daemon.root / "bad.json")))

    assert ("bad", "damaged") == (row["id"], row["reason"])
    assert "bad" in shown.stdout
    assert [0] == codes[1:]
    assert [1] * 4 == [each.returncode for each in told]
    for each in told:
        assert "bad is set aside: " in each.stderr
        assert "resumectl quarantine show bad" in each.stderr


def test_interrupted_watch_leaves_the_job_alone(daemon: Daemon) -> None:
    """Ctrl-C ends the watching with 130 and says that the job goes on; and it does."""
    daemon.ask("submit", str(daemon.file("watched", "slow", {"a": ""})))
    command = [sys.executable, "-m", "resumed.daemon.cli", f"--socket={daemon.socket}", "watch", "watched"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": heeds_ctrl_c}
    with subprocess.Popen(command, text=True, **pipes) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, said = watching.communicate(timeout=30)
    status = daemon.row("watched")["status"]
    daemon.ask("cancel", "watched")

    assert "watched" in first
    assert 130 == watching.returncode
    assert "resumectl: interrupted: the job watched goes on\nyou may\n  resumectl watch watched\n" == said
    assert status in ("ready", "running")


def test_logs_are_followed(daemon: Daemon) -> None:
    """`logs -f` prints what comes while the program runs, and ends with it."""
    daemon.ask("submit", str(daemon.file("talks", "say", {"a": "one", "b": "two"})))
    ran = daemon.ask("logs", "talks", "-f")

    assert 0 == ran.returncode
    assert 2 == ran.stdout.count("heard")
    assert ["== a", "== b"] == sorted(line for line in ran.stdout.splitlines() if line.startswith("=="))


def test_relative_paths_are_made_absolute(daemon: Daemon) -> None:
    """A job file beside its sources is handed in from anywhere, by name or through a pipe."""
    folder = daemon.root / "beside"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    (folder / "job.toml").write_text('workflow = "say"\nid = "beside"\nitems = ["a.txt"]\n')
    by_name = daemon.ask("submit", str(folder / "job.toml"), "--wait")
    job = json.dumps({"workflow": "say", "id": "piped", "items": [{"id": "x", "source": "a.txt"}]})
    by_pipe = daemon.ask("submit", "-", "--wait", cwd=folder, input=job)

    assert [0, 0] == [by_name.returncode, by_pipe.returncode], (by_name, by_pipe)
    assert ["one", "one"] == [
        daemon.ask("output", "beside", "a.txt").stdout,
        daemon.ask("output", "piped", "x").stdout,
    ]


def test_second_daemon_is_refused(daemon: Daemon) -> None:
    """Another daemon on the same store, or on the same socket, ends with 75 and changes nothing."""
    store = subprocess.run(
        daemon.command(f"--socket={daemon.root / 'other'}"), capture_output=True, text=True, timeout=60
    )
    command = daemon.command(f"--state={daemon.root / 'state2'}")
    place = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert [75, 75] == [store.returncode, place.returncode]
    assert f"pid {daemon.process.pid}" in store.stderr  # type: ignore[union-attr]
    assert f"process {daemon.process.pid}" in place.stderr  # type: ignore[union-attr]
    assert 0 == daemon.ask("status").returncode
    assert not (daemon.root / "state2").exists()


def test_killed_daemon_goes_on_where_it_was(daemon: Daemon) -> None:
    """After SIGKILL the next daemon finds what was done done, and finishes the rest by itself."""
    path = daemon.file("killed", "say", {f"item-{number:02}": str(number) for number in range(30)})
    daemon.ask("submit", str(path))
    daemon.end(signal.SIGKILL)
    daemon.start()
    ended = daemon.ask("watch", "killed")

    assert 0 == ended.returncode
    assert (30, 30) == (daemon.row("killed")["done"], daemon.row("killed")["total"])


def test_stop_is_orderly_and_the_store_is_clean(daemon: Daemon) -> None:
    """SIGTERM ends a daemon with work under way with 0 in its time; the store is clean, and goes on."""
    path = daemon.file("parked", "slow", {"a": ""})
    daemon.ask("submit", str(path))
    code = daemon.end()
    checked = subprocess.run(
        [sys.executable, "-m", "resumed.daemon.main", "fsck", str(daemon.state), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    gone = not daemon.socket.exists()
    daemon.start()
    row = daemon.row("parked")
    daemon.ask("cancel", "parked")

    assert (0, 0, True) == (code, checked.returncode, gone), checked.stdout
    assert 0 == json.loads(checked.stdout)["verdict"]
    assert row["status"] in ("ready", "running", "resuming")


def test_trio_serves_the_same(tmp_path: Path) -> None:
    """On the other loop a job goes in, comes out, and the daemon stops in good order."""
    made = Daemon(tmp_path, "trio")
    made.start()
    ran = made.ask("submit", str(made.file("well", "say", {"a": "one"})), "--wait")
    backend = json.loads(made.ask("status", "--json").stdout)["house"]["backend"]

    assert (0, "trio", 0) == (ran.returncode, backend, made.end())


def test_nobody_there(tmp_path: Path) -> None:
    """Without a daemon each verb ends with 3 and says what to type."""
    command = [sys.executable, "-m", "resumed.daemon.cli", "status"]
    ran = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "RESUMED_SOCKET": str(tmp_path / "none")}
    )

    assert (3, "") == (ran.returncode, ran.stdout)
    assert f"cannot reach the daemon at {tmp_path / 'none'}" in ran.stderr
    assert "resumed serve" in ran.stderr


BAD_STARTS = {
    "a faulty configuration": (["--config=bad.toml"], "unknown key 'frob' @ $"),
    "a configuration that is not there": (["--config=absent.toml"], "there is no such file"),
    "a store that is a file": (["--state=bad.toml"], "bad.toml"),
    "a socket that is a file": (["--state=s", "--socket=bad.toml"], "no socket"),
    "a watched folder that is not there": (["--state=s", "--incoming=absent"], "absent"),
    "a store that others may write": (["--state=open"], "others may write it (mode 0777): chmod go-w"),
}


@pytest.mark.parametrize("case", BAD_STARTS)
def test_refusal_to_start_says_do_not_restart(case: str, tmp_path: Path) -> None:
    """What a restart cannot mend ends with 78 and one sentence, and nothing was written."""
    words, why = BAD_STARTS[case]
    (tmp_path / "bad.toml").write_text("frob = 1\n")
    (tmp_path / "bad.toml").chmod(0o600)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    ran = subprocess.run(
        [sys.executable, "-m", "resumed.daemon.main", "serve", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "HOME": str(tmp_path), "RESUMED_SOCKET": str(tmp_path / "control")},
    )

    assert 78 == ran.returncode, ran.stderr
    assert why in ran.stderr
    assert "Traceback" not in ran.stderr
    assert {"bad.toml", "open"} == {path.name for path in tmp_path.rglob("*")} - {"bad.toml.lock"}


def test_client_starts_fast(tmp_path: Path) -> None:
    """A whole `resumectl` is one short process: argparse, a socket, and nothing heavier."""
    command = [sys.executable, "-X", "importtime", "-m", "resumed.daemon.cli", "status"]
    ran = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "RESUMED_SOCKET": str(tmp_path / "none")}
    )

    assert 3 == ran.returncode
    assert [] == [
        name for name in ("click", "attr", "cattrs", "orjson", "anyio") if f"| {name}\n" in ran.stderr
    ]


def test_a_job_at_its_limit_is_extended(daemon: Daemon) -> None:
    """What programs report is added up; at the cap the job holds, says what may be typed, and that works."""
    flow = daemon.workflows / "spend.toml"
    flow.write_text(
        """
version = 1
limits = { usd = "1.5" }
[[step]]
name = "pay"
run = ["sh", "-c", 'echo "{{\\"usd\\":\\"0.4\\"}}" > $RESUMED_RESULT']
repeatable = true
"""
    )
    flow.chmod(0o644)
    path = daemon.file("spender", "spend", dict.fromkeys("abcd", "x"))
    job = json.loads(path.read_text()) | {"limits": {"usd": "0.5"}, "priority": 2}
    path.write_text(json.dumps(job))
    eventually(lambda: daemon.ask("workflows").stdout.index("spend@1"))
    held = daemon.ask("submit", str(path), "--wait")
    said = daemon.ask("show", "spender").stdout
    refused = daemon.ask("extend", "spender", "--usd", "5")
    wrong = daemon.ask("extend", "spender", "--usd", "much")
    done = daemon.ask("extend", "spender", "--usd", "1.5", "--reason", "worth it")
    ended = daemon.ask("watch", "spender")

    assert 11 == held.returncode
    assert "it has used 0.8 of 0.5 usd" in said
    assert "resumectl extend spender --usd 1.5" in said
    assert (1, True) == (refused.returncode, "its workflow spend allows 1.5" in refused.stderr)
    assert (1, True) == (wrong.returncode, "expected an amount as text" in wrong.stderr)
    assert (0, True) == (done.returncode, "extended usd to 1.5" in done.stdout), done
    # The last item may use it up: nothing is left but the end.
    assert 0 == ended.returncode
