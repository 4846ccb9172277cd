"""A job's own programs at a real daemon's socket: they may look, and decide nothing about their job (I5)."""

import json
import os
import pwd
import sys
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually

from resumed.daemon.client import Client
from resumed.schemas import control

TELLS = """
done, telling = os.pipe()
if sys.argv[2] == "grandchild" and os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.environ.clear()
    told = all_of_it()
    with open(sys.argv[3] + ".new", "w") as file:
        json.dump(told, file)
    os.rename(sys.argv[3] + ".new", sys.argv[3])
    os._exit(0)
if sys.argv[2] == "grandchild":
    os.close(telling)
    os.read(done, 1)  # until the grandchild has ended
else:
    with open(sys.argv[3], "w") as file:
        json.dump(all_of_it(), file)
"""
"""The end of each script: it asks by itself, or by a grandchild that has left its session and environment."""

MEDDLER = """
import json, os, sys
from resumed.daemon.client import CallError, Client

def ask(method, **parameters):
    with Client(sys.argv[1]) as client:
        try:
            client.call(method, **parameters)
        except CallError as error:
            return error.name
    return "done"

def all_of_it():
    return {
        "look": ask("Show", job="meddler"),
        "cancel": ask("Cancel", job="meddler"),
        "skip": ask("Skip", job="meddler", items=["b"]),
        "another": ask("Pause", job="bystander", reason=sys.argv[2]),
    }

"""
FLOW = """
version = 1
[[step]]
name = "meddle"
run = {run}
repeatable = true
timeout = "30s"
"""


@pytest.mark.parametrize("backend", LOOPS)
def test_c13_job_that_steers_itself_is_refused(backend: str, tmp_path: Path) -> None:
    """A program of a job, and its double-forked grandchild, are refused each verb about that job (C13)."""
    daemon = Daemon(tmp_path, backend)
    script = tmp_path / "meddler.py"
    script.write_text(MEDDLER + TELLS)
    run = [sys.executable, str(script), str(daemon.socket), "{item}", f"{tmp_path}/{{item}}.told"]
    flow = daemon.workflows / "meddle.toml"
    flow.write_text(FLOW.format(run=json.dumps(run)))
    flow.chmod(0o644)
    daemon.start()
    try:
        bystander = daemon.file("bystander", "slow", {"a": ""}).read_text()
        meddler = {"workflow": "meddle", "id": "meddler", "items": ["child", "grandchild"]}
        with Client(str(daemon.socket)) as client:
            for file in (bystander, json.dumps(meddler)):
                client.call("Submit", file=file)
            *_, ended = client.stream("Watch", job="meddler")
        told = {
            item: eventually(lambda item=item: json.loads((tmp_path / f"{item}.told").read_text()))
            for item in ("child", "grandchild")
        }
    finally:
        daemon.end()

    expected = {
        "look": "done",
        "cancel": control.ERROR_NOT_PERMITTED,
        "skip": control.ERROR_NOT_PERMITTED,
        "another": "done",
    }
    assert ("completed", {"child": expected, "grandchild": expected}) == (
        ended["row"]["status"],
        told,
    ), daemon.said()
    assert 4 == daemon.said().count("about meddler was refused: it comes from within an attempt of meddler")


APPROVER = """
import json, os, sys
from resumed.daemon.client import CallError, Client

def ask(method, **parameters):
    with Client(sys.argv[1]) as client:
        try:
            return client.call(method, **parameters)
        except CallError as error:
            return [error.name.rpartition(".")[2], error.parameters.get("code", "")]

def all_of_it():
    row = ask("Inbox")["asks"][0]
    named = {"job": row["job"], "subject": row["subject"], "fingerprint": row["fingerprint"]}
    return {
        "approve": ask("Approve", **named),
        "approve as another": ask("Approve", **named, reviewer="r1"),
        "deny": ask("Deny", **named),
        "settle": ask("Settle", job=row["job"], subject=row["subject"], absent=True, record=1, reason="no"),
    }

"""
WRITES = """
version = 1
[[step]]
name = "draft"
run = ["true"]
repeatable = true
timeout = "30s"
[[effect]]
name = "publish"
target = "the board"
send = ["sh", "-c", "echo one >> \\"$1\\"; echo ref-1", "sh", {board}]
approve = {{ by = "user:{me}", not_requester = false }}
"""


def first_asked(client: Client) -> dict[str, Any]:
    """The oldest row of the inbox; AssertionError while there is none."""
    rows: list[dict[str, Any]] = client.call("Inbox")["asks"]
    assert rows, client.call("Show", job="writer")
    return rows[0]


@pytest.mark.parametrize("backend", LOOPS)
def test_c13_no_program_of_a_job_approves_anything(backend: str, tmp_path: Path) -> None:
    """From within a job, and from its double-forked grandchild, as the approver's own user: each decision is
    refused, also about another job and under another's name, and nothing is written; from outside the same
    decision counts, and is written down as the jobs' own user's (C13)."""
    daemon, board = Daemon(tmp_path, backend), tmp_path / "board"
    script = tmp_path / "approver.py"
    script.write_text(APPROVER + TELLS)
    run = [sys.executable, str(script), str(daemon.socket), "{item}", f"{tmp_path}/{{item}}.told"]
    me = pwd.getpwuid(os.geteuid()).pw_name
    texts = {
        "meddle": FLOW.format(run=json.dumps(run)),
        "writes": WRITES.format(board=json.dumps(str(board)), me=me),
    }
    for name, text in texts.items():
        (daemon.workflows / f"{name}.toml").write_text(text)
        (daemon.workflows / f"{name}.toml").chmod(0o644)
    daemon.start()
    try:
        with Client(str(daemon.socket)) as client:
            client.call("Submit", file=json.dumps({"workflow": "writes", "id": "writer", "items": ["a"]}))
            asked = eventually(lambda: first_asked(client))
            meddler = {"workflow": "meddle", "id": "meddler", "items": ["child", "grandchild"]}
            client.call("Submit", file=json.dumps(meddler))
            *_, ended = client.stream("Watch", job="meddler")
            told = {
                item: eventually(lambda item=item: json.loads((tmp_path / f"{item}.told").read_text()))
                for item in ("child", "grandchild")
            }
            written_before = board.exists()
            named = {name: asked[name] for name in ("job", "subject", "fingerprint")}
            client.call("Approve", **named)
            *_, written = client.stream("Watch", job="writer")
            again = client.call("Approve", **named)
    finally:
        daemon.end()

    no = ["NotPermitted", ""]
    refused = {"approve": no, "approve as another": ["Faulty", ""], "deny": no, "settle": no}
    assert ("completed", {"child": refused, "grandchild": refused}) == (ended["row"]["status"], told), (
        daemon.said()
    )
    assert not written_before
    assert ("completed", "one\n") == (written["row"]["status"], board.read_text())
    assert "is approved already by you" in again["told"]["said"]
    assert 6 == daemon.said().count("about writer was refused: it comes from within an attempt of meddler")
