"""Effects of a workflow file through the whole daemon, against a content system that keeps count."""

import json
import os
import pwd
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from calls_kit import argv, secret_folder
from daemon_kit import LOOPS, Daemon, eventually
from target import Target

TOKEN = f"canary-token-{os.getpid()}-4b1f9e"
LABEL = """
version = 1
inputs.list = {{ type = "string" }}
[[step]]
name = "draft"
run = ["sed", "s/^/Label: /", "{{source}}"]
repeatable = true
timeout = "20s"
[[effect]]
name = "publish"
target = {{ name = "cms", account = "museum" }}
approve = false
undo = "publish an empty page"
secrets = ["cms"]
absent_is_final = true
in_flight = "100ms"
timeout = "15s"
[effect.send]
method = "PUT"
url = "{address}/pages/{{source.stem}}"
headers = {{ Authorization = "Bearer {{secrets.cms}}", X-Seen = "{{observed}}" }}
body = "{{outputs.draft}}"
key_header = "Idempotency-Key"
statuses = {{ landed = [201], refused = [401, 409, 412], not_sent = [503] }}
reference = {{ json = "reference" }}
[effect.look_up]
url = "{address}/keys/{{key}}"
headers = {{ Authorization = "Bearer {{secrets.cms}}" }}
statuses = {{ landed = [200], absent = [404] }}
reference = {{ json = "reference" }}
[effect.observe]
url = "{address}/pages/{{source.stem}}"
headers = {{ Authorization = "Bearer {{secrets.cms}}" }}
statuses = {{ absent = [404] }}
version = {{ header = "ETag" }}
[[effect]]
name = "announce"
each = false
target = "list"
approve = false
dedup = "1d"
irreversible = true
send = {announce}
"""


def watched(label: str) -> str:
    """The same, with a person who looks at the draft, and allows the call for the page as it is."""
    me = f"user:{pwd.getpwuid(os.geteuid()).pw_name}"
    rule = f'approve = {{ by = "{me}", not_requester = false }}'
    text = label.replace("repeatable = true", f'repeatable = true\nreview.by = "{me}"', 1)
    return text.replace("approve = false", rule, 1).replace("X-Seen", "If-Match")


@pytest.fixture(scope="module")
def cms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("cms")
    vault = secret_folder(folder / "vault", cms=TOKEN)
    made = Target(folder, f"--token-file={vault}/cms")
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module", params=LOOPS)
def daemon(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, cms: Target
) -> Iterator[Daemon]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CREDENTIALS_DIRECTORY", str(cms.data / "vault"))
        yield from _daemon(tmp_path_factory.mktemp("house"), request.param, cms)


def _daemon(root: Path, loop: str, cms: Target) -> Iterator[Daemon]:
    made = Daemon(root, loop)
    announce = argv("sh", "-c", 'echo "$1 $RESUMED_KEY" >> "$2"; echo told', "sh", "{job}", "{inputs.list}")
    label = LABEL.format(address=cms.address, announce=announce)
    for name, text in (("label", label), ("seen", watched(label))):
        (made.workflows / f"{name}.toml").write_text(text)
        (made.workflows / f"{name}.toml").chmod(0o644)
    made.start()
    yield made
    made.end()
    assert "Traceback" not in made.said()


def submit(daemon: Daemon, job: str, flow: str = "label", **texts: str) -> None:
    path = daemon.file(job, flow, texts)
    given = json.loads(path.read_text()) | {"inputs": {"list": str(daemon.root / "list")}}
    path.write_text(json.dumps(given))
    said = daemon.ask("submit", str(path))
    assert 0 == said.returncode, said.stderr


