"""A daemon as its own process: started, timed to READY, killed, asked, and its memory looked at."""

import fcntl
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, perf_counter

from resumed.daemon.client import Client

PROGRAMS = Path(sys.executable).parent
PATIENCE = 180.0
READY = "ready: "
LOG_ROOM = 1024 * 1024
"""Bytes of log that the daemon may write before anybody reads: it must not wait for us."""


class Daemon:
    """One daemon over `root`, or a store that lies elsewhere; every line of its log may be waited for."""

    def __init__(self, root: Path, state: Path | None = None, *, workers: int = 4, backend: str = "asyncio"):
        self.root = root
        self.state = root / "state" if state is None else state
        self.socket = root / "socket"
        self.workflows = root / "workflows"
        self.workflows.mkdir(parents=True, exist_ok=True)
        config = root / "resumed.toml"
        config.write_text(f"workers = {workers}\n")
        self._command = [str(PROGRAMS / "resumed"), "serve", "--config", str(config), "--backend", backend]
        for name, place in (("socket", self.socket), ("state", self.state), ("workflows", self.workflows)):
            self._command += [f"--{name}", str(place)]
        self._process: subprocess.Popen[bytes] | None = None
        self._log = -1
        self._held = b""
        self._said: list[str] = []

    def __enter__(self) -> "Daemon":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Of the running daemon."""
        assert self._process is not None
        return self._process.pid

    def workflow(self, name: str, text: str) -> None:
        """Put a workflow file on the shelf, before the start."""
        path = self.workflows / f"{name}.toml"
        path.write_text(text)
        path.chmod(0o644)

    def start(self) -> float:
        """Start it; returns the seconds until it said that it is ready."""
        begun = perf_counter()
        self._log, writing = os.pipe()
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, LOG_ROOM)
        self._held, self._said = b"", []
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=writing, stderr=writing, cwd=self.root
        )
        os.close(writing)
        self.heard(READY)
        return perf_counter() - begun

    def restart(self) -> float:
        """kill -9, and the seconds from there until the next one is ready."""
        begun = perf_counter()
        self.kill()
        self.start()
        return perf_counter() - begun

    def kill(self) -> None:
        """SIGKILL; a second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            os.close(self._log)

    def heard(self, words: str) -> float:
        """When the next line of its log that holds `words` was read; RuntimeError when it ends before."""
        until = monotonic() + PATIENCE
        while True:
            for number, line in enumerate(self._said):
                if words in line:
                    del self._said[: number + 1]
                    return self._at
            self._read(until)

    def _read(self, until: float) -> None:
        if not select.select([self._log], [], [], max(0.0, until - monotonic()))[0]:
            raise RuntimeError(f"the daemon said nothing for too long: {self._said[-5:]}")
        chunk = os.read(self._log, 65_536)
        self._at = perf_counter()
        if not chunk:
            raise RuntimeError(f"the daemon ended: {self._said[-5:]}")
        *lines, self._held = (self._held + chunk).split(b"\n")
        self._said += [line.decode(errors="replace") for line in lines]

    def client(self) -> Client:
        """A connection."""
        return Client(str(self.socket))

    def pss_mib(self) -> float:
        """The memory that is this process's own, and its share of what it shares, in MiB."""
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("the kernel does not say the PSS")
