"""Workflow files, job files and inputs: read whole, every key known, every problem named with its path."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from resumed.actors.worker import programs as worker_programs
from resumed.schemas import codec, inputs, jobfilereader, templates, workflowfile
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.jobfile import FileItem, JobFile
from resumed.schemas.workflow import (
    ExitMeaning,
    ExitRule,
    Input,
    InputType,
    Programs,
    ProgramStep,
    PythonEntry,
    StepKind,
)

STEP = '[[step]]\nname = "a"\nrun = ["true"]\nrepeatable = true\n'
WHOLE = """
version = 2
description = "Smaller videos."
owner = "group:video"
enabled = false
inputs.folder = { type = "path", roots = ["/srv/video/"] }
inputs.speed = { type = "choice", choices = ["slow", "fast"], default = "slow" }
items = { from = "glob", glob = "{inputs.folder}/**/*.mkv", max = 500, allow_empty = true }

[[step]]
name = "convert"
run = ["ffmpeg", "-i", "{source}", "{output}"]
stdin = "{{speed}}: {inputs.speed}"
timeout = "6h"
grace = "1m"
tries = 5
backoff = { first = "1s", max = "1h" }
parallel = 2
repeatable = true
output = { max = 1000, publish = "/srv/small/{source.rel}.mp4", keep = "reference" }
prepare = ["mkdir", "{kept}/parts"]
verify = ["ffprobe", "{output}"]
exit = { 1 = "fail", 0 = "done", 69 = "later" }
dir = "{inputs.folder}"
env = { pass = ["DISPLAY"], set = { KEY = "{key}" } }
silence = "10m"
crashes = 2
"""


def test_workflow_file_is_read_whole() -> None:
    """Every key of this release lands in the record."""
    found = workflowfile.read(WHOLE.encode(), "x265")

    assert found == Programs(
        name="x265",
        version=2,
        description="Smaller videos.",
        owner="group:video",
        enabled=False,
        inputs=(
            Input(name="folder", type=InputType.PATH, roots=("/srv/video",)),
            Input(name="speed", type=InputType.CHOICE, choices=("slow", "fast"), default='"slow"'),
        ),
        items_from="glob",
        items_glob="{inputs.folder}/**/*.mkv",
        items_max=500,
        allow_empty=True,
        steps=(
            ProgramStep(
                name="convert",
                run=("ffmpeg", "-i", "{source}", "{output}"),
                stdin="{{speed}}: {inputs.speed}",
                timeout=21_600.0,
                grace=60.0,
                tries=5,
                backoff_first=1.0,
                backoff_max=3600.0,
                parallel=2,
                repeatable=True,
                output_max=1000,
                publish="/srv/small/{source.rel}.mp4",
                keep="reference",
                prepare=("mkdir", "{kept}/parts"),
                verify=("ffprobe", "{output}"),
                exits=(
                    ExitRule(code=0, means=ExitMeaning.DONE),
                    ExitRule(code=1, means=ExitMeaning.FAIL),
                    ExitRule(code=69, means=ExitMeaning.LATER),
                ),
                dir="{inputs.folder}",
                env_pass=("DISPLAY",),
                env_set={"KEY": "{key}"},
                silence=600.0,
                crashes=2,
            ),
        ),
    )


def test_contract_frames_the_items_by_two_job_steps() -> None:
    """A workflow of programs is a start that lists, its steps, and a finish; the definition reads back."""
    programs = workflowfile.read(WHOLE.encode(), "x265")
    contract = worker_programs.contract_of(programs)

    assert [("start", StepKind.JOB), ("convert", StepKind.ITEM), ("finish", StepKind.JOB)] == [
        (each.name, each.kind) for each in contract.steps
    ]
    assert ("x265", 2, "start", 1, "") == (
        contract.workflow,
        contract.version,
        contract.start,
        contract.slots,
        contract.entry,
    )
    assert programs == codec.decode(contract.definition.encode(), Programs, "definition")
    assert (("DISPLAY",), 2) == (contract.passed, contract.steps[1].crashes)


def test_python_workflow_says_so() -> None:
    """A Python workflow's file has an entry and no steps; where its module is comes with the contract."""
    raw = (
        b'version = 3\npython = { entry = "pack.flow:Flow", interpreter = "/opt/v3/bin/python", slots = 4 }\n'
    )
    programs = workflowfile.read(raw, "flow")
    contract = worker_programs.contract_of(programs, "/etc/resumed/workflows.d")

    assert PythonEntry(entry="pack.flow:Flow", interpreter="/opt/v3/bin/python", slots=4) == programs.python
    assert ("pack.flow:Flow", "/opt/v3/bin/python", ()) == (
        contract.entry,
        contract.interpreter,
        contract.steps,
    )
    assert "/etc/resumed/workflows.d" == json.loads(contract.definition)["python"]["folder"]


