"""The watched folder: every file is claimed once, read once, and ends as a job or beside its reason."""

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from faults import world
from faults.seam import FailLook, Seam

from resumed.schemas import jobfile
from resumed.schemas.errors import FaultyInputError, UnreadableError
from resumed.store import durable, intake, layout

NOW = world.moment(0)


@pytest.fixture
def place(tmp_path: Path) -> layout.Layout:
    """An empty store."""
    return world.store(tmp_path / "store")


def drop(place: layout.Layout, name: str = "a.json", raw: bytes = b"{}") -> Path:
    """Put a file into the folder."""
    path = place.incoming / name
    path.write_bytes(raw)
    path.chmod(0o600)
    return path


def test_claimed_file_is_read_once_and_out_of_the_way(place: layout.Layout) -> None:
    """A claim takes the file out of the folder and says whose it is; finishing removes it."""
    path = drop(place, raw=b'{"id":"x"}')
    found = path.stat()
    claimed = intake.claim(place, "a.json")

    assert (b'{"id":"x"}', os.getuid(), found.st_mtime_ns) == (claimed.raw, claimed.uid, claimed.mtime)
    assert (found.st_dev, found.st_ino) == claimed.identity
    assert ((), ("a.json",)) == (intake.scan(place.incoming), intake.claimed(place))
    intake.finish(place, claimed)
    intake.finish(place, claimed)
    assert () == intake.claimed(place)


def test_names_of_unfinished_files_are_left_alone(place: layout.Layout) -> None:
    """Dot names, editors' and copies' temp names are nobody's job yet."""
    for name in (".a.json", "a.json~", "a.json.tmp", "a.json.part", ".a.json.swp", "b.json.reason.json"):
        drop(place, name)
    drop(place, "b.json")
    drop(place, "a")

    assert ("a", "b.json") == intake.scan(place.incoming)


def link(place: layout.Layout, path: Path) -> None:
    """A second name for a file."""
    path.unlink()
    (place.root / "other").write_bytes(b"{}")
    os.link(place.root / "other", path)


def replace(make: Callable[[Path], object]) -> Callable[[layout.Layout, Path], object]:
    """Something else in the file's place."""
    return lambda place, path: [path.unlink(), make(path)]


