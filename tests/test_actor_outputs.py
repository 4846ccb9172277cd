"""Accepted outputs, handed out piece by piece."""

from pathlib import Path

import pytest
from faults.seam import Seam

from resumed.actors import outputs
from resumed.daemon import api_files
from resumed.schemas import codec
from resumed.schemas.errors import DamagedError
from resumed.schemas.job import Artifact
from resumed.store import artifacts

RAW = bytes(range(256)) * 400


def kept(folder: Path, form: str) -> Artifact:
    """The artifact, in its line or in a file."""
    raw = RAW if form == "file" else b"a short one"
    text = raw.decode() if form == "text" else None
    if form == "file":
        artifacts.put(folder, raw)
    return Artifact(name="card", sha256=codec.digest(raw), size=len(raw), text=text, base64=None)


@pytest.mark.parametrize("form", ["file", "text"])
def test_pieces_come_to_the_whole(form: str, tmp_path: Path) -> None:
    """Pieces from any offset on join to the bytes; size and sha256 are those of the record, not made anew."""
    made = kept(tmp_path, form)
    found, asked = b"", 0
    while asked < made.size:
        piece = outputs.piece(tmp_path, made, asked, 1000)
        assert (asked, made.size, made.sha256) == (piece.start, piece.size, piece.sha256)
        found += piece.content
        asked += len(piece.content)

    assert made.sha256 == codec.digest(found)
    assert b"" == outputs.piece(tmp_path, made, 10**9, 1000).content


def test_a_piece_reads_no_more_than_itself(tmp_path: Path) -> None:
    """A large output is not read whole for a piece of it."""
    made = kept(tmp_path, "file")
    with Seam() as seam:
        piece = outputs.piece(tmp_path, made, 5000, 100)

    assert RAW[5000:5100] == piece.content
    assert "read_all" not in seam.names()


def test_a_file_shorter_than_its_record_is_damage(tmp_path: Path) -> None:
    """A piece that is not there is never handed out as an end."""
    made = kept(tmp_path, "file")
    path = artifacts.path(tmp_path, made.sha256)
    path.chmod(0o600)
    path.write_bytes(RAW[:-1])
    with pytest.raises(DamagedError, match="shorter"):
        outputs.piece(tmp_path, made, len(RAW) - 10, 100)
    path.unlink()
    with pytest.raises(DamagedError, match="missing"):
        outputs.piece(tmp_path, made, 0, 100)


def test_a_log_that_began_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Whoever follows a log that was cut meanwhile goes on with what is there, not past it."""
    log = tmp_path / "log"
    log.write_bytes(b"new\n")

    assert (4, b"") == api_files._read_piece(log, 4)
    assert (0, b"new\n") == api_files._read_piece(log, 5)
