"""`resumectl logs -f`: each byte is printed once, whatever becomes of the daemon meanwhile."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from resumed.daemon import pieces, waiting
from resumed.daemon.client import UnreachableError
from resumed.daemon.screen import Screen


def piece(item: str, start: int, text: str) -> dict[str, Any]:
    """An answer of a stream: a piece that begins at `start`."""
    raw = text.encode()
    return {"item": item, "content": base64.b64encode(raw).decode(), "next": start + len(raw), "ended": False}


class Daemon:
    """Answers of one life of the daemon; at their end it goes away, or the stream is over."""

    deadline = None

    def __init__(self, *answers: dict[str, Any], dies: bool = False) -> None:
        self._answers = answers
        self._dies = dies

    def stream(self, method: str, **_: Any) -> Iterator[dict[str, Any]]:
        assert "Log" == method
        yield from self._answers
        if self._dies:
            raise UnreachableError("/s", "it closed the connection")


def printed(
    monkeypatch: pytest.MonkeyPatch, item: str | None, *daemons: Daemon, as_json: bool = False
) -> None:
    lives = iter(daemons[1:])
    monkeypatch.setattr(waiting, "come_back", lambda *_: next(lives))
    pieces.follow_logs(Screen(as_json=as_json), daemons[0], "attic", item)  # type: ignore[arg-type]


def test_pieces_are_printed_as_they_come(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each item's words under its name; the job's own steps have theirs."""
    answers = [piece("", 0, "list\n"), piece("a", 0, "1\n"), piece("b", 0, "2\n"), piece("a", 2, "3\n")]
    printed(monkeypatch, None, Daemon(*answers))

    steps = f"== {pieces.STEPS}\nlist\n"
    assert f"{steps}== a\n1\n== b\n2\n== a\n3\n" == capfd.readouterr().out


def test_restart_of_the_daemon_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """After a restart the stream begins anew, and what was printed before is left out, to the byte."""
    before = Daemon(piece("a", 0, "one\n"), piece("a", 4, "tw"), dies=True)
    after = Daemon(piece("a", 0, "one\ntwo\n"), piece("a", 8, "three\n"), piece("b", 0, "new\n"))
    printed(monkeypatch, None, before, after)

    assert "== a\none\ntwo\nthree\n== b\nnew\n" == capfd.readouterr().out


def test_log_that_began_anew_is_printed_anew(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A log that was full and began anew is printed from its new beginning."""
    printed(monkeypatch, "a", Daemon(piece("a", 0, "long ago\n"), piece("a", 0, "new\n")))

    assert "long ago\nnew\n" == capfd.readouterr().out


def test_json_names_each_piece(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """With --json each piece is an object on a line, letters that were cut in two put together."""
    cut = [piece("a", 0, "\u00e9"), piece("a", 2, "x")]
    cut[0]["content"], cut[0]["next"] = base64.b64encode("\u00e9".encode()[:1]).decode(), 1
    cut[1]["content"], cut[1]["next"] = base64.b64encode("\u00e9x".encode()[1:]).decode(), 3
    printed(monkeypatch, "a", Daemon(*cut), as_json=True)

    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert "\u00e9x" == "".join(line["text"] for line in lines)
    assert {"a"} == {line["item"] for line in lines}


class Logs:
    """Whole logs, handed out as `Log` does: from an offset on, a negative one from the end."""

    def __init__(self, **logs: bytes) -> None:
        self.logs = logs

    def call(self, method: str, **asked: Any) -> dict[str, Any]:
        if method == "Show":
            items = [{"id": name, "tries": 1} for name in self.logs if name]
            return {"job": {"row": {"id": "attic"}, "items": items}, "next": 0}
        raw, offset = self.logs.get(asked["item"], b""), asked["offset"]
        start = max(0, len(raw) + offset) if offset < 0 else offset
        chunk = raw[start : start + 5000]
        content = base64.b64encode(chunk).decode()
        return {"item": asked["item"], "content": content, "next": start + len(chunk), "ended": not chunk}


LONG = b"".join(b"line %04d\n" % number for number in range(5000))
TAILS = {
    "one item, whole": ("a", 0, {"a": LONG}, LONG.decode()),
    "one item alone in its job, whole": (None, 0, {"a": b"1\n2\n"}, "== a\n1\n2\n"),
    "its last lines": ("a", 2, {"a": LONG}, "line 4998\nline 4999\n"),
    "several, short": (None, 0, {"a": b"1\n", "b": b"2\n"}, "== a\n1\n== b\n2\n"),
    "the job's own steps first": (None, 0, {"": b"0\n", "a": b"1\n"}, f"== {pieces.STEPS}\n0\n== a\n1\n"),
    "one said nothing": (None, 0, {"a": b"1\n", "b": b""}, "== a\n1\n"),
    "the last lines of each": (
        None,
        1,
        {"a": LONG, "b": b"2\n"},
        "== a (the last 1 lines)\nline 4999\n== b\n2\n",
    ),
    "no line's end": ("a", 1, {"a": b"1\n2"}, "2"),
}


@pytest.mark.parametrize("case", TAILS)
def test_logs_of_several_items_are_told_by_their_ends(case: str, capfd: pytest.CaptureFixture[str]) -> None:
    """One item's log is told whole, several by their last lines; what is left out is said."""
    item, lines, logs, expected = TAILS[case]
    pieces.print_logs(Screen(as_json=False), Logs(**logs), "attic", item, lines)  # type: ignore[arg-type]

    assert expected == capfd.readouterr().out


def test_long_lines_are_cut_at_a_line_s_beginning(capfd: pytest.CaptureFixture[str]) -> None:
    """A tail holds whole lines as far as there is one; a line longer than any tail is told by its end."""
    raw = b"x" * 20_000 + b"\n" + b"y" * 10_000 + b"\nlast\n"
    pieces.print_logs(Screen(as_json=False), Logs(a=raw), "attic", "a", 10)  # type: ignore[arg-type]
    whole = capfd.readouterr().out
    pieces.print_logs(Screen(as_json=False), Logs(a=b"z" * 40_000), "attic", "a", 10)  # type: ignore[arg-type]

    assert "y" * 10_000 + "\nlast\n" == whole
    assert "z" * pieces.TAIL_BYTES == capfd.readouterr().out
