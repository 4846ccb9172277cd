"""The shelf: each workflow file stands for itself, and who may write one is asked before it is read."""

import os
from pathlib import Path

import pytest

from resumed.daemon.shelf import WorkflowShelf
from resumed.schemas import workflowfile
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.jobfile import FileItem, JobFile
from resumed.schemas.refusal import Refusal
from resumed.schemas.workflow import Programs

GOOD = """
version = {version}
enabled = {enabled}
inputs.folder = {{ type = "path", roots = ["{root}"] }}
[[step]]
name = "say"
run = ["true"]
repeatable = true
"""


class Files:
    """A folder of workflow files and the shelf over it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "workflows.d"
        self.folder.mkdir(mode=0o755)
        self.shelf = WorkflowShelf(self.folder)

    def put(self, name: str, text: str = "", version: int = 1, enabled: str = "true") -> Path:
        path = self.folder / f"{name}.toml"
        path.write_text(text or GOOD.format(version=version, enabled=enabled, root=self.root / "data"))
        path.chmod(0o644)
        return path


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def group_writable(path: Path) -> None:
    path.chmod(0o664)


def world_writable(path: Path) -> None:
    path.chmod(0o646)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o644)


def dangling(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def huge(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(2 * 1024 * 1024)


def not_toml(path: Path) -> None:
    path.write_text("version = ")


def unknown_key(path: Path) -> None:
    path.write_text(path.read_text() + "\nfrob = 1\n")


UNFIT = {
    "group-writable": (group_writable, "others may write it (mode 0664)"),
    "world-writable": (world_writable, "others may write it (mode 0646)"),
    "a FIFO": (fifo, "no regular file"),
    "a dangling link": (dangling, "cannot read"),
    "too long": (huge, "bytes"),
    "not TOML": (not_toml, "not TOML"),
    "an unknown key": (unknown_key, "'frob'"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_unfit_file_is_named_and_the_others_go_on(case: str, files: Files) -> None:
    """A file that cannot be used is one sentence in the problems; its neighbour is in force."""
    make, why = UNFIT[case]
    make(files.put("bad"))
    files.put("good")
    files.shelf.reload()

    assert (("good",), None) == (files.shelf.names(), files.shelf.newest("bad"))
    assert 1 == len(files.shelf.problems)
    assert why in files.shelf.problems[0]
    assert "bad" in files.shelf.problems[0]


def test_fault_of_a_reader_is_one_files_problem(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that meets a fault of the reader's own is one sentence in the problems, and ends no daemon."""
    read = workflowfile.read

    def breaking(raw: bytes, name: str) -> Programs:
        if name == "bad":
            raise OverflowError("too large")
        return read(raw, name)

    monkeypatch.setattr(workflowfile, "read", breaking)
    files.put("bad")
    files.put("good")
    files.shelf.reload()

    assert (("good",), 1) == (files.shelf.names(), len(files.shelf.problems))
    assert "bad.toml: internal error: OverflowError: too large" in files.shelf.problems[0]


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_folder_that_others_may_write_is_not_read(mode: int, files: Files) -> None:
    """Whoever may write the folder may replace its files, so it is refused like them."""
    files.put("good")
    files.folder.chmod(mode)
    files.shelf.reload()

    assert () == files.shelf.names()
    assert "others may write it" in files.shelf.problems[0]


def test_missing_folder_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    """A daemon without workflows starts, and says why it has none."""
    shelf = WorkflowShelf(tmp_path / "absent")
    shelf.reload()

    assert ("there is no such folder" in shelf.problems[0], ()) == (True, shelf.names())


def test_reload_sees_what_changed(files: Files) -> None:
    """A new version, a mended file and a removed one are seen at the next reload, and only then."""
    files.put("flow", version=1)
    files.put("other", "version = ")
    changed = [files.shelf.reload(), files.shelf.reload()]
    files.put("flow", version=2)
    before = files.shelf.pick("flow", None)
    files.put("other", version=7)
    changed.append(files.shelf.reload())
    after = files.shelf.pick("flow", None)
    (files.folder / "flow.toml").unlink()
    changed.append(files.shelf.reload())

    assert [True, False, True, True] == changed
    assert [1, 2] == [each.version for each in (before, after) if not isinstance(each, Refusal)]
    assert ("other",) == files.shelf.names()


PICKS = {
    "the newest": ("flow", None, "flow@3"),
    "that version": ("flow", 3, "flow@3"),
    "another version": ("flow", 2, "only version 3 lies in"),
    "an unknown name": ("flew", None, "no such workflow is in force"),
    "a path": ("../flow", None, "no such workflow is in force"),
    "one that is not enabled": ("resting", None, "it is not enabled"),
    "its version all the same": ("resting", 1, "resting@1"),
    "a faulty one": ("bad", None, "not TOML"),
}


@pytest.mark.parametrize("case", PICKS)
def test_pick_gives_the_version_or_says_why_not(case: str, files: Files) -> None:
    """A job file's workflow is found, or refused with what there is instead."""
    files.put("flow", version=3)
    files.put("resting", enabled="false")
    files.put("bad", "version = ")
    files.shelf.reload()
    name, version, expected = PICKS[case]
    found = files.shelf.pick(name, version)
    said = found.reason if isinstance(found, Refusal) else f"{found.workflow}@{found.version}"

    assert expected in said


def test_path_input_is_held_to_its_roots_through_links(files: Files, tmp_path: Path) -> None:
    """A path under a root that leads out of it by a link is refused; one that stays inside is taken."""
    data = tmp_path / "data"
    (data / "in").mkdir(parents=True)
    (data / "out").symlink_to("/etc")
    files.put("flow")
    files.shelf.reload()
    contract = files.shelf.newest("flow")
    assert contract is not None

    def accept(path: Path) -> str:
        job = JobFile(workflow="flow", inputs=f'{{"folder": "{path}"}}')
        return files.shelf.accept(contract, job, "cannot admit a.json")

    assert f'{{"folder":"{data}/in"}}' == accept(data / "in")
    with pytest.raises(FaultyInputError, match=r"it leads to /etc/passwd, outside of .* @ \$.inputs.folder"):
        accept(data / "out" / "passwd")


def test_path_without_roots_lies_in_the_home_folder(files: Files, tmp_path: Path) -> None:
    """A user's own daemon takes a path that names no roots under the home folder alone, root's anywhere."""
    home = tmp_path / "home"
    (home / "data").mkdir(parents=True)
    (home / "out").symlink_to("/etc")
    (tmp_path / "link").symlink_to("home")
    files.put("flow", GOOD.replace(', roots = ["{root}"]', "").format(version=1, enabled="true"))
    shelves = [WorkflowShelf(files.folder, tmp_path / "link"), WorkflowShelf(files.folder)]

    def taken(shelf: WorkflowShelf, path: str, *, by_item: bool) -> bool:
        shelf.reload()
        contract = shelf.newest("flow")
        assert contract is not None
        inputs = f'{{"folder": "{path}"}}'
        item = FileItem(id="a", inputs=inputs if by_item else "{}")
        job = JobFile(workflow="flow", inputs=f'{{"folder": "{home}"}}' if by_item else inputs, items=(item,))
        try:
            shelf.accept(contract, job, "cannot admit a.json")
        except FaultyInputError:
            return False
        return True

    paths = [f"{home}/data", f"{tmp_path}/link/data", f"{home}/out/passwd", "/etc"]
    for by_item in (False, True):
        users, roots = ([taken(shelf, path, by_item=by_item) for path in paths] for shelf in shelves)
        assert ([True, True, False, False], [True] * 4) == (users, roots)
