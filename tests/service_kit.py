"""A daemon as a service manager runs it: a passed socket, a notify socket, folders in the environment."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from daemon_kit import Daemon

BOTH = ["asyncio", "trio"]
DEAF = """
version = 1
[[step]]
name = "wait"
run = ["sh", "-c", "trap '' TERM; touch $RESUMED_SOURCE.up; sleep 600 & wait; wait"]
repeatable = true
grace = "10s"
"""
PASSING = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "control"}
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """The service manager's side: hears what is said at a datagram socket, in order."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self.socket.settimeout(20)
        self.heard: list[str] = []

    def hear(self) -> str:
        """The next datagram."""
        self.heard.append(self.socket.recv(65536).decode())
        return self.heard[-1]

    def until(self, beginning: str) -> str:
        """The next datagram that begins so."""
        while not (said := self.hear()).startswith(beginning):
            pass
        return said

    def close(self) -> None:
        self.socket.close()


class Service(Daemon):
    """A daemon that gets all it has from its environment, and a listener as descriptor 3."""

    def __init__(self, root: Path, backend: str) -> None:
        super().__init__(root, backend)
        self.listener: socket.socket | None = None
        self.manager = Manager(str(root / "notify"))
        (self.workflows / "deaf.toml").write_text(DEAF)
        (self.workflows / "deaf.toml").chmod(0o644)

    def listen(self) -> None:
        """Bind the control socket, as a socket unit does."""
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.socket))
        self.listener.listen(64)

    def serve(self, *more: str, **environ: str) -> "subprocess.Popen[bytes]":
        """Start without waiting; `environ` comes on top."""
        command = [sys.executable, "-m", "resumed.daemon.main", "serve", f"--backend={self.backend}", *more]
        pass_fds: tuple[int, ...] = ()
        if self.listener is not None:
            command = [sys.executable, "-c", PASSING, str(self.listener.fileno()), *command]
            pass_fds = (self.listener.fileno(),)
        given = {
            "STATE_DIRECTORY": str(self.state),
            "CONFIGURATION_DIRECTORY": str(self.root),
            "RUNTIME_DIRECTORY": str(self.root),
            "NOTIFY_SOCKET": self.manager.address,
        }
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=pass_fds,
                env={**os.environ, **given, **environ},
            )
        return self.process

    def up(self, *more: str, **environ: str) -> "subprocess.Popen[bytes]":
        """Start, and wait until it says that it is ready."""
        process = self.serve(*more, **environ)
        self.manager.until("READY=1")
        return process

    def kill(self) -> None:
        """End it whatever it does."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)
        if self.listener is not None:
            self.listener.close()
        self.manager.close()
