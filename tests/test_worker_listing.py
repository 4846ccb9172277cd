"""Items from lists, programs and patterns: what a job's first step freezes, and what it will not."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from worker_kit import contract, desk

from resumed.actors.worker import globbing, listing, lists, programs
from resumed.schemas import frames, inputs, jobfilereader, workflowfile
from resumed.schemas.decisions import FanOut, HoldBack, Later, TryAgain
from resumed.schemas.job import Item, PinKind, Source
from resumed.schemas.workflow import Programs

STEP = "[[step]]\nname = 'only'\nrepeatable = true\nrun = ['true']\n"
DECLARED = """
inputs.lang = { type = "choice", choices = ["de", "fr"] }
inputs.page = { type = "int", max = 9, default = 1 }
"""


def flow(items: str, more: str = DECLARED) -> Programs:
    """A workflow with this `items` table."""
    return workflowfile.read(f"version = 1\n{more}\nitems = {items}\n{STEP}".encode(), "flow")


def frozen(made: Programs, printed: bytes = b"", given: str = "{}", **more: Any) -> listing.Found:
    """What the first step finds; its unfit items are raised."""
    run = frames.Run(
        job="j",
        epoch=1,
        item="",
        number=1,
        step="start",
        occurrence=1,
        log="",
        scratch="",
        inputs=given,
        **more,
    )
    values = {f"inputs.{name}": inputs.spell(value) for name, value in json.loads(given).items()}
    return listing.items_of(made, listing.origin_of(made, run, values), run, printed)


def names(found: listing.Found) -> list[str]:
    """The ids of what was found."""
    return [item.id for item in found.items]


# ---- lists ----------------------------------------------------------------------------------------------


def test_line_is_a_name_or_the_path_of_a_source(tmp_path: Path) -> None:
    """A path is called by its name below the list's folder, else without its first slash; text is a name."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "list").write_text(f"customer 17\r\n\n{tmp_path}/in/a\n{tmp_path}/b\n-x\n")
    for name in ("in/a", "b"):
        (tmp_path / name).write_text(name)
    made = flow(f'{{ from = "lines", file = "{tmp_path}/in/{{inputs.list}}" }}', "inputs.list = {}")
    found = frozen(made, given='{"list":"list"}')

    assert ["customer 17", "a", f"{tmp_path}/b"[1:], "-x"] == names(found)
    assert [None, PinKind.SHA256, PinKind.SHA256, None] == [i.source and i.source.pin for i in found.items]
    origin = listing.origin_of(
        made,
        frames.Run(job="j", epoch=1, item="a", number=1, step="only", occurrence=1, log="", scratch=""),
        {"inputs.list": "list"},
    )
    assert ["a", f"{tmp_path}/b"[1:]] == [origin.relative(f"{tmp_path}/{name}") for name in ("in/a", "b")]


FAULTY_LINES: dict[str, tuple[bytes, str]] = {
    "a NUL": (b"a\nb\0c\n", "line 2: 'b\\x00c': an item's name holds a character that cannot be shown"),
    "not UTF-8": (b"a\xff\n", "line 1: not UTF-8 at byte 1"),
    "a return in it": (b"a\rb\n", "line 1: 'a\\rb': an item's name holds a character that cannot be shown"),
    "a climb": (
        b"a/../../b\n",
        "line 1: 'a/../../b': an item's name may become part of a path, and must not",
    ),
    "a path that climbs": (b"/a/../b\n", "line 1: '/a/../b': expected a path without `.`, `..` or doubled"),
    "1,025 letters": (b"x" * 1025, "an item's name has 1025 characters, the most is 1024"),
    "64 KiB and one": (b"\n" + b"x" * 65_537, "line 2: 65537 bytes, the most is 65536"),
    "a name twice": (b"a\nb\na\n", "more than one item is called 'a'"),
    "nothing": (b"\n\n", "gives no items; allow_empty = true makes that a success"),
    "too many": (b"a\nb\nc\nd\n", "gives more than 3 items (items.max)"),
    "a source that is gone": (b"/no/such/file", "no/such/file: cannot read its source: No such file"),
    "six faults": (b"\xff\n" * 6, "line 4: not UTF-8 at byte 0; line 5: not UTF-8 at byte 0"),
}


