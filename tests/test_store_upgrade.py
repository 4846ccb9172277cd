"""The upgrade: a store that the first release wrote, by a real daemon that was killed twice, loads for ever.

`golden/first-release.tar.xz` is unpacked for each test; `first-release.json` says, in plain words, what that
release itself read from it. Neither is ever made again (`golden/first_release.py` tells how they were).
"""

import json
import shutil
from pathlib import Path
from typing import Any

import daemon_kit
import pytest
from attrs import evolve
from faults import harbour
from faults.seam import Kill, Killed, Seam
from golden.first_release import expected, told

from resumed.actors.machine.apply import apply
from resumed.daemon import check
from resumed.schemas import line_io
from resumed.schemas.errors import CommitError, DamagedError
from resumed.schemas.instant import Instant, later
from resumed.schemas.snapshot import STATE_SCHEMA, Checkpoint
from resumed.store import admission, files, fsck, journal, layout, log, migration, recovery

GOLDEN = Path(__file__).parent / "golden"
SAID: dict[str, Any] = json.loads((GOLDEN / "first-release.json").read_bytes())
OPEN = sorted(job for job, one in SAID["jobs"].items() if one["where"] == "jobs")
SHARED = "report-1", "running-1", "once-1", "pending-1"
"""With several checkpoints; cut off at work, without one; with a torn line on record; with line 1 alone."""


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store, as it lay there."""
    root = tmp_path_factory.mktemp("first")
    harbour.unpack_first(root)
    return root / "store"


@pytest.fixture
def place(unpacked: Path, ram: Path) -> layout.Layout:
    """A copy of it."""
    return layout.Layout(shutil.copytree(unpacked, ram / "store"))


def contents(root: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def when(found: recovery.Recovered) -> Instant:
    """A moment after the job's newest."""
    return later(found.snapshot.newest, 60)


def bring_up(folder: Path) -> recovery.Recovered:
    """Open the job for writing, as an actor does, and close it again; what it was before."""
    found = recovery.load(folder, apply)
    migration.open_for_writing(folder, found, apply, when(found))[0].close()
    return found


def test_store_of_the_first_release_says_what_it_said(unpacked: Path) -> None:
    """Every job loads, with the state, items and outputs that its own release read; nothing is written."""
    before = contents(unpacked)
    with Seam() as seam:
        found = expected(layout.Layout(unpacked))

    assert SAID == json.loads(json.dumps(found))
    assert [] == seam.calls
    assert before == contents(unpacked)


def test_store_of_the_first_release_is_clean(unpacked: Path) -> None:
    """fsck finds what a crash leaves, and nothing wrong."""
    report = fsck.check(unpacked, apply)

    assert check.CLEAN == check.verdict_of(report.findings)
    assert (len(OPEN), len(SAID["jobs"]) - len(OPEN), 1) == (report.jobs, report.archived, report.set_aside)


def test_start_changes_no_job(place: layout.Layout) -> None:
    """Opening the store, and reading every job, leaves each file of each job as it was."""
    before = contents(place.jobs), contents(place.archive), contents(place.quarantine)
    layout.create(place.root, "another", Instant(wall=0, boot="b", up=0))
    admission.clean(place)
    expected(place)

    assert before == (contents(place.jobs), contents(place.archive), contents(place.quarantine))


@pytest.mark.parametrize("job", OPEN)
def test_opening_migrates_with_one_line(job: str, place: layout.Layout) -> None:
    """The first opening for writing adds one line that carries the whole snapshot; then nothing is due."""
    folder = place.job(job)
    before = bring_up(folder)
    after = recovery.load(folder, apply)
    newest = [*files.listing(folder).newest_logs().values()][-1]
    raw = (folder / str(newest)).read_bytes()
    seal, end = log.read_seal(raw, "it")
    found = line_io.read_line(next(log.lines(raw, end)).payload, seal.state_schema, "it")

    assert (1, STATE_SCHEMA, STATE_SCHEMA) == (before.level, after.level, seal.state_schema)
    assert before.snapshot == found.opening
    assert ("migrate", "migration") == (found.entries[0].transition, found.entries[0].decision.rule)
    assert before.sequence + 1 == found.sequence == after.sequence
    expected_after = evolve(
        before.snapshot, sequence=after.sequence, last_transition="migrate", newest=after.snapshot.newest
    )
    assert expected_after == after.snapshot
    assert before.torn == after.torn
    assert check.CLEAN == check.verdict_of(fsck.check(place.root, apply).findings)
    assert after.sequence == bring_up(folder).sequence == recovery.load(folder, apply).sequence


