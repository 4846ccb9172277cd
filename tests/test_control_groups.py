"""Control groups: each worker in its own, an empty one proves its end, limits stand before it starts.

With a tree of the kernel's where root may make one, and with a made-up tree for what this kernel does not
hand down.
"""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve
from daemon_kit import LOOPS, eventually
from service_kit import Service
from worker_kit import WAIT, Desk, alive, one_step

from resumed.actors import containment, controlgroups
from resumed.actors.containment import Containment, Identity
from resumed.actors.controlgroups import Groups
from resumed.schemas import frames

ESCAPING = 'setsid sh -c \'sleep 600 & echo $! > "$0"; wait\' "$1" >/dev/null 2>&1 & sleep 600'


@pytest.fixture
def delegated() -> Iterator[Path]:
    """A group of the kernel's, marked as systemd marks one that it delegates."""
    root = controlgroups._mount(Path("/proc/self"))
    if root is None or os.geteuid() != 0 or not os.access(root, os.W_OK):
        pytest.skip("needs root and a cgroup2 tree that may be written")
    place = root / f"resumed-test-{os.getpid()}"
    place.mkdir()
    if not (place / "cgroup.kill").exists():
        place.rmdir()
        pytest.skip("this kernel has no cgroup.kill (Linux 5.14)")
    os.setxattr(place, "user.delegate", b"1")
    yield place
    (place / "cgroup.kill").write_text("1")

    def remove() -> None:
        for folder, _, _ in os.walk(place, topdown=False):
            os.rmdir(folder)

    eventually(remove)


def groups_in(place: Path) -> Groups:
    """The group as a daemon has taken it that lives elsewhere."""
    space = os.readlink("/proc/self/ns/cgroup")
    return Groups(place=place, path=f"/{place.name}", space=space, store="store-1", limits=frozenset())


@pytest.mark.anyio
async def test_worker_lives_and_ends_in_its_group(delegated: Path, tmp_path: Path) -> None:
    """Keeper, worker and programs are in the worker's group; when it ends, nothing and no group is left."""
    made = Desk(tmp_path, Containment(groups_in(delegated)))
    async with anyio.create_task_group() as group:
        await made.start(group, one_step("sleep", "600"))
        place = delegated / "store-1-w1"
        made.worker.send(made.frame())
        await _until(lambda: len(_inside(place)) >= 3)
        inside = _inside(place)
        recorded = dict(containment._recorded(made.workers))["w1"]
        made.worker.kill()
        with anyio.fail_after(WAIT):
            await made.gone.wait()
    made.close()

    assert made.worker.pid in inside
    assert recorded is not None
    assert (f"/{delegated.name}/store-1-w1", groups_in(delegated).space) == (recorded.cgroup, recorded.space)
    assert [("it was killed by signal 9, on the daemon's order", True)] == made.ends
    assert not place.exists()
    assert not any(alive(pid) for pid in inside)


@pytest.mark.anyio
async def test_killed_keeper_proves_nothing_and_its_group_does(delegated: Path, tmp_path: Path) -> None:
    """Whatever a killed keeper left behind, sessions of its own included, ends with its group."""
    child = tmp_path / "child"
    made = Desk(tmp_path, Containment(groups_in(delegated)))  # no sub-reaper: orphans go to init
    async with anyio.create_task_group() as group:
        await made.start(group, one_step("sh", "-c", ESCAPING, "sh", str(child)))
        made.worker.send(made.frame())
        await _until(lambda: child.exists() and bool(child.read_text().strip()))
        orphan = int(child.read_text())
        os.kill(made.worker.pid, signal.SIGKILL)
        with anyio.fail_after(WAIT):
            await made.gone.wait()
    made.close()

    assert [("its keeper ended with status -9", True)] == made.ends
    assert not alive(orphan)
    assert [] == [each for each in delegated.iterdir() if each.is_dir()]


