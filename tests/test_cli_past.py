"""`why` and `history` as people see them: golden screens at every width, and a real daemon behind them."""

import json
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from daemon_kit import LOOPS, Daemon, eventually

from resumed.daemon import letters, parsing, render_past

NOW = 1_796_040_000.0  # 2026-11-30, a Monday, noon UTC


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Screens show local time, here UTC, and the locale's letters, here all of them."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    letters.only_ascii.cache_clear()
    time.tzset()
    yield
    monkeypatch.undo()
    letters.only_ascii.cache_clear()
    time.tzset()


SENTENCE = "日本, try 3: a sentence of many words"
WHY: dict[str, Any] = {
    "row": {
        "id": "pay-nov", "status": "held", "needs_person": True, "since": 1_796_008_449_000_000,
        "owner": "finance",
    },
    "reason": "2 failed of 44 items; inv-2231: exit 75: the bank is away (and 1 more)",
    "events": [
        {"at": "2026-11-28T03:12:07.000000Z", "word": "paused", "said": "by anna: tea"},
        {"at": "2026-11-30T03:12:07.000000Z", "word": "failed", "said": "inv-2231, try 3: exit 75"},
        {"at": "2026-11-30T03:14:09.000000Z", "word": "failed", "said": SENTENCE},
    ],
    "checks": [
        {"name": "integrity", "said": "ok", "good": True},
        {"name": "processes", "said": "not known to be gone", "good": False},
    ],
    "wakes": [
        {"said": "bo, and nothing else", "at": ""},
        {"said": "its deadline, which ends it", "at": "2026-11-30T18:00:00.000000Z"},
    ],
    "not_done": ["go on to step finish: items failed, and only a person may leave them behind"],
    "record": 418,
    "commands": [
        {"command": "resumectl retry pay-nov --record 418", "means": "give these 2 a fresh set of tries"},
        {"command": "resumectl logs pay-nov inv-2231", "means": "what its programs said"},
    ],
    "notes": ["line 7 is not there, or cannot be read"],
}  # fmt: skip


def answer(why: dict[str, Any], *, role: str = "operator", yours: bool = True) -> dict[str, Any]:
    """What the daemon answers."""
    return {"why": why, "role": role, "yours": yours}


GOLDEN_WHY = [
    "pay-nov is held since 03:14: 2 failed of 44 items; inv-2231: exit 75: the bank is away (and 1 more).",
    " Sat 03:12:07  paused      by anna: tea",
    " 03:12:07      failed      inv-2231, try 3: exit 75",
    " 03:14:09      failed      日本, try 3: a sentence of many words",
    "checks     integrity ok  PROCESSES not known to be gone",
    "wakes by   bo, and nothing else / its deadline, which ends it at 18:00:00",
    "not done   go on to step finish: items failed, and only a person may leave them behind",
    "you may    (bound to record 418; role operator)",
    "  resumectl retry pay-nov --record 418    give these 2 a fresh set of tries",
    "  resumectl logs pay-nov inv-2231         what its programs said",
    "owner      finance",
    "! line 7 is not there, or cannot be read",
]
GOLDEN_WHY_60 = [
    "pay-nov is held since 03:14: 2 failed of 44 items; inv-2231:",
    "exit 75: the bank is away (and 1 more).",
    " Sat 03:12:07  paused      by anna: tea",
    " 03:12:07      failed      inv-2231, try 3: exit 75",
    " 03:14:09      failed      日本, try 3: a sentence of many",
    "                           words",
    "checks     integrity ok  PROCESSES not known to be gone",
    "wakes by   bo, and nothing else",
    "           its deadline, which ends it at 18:00:00",
    "not done   go on to step finish: items failed, and only a",
    "           person may leave them behind",
    "you may    (bound to record 418; role operator)",
    "  resumectl retry pay-nov --record 418",
    "      give these 2 a fresh set of tries",
    "  resumectl logs pay-nov inv-2231",
    "      what its programs said",
    "owner      finance",
    "! line 7 is not there, or cannot be read",
]


