"""Approvals at a real daemon, with a real content system that counts: many hands at once, kills around a
decision, and a job that would decide about itself."""

import json
import os
import pwd
import random
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from target import Target

from resumed.schemas import control

from .kit import FINAL, Daemon, kinds, pass_by, until

HANDS = 50
ME = f"user:{pwd.getpwuid(os.geteuid()).pw_name}"
LABEL = """
version = 1
[[step]]
name = "draft"
run = {run}
repeatable = true
parallel = 2
[[effect]]
name = "publish"
target = "cms"
approve = {{ by = "{me}", not_requester = false }}
dedup = false
absent_is_final = true
check_first = false
timeout = "2s"
in_flight = "500ms"
[effect.send]
method = "POST"
url = "{address}/pages/{{job}}"
body = "{{outputs.draft}}"
key_header = "Idempotency-Key"
statuses = {{ landed = [201], refused = [404, 409, 412, 422] }}
reference = {{ json = "reference" }}
[effect.look_up]
url = "{address}/keys/{{key}}"
statuses = {{ landed = [200], absent = [404] }}
reference = {{ json = "reference" }}
"""


def put_up(daemon: Daemon, target: Target, run: list[str]) -> None:
    """The workflow, with what its step runs; what is sent twice is there twice."""
    target.settings(deduplicate=False)
    daemon.workflow("label", LABEL.format(run=json.dumps(run), me=ME, address=target.address))


def asked(daemon: Daemon, job: str) -> dict[str, str]:
    """What a decision about a job must name, once it is asked for."""

    def look() -> dict[str, Any] | None:
        rows = daemon.ask("Inbox")["asks"]
        return next((row for row in rows if row["job"] == job and row["kind"] == "approve"), None)

    row = until(look, f"{job} asks", every=0.02)
    return {"job": job, "subject": row["subject"], "fingerprint": row["fingerprint"]}


