"""What recovery says about a folder: sound, torn, damaged, too new, or unreadable."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults import world
from faults.seam import FailLook, Seam

from resumed.schemas import codec, line_io
from resumed.schemas.errors import DamagedError, NewerSchemaError, StoreError, UnreadableError
from resumed.schemas.snapshot import STATE_SCHEMA
from resumed.store import examine, files, fsck, journal, layout, log, recovery

JOB = "harbour-7"


def grow(folder: Path) -> None:
    """Nine lines: checkpoints at 4 and 7, history kept, 8 and 9 after the newer checkpoint."""
    opened = journal.open_for_writing(folder, recovery.load(folder, world.apply))
    for upto in (4, 7):
        world.append(opened, upto - opened.sequence)
        world.checkpoint(opened)
    world.append(opened, 2)
    opened.close()


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one job of nine lines."""
    root = tmp_path_factory.mktemp("grown")
    grow(world.admit(world.store(root)))
    return root


@pytest.fixture
def folder(grown: Path, ram: Path) -> Path:
    """A copy of that job's folder."""
    root = shutil.copytree(grown, ram / "store")
    return layout.Layout(root).job(JOB)


def change(path: Path, edit: Callable[[bytes], bytes]) -> None:
    """Edit a file's bytes."""
    path.write_bytes(edit(path.read_bytes()))


def checkpoint(folder: Path, sequence: int) -> Path:
    """The checkpoint of that sequence."""
    return next(folder.glob(f"{sequence}-*.checkpoint.json"))


def flip(offset: int) -> Callable[[bytes], bytes]:
    """Change one byte, counted from the end when negative."""

    def edit(raw: bytes) -> bytes:
        place = offset % len(raw)
        return raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]

    return edit


def starts(raw: bytes) -> list[int]:
    """Where the lines of a log begin, the seal's first."""
    return [0, *(one.end for one in log.lines(raw, 0))]


def spoil_line(number: int) -> Callable[[bytes], bytes]:
    """Change a byte in one line of a log; 0 is the seal."""
    return lambda raw: flip(starts(raw)[number] + 80)(raw)


def rename_checkpoint(folder: Path, sequence: int, edit: Callable[[bytes], bytes]) -> None:
    """Edit a checkpoint and give it the name that fits its new bytes."""
    path = checkpoint(folder, sequence)
    raw = edit(path.read_bytes())
    path.unlink()
    (folder / f"{sequence}-{codec.digest(raw)}.checkpoint.json").write_bytes(raw)