@pytest.mark.anyio
async def test_earlier_groups_are_ended_before_jobs_wake(delegated: Path, tmp_path: Path) -> None:
    """A recorded group is ended and known empty; a gone one was; one of another name space proves nothing."""
    workers = tmp_path / "workers"
    workers.mkdir()
    groups = groups_in(delegated)
    earlier = groups.make("w1", None, None)
    inner = earlier.place / "made-by-a-program"
    inner.mkdir()
    with sleeping() as left:
        (inner / "cgroup.procs").write_text(str(left.pid))
        identity = Identity(
            name="w1",
            boot=containment.boot_id(),
            pid=os.getpid(),
            start=1,
            group=1,
            workflow="flow",
            version=1,
            cgroup=earlier.path,
            space=earlier.space,
        )
        containment.record(workers, identity)
        containment.record(workers, evolve(identity, name="w2", cgroup=f"{groups.path}/store-1-w2"))
        containment.record(workers, evolve(identity, name="w3", space="cgroup:[1]"))
        found = await containment.settle(workers, WAIT)
        ended = left.wait(WAIT)

    assert -signal.SIGKILL == ended
    assert {"w1": True, "w2": True, "w3": False} == {name: each.proven for name, each in found.items()}
    assert "its control group is empty" == found["w1"].how
    assert [] == groups.strays()


def sleeping() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "600"])


async def _until(look: Callable[[], bool]) -> None:
    with anyio.fail_after(WAIT):
        while True:
            if look():
                return
            await anyio.sleep(0.01)


def _inside(place: Path) -> set[int]:
    try:
        return {int(line) for line in (place / "cgroup.procs").read_text().splitlines()}
    except OSError:
        return set()


JOINING = """
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Grouped(Service):
    """A daemon that starts in a delegated group."""

    place = Path()

    def command(self, *more: str) -> list[str]:
        joining = [sys.executable, "-c", JOINING, str(self.place / "cgroup.procs")]
        return [*joining, *super().command(f"--backend={self.backend}", *more)]


@pytest.mark.parametrize("backend", LOOPS)
def test_daemon_uses_what_was_delegated(backend: str, delegated: Path, tmp_path: Path) -> None:
    """A daemon killed with its keepers, as a service manager kills, holds nothing: its groups tell."""
    service = Grouped(tmp_path, backend)
    service.place = delegated

    def start() -> "subprocess.Popen[bytes]":
        with (tmp_path / "log").open("ab") as log:
            service.process = subprocess.Popen(
                service.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        service.ask("status", within=20)
        return service.process

    process = start()
    house = json.loads(service.ask("status", "--json").stdout)["house"]
    service.ask("submit", str(service.file("deaf", "deaf", {"a": ""})))
    mark = tmp_path / "deaf.files" / "a.up"
    eventually(lambda: os.stat(mark))
    (worker,) = (each for each in delegated.iterdir() if each.name.startswith("store-"))
    inside = _inside(worker)
    lives_in = _inside(delegated / "daemon")
    # Its keepers must not have the time to do their work.
    for pid in inside:
        os.kill(pid, signal.SIGSTOP)
    process.kill()
    process.wait(20)
    before = mark.stat().st_mtime_ns
    start()

    def again() -> None:
        assert before < mark.stat().st_mtime_ns

    eventually(again)
    row = service.row("deaf")
    assert service.process is not None
    service.process.kill()
    service.process.wait(20)
    service.manager.close()

    assert "control group" == house["containment"]
    assert {process.pid} == lives_in
    assert ("running", 2) == (row["status"], row["epoch"])
    assert not any(alive(pid) for pid in inside)
    assert not worker.exists()


# ---- a made-up tree -------------------------------------------------------------------------------------


class Kernel:
    """A tree of files that behaves as the kernel's where it is written to; `said` is what was written."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, path: str = "/unit.service") -> None:
        self.proc = root / "proc"
        (self.proc / "ns").mkdir(parents=True)
        os.symlink("cgroup:[7]", self.proc / "ns" / "cgroup")
        self.mount = root / "cgroup"
        self.place = self.mount / "unit.service"
        self.place.mkdir(parents=True)
        (self.proc / "mountinfo").write_text(f"1 1 0:1 / {self.mount} rw shared:1 - cgroup2 cgroup2 rw\n")
        (self.proc / "cgroup").write_text(f"1:name=systemd:/\n0::{path}\n")
        for name, text in (("cgroup.controllers", "cpu memory pids"), ("cgroup.subtree_control", "")):
            (self.place / name).write_text(text)
        (self.place / "cgroup.kill").touch()
        os.setxattr(self.place, "user.delegate", b"1")
        self.said: list[tuple[str, str]] = []
        self.refuses: dict[str, int] = {}
        self.joined: Path | None = None
        """A group that lets processes in: files that are not there are what this tree refuses with."""
        patch.setattr(controlgroups, "_write", self.write)

    def write(self, file: Path, text: str) -> None:
        name = str(file.relative_to(self.mount))
        if file.name in self.refuses:
            raise OSError(self.refuses[file.name], os.strerror(self.refuses[file.name]))
        self.said.append((name, text))
        if file.name == "cgroup.subtree_control":
            file.write_text(" ".join(sorted({*file.read_text().split(), text.removeprefix("+")})))
        if file.name == "memory.max":
            (file.parent / "memory.swap.max").touch()
        if file.parent == self.joined:
            (file.parent / "cgroup.procs").touch()


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def test_limits_stand_before_a_worker_starts(kernel: Kernel, tmp_path: Path) -> None:
    """The daemon goes into its leaf, controllers are handed down, a group gets its limits: in this order."""
    groups = controlgroups.take(tmp_path / "state", kernel.proc)
    assert groups is not None
    made = groups.make("w1", 1 << 30, 64)
    name = f"unit.service/{groups.store}-w1"

    assert groups.can_limit()
    assert [
        ("unit.service/daemon/cgroup.procs", str(os.getpid())),
        ("unit.service/cgroup.subtree_control", "+memory"),
        ("unit.service/cgroup.subtree_control", "+pids"),
        (f"{name}/memory.max", "1073741824"),
        (f"{name}/memory.swap.max", "0"),
        (f"{name}/pids.max", "65"),
    ] == kernel.said
    assert (f"/{name}", "cgroup:[7]") == (made.path, made.space)
    assert [made.place] == [each.place for each in groups.strays()]


