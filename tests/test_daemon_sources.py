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


@pytest.mark.parametrize("on_change", ["hold", "reopen"])
def test_source_that_changed_during_a_kill_is_found_at_the_wake(on_change: str, daemon: Daemon) -> None:
    """Killed with one item done and one at work, both sources changed, a third gone: the law is kept."""
    folder = daemon.root / "data"
    folder.mkdir()
    for name in ("a", "b", "c", "d"):
        (folder / f"{name}.txt").write_text(f"old {name}")
    (folder / "slow.b.txt.mark").touch()
    job = {"workflow": on_change, "id": "rely", "inputs": {"folder": str(folder)}}
    (daemon.root / "rely.json").write_text(json.dumps(job))
    daemon.ask("submit", str(daemon.root / "rely.json"))

    def is_at_b() -> None:
        assert ["a.txt", "b.txt"] == (folder / "witness").read_text().split()
        assert "done" == states(daemon, "rely")["a.txt"][0]

    eventually(is_at_b)
    daemon.end(signal.SIGKILL)
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(f"new {name}")
    os.unlink(folder / "c.txt")
    (folder / "slow.b.txt.mark").unlink()
    daemon.start()

    def has_ended() -> None:
        assert "held" == daemon.row("rely")["status"]
        assert "done" == states(daemon, "rely")["d.txt"][0]

    eventually(has_ended)
    found = states(daemon, "rely")
    held = ("held", "source_changed")
    runs = Counter((folder / "witness").read_text().split())

    assert held == found["c.txt"]
    if on_change == "hold":
        assert [("done", ""), held] == [found["a.txt"], found["b.txt"]]
        assert {"a.txt": 1, "b.txt": 1, "d.txt": 1} == runs
        assert 0 == daemon.ask("retry", "rely", "b.txt").returncode
        eventually(lambda: states(daemon, "rely")["b.txt"][0] == "done" or 1 / 0)
    else:
        assert [("done", ""), ("done", "")] == [found["a.txt"], found["b.txt"]]
        assert {"a.txt": 2, "b.txt": 2, "d.txt": 1} == runs
    assert {
        "a.txt": "new a" if on_change == "reopen" else "old a",
        "b.txt": "new b",
        "d.txt": "old d",
    } == {item: daemon.ask("output", "rely", item).stdout for item in ("a.txt", "b.txt", "d.txt")}
    log = b"".join(path.read_bytes() for path in sorted(daemon.state.glob("jobs/*/rely/*.log")))
    assert (b'"text":"old a"' in log, b"compared 4 sources" in log) == (True, True)
