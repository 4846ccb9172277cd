"""What the demos share: a daemon with folders of its own, and a story told line by line."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resumed.daemon.client import CallError, Client, UnreachableError


class Stage:
    """The folders of one demo, and the daemon over them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / "state"
        self.workflows = root / "workflows.d"
        self.socket = root / "control"
        self.log = root / "daemon.log"
        self.config = root / "resumed.toml"
        self.workflows.mkdir(mode=0o755)
        self.config.touch(mode=0o644)
        self.process: subprocess.Popen[bytes] | None = None

    def workflow(self, file: Path, places: dict[str, str], name: str = "") -> None:
        """Puts a workflow on the shelf, with our own places for those that its file names."""
        text = file.read_text()
        for place, ours in places.items():
            assert place in text, f"{file} does not name {place}"
            text = text.replace(place, ours)
        path = self.workflows / f"{name or file.stem}.toml"
        path.write_text(text)
        path.chmod(0o644)

    def start(self) -> int:
        """Starts a daemon over these folders; its process id."""
        command = [sys.executable, "-m", "resumed.daemon.main", "serve"]
        command += [f"--{name}={getattr(self, name)}" for name in ("config", "state", "socket", "workflows")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stderr=log, stdout=log, cwd=self.root
            )
        return self.process.pid

    def is_ready(self) -> bool:
        """Whether a job may be handed in."""
        return (self.state / "incoming").is_dir() and self.socket.exists()

    def kill(self) -> None:
        """SIGKILL to the daemon."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Asks the daemon to stop; its exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(30)

    def drop(self, job: dict[str, Any]) -> None:
        """A job file, written beside and renamed into the watched folder."""
        incoming = self.state / "incoming"
        written = incoming / f".{job['id']}.json"
        written.write_text(json.dumps(job))
        written.chmod(0o600)
        written.rename(incoming / f"{job['id']}.json")

    def row(self, job: str) -> dict[str, Any] | None:
        """The job as the daemon tells it; None while nobody answers or nobody knows it."""
        try:
            with Client(str(self.socket)) as client:
                row: dict[str, Any] = client.call("Show", job=job)["job"]["row"]
                return row
        except (UnreachableError, CallError):
            return None


def tell(sentence: str) -> None:
    """One line of the story."""
    print(f"{time.strftime('%T')}  {sentence}", flush=True)


def wait_for(true: Callable[[], Any], deadline: float) -> Any:
    """What it gives once that is true; TimeoutError past the deadline (`time.monotonic`)."""
    while not (found := true()):
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.005)
    return found
