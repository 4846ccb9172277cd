"""Wrote `first-release.tar.xz`, once, with the first release; kept to tell what is in it, never run again.

    git worktree add --detach /opt/resumed 30de291 && cd /opt/resumed && ./dev setup
    .venv/bin/python first_release.py /srv/first OUT

All that it imports is that release's. A real daemon is driven and killed; what no daemon of that release
leaves by itself at a moment one can name (a file between claim and admission, a kept name) is written by
that release's own functions, in process.
"""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resumed.actors import views
from resumed.actors.machine.apply import apply
from resumed.daemon.client import CallError
from resumed.schemas.instant import Instant
from resumed.store import archive, fsck, intake, layout, names, quarantine, recovery

SAY = """
version = 1
description = "Says what it was given."
[[step]]
name = "say"
run = ["sh", "-c", "echo heard >&2; test ! -e $RESUMED_SOURCE.fail && cat $RESUMED_SOURCE"]
repeatable = true
parallel = 4
tries = 1
backoff = { first = "1ms", max = "1ms" }
"""
LATER = """
version = 1
[[step]]
name = "later"
run = ["sh", "-c", "echo busy >&2; exit 75"]
repeatable = true
tries = 3
backoff = { first = "600s", max = "600s" }
"""
SLOW = """
version = 1
[[step]]
name = "wait"
run = ["sh", "-c", "test -e $RESUMED_SOURCE.slow && sleep 600; cat $RESUMED_SOURCE"]
repeatable = true
parallel = 2
grace = "1s"
"""
ONCE = SLOW.replace("repeatable = true", "repeatable = false")
GLOB = """
version = 2
inputs.folder = { type = "path", roots = ["/srv/first"] }
items = { from = "glob", glob = "{inputs.folder}/*.txt" }
[[step]]
name = "count"
run = ["wc", "-c", "{source}"]
repeatable = true
[[step]]
name = "copy"
run = ["cp", "{source}", "{output}"]
repeatable = true
"""
PYTHON = """
version = 3
python = { entry = "flow:Flow" }
"""
CODE = '''
"""A Python workflow: rounds in its state, items that hand data on."""
from attrs import evolve, frozen
from resumed import Accept, Done, Each, Goto, Hold, Next, RetryAfter, step, workflow


@frozen
class Count:
    rounds: int = 0
    seen: tuple[str, ...] = ()
    note: str | None = None


@workflow("flow", version=3, state=Count, slots=4)
class Flow:
    @step(start=True)
    async def begin(self, job, state):
        return Goto("again", state=evolve(state, rounds=state.rounds + 1))

    @step
    async def again(self, job, state):
        return Each(job.items, start="one", then="close", parallel=2)

    @step(item=True)
    async def one(self, job, item):
        if item.id == "later":
            return RetryAfter("6h", "the press is busy")
        if item.id == "unclear":
            return Hold("two answers")
        return Next("two", {"from": item.id, "n": 3})

    @step(item=True)
    async def two(self, job, item):
        return Accept(f"{job.objective} {item.id} {item.data['from']}")

    @step
    async def close(self, job, state):
        return Done(evolve(state, seen=tuple(item.output.text for item in job.items if item.output)))
'''


def until(look: Callable[[], Any], what: str, within: float = 60.0) -> Any:
    """What `look` gives once it is true."""
    deadline = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