UNFIT: dict[str, tuple[Callable[[layout.Layout, Path], object], str]] = {
    "a link": (replace(lambda p: p.symlink_to("/etc/passwd")), "no regular file"),
    "a link to nothing": (replace(lambda p: p.symlink_to("nothing")), "no regular file"),
    "a folder": (replace(Path.mkdir), "no regular file"),
    "a pipe": (replace(os.mkfifo), "no regular file"),
    "two names": (link, "2 names"),
    "too large": (lambda _, p: p.write_bytes(bytes(jobfile.MAX_BYTES + 1)), "1048577 bytes"),
    "far too large": (lambda _, p: os.truncate(p, 2**40), "1099511627776 bytes"),
    "written by the group": (lambda _, p: p.chmod(0o620), "mode 0620"),
    "written by the world": (lambda _, p: p.chmod(0o602), "mode 0602"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_unfit_file_is_claimed_to_be_rejected(case: str, place: layout.Layout) -> None:
    """What is no plain file of one owner is refused with its reason, and never opened as something else."""
    make, reason = UNFIT[case]
    make(place, drop(place))
    with pytest.raises(FaultyInputError, match=reason) as raised:
        intake.claim(place, "a.json")
    assert (("a.json",), ()) == (intake.claimed(place), intake.scan(place.incoming))
    where = intake.reject(place, "a.json", {"code": "unfit", "reason": str(raised.value)}, NOW)

    assert (place.rejected / "a.json", ()) == (where, intake.claimed(place))
    assert "unfit" == json.loads((place.rejected / "a.json.reason.json").read_bytes())["code"]


CHANGES: dict[str, Callable[[Path], object]] = {
    "grows": lambda p: p.open("ab").write(b"x"),
    "shrinks": lambda p: os.truncate(p, 0),
    "changes": lambda p: [p.write_bytes(b"[]"), os.utime(p, ns=(1, 1))],
    "gets a second name": lambda p: (
        (p.parent.parent / "second").exists() or os.link(p, p.parent.parent / "second")
    ),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("case", CHANGES)
def test_file_that_changes_while_it_is_read_is_refused(case: str, place: layout.Layout) -> None:
    """The bytes read are those of one moment: the descriptor says the same before and after."""
    drop(place)
    with Seam() as seam:
        seam.before("read_at", lambda *_: CHANGES[case](place.claimed / "a.json"))
        with pytest.raises(FaultyInputError, match="changed while it was read"):
            intake.claim(place, "a.json")

    assert ("a.json",) == intake.claimed(place)


def test_file_that_is_gone_is_nobodys(place: layout.Layout) -> None:
    """A file that its owner took back before the claim is no error of the folder's."""
    with pytest.raises(FileNotFoundError):
        intake.claim(place, "a.json")
    assert None is intake.look(place, "a.json")


def test_second_file_of_a_name_waits_for_the_first(place: layout.Layout) -> None:
    """A claim replaces nothing: while the first is being admitted the second stays where it is."""
    drop(place, raw=b"1")
    first = intake.claim(place, "a.json")
    drop(place, raw=b"2")
    with pytest.raises(FileExistsError):
        intake.claim(place, "a.json")
    assert b"2" == (place.incoming / "a.json").read_bytes()
    intake.finish(place, first)

    assert b"2" == intake.claim(place, "a.json").raw


def test_failed_look_is_no_refusal(place: layout.Layout) -> None:
    """A read error leaves the file claimed, for the next try; it is not rejected."""
    drop(place)
    with Seam() as rehearsal:
        intake.claim(place, "a.json")
    for at in range(rehearsal.looks):
        with Seam(FailLook(at, errno.EIO)) as seam, pytest.raises(UnreadableError):
            intake.read(place, "a.json")
        assert seam.hit
    assert b"{}" == intake.read(place, "a.json").raw


def test_rejected_names_never_collide(place: layout.Layout) -> None:
    """Every refused file and every reason is kept, whatever the files were called."""
    for number in range(3):
        drop(place, raw=b"%d" % number)
        intake.claim(place, "a.json")
        intake.reject(place, "a.json", {"code": "unfit"}, NOW)
    drop(place, "a.json.1", raw=b"3")
    intake.claim(place, "a.json.1")
    intake.reject(place, "a.json.1", {"code": "unfit"}, NOW)
    names = set(os.listdir(place.rejected))
    files = {name for name in names if not name.endswith(intake.REASON)}

    assert {"a.json", "a.json.1", "a.json.2", "a.json.1.1"} == files
    assert names == files | {f"{name}{intake.REASON}" for name in files}
    assert {b"0", b"1", b"2", b"3"} == {(place.rejected / name).read_bytes() for name in files}


ODD = {
    "as long as a name may be": "x" * 255,
    "long and not Latin": "ж" * 127,
    "not UTF-8": os.fsdecode(b"\xff\xfe.json"),
    "a newline": "a\nb",
    "an escape sequence": "\x1b[31m.json",
    "spaces": "  ",
}


@pytest.mark.parametrize("case", ODD)
def test_odd_names_are_rejected_like_others(case: str, place: layout.Layout) -> None:
    """Whatever a file is called, it finds a place beside its reason, which says the name in plain text."""
    drop(place, ODD[case])
    assert (ODD[case],) == intake.scan(place.incoming)
    intake.claim(place, ODD[case])
    where = intake.reject(place, ODD[case], {"code": "unfit"}, NOW)
    reason = json.loads(where.with_name(f"{where.name}{intake.REASON}").read_bytes())

    assert where.exists()
    assert os.fsencode(ODD[case]).decode("utf-8", "backslashreplace") == reason["name"]


def test_rejection_cut_short_is_finished_under_its_first_reason(place: layout.Layout) -> None:
    """A crash between reason and move leaves the file claimed; rejected again, it joins its own reason."""
    drop(place)
    intake.claim(place, "a.json")
    with Seam() as seam:
        seam.fail_next("rename_new")
        seam.before("sync_folder", lambda *_: None)
        with pytest.raises(Exception, match="cannot reject"):
            intake.reject(place, "a.json", {"code": "first"}, NOW)
    durable.write_new(place.rejected / f"a.json{intake.REASON}", b'{"file": {"size": 2}}')
    intake.reject(place, "a.json", {"code": "second"}, NOW)

    assert {"a.json.reason.json", "a.json.1", "a.json.1.reason.json"} == set(os.listdir(place.rejected))


STILL = {
    # (how long ago the file changed in seconds, in how many it counts as written)
    "just now": (0.0, 0.05),
    "a hundredth ago": (0.01, 0.04),
    "a tenth ago": (0.1, 0.0),
    "long ago": (3600.0, 0.0),
    "in an hour": (-3600.0, 0.0),
    "in a hundredth": (-0.01, 0.06),
}


@pytest.mark.parametrize("case", STILL)
def test_file_is_left_until_it_is_still(case: str, place: layout.Layout) -> None:
    """A file counts as still after a moment without a write; a wrong clock does not keep it waiting."""
    ago, still = STILL[case]
    found = drop(place).stat()
    now = evolve(NOW, wall=round(found.st_mtime_ns / 1000 + ago * 1_000_000))

    assert pytest.approx(still, abs=1e-5) == intake.still_in(found, now)


def test_what_is_no_file_is_still_at_once(place: layout.Layout) -> None:
    """A pipe or a link is refused now; nothing about it will become whole."""
    os.mkfifo(place.incoming / "p")
    found = intake.look(place, "p")

    assert found is not None
    assert stat.S_ISFIFO(found.st_mode)
    assert 0 == intake.still_in(found, NOW)


def test_taking_many_takes_each_for_itself(place: layout.Layout) -> None:
    """What one file meets is said of that file; one that is not still yet stays, and how soon is said."""
    os.utime(drop(place, "good.json"), (1, 1))
    os.utime(drop(place, "taken.json"), (1, 1))
    (place.claimed / "taken.json").write_bytes(b"{}")
    (place.incoming / "a-folder").mkdir()
    fresh = drop(place, "fresh.json").stat()
    now = evolve(NOW, wall=fresh.st_mtime_ns // 1000 + 20_000)
    names = ["good.json", "gone.json", "taken.json", "a-folder", "fresh.json"]
    taken = intake.take(place, names, now)

    assert ["good.json"] == [file.name for file in taken.files]
    assert [("taken.json", FileExistsError), ("a-folder", FaultyInputError)] == [
        (name, type(error)) for name, error in taken.met
    ]
    assert pytest.approx(0.03, abs=1e-5) == taken.still_in
    assert ["fresh.json", "taken.json"] == sorted(os.listdir(place.incoming))


def test_what_was_claimed_is_read_each_for_itself(place: layout.Layout) -> None:
    """At the start every claimed file is read that can be read."""
    drop(place, "good.json")
    intake.claim(place, "good.json")
    (place.claimed / "a-folder").mkdir()
    taken = intake.take_up(place, ["good.json", "a-folder", "gone.json"])

    assert ["good.json"] == [file.name for file in taken.files]
    assert ["a-folder", "gone.json"] == [name for name, _ in taken.met]


def test_many_are_finished_by_one_sync(place: layout.Layout) -> None:
    """However many admitted files leave together, the folder is synced once; one may be gone already."""
    files = []
    for name in ("a.json", "b.json", "c.json"):
        drop(place, name)
        files.append(intake.claim(place, name))
    (place.claimed / "b.json").unlink()
    with Seam() as seam:
        intake.finish(place, *files)

    assert [] == os.listdir(place.claimed)
    assert ["unlink", "unlink", "sync_folder"] == seam.names()


def test_folder_that_was_replaced_has_another_identity(place: layout.Layout) -> None:
    """A removed and recreated folder can be told from the old one."""
    before = intake.identity(place.incoming)
    place.incoming.rename(place.root / "old")
    place.incoming.mkdir()

    assert before == intake.identity(place.root / "old")
    assert before != intake.identity(place.incoming)
