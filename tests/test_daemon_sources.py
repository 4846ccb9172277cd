"""Sources that change while the daemon is dead, through the whole daemon: who is held, and who runs again."""

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_kit import LOOPS, Daemon, eventually

RELYING = '''
version = 1
inputs.folder = { type = "path", roots = ["/"] }
items = { from = "glob", glob = "{inputs.folder}/*.txt", on_change = "ON_CHANGE" }
[[step]]
name = "read"
run = ["sh", "-c", """
  echo $RESUMED_ITEM >> $RESUMED_INPUTS_FOLDER/witness
  test ! -e $RESUMED_INPUTS_FOLDER/slow.$RESUMED_ITEM.mark || sleep 600
  cat $RESUMED_SOURCE
"""]
repeatable = true
backoff = { first = "1ms", max = "1ms" }
'''


@pytest.fixture(params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path, request.param)
    for on_change in ("hold", "reopen"):
        path = made.workflows / f"{on_change}.toml"
        path.write_text(RELYING.replace("ON_CHANGE", on_change))
        path.chmod(0o644)
    made.start()
    yield made
    made.end()
    assert "Traceback" not in made.said()


def states(daemon: Daemon, job: str) -> dict[str, tuple[str, str]]:
    """The state and the code of each item."""
    items = json.loads(daemon.ask("show", job, "--json").stdout)["job"]["items"]
    return {item["id"]: (item["state"], item["code"]) for item in items}


def rely(daemon: Daemon, on_change: str) -> Path:
    """A job over four files, at work at its second one; returns their folder."""
    folder = daemon.root / on_change
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.txt").write_text(f"old {name}")
    (folder / "slow.b.txt.mark").touch()
    job = {"workflow": on_change, "id": on_change, "inputs": {"folder": str(folder)}}
    (daemon.root / f"{on_change}.json").write_text(json.dumps(job))
    daemon.ask("submit", str(daemon.root / f"{on_change}.json"))

    def is_at_b() -> None:
        assert ["a.txt", "b.txt"] == (folder / "witness").read_text().split()
        assert "done" == states(daemon, on_change)["a.txt"][0]

    eventually(is_at_b)
    return folder


def test_source_that_changed_during_a_kill_is_found_at_the_wake(daemon: Daemon) -> None:
    """Killed with one item done and one at work, both sources changed, a third gone: the law is kept."""
    folders = {on_change: rely(daemon, on_change) for on_change in ("hold", "reopen")}
    daemon.end(signal.SIGKILL)
    for folder in folders.values():
        for name in ("a", "b"):
            (folder / f"{name}.txt").write_text(f"new {name}")
        os.unlink(folder / "c.txt")
        (folder / "slow.b.txt.mark").unlink()
    daemon.start()

    def rests(job: str) -> None:
        assert "held" == daemon.row(job)["status"]
        assert "done" == states(daemon, job)["d.txt"][0]

    found, runs = {}, {}
    for job, folder in folders.items():
        eventually(lambda job=job: rests(job))  # type: ignore[misc]
        found[job] = states(daemon, job)
        runs[job] = Counter((folder / "witness").read_text().split())
    held, done = ("held", "source_changed"), ("done", "")

    assert {"a.txt": done, "b.txt": held, "c.txt": held, "d.txt": done} == found["hold"]
    assert {"a.txt": done, "b.txt": done, "c.txt": held, "d.txt": done} == found["reopen"]
    assert {"a.txt": 1, "b.txt": 1, "d.txt": 1} == runs["hold"]
    assert {"a.txt": 2, "b.txt": 2, "d.txt": 1} == runs["reopen"]
    assert 0 == daemon.ask("retry", "hold", "b.txt").returncode

    def is_taken_up() -> None:
        assert done == states(daemon, "hold")["b.txt"]

    eventually(is_taken_up)
    for job, first in (("hold", "old a"), ("reopen", "new a")):
        assert [first, "new b"] == [daemon.ask("output", job, f"{name}.txt").stdout for name in ("a", "b")]
        log = b"".join(path.read_bytes() for path in sorted(daemon.state.glob(f"jobs/*/{job}/*.log")))
        assert (True, True) == (b'"text":"old a"' in log, b"compared 4 sources" in log)
