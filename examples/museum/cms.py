"""A small content system to publish to: pages with revisions over HTTP, SQLite behind it, faults on demand.

    cms.py --data FOLDER [--port N] [--deduplicate no] [--key-life S] [--token-file FILE] [--switch FAULT,...]

It prints its address as its first line and serves until it is killed. Each connection carries one request.

    PUT /pages/NAME               the body is one more revision of the page
    POST /pages/NAME              the body is a new page: NAME, or NAME-2, NAME-3 where it is taken
        Idempotency-Key: KEY      a repeat of the same request under one key is answered as the first was
        If-Match: "3", If-None-Match: *     only while the page is at that version, or not there
    GET /pages/NAME               the newest revision, with its version as ETag
    GET /keys/KEY                 what was written under a key: 200, or 404; kept for ever, also where
                                  deduplication has forgotten the key
    GET /admin/counts, /admin/pages, /admin/requests, /admin/switches     its own truth
    GET /admin/heard?KIND=N       returns once N requests of a kind (write, look_up, page) have come
    POST /admin/switch, /admin/clear, /admin/settings, /admin/release      faults (cms_switches.py)

An answer to a write: 201 and {"reference", "page", "revision", "key", "sha256"}; 202 while it is only queued;
409 a key that was used for another request; 412 another version; 401 without the token.
"""

import argparse
import json
import os
import socket
import struct
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from cms_shelf import NEVER, ConflictError, Receipt, Shelf, StaleError, Write
from cms_switches import Switch, Switches

MOST = 16 * 1024 * 1024
HEARD_WITHIN = 30.0


class Gone(Exception):  # noqa: N818 - not a fault of ours: this request ends here, unanswered
    """The connection was closed on purpose."""


class Cms(ThreadingHTTPServer):
    """The server, with its shelf and its switches."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, shelf: Shelf, token: str = "") -> None:
        super().__init__(("127.0.0.1", port), Conversation)
        self.shelf = shelf
        self.switches = Switches()
        self.token = token

    @property
    def address(self) -> str:
        """Where it is found."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A writer that has gone is no news; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError | Gone):
            super().handle_error(request, client_address)


