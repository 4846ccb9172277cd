"""A daemon of one's own for a drill: started, killed, asked; and what its items wrote, which is the truth.

Waiting is always for something that can be seen, with a deadline; a drill never sleeps to be safe.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from resumed.actors.machine.apply import apply
from resumed.daemon.client import CallError, Client, UnreachableError
from resumed.schemas.job import ItemState
from resumed.store import recovery
from resumed.store.layout import Layout
from resumed.store.recovery import Recovered

ITEM = Path(__file__).with_name("item.py")
FINAL = ("completed", "failed", "canceled", "expired")
T = TypeVar("T")


def until(look: Callable[[], T | None], what: str, within: float = 30.0, every: float = 0.002) -> T:
    """What `look` gives once it gives something true; AssertionError, naming it, past the deadline."""
    deadline = time.monotonic() + within
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {within:g} s in vain: {what}"
        time.sleep(every)
    return found


def pass_by(seconds: float) -> None:
    """Lets a moment pass that was drawn by chance; it waits for nothing."""
    time.sleep(seconds)


class Said(NamedTuple):
    """One line of the witness, and where it begins."""

    event: str
    job: str
    item: str
    attempt: int
    pid: int
    at: int
    place: int


class Witness:
    """The file that items append to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def size(self) -> int:
        """Bytes so far."""
        return self.path.stat().st_size

    def lines(self, job: str = "", item: str = "", event: str = "", since: int = 0) -> list[Said]:
        """What was written, in order, from a place on; a line that is cut short is left out."""
        found: list[Said] = []
        place = since
        for raw in self.path.read_bytes()[since:].splitlines(keepends=True):
            words = raw.decode().split()
            if len(words) == 6 and raw.endswith(b"\n"):
                said = Said(words[0], words[1], words[2], int(words[3]), int(words[4]), int(words[5]), place)
                if job in ("", said.job) and item in ("", said.item) and event in ("", said.event):
                    found.append(said)
            place += len(raw)
        return found

    def overlaps(self) -> list[Said]:
        """Lines of an attempt after a later one had begun the same item, by attempt and pid: must be none."""
        owner: dict[tuple[str, str], Said] = {}
        found = []
        for said in self.lines():
            begun = owner.get((said.job, said.item))
            if said.event == "start":
                owner[said.job, said.item] = said
            elif begun is None or said.attempt != begun.attempt or self._is_strange(said, begun):
                found.append(said)
        return found

    @staticmethod
    def _is_strange(said: Said, begun: Said) -> bool:
        # A grandchild ticks under a pid of its own; `end` is said by whoever said `start`.
        return said.event == "end" and said.pid != begun.pid


