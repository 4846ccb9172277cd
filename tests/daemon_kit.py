"""A daemon in a folder of its own, as a real process, and `resumectl` beside it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOOPS = ["asyncio", "trio"] if float(os.environ.get("RESUMED_FAULTS_SCALE", "0.1")) >= 1 else ["asyncio"]
"""Whole daemons run on both loops in `./dev faults`, else on the default one."""

WORKFLOW = """
version = 1
description = "Says what it was given."
inputs.word = { default = "hello" }
[[step]]
name = "say"
run = ["sh", "-c", "echo heard >&2; test ! -e $RESUMED_SOURCE.fail && cat $RESUMED_SOURCE"]
repeatable = true
parallel = 2
tries = 1
backoff = { first = "1ms", max = "1ms" }
"""
SLOW = """
version = 1
[[step]]
name = "wait"
run = ["sleep", "600"]
repeatable = true
grace = "1s"
"""


def heeds_ctrl_c() -> None:
    """Whoever runs the tests in the background has Ctrl-C ignored, and so would what the tests start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Daemon:
    """A daemon in a folder of its own, and `resumectl` beside it."""

    def __init__(self, root: Path, backend: str) -> None:
        self.root = root
        self.backend = backend
        self.state = root / "state"
        self.socket = root / "control"
        self.workflows = root / "workflows.d"
        self.workflows.mkdir(mode=0o755)
        for name, text in (("say", WORKFLOW), ("slow", SLOW)):
            (self.workflows / f"{name}.toml").write_text(text)
            (self.workflows / f"{name}.toml").chmod(0o644)
        self.process: subprocess.Popen[bytes] | None = None
        self.python = sys.executable
        """Whose daemon and client it is from the next start on."""

    def command(self, *more: str) -> list[str]:
        folders = {"state": self.state, "socket": self.socket, "workflows": self.workflows}
        flags = [f"--{name}={place}" for name, place in folders.items()]
        return [self.python, "-m", "resumed.daemon.main", "serve", *flags, *more]

    def start(self) -> None:
        log = (self.root / "log").open("ab")
        with log:
            command = self.command(f"--backend={self.backend}")
            self.process = subprocess.Popen(command, stderr=log, stdout=log, stdin=subprocess.DEVNULL)
        self.ask("status", within=20)

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(30)

    def ask(self, *words: str, within: float = 0, **more: Any) -> subprocess.CompletedProcess[str]:
        """One `resumectl`; with `within`, again while nobody answers."""
        deadline = time.monotonic() + within
        command = [self.python, "-m", "resumed.daemon.cli", f"--socket={self.socket}", *words]
        while True:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=60, **more)
            if ran.returncode != 3 or time.monotonic() > deadline:
                return ran

    def said(self) -> str:
        return (self.root / "log").read_text()

    def file(self, name: str, workflow: str, items: dict[str, str]) -> Path:
        """A job file whose items are files with these texts."""
        folder = self.root / f"{name}.files"
        folder.mkdir()
        for item, text in items.items():
            (folder / item).write_text(text)
        job = {
            "workflow": workflow,
            "id": name,
            "items": [{"id": item, "source": str(folder / item)} for item in items],
        }
        path = self.root / f"{name}.json"
        path.write_text(json.dumps(job))
        path.chmod(0o600)
        return path

    def row(self, job: str) -> dict[str, Any]:
        row: dict[str, Any] = json.loads(self.ask("show", job, "--json").stdout)["job"]["row"]
        return row


def eventually(look: Any, within: float = 20) -> Any:
    """What `look` returns once it does not raise."""
    deadline = time.monotonic() + within
    while True:
        try:
            return look()
        except (OSError, ValueError, KeyError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