@pytest.mark.parametrize("case", FAULTY_LINES)
def test_list_that_cannot_be_frozen_says_which_line(case: str, tmp_path: Path) -> None:
    """Nothing is guessed about a line: the job is held with its number and what is wrong with it."""
    raw, expected = FAULTY_LINES[case]
    (tmp_path / "list").write_bytes(raw)
    with pytest.raises(lists.UnfitItemsError) as unfit:
        frozen(flow(f'{{ from = "lines", file = "{tmp_path}/list", max = 3 }}', ""))

    assert expected in str(unfit.value)


def test_json_line_is_an_item_with_inputs(tmp_path: Path) -> None:
    """The key names the id, `source` the file; every other member is an input that the workflow declares."""
    (tmp_path / "a").write_text("a")
    lines: list[dict[str, Any]] = [
        {"name": "x", "lang": "de"},
        {"lang": "fr", "page": 3, "name": 17, "source": f"{tmp_path}/a"},
    ]
    (tmp_path / "list").write_text("\n".join(map(json.dumps, lines)))
    found = frozen(flow(f'{{ from = "jsonl", file = "{tmp_path}/list", key = "name" }}'))

    assert [("x", '{"lang":"de"}'), ("17", '{"lang":"fr","page":3}')] == [
        (item.id, item.inputs) for item in found.items
    ]
    assert [None, f"{tmp_path}/a"] == [item.source and item.source.path for item in found.items]


FAULTY_MEMBERS = {
    "not JSON": ("{", "line 1: not JSON: "),
    "no object": ("[]", "line 1: expected an object @ $"),
    "no id": ('{"lang":"de"}', "line 1: required key 'id' is missing @ $"),
    "an id that is a bool": ('{"id":true,"lang":"de"}', "line 1: expected string or int @ $.id"),
    "a member twice": ('{"id":"a","id":"b"}', "line 1: key 'id' is written twice @ $"),
    "a number beyond 2**53": ('{"id":9007199254740993}', "line 1: integer beyond +-(2**53 - 1) @ $.id"),
    "a lone surrogate": (r'{"id":"\ud83d"}', "line 1: a lone surrogate is not allowed @ $.id"),
    "a NUL": (r'{"id":"a\u0000"}', "line 1: a NUL character is not allowed @ $.id"),
    "a member nobody declared": (
        '{"id":"a","lang":"de","x":1}',
        "line 1: unknown key 'x' @ $: the workflow declares no such input",
    ),
    "a missing input": ('{"id":"a"}', "line 1: required input 'lang' is missing @ $"),
    "a faulty input": (
        '{"id":"a","lang":"it","page":10}',
        "got 'it' @ $.lang; the most is 9, got 10 @ $.page",
    ),
    "a relative source": (
        '{"id":"a","lang":"de","source":"b"}',
        "expected an absolute path, got 'b' @ $.source",
    ),
    "a source that is none": ('{"id":"a","lang":"de","source":1}', "line 1: expected string @ $.source"),
}


@pytest.mark.parametrize("case", FAULTY_MEMBERS)
def test_json_line_goes_through_the_strict_door(case: str, tmp_path: Path) -> None:
    """A line that would have to be guessed at holds the job, and says which line and where in it."""
    raw, expected = FAULTY_MEMBERS[case]
    (tmp_path / "list").write_text(raw)
    with pytest.raises(lists.UnfitItemsError) as unfit:
        frozen(flow(f'{{ from = "jsonl", file = "{tmp_path}/list" }}'))

    assert expected in str(unfit.value)


