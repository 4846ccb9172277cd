"""`docs/format.md` is whole and true: a reader written from it agrees with the product on every store."""

import ast
import json
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import format_reader as reader
import pytest
import stored
from faults import harbour
from test_store_upgrade import bring_up

from resumed.actors.machine.apply import apply
from resumed.schemas import codec
from resumed.schemas.errors import NewerSchemaError, StoreError
from resumed.schemas.snapshot import STATE_SCHEMA, Snapshot
from resumed.store import files, fsck, layout, names, quarantine, recovery

GOLDEN = Path(__file__).parent / "golden"
SEED = 13

# ---- every field has its line -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(stored.records()))
def test_every_stored_field_has_its_line(name: str) -> None:
    """The page names each record, and each field with its type and what its absence means; and no other."""
    assert not (said := stored.missing(name)), said


def test_page_has_no_record_that_is_not_stored() -> None:
    """What is stored no more has no section; what is read still has one."""
    named = {name for name in stored.sections() if name[0].isupper()}

    assert set(stored.records()) == named


def test_lines_on_changes_say_how_each_is_applied() -> None:
    """Section 6 tells of every field of `Changes`; the reader does the same."""
    section = stored.PAGE.read_text().split("## 6.")[1].split("## 7.")[0]
    fields = set(stored.rows(stored.records()["Changes"]))

    assert set() == {name for name in fields if f"`{name}`" not in section}, "docs/format.md, section 6"
    assert fields == {*reader.SET, *reader.ROWS}, "tests/format_reader.py, from section 6"


def test_page_says_the_present_levels() -> None:
    """The numbers on the page are those of this release."""
    text = stored.PAGE.read_text()

    assert f"This release writes level {STATE_SCHEMA}," in text
    assert f"`format` in `store.json`: {layout.FORMAT}," in text
    assert STATE_SCHEMA == reader.HIGHEST


def test_page_names_each_folder() -> None:
    """Section 2 has every folder of a store."""
    section = stored.PAGE.read_text().split("## 2.")[1].split("## 3.")[0]

    assert [] == [name for name in (*layout.FOLDERS, "lost") if f"`{name}/" not in section], "docs/format.md"


