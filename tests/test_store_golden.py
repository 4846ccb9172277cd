"""Stored formats for ever: files of each level load as they did, and files of a later one are left alone.

The bytes under `golden/` are never edited; a change that breaks this test breaks stores that exist.
"""

import json
import shutil
from pathlib import Path

import pytest
from faults import world
from faults.seam import Seam

from resumed.schemas import codec, line_io, strict
from resumed.schemas.errors import NewerSchemaError
from resumed.schemas.snapshot import STATE_SCHEMA, Line, Seal
from resumed.store import (
    archive,
    artifacts,
    files,
    fsck,
    identities,
    layout,
    log,
    migration,
    names,
    quarantine,
    recovery,
)

GOLDEN = Path(__file__).parent / "golden"
LEVELS = tuple(range(1, STATE_SCHEMA + 1))
PRESENT = GOLDEN / f"level-{STATE_SCHEMA}"


@pytest.fixture(params=LEVELS, ids=lambda level: f"level-{level}")
def place(request: pytest.FixtureRequest, tmp_path: Path) -> layout.Layout:
    """A copy of the store of each level."""
    root = shutil.copytree(GOLDEN / f"level-{request.param}", tmp_path / "store")
    return layout.create(root, "another", world.moment(99))


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_store_is_sound(place: layout.Layout) -> None:
    """Every file of the store verifies today; the torn line that its job once had is still on record."""
    report = fsck.check(place.root, world.apply)

    assert [("harbour-7", "torn")] == [(one.job, one.code) for one in report.findings]
    assert (1, 1, 1) == (report.jobs, report.archived, report.set_aside)
    assert "store-1" == (layout.read(place) or pytest.fail("no store")).id


def test_job_loads_and_goes_on(place: layout.Layout) -> None:
    """The job has all its lines, from the checkpoint and from line 1 alike, and takes the next one."""
    folder = place.job("harbour-7")
    found = recovery.load(folder, world.apply)
    for one in files.listing(folder).checkpoints:
        (folder / str(one)).unlink()
    whole = recovery.load(folder, world.apply)
    opened, snapshot = migration.open_for_writing(folder, found, world.apply, world.moment(99))
    world.append(opened)
    opened.close()
    migrated = found.level != STATE_SCHEMA

    assert (7, 7, 7) == (found.sequence, found.checkpoint, whole.sequence)
    assert found.snapshot == whole.snapshot
    assert [("5.0.log", 7)] == [(torn.log, torn.sequence) for torn in found.torn]
    assert 7 + migrated == snapshot.sequence
    assert 8 + migrated == recovery.load(folder, world.apply).sequence


def test_everything_else_is_read(place: layout.Layout) -> None:
    """Archive, quarantine, artifacts, names and workers say what they said."""
    report = codec.digest(b"a long report")

    assert b"a long report" == artifacts.read(place.job("harbour-7"), report)
    assert ("pier-1",) == archive.ids(place)
    assert [("pier-2", "damaged")] == [(one.id, one.reason) for one in quarantine.entries(place)]
    assert "harbour-7" == json.loads(names.read(place.names, "key", 1000, "invoice-7") or b"")["job"]
    assert (("w-1",), True) == (identities.names(place), identities.gone(place, "w-1"))
    assert "not-json" == json.loads((place.rejected / "broken.json.reason.json").read_bytes())["code"]
    assert layout.taken(place, "pier-1")
    assert layout.taken(place, "pier-2")


def stored() -> list[Path]:
    """The files of the present level that hold records of the state schema."""
    kinds = ("*/harbour-7/*.log", "*/harbour-7/*.checkpoint.json", "*/harbour-7/job.json")
    return sorted(path for kind in kinds for path in (PRESENT / "jobs").glob(kind))


@pytest.mark.parametrize("path", stored(), ids=lambda path: path.name[:12])
def test_records_of_the_present_level_are_spelled_the_same_today(path: Path) -> None:
    """Reading and writing again gives the same bytes: no default, name or spelling has changed since.

    Was the change wanted, and no release wrote this level yet? Then `python tests/golden/make.py`.
    """
    raw = path.read_bytes()
    if path.name == "job.json":
        assert raw == line_io.spell_admission(line_io.read_admission(raw, "golden"))
    elif path.suffix == ".json":
        assert raw == line_io.spell_checkpoint(line_io.read_checkpoint(raw, "golden"))
    else:
        first, *rest = log.lines(raw, 0)
        again = codec.encode(codec.decode_own(first.payload, Seal, "golden"))
        assert first.payload == again
        for line in rest:
            if line_io.is_end(line.payload):
                assert raw.endswith(line_io.spell_end(*line_io.read_end(line.payload, "golden")))
                continue
            assert line.payload == codec.encode(codec.decode_own(line.payload, Line, "golden"))


def test_golden_job_uses_every_field() -> None:
    """The stored examples leave no field of the snapshot at its default, so none can change unnoticed."""
    path = next((PRESENT / "jobs").glob("*/harbour-7/1.*.log"))
    line = strict.parse_own([*log.lines(path.read_bytes(), 0)][1].payload, "golden")
    fields = {field.name for field in recovery.Snapshot.__attrs_attrs__} - {"sequence"}

    assert fields == set(line["opening"])


LATER = GOLDEN / "later" / "harbour-9"
LATER_SAID = f"written by schema {STATE_SCHEMA + 1}, this daemon reads up to {STATE_SCHEMA}"


def test_folder_of_a_later_level_is_listed_and_left_alone(place: layout.Layout) -> None:
    """A job that a later release wrote, unknown fields and all, is named as newer and kept byte for byte."""
    folder = place.job("harbour-9")
    shutil.copytree(LATER, folder)
    before = contents(folder)
    with Seam() as seam:
        with pytest.raises(NewerSchemaError, match=LATER_SAID):
            recovery.load(folder, world.apply)
        with pytest.raises(NewerSchemaError):
            recovery.peek(folder)
        report = fsck.check(place.root, world.apply)
    moved = quarantine.set_aside(place, "harbour-9", "newer", "a later schema", world.moment(99))

    assert [] == seam.calls
    assert {"newer"} == {one.code for one in report.findings if one.job == "harbour-9"}
    assert before == contents(moved) == contents(LATER)


def test_later_checkpoint_is_not_fallen_back_from(place: layout.Layout) -> None:
    """A newer checkpoint beside logs of this level sets the job aside: those logs are not the whole truth."""
    folder = place.job("harbour-7")
    later = next(LATER.glob("*.checkpoint.json")).read_bytes().replace(b'"sequence": 1', b'"sequence": 9')
    (folder / f"9-{codec.digest(later)}.checkpoint.json").write_bytes(later)
    with pytest.raises(NewerSchemaError):
        recovery.load(folder, world.apply)
