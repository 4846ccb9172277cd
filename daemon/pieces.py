"""Bytes that the daemon hands out piece by piece: logs and outputs, as `resumectl` prints them."""

import base64
import codecs
import hashlib
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from resumed.schemas import control

from . import waiting
from .client import CallError, Client, whole_job
from .letters import clean
from .render import size

if TYPE_CHECKING:
    from .screen import Screen

STEPS = "(the job's own steps)"


TAIL = 10
"""Lines of each item when the logs of several are printed."""
TAIL_BYTES = 16 * 1024


def print_logs(screen: "Screen", client: Client, job: str, item: str | None, lines: int) -> int:
    """Prints the log of one item whole, or the last lines of all that were started, each under its name."""
    names = _started(client, job, item)
    lines = lines or (TAIL if item is None and len(names) > 1 else 0)
    for name in [*([""] if item is None else []), *names]:
        if lines:
            _print_tail(screen, client, job, name, lines, named=item is None)
        else:
            _print_whole(screen, client, job, name, named=item is None)
    return control.EXIT_DONE


def _chunks(client: Client, job: str, item: str, offset: int) -> Iterator[bytes]:
    """What is in a log from an offset on (a negative one counts from the end) until now."""
    while True:
        answer = client.call("Log", job=job, item=item, offset=offset)
        chunk, offset = base64.b64decode(answer["content"]), answer["next"]
        if not chunk:
            return
        yield chunk


def _print_whole(screen: "Screen", client: Client, job: str, item: str, *, named: bool) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in _chunks(client, job, item, 0):
        if named:
            _name(screen, item)
            named = False
        _print(screen, item, chunk, decoder.decode(chunk))


def _print_tail(screen: "Screen", client: Client, job: str, item: str, lines: int, *, named: bool) -> None:
    """The last lines of a log, as far as they stand in its last bytes; what is left out is said."""
    raw = b"".join(_chunks(client, job, item, -TAIL_BYTES))
    kept = raw.splitlines(keepends=True)[-lines:]
    if len(raw) == TAIL_BYTES and b"".join(kept) == raw:
        kept = kept[1:] or kept  # the first of them may be a piece of a line
    tail = b"".join(kept)
    if named and raw:
        _name(screen, item, "" if tail == raw and len(raw) < TAIL_BYTES else f" (the last {len(kept)} lines)")
    if raw:
        _print(screen, item, tail, tail.decode("utf-8", "replace"))


def _name(screen: "Screen", item: str, more: str = "") -> None:
    if not screen.as_json:
        print(f"== {clean(item) or STEPS}{more}", flush=True)


def _print(screen: "Screen", item: str, chunk: bytes, text: str) -> None:
    if screen.as_json:
        screen.show_json({"item": item, "text": text}, indent=None)
    else:
        screen.bytes(chunk, text)


def follow_logs(screen: "Screen", client: Client, job: str, item: str | None) -> int:
    """Prints what an item's programs, or those of all items, say as they say it, until nothing more comes."""
    read: dict[str, int] = {}
    decoders: dict[str, Any] = {}
    known: dict[str, int] = {}
    spoke = item

    def anew() -> None:
        # What was printed before the daemon went away comes again.
        known.update(read)

    asked = {"job": job, "item": item or "", "all": item is None}
    for answer in waiting.through_restarts(screen, client, "Log", anew, **asked):
        name, after, chunk = answer["item"], answer["next"], base64.b64decode(answer["content"])
        if name in known:
            chunk = chunk[max(0, known[name] - (after - len(chunk))) :] if after > known[name] else b""
            if after >= known[name]:
                del known[name]
        read[name] = after
        if not chunk:
            continue
        decoder = decoders.setdefault(name, codecs.getincrementaldecoder("utf-8")("replace"))
        if name != spoke:
            _name(screen, name)
            spoke = name
        _print(screen, name, chunk, decoder.decode(chunk))
    return control.EXIT_DONE


def _started(client: Client, job: str, item: str | None) -> list[str]:
    view = whole_job(client, job)["job"]
    names = [each["id"] for each in view["items"] if each["tries"] or each["id"] == item]
    if item is None:
        return names
    if item not in names:
        reason = f"job {view['row']['id']} has no item {item}"
        raise CallError(control.ERROR_NO_SUCH, {"kind": "item", "name": item, "reason": reason})
    return [item]


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