@pytest.mark.parametrize(("width", "golden"), [(110, GOLDEN_WHY), (60, GOLDEN_WHY_60)])
@pytest.mark.usefixtures("utc")
def test_why_screen(width: int, golden: list[str]) -> None:
    """The sentence, what led to it, what was checked, what it waits for, what may be typed, whose it is."""
    assert golden == render_past.why_view(answer(WHY), NOW, width, False)


@pytest.mark.usefixtures("utc")
def test_events_stand_below_their_word_where_there_is_no_room() -> None:
    """On a very narrow terminal what happened is told on lines of its own, none of which runs over."""
    lines = render_past.why_view(answer(WHY), NOW, 40, False)
    start = lines.index(" 03:14:09      failed")

    assert ["    日本, try 3: a sentence of many", "    words"] == lines[start + 1 : start + 3]
    assert all(letters.columns(line) <= 40 for line in lines[:start])


@pytest.mark.parametrize("width", [40, 30, 20])
@pytest.mark.usefixtures("utc")
def test_commands_stay_whole_on_a_narrow_terminal(width: int) -> None:
    """However narrow it is, a command stands on its own line, to be copied whole."""
    lines = render_past.why_view(answer(WHY), NOW, width, False)

    assert [] == [each["command"] for each in WHY["commands"] if f"  {each['command']}" not in lines]


@pytest.mark.usefixtures("utc")
def test_commands_that_change_nothing_need_no_role() -> None:
    """Without a record and a role nothing stands behind the head of the commands."""
    lines = render_past.why_view(answer(WHY | {"record": 0}, role=""), NOW, 100, False)

    assert "you may" in lines


@pytest.mark.usefixtures("utc")
def test_who_has_not_the_role_is_told_what_others_may() -> None:
    """Only what whoever looks may type stands under `you may`; the rest stands under who else may."""
    lines = render_past.why_view(answer(WHY, yours=False), NOW, 110, False)
    start = lines.index("you may")

    assert [
        "you may",
        "  resumectl logs pay-nov inv-2231    what its programs said",
        "others may (bound to record 418; role operator)",
        "  resumectl retry pay-nov --record 418    give these 2 a fresh set of tries",
    ] == lines[start : start + 4]


def transition(**changes: Any) -> dict[str, Any]:
    whole = {
        "sequence": 7, "at": "2026-11-30T03:12:07.000000Z", "epoch": 1, "by": "machine",
        "transition": "start", "rule": "start a.mkv", "choice": "started", "reason": "", "started": [],
        "stopped": [], "evidence": "",
    }  # fmt: skip
    return whole | changes


TRANSITIONS = [
    transition(started=["a.mkv"]),
    transition(
        sequence=8, by="uid:1000 anna", rule="pause", choice="paused", reason="tea", stopped=["a.mkv"]
    ),
    transition(sequence=9, transition="stale", rule="returned a.mkv", choice="kept", evidence='{"x":1}'),
]
GOLDEN_HISTORY = [
    "   7  2026-11-30 03:12:07  machine  start a.mkv     started   started a.mkv",
    "   8  2026-11-30 03:12:07  anna     pause           paused    tea; stopped a.mkv",
    '   9  2026-11-30 03:12:07  machine  returned a.mkv  kept      kept {"x":1}',
]


@pytest.mark.usefixtures("utc")
def test_history_screen() -> None:
    """A line for each transition: its number, when, who, by which rule, what, and why."""
    widths = [4, 19, 4, 8, 8]

    assert GOLDEN_HISTORY == render_past.history_rows(TRANSITIONS, 100, widths)
    assert [
        "   7  2026-11-30 03:12:07  machine",
        "      start a.mkv: started: started",
        "      a.mkv",
    ] == render_past.history_rows(TRANSITIONS[:1], 40, widths)


