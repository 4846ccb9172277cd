"""The examples that publish, played for real: counts are the content system's own."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from target import Target

from .kit import Daemon, until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ME = f"user:{pwd.getpwuid(os.geteuid()).pw_name}"
RULE = f'not_requester = false, by = "{ME}"'
ADDRESS, CURATORS = "http://127.0.0.1:8080", '"group:curators"'


def test_demo_publishes_once_what_was_approved(open_folder: Path) -> None:
    """`./dev demo museum`: one page for one approval, through a lost reply and a kill; a stale approval, a
    wrong approver and a spent approval publish nothing."""
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "museum" / "demo.py"],
        env={**os.environ, "TMPDIR": str(open_folder)},
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert 0 == ran.returncode, ran.stdout + ran.stderr
    assert {
        "demo": "museum",
        "pages": 1,
        "writes_received": 1,
        "kills": 1,
        "replies_lost": 1,
        "stale_approval_published": 0,
        "wrong_approver_published": 0,
    } == json.loads(ran.stdout.splitlines()[-1])


def put_up(daemon: Daemon, folder: Path, target: Target, installed: str) -> None:
    """The example's files on the daemon's shelf, with our own paths, address and curator in them."""
    shelf = {installed: str(folder.parent if installed.endswith("archive") else daemon.workflows)}
    places = {'"python3"': json.dumps(sys.executable), ADDRESS: target.address, **shelf}
    for file in folder.iterdir():
        if not file.is_file():
            continue
        text = file.read_text()
        for place, ours in places.items():
            text = text.replace(place, ours)
        text = text.replace(f"by({CURATORS},", f"by({json.dumps(ME)}, not_requester=False,")
        text = text.replace(f"approve = {{ by = {CURATORS}", f"approve = {{ {RULE}")
        text = text.replace(CURATORS, json.dumps(ME))
        (daemon.workflows / file.name).write_text(text)
        (daemon.workflows / file.name).chmod(0o644)


def asked(daemon: Daemon, job: str, *, other_than: str = "", kind: str = "approve") -> dict[str, Any]:
    """The row of the inbox about a job, once it is about something else than a certain fingerprint."""

    def look() -> dict[str, Any] | None:
        rows = json.loads(daemon.resumectl("inbox", "--json").stdout)["asks"]
        found = [row for row in rows if row["job"] == job and row["kind"] == kind]
        return next((row for row in found if row["fingerprint"] != other_than), None)

    try:
        return until(look, f"{job} asks", every=0.05)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{daemon.resumectl('why', job).stdout.decode()}") from None


def decide(daemon: Daemon, verb: str, row: dict[str, Any], *words: str) -> None:
    """One decision, which must be taken."""
    told = daemon.resumectl(verb, row["id"], f"--fingerprint={row['fingerprint']}", *words)
    assert 0 == told.returncode, told.stderr.decode()


@pytest.mark.parametrize("face", ["label", "label-py"])
def test_label_is_published_as_it_was_approved(
    daemon: Daemon, target: Target, face: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In both faces: an approval of revision 1 publishes nothing once the record has changed; a note of the
    curator's makes revision 3; what is published, once, is what was approved last."""
    (tmp_path / "cms-token").write_text("sesame")
    (tmp_path / "cms-token").chmod(0o600)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    put_up(daemon, EXAMPLES / "museum" / "workflows.d", target, "/etc/resumed/workflows.d")
    record = json.loads((EXAMPLES / "museum" / "objects" / "harbour.json").read_text())
    source = tmp_path / "harbour.json"
    source.write_text(json.dumps(record))
    daemon.start()
    job = {"workflow": face, "id": "label-7", "items": [{"id": "harbour", "source": str(source)}]}
    daemon.ask("Submit", file=json.dumps(job))

    first = asked(daemon, "label-7")
    source.write_text(json.dumps(record | {"made": "1912"}))
    decide(daemon, "approve", first)
    second = asked(daemon, "label-7", other_than=first["fingerprint"])
    assert {} == target.pages()
    decide(daemon, "send-back", second, "--note=See also room 4.")
    third = asked(daemon, "label-7", other_than=second["fingerprint"])
    assert {} == target.pages()
    target.switch("lose_request")
    decide(daemon, "approve", third)

    assert "completed" == daemon.wait_status("label-7", "completed", "failed", "held")["status"]
    assert {"harbour": 1} == target.pages()
    text = target.read("harbour")
    assert "Anna Brandt, 1912" in text
    assert text.endswith("See also room 4.\n")
    assert ["lose_request"] == target.faults()


def test_captions_are_reviewed_and_published_together(daemon: Daemon, target: Target, tmp_path: Path) -> None:
    """Each caption waits for a person: one is accepted, one edited, one sent back; one page has all of them,
    written once though its first reply was lost."""
    put_up(daemon, EXAMPLES / "archive" / "workflows.d", target, "/usr/share/resumed/archive")
    cards, accepted = tmp_path / "cards", tmp_path / "accepted"
    shutil.copytree(EXAMPLES / "archive" / "photos", cards)
    accepted.mkdir()
    daemon.start()
    inputs = {"cards": str(cards), "accepted": str(accepted)}
    daemon.ask("Submit", file=json.dumps({"workflow": "captions", "id": "spring", "inputs": inputs}))
    rows = until(lambda: reviews(daemon, 3), "three drafts wait", every=0.05)

    decide(daemon, "approve", rows["photo-17.card"])
    edited = tmp_path / "edited.txt"
    edited.write_text("Fishwives, the old quay, 1911.\n")
    decide(daemon, "approve", rows["photo-18.card"], f"--edit={edited}")
    sent = rows["photo-19.card"]
    decide(daemon, "send-back", sent, "--note=his name was Piet")
    decide(daemon, "approve", asked(daemon, "spring", other_than=sent["fingerprint"], kind="review"))
    target.switch("lose_reply")
    decide(daemon, "approve", asked(daemon, "spring"))

    assert "completed" == daemon.wait_status("spring", "completed", "failed", "held")["status"]
    assert {"harbour-photos": 1} == target.pages()
    assert [
        "photo-17: The pilots' boat Seagull under tow, the outer roads, 1908.",
        "photo-18: Fishwives, the old quay, 1911.",
        "photo-19: A crane driver with his dog, place unknown, 1926 (his name was Piet).",
    ] == target.read("harbour-photos").splitlines()
    assert ["lose_reply"] == target.faults()


def reviews(daemon: Daemon, wanted: int) -> dict[str, dict[str, Any]]:
    """The drafts that wait, by item, once there are so many."""
    rows = json.loads(daemon.resumectl("inbox", "--json").stdout)["asks"]
    found = {row["item"]: row for row in rows if row["kind"] == "review"}
    return found if len(found) == wanted else {}