def test_reader_knows_nothing_but_the_page() -> None:
    """It imports the standard library only."""
    tree = ast.parse(Path(reader.__file__).read_text())
    found = {
        alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    found |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert found <= set(sys.stdlib_module_names)


# ---- the reader agrees ------------------------------------------------------------------------------------


def first_release(root: Path) -> Path:
    """The store of the first release; some of its jobs brought to the present level."""
    harbour.unpack_first(root)
    place = layout.Layout(root / "store")
    for job in ("running-1", "once-1", "report-1"):
        bring_up(place.job(job))
    return place.root


STORES: dict[str, Any] = {
    **{f"level {level}": lambda root, level=level: shutil.copytree(GOLDEN / f"level-{level}", root / "store")
       for level in range(1, STATE_SCHEMA + 1)},
    "first release": first_release,
    "every kind of file": lambda root: harbour.build(root / "store").root,
}  # fmt: skip


def said_by_reader(folder: Path) -> tuple[Any, ...]:
    """What the reader makes of a job."""
    try:
        job = reader.Job(folder)
    except reader.Damage:
        return ("damage",)
    except reader.Newer:
        return ("newer",)
    snapshot = codec.from_plain(job.snapshot, Snapshot, "the reader's snapshot")
    torn = [(one["log"], one["offset"], one["sequence"]) for one in job.torn]
    return job.sequence, job.digest, job.job, torn, snapshot


def said_by_product(folder: Path) -> tuple[Any, ...]:
    """What recovery makes of it."""
    try:
        found = recovery.load(folder, apply)
    except NewerSchemaError:
        return ("newer",)
    except StoreError:
        return ("damage",)
    torn = [(one.log, one.offset, one.sequence) for one in found.torn]
    return found.sequence, found.digest, found.job, torn, found.snapshot


@pytest.mark.parametrize("case", STORES)
def test_reader_agrees_on_every_job(case: str, ram: Path) -> None:
    """Sequence, digests, cut tails and the whole snapshot of each job are the same to both."""
    root = STORES[case](ram)
    found = reader.jobs(root)

    assert found
    for job, folder in found.items():
        assert said_by_product(folder) == said_by_reader(folder), job
        assert len(said_by_reader(folder)) == 5, job
        for path in (folder / "artifacts").iterdir() if (folder / "artifacts").exists() else ():
            assert path.read_bytes() == reader.artifact(folder, path.name)
    for entry in quarantine.entries(layout.Layout(root)):
        assert entry.reason == reader.small(root / "quarantine" / f"{entry.id}.reason.json")["reason"]
        assert said_by_product(entry.folder) == said_by_reader(entry.folder) == ("damage",)


@pytest.mark.parametrize("case", STORES)
def test_reader_agrees_on_every_small_file(case: str, ram: Path) -> None:
    """store.json, reasons, names and workers."""
    root = STORES[case](ram)
    record = layout.read(layout.Layout(root))
    assert record is not None
    assert codec.to_plain(record) == reader.small(root / "store.json")
    for path in (root / "names").iterdir():
        held = reader.kept(path)
        assert json.loads(names.read_file(path)) == held
        if "kind" in held:
            assert path.name == reader.name_of(held["kind"], held["uid"], held["value"])
        elif "how" in held:
            assert path.name == reader.name_of("id", 0, held["id"])
    for path in (root / "workers").glob("*.json"):
        assert reader.small(path)
    for path in (root / "rejected").glob("*.reason.json"):
        refused = path.with_name(path.name.removesuffix(".reason.json")).read_bytes()
        assert reader.small(path)["file"] == {"size": len(refused), "sha256": reader.digest(refused)}


def test_reader_agrees_on_a_later_level(ram: Path) -> None:
    """A job of a level above the page's is left alone by both."""
    assert (
        ("newer",)
        == said_by_reader(GOLDEN / "later" / "harbour-9")
        == said_by_product(GOLDEN / "later" / "harbour-9")
    )


def spoiled(place: layout.Layout, count: int) -> Any:
    """Seeded harm to files of jobs: a byte changed, a file cut, or gone; each undone before the next."""
    chance = random.Random(SEED)
    known = [
        path for folder in reader.jobs(place.root).values() for path in folder.iterdir()
        if files.parse_log(path.name) or files.parse_checkpoint(path.name) or path.name == "job.json"
    ]  # fmt: skip
    for _ in range(count):
        path = chance.choice(sorted(known))
        raw = path.read_bytes()
        at = chance.randrange(len(raw.rstrip(b"\0")) or 1)
        how = chance.choice(["flip", "flip", "cut", "gone", "swap"])
        other = chance.choice(sorted(known))
        rest = other.read_bytes()
        if how == "flip":
            path.write_bytes(raw[:at] + bytes([raw[at] ^ chance.randrange(1, 256)]) + raw[at + 1 :])
        elif how == "cut":
            os.truncate(path, at)
        elif how == "gone":
            path.unlink()
        else:
            path.write_bytes(rest)
            other.write_bytes(raw)
        yield {path.parent, other.parent}, (path.name, how, at)
        path.write_bytes(raw)
        other.write_bytes(rest)
        if path == other:
            path.write_bytes(raw)


def test_reader_agrees_on_what_is_damaged(ram: Path, faults_scale: float) -> None:
    """Changed, cut, lost and swapped files: both find the same jobs damaged, torn, or as they were."""
    place = harbour.build(ram / "store")
    said = set()
    for folders, what in spoiled(place, round(4000 * faults_scale)):
        for folder in folders:
            product = said_by_product(folder)
            said.add(product[0] if product[0] == "damage" else bool(product[3]))
            assert product == said_by_reader(folder), (folder.name, what)
    assert {"damage", True, False} == said
    assert fsck.check(place.root, apply).jobs == 3
