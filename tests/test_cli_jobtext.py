"""What `submit` makes of a job file: relative paths become absolute, the rest stays as it was written."""

import json
from pathlib import Path
from typing import Any

import pytest

from resumed.daemon import jobtext

FLOWS = {"flow": {"inputs": [{"name": "folder", "type": "path"}, {"name": "word", "type": "string"}]}}

CASES: dict[str, tuple[Any, Any]] = {
    "an item's source": (
        {"items": [{"id": "a", "source": "x/a"}]},
        {"items": [{"id": "a", "source": "/f/x/a"}]},
    ),
    "dots": ({"items": [{"id": "a", "source": "../a"}]}, {"items": [{"id": "a", "source": "/a"}]}),
    "a pattern": ({"items": {"glob": "*.mkv"}}, {"items": {"glob": "/f/*.mkv"}}),
    "a list file": ({"items": {"lines": "l.txt"}}, {"items": {"lines": "/f/l.txt"}}),
    "an input that is a path": (
        {"workflow": "flow@2", "inputs": {"folder": "d", "word": "d"}},
        {"workflow": "flow@2", "inputs": {"folder": "/f/d", "word": "d"}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_relative_path_is_made_absolute(case: str) -> None:
    """Paths are read from where the file lies."""
    before, after = CASES[case]
    raw, name = jobtext.with_absolute_paths(json.dumps(before).encode(), "j.json", "/f", FLOWS)

    assert (after, "j.json") == (json.loads(raw), name)


AS_THEY_ARE = {
    "absolute": b'{"items": [{"id": "a", "source": "/x"}]}',
    "spaced": b'{ "items" : [ "no-such-file" ] }',
    "no JSON": b'{"items": [',
    "a key twice": b'{"items": [{"id": "a", "source": "x", "source": "y"}]}',
    "a list": b"[]",
    "not UTF-8": b'{"items": ["\xff"]}',
    "wrong types": b'{"items": [{"id": 1, "source": false}], "inputs": "x"}',
    "inputs of an unknown workflow": b'{"workflow": "other", "inputs": {"folder": "d"}}',
    "a deep nest": b"[" * 5000,
}


@pytest.mark.parametrize("case", AS_THEY_ARE)
def test_the_rest_is_sent_as_it_was_written(case: str) -> None:
    """Bytes without a relative path, and bytes that only the daemon should judge, are not touched."""
    assert (AS_THEY_ARE[case], "j.json") == jobtext.with_absolute_paths(
        AS_THEY_ARE[case], "j.json", "/f", FLOWS
    )


def test_bare_name_of_a_file_beside_is_its_source(tmp_path: Path) -> None:
    """An item that is only a name means the file of that name beside the job file, when there is one."""
    (tmp_path / "a.txt").touch()
    raw, _ = jobtext.with_absolute_paths(b'{"items": ["a.txt", "b.txt"]}', "j.json", str(tmp_path), {})

    assert {"items": [{"id": "a.txt", "source": f"{tmp_path}/a.txt"}, "b.txt"]} == json.loads(raw)


TOML = {
    "untouched": (b'items = ["b"]', "j.toml", b'items = ["b"]', "j.toml"),
    "from a pipe": (b'items = ["b"]', "standard input", b'items = ["b"]', "standard input.toml"),
    "made absolute": (b'items = { glob = "*" }', "j.toml", b'{"items": {"glob": "/f/*"}}', "j"),
    "with a date": (b"deadline = 2026-01-01\n", "j.toml", b"deadline = 2026-01-01\n", "j.toml"),
    "with a date, from a pipe": (
        b"deadline = 2026-01-01\n",
        "standard input",
        b"deadline = 2026-01-01\n",
        "standard input.toml",
    ),
    "with a date, made absolute": (
        b'deadline = 2026-01-01T07:00:00Z\nitems = { lines = "l" }\n',
        "standard input",
        b'{"deadline": "2026-01-01T07:00:00+00:00", "items": {"lines": "/f/l"}}',
        "standard input",
    ),
    "faulty, from a pipe": (b"items = [", "standard input", b"items = [", "standard input.toml"),
    "faulty JSON from a pipe": (b' {"items": [', "standard input", b' {"items": [', "standard input"),
    "JSON from a pipe": (b"[]", "standard input", b"[]", "standard input"),
    "JSON by name alone": (b'items = ["b"]', "j.json", b'items = ["b"]', "j.json"),
    "TOML by name alone": (b'{"items": []}', "j.toml", b'{"items": []}', "j.toml"),
}


@pytest.mark.parametrize("case", TOML)
def test_toml_keeps_its_spelling_or_becomes_json(case: str) -> None:
    """The name tells the daemon which of the two spellings it gets; without one the text itself does."""
    raw, name, expected, called = TOML[case]

    assert (expected, called) == jobtext.with_absolute_paths(raw, name, "/f", {})