@pytest.mark.anyio
async def test_workers_get_the_limits_of_their_workflow(kernel: Kernel, tmp_path: Path) -> None:
    """Memory and processes stand in the group as the workflow has them, before the keeper has joined it."""
    groups = controlgroups.take(tmp_path / "state", kernel.proc)
    assert groups is not None
    limited = one_step("true", more='[limits]\nmemory = "64MiB"\npids = 40\n')
    made = Desk(tmp_path, Containment(groups))
    place = groups._group(f"{groups.store}-w1").place
    kernel.joined = place
    async with anyio.create_task_group() as group:
        await made.start(group, limited)
        joined = (place / "cgroup.procs").read_text()
        made.worker.kill()
        with anyio.fail_after(WAIT):
            await made.gone.wait()
    made.close()

    assert [("memory.max", str(64 << 20)), ("memory.swap.max", "0"), ("pids.max", "41")] == [
        (Path(name).name, text) for name, text in kernel.said if groups.store in name
    ]
    assert "0" == joined
    assert [True] == [proven for _, proven in made.ends]


@pytest.mark.anyio
async def test_worker_that_cannot_join_its_group_is_not_started(kernel: Kernel, tmp_path: Path) -> None:
    """Where the keeper cannot join, nothing is started outside of the group, and that is known."""
    groups = controlgroups.take(tmp_path / "state", kernel.proc)
    assert groups is not None
    made = Desk(tmp_path, Containment(groups))
    started: list[frames.FromWorker] = []
    async with anyio.create_task_group() as group:

        async def start() -> None:
            started.append(await made.start(group, one_step("true")))

        group.start_soon(start)
        with anyio.fail_after(WAIT):
            await made.gone.wait()
        group.cancel_scope.cancel()
    said = (made.workers / "w1.stderr").read_text()
    made.close()

    assert [] == started
    assert [True] == [proven for _, proven in made.ends]
    assert said.startswith("cannot join ")


