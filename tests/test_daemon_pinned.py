"""What a job was admitted with against what is in force: said of what was compared, and of nothing else."""

import os
from pathlib import Path

import pytest
from socket_kit import FakeJobs, FakeShelf
from test_daemon_shelf import Files

from resumed.actors.worker import programs as worker_programs
from resumed.daemon import api_past, pinned
from resumed.daemon.desk import Desk
from resumed.daemon.grants import Grant, Grants, Permit, Role, Scope
from resumed.daemon.peers import Peer
from resumed.schemas.job import Status
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import WhyCheck
from resumed.schemas.workflow import Contract, Programs

FILE = """
version = 3
description = "Scans."
[[step]]
name = "read"
run = ["cat", "{source}"]
repeatable = true
"""
PYTHON = """
version = 3
python = { entry = "demo:Scan" }
"""

CHANGED: dict[str, tuple[str, str, bool | None, list[tuple[str, str, bool]]]] = {
    # the file then, the file now ("": taken away), whether the requester may hand in its like -> what is said
    "nothing": (FILE, FILE, True, [("code", "v3 ok", True), ("policy", "ok", True)]),
    "nobody knows the requester": (FILE, FILE, None, [("code", "v3 ok", True)]),
    "the requester": (
        FILE,
        FILE,
        False,
        [("code", "v3 ok", True), ("policy", "its requester may not hand in its like today", False)],
    ),
    "another command, the same version": (
        FILE,
        FILE.replace("cat", "tac"),
        True,
        [("code", "v3, as pinned: its file has changed since", False), ("policy", "ok", True)],
    ),
    "a new version": (
        FILE,
        FILE.replace("3", "4").replace("cat", "tac"),
        True,
        [("code", "v3, as pinned: v4 is in force", True), ("policy", "ok", True)],
    ),
    "only its description and owner": (
        FILE,
        FILE.replace("Scans.", "Scans all.").replace("version = 3", 'version = 3\nowner = "group:ops"'),
        True,
        [("code", "v3 ok", True), ("policy", "ok", True)],
    ),
    "its limits": (
        FILE,
        FILE.replace("version = 3", "version = 3\nlimits.tokens = 9"),
        True,
        [("code", "v3 ok", True), ("policy", "the workflow's limits have changed since", False)],
    ),
    "not enabled any more": (
        FILE,
        FILE.replace("version = 3", "version = 3\nenabled = false"),
        True,
        [("code", "v3 ok", True), ("policy", "no job of its workflow is admitted today", False)],
    ),
    "taken away": (
        FILE,
        "",
        True,
        [
            ("code", "v3, as pinned: no file of it is in force", True),
            ("policy", "no job of its workflow is admitted today", False),
        ],
    ),
    "nothing of a Python workflow": (
        PYTHON,
        PYTHON,
        True,
        [("code", "v3 ok (its file)", True), ("policy", "ok", True)],
    ),
    "another class": (
        PYTHON,
        PYTHON.replace("Scan", "Look"),
        True,
        [("code", "v3, as pinned: its file has changed since", False), ("policy", "ok", True)],
    ),
}


def installed(files: Files, text: str) -> Programs | None:
    """What the shelf says of `scan` once its file holds this text."""
    path = files.folder / "scan.toml"
    path.unlink(missing_ok=True)
    if text:
        files.put("scan", text)
    files.shelf.reload()
    assert () == files.shelf.problems
    return files.shelf.declared("scan")


@pytest.mark.parametrize("case", CHANGED)
def test_what_changed_since_is_said(case: str, tmp_path: Path) -> None:
    """Each way in which a file may differ from the pinned one has its words; what nobody looked at, none."""
    then, now, may, said = CHANGED[case]
    files = Files(tmp_path)
    first = installed(files, then)
    assert first is not None
    contract = worker_programs.contract_of(first, str(files.folder))
    found = pinned.checks(contract, installed(files, now), may)

    assert said == [(check.name, check.said, check.good) for check in found]


def test_a_text_of_another_release_is_not_compared(tmp_path: Path) -> None:
    """Where the pinned text cannot be read, nothing is said to be well or changed."""
    now = installed(Files(tmp_path), FILE)
    found = pinned.checks(
        Contract(workflow="scan", version=3, start="", steps=(), definition="{}"), now, True
    )

    assert [("code", "v3, as pinned: its text cannot be compared")] == [(c.name, c.said) for c in found]


def test_checks_stand_in_one_order() -> None:
    """Whoever made them, checks are shown in one order, and none is lost."""
    names = ["deadline", "of another release", "policy", "code", "integrity", "sources", "processes"]
    found = pinned.in_order(tuple(WhyCheck(name=name, said="") for name in names))

    assert [*pinned.ORDER, "of another release"] == [check.name for check in found]


class Jobs(FakeJobs):
    """One job, of a workflow that is pinned in it."""

    async def contract(self, job: str) -> tuple[Contract, str] | Refusal:
        return Contract(workflow="x", version=1, start="", steps=()), "0" * 64


class Shelf(FakeShelf):
    def declared(self, name: str) -> Programs | None:
        assert "x" == name
        return Programs(name="x", version=2, steps=(), enabled=False)


@pytest.mark.anyio
@pytest.mark.parametrize("role", [Role.SUBMITTER, Role.VIEWER])
async def test_why_asks_the_grants_of_now(role: Role) -> None:
    """The requester's permit is looked at, not that of whoever asks; of an ended job nothing is compared."""
    grants = Grants(os.geteuid(), (Grant(role=role, users=("4711",)),))
    jobs = Jobs()
    jobs.uid = 4711
    desk = Desk(jobs=jobs, shelf=Shelf(), permit_of=grants.permit_of)
    peer = Peer(pid=1, uid=0, gid=0, groups=(), name="root", permit=Permit(0, (Scope(Role.VIEWER),)))
    told = await api_past.why(desk, peer, api_past.JobAsked(job="attic"))
    jobs.move(Status.COMPLETED)
    ended = await api_past.why(desk, peer, api_past.JobAsked(job="attic"))
    words = {
        Role.SUBMITTER: "no job of its workflow is admitted today",
        Role.VIEWER: "its requester may not hand in its like today",
    }

    assert isinstance(told, api_past.WhyAnswer)
    assert isinstance(ended, api_past.WhyAnswer)
    assert [("code", "v1, as pinned: v2 is in force"), ("policy", words[role])] == [
        (check.name, check.said) for check in told.why.checks
    ]
    assert () == ended.why.checks
