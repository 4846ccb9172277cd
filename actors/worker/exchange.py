"""One HTTP exchange: a request that goes out once, over a connection of its own, and whatever came back.

No redirect is followed, no proxy of the environment is used, certificates are always verified, and no more
is read than fits. The client (httpx) is loaded when a workflow first needs it: `pip install resumed[http]`.
"""

import importlib.util
import ssl
from typing import Any

import anyio
from attrs import field, frozen

from .programcalls import Request

MOST = 1024 * 1024
"""Bytes of an answer's body that are read; what is longer is cut, and known to be."""
AGENT = "resumed"


class NotBegunError(Exception):
    """Surely nothing of the request has left."""


class BrokenError(Exception):
    """There is no whole answer; `received` is what came of one."""

    def __init__(self, reason: str, received: "Answer | None" = None) -> None:
        super().__init__(reason)
        self.received = received


@frozen(kw_only=True)
class Answer:
    """What a target answered; `cut` when its body is longer than what was read."""

    status: int
    headers: tuple[tuple[str, str], ...] = field(factory=tuple)
    body: bytes = b""
    cut: bool = False

    def header(self, name: str) -> str:
        """The first header of that name; empty when there is none."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    def raw(self) -> bytes:
        """The answer as it is kept: its status, its headers, an empty line, its body."""
        head = [f"HTTP {self.status}", *(f"{name}: {value}" for name, value in self.headers)]
        return "\n".join(head).encode("utf-8", "replace") + b"\n\n" + self.body


def is_there() -> bool:
    """Whether requests can be made here at all."""
    return importlib.util.find_spec("httpx") is not None


def client(url: str, seconds: float) -> Any:
    """A client for one exchange; NotBegunError where there is none to be had."""
    try:
        import httpx
    except ImportError as error:
        raise NotBegunError(f"httpx cannot be loaded ({error}): pip install 'resumed[http]'") from None
    return httpx.AsyncClient(
        # No redirect leads from one to the other: the host's certificates are read only where they are used.
        verify=ssl.create_default_context() if url.startswith("https:") else False,
        trust_env=False,
        follow_redirects=False,
        # Half of it for the connection: whoever cannot be reached was surely not written to.
        timeout=httpx.Timeout(seconds, connect=seconds / 2),
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=0),
        headers={"User-Agent": AGENT, "Accept": "*/*", "Accept-Encoding": "identity"},
    )


async def exchange(request: Request, seconds: float) -> Answer:
    """The target's answer within `seconds`; NotBegunError or BrokenError when there is none."""
    received: list[Answer] = []
    with anyio.move_on_after(seconds):
        async with client(request.url, seconds) as made:
            return await _exchange(made, request, received)
    raise BrokenError(f"no answer within {seconds:g} s", received[-1] if received else None)


async def _exchange(made: Any, request: Request, received: list[Answer]) -> Answer:
    import httpx

    try:
        built = made.build_request(
            request.method, request.url, headers=request.headers, content=request.body or None
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, no connection was opened
        raise NotBegunError(f"no request can be made of it: {type(error).__name__}") from None
    try:
        answer = await made.send(built, stream=True)
        try:
            return await _read(answer, received)
        finally:
            await answer.aclose()
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise NotBegunError(_said(error, "cannot connect")) from None
    except httpx.HTTPError as error:
        raise BrokenError(
            _said(error, "the exchange broke off"), received[-1] if received else None
        ) from None


async def _read(answer: Any, received: list[Answer]) -> Answer:
    headers = tuple(answer.headers.multi_items())
    found = Answer(status=answer.status_code, headers=headers)
    received.append(found)
    body = bytearray()
    async for piece in answer.aiter_raw():
        body += piece[: MOST - len(body)]
        found = Answer(
            status=found.status, headers=headers, body=bytes(body), cut=len(body) == MOST and len(piece) > 0
        )
        received[:] = [found]
        if len(body) >= MOST:
            break
    return found


def _said(error: Exception, what: str) -> str:
    """An error's own words name hosts and numbers, never headers."""
    return f"{what}: {type(error).__name__}: {error}" if str(error) else f"{what}: {type(error).__name__}"
