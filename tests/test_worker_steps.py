"""Steps of programs: what an exit means, what prepares and checks, folders and silence."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from worker_kit import alive, contract, desk, one_step, with_source

from resumed.schemas.decisions import Accepted, CutOff, Failed, HoldBack, Later, LeftOut, TryAgain

pytestmark = pytest.mark.anyio

EXITS = 'exit = { 0 = "retry", 1 = "fail", 2 = "skip", 3 = "done", 4 = "hold", 5 = "later", 75 = "fail" }'
MEANT: dict[str, tuple[str, Any]] = {
    "exit 0": ("exit 0", TryAgain(reason="exit 0", code="exit-0")),
    "exit 1": ("echo no >&2; exit 1", Failed(reason="exit 1: no")),
    "exit 2": ("echo none >&2; exit 2", LeftOut(reason="exit 2: none")),
    "exit 4": ("exit 4", HoldBack(code="program", reason="exit 4")),
    "exit 5": ("exit 5", Later(seconds=30.0, reason="exit 5")),
    "exit 75, which the step says anew": ("exit 75", Failed(reason="exit 75")),
    "exit 78, of which it says nothing": ("exit 78", HoldBack(code="program", reason="exit 78")),
    "a signal": ("kill -9 $$", TryAgain(reason="signal 9", code="signal-9")),
}


async def test_a_step_says_what_its_exits_mean(tmp_path: Path) -> None:
    """A step's own table comes first, the usual one after it; a signal is always a failed try."""
    found = {}
    async with desk(tmp_path, one_step("sh", "{source}", more=EXITS)) as made:
        for number, (case, (script, _)) in enumerate(MEANT.items()):
            (tmp_path / "script").write_text(script)
            answer = await made.run(number=number, row=with_source("i", tmp_path / "script"))
            found[case] = (script, answer.answer.decided)
        (tmp_path / "script").write_text("echo ok; exit 3")
        done = await made.run(number=99, row=with_source("i", tmp_path / "script"))

    assert MEANT == found
    assert "ok\n" == done.answer.decided.output.text


CHECKED = """
version = 1
inputs.prepared = { type = "int", default = 0 }
inputs.verified = { type = "int", default = 0 }
[[step]]
name = "only"
repeatable = true
prepare = ["sh", "-c", 'echo ready > made; echo preparing; exit "$1"', "sh", "{inputs.prepared}"]
run = ["sh", "-c", 'cat made; cat; echo "$0"', "{item}"]
stdin = "given\\n"
verify = ["sh", "-c", 'cat "$1"; cat; echo sorry >&2; exit "$2"', "sh", "{output}", "{inputs.verified}"]
"""


async def test_what_prepares_and_what_checks_belong_to_the_try(tmp_path: Path) -> None:
    """One folder, one log with a heading each; the check sees the output, and only the step's own is kept."""
    async with desk(tmp_path, contract(CHECKED)) as made:
        done = (await made.run()).answer.decided
        unprepared = (await made.run(number=2, inputs='{"prepared":3}')).answer.decided
        unfit = (await made.run(number=3, inputs='{"verified":1}')).answer.decided
        log = made.log().decode()

    assert isinstance(done, Accepted)
    assert done.output is not None
    assert "ready\ngiven\ni\n" == done.output.text
    assert TryAgain(reason="prepare: exit 3", code="prepare-exit-3") == unprepared
    assert TryAgain(reason="verify: exit 1: sorry", code="verify-exit-1") == unfit
    first, second, third = (part.partition(" ---\n")[2] for part in log.split("--- i only try ")[1:])
    said = "--- prepare ---\npreparing\n--- exit 0 ---\n--- run ---\nready\ngiven\ni\n--- exit 0 ---\n"
    assert said + "--- verify ---\nready\ngiven\ni\nsorry\n--- exit 0 ---\n" == first
    assert "--- prepare ---\npreparing\n--- exit 3 ---\n" == second
    assert third.endswith("sorry\n--- exit 1 ---\n")


async def test_a_check_that_cannot_be_run_is_a_persons_affair(tmp_path: Path) -> None:
    """A check that is not there says nothing of the item: it is neither done nor failed."""
    async with desk(tmp_path, one_step("true", more='verify = ["no-such-check"]')) as made:
        decided = (await made.run()).answer.decided

    reason = "cannot start no-such-check: No such file or directory"
    assert HoldBack(code="cannot_start", reason=reason) == decided


async def test_each_program_of_a_try_leaves_nothing_behind(tmp_path: Path) -> None:
    """What `prepare` left running is gone before `run` starts; what `verify` left, before the answer."""
    left = 'sleep 600 & echo $! > "$1"'
    toml = f"""
    version = 1
    [[step]]
    name = "only"
    repeatable = true
    prepare = ["sh", "-c", '{left}', "sh", "{{kept}}/first"]
    run = ["sh", "-c", 'read pid < "$1"; grep -q "^State:.Z" /proc/$pid/status || ! kill -0 $pid', "sh",
      "{{kept}}/first"]
    verify = ["sh", "-c", '{left}', "sh", "{{kept}}/second"]
    """
    async with desk(tmp_path, contract(toml)) as made:
        decided = (await made.run(kept=str(tmp_path / "kept"))).answer.decided

        assert isinstance(decided, Accepted)
        assert not alive(int((tmp_path / "kept" / "second").read_text()))


