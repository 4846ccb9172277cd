"""`quarantine` and `prune` as people use them: what is wrong is shown, and nothing goes without a word."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually
from test_cli_past import stands, utc

from resumed.daemon import letters, render_retire

_ = utc  # a fixture of that module
NOW = 1_796_040_000.0  # 2026-11-30, a Monday, noon UTC

ASIDE: dict[str, Any] = {
    "job": {
        "id": "harbour-7", "reason": "damaged", "detail": "cannot load harbour-7: 1.1.log: its first line",
        "since": 1_796_008_449_000_000, "moved": True,
    },
    "folder": "/s/quarantine/harbour-7", "requester": "ada", "file": "attic.json",
    "admitted": "2026-11-30T03:12:07.000000Z", "loads": False,
    "findings": [
        {"path": "/s/quarantine/harbour-7", "code": "damaged", "detail": "cannot be read", "fatal": True},
        {"path": "/s/quarantine/harbour-7/x", "code": "stray", "detail": "no file of ours", "fatal": False},
    ],
    "more": 3,
    "commands": [{"command": "resumectl quarantine restore harbour-7", "means": "back, once it holds"}],
}  # fmt: skip
GOLDEN_ASIDE = [
    "harbour-7 is set aside since 03:14: cannot load harbour-7: 1.1.log: its first line",
    "reason     damaged",
    "folder     /s/quarantine/harbour-7",
    "came as    attic.json, from ada",
    "admitted   03:12:07",
    "loads      no",
    "",
    "  FILE  WHAT     DETAIL",
    "! .     damaged  cannot be read",
    ". x     stray    no file of ours",
    "  and 3 more",
    "",
    "you may",
    "  resumectl quarantine restore harbour-7    back, once it holds",
]


@pytest.mark.usefixtures("utc")
def test_aside_screen() -> None:
    """What is wrong, where it lies, whose it was, each file that is odd, and what may be typed."""
    assert GOLDEN_ASIDE == render_retire.aside_view(ASIDE, NOW, 100, False)


@pytest.mark.usefixtures("utc")
def test_prune_screen() -> None:
    """Which jobs would go and how much they keep; that nothing was removed; the command that would."""
    rows = [{"id": "attic", "ended": "2026-11-30T03:12:07.000000Z", "size": 123_456}]

    assert [
        "  JOB    ENDED                    SIZE",
        "  attic  2026-11-30 03:12:07  123.5 kB",
        "  and 1 more",
        "2 ended, 123.5 kB and more; nothing was removed",
        "you may",
        "  resumectl prune attic --yes    remove them for good; their ids stay known",
    ] == render_retire.prunable(rows, 2, "resumectl prune attic --yes", NOW, 100, False)
    assert ["no ended job is meant"] == render_retire.prunable([], 0, "x", NOW, 100, False)


@pytest.mark.parametrize("evil", ["\x1b[2J", "a\nb", "\u202egpj", "x" * 9000])
@pytest.mark.usefixtures("utc")
def test_hostile_text_reaches_no_terminal(evil: str) -> None:
    """Whatever a damaged job holds, nothing of it is obeyed."""
    finding = {"path": f"/s/{evil}", "code": evil, "detail": evil, "fatal": True}
    aside = {"id": evil, "reason": evil, "detail": evil, "since": 1, "moved": False}
    view = ASIDE | {"job": aside, "folder": evil, "requester": evil, "file": evil, "findings": [finding]}
    ended = {"id": evil, "ended": "2026-11-30T03:12:07.000000Z", "size": 1}
    lines = [
        *render_retire.aside_view(view, NOW, 10_000, False),
        *render_retire.prunable([ended], 1, evil, NOW, 10_000, False),
    ]

    assert [] == [line for line in lines if not line.isprintable()]
    assert all(letters.columns(line) < 2000 for line in lines)


# ---- behind a real daemon ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    made = Daemon(tmp_path_factory.mktemp("daemon"), request.param)
    made.start()
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end()
    assert "Traceback" not in made.said()


def damage(daemon: Daemon, *jobs: str) -> dict[str, tuple[str, bytes]]:
    """These jobs are set aside; for each, the file that was damaged and its good bytes."""
    for job in jobs:
        daemon.ask("submit", str(daemon.file(job, "slow", {"a": ""})))
        stands(daemon, job, "running")
    daemon.end(signal.SIGKILL)
    good = {}
    for job in jobs:
        (folder,) = (daemon.state / "jobs").glob(f"*/{job}")
        log = max(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
        raw = log.read_bytes()
        log.write_bytes(raw[:80] + b"XX" + raw[82:])
        good[job] = (log.name, raw)
    daemon.start()
    eventually(lambda: [aside(daemon, job) for job in jobs])
    return good


def aside(daemon: Daemon, job: str) -> Path:
    """Where the job lies in the quarantine."""
    folder = daemon.state / "quarantine" / job
    assert folder.is_dir()
    return folder


def archived(daemon: Daemon, *jobs: str) -> None:
    """All of these are in the archive."""
    assert set(jobs) <= {path.name for path in (daemon.state / "archive").glob("*/*")}


def test_quarantine_is_shown_restored_and_discarded(daemon: Daemon) -> None:
    """Shown with the file that is wrong; restored once mended; discarded only with --yes; its id is spent."""
    good = damage(daemon, "mends", "goes")
    listed = daemon.ask("quarantine", "list").stdout
    shown = daemon.ask("quarantine", "show", "men")
    refused = daemon.ask("quarantine", "restore", "mends")
    name, raw = good["mends"]
    (aside(daemon, "mends") / name).write_bytes(raw)
    back = daemon.ask("quarantine", "restore", "mends")
    status = daemon.row("mends")["status"]
    unsure = daemon.ask("quarantine", "discard", "goes")
    still = aside(daemon, "goes")
    gone = daemon.ask("quarantine", "discard", "goes", "--yes", "--reason", "not needed")
    again = daemon.ask("submit", str(daemon.root / "goes.json"))
    named = daemon.ask("why", "goes")
    fsck = daemon.ask("quarantine", "show", "goes")
    daemon.ask("cancel", "mends")

    assert "mends" in listed
    assert "goes" in listed
    assert (0, True) == (shown.returncode, "! " in shown.stdout)
    assert "its first line does not verify" in shown.stdout
    assert "resumectl quarantine discard mends --yes" in shown.stdout
    assert (1, 0) == (refused.returncode, back.returncode)
    assert "cannot restore mends" in refused.stderr
    assert "resumectl quarantine show mends" in refused.stderr
    assert status in ("ready", "running", "resuming")
    assert (2, 0, False) == (unsure.returncode, gone.returncode, still.exists())
    assert "resumectl quarantine discard goes --yes" in unsure.stderr
    assert (1, 4, 4) == (again.returncode, named.returncode, fsck.returncode)
    assert "which is gone for good" in again.stderr
    assert "(not needed)" in named.stderr


def test_prune_says_what_it_would_do_and_does_it_when_told(daemon: Daemon) -> None:
    """Without --yes nothing goes; with it ended jobs are gone and their ids are spent; open jobs stay."""
    for job in ("old-1", "old-2"):
        daemon.ask("submit", str(daemon.file(job, "say", {"a": "x"})), "--wait")
    daemon.ask("submit", str(daemon.file("open-1", "slow", {"a": ""})))
    eventually(lambda: archived(daemon, "old-1", "old-2"))
    dry = json.loads(daemon.ask("prune", "--dry-run", "--json").stdout)
    shown = daemon.ask("prune", "old-1", "--dry-run")
    young = daemon.ask("prune", "--older-than", "90d", "--yes")
    everything = daemon.ask("prune", "--yes")
    kept = daemon.ask("prune", "open-1", "--yes")
    wrong = daemon.ask("prune", "--older-than", "soon", "--dry-run")
    gone = daemon.ask("prune", "old-1", "--yes", "--reason", "old")
    again = daemon.ask("submit", str(daemon.root / "old-1.json"))
    rest = daemon.ask("prune", "--older-than", "1ms", "--yes", "--json")
    left = list((daemon.state / "archive").glob("*/*"))
    daemon.ask("cancel", "open-1")

    assert {"old-1", "old-2"} <= {row["id"] for row in dry["jobs"]}
    assert "resumectl prune old-1 --yes" in shown.stdout
    assert "nothing was removed" in shown.stdout
    assert (0, "0 jobs removed; ids stay known\n") == (young.returncode, young.stdout)
    assert (2, 1, 1, 0, 1, 0) == tuple(ran.returncode for ran in (everything, kept, wrong, gone, again, rest))
    assert "it has not ended" in kept.stderr
    assert "expected a duration" in wrong.stderr
    assert "which is gone for good" in again.stderr
    assert "old-2" in json.loads(rest.stdout)["removed"]
    assert [] == left
