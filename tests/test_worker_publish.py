"""Staging an output beside its place: whole, synced, bounded, and nothing made where nothing should be."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from worker_kit import contract, desk, one_step, with_source

from resumed.actors.worker import staging
from resumed.schemas import strict
from resumed.schemas.decisions import Accepted, HoldBack, NextStep, Offer, TryAgain
from resumed.schemas.job import Artifact, Item

pytestmark = pytest.mark.anyio


def offered(answer: Any) -> Offer:
    """The offer of a try that was answered well."""
    assert isinstance(answer.answer.decided, Accepted), answer.answer.decided
    found = answer.answer.decided.output
    assert found is not None
    assert found.publish is not None
    return found


def staged(offer: Offer) -> Path:
    """The file that is to get the name, held against what is said of it."""
    assert offer.publish is not None
    path = Path(offer.publish.destination).parent / offer.publish.temp
    found = path.stat()
    assert (found.st_dev & strict.MAX_INT, found.st_ino) == (offer.publish.device, offer.publish.inode)
    return path


async def test_output_is_staged_beside_its_place(tmp_path: Path) -> None:
    """What is printed, or the program's own file: its bytes stand in the folder under a hidden name."""
    out = tmp_path / "small"
    out.mkdir()
    toml = f"""
    version = 1
    [[step]]
    name = "printed"
    repeatable = true
    run = ["printf", "ok"]
    output.publish = "{out}/{{source.rel}}.txt"
    [[step]]
    name = "written"
    repeatable = true
    run = ["sh", "-c", 'head -c 20000 /dev/zero > "$1"; chmod 640 "$1"', "sh", "{{output}}"]
    output.publish = "{out}/{{job}}/{{item}}/{{key}}"
    """
    (tmp_path / "a b.mkv").touch()
    row = with_source("i", tmp_path / "a b.mkv")
    async with desk(tmp_path, contract(toml)) as made:
        printed = (await made.run("printed", row=row)).answer.decided
        written = offered(await made.run("written", number=2, row=row, key="k1"))

    assert isinstance(printed, NextStep)
    assert printed.output is not None
    assert printed.output.publish is not None
    assert f"{out}/a b.mkv.txt" == printed.output.publish.destination
    assert ("ok", b"ok") == (printed.output.text, staged(printed.output).read_bytes())
    file = staged(written)
    assert (f"{out}/j/i/k1", bytes(20000)) == (
        written.publish and written.publish.destination,
        file.read_bytes(),
    )
    assert (str(file), 0o640) == (written.path, file.stat().st_mode & 0o777)
    assert file.name.startswith(".resumed-")


async def test_by_reference_nothing_is_offered_but_the_place(tmp_path: Path) -> None:
    """An output by reference has no bound of its own and travels nowhere: path, size and digest are kept."""
    run = one_step(
        "head", "-c", str(20 * 1024 * 1024), "/dev/zero",
        more=f'output = {{ publish = "{tmp_path}/{{item}}", keep = "reference" }}',
    )  # fmt: skip
    async with desk(tmp_path, run) as made:
        offer = offered(await made.run())

    assert (True, None, None, None) == (offer.reference, offer.text, offer.base64, offer.path)
    assert (20 * 1024 * 1024, 20 * 1024 * 1024) == (offer.size, staged(offer).stat().st_size)


CAP = 3 * 1024 * 1024


@pytest.mark.parametrize("keep", ["copy", "reference"])
@pytest.mark.parametrize("where", ["stdout", "file"])
async def test_output_at_exactly_the_cap(where: str, keep: str, tmp_path: Path) -> None:
    """`output.max` bytes are an output; one more is a failed try, and nothing of it is staged."""
    script = 'head -c "$1" /dev/zero' + (' > "$2"' if where == "file" else "")
    place = f'output = {{ from = "{where}", publish = "{tmp_path}/out", max = {CAP}, keep = "{keep}" }}'
    run = one_step("sh", "-c", script, "sh", "{item}", "{output}", more=place)
    async with desk(tmp_path, run) as made:
        exact = offered(await made.run(item=str(CAP)))
        assert CAP == exact.size == staged(exact).stat().st_size
        staged(exact).unlink()
        over = (await made.run(item=str(CAP + 1), number=2)).answer.decided

    assert "output-too-large" == over.code
    assert [] == list(tmp_path.glob(".resumed-*"))