class Daemon:
    """One daemon with folders of its own."""

    def __init__(self, root: Path, backend: str = "asyncio") -> None:
        self.root = root
        self.backend = backend
        self.state = root / "state"
        self.socket = root / "control"
        self.workflows = root / "workflows.d"
        self.workflows.mkdir(mode=0o755)
        self.log = root / "daemon.log"
        self.log.touch()
        self.config = root / "resumed.toml"
        self.configure()
        self.witness = Witness(root / "witness")
        self.process: subprocess.Popen[bytes] | None = None
        self.prefix: list[str] = []
        """Words before the daemon's own command line."""

    # ---- before ---------------------------------------------------------------------------------------

    def configure(self, workers: int = 4, stop: str = "20s") -> None:
        """What the next daemon runs with."""
        self.config.write_text(f'workers = {workers}\nstop_timeout = "{stop}"\n')

    def workflow(self, name: str, text: str) -> None:
        """Puts a workflow file on the shelf; a running daemon sees it later."""
        path = self.workflows / f"{name}.toml"
        path.write_text(text)
        path.chmod(0o644)

    def works(self, name: str, verb: str, argument: object, **keys: object) -> None:
        """A workflow whose one step runs `item.py`."""
        step = {"repeatable": True, "parallel": 1, "tries": 1, "grace": "1s", **keys}
        self.workflow(name, program([ITEM, self.witness.path, verb, argument], **step))

    # ---- life -----------------------------------------------------------------------------------------

    def command(self, **places: Path) -> list[str]:
        """The command line, with other places where they are named."""
        own = {"config": self.config, "state": self.state, "socket": self.socket, "workflows": self.workflows}
        flags = [f"--{name}={place}" for name, place in (own | places).items()]
        serve = [sys.executable, "-m", "resumed.daemon.main", "serve", f"--backend={self.backend}"]
        return [*self.prefix, *serve, *flags]

    def start(self, ready: bool = True) -> None:
        """Starts it; with `ready`, returns once it says so."""
        assert self.process is None or self.process.poll() is not None
        self._from = self.log.stat().st_size
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.root
            )
        if ready:
            self.wait_ready()

    def said(self) -> str:
        """The log since the last start."""
        return self.log.read_bytes()[self._from :].decode(errors="replace")

    def wait_ready(self) -> None:
        """Returns once its log says `ready`."""
        assert self.process is not None
        process = self.process

        def look() -> bool:
            assert process.poll() is None, self.said()
            return "ready: " in self.said()

        until(look, "the daemon is ready")

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL; its keepers may still be at work."""
        self.signal(signal.SIGKILL)
        assert self.process is not None
        self.process.wait(30)

    def bury(self) -> None:
        """Returns when nothing that the killed daemon started is alive."""
        until(lambda: not self.processes(), "all processes of the killed daemon are gone", every=0.01)

    def stop(self, within: float = 30) -> int:
        """SIGTERM; its exit status."""
        self.signal(signal.SIGTERM)
        assert self.process is not None
        return self.process.wait(within)

    def end(self) -> None:
        """However the drill went: nothing of it is left."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.bury()

    def processes(self, mark: str = "") -> list[int]:
        """Every process that bears the mark, or else this drill's folder, in what /proc shows of it."""
        own = os.fsencode(self.root)
        wanted = mark.encode() or own
        found = ((pid, _traces(pid)) for pid in _pids() if pid != os.getpid())
        return [pid for pid, traces in found if own in traces and wanted in traces]

    def processes_of(self, job: str) -> list[int]:
        """Every process that runs for a job: programs and all that they started."""
        return self.processes(f"RESUMED_JOB={job}\0")

    # ---- asking ---------------------------------------------------------------------------------------

    def client(self) -> Client:
        """A connection."""
        # A killed daemon does not come back before its drill starts it again.
        return Client(str(self.socket), again_within=0.0)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One call on a connection of its own."""
        with self.client() as client:
            return client.call(method, **parameters)

    def submit(self, job: str, workflow: str, items: list[str], **keys: Any) -> dict[str, Any]:
        """Hands in a job."""
        file = {"workflow": workflow, "id": job, "items": items, **keys}
        told: dict[str, Any] = self.ask("Submit", file=json.dumps(file))["told"]
        return told

    def row(self, job: str) -> dict[str, Any]:
        """The job's row."""
        row: dict[str, Any] = self.ask("Show", job=job)["job"]["row"]
        return row

    def items(self, job: str) -> dict[str, dict[str, Any]]:
        """The job's items by name."""
        return {item["id"]: item for item in self.ask("Show", job=job)["job"]["items"]}

    def wait_status(self, job: str, *statuses: str, within: float = 60) -> dict[str, Any]:
        """The job's row once it is in one of these."""
        last: dict[str, Any] = {}

        def look() -> dict[str, Any] | None:
            last.update(self.row(job))
            return last if last["status"] in statuses else None

        try:
            return until(look, f"{job} is {statuses}", within, every=0.01)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {last}\n{self.said()[-3000:]}") from None

    def resumectl(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """The command line as people run it."""
        command = [sys.executable, "-m", "resumed.daemon.cli", f"--socket={self.socket}", *words]
        return subprocess.run(command, capture_output=True, timeout=60)

    def drop(self, name: str, raw: bytes) -> None:
        """A file in the watched folder, written beside and renamed, and old enough to be taken at once."""
        incoming = self.state / "incoming"
        beside = incoming / f".{name}"
        beside.write_bytes(raw)
        beside.chmod(0o600)
        beside.rename(incoming / name)

    # ---- the disk -------------------------------------------------------------------------------------

    def jobs_on_disk(self) -> list[str]:
        """Every job folder, open or ended."""
        return sorted(
            path.name
            for folder in (self.state / "jobs", self.state / "archive")
            for path in folder.glob("*/*")
        )

    def recover(self, job: str, state: Path | None = None) -> Recovered:
        """The job as the files tell it, read while no daemon runs."""
        layout = Layout(state or self.state)
        folder = layout.job(job)
        return recovery.load(folder if folder.is_dir() else layout.archived(job), apply)

    def done_on_disk(self, job: str) -> set[str]:
        """Which items are durably done."""
        return {item.id for item in self.recover(job).snapshot.items if item.state is ItemState.DONE}

    def copy_state(self, name: str) -> Path:
        """The whole state folder, as it is now."""
        copy = self.root / name
        shutil.copytree(self.state, copy, symlinks=True)
        return copy

    def fsck(self) -> subprocess.CompletedProcess[bytes]:
        """`resumed fsck` on the state folder."""
        command = [sys.executable, "-m", "resumed.daemon.main", "fsck", str(self.state)]
        return subprocess.run(command, capture_output=True, timeout=60)


def program(argv: list[object], *, flags: tuple[str, ...] = ("-I", "-S"), **step: object) -> str:
    """The text of a workflow whose one step runs Python with these words; `step` are further keys."""
    words = [sys.executable, *flags, *map(str, argv)]
    return command(words, **step)


def command(words: list[str], **step: object) -> str:
    """The text of a workflow whose one step runs these words."""
    keys = {"name": "do", "run": words, "repeatable": True, "tries": 1, **step}
    lines = [f"{key} = {_toml(value)}" for key, value in keys.items()]
    return "\n".join(["version = 1", "[[step]]", *lines, ""])


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {json.dumps(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def kinds(call: Callable[[], dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """How a call ended: `told`, `refused`, `unknown` or `unreachable`, and what was said."""
    try:
        return "told", call()
    except CallError as error:
        name = error.name.rpartition(".")[2]
        return ("unknown" if name == "OutcomeUnknown" else "refused"), error.parameters
    except UnreachableError as error:
        return "unreachable", {"reason": str(error)}


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _traces(pid: int) -> bytes:
    found = b""
    for name in ("cmdline", "environ"):
        try:
            found += Path(f"/proc/{pid}/{name}").read_bytes()
        except OSError:
            pass
    try:
        return found + os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return found