WRONG = {
    "an unknown key in a step": (STEP + 'verfiy = ["x"]', "unknown key 'verfiy' @ $.step[0]"),
    "a key of a later release": (
        STEP + 'pools = ["x"]',
        "key 'pools' is not in this release yet @ $.step[0]",
    ),
    "an unknown key at the top": ("stpe = 1\n" + STEP, "unknown key 'stpe' @ $"),
    "no repeatable": (
        STEP.replace("repeatable = true\n", ""),
        "required key 'repeatable' is missing @ $.step[0]",
    ),
    "a word for a bool": (
        STEP.replace("true\n", '"false"\n'),
        "expected bool, got string @ $.step[0].repeatable",
    ),
    "a shell string": (STEP.replace('["true"]', '"true; rm"'), "expected list, got string @ $.step[0].run"),
    "an empty argv": (STEP.replace('["true"]', "[]"), "expected a program and its arguments @ $.step[0].run"),
    "a number in argv": (STEP.replace('"true"', "1"), "expected string, got int @ $.step[0].run[0]"),
    "a relative program": (
        STEP.replace('"true"', '"./x"'),
        "expected a program's name or absolute path @ $.step[0].run[0]",
    ),
    "a program from an input": (
        STEP.replace('"true"', '"{item}"'),
        "the program itself is never a placeholder @ $.step[0].run[0]",
    ),
    "an unknown placeholder": (
        STEP.replace('"true"', '"a", "{keep}"'),
        "unknown placeholder {keep} @ $.step[0].run[1]",
    ),
    "an input that is none": (
        STEP.replace('"true"', '"a", "{inputs.x}"'),
        "unknown placeholder {inputs.x} @ $.step[0].run[1]",
    ),
    "a step that comes later": (
        STEP.replace('"true"', '"a", "{outputs.a}"'),
        "unknown placeholder {outputs.a} @ $.step[0].run[1]",
    ),
    "a single brace": (
        STEP.replace('"true"', '"a", "}"'),
        "a single '}': write }} for the character itself @ $.step[0].run[1]",
    ),
    "a script with a placeholder": (
        STEP.replace('"true"', '"env", "bash", "-e", "-xc", "echo {item}"'),
        'no placeholder inside a shell\'s script: pass it as an argument, and use "$1" @ $.step[0].run[4]',
    ),
    "a reserved name": (STEP.replace('"a"', '"finish"'), "'finish' cannot be a step's name @ $.step[0].name"),
    "a name twice": (STEP + STEP, "a step named 'a' stands above @ $.step[1].name"),
    "a bare number of seconds": (STEP + "timeout = 5", "expected string, got int @ $.step[0].timeout"),
    "no time at all": (STEP + 'timeout = "0s"', "expected more than 0s @ $.step[0].timeout"),
    "a duration that is none": (
        STEP + 'grace = "soon"',
        'expected a duration such as "30s", "15m" or "1h30m", got \'soon\' @ $.step[0].grace',
    ),
    "a file nobody writes": (
        STEP + 'output.from = "file"',
        'output.from = "file" needs {output} in run or stdin @ $.step[0].output',
    ),
    "an exit status that is none": (
        STEP + 'exit = { 256 = "done" }',
        "expected an exit status, 0 to 255, got '256' @ $.step[0].exit[\"256\"]",
    ),
    "an exit that means nothing": (
        STEP + 'exit = { 3 = "ok" }',
        "expected one of done, retry, later, skip, fail, hold, got 'ok' @ $.step[0].exit[\"3\"]",
    ),
    "a relative folder": (
        STEP + 'dir = "work"',
        "expected fresh, item or an absolute path, got 'work' @ $.step[0].dir",
    ),
    "a folder for each item": (
        STEP + 'dir = "/srv/{item}"',
        "unknown placeholder {item} (a folder is named by inputs alone) @ $.step[0].dir",
    ),
    "an empty check": (STEP + "verify = []", "expected a program and its arguments @ $.step[0].verify"),
    "a check by a script with a placeholder": (
        STEP + 'verify = ["sh", "-c", "test -s {output}"]',
        'no placeholder inside a shell\'s script: pass it as an argument, and use "$1" @ $.step[0].verify[2]',
    ),
    "a relative program to prepare": (
        STEP + 'prepare = ["./x"]',
        "expected a program's name or absolute path @ $.step[0].prepare[0]",
    ),
    "a variable that is none": (
        STEP + 'env = { pass = ["A-B"] }',
        "'A-B' cannot be a variable's name @ $.step[0].env",
    ),
    "a variable of ours": (
        STEP + 'env.set = { RESUMED_ITEM = "x" }',
        "RESUMED_ITEM: variables of that beginning are the daemon's own @ $.step[0].env",
    ),
    "a variable twice": (
        STEP + 'env = { pass = ["A"], set = { A = "x" } }',
        "A stands in pass and in set @ $.step[0].env",
    ),
    "a variable's unknown placeholder": (
        STEP + 'env.set = { A = "{inputs.x}" }',
        "unknown placeholder {inputs.x} @ $.step[0].env.set.A",
    ),
    "a reference to nothing": (
        STEP + 'output.keep = "reference"',
        'keep = "reference" needs publish: the published file is what is kept @ $.step[0].output.keep',
    ),
    "a relative place": (
        STEP + 'output.publish = "small/x"',
        "expected an absolute path, got 'small/x' @ $.step[0].output.publish",
    ),
    "a folder for a place": (
        STEP + 'output.publish = "/srv/{item}/"',
        "expected the path of a file, got '/srv/{item}/' @ $.step[0].output.publish",
    ),
    "a place that changes with each try": (
        STEP + 'output.publish = "/srv/{attempt}"',
        "unknown placeholder {attempt} (a place is the same at every try) @ $.step[0].output.publish",
    ),
    "an item's place for the job's own step": (
        STEP + 'each = false\noutput.publish = "/srv/{item}"',
        "unknown placeholder {item} (a place is the same at every try) @ $.step[0].output.publish",
    ),
    "an unknown key of an output": (
        STEP + "output.mode = 1",
        "unknown key 'mode' @ $.step[0].output",
    ),
    "a result of a later release": (
        STEP + 'result = "claude"',
        "'claude' is not in this release yet @ $.step[0].result",
    ),
    "a result of no kind": (
        STEP + 'result = "yaml"',
        "expected one of exit, json, got 'yaml' @ $.step[0].result",
    ),
    "an item's place in the job's own step": (
        STEP.replace('"true"', '"a", "{item}"') + "each = false",
        "unknown placeholder {item} @ $.step[0].run[1]",
    ),
    "an item's output in the job's own step": (
        STEP + STEP.replace('"a"', '"b"').replace('"true"', '"a", "{outputs.a}"') + "each = false",
        "unknown placeholder {outputs.a} @ $.step[1].run[1]",
    ),
    "the job's own step many times": (
        STEP + "each = false\nparallel = 2",
        "a step with each = false runs once @ $.step[0].parallel",
    ),
    "the job's own step in an item's folder": (
        STEP + 'each = false\ndir = "item"',
        "a step with each = false has no item @ $.step[0].dir",
    ),
    "the job's own step that skips": (
        STEP + 'each = false\nexit = { 3 = "skip" }',
        "a step with each = false has no item to skip @ $.step[0].exit",
    ),
    "no silence at all": (
        STEP + 'silence = "0s"',
        "expected more than 0s (leave it out to allow any silence) @ $.step[0].silence",
    ),
    "pauses that shrink": (
        STEP + 'backoff = { first = "2m", max = "1m" }',
        "expected first to be at most max @ $.step[0].backoff",
    ),
    "no tries": (STEP + "tries = 0", "expected at least 1, got 0 @ $.step[0].tries"),
    "NaN": ("x = nan\n" + STEP, "not a finite number @ $.x"),
    "no step": ("", "expected [[step]] or python @ $"),
    "both halves": (
        'python = { entry = "a:B" }\n' + STEP,
        "python excludes step and effect, and lists its own items @ $.python",
    ),
    "an entry that is none": (
        'python = { entry = "a.b" }\n',
        "expected \"module:Class\", got 'a.b' @ $.python.entry",
    ),
    "an owner that is none": (
        'owner = "bo"\n' + STEP,
        "expected user:NAME or group:NAME, got 'bo' @ $.owner",
    ),
    "items from a source that is none": (
        'items = { from = "table" }\n' + STEP,
        "expected one of job, glob, lines, jsonl, run, got 'table' @ $.items.from",
    ),
    "a list without from": (
        'items = { file = "/x" }\n' + STEP,
        'expected from = "lines" or "jsonl" beside it @ $.items.file',
    ),
    "lines without a list": (
        'items = { from = "lines" }\n' + STEP,
        'file belongs to from = "lines" or "jsonl", which needs it @ $.items',
    ),
    "a key where there are no members": (
        'items = { from = "lines", file = "/x", key = "id" }\n' + STEP,
        'key belongs to from = "jsonl" or "run" @ $.items',
    ),
    "a key that means the source": (
        'items = { from = "jsonl", file = "/x", key = "source" }\n' + STEP,
        "expected the name of a member other than source, got 'source' @ $.items.key",
    ),
    "a relative list": (
        'items = { from = "lines", file = "x" }\n' + STEP,
        "expected an absolute path @ $.items.file",
    ),
    "a program that lists an item": (
        'items = { run = ["find", "{item}"] }\n' + STEP,
        "unknown placeholder {item} @ $.items.run[1]",
    ),
    "a listing without a program": (
        "items = { run = [] }\n" + STEP,
        "expected a program and its arguments @ $.items.run",
    ),
    "a pin that is none": (
        'items = { pin = "md5" }\n' + STEP,
        "expected one of auto, sha256, stat, none, got 'md5' @ $.items.pin",
    ),
    "a glob without from": (
        'items = { from = "glob" }\n' + STEP,
        'glob belongs to from = "glob", which needs it @ $.items',
    ),
    "a relative glob": ('items = { glob = "*.txt" }\n' + STEP, "expected an absolute path @ $.items.glob"),
    "too many items": (
        'items = { glob = "/x/*", max = 99999 }\n' + STEP,
        "the most is 10000, got 99999 @ $.items.max",
    ),
    "a default of another type": (
        'inputs.n = { type = "int", default = "3" }\n' + STEP,
        "expected int, got string @ $.inputs.n.default",
    ),
    "a choice without any": (
        'inputs.n = { type = "choice" }\n' + STEP,
        'choices belong to type = "choice", which needs some @ $.inputs.n',
    ),
    "a type that is none": (
        'inputs.n = { type = "float" }\n' + STEP,
        "expected one of string, text, int, bool, decimal, date, path, choice, got 'float' @ $.inputs.n.type",
    ),
    "a pattern for a number": (
        'inputs.n = { type = "int", pattern = "1" }\n' + STEP,
        'pattern belongs to type = "string" or "text" or "path" or "decimal" @ $.inputs.n',
    ),
    "a most for a date": (
        'inputs.n = { type = "date", max = 1 }\n' + STEP,
        'max belongs to type = "string" or "text" or "path" or "int" or "decimal" @ $.inputs.n',
    ),
    "roots for a text": (
        'inputs.n = { roots = ["/x"] }\n' + STEP,
        'roots belongs to type = "path" @ $.inputs.n',
    ),
    "a pattern that looks ahead": (
        'inputs.n = { pattern = "(?!x).*" }\n' + STEP,
        "a pattern may not look ahead or behind @ $.inputs.n.pattern",
    ),
    "a pattern that is none": (
        'inputs.n = { pattern = "(" }\n' + STEP,
        "not a pattern: missing ), unterminated subpattern at position 0 @ $.inputs.n.pattern",
    ),
    "a pattern beyond counting": (
        'inputs.n = { pattern = "x{99999999999}" }\n' + STEP,
        "not a pattern: the repetition number is too large @ $.inputs.n.pattern",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_workflow_file_problem_is_named(case: str) -> None:
    """What is wrong with a workflow file is told as one sentence with its path."""
    body, expected = WRONG[case]

    with pytest.raises(FaultyInputError) as refused:
        workflowfile.read(f"version = 1\n{body}".encode(), "x265")
    assert (expected,) == refused.value.problems
    assert f"cannot load x265.toml: {expected}" == str(refused.value)


BROKEN = {
    "no version": (STEP.encode(), "required key 'version' is missing @ $"),
    "version 0": (b"version = 0\n" + STEP.encode(), "expected at least 1, got 0 @ $.version"),
    "version true": (b"version = true\n" + STEP.encode(), "expected int, got bool @ $.version"),
    "not TOML": (b"version = ", "not TOML: Invalid value (at end of document)"),
    "a key twice": (
        b"version = 1\nversion = 2\n",
        "not TOML: Cannot overwrite a value (at line 2, column 12)",
    ),
    "not UTF-8": (b"\xff", "not UTF-8 at byte 0"),
    "too deep": (b"version = 1\nx = " + b"[" * 200 + b"]" * 200, "nested deeper than 64 levels"),
    "too long": (b"#" * 1_048_577, "1048577 bytes, the most is 1048576"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_workflow_file_that_is_broken_is_refused(case: str) -> None:
    """A file that is no workflow at all says why in its first problem."""
    raw, expected = BROKEN[case]

    with pytest.raises(FaultyInputError) as refused:
        workflowfile.read(raw, "x265")
    assert refused.value.problems[0].startswith(expected)


def test_all_problems_are_told_at_once() -> None:
    """Who mends a file sees all that is wrong with it."""
    raw = b'version = 0\nx = 1\n[[step]]\nname = "start"\nrun = ["a", "{b}"]\n'

    with pytest.raises(FaultyInputError) as refused:
        workflowfile.read(raw, "x265")
    assert 5 == len(refused.value.problems)


def test_job_file_is_read_whole() -> None:
    """Every key of this release lands in the record, from JSON and from TOML."""
    value = {
        "workflow": "x265@3",
        "id": "attic",
        "tenant": "film",
        "title": "The attic",
        "objective": "Make it small.",
        "labels": {"room": "attic"},
        "items": [
            "a",
            {"id": "b", "source": "/srv/b.mkv", "inputs": {"speed": "fast"}},
            {"source": "/srv/c.mkv"},
        ],
        "inputs": {"folder": "/srv/video"},
        "owner": "user:anna",
        "priority": -3,
        "after": ["cellar", "roof"],
        "not_before": "2026-11-29T03:00:00+01:00",
        "deadline": "36h",
    }
    toml = """
    workflow = "x265@3"
    id = "attic"
    tenant = "film"
    title = "The attic"
    objective = "Make it small."
    labels.room = "attic"
    items = ["a", { id = "b", source = "/srv/b.mkv", inputs = { speed = "fast" } }, { source = "/srv/c.mkv" }]
    inputs.folder = "/srv/video"
    owner = "user:anna"
    priority = -3
    after = ["cellar", "roof"]
    not_before = 2026-11-29T03:00:00+01:00
    deadline = "36h"
    """
    expected = JobFile(
        workflow="x265",
        version=3,
        id="attic",
        tenant="film",
        title="The attic",
        objective="Make it small.",
        labels={"room": "attic"},
        items=(
            FileItem(id="a"),
            FileItem(id="b", source="/srv/b.mkv", inputs='{"speed":"fast"}'),
            FileItem(id="c.mkv", source="/srv/c.mkv"),
        ),
        inputs='{"folder":"/srv/video"}',
        owner="user:anna",
        priority=-3,
        after=("cellar", "roof"),
        not_before="2026-11-29T02:00:00.000000Z",
        deadline="36h",
    )

    assert expected == jobfilereader.read(json.dumps(value).encode(), "attic.json")
    assert expected == jobfilereader.read(toml.encode(), "attic.toml")
    for form in ("glob", "lines", "jsonl"):
        raw = json.dumps({"workflow": "x", "items": {form: "/srv/x"}}).encode()
        named = {f"items_{form}": "/srv/x"}
        assert JobFile(workflow="x", **named) == jobfilereader.read(raw, "g.json")


JOBS = {
    "no workflow": ("{}", "required key 'workflow' is missing @ $"),
    "a version that is none": (
        '{"workflow":"x@03"}',
        'expected "name" or "name@3", got \'x@03\' @ $.workflow',
    ),
    "a command": ('{"workflow":"x","run":["sh"]}', "unknown key 'run' @ $"),
    "an environment": ('{"workflow":"x","env":{}}', "unknown key 'env' @ $"),
    "a deadline in no zone": (
        '{"workflow":"x","deadline":"2026-11-29T03:00:00"}',
        "2026-11-29T03:00:00 names no zone: add Z or an offset such as +01:00 @ $.deadline",
    ),
    "a start that is no time": (
        '{"workflow":"x","not_before":null}',
        (
            'expected a moment such as "2026-11-29T03:00:00+01:00", or a span from now such as "36h" '
            "@ $.not_before"
        ),
    ),
    "a priority out of range": ('{"workflow":"x","priority":11}', "expected -10 to 10, got 11 @ $.priority"),
    "a priority that is a text": (
        '{"workflow":"x","priority":"5"}',
        "expected int, got string @ $.priority",
    ),
    "a wait for itself": (
        '{"workflow":"x","id":"b","after":["a","b"]}',
        "a job cannot wait for itself @ $.after[1]",
    ),
    "a wait for half a name": (
        '{"workflow":"x","after":["../a"]}',
        "expected a job's whole id, got '../a' @ $.after[0]",
    ),
    "a wait twice": (
        '{"workflow":"x","after":["a","a"]}',
        "the job 'a' stands at 0 already @ $.after[1]",
    ),
    "a list": ("[]", "expected an object, got list @ $"),
    "an id that is none": (
        '{"workflow":"x","id":"A"}',
        "expected 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit, got 'A' @ $.id",
    ),
    "an id that climbs": (
        '{"workflow":"x","id":"../x"}',
        "expected 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit, got '../x' @ $.id",
    ),
    "an id that is the name of a reason": (
        '{"workflow":"x","id":"a.reason.json"}',
        "expected 1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit, got 'a.reason.json' @ $.id",
    ),
    "an item twice": (
        '{"workflow":"x","items":["a","b",{"id":"a"}]}',
        "the item 'a' stands at 0 already @ $.items[2]",
    ),
    "an item without a name": ('{"workflow":"x","items":[{}]}', "an item's name is empty @ $.items[0]"),
    "an item over two lines": (
        r'{"workflow":"x","items":["a\nb"]}',
        "an item's name holds a character that cannot be shown @ $.items[0]",
    ),
    "an item that is a number": (
        '{"workflow":"x","items":[3]}',
        "expected a name or {id, source, inputs}, got int @ $.items[0]",
    ),
    "an item with a command": (
        '{"workflow":"x","items":[{"id":"a","run":"x"}]}',
        "unknown key 'run' @ $.items[0]",
    ),
    "a relative source": (
        '{"workflow":"x","items":[{"source":"b"}]}',
        "expected an absolute path, got 'b' @ $.items[0].source",
    ),
    "items from two places": (
        '{"workflow":"x","items":{"lines":"/x","glob":"/y"}}',
        "expected one of glob, lines, jsonl @ $.items",
    ),
    "items from a program": (
        '{"workflow":"x","items":{"run":["find"],"glob":"/y"}}',
        "unknown key 'run' @ $.items",
    ),
    "a list that climbs": (
        '{"workflow":"x","items":{"lines":"/x/../y"}}',
        "expected a path without `.`, `..` or doubled slashes @ $.items.lines",
    ),
    "an item that climbs": (
        '{"workflow":"x","items":["a/../../b"]}',
        "an item's name may become part of a path, and must not climb (`..`) @ $.items[0]",
    ),
    "labels that are no text": ('{"workflow":"x","labels":{"a":1}}', "expected string, got int @ $.labels.a"),
    "a text of 64 KiB and one": (
        json.dumps({"workflow": "x", "title": "t" * 65_537}),
        "65537 characters, the most is 65536 @ $.title",
    ),
    "10,001 items": (
        json.dumps({"workflow": "x", "items": [str(n) for n in range(10_001)]}),
        "10001 items, the most is 10000 @ $.items",
    ),
    "a key twice": ('{"workflow":"x","workflow":"y"}', "key 'workflow' is written twice @ $"),
    "a lone surrogate": (r'{"workflow":"x","title":"\ud83d"}', "a lone surrogate is not allowed @ $.title"),
    "a large number": (
        '{"workflow":"x","inputs":{"n":9007199254740992}}',
        "integer beyond +-(2**53 - 1) @ $.inputs.n",
    ),
    "not JSON": (
        "{",
        "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
    "too deep": (
        '{"workflow":"x","inputs":{"n":' + "[" * 70 + "]" * 70 + "}}",
        "nested deeper than 64 levels @ $.inputs.n" + "[0]" * 63,
    ),
    "too long": (" " * 1_048_577, "1048577 bytes, the most is 1048576"),
}


@pytest.mark.parametrize("case", JOBS)
def test_job_file_problem_is_named(case: str) -> None:
    """What is wrong with a job file is told as one sentence with its path."""
    raw, expected = JOBS[case]

    with pytest.raises(FaultyInputError) as refused:
        jobfilereader.read(raw.encode(), "harbour.json")
    assert f"cannot admit harbour.json: {expected}" == str(refused.value)


def test_dates_of_toml_are_the_texts_that_json_has_for_them() -> None:
    """A date written as TOML's own is the same input, and the same job, as its text."""
    toml = b'workflow = "x"\ninputs = { day = 2026-11-29, at = 2026-11-29T03:00:00+01:00, hour = 07:30:00 }\n'
    plain = {"day": "2026-11-29", "at": "2026-11-29T03:00:00+01:00", "hour": "07:30:00"}
    text = json.dumps({"workflow": "x", "inputs": plain}).encode()

    assert jobfilereader.read(text, "a.json") == jobfilereader.read(toml, "a.toml")


HARD_TOML = {
    "an integer of 5,000 digits": "9" * 5000,
    "a day that is none": "2026-02-30",
    "brackets without end": "[" * 5000,
    "tables without end": "{a=" * 5000,
}


@pytest.mark.parametrize("case", HARD_TOML)
@pytest.mark.parametrize("read", [jobfilereader.read, workflowfile.read])
def test_whatever_the_toml_parser_stumbles_over_is_the_files_fault(
    case: str, read: Callable[[bytes, str], object]
) -> None:
    """No text of a TOML file raises anything but the refusal of that file."""
    with pytest.raises(FaultyInputError, match=r"bad\.toml: (not TOML: |nested deeper)"):
        read(f"x = {HARD_TOML[case]}\n".encode(), "bad.toml" if read is jobfilereader.read else "bad")


DECLARED = workflowfile.read(
    b"""
    version = 1
    inputs.year = { type = "int", max = 2100, default = 1999 }
    inputs.name = { pattern = "[a-z]+" }
    inputs.line = { default = "" }
    inputs.sum = { type = "decimal", default = "1.50" }
    inputs.day = { type = "date", default = "2026-11-29" }
    inputs.mood = { type = "choice", choices = ["a", "b"], default = "a" }
    inputs.on = { type = "bool", default = false }
    inputs.at = { type = "path", roots = ["/srv"], default = "/srv/x" }
    inputs.cost = { type = "decimal", max = 9, default = "1e0" }
    inputs.word = { max = 3, default = "" }
    inputs.key = { type = "decimal", private = true, max = 5, default = "1" }
    inputs.where = { type = "path", private = true, roots = ["/srv"], default = "/srv" }
    inputs.pin = { type = "int", private = true, max = 9999, default = 1 }
    """
    + STEP.encode(),
    "x",
).inputs


def test_inputs_are_completed() -> None:
    """Accepted inputs are whole: defaults filled in, in the declared order, text for text."""
    accepted = inputs.check_inputs(DECLARED, '{"sum":"0.10","name":"bo"}', "cannot admit x.json")
    expected = {
        "year": 1999,
        "name": "bo",
        "line": "",
        "sum": "0.10",
        "day": "2026-11-29",
        "mood": "a",
        "on": False,
        "at": "/srv/x",
        "cost": "1e0",
        "word": "",
        "key": "1",
        "where": "/srv",
        "pin": 1,
    }

    assert json.dumps(expected, separators=(",", ":")) == accepted


INPUTS = {
    "a word for a number": ('"year":"x"', "expected int, got string @ $.inputs.year"),
    "a bool for a number": ('"year":true', "expected int, got bool @ $.inputs.year"),
    "a float for a number": ('"year":1.0', "expected int, got number @ $.inputs.year"),
    "too large": ('"year":2101', "the most is 2100, got 2101 @ $.inputs.year"),
    "two lines": ('"line":"a\\nb"', "expected one line @ $.inputs.line"),
    "too long for the pattern": (
        f'"name":"{"a" * 1025}"',
        "1025 characters, the most that a pattern is held against is 1024 @ $.inputs.name",
    ),
    "not the pattern": ('"name":"A"', "does not match [a-z]+ @ $.inputs.name"),
    "a number for a decimal": ('"sum":1.5', "expected string, got number @ $.inputs.sum"),
    "NaN": ('"sum":"NaN"', "expected a decimal number as text, got 'NaN' @ $.inputs.sum"),
    "a day that is none": (
        '"day":"2026-02-30"',
        "expected a date as YYYY-MM-DD, got '2026-02-30' @ $.inputs.day",
    ),
    "a short day": ('"day":"20261129"', "expected a date as YYYY-MM-DD, got '20261129' @ $.inputs.day"),
    "a choice that is none": ('"mood":"c"', "expected one of a, b, got 'c' @ $.inputs.mood"),
    "a number for a bool": ('"on":0', "expected bool, got int @ $.inputs.on"),
    "a path elsewhere": ('"at":"/etc/x"', "does not lie under /srv @ $.inputs.at"),
    "a path beside": ('"at":"/srv2"', "does not lie under /srv @ $.inputs.at"),
    "a path that climbs": (
        '"at":"/srv/../etc"',
        "expected a path without `.`, `..` or doubled slashes @ $.inputs.at",
    ),
    "a relative path": ('"at":"srv"', "expected an absolute path, got 'srv' @ $.inputs.at"),
    "a path with two slashes at its front": (
        '"at":"//srv/x"',
        "expected a path without `.`, `..` or doubled slashes @ $.inputs.at",
    ),
    "too much": ('"cost":"9.01"', "the most is 9, got '9.01' @ $.inputs.cost"),
    "spaces around a number": ('"cost":" 1"', "expected a decimal number as text, got ' 1' @ $.inputs.cost"),
    "a number of 101 digits": (
        f'"cost":"{"1" * 101}"',
        f"expected a decimal number as text, got '{'1' * 101}' @ $.inputs.cost",
    ),
    "too many letters": ('"word":"four"', "4 characters, the most is 3 @ $.inputs.word"),
    "a private number that is none": ('"key":"secret"', "expected a decimal number as text @ $.inputs.key"),
    "a private number that is too much": ('"key":"6"', "the most is 5 @ $.inputs.key"),
    "a private path that is none": ('"where":"secret"', "expected an absolute path @ $.inputs.where"),
    "a private integer that is too much": ('"pin":12345', "the most is 9999 @ $.inputs.pin"),
    "an unknown one": ('"mod":"a"', "unknown key 'mod' @ $.inputs"),
}


@pytest.mark.parametrize("case", INPUTS)
def test_input_problem_is_named(case: str) -> None:
    """What is wrong with an input is told with its path in the job file, the job's own and an item's."""
    given, expected = INPUTS[case]
    name = "" if '"name"' in given else '"name":"bo",'

    with pytest.raises(FaultyInputError) as refused:
        inputs.check_inputs(DECLARED, f"{{{name}{given}}}", "cannot admit harbour.json")
    assert f"cannot admit harbour.json: {expected}" == str(refused.value)
    with pytest.raises(FaultyInputError) as item:
        inputs.check_item_inputs(DECLARED, f"{{{given}}}", "cannot admit h.json", "$.items[3].inputs")
    assert expected.replace("$.inputs", "$.items[3].inputs") == item.value.problems[-1]


def test_private_inputs_are_shown_as_such() -> None:
    """People see that a private input was given, and nothing of it."""
    text = '{"name":"bo","key":"3","pin":4}'

    assert {"name": "bo", "key": "(private)", "pin": "(private)"} == inputs.shown(DECLARED, text)


def test_missing_input_is_named() -> None:
    """An input without a default must be given."""
    with pytest.raises(FaultyInputError, match="required input 'name' is missing @ "):
        inputs.check_inputs(DECLARED, "{}", "cannot admit x.json")


FILLED = {
    "{item}": "i-1",
    "-{item}": "-i-1",
    "{source}.bak": "./-a b.bak",
    "x{source}": "x-a b",
    "{{item}}": "{item}",
    "{inputs.n}{inputs.n}": "-3-3",
    "{{{item}}}": "{i-1}",
}


@pytest.mark.parametrize("word", FILLED)
def test_word_is_filled(word: str) -> None:
    """A value stands where its placeholder stood, braces come in pairs, and a path is never an option."""
    values = {"item": "i-1", "source": "-a b", "inputs.n": "-3"}

    assert [] == list(templates.problems(word, values))
    assert FILLED[word] == templates.fill_word(word, values)


def test_what_a_worker_prints_is_bounded(tmp_path: Path) -> None:
    """What authors' code prints by itself never fills the disk: past 16 MiB the file starts anew."""
    code = (
        "import os; from resumed.actors.worker import main\n"
        "os.write(2, b'x' * (16 << 20)); main._bound_stderr(); print(os.fstat(2).st_size)\n"
        "os.write(2, b'y'); main._bound_stderr(); print(os.fstat(2).st_size)"
    )
    with open(tmp_path / "w.stderr", "ab") as printed:
        ran = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=printed, check=True)

    assert [str(16 << 20), "0"] == ran.stdout.decode().split()


README = Path(__file__).resolve().parent.parent / "README.md"


def test_readme_names_every_key_and_placeholder_of_a_step() -> None:
    """Its table has each key of a step that the reader takes, and its line each placeholder; no others."""
    text = README.read_text().partition("A step may say more than what it runs:")[2]
    rows = [
        line.split("|")[1] for line in text.partition("\n\nWords may hold")[0].splitlines()[4:] if "|" in line
    ]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)} | {"name", "run", "repeatable"}
    found = set()
    for key in (*named, "pools", "nonsense"):
        with pytest.raises(FaultyInputError) as refused:
            workflowfile.read(f"version = 1\n[[step]]\n{key} = 1979-05-27\n".encode(), "x")
        if not any(
            said.startswith((f"unknown key {key!r}", f"key {key!r} is not"))
            for said in refused.value.problems
        ):
            found.add(key)
    line = text.partition("Words may hold")[2].partition("\n")[0]

    assert named == found
    assert {*templates.PLAIN, "inputs.X", "outputs.STEP", "secrets.NAME"} == set(
        re.findall(r"`\{([\w.]+)\}`", line)
    )
    fields = {
        name for name in ProgramStep.__annotations__ if not name.startswith(("output_", "env_", "backoff_"))
    }
    assert fields - {"publish", "keep", "exits"} <= named