def test_job_file_names_its_own_list(tmp_path: Path) -> None:
    """A list in the job file takes the place of what the workflow says; an empty list is no list at all."""
    (tmp_path / "list").write_text('{"id":"a","lang":"de"}\n')
    made = flow('{ from = "glob", glob = "/etc/*" }')
    by_line = frozen(made, items_from="lines", items_file=f"{tmp_path}/list")
    by_member = frozen(made, items_from="jsonl", items_file=f"{tmp_path}/list")

    assert [['{"id":"a","lang":"de"}'], ["a"]] == [names(by_line), names(by_member)]
    with pytest.raises(lists.UnfitItemsError, match="the job file gives no items"):
        frozen(made, items_from="job")


LISTS = {
    "a pipe": "it is not a regular file",
    "a device": "it is not a regular file",
    "a folder": "it is not a regular file",
    "nothing": "No such file or directory",
    "a loop of links": "Too many levels of symbolic links",
    "1 TiB of nothing": "has more than 16777216 bytes",
}


@pytest.mark.parametrize("case", LISTS)
def test_no_list_makes_the_listing_wait(case: str, tmp_path: Path) -> None:
    """What lies under a list's name is looked at before it is opened, and read only when it may be one."""
    place = tmp_path / "list"
    if case == "a pipe":
        os.mkfifo(place)
    elif case == "a device":
        place.symlink_to("/dev/zero")
    elif case == "a folder":
        place.mkdir()
    elif case == "a loop of links":
        place.symlink_to("list")
    elif case == "1 TiB of nothing":
        with place.open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(lists.UnfitItemsError) as unfit:
        frozen(flow(f'{{ from = "lines", file = "{place}" }}', ""))

    assert LISTS[case] in str(unfit.value)


def test_items_that_no_line_could_hold_are_refused(tmp_path: Path) -> None:
    """Names and inputs that would burst a frame or a line hold the job before a line is written."""
    text = "x" * 2000
    lines = "".join(f'{{"id":{number},"text":"{text}"}}\n' for number in range(7000))
    (tmp_path / "list").write_text(lines)
    more = 'inputs.text = { type = "text" }'
    with pytest.raises(lists.UnfitItemsError, match="take more than 12582912 bytes"):
        frozen(flow(f'{{ from = "jsonl", file = "{tmp_path}/list" }}', more))


PINS = {"auto": PinKind.SHA256, "sha256": PinKind.SHA256, "stat": PinKind.STAT, "none": PinKind.NONE}


@pytest.mark.parametrize("pin", PINS)
def test_source_is_pinned_as_the_workflow_says(pin: str, tmp_path: Path) -> None:
    """`stat` reads no byte; `none` keeps the path alone, under which anything may lie that is there."""
    (tmp_path / "a").write_text("a")
    made = flow(f'{{ from = "glob", glob = "{tmp_path}/*", pin = "{pin}" }}', "")
    source = frozen(made).items[0].source
    assert source is not None

    assert (PINS[pin], pin in ("auto", "sha256"), pin != "none") == (
        source.pin,
        source.sha256 != "",
        source.size == 1 and source.inode > 0,
    )
    by_path = flow(f'{{ from = "run", run = ["x"], pin = "{pin}" }}', "")
    if pin == "none":
        assert [Source(path="/dev/null")] == [item.source for item in frozen(by_path, b"/dev/null").items]
        with pytest.raises(lists.UnfitItemsError, match="no/x: cannot read its source: No such file"):
            frozen(by_path, b"/no/x")
    else:
        with pytest.raises(lists.UnfitItemsError, match="dev/null: cannot read its source: it is not a"):
            frozen(by_path, b"/dev/null")


# ---- patterns -------------------------------------------------------------------------------------------


