"""One HTTP exchange: what certainly did not leave, what may have, and what is never done on the way."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest
from calls_kit import Says, errand, flow, free_port, given, proposed, target
from worker_kit import contract, desk

from resumed.actors.worker import exchange
from resumed.actors.worker.exchange import Answer, BrokenError, NotBegunError
from resumed.actors.worker.programcalls import Request
from resumed.schemas import frames
from resumed.schemas.ledger import ERRAND

pytestmark = pytest.mark.anyio

# A key that is nobody's: it signs itself, for 127.0.0.1, until 2126.
PEM = """
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgM5Flh1m79NAC8lMg
a5gVs64V0heNK57H4JbjbZvpO2mhRANCAAS56XRH7ta130MaQ3l2FPj6WU38AC8O
raPikp43hQiIdOXyVkQLyeyCuphwmkJuVNG6lLKpl39cqVByP/iHT3KV
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBjzCCATagAwIBAgIUANN/8/F+KfDfPkvkBH265xCeFOswCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEzMDAzMDEyNVoYDzIxMjYxMTA2
MDMwMTI1WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAS56XRH7ta130MaQ3l2FPj6WU38AC8OraPikp43hQiIdOXyVkQLyeyC
uphwmkJuVNG6lLKpl39cqVByP/iHT3KVo2QwYjAdBgNVHQ4EFgQUcrZACU3ukOKo
6mMte2xEDF1Sf9UwHwYDVR0jBBgwFoAUcrZACU3ukOKo6mMte2xEDF1Sf9UwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0cAMEQC
IDen9aO3KGLSXCJMalxr+ORoeGHDDtbaBYSyNdtbp4dKAiBNUpihR8/nn7bwnZ+3
GgCoLnxzDPgnLRgUcG1dLyq1BA==
-----END CERTIFICATE-----
"""


@pytest.fixture
def anyio_backend() -> str:
    """A worker has one loop, whatever its daemon runs on."""
    return "asyncio"


@contextmanager
def listener(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port of this host; each connection to it is handed to `serve`, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    serve(connection)

        serving = threading.Thread(target=accept)
        serving.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            serving.join()


async def said(request: Request, seconds: float = 20.0) -> Answer | BrokenError | NotBegunError:
    """The answer, or the error that stands for it."""
    try:
        return await exchange.exchange(request, seconds)
    except (BrokenError, NotBegunError) as error:
        return error


async def test_nobody_listens() -> None:
    """Where no connection can be made, nothing has left."""
    found = await said(Request(method="PUT", url=f"http://127.0.0.1:{free_port()}/x", body=b"x"))

    assert isinstance(found, NotBegunError)


async def test_a_host_that_never_answers_was_not_written_to() -> None:
    """Where no connection comes about in time nothing has left: that is known, and not unknown."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, ExitStack() as full:
        # Its queue is full: what asks for a connection from here on hears nothing.
        for _ in range(4):
            waiting = full.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        found = await said(Request(method="PUT", url=f"http://127.0.0.1:{server.getsockname()[1]}/x"), 1.0)

    assert isinstance(found, NotBegunError)
    assert "ConnectTimeout" in str(found)


async def test_nobody_is_there_by_that_name() -> None:
    """A name that stands for nothing is no connection either."""
    assert isinstance(await said(Request(method="PUT", url="http://no-such-host.invalid/x")), NotBegunError)


async def test_a_certificate_that_nobody_vouches_for_is_not_written_to(tmp_path: Path) -> None:
    """The other end must prove who it is before anything of the request leaves."""
    (tmp_path / "pem").write_text(PEM)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")
    read: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        try:
            with context.wrap_socket(connection, server_side=True) as wrapped:
                read.append(wrapped.recv(4096))
        except (ssl.SSLError, ConnectionError):
            pass  # the client hung up: what is read is what counts

    with listener(serve) as port:
        found = await said(Request(method="PUT", url=f"https://127.0.0.1:{port}/x", body=b"secret"))

    assert isinstance(found, NotBegunError)
    assert "CERTIFICATE_VERIFY_FAILED" in str(found)
    assert b"" == b"".join(read)


async def test_silence_is_no_answer() -> None:
    """A request that was written and not answered in time may have landed."""
    heard = threading.Event()
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        heard.set()
        over.wait(20)

    with listener(serve) as port:
        found = await said(Request(method="PUT", url=f"http://127.0.0.1:{port}/x", body=b"x"), 0.5)
        over.set()

    assert heard.is_set()
    assert isinstance(found, BrokenError)
    assert ("no answer within 0.5 s", None) == (str(found), found.received)


async def test_a_reset_is_no_answer() -> None:
    """A connection that breaks once it is made leaves open what was read of the request."""

    def serve(connection: socket.socket) -> None:
        connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with listener(serve) as port:
        found = await said(Request(method="PUT", url=f"http://127.0.0.1:{port}/x", body=b"x" * 100_000))

    assert isinstance(found, BrokenError)


async def test_no_redirect_is_followed_and_no_proxy_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call was approved for is where it goes: neither a target nor the environment moves it."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    with target() as cms:
        cms.says = Says(status=308, headers={"Location": f"{cms.address}/other"}, body=b"")
        found = await said(Request(method="PUT", url=f"{cms.address}/x", body=b"x"))

        assert isinstance(found, Answer)
        assert (308, ["/x"]) == (found.status, [one.path for one in cms.heard])
        assert "identity" == cms.heard[0].headers["accept-encoding"]


async def test_an_endless_answer_is_cut() -> None:
    """No more is read than fits, and what was cut is known to be."""

    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        try:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b"x" * 65536)
        except OSError:
            pass  # the client has had enough

    with listener(serve) as port:
        found = await said(Request(method="GET", url=f"http://127.0.0.1:{port}/x"))

    assert isinstance(found, Answer)
    assert (200, exchange.MOST, True) == (found.status, len(found.body), found.cut)


async def test_a_stop_ends_an_exchange(tmp_path: Path) -> None:
    """An errand that waits for its target hears a stop, and answers nothing for it."""
    heard = threading.Event()
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        heard.set()
        over.wait(20)

    with listener(serve) as port:
        send = f"""
approve = false
[effect.send]
method = "PUT"
url = "http://127.0.0.1:{port}/x"
statuses = {{ landed = [201] }}
"""
        async with desk(tmp_path, contract(flow(send))) as made:
            call = given(await proposed(made))
            made.worker.send(made.frame("publish", ERRAND + call.effect, row=None, call=call))
            await anyio.to_thread.run_sync(heard.wait, 20)
            made.stop(ERRAND + call.effect)
            stopped = await made.heard()
            over.set()
            again = await errand(made, call, 2)

    assert isinstance(stopped, frames.Stopped)
    assert "Unsure" == type(again).__name__