class World:
    """A daemon of the first release in a folder of its own."""

    def __init__(self, root: Path) -> None:
        self.root, self.state, self.socket = root, root / "state", root / "control"
        self.shelf = root / "workflows.d"
        for folder in (root, self.shelf):
            folder.mkdir(mode=0o755, exist_ok=True)
        texts = {"say": SAY, "later": LATER, "slow": SLOW, "once": ONCE, "glob": GLOB, "flow": PYTHON}
        for name, text in texts.items():
            self.write(self.shelf / f"{name}.toml", text)
        self.write(self.shelf / "flow.py", CODE)
        self.write(root / "resumed.toml", 'workers = 2\nstop_timeout = "20s"\n')
        self.process: subprocess.Popen[bytes] | None = None

    def write(self, path: Path, text: str) -> Path:
        path.write_text(text)
        path.chmod(0o644)
        return path

    def start(self) -> None:
        places = {"config": self.root / "resumed.toml", "state": self.state, "socket": self.socket}
        flags = [f"--{name}={place}" for name, place in {**places, "workflows": self.shelf}.items()]
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "resumed.daemon.main", "serve", *flags],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        until(self.answers, "the daemon answers")

    def answers(self) -> bool:
        try:
            self.ask("status")
        except (AssertionError, subprocess.TimeoutExpired):
            return False
        return True

    def end(self, how: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(60)
        if how is signal.SIGKILL:
            until(lambda: not self.keepers(), "the keepers of the killed daemon have ended")

    def keepers(self) -> list[str]:
        """Workers on record whose end is not proven yet."""
        place = layout.Layout(self.state).workers
        return [p.stem for p in place.glob("*.json") if not (place / f"{p.stem}.gone").exists()]

    def ask(self, *words: str) -> str:
        command = [sys.executable, "-m", "resumed.daemon.cli", f"--socket={self.socket}", *words]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0, (words, ran.stdout, ran.stderr)
        return ran.stdout

    def submit(self, job: str, workflow: str, items: dict[str, str], **more: Any) -> None:
        self.ask("submit", str(self.file(job, workflow, items, **more)))

    def file(self, job: str, workflow: str, items: dict[str, str], **more: Any) -> Path:
        folder = self.root / "in" / job
        folder.mkdir(parents=True, exist_ok=True)
        rows = []
        for item, text in items.items():
            self.write(folder / item, text)
            rows.append({"id": item, "source": str(folder / item)})
        value = {"workflow": workflow, "id": job, **({"items": rows} if rows else {}), **more}
        return self.write(self.root / f"{job}.json", json.dumps(value))

    def row(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("show", job, "--json"))["job"]["row"]
        return found

    def reach(self, job: str, **wanted: Any) -> None:
        def look() -> bool:
            row = self.row(job)
            return all(row[name] == value for name, value in wanted.items())

        until(look, f"{job} reaches {wanted}")


def texts(count: int, size: int, mark: str = "page") -> dict[str, str]:
    """Items with sources of about `size` bytes each."""
    return {f"p-{n:03}": f"{mark} {n}: " + "so it was written. " * (size // 19) + "\n" for n in range(count)}


def tell(world: World) -> None:
    """Everything that happens to the store."""
    world.start()
    # Ended, and in the archive: all done, with outputs in lines and in files; canceled; one with a skip.
    told = {"title": "Three pages", "objective": "read them", "owner": "user:anna", "tenant": "press"}
    done = world.file(
        "done-1",
        "say",
        {**texts(3, 100), "large": "x" * 40_000, "bytes": ""},
        **told,
        labels={"season": "winter"},
    )
    (world.root / "in" / "done-1" / "bytes").write_bytes(b"no text: \xff\xfe\n")
    world.ask("submit", str(done))
    world.reach("done-1", status="completed")
    (world.root / "in" / "glob-1").mkdir(parents=True)
    for n in range(4):
        world.write(world.root / "in" / "glob-1" / f"t{n}.txt", f"text {n}\n" * 3000 * (n % 2) + "end\n")
    world.submit("glob-1", "glob", {}, inputs={"folder": str(world.root / "in" / "glob-1")})
    world.reach("glob-1", status="completed")
    # Held: one item fails. Its lines outweigh checkpoints several times; artifacts of more than 16 KiB.
    large = {f"big-{n}": f"big {n}\n" * 5000 for n in range(3)}
    report = world.file("report-1", "say", {**texts(90, 9000), **large})
    world.write(world.root / "in" / "report-1" / "p-041.fail", "")
    world.ask("submit", str(report))
    world.reach("report-1", status="held", done=92, failed=1)
    world.submit("skip-1", "say", {"a": "a\n", "b": "b\n"})
    world.file("skip-2", "say", {"a": "a\n", "b": "b\n"})
    world.write(world.root / "in" / "skip-2" / "b.fail", "")
    world.ask("submit", str(world.root / "skip-2.json"))
    world.reach("skip-2", status="held", failed=1)
    world.ask("skip", "skip-2", "b", "--reason", "not this year")
    world.reach("skip-2", status="completed")
    # Held, retried, held again; held without any item done.
    world.file("held-1", "say", {"a": "a\n", "b": "b\n", "c": "c\n"})
    world.write(world.root / "in" / "held-1" / "b.fail", "")
    world.ask("submit", str(world.root / "held-1.json"))
    world.reach("held-1", status="held", done=2, failed=1)
    world.ask("retry", "held-1", "b")
    world.reach("held-1", status="held", done=2, failed=1)
    # Python: its state, data handed on, an item that comes later, one that is held.
    world.submit("flow-1", "flow", {"a": "a", "b": "b", "later": "l", "unclear": "u"}, objective="press")
    world.reach("flow-1", done=2, held=1)
    world.submit("flow-2", "flow", {"a": "a", "b": "b"}, objective="press")
    world.reach("flow-2", status="completed")
    # Waiting for a time.
    world.submit("later-1", "later", {"a": "a", "b": "b"})
    world.reach("later-1", status="waiting")
    # Paused after one item.
    world.file("paused-1", "slow", {"a": "a\n", "b": "b\n", "c": "c\n"})
    for item in ("b", "c"):
        world.write(world.root / "in" / "paused-1" / f"{item}.slow", "")
    world.ask("submit", str(world.root / "paused-1.json"))
    world.reach("paused-1", done=1, running=2)
    world.ask("pause", "paused-1", "--now", "--reason", "the press is closed")
    world.reach("paused-1", status="paused")
    # Canceled in the middle.
    world.file("canceled-1", "slow", {"a": "a\n", "b": "b\n"})
    world.write(world.root / "in" / "canceled-1" / "b.slow", "")
    world.ask("submit", str(world.root / "canceled-1.json"))
    world.reach("canceled-1", done=1, running=1)
    world.ask("cancel", "canceled-1", "--reason", "nobody reads it")
    world.reach("canceled-1", status="canceled")
    # Killed in the middle of what may not be repeated: the next start holds it.
    world.file("once-1", "once", {"a": "a\n", "b": "b\n"})
    world.write(world.root / "in" / "once-1" / "b.slow", "")
    world.ask("submit", str(world.root / "once-1.json"))
    world.reach("once-1", done=1, running=1)
    world.submit("rotten-1", "later", {"a": "a"})
    world.reach("rotten-1", status="waiting")
    world.end(signal.SIGKILL)
    # Two broken jobs: the next start cuts the torn line of one, and sets the other aside.
    place = layout.Layout(world.state)
    torn = max(place.job("once-1").glob("1.*.log"))
    with torn.open("r+b") as log:
        log.seek(len(torn.read_bytes().rstrip(b"\0")))
        log.write(b"0123 half a line")
    rotten = max(place.job("rotten-1").glob("1.*.log"))
    raw = rotten.read_bytes()
    rotten.write_bytes(raw.replace(b"rotten-1", b"ripened1", 1))
    world.start()
    world.reach("once-1", status="held")
    assert (place.quarantine / "rotten-1").is_dir()
    # Refused at the door of the folder: broken, and a workflow that is not there.
    for name, text in (("broken.json", "{"), ("nobody.json", '{"workflow": "nobody", "items": ["a"]}')):
        world.write(world.state / "incoming" / f".{name}", text).rename(world.state / "incoming" / name)
        until(lambda name=name: (world.state / "rejected" / f"{name}.reason.json").exists(), "it is rejected")
    # Running: killed in the middle, for good. Two workers: what comes behind stays pending.
    world.file("running-1", "slow", texts(6, 60, "sheet"))
    for item in ("p-003", "p-004"):
        world.write(world.root / "in" / "running-1" / f"{item}.slow", "")
    world.ask("submit", str(world.root / "running-1.json"))
    world.reach("running-1", done=3, running=2)
    world.submit("pending-1", "say", {"a": "a\n", "b": "b\n"}, title="Not begun")
    world.submit("pending-2", "flow", {"a": "a"}, objective="press")
    world.end(signal.SIGKILL)
    # The moments no daemon stays in.
    for name, job in (("claimed.json", "claimed-1"), ("waiting.json", "incoming-1")):
        text = world.file(job, "say", {"a": "a\n"}).read_text()
        world.write(world.state / "incoming" / name, text)
    intake.claim(place, "claimed.json")
    names.keep(place.names, "key", 1000, "invoice-7", b'{"job":"done-1"}\n')
    names.keep(place.names, "id", 0, "pruned-1", b'{"job":"pruned-1"}\n')


def expected(place: layout.Layout) -> dict[str, Any]:
    """What every later release must find: plain words and digests, no record of any release."""
    jobs = {}
    for where, parent in (("jobs", place.jobs), ("archive", place.archive)):
        for job in archive.folders(parent):
            folder = place.job(job) if where == "jobs" else place.archived(job)
            jobs[job] = {"where": where, **told(recovery.load(folder, apply))}
    aside = {one.id: one.reason for one in quarantine.entries(place)}
    findings = sorted((one.job, one.code) for one in fsck.check(place.root, apply).findings)
    return {"jobs": jobs, "quarantine": aside, "findings": findings}


def told(found: recovery.Recovered) -> dict[str, Any]:
    """One job in plain words."""
    snapshot = found.snapshot
    now = Instant(wall=snapshot.newest.wall, boot="another", up=0)
    return {
        "admitted": [found.admission.name, found.admission.sha256, found.admission.requester],
        "sequence": found.sequence,
        "checkpoint": found.checkpoint,
        "digest": found.digest,
        "epoch": snapshot.epoch,
        "status": views.row(snapshot, now).status.value,
        "workflow": [snapshot.job.workflow, snapshot.job.version, snapshot.code_version.contract],
        "job": [snapshot.job.title, snapshot.job.objective, snapshot.job.owner, snapshot.job.tenant],
        "labels": dict(snapshot.job.labels),
        "created": snapshot.job.created.wall,
        "position": [snapshot.position.at, snapshot.position.state.value, snapshot.position.tries],
        "state": dict(snapshot.state),
        "hold": [snapshot.hold.code, snapshot.hold.reason, snapshot.hold.owner] if snapshot.hold else None,
        "pause": [snapshot.pause.by, snapshot.pause.reason] if snapshot.pause else None,
        "cancel": [snapshot.cancel.by, snapshot.cancel.reason] if snapshot.cancel else None,
        "outcome": [snapshot.outcome.ending.value, snapshot.outcome.reason] if snapshot.outcome else None,
        "attempt": snapshot.attempt.epoch if snapshot.attempt else None,
        "tries": sorted([row.item, row.number, row.step] for row in snapshot.tries.values()),
        "items": [
            [
                item.id, item.state.value, item.at, item.tries, item.failures, item.crashes, item.data,
                item.code, item.reason, item.source.path if item.source else None,
                [item.output.name, item.output.revision, item.output.size, item.output.sha256,
                 item.output.text is not None] if item.output else None,
            ]
            for item in snapshot.items
        ],
    }  # fmt: skip


def pack(state: Path, target: Path) -> None:
    """The store as a tar: names, bytes and modes; owners and times are nobody's."""

    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        info.mtime = 1_700_000_000
        return info

    with tarfile.open(target, "w:xz", preset=9) as made:
        made.add(state, "store", filter=plain)


def main() -> None:
    """Make the store, say what is in it, pack it."""
    root, out = Path(sys.argv[1]), Path(sys.argv[2])
    world = World(root)
    try:
        tell(world)
    except (AssertionError, CallError):
        print((root / "log").read_text(), file=sys.stderr)
        raise
    finally:
        if world.process is not None and world.process.poll() is None:
            os.kill(world.process.pid, signal.SIGKILL)
    said = expected(layout.Layout(world.state))
    jobs = ",\n".join(f"  {json.dumps(job)}: {json.dumps(one)}" for job, one in said.pop("jobs").items())
    rest = ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in said.items())
    (out / "first-release.json").write_text(f'{{"jobs": {{\n{jobs}\n}},\n{rest}}}\n')
    pack(world.state, out / "first-release.tar.xz")


if __name__ == "__main__":
    main()
