"""Programs in a worker: bytes first, the whole tree gone before the answer, every end with its reason."""

import base64
import errno
import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from worker_kit import alive, contract, desk, one_step, with_source

from resumed.actors import containment
from resumed.actors.worker import programs
from resumed.actors.worker.runlog import RunLog
from resumed.actors.worker.trial import Trial
from resumed.schemas import frames
from resumed.schemas.decisions import Accepted, HoldBack, Later, NextStep, Offer, TryAgain
from resumed.schemas.job import Artifact, Item, PinKind

pytestmark = pytest.mark.anyio


async def test_background_grandchild_delays_nothing(tmp_path: Path) -> None:
    """C41 a: `sleep 600 & echo done` ends at once with output `done`; the sleeper is killed first."""
    script = 'sleep 600 & echo $! > "$1"; echo done'
    async with desk(tmp_path, one_step("sh", "-c", script, "sh", str(tmp_path / "pid"))) as made:
        answer = await made.run()

        assert "done\n" == answer.answer.decided.output.text
        assert not alive(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("grace", [0.0, 0.3])
async def test_stop_ends_what_will_not_listen(grace: float, tmp_path: Path) -> None:
    """C41 b: a stop leaves no process after the grace time, not one that ignores TERM or left the session."""
    os.mkfifo(tmp_path / "fifo")
    script = 'trap "" TERM; setsid sleep 600 & sleep 600 & echo up > "$1"; wait; wait; sleep 600'
    async with desk(tmp_path, one_step("sh", "-c", script, "sh", str(tmp_path / "fifo"))) as made:
        made.worker.send(made.frame())
        await anyio.Path(tmp_path / "fifo").read_text()
        made.stop(grace=grace)
        stopped = await made.heard()

        assert frames.Stopped(job="j", epoch=1, item="i", number=1) == stopped
        assert 1 == len([one for one in containment.remains_of("w1") if "worker.main" in one.command])
        assert [] == [one.command for one in containment.remains_of("w1") if "sleep" in one.command]
        assert b"--- stopped: signal 9 ---" in made.log()


async def test_stop_lets_a_program_clean_up(tmp_path: Path) -> None:
    """A program that hears TERM has the grace time; its exit 0 then is no answer: it was stopped."""
    os.mkfifo(tmp_path / "fifo")
    script = 'trap "echo cleaned; exit 0" TERM; echo up > "$1"; while :; do sleep 0.01; done'
    async with desk(tmp_path, one_step("sh", "-c", script, "sh", str(tmp_path / "fifo"))) as made:
        made.worker.send(made.frame())
        await anyio.Path(tmp_path / "fifo").read_text()
        made.stop(grace=15.0)

        assert isinstance(await made.heard(), frames.Stopped)
        assert b"cleaned\n--- stopped: exit 0 ---" in made.log()


async def test_endless_output_is_bounded(tmp_path: Path) -> None:
    """C41 d: 1 GiB without a newline blocks nothing and fills no memory or disk; the reason is clear."""
    run = one_step("head", "-c", str(1024**3), "/dev/zero", more="output.max = 1000")
    async with desk(tmp_path, run) as made:
        (worker,) = [one.pid for one in containment.remains_of("w1") if "worker.main" in one.command]
        answer = await made.run()
        peak = dict(line.split(":", 1) for line in Path(f"/proc/{worker}/status").read_text().splitlines())

        reason = f"exit 0, but it printed {1024**3} bytes, the most is 1000 (output.max)"
        assert TryAgain(reason=reason, code="output-too-large") == answer.answer.decided
        assert int(peak["VmHWM"].split()[0]) < 160 * 1024
        assert 16 * 1024 * 1024 < len(made.log()) < 16 * 1024 * 1024 + 1000
        assert b"the log is full" in made.log()[-200:]


BYTES = {
    "plain text": (b"ok\n", "ok\n", None),
    "nothing": (b"", "", None),
    "not UTF-8": (b"ok \xff\xfe", "ok \ufffd\ufffd", b"ok \xff\xfe"),
    "a surrogate's bytes": (b"\xed\xa0\xbd", "\ufffd\ufffd\ufffd", b"\xed\xa0\xbd"),
    "a JSON escape": (rb'"\ud83d"', r'"\ud83d"', None),
    "a NUL": (b"a\0b", "a\ufffdb", b"a\0b"),
}


async def test_output_is_bytes_first(tmp_path: Path) -> None:
    """C25: whatever bytes a program prints, its item is done once, with all of them and a text for people."""
    found = {}
    async with desk(tmp_path, one_step("cat", "{source}")) as made:
        for number, (case, (raw, _, _)) in enumerate(BYTES.items()):
            (tmp_path / "raw").write_bytes(raw)
            output = (
                await made.run(number=number, row=with_source("i", tmp_path / "raw"))
            ).answer.decided.output
            exact = None if output.base64 is None else base64.b64decode(output.base64)
            found[case] = (raw, output.text, exact)

            assert (len(raw), hashlib.sha256(raw).hexdigest()) == (output.size, output.sha256)
            assert raw in made.log()
    assert BYTES == found


async def test_large_output_is_a_file(tmp_path: Path) -> None:
    """Past 16 KiB an output is offered as a file in the try's own folder."""
    async with desk(tmp_path, one_step("head", "-c", "20000", "/dev/zero")) as made:
        output = (await made.run()).answer.decided.output

        assert bytes(20000) == Path(output.path).read_bytes()
        assert Path(output.path).is_relative_to(tmp_path / "scratch-i-1")


async def test_output_file_counts_where_it_is_named(tmp_path: Path) -> None:
    """Where `{output}` is used the file is the output; without it the try failed, whatever was printed."""
    toml = """
    version = 1
    [[step]]
    name = "only"
    repeatable = true
    run = ["sh", "-c", 'echo printed; test "$2" = none || printf written > "$1"', "sh", "{output}", "{item}"]
    """
    async with desk(tmp_path, contract(toml)) as made:
        written = await made.run()
        missing = await made.run(item="none", number=2)

        assert "written" == written.answer.decided.output.text
        assert "no-output" == missing.answer.decided.code
        assert "No such file" in missing.answer.decided.reason


ENDS: dict[str, tuple[str, Any]] = {
    "exit 3 with words": (
        "echo first >&2; echo the last >&2; exit 3",
        TryAgain(reason="exit 3: the last", code="exit-3"),
    ),
    "exit 1 without words": ("exit 1", TryAgain(reason="exit 1", code="exit-1")),
    "a signal": ("kill -9 $$", TryAgain(reason="signal 9", code="signal-9")),
    "words that are no text": (
        "printf 'bad \\377\\000\\n' >&2; exit 3",
        TryAgain(reason="exit 3: bad \ufffd\ufffd", code="exit-3"),
    ),
    "exit 75": ("echo busy >&2; exit 75", Later(seconds=30.0, reason="exit 75: busy")),
    "exit 78": ("echo ask >&2; exit 78", HoldBack(code="program", reason="exit 78: ask")),
}


async def test_every_end_has_its_meaning(tmp_path: Path) -> None:
    """Exit 0 alone is done; 75 is later, 78 a hold, all else another try, each with the last words."""
    found = {}
    async with desk(tmp_path, one_step("sh", "{source}")) as made:
        for number, (case, (script, _)) in enumerate(ENDS.items()):
            (tmp_path / "script").write_text(script)
            answer = await made.run(number=number, row=with_source("i", tmp_path / "script"))
            found[case] = (script, answer.answer.decided)
    assert ENDS == found


def test_log_of_many_tries_is_bounded_and_shows_the_newest(tmp_path: Path) -> None:
    """The cap is the file's: no number of tries outgrows it, and the newest try can always be read."""
    path = tmp_path / "log"
    for number in range(20):
        with RunLog(str(path), f"try {number}", most=1000) as log:
            log.write(b"%d " % number * 100)
            log.write(b"x" * 2000)
        raw = path.read_bytes()
        assert b"--- try %d ---\n%d " % (number, number) in raw
        assert len(raw) < 1000 + 300

    assert raw.startswith(b"--- what earlier tries printed is not kept: the log was full ---\n")


NOT_STARTED = {
    "no program": (errno.ENOENT, "prog", HoldBack),
    "not ours to run": (errno.EACCES, "prog", HoldBack),
    "no program's bytes": (errno.ENOEXEC, "prog", HoldBack),
    "no folder to run in": (errno.ENOENT, "/scratch", TryAgain),
    "no more processes": (errno.EAGAIN, None, Later),
    "no memory": (errno.ENOMEM, None, Later),
    "no more descriptors": (errno.EMFILE, None, Later),
    "a broken disk": (errno.EIO, "prog", TryAgain),
}


@pytest.mark.parametrize("case", NOT_STARTED)
async def test_only_a_program_that_is_none_is_a_hold(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person is asked where the program itself is at fault; a system short of something recovers."""
    number, path, expected = NOT_STARTED[case]
    asked = one_step("prog")
    steps = programs.load(asked)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(subprocess, "Popen", refuse)
    run = frames.Run(
        job="j",
        epoch=1,
        item="i",
        number=1,
        step="only",
        occurrence=1,
        log=str(tmp_path / "log"),
        scratch=str(tmp_path),
        row=Item(id="i", ordinal=0),
    )
    decided = (await steps.run(run, Trial())).decided

    assert expected is type(decided)
    assert f"cannot start prog: {os.strerror(number)}" == getattr(decided, "reason", "")


async def test_program_that_is_not_there_is_a_hold(tmp_path: Path) -> None:
    """No number of tries installs a program: a person must."""
    async with desk(tmp_path, one_step("no-such-program")) as made:
        decided = (await made.run()).answer.decided

        assert (
            HoldBack(code="cannot_start", reason="cannot start no-such-program: No such file or directory")
            == decided
        )


LOOK = """
import json, os, sys
found = sorted(pair for pair in os.environ.items() if pair[0].startswith(("RESUMED_I", "RESUMED_SOURCE")))
print(json.dumps([sys.argv[1:], sys.stdin.read(), found]))
"""


async def test_program_gets_values_as_words_and_variables(tmp_path: Path) -> None:
    """Placeholders become whole words without a shell, paths never options; the same are variables."""
    toml = """
    version = 1
    inputs.year = { type = "int", default = 1999 }
    inputs.mood = { type = "string", default = "-v; rm" }
    [[step]]
    name = "only"
    repeatable = true
    run = ["python3", "-I", "LOOK", "{item}", "{source}", "{source.stem}", "{source.rel}", "{job}/{attempt}",
      "{inputs.year}", "{inputs.mood}", "{{x}}"]
    stdin = "dear {item}\\n"
    """
    source = tmp_path / "a b;$HOME.txt"
    source.write_text("x")
    (tmp_path / "look.py").write_text(LOOK)
    async with desk(tmp_path, contract(toml.replace("LOOK", str(tmp_path / "look.py")))) as made:
        row = with_source("-rf", source)
        answer = await made.run(item="-rf", row=row, inputs='{"year":2001}', attempt=4, interrupted=True)
        words, stdin, variables = json.loads(answer.answer.decided.output.text)

        assert ["./-rf", str(source), "a b;$HOME", "a b;$HOME.txt", "j/4", "2001", "-v; rm", "{x}"] == words
        assert "dear -rf\n" == stdin
        assert {
            "RESUMED_INPUTS_YEAR": "2001",
            "RESUMED_INPUTS_MOOD": "-v; rm",
            "RESUMED_INTERRUPTED": "1",
            "RESUMED_ITEM": "-rf",
            "RESUMED_SOURCE": str(source),
            "RESUMED_SOURCE_STEM": "a b;$HOME",
            "RESUMED_SOURCE_REL": "a b;$HOME.txt",
        } == dict(variables)


async def test_steps_hand_their_outputs_on(tmp_path: Path) -> None:
    """An earlier step's output comes to a later one as a file with exactly its bytes."""
    toml = """
    version = 1
    [[step]]
    name = "first"
    repeatable = true
    run = ["printf", 'one \\377']
    [[step]]
    name = "second"
    repeatable = true
    run = ["cat", "LARGE"]
    [[step]]
    name = "third"
    repeatable = true
    run = ["cat", "{outputs.second}", "{outputs.first}"]
    """
    large = os.urandom(20_000)
    (tmp_path / "large").write_bytes(large)
    async with desk(tmp_path, contract(toml.replace("LARGE", str(tmp_path / "large")))) as made:
        outputs: list[Artifact] = []
        for number, (name, then) in enumerate((("first", "second"), ("second", "third"))):
            row = Item(id="i", ordinal=0, outputs=tuple(outputs))
            decided = (await made.run(name, number=number, row=row, artifacts=str(tmp_path))).answer.decided
            assert isinstance(decided, NextStep)
            assert (then, False, name) == (decided.step, decided.waits, decided.output.name)
            outputs.append(kept(tmp_path, decided.output))
        row = Item(id="i", ordinal=0, outputs=tuple(outputs))
        last = (await made.run("third", number=9, row=row, artifacts=str(tmp_path))).answer.decided
        (tmp_path / outputs[1].sha256).write_bytes(b"rotten")
        unfit = (await made.run("third", number=10, row=row, artifacts=str(tmp_path))).answer.decided
        none = (await made.run("third", number=11)).answer.decided

        assert isinstance(last, Accepted)
        assert large + b"one \xff" == Path(last.output.path).read_bytes()
        assert "no-input" == unfit.code
        reason = "outputs.first, outputs.second: that step never ended well for it"
        assert HoldBack(code="no_input", reason=reason) == none


def kept(folder: Path, offer: Offer) -> Artifact:
    """What the daemon makes of an offer, its bytes in `folder` where they are many."""
    if offer.path is not None:
        (folder / offer.sha256).write_bytes(Path(offer.path).read_bytes())
    return Artifact(
        name=offer.name, sha256=offer.sha256, size=offer.size, text=offer.text, base64=offer.base64
    )


async def test_steps_of_a_release_before_are_handed_on(tmp_path: Path) -> None:
    """An item that stands between two steps since an older release finds what the first one made."""
    toml = """
    version = 1
    [[step]]
    name = "first"
    repeatable = true
    run = ["true"]
    [[step]]
    name = "second"
    repeatable = true
    run = ["cat", "{outputs.first}"]
    """
    async with desk(tmp_path, contract(toml)) as made:
        row = Item(id="i", ordinal=0, data='{"outputs":{"first":{"base64":"b25lIP8="}}}')
        decided = (await made.run("second", row=row)).answer.decided

    assert b"one \xff" == base64.b64decode(decided.output.base64)


GLOB = """
version = 1
inputs.folder = { type = "path", roots = ["/"] }
items = { from = "glob", glob = "{inputs.folder}/**/*.txt", max = 5 }
[[step]]
name = "only"
repeatable = true
parallel = 3
run = ["echo", "{source.rel}"]
"""


async def test_start_lists_and_pins(tmp_path: Path) -> None:
    """The first step freezes the items: sorted regular files by relative name, each pinned by its bytes."""
    folder = tmp_path / "a[1]*"
    (folder / "sub").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "sub/c.txt", "d.md"):
        (folder / name).write_text(name)
    (folder / "folder.txt").mkdir()
    os.mkfifo(folder / "pipe.txt")
    inputs = json.dumps({"folder": str(folder)})
    async with desk(tmp_path, contract(GLOB)) as made:
        decided = (await made.run("start", "", inputs=inputs)).answer.decided
        item = decided.items[2]
        run = await made.run(item=item.id, row=Item(id=item.id, ordinal=2, source=item.source), inputs=inputs)

        assert ["a.txt", "b.txt", "sub/c.txt"] == [one.id for one in decided.items]
        assert ("only", "finish", 3) == (decided.start, decided.then, decided.parallel)
        assert (PinKind.SHA256, hashlib.sha256(b"sub/c.txt").hexdigest(), 9) == (
            item.source.pin,
            item.source.sha256,
            item.source.size,
        )
        assert "sub/c.txt\n" == run.answer.decided.output.text


async def test_start_lists_by_the_job_files_own_pattern(tmp_path: Path) -> None:
    """A pattern in the job file takes the place of the workflow's, and its braces are plain letters."""
    (tmp_path / "{x}").mkdir()
    for name in ("{x}/a.log", "{x}/b.log", "c.txt"):
        (tmp_path / name).write_text(name)
    pattern = f"{tmp_path}/{{x}}/*.log"
    async with desk(tmp_path, contract(GLOB)) as made:
        inputs = json.dumps({"folder": str(tmp_path)})
        decided = (await made.run("start", "", inputs=inputs, items_glob=pattern)).answer.decided
        row = Item(id="a.log", ordinal=0, source=decided.items[0].source)
        run = await made.run(item="a.log", row=row, inputs=inputs, items_glob=pattern)

        assert ["a.log", "b.log"] == [one.id for one in decided.items]
        assert "a.log\n" == run.answer.decided.output.text


async def test_start_pins_large_files_by_what_they_are(tmp_path: Path) -> None:
    """Above 64 MiB a file is known by size, time and inode: it is not read."""
    with open(tmp_path / "large.txt", "wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    async with desk(tmp_path, contract(GLOB)) as made:
        answer = await made.run("start", "", inputs=json.dumps({"folder": str(tmp_path)}))
        source = answer.answer.decided.items[0].source
        status = (tmp_path / "large.txt").stat()

        assert (PinKind.STAT, "", status.st_size) == (source.pin, source.sha256, source.size)
        assert (status.st_mtime_ns // 1000, status.st_ino) == (source.mtime, source.inode)


async def test_start_holds_what_it_cannot_freeze(tmp_path: Path) -> None:
    """No items, too many, unreadable ones and names that are no text are a person's affair, said in words."""
    made_by = {
        "no items": (lambda folder: None, "gives no items"),
        "too many": (
            lambda folder: [(folder / f"{n}.txt").touch() for n in range(6)],
            "gives more than 5 items (items.max)",
        ),
        "no text": (
            lambda folder: Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")).touch(),
            "not UTF-8",
        ),
    }
    async with desk(tmp_path, contract(GLOB)) as made:
        for number, (name, (make, expected)) in enumerate(made_by.items()):
            folder = tmp_path / name
            folder.mkdir()
            make(folder)  # type: ignore[no-untyped-call]
            inputs = json.dumps({"folder": str(folder)})
            decided = (await made.run("start", "", number, inputs=inputs)).answer.decided

            assert "items" == decided.code
            assert expected in decided.reason
        gone = (with_source("x", tmp_path / "gone"), with_source("y", tmp_path))
        decided = (await made.run("start", "", 8, inputs=inputs, items=gone)).answer.decided
        said = "x: cannot read its source: No such file or directory; "
        said += "y: cannot read its source: it is not a regular file"
        assert HoldBack(code="items", reason=said) == decided