@pytest.fixture
def other_file_system(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the scratch folders."""
    for place in ("/dev/shm", "/run", "/var/tmp"):
        if (
            os.path.isdir(place)
            and os.access(place, os.W_OK)
            and os.stat(place).st_dev != tmp_path.stat().st_dev
        ):
            found = Path(tempfile.mkdtemp(prefix="resumed-test-", dir=place))
            yield found
            shutil.rmtree(found)
            return
    pytest.fail("there is no second file system to write to")


async def test_place_on_another_file_system(tmp_path: Path, other_file_system: Path) -> None:
    """Where a file cannot be moved it is copied into the folder of its place, with its mode and digest."""
    script = 'head -c 3000000 /dev/urandom > "$1"; chmod 600 "$1"; cp "$1" "$2"'
    more = f'output.publish = "{other_file_system}/{{item}}/deep/{{item}}"'
    run = one_step("sh", "-c", script, "sh", "{output}", str(tmp_path / "same"), more=more)
    async with desk(tmp_path, run) as made:
        offer = offered(await made.run())

    assert (tmp_path / "same").read_bytes() == staged(offer).read_bytes()
    assert 0o600 == staged(offer).stat().st_mode & 0o777


async def test_file_with_another_name_is_copied(tmp_path: Path) -> None:
    """A file that the program also keeps elsewhere, or only links to, is not the one that gets the name."""
    script = 'echo one > "$2/own"; if test "$3" = link; then ln "$2/own" "$1"; else ln -s "$2/own" "$1"; fi'
    more = f'output.publish = "{tmp_path}/{{item}}"'
    run = one_step("sh", "-c", script, "sh", "{output}", str(tmp_path), "{item}", more=more)
    async with desk(tmp_path, run) as made:
        for number, item in enumerate(("link", "symlink")):
            path = staged(offered(await made.run(item=item, number=number)))
            assert (b"one\n", False, 1) == (path.read_bytes(), path.is_symlink(), path.stat().st_nlink)
            (tmp_path / "own").unlink()
            path.unlink()


async def test_next_try_takes_away_what_the_last_one_left(tmp_path: Path) -> None:
    """A staged file of a try that was cut off is replaced by the next: there is never more than one."""
    async with desk(tmp_path, one_step("printf", "ok", more=f'output.publish = "{tmp_path}/x"')) as made:
        first = staged(offered(await made.run(kept=str(tmp_path / "kept"))))
        first.write_bytes(b"half")
        again = staged(offered(await made.run(number=2, kept=str(tmp_path / "kept"))))
        other = staged(offered(await made.run(number=3, item="j", kept=str(tmp_path / "other"))))

    assert (first, b"ok") == (again, again.read_bytes())
    assert other != first
    assert 2 == len(list(tmp_path.glob(".resumed-*")))


async def test_folder_that_is_not_there_is_found_before_anything_runs(tmp_path: Path) -> None:
    """Folders below the fixed part of a place are made; the fixed part must be there, and nothing is run."""
    script = 'echo ran >> "$1"'
    for base, expected in (("none", "is not there"), ("file", "is not there")):
        (tmp_path / "file").touch()
        more = f'output.publish = "{tmp_path}/{base}/{{item}}"'
        run = one_step("sh", "-c", script, "sh", str(tmp_path / "ran"), more=more)
        folder = tmp_path / f"desk-{base}"
        folder.mkdir()
        async with desk(folder, run) as made:
            decided = (await made.run()).answer.decided
            log = made.log().decode()

        said = f"cannot publish {tmp_path}/{base}/i: the folder {tmp_path}/{base} {expected}"
        assert HoldBack(code="publish", reason=said) == decided
        assert said in log
    assert not (tmp_path / "ran").exists()


UNFIT = {
    "climbing": "../x",
    "itself": "a/./b",
    "a doubled slash": "a//b",
    "a name too long": "x" * 300,
}


@pytest.mark.parametrize("case", UNFIT)
async def test_item_that_makes_no_place_is_a_persons_affair(case: str, tmp_path: Path) -> None:
    """An item's name steers its output nowhere but below the place's folder."""
    (tmp_path / "out").mkdir()
    more = f'output.publish = "{tmp_path}/out/{{item}}"'
    row = Item(id=UNFIT[case], ordinal=0)
    async with desk(tmp_path, one_step("true", more=more)) as made:
        frame = evolve(made.frame(row=row), item=UNFIT[case])
        made.worker.send(frame)
        answer: Any = await made.heard()

    assert "publish" == answer.answer.decided.code
    assert isinstance(answer.answer.decided, HoldBack)
    assert [] == list((tmp_path / "out").iterdir())


def test_refusals_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is tried again, a folder that may not be written to is a person's affair; both say why."""
    place = staging.Place(path=f"{tmp_path}/x", base=str(tmp_path), temp=".resumed-1.tmp")
    offer = Offer(name="output", sha256="0" * 64, size=2, text="ok")
    real = os.fsync
    for number, kind in ((errno.ENOSPC, TryAgain), (errno.EIO, TryAgain), (errno.EROFS, HoldBack)):

        def refuse(_: int, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(staging.UnfitError) as refused:
            staging.stage(place, evolve(offer, sha256=_sha256(b"ok")), b"ok", reference=False)
        assert isinstance(refused.value.decided, kind)
        assert f"cannot publish {tmp_path}/x: {os.strerror(number)}" == refused.value.decided.reason
    monkeypatch.setattr(os, "fsync", real)
    with pytest.raises(staging.UnfitError):
        staging.stage(place, offer, b"ok", reference=False)  # not the bytes that are offered
    assert not os.path.exists(f"{tmp_path}/x")


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


async def test_published_output_is_handed_on_as_the_file_it_is(tmp_path: Path) -> None:
    """By reference, a step after it gets the published file itself; one that has changed is not handed on."""
    toml = f"""
    version = 1
    [[step]]
    name = "first"
    repeatable = true
    run = ["printf", "ok"]
    output = {{ publish = "{tmp_path}/{{item}}", keep = "reference" }}
    [[step]]
    name = "second"
    repeatable = true
    run = ["printf", "%s", "{{outputs.first}}"]
    """
    (tmp_path / "i").write_bytes(b"ok")
    there = (tmp_path / "i").stat()
    made_of = Artifact(
        name="first",
        sha256=_sha256(b"ok"),
        size=2,
        path=str(tmp_path / "i"),
        device=there.st_dev & strict.MAX_INT,
        inode=there.st_ino,
    )
    row = Item(id="i", ordinal=0, outputs=(made_of,))
    async with desk(tmp_path, contract(toml)) as made:
        second = (await made.run("second", row=row)).answer.decided
        (tmp_path / "i").write_bytes(b"other")
        changed = (await made.run("second", number=2, row=row)).answer.decided

    assert str(tmp_path / "i") == second.output.text
    assert "no-input" == changed.code


class Killed(BaseException):
    """The worker is gone."""


CALLS = ("mkdir", "unlink", "rename", "open", "fsync", "fchmod")
"""What staging asks of the system that changes a folder or a file."""


def struck(monkeypatch: pytest.MonkeyPatch, at: int, after: bool) -> list[str]:
    """From here on the worker dies around call `at`, and nothing it does later happens; returns its calls."""
    seen: list[str] = []

    def wrap(name: str) -> Any:
        real = getattr(os, name)

        def call(*args: Any, **more: Any) -> Any:
            number = len(seen)
            seen.append(name)
            if number > at or (number == at and not after):
                raise Killed
            found = real(*args, **more)
            if number == at:
                raise Killed
            return found

        return call

    for name in CALLS:
        monkeypatch.setattr(staging.os, name, wrap(name))
    return seen


@pytest.mark.parametrize("kind", ["bytes", "file", "another file system"])
def test_staging_survives_a_kill_at_every_call(kind: str, tmp_path: Path, other_file_system: Path) -> None:
    """Killed around any call, a try leaves at most one hidden file, replaced by the next try; the program's
    own file is there or staged whole, and no name but ours was ever made."""
    raw = b"what it made" * 1000
    total = 10**9
    count = at = 0
    while at < total:
        for after in (False, True):
            root = (other_file_system if kind == "another file system" else tmp_path) / f"{at}-{after}"
            root.mkdir()
            made = tmp_path / "made"
            made.write_bytes(raw)
            place = staging.Place(path=f"{root}/deep/er/a", base=str(root), temp=".resumed-1.tmp")
            content: Any = raw if kind == "bytes" else str(made)
            offer = Offer(name="output", sha256=_sha256(raw), size=len(raw), path=str(made))
            with pytest.MonkeyPatch.context() as patched:
                seen = struck(patched, at, after)
                try:
                    staging.stage(place, offer, content, reference=False)
                    total = min(total, len(seen))
                except Killed:
                    count += 1
            left = [path.name for path in root.rglob("*") if path.is_file()]
            assert left in ([], [".resumed-1.tmp"]), (at, after)
            whole = made.exists() or (root / "deep/er/.resumed-1.tmp").read_bytes() == raw
            assert whole, (at, after)
            made.write_bytes(raw)  # the next try makes it anew
            again = staging.stage(place, offer, content, reference=False)

            assert raw == staged(again).read_bytes(), (at, after)
            assert [".resumed-1.tmp"] == [path.name for path in root.rglob("*") if path.is_file()]
            staged(again).unlink()
        at += 1
    assert count >= 2 * total - 1
    assert total > 6
