"""The wrong-typed table at two doors of the real daemon: nothing of the wrong type is ever accepted."""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from resumed.daemon.client import CallError

from .kit import Daemon, command, until

WRONG: dict[str, list[Any]] = {
    "flag": ["false", "no", "0", 0, 1, 1.0, None, {}, {"status": "denied"}, [], [True]],
    "count": ["3", "", 3.7, 3.0, True, None, {}, [3], 2**53, -(2**60), 1e400],
    "list": ["abc", 1, True, {"a": 1}, {"0": "a"}, [1], [None], [["a"]], [True], [{"id": 1}]],
    "text": [1, 1.5, True, {}, ["a"], {"text": "a"}],
    "table": ["{}", 1, True, [], [["a", 1]]],
}
DEFAULTS = {"flag": False, "count": 1}


def places() -> dict[str, tuple[str, Any, dict[str, Any]]]:
    """Job files with one wrong value each, by a name, with the path that the refusal must give."""
    made: dict[str, tuple[str, Any, dict[str, Any]]] = {}

    def put(field: str, path: str, value: Any, job: dict[str, Any]) -> None:
        made[f"{len(made):03}-{field}"] = path, value, {"workflow": "typed", "items": ["a"]} | job

    for kind in DEFAULTS:
        for value in WRONG[kind]:
            put(kind, f"$.inputs.{kind}", value, {"inputs": {kind: value}})
            put(
                f"item-{kind}",
                f"$.items[0].inputs.{kind}",
                value,
                {"items": [{"id": "a", "inputs": {kind: value}}]},
            )
    for value in WRONG["list"]:
        put("items", "$.items", value, {"items": value})
    for value in WRONG["text"]:
        for key in ("workflow", "id", "title", "objective", "owner", "tenant"):
            put(key, f"$.{key}", value, {key: value})
        put("label", "$.labels.x", value, {"labels": {"x": value}})
        put("source", "$.items[0].source", value, {"items": [{"id": "a", "source": value}]})
    for value in WRONG["table"]:
        put("inputs", "$.inputs", value, {"inputs": value})
        put("labels", "$.labels", value, {"labels": value})
    for key in ("require_aproval", "repeatable", "reviewers", "max_calls", "Items"):
        put(key, key, True, {key: True})
    return made


def spelled(job: dict[str, Any]) -> bytes:
    """The job file as somebody might write it: a number too large for a float stays a number."""
    return json.dumps(job).replace("Infinity", "1e400").encode()


def test_no_wrong_type_is_accepted_by_folder_or_socket(daemon: Daemon) -> None:
    """C27: each wrong value is refused with its path, at both doors; a dropped file is kept with its reason,
    and the count of acceptances is 0."""
    inputs = '[inputs]\nflag = { type = "bool", default = false }\ncount = { type = "int", default = 1 }\n'
    daemon.workflow("typed", command(["true"]).replace("[[step]]", inputs + "[[step]]"))
    daemon.start()
    table = places()
    accepted, unclear = [], []
    with daemon.client() as client:
        for name, (path, value, job) in table.items():
            try:
                client.call("Submit", file=spelled(job).decode(), name=f"{name}.json")
                accepted.append((name, value))
            except CallError as error:
                said = " ".join([str(error), *error.parameters.get("problems", ())])
                if path not in said:
                    unclear.append((name, value, said))
    assert ([], []) == (accepted, unclear)

    for name, (_, _, job) in table.items():
        daemon.drop(f"{name}.json", spelled(job))
    rejected = daemon.state / "rejected"
    until(
        lambda: len(list(rejected.glob("*.reason.json"))) == len(table), "all files are refused", every=0.05
    )
    for name, (path, value, job) in table.items():
        reason = json.loads((rejected / f"{name}.json.reason.json").read_bytes())
        assert path in json.dumps(reason, ensure_ascii=False), (name, value, reason)
        assert spelled(job) == (rejected / f"{name}.json").read_bytes()
    until(lambda: not list((daemon.state / "claimed").iterdir()), "nothing is left half way")
    assert [] == list((daemon.state / "incoming").glob("[!.]*"))
    assert [] == daemon.jobs_on_disk()
    assert 0 == daemon.ask("Status")["house"]["open"]


def test_no_wrong_type_in_a_stored_job_is_read(daemon: Daemon) -> None:
    """C27: a stored job with one wrong-typed field, its digests made to fit, is quarantined, never run."""
    daemon.works("short", "work", 1, repeatable=False)
    daemon.start()
    daemon.submit("kept", "short", ["a"])
    daemon.ask("Pause", job="kept", now=True)
    daemon.wait_status("kept", "paused")
    assert 0 == daemon.stop()
    before = daemon.witness.size()
    folder = next((daemon.state / "jobs").glob("*/kept"))
    whole = daemon.copy_state("whole")
    for wrong in (b'"no"', b"1", b"{}"):
        _forge(folder, wrong)
        daemon.start()
        # Known in its place first: it is moved once nothing of it can run.
        aside = until(
            lambda: [each for each in daemon.ask("Quarantined")["jobs"] if each["moved"]], "it is set aside"
        )
        assert [("kept", "damaged", True)] == [(each["id"], each["reason"], each["moved"]) for each in aside]
        assert "repeatable" in aside[0]["detail"]
        assert 0 == daemon.stop()
        shutil.rmtree(daemon.state)
        shutil.copytree(whole, daemon.state)
    assert before == daemon.witness.size()


def _forge(folder: Path, wrong: bytes) -> None:
    """Checkpoints with a step's `repeatable` exchanged, under names that fit their bytes."""
    hit = 0
    for path in folder.glob("*.checkpoint.json"):
        changed, count = re.subn(rb'"repeatable": ?false', b'"repeatable":' + wrong, path.read_bytes())
        hit += count
        path.unlink()
        sequence = path.name.split("-")[0]
        (folder / f"{sequence}-{hashlib.sha256(changed).hexdigest()}.checkpoint.json").write_bytes(changed)
    assert hit, "the forgery hit nothing"