@pytest.mark.parametrize("evil", ["\x1b[2J", "a\nb", "\u202egpj", "x" * 9000, "\x9b31m", "é" * 300])
@pytest.mark.usefixtures("utc")
def test_hostile_text_reaches_no_terminal(evil: str) -> None:
    """Whatever a program says or an item is called: nothing of it is obeyed, and all of it is bounded."""
    why = WHY | {
        "row": WHY["row"] | {"id": evil, "owner": evil},
        "reason": evil,
        "events": [{"at": "2026-11-30T03:12:07.000000Z", "word": evil, "said": evil}],
        "checks": [{"name": evil, "said": evil, "good": False}],
        "wakes": [{"said": evil, "at": ""}],
        "not_done": [evil],
        "commands": [{"command": evil, "means": evil}],
        "notes": [evil],
    }
    hostile = transition(by=evil, rule=evil, choice=evil, reason=evil, started=[evil], evidence=evil)
    lines = [
        *render_past.why_view(answer(why, role=evil), NOW, 10_000, False),
        *render_past.history_rows([hostile], 10_000, [4, 19, 4, 8, 8]),
    ]

    assert [] == [line for line in lines if not line.isprintable()]
    assert all(len(line) < 2000 for line in lines)


# ---- behind a real daemon ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=LOOPS)
def daemon(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    made = Daemon(tmp_path_factory.mktemp("daemon"), request.param)
    made.start()
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end()
    assert "Traceback" not in made.said()


@pytest.fixture(scope="module")
def stuck(daemon: Daemon) -> str:
    """A job that is held: one item is done, two failed."""
    path = daemon.file("stuck", "say", {"a": "one", "b": "two", "b.fail": "", "c": "x", "c.fail": ""})
    job = json.loads(path.read_text())
    job["items"] = [item for item in job["items"] if "." not in item["id"]]
    path.write_text(json.dumps(job))
    assert 11 == daemon.ask("submit", str(path), "--wait").returncode
    return "stuck"


def stands(daemon: Daemon, job: str, status: str) -> None:
    """Returns once the job stands under that status."""

    def look() -> None:
        assert status == daemon.row(job)["status"]

    eventually(look)


def parked(folder: Path, count: int) -> None:
    """Returns once the job was parked so often: each time leaves a checkpoint."""

    def look() -> None:
        assert count <= len(list(folder.glob("*.checkpoint.json")))

    eventually(look)


def possible(said: str) -> list[list[str]]:
    """The commands below `you may`, each as its words."""
    lines = said.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("you may"))
    commands = [line.split("    ")[0] for line in lines[start + 1 :] if line.startswith("  resumectl ")]
    return [shlex.split(command) for command in commands]


def test_why_of_a_held_job(daemon: Daemon, stuck: str) -> None:
    """What failed and when, what is left undone, and commands that do what they say as they are typed."""
    asked = daemon.ask("why", stuck)
    whole = json.loads(daemon.ask("why", stuck, "--json").stdout)
    commands = possible(asked.stdout)

    assert asked.stdout.startswith("stuck is held since ")
    assert "2 failed of 3 items; b: exit 1" in asked.stdout
    assert [" failed      b, try 1", " failed      c, try 1"] == [
        part for part in (" failed      b, try 1", " failed      c, try 1") if part in asked.stdout
    ]
    assert "operator" == whole["role"]
    assert [each["command"] for each in whole["why"]["commands"]] == [shlex.join(each) for each in commands]
    assert {"retry", "skip", "cancel", "logs"} == {words[1] for words in commands}
    for words in commands:
        assert isinstance(parsing.read(words[1:]), object)
    assert "heard" in daemon.ask(*next(words for words in commands if words[1] == "logs")[1:]).stdout