def _tree(root: Path) -> None:
    for name in ("a.txt", "b.md", ".h.txt", "s/c.txt", "s/t/d.txt", ".hid/e.txt", "s/[x].txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "s" / "loop").symlink_to("..")
    (root / "link.txt").symlink_to("a.txt")
    (root / "dead.txt").symlink_to("nowhere")
    (root / "round.txt").symlink_to("round.txt")
    (root / "dir.txt").mkdir()
    os.mkfifo(root / "pipe.txt")


PATTERNS = {
    "*.txt": ["a.txt", "link.txt"],
    ".*.txt": [".h.txt"],
    "**/*.txt": ["a.txt", "link.txt", "s/[x].txt", "s/c.txt", "s/t/d.txt"],
    "**/**/c.txt": ["s/c.txt"],
    "**": ["a.txt", "b.md", "link.txt", "s/[x].txt", "s/c.txt", "s/t/d.txt"],
    "s/**/d.txt": ["s/t/d.txt"],
    "s/*/d.txt": ["s/t/d.txt"],
    "?.[mt]*": ["a.txt", "b.md"],
    "s/[[]x].txt": ["s/[x].txt"],
    "a.txt": ["a.txt"],
    "no/*": [],
    "a.txt/*": [],
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pattern_names_regular_files(pattern: str, tmp_path: Path) -> None:
    """Hidden names need their dot, linked folders are not walked through, and what is no file is no item."""
    _tree(tmp_path)
    found = globbing.files(f"{tmp_path}/{pattern}", 100, lambda folder: None)

    assert PATTERNS[pattern] == [os.path.relpath(path, tmp_path) for path in found]


def test_pattern_ends_in_a_maze_of_links_and_in_deep_folders(tmp_path: Path) -> None:
    """Links that lead back from everywhere multiply nothing, and no depth ends the walk."""
    for name in ("x", "y", "z"):
        (tmp_path / name).mkdir()
        for back in ("p", "q", "r"):
            (tmp_path / name / back).symlink_to(tmp_path)
    deep = "/".join(["d"] * 1500)
    place = os.open(tmp_path, os.O_RDONLY)
    for _ in deep.split("/"):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(os.open("end.txt", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)
    found = globbing.files(f"{tmp_path}/**/*.txt", 9, lambda folder: None)
    # Deeper than the clean-up of temporary folders goes.
    subprocess.run(["rm", "-r", tmp_path / "d"], check=True)

    assert [f"{tmp_path}/{deep}/end.txt"] == found


def test_folder_that_may_not_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is said, and a pattern that finds nothing for that reason says it as well."""
    (tmp_path / "shut").mkdir()
    scan = os.scandir

    def scandir(folder: str) -> Any:
        if folder.endswith("/shut"):  # root may list every folder
            raise PermissionError(13, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    made = flow(f'{{ from = "glob", glob = "{tmp_path}/**/*.txt" }}', "")
    with pytest.raises(lists.UnfitItemsError, match=r"gives no items \(.*/shut may not be listed\)"):
        frozen(made)
    (tmp_path / "a.txt").touch()

    assert (["a.txt"], (f"{tmp_path}/shut",)) == (names(found := frozen(made)), found.left_out)


# ---- programs that list ----------------------------------------------------------------------------------


ENDS: dict[str, tuple[str, type, str]] = {
    "names": ("printf 'a\\nb\\n'", FanOut, "a b"),
    "a background child that holds the pipe": ("sleep 600 & echo a", FanOut, "a"),
    "nothing": ("true", HoldBack, "sh gives no items; allow_empty = true makes that a success"),
    "a line that is none": ("printf '\\377\\n'", HoldBack, "sh: line 1: not UTF-8 at byte 0"),
    "a failure": (
        "echo a; echo no disk >&2; exit 3",
        TryAgain,
        "the items are not known: sh: exit 3: no disk",
    ),
    "later": ("exit 75", Later, "the items are not known: sh: exit 75"),
    "a hold": ("exit 78", HoldBack, "the items are not known: sh: exit 78"),
    "too much": ("head -c 16777217 /dev/zero", HoldBack, "sh printed 16777217 bytes, the most is 16777216"),
}


@pytest.mark.anyio
async def test_program_names_the_items(tmp_path: Path) -> None:
    """What a program prints is a list like a file's; how it ends says whether the list is whole."""
    found = {}
    items = "items = { run = ['sh', '-c', '. $RESUMED_INPUTS_CASE'] }\ninputs.case = {}\n"
    async with desk(tmp_path, contract(f"version = 1\n{items}{STEP}")) as made:
        for number, (case, (script, _, _)) in enumerate(ENDS.items()):
            (tmp_path / "script").write_text(script)
            given = json.dumps({"case": f"{tmp_path}/script"})
            decided = (await made.run("start", "", number, inputs=given)).answer.decided
            said = (
                " ".join(each.id for each in decided.items) if isinstance(decided, FanOut) else decided.reason
            )
            found[case] = (script, type(decided), said)

    assert ENDS == found
    assert b"no disk" in (tmp_path / "run.log").read_bytes()


@pytest.mark.anyio
async def test_program_that_does_not_start_is_tried_again(tmp_path: Path) -> None:
    """A program that cannot be started is no list without items."""
    missing = contract(f"version = 1\nitems = {{ run = ['no-such-program'] }}\n{STEP}")
    async with desk(tmp_path, missing) as made:
        decided = (await made.run("start", "")).answer.decided
    reason = "the items are not known: cannot start no-such-program: No such file or directory"

    assert TryAgain(reason=reason, code="cannot_start") == decided


@pytest.mark.anyio
async def test_program_prints_json_lines_where_a_key_is_named(tmp_path: Path) -> None:
    """The members of its lines are the items' inputs, filled in where a step names them."""
    say = 'items = { run = [\'echo\', \'{{"n":"{job}","lang":"de"}}\'], key = \'n\' }'
    step = STEP.replace("['true']", "['echo', '{inputs.lang}', '{inputs.page}']")
    async with desk(tmp_path, contract(f"version = 1\n{DECLARED}{say}\n{step}")) as made:
        decided = (await made.run("start", "")).answer.decided
        row = Item(id="j", ordinal=0, inputs=decided.items[0].inputs)
        answer = await made.run(item="j", row=row)

    assert ["j"] == [item.id for item in decided.items]
    assert "de 1\n" == answer.answer.decided.output.text


# ---- inputs that items bring -----------------------------------------------------------------------------


LEFT = {
    "a JSON list of the workflow's": ('{ from = "jsonl", file = "/x" }', "", {"lang", "page"}),
    "an input that the list's name needs": ('{ from = "jsonl", file = "/x/{inputs.lang}" }', "", {"page"}),
    "JSON lines of a program": ('{ run = ["x"], key = "id" }', "", {"lang", "page"}),
    "lines of a program": ('{ run = ["x"] }', "", set()),
    "a pattern": ('{ glob = "/x/*" }', "", set()),
    "a pattern instead of a JSON list": ('{ from = "jsonl", file = "/x" }', '{"glob":"/y/*"}', set()),
    "a JSON list of the job's": ('{ glob = "/{inputs.lang}/*" }', '{"jsonl":"/y"}', {"lang", "page"}),
    "items that all bring it": (
        '{ glob = "/x/*" }',
        '[{"id":"a","inputs":{"lang":"de"}},{"id":"b","inputs":{"lang":"fr","page":2}}]',
        {"lang"},
    ),
    "items of which one does not": ('{ glob = "/x/*" }', '[{"id":"a","inputs":{"lang":"de"}},"b"]', set()),
}


@pytest.mark.parametrize("case", LEFT)
def test_required_input_may_be_left_to_the_items(case: str) -> None:
    """A job need not have what each of its items brings; what the listing needs it must have."""
    items, own, expected = LEFT[case]
    given = f'"items":{own},' if own else ""
    job = jobfilereader.read(f'{{{given}"workflow":"flow"}}'.encode(), "a.json")

    assert expected == inputs.left_to_items(flow(items), job)


def test_programs_read_back_with_where_their_items_come_from() -> None:
    """The definition that a job is pinned to keeps all of the table."""
    made = flow('{ run = ["find", "{inputs.lang}"], key = "n", pin = "stat", max = 7, allow_empty = true }')

    assert made == programs.load(programs.contract_of(made))._programs
