"""Placing: whose attempt a process is part of, by its parents alone (I5)."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from resumed.actors import containment, placing
from resumed.actors.controlgroups import Groups
from resumed.actors.placing import OUTSIDE, Placement
from resumed.actors.supervisor import Supervisor

pytestmark = pytest.mark.anyio
WAITING = "import sys; print(flush=True); sys.stdin.read()"


class InPlace:
    """A disk that answers at once."""

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)


def house(keepers: dict[int, list[str]] | None = None, unproven: tuple[str, ...] = ()) -> Supervisor:
    """A supervisor whose workers are these children of ours, each with tries of these jobs."""
    hands = {
        f"w-{pid}": SimpleNamespace(worker=SimpleNamespace(pid=pid), held={(job, "a", 1) for job in jobs})
        for pid, jobs in (keepers or {}).items()
    }
    made = SimpleNamespace(
        reads=InPlace(),
        entries={},
        unproven=dict.fromkeys(unproven, ""),
        workshop=SimpleNamespace(slots=SimpleNamespace(hands=hands)),
    )
    return cast(Supervisor, made)


@contextmanager
def child(code: str = WAITING, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A child of ours that waits for its end."""
    command = [sys.executable, "-I", "-S", "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how) as made:
        assert made.stdout is not None
        made.stdout.readline()
        yield made
        made.kill()


async def place(
    supervisor: Supervisor,
    pid: int,
    *,
    start: int | None = -1,
    uid: int = -1,
    groups: Groups | None = None,
) -> Placement:
    start = containment.start_time(pid) if start == -1 else start
    return await placing.placed(supervisor, groups, pid, start, os.geteuid() if uid == -1 else uid)


async def test_process_in_a_workers_group_is_inside(tmp_path: Path) -> None:
    """Where groups are delegated, who is in a worker's is within it, whoever its parents are; who is in
    another group, the service manager's own below ours among those, is not."""
    groups = Groups(
        place=tmp_path, path="/system.slice/resumed.service", space="", store="store-1", limits=frozenset()
    )
    paths = {
        "/system.slice/resumed.service/store-1-w-7": "w-7",
        "/system.slice/resumed.service/store-1-w-7/deeper": "w-7",
        "/system.slice/resumed.service/store-2-w-7": "",
        "/system.slice/resumed.service/.control": "",
        "/system.slice/resumed.service/daemon": "",
        "/system.slice/resumed.service": "",
        "/user.slice": "",
        "/": "",
    }
    found = {}
    for number, path in enumerate(paths):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "cgroup").write_text(f"4:memory:/other\n0::{path}\n")
        found[path] = groups.worker_of(number, tmp_path)
    inside = SimpleNamespace(worker_of=lambda pid: "w-7")
    outside = SimpleNamespace(worker_of=lambda pid: "")

    assert paths == found
    assert "" == groups.worker_of(99, tmp_path)
    assert not (await place(house(), os.getppid(), groups=cast(Groups, inside))).outside
    assert (await place(house(), os.getppid(), groups=cast(Groups, outside))).outside


async def test_who_was_found_outside_stays_there_while_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parents are walked up to once; that it lives is looked at each time, and where control groups are
    delegated, or a worker of before may still live, everything is."""
    supervisor, outsiders, own = house(), placing.Outsiders(), os.geteuid()
    walked: list[int] = []
    lineage = placing.lineage

    def counted(pid: int, start: int | None) -> tuple[int, ...] | None:
        walked.append(pid)
        return lineage(pid, start)

    monkeypatch.setattr(placing, "lineage", counted)
    start = containment.start_time(os.getppid())
    asked = {
        "plain": (supervisor, None),
        "again": (supervisor, None),
        "unproven": (house(unproven=("w",)), None),
    }
    asked["groups"] = (supervisor, SimpleNamespace(worker_of=lambda pid: ""))
    steps = {}
    for name, (one, groups) in asked.items():
        found = await placing.placed(one, groups, os.getppid(), start, own, outsiders)
        steps[name] = (found.outside, len(walked))

    assert {"plain": (True, 1), "again": (True, 1), "unproven": (True, 2), "groups": (True, 3)} == steps
    with child() as ours:
        outsiders.note(ours.pid, containment.start_time(ours.pid))
        gone, born = ours.pid, containment.start_time(ours.pid)
        assert outsiders.hold(gone, born)
        assert not outsiders.hold(gone, None)
    ended = await placing.placed(supervisor, None, gone, born, own, outsiders)

    assert (False, frozenset()) == (ended.outside, ended.jobs)


async def test_child_of_ours_is_inside() -> None:
    """Whatever is below us is an attempt's, of the jobs whose tries its keeper's worker holds."""
    with child() as one, child() as other:
        supervisor = house({one.pid: ["attic", "cellar"]})
        known, nobodys = await place(supervisor, one.pid), await place(supervisor, other.pid)

    assert (False, {"attic", "cellar"}) == (known.outside, known.jobs)
    assert "it comes from within an attempt of attic, cellar" == known.why
    assert (False, frozenset()) == (nobodys.outside, nobodys.jobs)
    assert [False, True, False] == [
        known.may_decide("attic"), known.may_decide("other"), nobodys.may_decide("other"),
    ]  # fmt: skip


async def test_grandchild_of_ours_is_inside() -> None:
    """Deeper down counts as well, in a session of its own and with an empty environment too."""
    code = (
        "import subprocess, sys; made = subprocess.Popen([sys.executable, '-I', '-S', '-c', "
        f"{WAITING!r}], env={{}}, start_new_session=True, stdin=subprocess.PIPE, "
        "stdout=subprocess.DEVNULL); "
        "print('', made.pid, sep='\\n', flush=True); sys.stdin.read(); made.kill()"
    )
    with child(code) as made:
        assert made.stdout is not None
        found = await place(house({made.pid: ["attic"]}), int(made.stdout.readline()))

    assert (False, {"attic"}) == (found.outside, found.jobs)


async def test_process_beside_us_is_outside() -> None:
    """Our own parents are no part of what we start; nor are we."""
    assert OUTSIDE == await place(house(), os.getppid())
    assert OUTSIDE == await place(house(), os.getpid())


async def test_process_that_cannot_be_looked_at_decides_nothing() -> None:
    """One that has ended, or whose number is another's by now, cannot be placed outside."""
    with child() as made:
        pid, start = made.pid, containment.start_time(made.pid)
        another = await place(house(), os.getppid(), start=start)
        unknown = await place(house(), os.getppid(), start=None)
    ended = await place(house(), pid, start=start)

    assert [(False, frozenset())] * 3 == [(each.outside, each.jobs) for each in (another, unknown, ended)]
    assert not ended.may_decide("any")


async def test_process_outside_our_namespace_is_outside() -> None:
    """What has no number here cannot be below us."""
    assert OUTSIDE == await place(house(), 0, start=None)


async def test_mark_of_a_worker_nobody_knows_the_end_of_is_inside() -> None:
    """A process that an earlier daemon's worker left decides nothing, while that worker is not known gone."""
    marked = {containment.MARK: "w-old-1"}
    with child(env=marked) as made:
        marks = placing._marks((made.pid, os.getpid()))
        below = await place(house(unproven=("w-old-1",)), made.pid)

    assert ({"w-old-1"}, False) == (marks, below.outside)


async def test_another_user_cannot_be_part_of_our_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an ordinary daemon starts keeps its user, so that a process of another is outside unseen."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    assert OUTSIDE == await place(house(), 1, start=None, uid=0)