def at_once(calls: list[Callable[[], dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """How calls ended that were made together, in their order."""
    barrier = threading.Barrier(len(calls))
    ended: list[tuple[str, dict[str, Any]]] = [("", {})] * len(calls)

    def one(place: int) -> None:
        barrier.wait(30)
        ended[place] = kinds(calls[place])

    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return ended


CROWDS = {
    "approve": ("Approve",),
    "approve and deny": ("Approve", "Deny"),
    "approve and cancel": ("Approve", "Cancel"),
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_fifty_at_once_have_one_winner(daemon: Daemon, target: Target, crowd: str) -> None:
    """Many hands that decide together: one decision stands, all others hear of it, and what the record says
    after a kill is what the content system has."""
    put_up(daemon, target, ["echo", "Label"])
    daemon.start()
    daemon.submit("label-1", "label", ["one"])
    named = asked(daemon, "label-1")
    verbs = [CROWDS[crowd][hand % len(CROWDS[crowd])] for hand in range(HANDS)]

    def call(verb: str) -> Callable[[], dict[str, Any]]:
        keys: dict[str, Any] = {"job": "label-1"} if verb == "Cancel" else named
        return partial(daemon.ask, verb, **keys)

    ended = at_once([call(verb) for verb in verbs])

    won = {verb for verb, (how, _) in zip(verbs, ended, strict=True) if how == "told"}
    status = daemon.wait_status("label-1", *FINAL, "held")["status"]
    daemon.kill()
    daemon.bury()
    snapshot = daemon.recover("label-1").snapshot
    [effect] = snapshot.effects
    approved = [row for row in snapshot.approvals if row.decision == "approve"]
    assert {"told", "refused"} >= {how for how, _ in ended}
    assert target.pages() == ({"label-1": 1} if effect.state == "confirmed" else {}), effect
    assert len(approved) <= 1, "one person's yes, however often it is said"
    if crowd == "approve":
        assert ("completed", {"Approve"}) == (status, won)
        assert effect.operation_key == approved[0].operation_key
    elif "Deny" in verbs:
        assert 1 == len(won), "whoever came too late is refused"
        assert won == ({"Approve"} if effect.state == "confirmed" else {"Deny"})
    else:
        assert "Cancel" in won
        assert (effect.state == "confirmed") <= bool(approved), "nothing leaves without a yes"


def test_c11_kills_around_a_decision_lose_and_double_nothing(
    daemon: Daemon, target: Target, faults_scale: float
) -> None:
    """SIGKILL between a yes and its outcome, at moments of chance: who says it again gets the same answer or
    is the first, and each page is there once (C11, C37)."""
    chance = random.Random(11)
    put_up(daemon, target, ["echo", "Label of", "{job}"])
    daemon.start()
    jobs = [f"label-{number}" for number in range(4)]
    for round_ in range(max(2, round(20 * faults_scale))):
        names = {job: f"{job}-{round_}" for job in jobs}
        for job in names.values():
            daemon.submit(job, "label", ["one"])
        named = {job: asked(daemon, job) for job in names.values()}
        calls = [partial(daemon.ask, "Approve", **keys) for keys in named.values()]
        sending = threading.Thread(target=at_once, args=(calls,))
        sending.start()
        pass_by(chance.uniform(0, 0.4))
        daemon.kill()
        sending.join(60)
        daemon.bury()
        daemon.start()

        for call in calls:
            assert "told" == kinds(call)[0]
        for job, call in zip(named, calls, strict=True):
            assert "completed" == daemon.wait_status(job, *FINAL, "held")["status"]
            assert "told" == kinds(call)[0]

    assert set(target.pages().values()) == {1}
    assert len(target.pages()) == target.counts()["writes_accepted"]
    assert len(target.pages()) == 4 * max(2, round(20 * faults_scale))


MEDDLER = """
import json, os, sys
from resumed.daemon.client import CallError, Client

def approve():
    with Client(sys.argv[1]) as client:
        rows = []
        while not rows:
            rows = [row for row in client.call("Inbox")["asks"] if row["item"] == "first"]
        keys = {"job": "label-1", "subject": rows[0]["subject"], "fingerprint": rows[0]["fingerprint"]}
        try:
            client.call("Approve", **keys)
        except CallError as error:
            return error.name
    return "done"

if sys.argv[2] != "first":
    done, telling = os.pipe()
    if sys.argv[2] == "grandchild":
        if os.fork():
            os.close(telling)
            os.read(done, 1)        # until the grandchild has ended
            sys.exit(0)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.environ.clear()
    with open(sys.argv[3] + "." + sys.argv[2], "w") as told:
        told.write(approve())
"""


def test_c13_a_job_approves_nothing_of_its_own(daemon: Daemon, target: Target, tmp_path: Path) -> None:
    """A program of a job, and its double-forked grandchild, approve what the job asks: both are refused, and
    nothing leaves, until somebody outside says yes (C13)."""
    script = tmp_path / "meddler.py"
    script.write_text(MEDDLER)
    told = tmp_path / "told"
    put_up(daemon, target, [sys.executable, str(script), str(daemon.socket), "{item}", str(told)])
    daemon.start()
    daemon.submit("label-1", "label", ["first", "child", "grandchild"])
    for item in ("child", "grandchild"):
        path = Path(f"{told}.{item}")
        until(lambda path=path: path.exists() and path.read_text(), f"{item} has tried", every=0.02)
        assert control.ERROR_NOT_PERMITTED == path.read_text()
    assert {} == target.pages()

    rows = [row for row in daemon.ask("Inbox")["asks"] if row["item"] == "first"]
    keys = {"subject": rows[0]["subject"], "fingerprint": rows[0]["fingerprint"]}
    daemon.ask("Approve", job="label-1", **keys)
    until(target.pages, "the page of the first is there", every=0.02)
    daemon.ask("Cancel", job="label-1")
    assert "canceled" == daemon.wait_status("label-1", *FINAL)["status"]
    assert {"label-1": 1} == target.pages()