def completed(daemon: Daemon, job: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        row = daemon.row(job)
        assert "completed" == row["status"], row
        return row

    found: dict[str, Any] = eventually(look, within=40)
    return found


def read(cms: Target, page: str) -> str:
    """The text of a page, as the museum may read it."""
    asked = urllib.request.Request(
        f"{cms.address}/pages/{page}", headers={"Authorization": f"Bearer {TOKEN}"}
    )
    with urllib.request.urlopen(asked, timeout=20) as answer:
        text: str = json.load(answer)["body"]
        return text


def canaries(*folders: Path) -> str:
    return subprocess.run(["grep", "-rlaF", TOKEN, *map(str, folders)], capture_output=True, text=True).stdout


def test_each_page_is_written_once_whatever_is_lost(daemon: Daemon, cms: Target) -> None:
    """One reply is lost, and the daemon is killed while it waits for another: each page was written once.

    What was announced came after all of them, once; and the token is in no file of the house.
    """
    before = cms.counts()
    cms.switch("lose_reply", page="pier")
    cms.switch("answer_late", page="harbour")
    submit(daemon, "label-7", pier="the pier", harbour="the harbour")
    cms.heard(write=before["writes_received"] + 2)
    assert "" == canaries(daemon.root)
    daemon.end(signal.SIGKILL)
    assert "" == canaries(daemon.root)
    cms.release()
    daemon.start()
    completed(daemon, "label-7")

    assert ("Label: the pier", "Label: the harbour") == (read(cms, "pier"), read(cms, "harbour"))
    assert [2, 2, 2] == [
        cms.counts()[name] - before[name] for name in ("pages", "revisions", "writes_received")
    ]
    assert ["lose_reply", "answer_late"] == sorted(cms.faults()[-2:], reverse=True)
    assert 1 == (daemon.root / "list").read_text().count("label-7 ")
    assert "" == canaries(daemon.root)
    assert "" == subprocess.run(["grep", "-rlaF", TOKEN, "/dev/shm"], capture_output=True, text=True).stdout


def test_a_call_that_never_arrived_goes_again_under_its_key(daemon: Daemon, cms: Target) -> None:
    """Cut off before it was read, and then found absent for good: the same call goes again, once."""
    before = len(cms.requests()), cms.counts()["revisions"]
    cms.switch("reset_request", bytes=9)
    submit(daemon, "label-8", quay="the quay")
    completed(daemon, "label-8")
    since = cms.requests()[before[0] :]
    written = [each["key"] for each in since if each["kind"] == "write" and each["key"]]
    asked = {each["path"].rpartition("/")[2] for each in since if each["kind"] == "look_up"}

    assert ("Label: the quay", 1, 1) == (
        read(cms, "quay"),
        cms.counts()["revisions"] - before[1],
        len(written),
    )
    assert set(written) == asked
    assert "reset_request" in cms.faults()


def asked(daemon: Daemon, kind: str) -> dict[str, Any]:
    """The one thing that people are asked, once it is of that kind."""

    def look() -> dict[str, Any]:
        (row,) = json.loads(daemon.ask("inbox", "--json").stdout)["asks"]
        assert kind == row["kind"]
        return dict(row)

    found: dict[str, Any] = eventually(look)
    return found


def decide(daemon: Daemon, row: dict[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
    """A yes to what was asked, by its fingerprint."""
    return daemon.ask("approve", row["id"], "--fingerprint", row["fingerprint"], *more)


def write(cms: Target, page: str, text: str) -> None:
    """Somebody else writes the page."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    given = urllib.request.Request(f"{cms.address}/pages/{page}", text.encode(), headers, method="PUT")
    urllib.request.urlopen(given, timeout=20).close()


def test_what_was_looked_at_is_what_is_published(daemon: Daemon, cms: Target) -> None:
    """The edited draft is what a person then allows for the page as it is; when the page has changed, the yes
    is good for nothing, and somebody is asked anew."""
    before = cms.counts()["revisions"]
    write(cms, "lock", "as it was")
    submit(daemon, "label-9", "seen", lock="the lock")
    (daemon.root / "edited").write_text("Label: the old lock")
    assert 0 == decide(daemon, asked(daemon, "review"), "--edit", str(daemon.root / "edited")).returncode
    first = asked(daemon, "approve")
    write(cms, "lock", "as somebody else has it")
    assert 0 == decide(daemon, first).returncode

    def anew() -> dict[str, Any]:
        row = asked(daemon, "approve")
        assert row["fingerprint"] != first["fingerprint"]
        return row

    second = eventually(anew)
    assert 1 == decide(daemon, first | {"id": second["id"]}).returncode
    assert "as somebody else has it" == read(cms, "lock")
    assert 0 == decide(daemon, second).returncode
    completed(daemon, "label-9")

    assert ("Label: the old lock", 3) == (read(cms, "lock"), cms.counts()["revisions"] - before)
