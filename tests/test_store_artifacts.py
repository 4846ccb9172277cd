"""Artifacts: immutable bytes by their digest, durable before anything names them."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.seam import Fail, FailLook, Kill, Killed, Seam

from resumed.schemas import codec
from resumed.schemas.errors import CommitError, DamagedError, FaultyInputError, UnreadableError
from resumed.store import artifacts

RAW = b"a draft" * 1000
SHA = codec.digest(RAW)


def kept(folder: Path) -> list[str]:
    """The names in the folder's artifacts."""
    place = folder / "artifacts"
    return sorted(os.listdir(place)) if place.exists() else []


def test_artifact_is_its_bytes(tmp_path: Path) -> None:
    """What was put is read back; putting it again writes no second file."""
    assert SHA == artifacts.put(tmp_path, RAW)
    inode = artifacts.path(tmp_path, SHA).stat().st_ino
    assert SHA == artifacts.put(tmp_path, RAW)

    assert (RAW, [SHA]) == (artifacts.read(tmp_path, SHA), kept(tmp_path))
    assert inode == artifacts.path(tmp_path, SHA).stat().st_ino


def test_artifact_is_durable_before_it_is_told(tmp_path: Path) -> None:
    """File and folder are synced, and the artifacts folder's own name, before `put` returns."""
    with Seam() as seam:
        artifacts.put(tmp_path, RAW)

    assert ["make_folder", "sync_folder", "create", "pwrite", "sync_file", "rename_new", "sync_folder"] == (
        seam.names()
    )


def test_artifact_that_is_there_is_synced_again(tmp_path: Path) -> None:
    """A name that another process may have left unsynced is made durable before it is relied on."""
    artifacts.put(tmp_path, RAW)
    with Seam() as seam:
        artifacts.put(tmp_path, RAW)

    assert ["make_folder", "sync_folder", "sync_folder"] == seam.names()


def rot(path: Path) -> None:
    """Change the file's first byte."""
    path.write_bytes(b"A" + path.read_bytes()[1:])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "rotten": rot,
    "cut short": lambda path: path.write_bytes(RAW[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_artifact_is_never_handed_out(case: str, tmp_path: Path) -> None:
    """Bytes that fail their digest are damage, and are not replaced by a later put."""
    artifacts.put(tmp_path, RAW)
    DAMAGE[case](artifacts.path(tmp_path, SHA))
    with pytest.raises(DamagedError, match=SHA):
        artifacts.read(tmp_path, SHA)
    if case != "missing":
        with pytest.raises(DamagedError):
            artifacts.put(tmp_path, RAW)


def test_failed_read_is_no_verdict(tmp_path: Path) -> None:
    """A read error says unreadable, not damaged."""
    artifacts.put(tmp_path, RAW)
    for at in range(3):
        with Seam(FailLook(at, errno.EIO)) as seam, pytest.raises(UnreadableError):
            artifacts.read(tmp_path, SHA)
        assert seam.hit


def test_adopted_file_is_a_checked_copy(tmp_path: Path) -> None:
    """A worker's file is copied in when size and digest fit; the source stays; twice is once."""
    source = tmp_path / "out"
    source.write_bytes(RAW)
    for _ in range(2):
        artifacts.adopt(tmp_path, source, SHA, len(RAW))

    assert (RAW, RAW, [SHA]) == (source.read_bytes(), artifacts.read(tmp_path, SHA), kept(tmp_path))


OFFERS: dict[str, tuple[Callable[[Path], object], str, int]] = {
    "another size": (lambda p: p.write_bytes(RAW), SHA, len(RAW) + 1),
    "another digest": (lambda p: p.write_bytes(RAW[::-1]), SHA, len(RAW)),
    "nothing": (lambda p: None, SHA, len(RAW)),
    "a link": (lambda p: [(p.parent / "x").write_bytes(RAW), p.symlink_to("x")], SHA, len(RAW)),
    "a folder": (lambda p: p.mkdir(), SHA, len(RAW)),
    "a pipe": (os.mkfifo, SHA, 0),
    "a device": (lambda p: p.symlink_to("/dev/zero"), SHA, 0),
}


@pytest.mark.parametrize("case", OFFERS)
def test_offer_that_does_not_fit_is_refused(case: str, tmp_path: Path) -> None:
    """What is not the regular file it claims to be is the worker's fault; nothing is kept of it."""
    make, sha256, size = OFFERS[case]
    make(tmp_path / "out")
    with pytest.raises(FaultyInputError, match="cannot take"):
        artifacts.adopt(tmp_path, tmp_path / "out", sha256, size)

    assert [] == kept(tmp_path)


def test_file_that_grows_while_it_is_copied_is_refused(tmp_path: Path) -> None:
    """Only the bytes that were copied count, and they must be as many as were said."""
    source = tmp_path / "out"
    source.write_bytes(RAW)
    with Seam() as seam:
        seam.before("read_at", lambda *_: source.write_bytes(source.read_bytes() + b"x"))
        with pytest.raises(FaultyInputError):
            artifacts.adopt(tmp_path, source, SHA, len(RAW))

    assert [] == kept(tmp_path)


@pytest.mark.parametrize("name", ["", "..", "../../lock", "A" * 64, "a" * 63, f"{'a' * 64}\n"])
def test_name_that_is_no_digest_is_ours(name: str, tmp_path: Path) -> None:
    """No path is formed from anything but a digest."""
    with pytest.raises(ValueError, match="not a sha256"):
        artifacts.read(tmp_path, name)


def test_refusing_disk_keeps_nothing_half_made(tmp_path: Path) -> None:
    """A failed call leaves no artifact, or a whole one; never a temp file."""
    (tmp_path / "out").write_bytes(RAW)
    for at in range(7):
        for keep in (artifacts.put, lambda f, r: artifacts.adopt(f, tmp_path / "out", SHA, len(r))):
            folder = tmp_path / f"{at}-{id(keep)}"
            folder.mkdir()
            with Seam(Fail(at, errno.ENOSPC)) as seam:
                try:
                    keep(folder, RAW)
                except CommitError:
                    pass
            assert seam.hit
            assert kept(folder) in ([], [SHA])


def test_killed_put_is_put_again(tmp_path: Path) -> None:
    """A kill at any call leaves nothing that stops the same artifact from being kept afterwards."""
    for at in range(7):
        folder = tmp_path / str(at)
        folder.mkdir()
        with Seam(Kill(at, "after")), pytest.raises(Killed):
            artifacts.put(folder, RAW)
        artifacts.put(folder, RAW)

        assert RAW == artifacts.read(folder, SHA)