def test_no_limits_are_written_where_none_are_wanted(kernel: Kernel, tmp_path: Path) -> None:
    """A workflow without limits gets a group without them."""
    groups = controlgroups.take(tmp_path / "state", kernel.proc)
    assert groups is not None
    kernel.said.clear()
    groups.make("w1", None, None)

    assert [] == kernel.said


def test_controllers_that_are_refused_limit_nothing(kernel: Kernel, tmp_path: Path) -> None:
    """Where the kernel hands no controller down, groups still prove ends, and limits are said not to hold."""
    kernel.refuses["cgroup.subtree_control"] = errno.EBUSY
    groups = controlgroups.take(tmp_path / "state", kernel.proc)
    assert groups is not None
    kernel.said.clear()
    groups.make("w1", 1 << 30, 64)

    assert (False, []) == (groups.can_limit(), kernel.said)


def test_leaf_that_systemd_made_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With DelegateSubgroup=daemon the process starts in the leaf; the group above is the delegated one."""
    kernel = Kernel(tmp_path, monkeypatch, "/unit.service/daemon")
    groups = controlgroups.take(tmp_path / "state", kernel.proc)

    assert groups is not None
    assert (kernel.place, "/unit.service") == (groups.place, groups.path)


def test_two_stores_know_their_own_groups(kernel: Kernel, tmp_path: Path) -> None:
    """Two daemons in one delegated group never take each other's workers for strays of their own."""
    one, two = (controlgroups.take(tmp_path / name, kernel.proc) for name in ("one", "two"))
    assert one is not None
    assert two is not None
    made = one.make("w1", None, None)

    assert ([made.place], []) == ([each.place for each in one.strays()], two.strays())


def test_word_of_a_users_unit_counts_for_its_own_group(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's manager marks nothing, so its unit says it; of root's group, or another's, no word counts."""
    _unmark(kernel)
    found = {}
    for uid, owner in ((1000, 1000), (1000, 1001), (0, 0)):
        monkeypatch.setattr(os, "geteuid", lambda uid=uid: uid)
        monkeypatch.setattr(controlgroups, "_owner", lambda _, owner=owner: owner)
        said = (controlgroups.take(tmp_path, kernel.proc, word) for word in ("yes", "no"))
        found[uid, owner] = [each is not None for each in said]
    monkeypatch.undo()

    assert {(1000, 1000): [True, False], (1000, 1001): [False, False], (0, 0): [False, False]} == found


def _unmark(kernel: Kernel) -> None:
    os.removexattr(kernel.place, "user.delegate")


def _no_kill(kernel: Kernel) -> None:
    (kernel.place / "cgroup.kill").unlink()


def _first_version_only(kernel: Kernel) -> None:
    (kernel.proc / "cgroup").write_text("4:memory:/unit.service\n")


def _not_mounted(kernel: Kernel) -> None:
    (kernel.proc / "mountinfo").write_text("1 1 0:1 / /proc rw - proc proc rw\n")


def _refused(kernel: Kernel) -> None:
    kernel.refuses["cgroup.procs"] = errno.EACCES


NOT_OURS: dict[str, Callable[[Kernel], Any]] = {
    "not delegated": _unmark,
    "an older kernel": _no_kill,
    "the first version only": _first_version_only,
    "not mounted": _not_mounted,
    "the kernel refuses": _refused,
    "no such process": lambda kernel: shutil.rmtree(kernel.proc),
}


@pytest.mark.parametrize("case", NOT_OURS)
def test_what_was_not_delegated_is_not_used(case: str, kernel: Kernel, tmp_path: Path) -> None:
    """Without delegation, or a way to end a group at once, keepers do the work and nothing is written."""
    NOT_OURS[case](kernel)

    assert controlgroups.take(tmp_path / "state", kernel.proc) is None
    assert [] == kernel.said
