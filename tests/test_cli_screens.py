"""What people see: golden screens, nothing a terminal would obey, columns that give way from the right."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from resumed.daemon import letters, render_house, render_jobs, render_retire, screen, waiting

NOW = 1_796_040_000.0  # 2026-11-30, a Monday, noon UTC
HOUR = 3600
MICRO = 1_000_000


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Screens show local time, here UTC, and the locale's letters, here all of them."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    letters.only_ascii.cache_clear()
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(hours: float) -> int:
    return int((NOW + hours * HOUR) * MICRO)


def row(**changes: Any) -> dict[str, Any]:
    whole = {
        "id": "attic", "status": "running", "workflow": "x265", "version": 1, "title": "", "owner": "anna",
        "done": 311, "total": 500, "failed": 2, "held": 0, "running": 4, "since": at(-1), "created": at(-30),
        "wakes": 0, "needs": "", "needs_person": False, "sequence": 9, "epoch": 1, "spent": "",
    }  # fmt: skip
    return whole | changes


def item(**changes: Any) -> dict[str, Any]:
    whole = {
        "id": "a.mkv", "state": "done", "at": "", "tries": 1, "failures": 0, "code": "", "reason": "",
        "started": at(-2), "ended": at(-1), "not_before": 0, "output": "ab", "size": 123_456,
    }  # fmt: skip
    return whole | changes


ROWS = [
    row(id="pay-nov", status="held", done=41, total=44, failed=0, held=3, running=0, owner="bo",
        needs="bo: retry or skip 3 items", needs_person=True, since=at(-26)),
    row(id="bump-httpx", status="paused", done=22, total=30, failed=0, running=0, since=at(-200 * 24),
        spent="7.409999"),
    row(id="label-7", status="waiting", done=0, total=1, failed=0, running=0, wakes=at(3), owner="lee",
        spent="0.0004"),
    row(),
    row(id="cellar", done=90, failed=0, expected="2026-11-30T08:40:00.000000Z"),
]  # fmt: skip


GOLDEN_LIST = [
    "  JOB         STATUS      DONE  FAIL  NEEDS / NEXT                SINCE    SPENT  OWNER",
    "! pay-nov     held       41/44     3  you: retry or skip 3 items  Sun          -  bo",
    "= bump-httpx  paused     22/30     0  -                           14 May   $7.41  anna",
    "o label-7     waiting      0/1     0  goes on 15:00               11:00   <$0.01  lee",
    "> attic       running  311/500     2  4 at work                   11:00        -  anna",
    "> cellar      running   90/500     0  done about 08:40            11:00        -  anna",
    "5 open, 1 needs you (resumectl why JOB), 14 ended today (list -a)",
]


def listed(*rows: dict[str, Any], you: str = "bo", today: int = 14) -> dict[str, Any]:
    """What the daemon answers to `list`."""
    return {"jobs": list(rows), "ended": [], "ended_count": 99, "ended_since": today, "you": you}


def test_list_screen() -> None:
    """A line for each job: sign, name, status, counts, what it needs; and what to type for the rest."""
    lines = render_jobs.job_list(listed(*ROWS), NOW, 100, False, False)

    assert GOLDEN_LIST == lines


@pytest.mark.parametrize(
    ("width", "last"),
    [
        (100, "OWNER"),
        (77, "OWNER"),
        (76, "SPENT"),
        (69, "SINCE"),
        (59, "NEEDS / NEXT"),
        (40, "FAIL"),
        (20, "STATUS"),
        (3, ""),
    ],
)
def test_columns_give_way_from_the_right(width: int, last: str) -> None:
    """In a narrow terminal whole columns go, the last one first; what is left fits."""
    lines = render_jobs.job_list(listed(*ROWS), NOW, width, False, False)

    assert lines[0].endswith(last)
    assert all(len(line) <= max(width, 1) for line in lines[1:5])


def test_empty_list_says_so() -> None:
    """Without jobs there is one line, and it says where the ended ones are."""
    assert ["0 open, 0 ended today (list -a)"] == render_jobs.job_list(listed(today=0), NOW, 80, False, False)
    assert ["0 open, 99 ended"] == render_jobs.job_list(listed(), NOW, 80, False, True)


CALLS = {
    "nobody": ([False], [], ""),
    "you": ([True], ["anna"], ", 1 needs you (resumectl why JOB)"),
    "another": ([True], ["bo"], ", 1 needs another person (resumectl why JOB)"),
    "both": (
        [True, True, True],
        ["anna", "bo", "anna"],
        ", 2 need you, 1 needs another person (resumectl why JOB)",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_last_line_says_who_is_needed(case: str) -> None:
    """Whoever looks is told first that it is wanted, and what to type."""
    needed, owners, said = CALLS[case]
    rows = [row(needs_person=need, owner=who) for need, who in zip(needed, owners or ["bo"], strict=True)]
    line = render_jobs.job_list(listed(*rows, you="anna"), NOW, 100, False, False)[-1]

    assert f"{len(rows)} open{said}, 14 ended today (list -a)" == line


@pytest.mark.parametrize(
    ("usd", "shown"),
    [("", "-"), ("0", "$0.00"), ("0.004", "<$0.01"), ("7.405", "$7.41"), ("1234", "$1234.00")],
)
def test_money_is_shown_in_cents(usd: str, shown: str) -> None:
    """An amount is rounded to cents, and one below a cent is not shown as nothing."""
    assert shown == render_jobs.money(usd)


def test_show_screen() -> None:
    """One job: how it stands and why, its facts, the items that need somebody first, what may be typed."""
    view = {
        "row": ROWS[0] | {"title": "November", "since": at(-1), "owner": "finance", "spent": "0.1"},
        "requester": "bo",
        "objective": "Pay what was approved.",
        "labels": {"month": "11"},
        "step": "pay",
        "reason": "3 items are held",
        "items": [
            item(),
            item(
                id="inv-1",
                state="held",
                code="interrupted",
                reason="its outcome is unknown",
                output="",
                tries=2,
            ),
            item(id="inv-2", state="pending", output="", tries=0, started=0, ended=0),
        ],
        "commands": ["resumectl retry pay-nov", "resumectl skip pay-nov --reason .."],
        "folder": "/var/lib/resumed/jobs/ab/pay-nov",
        "priority": -3,
        "inputs": {"folder": "/srv/in", "key": "(private)"},
        "after": ["approve-nov"],
        "deadline": at(30),
    }

    assert [
        "! pay-nov is held since 11:00: 3 items are held",
        "title      November",
        "objective  Pay what was approved.",
        "workflow   x265@1, at pay",
        "owner      finance, asked by bo",
        "admitted   2026-11-29 06:00:00",
        "items      41/44 done, 3 held",
        "deadline   2026-12-01 18:00:00",
        "priority   -3",
        "after      approve-nov",
        "next       bo: retry or skip 3 items",
        "spent      $0.10",
        "inputs     folder=/srv/in, key=(private)",
        "labels     month=11",
        "folder     /var/lib/resumed/jobs/ab/pay-nov",
        "",
        "  ITEM   STATE    AT  TRIES  SINCE      SIZE  REASON",
        "! inv-1  held     -       2  11:00         -  interrupted: its outcome is unknown",
        ". inv-2  pending  -       0  -             -",
        "+ a.mkv  done     -       1  11:00  123.5 kB",
        "",
        "you may",
        "  resumectl retry pay-nov",
        "  resumectl skip pay-nov --reason ..",
    ] == render_jobs.job_view(view, NOW, 100, False, False)


REASONS = {
    # state, code, reason -> as shown
    ("failed", "exit-3", "exit 3: broken"): "exit 3: broken",
    ("failed", "exit-3", "exit 3"): "exit 3",
    ("failed", "exit-3", "exit 34: broken"): "exit-3: exit 34: broken",
    ("pending", "signal-SIGKILL", "signal SIGKILL"): "signal SIGKILL",
    ("failed", "verify-exit-1", "verify: exit 1: no moov atom"): "verify: exit 1: no moov atom",
    ("failed", "failed", "no such page"): "no such page",
    ("skipped", "skipped", "left out by bo"): "left out by bo",
    ("held", "interrupted", "interrupted while it ran"): "interrupted while it ran",
    ("held", "crashes", "3 starts in a row ended"): "crashes: 3 starts in a row ended",
    ("held", "too_large", "too large for one line"): "too large for one line",
    ("pending", "later", ""): "later",
    ("failed", "failed", ""): "failed",
    ("done", "", ""): "",
}


@pytest.mark.parametrize("case", REASONS)
def test_reason_is_said_once(case: tuple[str, str, str]) -> None:
    """A code that only repeats what the reason, or the state beside it, says is left out; no other is."""
    state, code, reason = case

    assert REASONS[case] == render_jobs.why_of(item(state=state, code=code, reason=reason))


def test_many_items_are_cut_unless_all_are_asked_for() -> None:
    """A job of many items shows the first ones and how many more there are."""
    items = [item(id=f"{number:03}") for number in range(100)]
    few, everything = (render_jobs.item_table(items, NOW, 100, False, wanted) for wanted in (False, True))

    assert "  and 80 more (show --all)" == few[-1]
    assert (22, 101) == (len(few), len(everything))


def test_progress_line_fits_and_counts() -> None:
    """The bar shows the share that is done, and the line never wraps."""
    line = render_jobs.progress(row(), 100)

    assert (
        "> attic [########################................] 311/500 done, 4 at work, 2 failed, running"
        == line
    )
    assert all(len(render_jobs.progress(row(id="x" * 90), width)) < width for width in (30, 80, 120))


HOSTILE = {
    "escape": "\x1b[2J",
    "title": "\x1b]0;owned\x07",
    "C1 CSI": "\x9b31m",
    "line feed": "a\nb",
    "carriage return": "a\rb",
    "next line": "a\x85b",
    "line separator": "a\u2028b",
    "paragraph separator": "a\u2029b",
    "right to left": "\u202egpj.exe",
    "isolate": "\u2066x",
    "zero width": "a\u200bb",
    "byte order mark": "\ufeffa",
    "backspace": "ok\x08\x08no",
    "NUL": "a\x00b",
    "delete": "a\x7fb",
    "tag": "\U000e0041",
    "private": "\ue000",
    "unassigned": "\U000fffff",
    "lone surrogate": "\udc80",
    "very long": "x" * 10_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_text_reaches_no_terminal(case: str) -> None:
    """Whatever a job calls itself or its items: screens hold printable characters only, and not many."""
    evil = HOSTILE[case]
    hostile_row = row(id=evil, owner=evil, needs=evil, title=evil, workflow=evil, needs_person=True)
    view = {
        "row": hostile_row, "requester": evil, "objective": evil, "labels": {evil: evil}, "step": evil,
        "reason": evil, "items": [item(id=evil, at=evil, code=evil, reason=evil)], "commands": [evil],
        "folder": evil, "priority": 5, "after": [evil], "deadline": 1, "inputs": {evil: evil},
    }  # fmt: skip
    flow = {
        "name": evil, "version": 1, "enabled": True, "description": evil, "steps": [evil],
        "inputs": [{"name": evil, "type": "path", "required": True}], "items_from": "job",
    }  # fmt: skip
    aside = {"id": evil, "reason": evil, "detail": evil, "since": at(0), "moved": True}
    lines = [
        *render_jobs.job_list(listed(hostile_row, you=evil), NOW, 10_000, False, False),
        *render_jobs.job_view(view, NOW, 10_000, False, False),
        *render_house.workflow_list({"workflows": [flow], "problems": [evil]}, 10_000, False),
        *render_retire.quarantine_list([aside], NOW, 10_000, False),
        render_jobs.progress(hostile_row, 200),
    ]

    assert [] == [line for line in lines if not line.isprintable()]
    assert all(len(line) < 1200 for line in lines)


def test_escaped_text_still_says_what_it_was() -> None:
    """An escape is spelled, not dropped, and a cut is shown."""
    assert "\\x1b[2J" == letters.clean("\x1b[2J")
    assert "\\u202ex" == letters.clean("\u202ex")
    assert "x" * 9 + "…" == letters.clean("x" * 11, 10)


ENDS = {
    "completed": ({"status": "completed", "done": 3, "total": 3}, 0),
    "completed with a skipped item": ({"status": "completed", "done": 2, "total": 3}, 10),
    "failed": ({"status": "failed"}, 10),
    "held": ({"status": "held", "needs_person": True}, 11),
    "canceled": ({"status": "canceled"}, 12),
    "expired": ({"status": "expired"}, 12),
}


@pytest.mark.parametrize("case", ENDS)
def test_waiting_form_ends_with_its_code(case: str) -> None:
    """How a job ended can be told from the exit code alone."""
    changes, code = ENDS[case]

    assert code == waiting.exit_of(row(**changes))


def test_colour_is_only_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe and NO_COLOR get none; the sign and the word are always there."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    wanted = screen.Screen(as_json=False).colour
    monkeypatch.setenv("NO_COLOR", "1")
    unwanted = screen.Screen(as_json=False).colour
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    dumb = screen.Screen(as_json=False)
    lines = render_jobs.job_list(listed(*ROWS), NOW, 80, True, False)

    assert (True, False) == (wanted, unwanted)
    assert (False, False, True) == (dumb.colour, dumb.live, dumb.terminal)
    assert lines[1].startswith("\x1b[31m! pay-nov")
    assert "held" in lines[1]
