"""A blocking client of the control socket, standard library only, so that `resumectl` starts light."""

import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from typing import Any

from resumed.schemas import control

CONNECT_WITHIN = 2.0
ANSWER_WITHIN = 120.0
SYSTEM = "/run/resumed/control"
AGAIN_WITHIN = 60.0
"""Seconds in which a command without an answer is asked again: a daemon that restarts is back by then."""
PAUSE_FIRST = 0.1
PAUSE_MOST = 1.0
CHUNK = 64 * 1024
_ADDRESS_BYTES = 107
"""What the kernel takes as a socket's path."""


class UnreachableError(Exception):
    """No daemon answers at the socket, or it went away before its answer."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot reach the daemon at {path}: {reason}")
        self.path = path
        self.reason = reason


class WaitOverError(Exception):
    """The time that somebody was ready to wait for a stream is over."""


class CallError(Exception):
    """The daemon's error answer: its full name and parameters."""

    def __init__(self, name: str, parameters: dict[str, Any]) -> None:
        super().__init__(str(parameters.get("reason") or name))
        self.name = name
        self.parameters = parameters


def default_path() -> str:
    """`RESUMED_SOCKET`, else the system's socket for root, else the user's own."""
    if named := os.environ.get("RESUMED_SOCKET"):
        return named
    if os.geteuid() == 0:
        return SYSTEM
    runtime = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
    own = os.path.join(runtime, "resumed", "control")
    return SYSTEM if os.path.exists(SYSTEM) and not os.path.exists(own) else own


class Client:
    """One connection; calls are answered in their order."""

    def __init__(
        self, path: str | None = None, *, patience: float = 0.0, again_within: float | None = None
    ) -> None:
        """Connects; UnreachableError when nobody answers there.

        `patience` in seconds takes the place of the bounds for connecting and for an answer; `again_within`
        bounds how long a command is asked again whose answer was lost (else AGAIN_WITHIN).
        """
        self.path = path or default_path()
        self._connect_within = patience or CONNECT_WITHIN
        self._answer_within = patience or ANSWER_WITHIN
        self._again_within = AGAIN_WITHIN if again_within is None else again_within
        self.deadline: float | None = None
        """When an endless stream is waited for no longer (`time.monotonic`): WaitOverError."""
        self._held = bytearray()
        self._socket = self._connect()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer's parameters; CallError for an error answer.

        What changes something is sent under a request id of its own. Where no answer came, or one that the
        outcome is unknown, it is asked again under that id for up to `again_within` seconds: it takes effect
        once, and this returns its first answer. UnreachableError, when the daemon stays away, means that it
        may or may not be in force.
        """
        if method not in control.CHANGING:
            return self._ask(method, parameters)
        parameters.setdefault("request", os.urandom(16).hex())
        deadline, pause = time.monotonic() + self._again_within, PAUSE_FIRST
        while True:
            try:
                return self._ask(method, parameters)
            except UnreachableError as error:
                self._come_back(deadline, error)
            except CallError as error:
                if error.name != control.ERROR_UNKNOWN_OUTCOME or time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)
                pause = min(2 * pause, PAUSE_MOST)

    def _ask(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._send({"method": f"{control.INTERFACE}.{method}", "parameters": parameters})
        return self._receive()[0]

    def _come_back(self, deadline: float, lost: UnreachableError) -> None:
        """Connects again, once the daemon is there; the loss, when it stays away."""
        self.close()
        self._held.clear()
        while True:
            try:
                self._socket = self._connect()
                return
            except UnreachableError:
                if time.monotonic() + PAUSE_MOST > deadline:
                    why = f"{lost.reason}, and it did not come back; the command may or may not be in force"
                    raise UnreachableError(self.path, why) from None
            time.sleep(PAUSE_MOST)

    def stream(self, method: str, *, endless: bool = True, **parameters: Any) -> Iterator[dict[str, Any]]:
        """The parameters of answer after answer until the last; those of an `endless` one take any time."""
        if endless:
            self._socket.settimeout(None)
        self._send(
            {"method": f"{control.INTERFACE}.{method}", "parameters": parameters, "more": True},
        )
        goes_on = True
        while goes_on:
            if endless and self.deadline is not None:
                self._socket.settimeout(max(0.001, self.deadline - time.monotonic()))
            answer, goes_on = self._receive()
            yield answer
        self._socket.settimeout(self._answer_within)

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + self._connect_within
        while True:
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            try:
                made.settimeout(self._connect_within)
                self._connect_to(made)
                made.settimeout(self._answer_within)
                return made
            except OSError as error:
                made.close()
                # A full backlog says so at once on a Unix socket, whatever the time-out.
                if error.errno != errno.EAGAIN or time.monotonic() > deadline:
                    raise UnreachableError(self.path, error.strerror or str(error)) from None
            time.sleep(0.02)

    def _connect_to(self, made: socket.socket) -> None:
        if len(os.fsencode(self.path)) <= _ADDRESS_BYTES:
            made.connect(self.path)
            return
        folder = os.open(os.path.dirname(self.path) or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            made.connect(f"/proc/self/fd/{folder}/{os.path.basename(self.path)}")
        finally:
            os.close(folder)

    def _send(self, call: dict[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(call).encode() + b"\0")
        except BrokenPipeError:
            pass  # it may have answered before it hung up
        except OSError as error:
            raise UnreachableError(self.path, error.strerror or str(error)) from None

    def _receive(self) -> tuple[dict[str, Any], bool]:
        while (end := self._held.find(b"\0")) < 0:
            try:
                chunk = self._socket.recv(CHUNK)
            except TimeoutError:
                if self.deadline is not None:
                    raise WaitOverError from None
                raise UnreachableError(self.path, f"no answer within {self._answer_within:g} s") from None
            except OSError as error:
                raise UnreachableError(self.path, error.strerror or str(error)) from None
            if not chunk:
                raise UnreachableError(self.path, "it closed the connection")
            self._held += chunk
        message = json.loads(bytes(self._held[:end]))
        del self._held[: end + 1]
        if "error" in message:
            raise CallError(message["error"], message.get("parameters") or {})
        return message.get("parameters") or {}, bool(message.get("continues"))


def whole_job(client: Client, job: str) -> dict[str, Any]:
    """A job as `Show` tells it, with all its items: they come in pieces."""
    answer = client.call("Show", job=job)
    items: list[Any] = answer["job"]["items"]
    after: int = answer["next"]
    while after:
        piece = client.call("Show", job=answer["job"]["row"]["id"], offset=after)
        items += piece["job"]["items"]
        after = piece["next"]
    return {"job": answer["job"]}


def whole_list(client: Client, **parameters: Any) -> dict[str, Any]:
    """All jobs as `List` tells them: they come in pieces."""
    first, *pieces = client.stream("List", endless=False, **parameters)
    for piece in pieces:
        first["jobs"] += piece["jobs"]
        first["ended"] += piece["ended"]
    return first
