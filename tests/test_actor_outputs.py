"""Accepted outputs, handed out piece by piece."""

from pathlib import Path

import pytest
from attrs import evolve
from faults.seam import Seam

from resumed.actors import outputs
from resumed.daemon import api_files
from resumed.schemas import codec, decisions, events, strict
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.errors import DamagedError, UnreadableError
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

    assert (4, b"") == api_files.read_piece(log, 4)
    assert ((1, b"ew\n"), (0, b"new\n")) == (api_files.read_piece(log, -3), api_files.read_piece(log, -99))
    assert (0, b"new\n") == api_files.read_piece(log, 5)


def by_reference(path: Path) -> Artifact:
    """The record of an output that was published there."""
    found = path.stat()
    return Artifact(
        name="card",
        sha256=codec.digest(RAW),
        size=len(RAW),
        path=str(path),
        device=found.st_dev & strict.MAX_INT,
        inode=found.st_ino & strict.MAX_INT,
    )


def test_output_by_reference_is_read_where_it_was_published(tmp_path: Path) -> None:
    """No copy is kept: pieces come from the published file, and are damage where it is gone or shorter."""
    place = tmp_path / "small"
    place.write_bytes(RAW)
    made = by_reference(place)
    assert RAW[5000:5100] == outputs.piece(tmp_path / "job", made, 5000, 100).content

    place.write_bytes(RAW[:-1])
    with pytest.raises(DamagedError, match="shorter"):
        outputs.piece(tmp_path / "job", made, len(RAW) - 10, 100)
    place.unlink()
    with pytest.raises(DamagedError, match="missing"):
        outputs.piece(tmp_path / "job", made, 0, 100)


@pytest.mark.parametrize("kind", ["file", "link"])
def test_nobody_is_handed_another_file_that_was_put_there(kind: str, tmp_path: Path) -> None:
    """Whoever may write to the place could name any file that the daemon can read: only its own is read."""
    place, secret = tmp_path / "small", tmp_path / "secret"
    place.write_bytes(RAW)
    made = by_reference(place)
    secret.write_bytes(bytes(len(RAW)))
    place.unlink()
    if kind == "file":
        secret.rename(place)
    else:
        place.symlink_to(secret)
    with pytest.raises((DamagedError, UnreadableError)):
        outputs.piece(tmp_path / "job", made, 0, 100)


def answered(folder: Path, size: int, reference: bool) -> events.Returned:
    """A handler's answer with an output that is staged to be published."""
    staged = decisions.Staged(destination="/srv/small/a", temp=".t", device=1, inode=2)
    (folder / "made").write_bytes(bytes(size))
    offer = decisions.Offer(
        name="card",
        sha256=codec.digest(bytes(size)),
        size=size,
        path=None if reference else str(folder / "made"),
        publish=staged,
        reference=reference,
    )
    answer = decisions.Answer(decided=decisions.Accepted(output=offer))
    return events.Returned(unit="a", epoch=1, number=1, answer=answer)


@pytest.mark.parametrize("reference", [False, True])
def test_only_a_copy_takes_place_in_the_store(reference: bool, tmp_path: Path) -> None:
    """By reference nothing is written; else the staged bytes are kept, held against their digest."""
    with Seam() as seam:
        made = outputs.keep(tmp_path, "job", answered(tmp_path, 100_000, reference))

    assert isinstance(made, events.Returned)
    assert made.output is not None
    assert ("/srv/small/a" if reference else "") == made.output.path
    assert ([] == seam.calls) == reference
    assert artifacts.path(tmp_path, made.output.sha256).exists() != reference


def offer_of(raw: bytes, name: str = "body") -> decisions.Offer:
    """Bytes on their way."""
    return decisions.Offer(name=name, sha256=codec.digest(raw), size=len(raw), text=raw.decode())


def answer_of(decided: decisions.Decided, unit: str = "", late: bool = False) -> events.Returned:
    """An answer with that decision."""
    answer = decisions.Answer(decided=decided)
    return events.Returned(unit=unit, epoch=2, number=1, answer=answer, late=late)


def test_what_an_effect_names_by_digest_is_kept_before_a_line_names_it(tmp_path: Path) -> None:
    """Bodies, what is shown and a target's answer become files, one for each in order, small ones too."""
    calls = tuple(
        decisions.Call(tool="t", arguments="{}", bodies=(offer_of(raw),), shown=offer_of(b"shown", "shown"))
        for raw in (b"one", b"two")
    )
    event = answer_of(decisions.Performing(calls=calls))
    assert outputs.is_to_keep(event)
    found = outputs.keep(tmp_path, "job", event)
    assert isinstance(found, events.Returned)

    assert not outputs.is_to_keep(found)
    assert ["body", "body", "shown", "shown"] == [each.name for each in found.kept]
    assert [b"one", b"two"] == [artifacts.read(tmp_path, each.sha256) for each in found.kept[:2]]
    assert {None} == {each.text for each in found.kept}
    response = answer_of(decisions.Landed(reference="r", response=offer_of(b"200")), "\x1fjob/t/1.0")
    answered = outputs.keep(tmp_path, "job", response)
    assert isinstance(answered, events.Returned)
    assert b"200" == artifacts.read(tmp_path, answered.kept[0].sha256)


def test_a_draft_travels_in_its_line(tmp_path: Path) -> None:
    """A draft is kept as the output that it may become: small ones in the record."""
    draft = decisions.Reviewing(draft=offer_of(b"a draft"), rule=ApprovalRule())
    found = outputs.keep(tmp_path, "job", answer_of(draft, "a"))
    assert isinstance(found, events.Returned)

    assert "a draft" == found.kept[0].text
    assert "a" == found.kept[0].provenance.item  # type: ignore[union-attr]  # it has one


def test_an_answer_without_bytes_has_none_to_keep(tmp_path: Path) -> None:
    """Most answers pass as they are; of a late one nothing is kept, and a faulty offer is its author's."""
    plain = answer_of(decisions.Landed(reference="r"))
    late = answer_of(decisions.Landed(reference="r", response=offer_of(b"200")), late=True)
    faulty = answer_of(decisions.Refused(reason="no", response=evolve(offer_of(b"200"), size=4)))

    assert not outputs.is_to_keep(plain)
    assert (plain, late) == (outputs.keep(tmp_path, "j", plain), outputs.keep(tmp_path, "j", late))
    assert isinstance(outputs.keep(tmp_path, "j", faulty), events.Raised)