def test_lines_before_a_migration_are_of_their_own_level(place: layout.Layout) -> None:
    """Lines that are copied keep their level; no log mixes two."""
    folder = place.job("running-1")
    bring_up(folder)
    levels = {}
    for name in files.listing(folder).newest_logs().values():
        raw = (folder / str(name)).read_bytes()
        levels[str(name)] = log.read_seal(raw, "it")[0].state_schema

    assert {"1.2.log": 1, "8.0.log": STATE_SCHEMA} == levels


@pytest.mark.parametrize("job", SHARED)
def test_replay_passes_through_a_migration(
    job: str, place: layout.Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a migration no migration code runs: neither for the checkpoint before it nor for the lines.

    job.json and the seals are read for themselves at every load.
    """
    folder = place.job(job)
    bring_up(folder)
    expected_after = recovery.load(folder, apply).snapshot
    steps = {(record, 1): dict for record in ("seal", "admission")}
    monkeypatch.setattr(line_io.migrations.migrate, "__kwdefaults__", {"steps": steps, "known": STATE_SCHEMA})

    assert expected_after == recovery.load(folder, apply).snapshot
    with pytest.raises(DamagedError, match="no migration of"):
        recovery.load(place.job("held-1"), apply)


@pytest.mark.parametrize("job", ["running-1", "pending-1"])
def test_chain_is_held_through_a_migration(job: str, place: layout.Layout) -> None:
    """The lines behind a migration are only passed, but they must be there and continue each other."""
    folder = place.job(job)
    bring_up(folder)
    base = recovery.load(folder, apply).checkpoint
    older = next(name for first, name in files.listing(folder).newest_logs().items() if first > base)
    raw = (folder / str(older)).read_bytes()
    first = log.read_seal(raw, "it")[1]
    (folder / str(older)).write_bytes(raw[: first + 90] + b"#" + raw[first + 91 :])

    with pytest.raises(DamagedError):
        recovery.load(folder, apply)


@pytest.mark.parametrize("job", SHARED)
def test_migration_killed_anywhere_is_made_again(job: str, place: layout.Layout, ram: Path) -> None:
    """A kill at any call leaves the job at one level or the other, whole; opened again it ends the same."""
    source = place.job(job)
    with Seam() as rehearsal:
        bring_up(Path(shutil.copytree(source, ram / "jobs" / "aa" / job)))
    wanted = recovery.load(ram / "jobs" / "aa" / job, apply).snapshot
    before = recovery.load(source, apply).snapshot
    seen = set()
    for number in range(len(rehearsal.calls)):
        for moment in ("before", "half", "after"):
            if moment == "half" and rehearsal.calls[number].name != "pwrite":
                continue
            shutil.rmtree(ram / "jobs")
            folder = Path(shutil.copytree(source, ram / "jobs" / "aa" / job))
            with Seam(Kill(number, moment)), pytest.raises(Killed):
                bring_up(folder)
            found = recovery.load(folder, apply)
            seen.add(found.level)

            assert found.snapshot == (before if found.level == 1 else wanted), rehearsal.calls[number]
            bring_up(folder)
            again = recovery.load(folder, apply)
            assert wanted == evolve(again.snapshot, newest=wanted.newest), rehearsal.calls[number]
    assert {1, STATE_SCHEMA} == seen


def test_no_commit_goes_before_the_migration(place: layout.Layout) -> None:
    """A line of this release never follows a snapshot of an earlier level."""
    folder = place.job("paused-1")
    opened = journal.open_for_writing(folder, recovery.load(folder, apply))
    with pytest.raises(ValueError, match="earlier schema level"):
        opened.append(b"x", opened.sequence + 1, "0" * 64)
    opened.close()

    assert SAID["jobs"]["paused-1"] == {"where": "jobs", **told(recovery.load(folder, apply))} | {
        "checkpoint": SAID["jobs"]["paused-1"]["checkpoint"]
    }


def test_refusing_disk_leaves_the_job_at_its_level(place: layout.Layout) -> None:
    """A migration that the disk refuses changes nothing that was there, and is tried again."""
    folder = place.job("running-1")
    with Seam() as seam:
        seam.fail_next("sync_data")
        with pytest.raises(CommitError):
            bring_up(folder)
    bring_up(folder)

    assert STATE_SCHEMA == recovery.load(folder, apply).level


def test_snapshot_too_large_for_a_line_is_an_artifact(
    place: layout.Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line then names the artifact that holds the snapshot; without that artifact nothing loads."""
    folder = place.job("report-1")
    monkeypatch.setattr(line_io, "MAX_LINE", 100_000)
    before = bring_up(folder)
    after = recovery.load(folder, apply)
    kept = {path.name for path in (folder / "artifacts").iterdir()}

    assert before.snapshot.items == after.snapshot.items
    assert check.CLEAN == check.verdict_of(fsck.check(place.root, apply).findings)
    newest = [*files.listing(folder).newest_logs().values()][-1]
    raw = (folder / str(newest)).read_bytes()
    line = line_io.read_line([*log.lines(raw, 0)][1].payload, STATE_SCHEMA, "it")
    assert None is line.opening
    assert line.opening_artifact in kept
    (folder / "artifacts" / line.opening_artifact).unlink()
    with pytest.raises(DamagedError, match="is missing"):
        recovery.load(folder, apply)


def checkpoint(opened: journal.Journal) -> None:
    """Commit one line and write a checkpoint, as an actor does."""
    found = recovery.load(opened.folder, apply)
    more = migration.line(found.snapshot, STATE_SCHEMA, found.digest, when(found))
    raw, digest = line_io.spell_line(evolve(more, opening=None))
    opened.append(raw, more.sequence, digest)
    opened.rotate("rotation")
    found = recovery.load(opened.folder, apply)
    made = Checkpoint(
        sequence=found.sequence,
        epoch=found.snapshot.epoch,
        previous=found.digest,
        state_schema=STATE_SCHEMA,
        code_version=found.snapshot.code_version,
        last_transition=found.snapshot.last_transition,
        job=found.job,
        torn=opened.torn,
        pinned=tuple(sorted(opened.pinned)),
        snapshot=found.snapshot,
    )
    opened.write_checkpoint(line_io.spell_checkpoint(made), found.sequence, prune_history=True)


def test_checkpoint_before_a_migration_stays(place: layout.Layout) -> None:
    """It is pinned, with the logs after it, over every later checkpoint and opening."""
    folder = place.job("report-1")
    pinned = recovery.load(folder, apply).checkpoint
    bring_up(folder)
    for _ in range(3):
        opened = migration.open_for_writing(
            folder, found := recovery.load(folder, apply), apply, when(found)
        )[0]
        checkpoint(opened)
        opened.close()
    found = recovery.load(folder, apply)
    sequences = [one.sequence for one in files.listing(folder).checkpoints]

    assert {pinned} == found.pinned
    assert [pinned, pinned + 3, pinned + 4] == sequences
    assert min(files.listing(folder).newest_logs()) == pinned + 1
    for one in files.listing(folder).checkpoints[1:]:
        (folder / str(one)).unlink()
    assert found.snapshot == recovery.load(folder, apply).snapshot


@pytest.mark.parametrize("backend", daemon_kit.LOOPS)
def test_daemon_goes_on_with_the_store_of_the_first_release(
    unpacked: Path, tmp_path: Path, backend: str
) -> None:
    """Today's daemon takes it up: what stood stands, what a person asks for is done, nothing is lost."""
    daemon = daemon_kit.Daemon(tmp_path, backend)
    shutil.copytree(unpacked, daemon.state)
    daemon.start()
    try:
        canceled = daemon.ask("cancel", "paused-1", "--reason", "the press is gone")
        assert 0 == canceled.returncode, canceled.stderr
        place = layout.Layout(daemon.state)
        daemon_kit.eventually(lambda: place.archived("paused-1").stat())
        listed = json.loads(daemon.ask("list", "-a", "--json").stdout)
        rows = {row["id"]: row for kind in ("jobs", "ended") for row in listed.get(kind, [])}
        shown = {job: row["status"] for job, row in rows.items()}
        output = daemon.ask("output", "report-1", "big-1")
    finally:
        daemon.end()
    ended = recovery.load(place.archived("paused-1"), apply)

    assert "canceled" == shown["paused-1"]
    assert {job: SAID["jobs"][job]["status"] for job in ("held-1", "once-1", "report-1")} == {
        job: shown[job] for job in ("held-1", "once-1", "report-1")
    }
    # What this one waited for has come, whenever the test is run: it goes on from where it stood.
    waited = rows["flow-1"]
    assert "quarantined" != waited["status"]
    assert (2, 1, 4) == (waited["done"], waited["held"], waited["total"])
    assert {job: one["status"] for job, one in SAID["jobs"].items() if one["where"] == "archive"} == {
        job: shown[job] for job, one in SAID["jobs"].items() if one["where"] == "archive"
    }
    assert "big 1\n" * 5000 == output.stdout
    assert STATE_SCHEMA == ended.level
    assert SAID["jobs"]["paused-1"]["items"][0] == told(ended)["items"][0]
    assert check.CLEAN == check.verdict_of(fsck.check(place.root, apply).findings)