async def test_c49_a_program_that_waits_for_a_key_press_ends(tmp_path: Path) -> None:
    """`read x` finds an empty stdin, `cat </dev/tty` no terminal, and what only waits ends by silence."""
    reads, asks = "read x", "echo 'continue? [y]' >&2; sleep 600"
    waits = {
        reads: TryAgain(reason="exit 1", code="exit-1"),
        "cat </dev/tty": TryAgain(
            reason="exit 2: script: 1: cannot open /dev/tty: No such device or address", code="exit-2"
        ),
        asks: CutOff(
            code="silence", reason="run printed nothing for 0.3 s and was stopped; last: continue? [y]"
        ),
    }
    found = {}
    async with desk(
        tmp_path, one_step("sh", "script", more=f'dir = "{tmp_path}"\nsilence = "300ms"')
    ) as made:
        for number, script in enumerate(waits):
            (tmp_path / "script").write_text(script)
            found[script] = (await made.run(number=number)).answer.decided

    assert waits == found


async def test_silence_ends_with_the_first_byte(tmp_path: Path) -> None:
    """Any byte of either output counts, however slow the program is on the whole; the grace time is kept."""
    slow = "for n in 1 2 3 4 5 6; do printf . >&$((1 + n % 2)); sleep 0.2; done"
    deaf = 'trap "echo bye; exit 0" TERM; while :; do sleep 0.05; done'
    step = 'silence = "600ms"\ngrace = "5s"'
    async with desk(tmp_path, one_step("sh", "{source}", more=step)) as made:
        found = []
        for number, script in enumerate((slow, deaf)):
            (tmp_path / "script").write_text(script)
            answer = await made.run(number=number, row=with_source("i", tmp_path / "script"))
            found.append(answer.answer.decided)
        log = made.log()

    assert isinstance(found[0], Accepted)
    assert CutOff(code="silence", reason="run printed nothing for 0.6 s and was stopped") == found[1]
    assert log.endswith(b"bye\n--- silent for 0.6 s: exit 0 ---\n")


async def test_a_stop_comes_before_silence(tmp_path: Path) -> None:
    """A try that is stopped while it is being ended for its silence is stopped: nobody asked what it did."""
    script = 'trap "echo up > $1; sleep 600" TERM; sleep 600 & wait; sleep 600'
    os.mkfifo(tmp_path / "fifo")
    step = one_step("sh", "-c", script, "sh", str(tmp_path / "fifo"), more='silence = "100ms"\ngrace = "1h"')
    async with desk(tmp_path, step) as made:
        made.worker.send(made.frame())
        await anyio.Path(tmp_path / "fifo").read_text()
        made.stop()

        assert "Stopped" == type(await made.heard()).__name__


DIRS = {
    "fresh": ('dir = "fresh"', "scratch"),
    "item": ('dir = "item"', "kept"),
    "a path": ('dir = "/usr/../usr"', "/usr"),
}


@pytest.mark.parametrize("case", DIRS)
async def test_a_step_says_where_it_runs(case: str, tmp_path: Path) -> None:
    """`fresh` is the try's own folder, `item` the one that is kept, anything else a folder that is there."""
    step, expected = DIRS[case]
    async with desk(tmp_path, one_step("pwd", "-P", more=step)) as made:
        frame = made.frame(kept=str(tmp_path / "kept"))
        made.worker.send(frame)
        answer: Any = await made.heard()

    places = {"scratch": frame.scratch, "kept": frame.kept}
    where = os.path.realpath(places.get(expected, expected))
    assert where + "\n" == answer.answer.decided.output.text


async def test_a_folder_that_is_not_there_is_a_persons_affair(tmp_path: Path) -> None:
    """No number of tries makes a folder."""
    async with desk(tmp_path, one_step("pwd", more=f'dir = "{tmp_path}/none"')) as made:
        decided = (await made.run()).answer.decided

    assert HoldBack(code="dir", reason=f"cannot run in {tmp_path}/none: there is no such folder") == decided


async def test_kept_folder_outlives_a_try_that_was_cut_off(tmp_path: Path) -> None:
    """`{kept}` is the same folder at the next try, which is told that the one before was interrupted."""
    script = 'if test -e "$1/half"; then cat "$1/half"; echo "$RESUMED_INTERRUPTED $RESUMED_KEPT"; exit; fi; '
    script += 'echo half > "$1/half"; echo up > "$2"; sleep 600'
    os.mkfifo(tmp_path / "fifo")
    kept = tmp_path / "job" / "kept" / "x"
    async with desk(tmp_path, one_step("sh", "-c", script, "sh", "{kept}", str(tmp_path / "fifo"))) as made:
        made.worker.send(made.frame(kept=str(kept)))
        await anyio.Path(tmp_path / "fifo").read_text()
        made.stop()
        await made.heard()
        answer = await made.run(number=2, kept=str(kept), interrupted=True)

    assert f"half\n1 {kept}\n" == answer.answer.decided.output.text
