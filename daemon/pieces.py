"""Bytes that the daemon hands out piece by piece: logs and outputs, as `resumectl` prints them."""

import base64
import codecs
import hashlib
import shlex
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from resumed.schemas import control

from .client import CallError, Client, whole_job
from .letters import clean
from .render import size

if TYPE_CHECKING:
    from .screen import Screen

LOOK_EVERY = 0.5
FINAL = ("completed", "failed", "canceled", "expired")


class _Log:
    """One item's log: how far it was read."""

    def __init__(self, job: str, item: str) -> None:
        self.item = item
        self._job = job
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self, client: Client) -> tuple[bytes, str, bool]:
        """What is new, as bytes and as text, and whether a try of the item is still under way."""
        answer = client.call("Log", job=self._job, item=self.item, offset=self._offset)
        self._offset = answer["next"]
        chunk = base64.b64decode(answer["content"])
        return chunk, self._decoder.decode(chunk), not answer["ended"]


def follow_logs(screen: "Screen", client: Client, job: str, item: str | None, follow: bool) -> int:
    """Prints the logs of one item, or of all that were started, each under its name."""
    known: dict[str, _Log] = {}
    spoke = item
    while True:
        row, started = _started(client, job, item)
        for name in started:
            known.setdefault(name, _Log(job, name))
        at_work = False
        for log in known.values():
            at_work |= log.item in started and _print_new(screen, client, log, spoke)
            spoke = spoke if item else log.item
        if not follow or (not at_work and (row["status"] in FINAL or item is not None)):
            return control.EXIT_DONE
        time.sleep(LOOK_EVERY)


def _print_new(screen: "Screen", client: Client, log: _Log, spoke: str | None) -> bool:
    """Prints all that is there now; true while a try of the item is under way."""
    while True:
        chunk, text, at_work = log.read(client)
        if not chunk:
            return at_work
        if screen.as_json:
            screen.show_json({"item": log.item, "text": text}, indent=None)
            continue
        if log.item != spoke:
            print(f"== {clean(log.item)}", flush=True)
            spoke = log.item
        screen.bytes(chunk, text)


def _started(client: Client, job: str, item: str | None) -> tuple[dict[str, Any], list[str]]:
    view = whole_job(client, job)["job"]
    names = [each["id"] for each in view["items"] if each["tries"] or each["id"] == item]
    if item is None:
        return view["row"], names
    if item not in names:
        reason = f"job {view['row']['id']} has no item {item}"
        raise CallError(control.ERROR_NO_SUCH, {"kind": "item", "name": item, "reason": reason})
    return view["row"], [item]


def print_output(screen: "Screen", client: Client, job: str, item: str, to: str) -> int:
    """Prints an item's accepted output, or writes it `to` a new file; it is checked against its sha256."""
    if to:
        return _write_output(screen, client, job, item, to)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    output, whole = _Output(client, job, item), bytearray()
    for chunk in output.chunks():
        if screen.as_json:
            whole += chunk
        else:
            screen.bytes(chunk, decoder.decode(chunk))
    if screen.as_json:
        screen.show_json({**output.known, "base64": base64.b64encode(whole).decode()})
    return control.EXIT_DONE


class _Output:
    """An accepted output: its bytes, and its sha256 and size once the first of them have come."""

    def __init__(self, client: Client, job: str, item: str) -> None:
        self._client = client
        self._asked = {"job": job, "item": item}
        self.known: dict[str, Any] = {}

    def chunks(self) -> Iterator[bytes]:
        """Piece after piece; CallError when they do not make the whole that was promised."""
        seen = hashlib.sha256()
        offset, ended = 0, False
        while not ended:
            answer = self._client.call("Output", offset=offset, **self._asked)
            chunk = base64.b64decode(answer["content"])
            seen.update(chunk)
            offset, ended = answer["next"], answer["ended"]
            self.known = {"sha256": answer["sha256"], "size": answer["size"]}
            yield chunk
        if seen.hexdigest() != self.known["sha256"]:
            reason = "the output changed while it was read: ask again"
            raise CallError(control.ERROR_UNKNOWN_OUTCOME, {"reason": reason})


def _write_output(screen: "Screen", client: Client, job: str, item: str, to: str) -> int:
    from . import keeping

    output = _Output(client, job, item)
    try:
        with keeping.file(to) as kept:
            for chunk in output.chunks():
                kept.write(chunk)
            kept.publish()
    except keeping.TakenError:
        command = shlex.join(["resumectl", "output", job, item, "-o", f"{to}.2"])
        refused = {"code": "taken", "reason": f"cannot write {to}: it is there", "commands": [command]}
        raise CallError(control.ERROR_REFUSED, refused) from None
    except OSError as error:
        refused = {"code": "file", "reason": f"cannot write {to}: {error.strerror}", "commands": []}
        raise CallError(control.ERROR_REFUSED, refused) from None
    said = f"{clean(to)}: {size(output.known['size'])}, sha256 {output.known['sha256']}"
    screen.show({"file": to, **output.known}, [said])
    return control.EXIT_DONE