def respell(number: int, old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Edit the JSON of one line and give it the digest that fits."""

    def edit(raw: bytes) -> bytes:
        at = starts(raw)
        payload = raw[at[number] + 65 : at[number + 1] - 1]
        assert old in payload
        spelled = line_io.spell(payload.replace(old, new))[0]
        return raw[: at[number]] + spelled + raw[at[number + 1] :]

    return edit


def republish(folder: Path) -> Path:
    """Open the job and close it: lines 8 and 9 now stand in a log that was named with them."""
    journal.open_for_writing(folder, recovery.load(folder, world.apply)).close()
    return folder / "8.1.log"


def another(folder: Path) -> Path:
    """The folder of a second job that was grown in the same way."""
    place = layout.Layout(folder.parent.parent.parent)
    other = world.admit(place, "harbour-8")
    grow(other)
    return other


NEWEST = "8.0.log"
OWN, OTHER = (b'"state_schema":%d' % level for level in (STATE_SCHEMA, STATE_SCHEMA + 1))
AT, ABOVE = (b'"state_schema": %d' % level for level in (STATE_SCHEMA, STATE_SCHEMA + 1))
"""The present level and the one above, as a seal and as a checkpoint spell them."""
SOUND: dict[str, tuple[Callable[[Path], object], int, int]] = {
    # what was done to the folder: (how, lines found, lines torn)
    "nothing": (lambda f: None, 9, 0),
    "free space behind the lines": (lambda f: change(f / NEWEST, lambda r: r + bytes(4096)), 9, 0),
    "half a line behind": (lambda f: change(f / NEWEST, lambda r: r + r[starts(r)[2] : -40]), 9, 1),
    "half a line and zeros to the block": (
        lambda f: change(f / NEWEST, lambda r: (r + r[:100]).ljust(4096, b"\0")),
        9,
        1,
    ),
    "zeros and the end of a line": (lambda f: change(f / NEWEST, lambda r: r + bytes(200) + b'"}}\n'), 9, 1),
    "no newline at the end": (lambda f: change(f / NEWEST, lambda r: r[:-1]), 8, 1),
    "the last line cut short": (lambda f: change(f / NEWEST, lambda r: r[:-40]), 8, 1),
    "the last line rotten": (lambda f: change(f / NEWEST, flip(-20)), 8, 1),
    "a rotten line and free space": (
        lambda f: change(f / NEWEST, lambda r: flip(-20)(r) + bytes(4096)),
        8,
        1,
    ),
    "cut at a line's end (cannot be seen)": (
        lambda f: change(f / NEWEST, lambda r: r[: starts(r)[-2]]),
        8,
        0,
    ),
    "newer checkpoint rotten": (lambda f: change(checkpoint(f, 7), flip(200)), 9, 0),
    "newer checkpoint empty": (lambda f: change(checkpoint(f, 7), lambda r: b""), 9, 0),
    "newer checkpoint gone": (lambda f: checkpoint(f, 7).unlink(), 9, 0),
    "both checkpoints rotten": (lambda f: [change(checkpoint(f, n), flip(9)) for n in (4, 7)], 9, 0),
    "history gone": (lambda f: (f / "1.1.log").unlink(), 9, 0),
    "history rotten": (lambda f: change(f / "1.1.log", spoil_line(2)), 9, 0),
    "a temp checkpoint with good bytes": (
        lambda f: shutil.copy(checkpoint(f, 4), f / f".99-{'0' * 64}.checkpoint.json.aa.tmp"),
        9,
        0,
    ),
    "a temp log": (lambda f: (f / ".10.0.log.0123456789ab.tmp").write_bytes(b"x"), 9, 0),
    "a file of somebody else's": (lambda f: (f / "notes.txt").write_text("mine"), 9, 0),
    "lines past a later log's seal": (lambda f: change(f / "5.0.log", lambda r: r + r[-400:]), 9, 0),
}


@pytest.mark.parametrize("case", SOUND)
def test_recovery_goes_on(case: str, folder: Path) -> None:
    """What a crash can leave, and what recovery does not need, stops no job; a torn tail is on record."""
    harm, lines, torn = SOUND[case]
    harm(folder)
    found = recovery.load(folder, world.apply)

    assert (lines, torn) == (found.sequence, len(found.torn))
    assert str(lines) == found.snapshot.state["last"]
    assert all(one.sequence == lines + 1 for one in found.torn)


DAMAGED: dict[str, tuple[Callable[[Path], object], str]] = {
    "a broken line before a good one": (lambda f: change(f / NEWEST, spoil_line(1)), "good one follows"),
    "a lost newline between two lines": (
        lambda f: change(f / NEWEST, lambda r: flip(starts(r)[2] - 1)(r)),
        "good one follows",
    ),
    "zeros before a good line": (
        lambda f: change(f / NEWEST, lambda r: r[: starts(r)[1]] + bytes(512) + r[starts(r)[2] :]),
        "good one follows",
    ),
    "newest log gone": (lambda f: (f / NEWEST).unlink(), "log from line 8 on is missing"),
    "needed log gone": (
        lambda f: [(f / "5.0.log").unlink(), change(checkpoint(f, 7), flip(9))],
        "log from line 5 on is missing",
    ),
    "no checkpoint holds and history is gone": (
        lambda f: [(f / "1.1.log").unlink(), *(change(checkpoint(f, n), flip(9)) for n in (4, 7))],
        "log from line 1 on is missing",
    ),
    "all logs gone": (lambda f: [one.unlink() for one in f.glob("*.log")], "is missing"),
    "a needed sealed log breaks off": (
        lambda f: [change(checkpoint(f, 7), flip(9)), change(f / "5.0.log", lambda r: r[: starts(r)[-3]])],
        "breaks off after line 6",
    ),
    "a needed sealed log rotten at its end": (
        lambda f: [change(checkpoint(f, 7), flip(9)), change(f / "5.0.log", spoil_line(3))],
        "breaks off after line 6",
    ),
    "bad first line of the newest log": (lambda f: change(f / NEWEST, spoil_line(0)), "first line"),
    "empty newest log": (lambda f: change(f / NEWEST, lambda r: b""), "first line"),
    "bad first line of the highest k": (lambda f: change(republish(f), spoil_line(0)), "first line"),
    "a line broken that the log was named with": (
        lambda f: change(republish(f), flip(-20)),
        "published with 9",
    ),
    "cut at the end of a line that the log was named with": (
        lambda f: change(republish(f), lambda r: r[: starts(r)[-2]]),
        "published with 9",
    ),
    "job.json changed": (lambda f: change(f / "job.json", flip(30)), "job.json"),
    "job.json gone": (lambda f: (f / "job.json").unlink(), "job.json is missing"),
    "job.json empty": (lambda f: change(f / "job.json", lambda r: b""), "job.json"),
    "the last line twice": (
        lambda f: change(f / NEWEST, lambda r: r + r[starts(r)[-2] :]),
        "holds line 9 where 10 belongs",
    ),
    "a line left out": (
        lambda f: change(f / NEWEST, lambda r: r[: starts(r)[1]] + r[starts(r)[2] :]),
        "holds line 9 where 8 belongs",
    ),
    "another job's log": (lambda f: shutil.copy(another(f) / NEWEST, f / NEWEST), "another job.json"),
    "another job's checkpoint": (
        lambda f: [(p := checkpoint(another(f), 7)), checkpoint(f, 7).unlink(), shutil.copy(p, f)],
        "another job.json",
    ),
    "another job's job.json": (
        lambda f: shutil.copy(another(f) / "job.json", f / "job.json"),
        "another job.json",
    ),
    "a checkpoint under another sequence": (
        lambda f: checkpoint(f, 7).rename(f / f"8-{checkpoint(f, 7).name[2:]}"),
        "holds sequence 7",
    ),
    "a checkpoint whose digest fits and whose text is none": (
        lambda f: rename_checkpoint(f, 7, lambda r: b"{}"),
        "schema level",
    ),
    "a seal for another line": (
        lambda f: change(f / NEWEST, respell(0, b'"seal":7', b'"seal":6')),
        "seals line 6",
    ),
    "a line of another chain": (
        lambda f: change(f / NEWEST, respell(2, b'"previous":"', b'"previous":"0')),
        "does not continue",
    ),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_recovery_finds_damage(case: str, folder: Path) -> None:
    """Bytes that no crash can leave are damage; the reason names the job, and the folder is not touched."""
    harm, reason = DAMAGED[case]
    harm(folder)
    before = contents(folder)
    with pytest.raises(DamagedError) as raised:
        recovery.load(folder, world.apply)

    assert reason in str(raised.value)
    assert JOB in str(raised.value)
    assert before == contents(folder)
    assert any(one.fatal and one.job == JOB for one in examine.job(folder, world.apply))


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


LATER = {
    "checkpoint": lambda f: rename_checkpoint(f, 7, lambda r: r.replace(AT, b'"mood": "calm",\n  ' + ABOVE)),
    "log": lambda f: change(f / NEWEST, respell(0, OWN, b'"mood":"calm",' + OTHER)),
}


@pytest.mark.parametrize("case", LATER)
def test_newer_schema_is_never_fallen_back_from(case: str, folder: Path) -> None:
    """What verifies but was written by a later release sets the job aside, though older files would load."""
    LATER[case](folder)
    before = contents(folder)
    with pytest.raises(NewerSchemaError) as raised:
        recovery.load(folder, world.apply)

    assert (STATE_SCHEMA + 1, STATE_SCHEMA) == (raised.value.level, raised.value.known)
    assert before == contents(folder)


def test_read_error_is_no_verdict(folder: Path) -> None:
    """Whichever look fails, recovery says unreadable: it cuts nothing and falls back from nothing."""
    with Seam() as seam:
        recovery.load(folder, world.apply)
    for at in range(seam.looks):
        with Seam(FailLook(at, 5)) as failing, pytest.raises(UnreadableError) as raised:
            recovery.load(folder, world.apply)

        assert failing.hit
        assert 5 == raised.value.errno
    assert [] == seam.calls


def small(root: Path) -> Path:
    """A job of three lines, two of them in the log that is being written."""
    folder = world.admit(world.store(root))
    opened = journal.open_for_writing(folder, recovery.load(folder, world.apply))
    world.append(opened, 1)
    world.checkpoint(opened)
    world.append(opened, 1)
    opened.close()
    return folder


def flips(folder: Path) -> Iterator[tuple[Path, int]]:
    """Every byte of every file."""
    for path in sorted(folder.iterdir()):
        for offset in range(path.stat().st_size):
            yield path, offset


def test_every_flipped_byte_is_found_or_harmless(ram: Path) -> None:
    """One changed byte anywhere never gives another snapshot: it is found, or nothing is lost by it."""
    folder = small(ram / "store")
    sound = recovery.load(folder, world.apply)
    found = {"found": 0, "torn": 0, "harmless": 0}
    for path, offset in flips(folder):
        raw = path.read_bytes()
        path.write_bytes(flip(offset)(raw))
        try:
            loaded = recovery.load(folder, world.apply)
        except (DamagedError, NewerSchemaError):
            verdict = "found"
        else:
            verdict = "torn" if loaded.torn else "harmless"
            if verdict == "torn":
                assert (3, 2) == (loaded.torn[-1].sequence, loaded.sequence), (path.name, offset)
            else:
                assert sound.snapshot == loaded.snapshot, (path.name, offset)
        if offset % 23 == 0:
            assert [] != [*examine.job(folder, world.apply)], (path.name, offset)
        found[verdict] += 1
        path.write_bytes(raw)

    assert all(found.values()), found


WRONG = {
    # C27: (which line of the newest log, what stands there, what stands there instead)
    "text for a number": (2, b'"sequence":9', b'"sequence":"9"'),
    "a fraction for a number": (2, b'"sequence":9', b'"sequence":9.0'),
    "a bool for a number": (2, b'"epoch":1', b'"epoch":true'),
    "a number too large": (2, b'"epoch":1', b'"epoch":9007199254740993'),
    "null for a number": (2, b'"epoch":1', b'"epoch":null'),
    "NaN": (2, b'"epoch":1', b'"epoch":NaN'),
    "a key twice": (2, b'"epoch":1', b'"epoch":1,"epoch":1'),
    "an unknown key": (2, b'"epoch":1', b'"epoch":1,"epochs":1'),
    "an unknown key inside": (2, b'"rule":"count"', b'"rule":"count","rules":1'),
    "a missing key": (2, b'"epoch":1,', b""),
    "an object for text": (2, b'"by":"author"', b'"by":{}'),
    "a list for an object": (2, b'"state":{"last":"9","text":"\\"\\""}', b'"state":[]'),
    "text for a list": (2, b'"entries":[', b'"entries":"","x":['),
    "a lone surrogate": (2, b'"by":"author"', b'"by":"\\ud800"'),
    "NUL in text": (2, b'"by":"author"', b'"by":"\\u0000"'),
    "a date that is none": (2, b'"boot":"6f', b'"boot":6,"x":"6f'),
    "a level as text": (0, OWN, b'"state_schema":"1"'),
    "a level as a fraction": (0, OWN, b'"state_schema":1.0'),
    "a level of zero": (0, OWN, b'"state_schema":0'),
    "a bool for a seal": (0, b'"seal":7', b'"seal":true'),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_value_in_stored_state_is_refused(case: str, folder: Path) -> None:
    """C27: a value of the wrong type is damage even where its digest fits; nothing is coerced."""
    number, old, new = WRONG[case]
    change(folder / NEWEST, respell(number, old, new))
    with pytest.raises(DamagedError):
        recovery.load(folder, world.apply)


def test_false_in_quotes_is_no_bool(folder: Path) -> None:
    """C27: `"false"` under a yes-or-no field of a checkpoint does not mean yes; the field is named."""
    edit = (b'"kind": "job"', b'"kind": "job",\n          "repeatable": "false"')
    rename_checkpoint(folder, 7, lambda raw: raw.replace(*edit))
    with pytest.raises(DamagedError) as raised:
        recovery.load(folder, world.apply)

    assert "expected bool, got string @ $.snapshot.contract.steps[0].repeatable" in str(raised.value)


def test_line_quoted_in_a_job_is_not_taken_for_one(tmp_path: Path) -> None:
    """A torn line whose text quotes a good log line is torn, not damage: quotes are escaped in it."""
    folder = world.admit(world.store(tmp_path))
    quoted = (folder / "1.0.log").read_bytes().decode().splitlines()[1]
    opened = journal.open_for_writing(folder, recovery.load(folder, world.apply))
    line = world.next_line(2, opened.digest, quoted.replace('"', '\\"'))
    raw = line_io.spell_line(line)[0]
    path = folder / "1.1.log"
    change(path, lambda r: r[: starts(r)[-1]] + b"\0" * 64 + raw[64:])
    found = recovery.load(folder, world.apply)

    assert (1, 1) == (found.sequence, len(found.torn))
    opened.close()


def test_torn_tail_is_repeated_until_it_is_cleared(folder: Path) -> None:
    """What was cut stays on record in every later seal; only the owner's word ends that."""
    change(folder / NEWEST, flip(-20))
    opened = journal.open_for_writing(folder, recovery.load(folder, world.apply))
    world.append(opened, 2)
    opened.rotate("a test")
    opened.close()
    kept = recovery.load(folder, world.apply)
    again = journal.open_for_writing(folder, kept)
    again.torn = ()
    world.append(again, 1)
    again.rotate("cleared")
    again.close()

    assert [9] == [one.sequence for one in kept.torn]
    assert () == recovery.load(folder, world.apply).torn
    assert "8.0.log" == kept.torn[0].log


def test_peek_reads_the_admission_alone(folder: Path) -> None:
    """Whose a job is can be told although its logs are damaged."""
    change(folder / NEWEST, spoil_line(0))

    assert world.admission_of(JOB) == recovery.peek(folder)


def test_law_that_refuses_a_line_is_damage(folder: Path) -> None:
    """A line that the law cannot apply sets this job aside, and no other."""

    def refuse(snapshot: object, line: object) -> recovery.Snapshot:
        raise ValueError("item 'x' is out of order")

    with pytest.raises(DamagedError, match=r"line 8 .* out of order"):
        recovery.load(folder, refuse)


def test_absent_folder_is_no_verdict(tmp_path: Path) -> None:
    """A folder that is not there is unreadable, not damaged."""
    with pytest.raises(UnreadableError):
        recovery.load(tmp_path / "nobody", world.apply)


def test_highest_k_counts(folder: Path) -> None:
    """Of equal first sequences the highest `k` counts, by number and not by text."""
    raw = (folder / NEWEST).read_bytes()
    for k in (2, 10, 9):
        (folder / f"8.{k}.log").write_bytes(raw if k == 10 else b"spoilt")

    assert (8, 10) == ((found := recovery.load(folder, world.apply)).first, found.k)
    assert 11 == files.listing(folder).next_k(8)


def test_fsck_agrees_with_recovery(grown: Path) -> None:
    """A store that loads is sound; fsck changes nothing and says so of every file."""
    with Seam() as seam:
        report = fsck.check(grown, world.apply)

    assert (True, 1, []) == (report.sound, report.jobs, seam.calls)
    assert issubclass(DamagedError, StoreError)