def test_command_bound_to_a_record_that_moved_is_refused(daemon: Daemon) -> None:
    """Who decided on an older record is told so with code 6, and nothing is changed."""
    daemon.ask("submit", str(daemon.file("moves", "slow", {"a": ""})))
    daemon.ask("pause", "moves", "--now")
    stands(daemon, "moves", "paused")
    shown = possible(daemon.ask("why", "moves").stdout)
    first = daemon.ask(*next(words for words in shown if words[1] == "resume")[1:])
    daemon.ask("pause", "moves", "--now")
    again = daemon.ask(*next(words for words in shown if words[1] == "resume")[1:])
    status = daemon.row("moves")["status"]
    daemon.ask("cancel", "moves")

    assert (0, 6) == (first.returncode, again.returncode), again
    assert "moved on from record" in again.stderr
    assert "resumectl why moves" in again.stderr
    assert "paused" == status


def test_history_tells_all_of_it(daemon: Daemon, stuck: str) -> None:
    """Line by line with who and why, in UTC as JSON; of one item; the last ones; of an ended job too."""
    rows = [json.loads(line) for line in daemon.ask("history", stuck, "--json").stdout.splitlines()]
    of_b = [json.loads(line) for line in daemon.ask("history", stuck, "b", "--json").stdout.splitlines()]
    last = daemon.ask("history", stuck, "-n", "1").stdout
    daemon.ask("skip", stuck, "--reason", "not needed")
    daemon.ask("watch", stuck)
    ended = daemon.ask("history", stuck)

    assert [*range(1, len(rows) + 1)] == [row["sequence"] for row in rows]
    assert all(row["at"].endswith("Z") for row in rows)
    assert len(of_b) < len(rows)
    assert "returned b" in {row["rule"] for row in of_b}
    assert "returned c" not in {row["rule"] for row in of_b}
    assert 1 == len(last.splitlines())
    assert ended.stdout.count("\n") > len(rows)
    assert "not needed" in ended.stdout


def test_damaged_past_is_noted_and_stops_nothing(daemon: Daemon) -> None:
    """A line of history that recovery does not need may rot: it is noted beside the rest."""
    daemon.ask("submit", str(daemon.file("rots", "slow", {"a": ""})))
    for count in (1, 2):
        daemon.ask("pause", "rots", "--now")
        (folder,) = (daemon.state / "jobs").glob("*/rots")
        parked(folder, count)
        daemon.ask("resume", "rots")
    daemon.end(signal.SIGTERM)
    oldest = min(folder.glob("*.log"), key=lambda path: int(path.name.split(".")[0]))
    raw = oldest.read_bytes()
    line = raw.index(b"\n") + 100
    oldest.write_bytes(raw[:line] + b"XX" + raw[line + 2 :])
    daemon.start()
    asked = daemon.ask("history", "rots")
    stands(daemon, "rots", "running")
    daemon.ask("cancel", "rots")

    assert 0 == asked.returncode
    assert "cannot be read" in asked.stderr
    assert "paused" in asked.stdout


def test_quarantined_job_still_says_why(daemon: Daemon) -> None:
    """A job that was set aside has its why and as much of its history as verifies."""
    daemon.ask("submit", str(daemon.file("breaks", "slow", {"a": ""})))
    stands(daemon, "breaks", "running")
    daemon.end(signal.SIGKILL)
    (folder,) = (daemon.state / "jobs").glob("*/breaks")
    log = max(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
    raw = log.read_bytes()
    log.write_bytes(raw[:80] + b"XX" + raw[82:])
    daemon.start()
    eventually(lambda: json.loads(daemon.ask("quarantine", "list", "--json").stdout)["jobs"][0])
    why, history = daemon.ask("why", "breaks"), daemon.ask("history", "breaks")

    assert (0, 0) == (why.returncode, history.returncode), (why, history)
    assert why.stdout.startswith("breaks is quarantined since ")
    assert "INTEGRITY failed" in why.stdout
    assert "resumectl quarantine discard breaks" in why.stdout
    assert history.stderr


def test_nobody_of_that_name(daemon: Daemon) -> None:
    """A job that is not there has neither; that is code 4."""
    assert [4, 4] == [daemon.ask(verb, "nobody").returncode for verb in ("why", "history")]
