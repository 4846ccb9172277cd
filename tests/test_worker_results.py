"""What a program's result file says: through the strict door, refining the exit status, never done alone."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from worker_kit import contract, desk, one_step, with_source

from resumed.actors.worker import results
from resumed.schemas import frames
from resumed.schemas.decisions import (
    Accepted,
    Asking,
    CutOff,
    Decided,
    Failed,
    HoldBack,
    Later,
    LeftOut,
    TryAgain,
)
from resumed.schemas.instant import read as wall
from resumed.schemas.job import Budget

pytestmark = pytest.mark.anyio

WRITE = 'printf %s "$1" > "$RESUMED_RESULT"; exit "$2"'
NOON = "2026-11-29T12:00:00+01:00"
NOON_UTC = wall("2026-11-29T11:00:00.000000Z")
SAID = "expected one of done, retry, later, skip, fail, hold, got 'ok' @ $.outcome"

MEANT: dict[tuple[str, int], Any] = {
    ("", 0): TryAgain(
        reason="exit 0; its result does not hold: not JSON: Expecting value: line 1 column 1 (char 0)",
        code="bad-result",
    ),
    ('{"outcome":"done"}', 1): TryAgain(
        reason="exit 1; its result says done, which needs both", code="exit-1"
    ),
    ('{"outcome":"retry","reason":"busy"}', 0): TryAgain(reason="busy", code="result-retry"),
    ('{"outcome":"later"}', 0): Later(seconds=30.0, reason="exit 0"),
    (f'{{"until":"{NOON}","reason":"quota"}}', 75): Later(seconds=1.0, until=NOON_UTC, reason="quota"),
    (f'{{"until":"{NOON}"}}', 0): Later(seconds=1.0, until=NOON_UTC, reason="exit 0"),
    ('{"outcome":"later","until":"90m"}', 1): Later(seconds=5400.0, reason="exit 1"),
    ('{"outcome":"later","until":"0s"}', 1): Later(seconds=1.0, reason="exit 1"),
    ('{"outcome":"skip","reason":"a copy"}', 0): LeftOut(reason="a copy"),
    ('{"outcome":"fail","reason":"no such page"}', 1): Failed(reason="no such page"),
    ('{"outcome":"hold"}', 0): HoldBack(code="program", reason="exit 0"),
    ('{"reason":"in its own words"}', 3): TryAgain(reason="in its own words", code="exit-3"),
    ('{"question":"which Li?"}', 0): Asking(text="which Li?", then="only"),
    ('{"question":" "}', 0): TryAgain(
        reason="exit 0; its result does not hold: expected words @ $.question", code="bad-result"
    ),
    ('{"outcome":"ok"}', 0): TryAgain(reason=f"exit 0; its result does not hold: {SAID}", code="bad-result"),
    ('{"outcome":"ok"}', 75): Later(seconds=30.0, reason=f"exit 75; its result does not hold: {SAID}"),
    ('{"result":1}', 78): HoldBack(
        code="program", reason="exit 78; its result does not hold: unknown key 'result' @ $"
    ),
}


async def test_a_result_refines_the_exit_status(tmp_path: Path) -> None:
    """The file says more than a number can; where it does not hold, a good exit is no good end."""
    found: dict[tuple[str, int], Decided] = {}
    toml = """
    version = 1
    [[step]]
    name = "only"
    repeatable = true
    run = ["sh", "{source}"]
    """
    async with desk(tmp_path, contract(toml)) as made:
        for number, (text, status) in enumerate(MEANT):
            (tmp_path / "script").write_text(f"printf %s '{text}' > $RESUMED_RESULT; exit {status}")
            answer = await made.run(number=number, row=with_source("i", tmp_path / "script"))
            found[text, status] = answer.answer.decided
            assert answer.answer.used is None

    assert MEANT == found


FAULTS = {
    "two kinds of mistake": ('{"usd":"x","tokens":-1}', ["$.usd", "$.tokens"]),
    "money as a float": ('{"usd":0.05}', ["expected string, got number @ $.usd"]),
    "money to the billionth": ('{"usd":"0.000000001"}', ["$.usd"]),
    "a key twice": ('{"usd":"1","usd":"2"}', ["key 'usd' is written twice @ $"]),
    "not an object": ("[]", ["expected object, got list @ $"]),
    "a moment without zone": ('{"until":"2026-11-29T12:00:00"}', ["names no zone", "@ $.until"]),
    "a moment for what is done": (
        '{"outcome":"done","until":"1h"}',
        ['belongs to outcome = "later" @ $.until'],
    ),
    "bytes that are no text": (b'{"reason":"\xff"}', ["not UTF-8"]),
    "too long": ('{"reason":"' + "x" * results.MOST + '"}', [f"more than {results.MOST} bytes"]),
}


@pytest.mark.parametrize("case", FAULTS)
async def test_a_result_that_does_not_hold_says_where(case: str, tmp_path: Path) -> None:
    """Whatever is wrong with the file is told with its path, and nothing of it counts."""
    raw, expected = FAULTS[case]
    (tmp_path / "raw").write_bytes(raw.encode() if isinstance(raw, str) else raw)
    async with desk(tmp_path, one_step("sh", "-c", 'cp "$1" "$RESUMED_RESULT"', "sh", "{source}")) as made:
        answer = (await made.run(row=with_source("i", tmp_path / "raw"))).answer

    assert ("bad-result", None) == (answer.decided.code, answer.used)
    for said in expected:
        assert said in answer.decided.reason


async def test_a_json_result_must_be_written_and_hold(tmp_path: Path) -> None:
    """With `result = "json"` no exit alone makes an item done, and the outcome must be said."""
    run = one_step("sh", "{source}", more='result = "json"\nexit = { 3 = "done" }')
    scripts = {
        "exit 3": TryAgain(reason="exit 3, but it wrote no result", code="no-result"),
        "exit 1": TryAgain(reason="exit 1", code="exit-1"),
        "mkdir $RESUMED_RESULT": TryAgain(
            reason="exit 0; its result does not hold: it is not a regular file", code="bad-result"
        ),
        'echo \'{"usd":"1"}\' > $RESUMED_RESULT': TryAgain(
            reason="exit 0; its result does not hold: required key 'outcome' is missing @ $",
            code="bad-result",
        ),
    }
    found = {}
    async with desk(tmp_path, run) as made:
        for number, script in enumerate(scripts):
            (tmp_path / "script").write_text(script)
            row = with_source("i", tmp_path / "script")
            found[script] = (await made.run(number=number, row=row)).answer.decided
        (tmp_path / "script").write_text('echo \'{"outcome":"done"}\' > $RESUMED_RESULT; echo ok; exit 3')
        done = (await made.run(number=9, row=with_source("i", tmp_path / "script"))).answer.decided

    assert scripts == found
    assert isinstance(done, Accepted)


SPENT = """
case "$RESUMED_ITEM" in
silent) echo '{"tokens":3}' > "$RESUMED_RESULT"; sleep 600 ;;
stopped) echo '{"usd":"0.7"}' > "$RESUMED_RESULT"; echo up > "$1"; sleep 0.2; echo still here; sleep 600 ;;
*) echo '{"usd":"1.25","tokens":7}' > "$RESUMED_RESULT"; test "$RESUMED_ITEM" != failing ;;
esac
"""


async def test_what_was_spent_counts_however_it_ended(tmp_path: Path) -> None:
    """Done, failed by itself or its check, silent or stopped: the numbers come with the end."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "script").write_text(SPENT)
    more = 'silence = "500ms"\nverify = ["test", "unfit", "!=", "{item}"]'
    run = one_step("sh", str(tmp_path / "script"), str(tmp_path / "fifo"), more=more)
    found: dict[str, tuple[str, Budget | None]] = {}
    async with desk(tmp_path, run) as made:
        for number, item in enumerate(("done", "failing", "unfit", "silent")):
            answer = (await made.run(item=item, number=number)).answer
            found[item] = (type(answer.decided).__name__, answer.used)
        made.worker.send(made.frame(item="stopped", number=9))
        await anyio.Path(tmp_path / "fifo").read_text()
        made.stop(item="stopped", number=9)
        stopped = await made.heard()

    whole = Budget(usd="1.25", tokens=7)
    expected = {"done": Accepted, "failing": TryAgain, "unfit": TryAgain, "silent": CutOff}
    assert {
        name: (kind.__name__, Budget(tokens=3) if name == "silent" else whole)
        for name, kind in expected.items()
    } == found
    assert frames.Stopped(job="j", epoch=1, item="stopped", number=9, used=Budget(usd="0.7")) == stopped


async def test_the_jobs_own_step_cannot_skip(tmp_path: Path) -> None:
    """`skip` is about an item: of the job's own step it does not hold."""
    script = 'echo \'{"outcome":"skip"}\' > $RESUMED_RESULT'
    async with desk(
        tmp_path, one_step("sh", "-c", script.replace("{", "{{").replace("}", "}}"), more="each = false")
    ) as made:
        decided = (await made.run(item="")).answer.decided

    said = "exit 0; its result does not hold: a step with each = false has no item to skip @ $.outcome"
    assert TryAgain(reason=said, code="bad-result") == decided


async def test_a_step_finds_the_answer_to_its_question(tmp_path: Path) -> None:
    """What a person answered is there when the step begins again, and nothing is there before."""
    run = one_step("sh", "-c", 'echo "${{RESUMED_ANSWER-none}}"')
    async with desk(tmp_path, run) as made:
        before = (await made.run()).answer.decided
        given = frames.Given(answer="the second Li", by="lee")
        after = (await made.run(number=2, given=given)).answer.decided

    assert ("none\n", "the second Li\n") == (before.output.text, after.output.text)
