"""What the tests of effects of programs share: a workflow with one, its proposal, and errands about it."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen
from worker_kit import Desk

from resumed.schemas import frames
from resumed.schemas.decisions import Call, Offer, Performing
from resumed.schemas.job import Artifact, Item
from resumed.schemas.ledger import ERRAND, ErrandKind

KEY = "7f3a" * 16
STEP = """version = 1
inputs.page = { type = "string" }
[[step]]
name = "draft"
run = ["true"]
repeatable = true
"""


def flow(effect: str, steps: str = STEP) -> str:
    """A workflow file with one effect after its step."""
    return f'{steps}[[effect]]\nname = "publish"\ntarget = "cms"\n{effect}\n'


def argv(*words: str) -> str:
    """An argv list as TOML has it."""
    return json.dumps(list(words))


def artifact(offer: Offer) -> Artifact:
    """What the daemon keeps of an offer that travels in a frame."""
    return Artifact(
        name=offer.name, sha256=offer.sha256, size=offer.size, text=offer.text, base64=offer.base64
    )


def draft(text: str = "Harbour, 1906\n", name: str = "draft") -> Artifact:
    """What the step before made."""
    import hashlib

    raw = text.encode()
    return Artifact(name=name, sha256=hashlib.sha256(raw).hexdigest(), size=len(raw), text=text)


async def asked(made: Desk, step: str = "publish", **more: Any) -> frames.Returned:
    """The answer of an effect's step for an item with a draft and a page."""
    row = more.pop("row", None) or Item(id="i", ordinal=0, outputs=(draft(),))
    inputs = more.pop("inputs", '{"page": "harbour"}')
    answer = await made.run(step, row=row, inputs=inputs, **more)
    assert isinstance(answer, frames.Returned), answer
    return answer


async def proposed(made: Desk, **more: Any) -> Call:
    """The call that an effect's step asks for."""
    decided = (await asked(made, **more)).answer.decided
    assert isinstance(decided, Performing), decided
    (call,) = decided.calls
    return call


def given(call: Call, kind: ErrandKind = ErrandKind.SEND, **more: Any) -> frames.CallGiven:
    """The stored call as a worker is sent on an errand with it."""
    return evolve(
        frames.CallGiven(
            effect="i/publish/1.0",
            kind=kind,
            tool=call.tool,
            version=1,
            operation_key=KEY,
            fingerprint="f" * 64,
            arguments=call.arguments,
            unbound=call.unbound,
            bodies=tuple(artifact(body) for body in call.bodies),
            observed=call.observed,
            sources=call.sources,
            attempt=1,
        ),
        **more,
    )


async def errand(made: Desk, call: frames.CallGiven, number: int = 1, **more: Any) -> Any:
    """What a worker says that was sent on an errand; its whole answering frame where that is no answer."""
    answer = await made.run("publish", ERRAND + call.effect, number, row=None, call=call, **more)
    return answer.answer.decided if isinstance(answer, frames.Returned) else answer


@frozen
class Heard:
    """One request as a target got it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@frozen(kw_only=True)
class Says:
    """What a target answers: with `raw` these very bytes, after which it closes."""

    status: int = 201
    headers: dict[str, str] = field(factory=dict)
    body: bytes = b'{"reference": "harbour@1"}'
    raw: bytes | None = None


class Target:
    """An HTTP server that keeps what it hears, and answers what it is told to."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.heard: list[Heard] = []
        self.says = Says()


@contextmanager
def target() -> Iterator[Target]:
    """A target on this host, while the block lasts."""

    class Conversation(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """What was heard is kept in `heard`."""

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            made.heard.append(Heard(self.command, self.path, headers, body))
            self.close_connection = True
            if made.says.raw is not None:
                self.wfile.write(made.says.raw)
                return
            self.send_response(made.says.status)
            for name, value in made.says.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(made.says.body)))
            self.end_headers()
            self.wfile.write(made.says.body)

        do_GET = do_PUT = do_POST = _answer  # noqa: N815 - the server looks for these names

    with ThreadingHTTPServer(("127.0.0.1", 0), Conversation) as server:
        made = Target(f"http://127.0.0.1:{server.server_address[1]}")
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield made
        finally:
            server.shutdown()
            serving.join()


def free_port() -> int:
    """A port of this host at which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def secret_folder(folder: Path, **values: str) -> str:
    """A folder of credentials."""
    folder.mkdir(mode=0o700)
    for name, value in values.items():
        (folder / name).write_text(value)
        (folder / name).chmod(0o400)
    return str(folder)
