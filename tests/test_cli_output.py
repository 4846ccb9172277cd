"""What `output` and `show --contract` give: a file that replaces none, and the workflow as it was pinned."""

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from resumed.daemon import api_contract, keeping, letters, pieces, render_contract
from resumed.daemon.client import CallError
from resumed.daemon.screen import Screen
from resumed.schemas import control

RAW = b"some bytes\n" * 50


class FakeDaemon:
    """Hands out an output in pieces of 100 bytes; `digest` is what it says the whole has."""

    def __init__(self, digest: str = "") -> None:
        self.digest = digest or hashlib.sha256(RAW).hexdigest()

    def call(self, method: str, **asked: Any) -> dict[str, Any]:
        import base64

        assert method == "Output"
        chunk = RAW[asked["offset"] : asked["offset"] + 100]
        after = asked["offset"] + len(chunk)
        content = base64.b64encode(chunk).decode()
        ended = after == len(RAW)
        return {"content": content, "next": after, "ended": ended, "size": len(RAW), "sha256": self.digest}


def write(to: Path, digest: str = "") -> int:
    return pieces.print_output(Screen(as_json=False), FakeDaemon(digest), "attic", "a", str(to))  # type: ignore[arg-type]


def test_output_is_written_to_a_new_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole output stands under the name, and its size and digest are said."""
    assert 0 == write(tmp_path / "out")

    assert [("out", RAW)] == [(path.name, path.read_bytes()) for path in tmp_path.iterdir()]
    assert hashlib.sha256(RAW).hexdigest() in capsys.readouterr().out


def test_file_that_is_there_stays(tmp_path: Path) -> None:
    """No file is replaced, not even by the same bytes, and what may be typed instead is said."""
    (tmp_path / "out").write_text("mine")
    with pytest.raises(CallError) as caught:
        write(tmp_path / "out")

    assert (control.ERROR_REFUSED, "taken") == (caught.value.name, caught.value.parameters["code"])
    assert [f"resumectl output attic a -o {tmp_path}/out.2"] == caught.value.parameters["commands"]
    assert [("out", "mine")] == [(path.name, path.read_text()) for path in tmp_path.iterdir()]


def test_bytes_that_are_not_those_promised_get_no_name(tmp_path: Path) -> None:
    """An output that changed while it was read leaves nothing behind."""
    with pytest.raises(CallError, match="changed while it was read"):
        write(tmp_path / "out", digest="0" * 64)

    assert [] == list(tmp_path.iterdir())


def overtaken(path: Path) -> None:
    """Somebody takes the name while the bytes come."""
    with keeping.file(str(path)) as kept:
        kept.write(RAW)
        path.write_text("theirs")
        kept.publish()


def test_name_taken_meanwhile_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever took the name while the bytes came keeps it; also where there are no links."""
    for links in (True, False):
        if not links:
            monkeypatch.setattr(
                os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(errno.EPERM, "no"))
            )
        with pytest.raises(keeping.TakenError):
            overtaken(tmp_path / "out")

        assert [("out", "theirs")] == [(path.name, path.read_text()) for path in tmp_path.iterdir()]
        (tmp_path / "out").unlink()


def test_file_is_kept_where_there_are_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without links gets the file by a rename."""
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError(errno.EPERM, "no")))

    assert 0 == write(tmp_path / "out")
    assert [("out", RAW)] == [(path.name, path.read_bytes()) for path in tmp_path.iterdir()]


def test_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    """What hinders the writing is a refusal like any other."""
    with pytest.raises(CallError, match="No such file or directory"):
        write(tmp_path / "none" / "out")


# ---- contracts --------------------------------------------------------------------------------------------

DEFINITION = {
    "items": {"from": "glob", "glob": "{inputs.folder}/*"},
    "inputs": [{"name": "folder", "type": "path"}, {"name": "token", "private": True, "default": '"s3cret"'}],
    "steps": [
        {
            "name": "convert",
            "run": ["ffmpeg", "-i", "{source}", "a b"],
            "env_set": {"TOKEN": "s3cret"},
            "tries": 2,
        }
    ],
    "effects": [
        {
            "name": "put",
            "after": "convert",
            "target": "cms",
            "address": "https://cms",
            "send": ["send", "{outputs.convert}"],
            "irreversible": True,
            "approve": {"by": ["group:curators"], "quorum": 2},
        }
    ],
}
STEP = {
    "name": "convert",
    "kind": "item",
    "tries": 2,
    "timeout": 21600.0,
    "parallel": None,
    "repeatable": True,
}
ANSWER = {
    "job": "attic",
    "sha256": "ab" * 32,
    "contract": {
        "workflow": "x265", "version": 3, "description": "Smaller films.", "owner": "", "entry": "",
        "interpreter": "", "start": "start", "definition": json.dumps(DEFINITION),
        "steps": [{**STEP, "name": "start", "kind": "job"}, STEP],
    },
}  # fmt: skip


def test_contract_screen() -> None:
    """The workflow as it was admitted with: what runs, as a shell would take it, and within which limits."""
    assert [
        "attic keeps the workflow x265@3, as it was admitted with",
        "about      Smaller films.",
        f"digest     {'ab' * 32}",
        "starts at  start",
        """inputs     folder (path), token (string, default "s3cret")""",
        "items      from = glob, glob = {inputs.folder}/*",
        "",
        "step convert: each item, 2 tries of 6h00m, repeatable",
        "  run        ffmpeg -i '{source}' 'a b'",
        "  env_set    TOKEN = s3cret",
        "",
        "effect put: each item, after convert, to cms https://cms, approved by group:curators (2 of them)",
        "  send       send '{outputs.convert}'",
        "  irreversible True",
    ] == render_contract.contract_view(ANSWER, 100)


def test_secrets_of_a_contract_are_not_shown() -> None:
    """Values of environment variables and private defaults leave the daemon as nothing."""
    shown = api_contract._without_values(json.dumps(DEFINITION))

    assert "s3cret" not in shown
    assert {"TOKEN": api_contract.HIDDEN} == json.loads(shown)["steps"][0]["env_set"]
    assert "" == api_contract._without_values("")


@pytest.mark.parametrize("evil", ["\x1b[2J", "a\nb", "\u202egpj", "x" * 9000])
def test_hostile_contract_reaches_no_terminal(evil: str) -> None:
    """Whatever a workflow file says: nothing of it is obeyed."""
    steps = [{"name": "convert", "run": [evil], evil: evil}]
    effect = {"name": evil, "after": evil, "target": evil, "approve": {"by": [evil]}, evil: evil}
    definition = json.dumps(
        {"inputs": [{"name": evil}], "items": {evil: evil}, "steps": steps, "effects": [effect]}
    )
    contract = {**ANSWER["contract"], "description": evil, "definition": definition}  # type: ignore[dict-item]
    lines = render_contract.contract_view({**ANSWER, "contract": contract}, 10_000)

    assert [] == [line for line in lines if not line.isprintable()]
    assert all(letters.columns(line) < 1000 for line in lines)