class Conversation(BaseHTTPRequestHandler):
    """One request."""

    server: Cms
    protocol_version = "HTTP/1.1"
    connection: socket.socket

    def log_message(self, format: str, *args: Any) -> None:
        """The shelf keeps the record."""

    # ---- before the request is read -------------------------------------------------------------------

    def handle(self) -> None:
        """One request, unless a switch says that it is never read whole."""
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.close_connection = True
        if not self.server.switches.expect_early() or not self._cut_off():
            self.handle_one_request()

    def _cut_off(self) -> bool:
        """Whether a switch ended it before it was read."""
        words = self._peek()
        kind = self._kind(words[0], words[1]) if len(words) == 3 else ""
        switch = self.server.switches.take(kind, _named(words[1]), early=True) if kind else None
        if switch is None:
            return False
        left = switch.bytes if switch.fault == "reset_request" else 0
        while left > 0 and (read := self.connection.recv(left)):
            left -= len(read)
        self.server.shelf.note(kind, words[0], words[1], "", b"", "unread", switch.fault)
        self._reset() if switch.fault == "reset_request" else self._close()
        return True

    def _peek(self) -> list[str]:
        """The words of the request's first line, which stays unread."""
        head = b""
        while b"\r\n" not in head and len(head) < 4096:
            seen = self.connection.recv(4096, socket.MSG_PEEK)
            if len(seen) == len(head):
                break
            head = seen
        return head.split(b"\r\n")[0].decode("latin-1").split()

    @staticmethod
    def _kind(method: str, path: str) -> str:
        if method in ("PUT", "POST") and path.startswith("/pages/"):
            return "write"
        if method == "GET" and path.startswith("/keys/"):
            return "look_up"
        return "page" if method == "GET" and path.startswith("/pages/") else ""

    # ---- by method ------------------------------------------------------------------------------------

    def do_GET(self) -> None:
        """Reads."""
        self._answering(self._get)

    def do_PUT(self) -> None:
        """Writes one more revision."""
        self._answering(self._write)

    def do_POST(self) -> None:
        """Writes a new page, or turns a switch."""
        self._answering(self._admin if self.path.startswith("/admin/") else self._write)

    def _answering(self, do: Callable[[], None]) -> None:
        try:
            do()
        except (Gone, ConnectionError):
            pass

    def _get(self) -> None:
        place = urlsplit(self.path)
        if place.path.startswith("/admin/"):
            return self._truth(place.path.removeprefix("/admin/"), dict(parse_qsl(place.query)))
        kind, _, name = unquote(place.path).lstrip("/").partition("/")
        if kind not in ("pages", "keys") or not name:
            return self._say(404, {"error": f"there is nothing at {self.path}"})
        if not self._is_known():
            return self._say(401, {"error": "expected the token"})
        as_kind = "look_up" if kind == "keys" else "page"
        gate = self.server.switches.gate()
        switch = self.server.switches.take(as_kind, name if kind == "pages" else "")
        shelf = self.server.shelf
        key = name if kind == "keys" else ""
        shelf.note(as_kind, "GET", self.path, key, b"", "read", switch.fault if switch else "")
        if switch is not None and switch.fault == "fail_before":
            return self._say(switch.status, {"error": "switched off for a moment"})
        if kind == "pages":
            page = shelf.page(name)
            found = [page] if page else []
        else:
            found = shelf.by_key(name)
        if not found:
            return self._say(404, {"error": f"no {kind[:-1]} {name}"}, switch=switch, gate=gate)
        told = _told(found[0]) | {"writes": len(found)}
        if kind == "pages":
            told["body"] = found[0].body.decode(errors="replace")
        return self._say(200, told, {"ETag": f'"{found[0].revision}"'}, switch=switch, gate=gate)

    # ---- writing --------------------------------------------------------------------------------------

    def _write(self) -> None:
        body = self._body()
        place = unquote(urlsplit(self.path).path)
        name = _named(self.path)
        key = self.headers.get("Idempotency-Key", "")
        gate = self.server.switches.gate()
        switch = self.server.switches.take("write", name)
        fault = switch.fault if switch else ""
        refusal = self._refusal(name, place, switch)
        if refusal is not None:
            self.server.shelf.note("write", self.command, self.path, key, body, "refused", fault)
            return self._say(*refusal)
        asked = Write(self.command, self.path, name, self.command == "POST", key, body)
        late = switch.seconds if switch else 0.0
        try:
            receipt = self.server.shelf.write(
                asked,
                match=self._match(),
                fault=fault,
                apply_after=late if fault in ("apply_late", "queue") else 0.0,
                show_after=late if fault == "show_late" else 0.0,
            )
        except (ConflictError, StaleError) as error:
            self.server.shelf.note("write", self.command, self.path, key, body, "refused", fault)
            if isinstance(error, StaleError):
                return self._say(412, {"error": f"{name} is at another version"})
            return self._say(409, {"error": f"key {key} was used for another request"})
        status = 201 if receipt.revision else 202
        if fault == "fail_after":
            assert switch is not None
            return self._say(switch.status, {"error": "something went wrong"})
        headers = {"ETag": f'"{receipt.revision}"', "Location": f"/pages/{receipt.page}"}
        if receipt.repeated:
            headers["Idempotent-Replayed"] = "true"
        return self._say(status, _told(receipt), headers, switch=switch, gate=gate)

    def _refusal(self, name: str, place: str, switch: Switch | None) -> tuple[int, dict[str, Any]] | None:
        if not place.startswith("/pages/") or not name or "/" in name:
            return 404, {"error": f"there is nothing to write at {self.path}"}
        if not self._is_known():
            return 401, {"error": "expected the token"}
        if switch is not None and switch.fault in ("refuse", "fail_before"):
            return switch.status, {"error": "not accepted"}
        return None

    def _match(self) -> str:
        if self.headers.get("If-None-Match", "") == "*":
            return "none"
        match: str = self.headers.get("If-Match", "")
        return match

    def _is_known(self) -> bool:
        return not self.server.token or self.headers.get("Authorization") == f"Bearer {self.server.token}"

    def _body(self) -> bytes:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= MOST:
            self._say(413, {"error": "too large"})
            raise Gone
        body = self.rfile.read(length)
        if len(body) < length:
            raise Gone  # the writer went away in the middle: nothing was asked
        return body

    # ---- answers --------------------------------------------------------------------------------------

    def _say(
        self,
        status: int,
        told: dict[str, Any],
        headers: dict[str, str] | None = None,
        *,
        switch: Switch | None = None,
        gate: Any = None,
    ) -> None:
        """Answers, in the way that the switch has it."""
        fault = switch.fault if switch else ""
        if fault == "lose_reply":
            return self._close()
        if fault == "apply_late":
            self.connection.recv(1)  # returns when the writer has given up
            return self._close()
        if switch is not None and fault == "answer_late":
            gate.wait(None if switch.seconds == NEVER else switch.seconds)
        body = json.dumps(told).encode()
        lines = [f"HTTP/1.1 {status} {self.responses.get(status, ('',))[0]}"]
        given = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}
        lines += [f"{name}: {value}" for name, value in (given | (headers or {})).items()]
        answer = "\r\n".join([*lines, "", ""]).encode() + body
        if fault == "garble":
            answer = b"\xff\xfe" + bytes(reversed(answer))
        if switch is not None and fault == "reset_answer":
            self.connection.sendall(answer[: switch.bytes])
            return self._reset()
        self.connection.sendall(answer)
        return None

    def _close(self) -> None:
        """Ends the connection without a word."""
        self.connection.shutdown(socket.SHUT_RDWR)

    def _reset(self) -> None:
        """Ends the connection with RST: what was sent arrives, and then an error."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())

    # ---- its own truth, and the switches --------------------------------------------------------------

    def _truth(self, name: str, query: dict[str, str]) -> None:
        shelf = self.server.shelf
        if name == "counts":
            return self._say(200, dict(shelf.counts()))
        if name == "pages":
            return self._say(200, {"pages": shelf.pages()})
        if name == "requests":
            return self._say(200, {"requests": shelf.requests()})
        if name == "switches":
            return self._say(200, {"switches": self.server.switches.on()})
        if name == "heard":
            wanted = {kind: int(number) for kind, number in query.items()}
            return self._say(200 if self._heard(wanted) else 504, {})
        return self._say(404, {"error": f"there is nothing at {self.path}"})

    def _heard(self, wanted: dict[str, int]) -> bool:
        def there() -> bool:
            kinds = [each["kind"] for each in self.server.shelf.requests()]
            return all(kinds.count(kind) >= number for kind, number in wanted.items())

        with self.server.shelf.heard:
            return self.server.shelf.heard.wait_for(there, HEARD_WITHIN)

    def _admin(self) -> None:
        given = json.loads(self._body() or b"{}")
        name = self.path.removeprefix("/admin/")
        try:
            if name == "switch":
                self.server.switches.put(Switch.read(given))
            elif name == "clear":
                self.server.switches.clear()
            elif name == "settings":
                self._settings(given)
            elif name == "release":
                self._release(given)
            else:
                return self._say(404, {"error": f"there is nothing at {self.path}"})
        except ValueError as error:
            return self._say(400, {"error": str(error)})
        return self._say(200, {})

    def _release(self, given: dict[str, Any]) -> None:
        only = given.get("only", "")
        if set(given) - {"only"} or only not in ("", "writes", "answers"):
            raise ValueError('expected nothing, or only = "writes" or "answers"')
        if only != "answers":
            self.server.shelf.release()
        if only != "writes":
            self.server.switches.release()

    def _settings(self, given: dict[str, Any]) -> None:
        if unknown := set(given) - {"deduplicate", "key_life"}:
            raise ValueError(f"unknown keys: {', '.join(sorted(unknown))}")
        shelf = self.server.shelf
        shelf.deduplicates = bool(given.get("deduplicate", shelf.deduplicates))
        shelf.key_life = float(given.get("key_life", shelf.key_life))


def _named(path: str) -> str:
    """The page or key that a path names."""
    return unquote(urlsplit(path).path).lstrip("/").partition("/")[2]


def _told(receipt: Receipt) -> dict[str, Any]:
    return {
        "reference": receipt.reference,
        "page": receipt.page,
        "revision": receipt.revision,
        "key": receipt.key,
        "sha256": receipt.sha256,
    }


def main() -> None:
    """Serves until killed."""
    parser = argparse.ArgumentParser(description="A small content system, with faults on demand.")
    parser.add_argument("--data", type=Path, required=True, help="the folder of its file")
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    parser.add_argument("--deduplicate", choices=("yes", "no"), default="yes")
    parser.add_argument("--key-life", type=float, default=NEVER, metavar="SECONDS")
    parser.add_argument("--token-file", type=Path, help="who does not bear its content may not write or read")
    parser.add_argument(
        "--switch", type=Switch.parse, action="append", default=[], metavar="FAULT[,KEY=VALUE]"
    )
    given = parser.parse_args()
    shelf = Shelf(given.data / "pages.sqlite3")
    shelf.deduplicates = given.deduplicate == "yes"
    shelf.key_life = given.key_life
    token = given.token_file.read_text().strip() if given.token_file else ""
    server = Cms(given.port, shelf, token)
    for switch in given.switch:
        server.switches.put(switch)
    print(server.address, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
