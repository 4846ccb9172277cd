"""People's decisions on the screen: what is asked, one call whole, and which row the words on a line mean."""

import argparse
from typing import Any

import pytest
from test_cli_screens import NOW, at, utc

from resumed.daemon import picking, render_asks
from resumed.daemon.screen import UsageError

__all__ = ["utc"]


def row(**changes: Any) -> dict[str, Any]:
    whole = {
        "id": "b7k2m9", "kind": "approve", "job": "bump-httpx", "subject": "web/git.push/1.0", "item": "web",
        "what": "git.push org/web a91c", "asked": at(-2), "until": at(6 * 24 + 22),
        "otherwise": "asked again",
        "whom": ["group:curators"], "role": "approver", "given": 0, "quorum": 1, "not_requester": True,
        "requester": "anna", "fingerprint": "f" * 64, "round": 1, "again": "", "record": 12, "yours": True,
    }  # fmt: skip
    return whole | changes


SETTLE = row(
    id="k2v3p0", kind="settle", job="pay-nov", subject="inv-2231/bank.transfer/1.0", item="inv-2231",
    what="bank.transfer 1240.00 EUR to DE89..3000: did it land?", until=0, otherwise="stays held",
    whom=["user:bo"], role="operator", asked=at(-1), fingerprint="",
)  # fmt: skip
REVIEW = row(
    id="r1c8d4", kind="review", job="captions", subject="17", item="17", what="photo 17, revision 2",
    again="sent back", round=2, quorum=2, given=1, yours=False, until=at(20), whom=[],
)  # fmt: skip
ROWS = [row(), SETTLE, REVIEW]

INBOX = [
    "  ID      KIND     JOB         WHAT              ASKED   LEFT  IF NOBODY ANSWERS  WHOM",
    "* b7k2m9  approve  bump-httpx  git.push org/we…  10:00  6d22h  asked again        group:curators",
    "! k2v3p0  settle   pay-nov     bank.transfer 1…  11:00      -  stays held         user:bo",
    "  r1c8d4  review   captions    photo 17, revis…  10:00    20h  asked again        approver",
    "3 open, 2 for you (resumectl approve ID)",
]


def test_inbox_screen() -> None:
    """A line for each question: sign, id, what it is about, how long it stands, and what becomes of it."""
    assert INBOX == render_asks.inbox({"asks": ROWS, "you": "bo"}, NOW, 96, False)


def test_empty_inbox_says_so() -> None:
    """No head stands over nothing."""
    assert ["nobody is asked anything"] == render_asks.inbox({"asks": [], "you": "bo"}, NOW, 80, False)


def view(**changes: Any) -> dict[str, Any]:
    whole = {
        "row": row(), "text": "", "choices": [], "edit": False, "tool": "git.push", "version": 2,
        "target": "forge https://git.example as bot", "business_object": "org/web", "expected": "",
        "arguments": [{"name": "branch", "value": "main"}, {"name": "commit", "value": "a91c"}],
        "unbound": [], "bodies": [], "observed": "", "shown": "", "sources": [], "changed": [], "since": "",
        "holds": ["the target takes one call under a key, for 1d"], "undo": "", "irreversible": True,
        "again": "", "reason": "", "key": "7f3a", "decisions": [], "digest": "d" * 64,
    }  # fmt: skip
    return whole | changes


CALL = [
    "b7k2m9  approve  git.push org/web a91c",
    "bump-httpx web, asked 10:00, by anna's job",
    "target     forge https://git.example as bot",
    "object     org/web",
    "tool       git.push version 2",
    "arguments",
    "  branch  main",
    "  commit  a91c",
    "undo       IRREVERSIBLE: nothing takes it back",
    "holds      the target takes one call under a key, for 1d",
    "who may    group:curators; not anna",
    "or else    in 6d22h: asked again",
    "key        7f3a",
    f"shown as   {'f' * 64}",
]


def test_call_is_shown_target_first() -> None:
    """What it does comes first; then all that a yes covers, what undoes it, and who may say it."""
    assert CALL == render_asks.ask(view(), NOW, 100, False)


LOUD = {
    "what a yes does not cover": (
        {"unbound": [{"name": "sent_at", "value": "now"}]},
        ["NOT COVERED by a yes: it may be another when it is sent", "  sent_at  now"],
    ),
    "a call that would repeat another": (
        {"again": "r-7"}, ["again      IT WOULD REPEAT r-7, which has landed"],
    ),
    "that the requester may allow its own": (
        {"row": row(not_requester=False)},
        ["who may    group:curators; anna, who asked for it, too"],
    ),
    "whom the administrator wants": (
        {"row": row(also=["group:seniors", "user:cy"])},
        ["who may    group:curators; of group:seniors or user:cy; not anna"],
    ),
    "what changed": (
        {"since": "approved by bo", "changed": [{"name": "commit", "before": "a91c", "after": "b02d"}]},
        ["CHANGED since it was approved by bo", "  commit", "    - a91c", "    + b02d"],
    ),
    "nothing changed": ({"since": "approved by bo"}, ["nothing of it changed since it was approved by bo"]),
    "a round before": (
        {"row": row(round=2, again="a yes ran out")},
        ["bump-httpx web, asked 10:00, by anna's job; asked again (round 2): a yes ran out"],
    ),
    "the bytes that are sent": (
        {"bodies": [{"name": "body", "sha256": "c" * 64, "size": 7, "text": "a label"}]},
        ["sends body: 7 B, sha256 cccccccccccccccc", "  | a label"],
    ),
    "a yes of a round that is over": (
        {"row": row(round=2), "decisions": [{
            "by": "bo", "at": at(-1), "decision": "approve", "round": 1, "reason": "", "until": 0, "spent": 0,
            "revoked": 0, "same_user": False}]},
        ["decided    approved by bo 2026-11-30 11:00:00 (in round 1: it counts no more)"],
    ),
    "bytes that are no text": (
        {"bodies": [{"name": "body", "sha256": "c" * 64, "size": 7, "text": ""}]},
        ["  ! it is no text, and is not shown: all of it lies in the job's folder, as",
         f"  ! artifacts/{'c' * 64}"],
    ),
    "a text that is too long to be shown": (
        {"bodies": [{"name": "body", "sha256": "c" * 64, "size": 9, "text": "a label"}]},
        ["  | a label", "  ! only its beginning is shown: all of it lies in the job's folder, as",
         f"  ! artifacts/{'c' * 64}"],
    ),
    "a decision that was spent": (
        {"decisions": [{"by": "bo", "at": at(-1), "decision": "approve", "round": 1, "reason": "", "until": 0,
                        "spent": at(-0.5), "revoked": 0, "same_user": True}]},
        ["decided    approved by bo 2026-11-30 11:00:00 (spent 2026-11-30 11:30:00) [same user as the jobs]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LOUD)
def test_call_says_what_a_reviewer_must_not_miss(case: str) -> None:
    """What is unusual about a call has lines of its own."""
    changes, wanted = LOUD[case]
    lines = render_asks.ask(view(**changes), NOW, 100, False)

    assert wanted == [line for line in lines if line in wanted]


def test_end_of_a_text_is_no_line_of_it() -> None:
    """What ends with a line feed ends there."""
    lines = render_asks.ask(view(row=REVIEW, tool="", text="a label\n\nof ours\n"), NOW, 100, False)

    assert ["  | a label", "  |", "  | of ours"] == [line for line in lines if line.startswith("  |")]


SPANS = {6.9 * 24: "6d21h", 7 * 24: "7d", 20.0: "20h", 0.5: "30m", 0.005: "18s", 0.0: "-"}


@pytest.mark.parametrize("hours", SPANS)
def test_time_that_is_left(hours: float) -> None:
    """No unit is named that says nothing."""
    assert SPANS[hours] == render_asks.left(at(hours) if hours else 0, NOW)


def test_text_of_others_cannot_pass_for_ours() -> None:
    """A draft's lines stand behind a bar, and nothing in them is obeyed by a terminal."""
    draft = "a label\nshown as   " + "0" * 64 + "\n\x1b[2Jgone"
    lines = render_asks.ask(view(row=REVIEW, tool="", text=draft), NOW, 100, False)

    assert ["  | a label", f"  | shown as   {'0' * 64}", "  | \\x1b[2Jgone"] == [
        line for line in lines if line.startswith("  |")
    ]


class Inbox:
    """A client whose daemon has these rows, two at a time."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def call(self, method: str, offset: int = 0) -> dict[str, Any]:
        assert method == "Inbox"
        after = offset + 2
        rest = after if after < len(self.rows) else 0
        return {"asks": self.rows[offset:after], "total": len(self.rows), "next": rest, "you": "bo"}


TWICE = [row(), row(id="b9x1x1", subject="api/git.push/1.0", item="api"), SETTLE, REVIEW]
BOTH = ("approve", "review")
MEANT = {
    # words, kinds -> job and subject
    "an id": (("b7k2m9", None), BOTH, ("bump-httpx", "web/git.push/1.0")),
    "a beginning of an id": (("b7", None), BOTH, ("bump-httpx", "web/git.push/1.0")),
    "a job that asks one thing": (("captions", None), BOTH, ("captions", "17")),
    "a beginning of a job's id": (("pay", None), ("settle",), ("pay-nov", "inv-2231/bank.transfer/1.0")),
    "a job and an item": (("bump-httpx", "api"), BOTH, ("bump-httpx", "api/git.push/1.0")),
    "a job and an effect": (
        ("bump-httpx", "web/git.push/1.0"),
        BOTH,
        ("bump-httpx", "web/git.push/1.0"),
    ),
    "a job and an id": (("bump-httpx", "b9"), BOTH, ("bump-httpx", "api/git.push/1.0")),
    "what is asked no more": (("old-job", "a/x/1.0"), BOTH, ("old-job", "a/x/1.0")),
    "what is of another kind": (("pay-nov", None), BOTH, ("pay-nov", "")),
}


def words(ask: str, subject: str | None) -> argparse.Namespace:
    return argparse.Namespace(verb="approve", ask=ask, subject=subject)


@pytest.mark.parametrize("case", MEANT)
def test_words_mean_one_row(case: str) -> None:
    """An id, a job, or a job and what in it; what the inbox does not have is asked of the job itself."""
    named, kinds, meant = MEANT[case]

    assert meant == picking.one(Inbox(TWICE), words(*named), kinds)  # type: ignore[arg-type]


def test_c09_words_that_may_mean_two_rows_are_refused_with_both() -> None:
    """A decision that names only the job is refused, and every id it may mean is named."""
    with pytest.raises(UsageError) as refused:
        picking.one(Inbox(TWICE), words("bump-httpx", None), BOTH)  # type: ignore[arg-type]

    assert ("resumectl approve b7k2m9", "resumectl approve b9x1x1") == refused.value.commands
    assert "b7k2m9 (bump-httpx web: git.push org/web a91c)" in str(refused.value)


TOOL = {
    "tool": "cms.publish", "version": 3, "workflow": "label", "workflow_version": 2,
    "target": "cms",
    "address": "http://cms", "account": "museum", "approve": "group:curators, not the requester",
    "look_up": True, "absent_is_final": True, "key_lifetime": 0.0, "in_flight": 30.0, "timeout": 9.0,
    "at_once": 1, "observe": False, "check_first": True, "undo": "", "irreversible": True,
    "unclear_owner": "",
    "unbound": ["sent_at"], "holds": ["the target can be asked what became of it"],
    "warnings": ["think twice"],
}  # fmt: skip
TOOLS = [
    "! old: cannot load old:Old: its module is not there",
    "cms.publish version 3  of label@2",
    "  target     cms http://cms as museum",
    "  approval   group:curators, not the requester",
    "  holds      the target can be asked what became of it",
    "  at once    1",
    "  timeout    9 s, then at most 30 s in flight",
    "  unclear    the job's owner",
    "  undo       irreversible",
    "  unbound    sent_at",
    "  ! think twice",
]


def test_tools_screen() -> None:
    """Each contract with what holds of it and what to think over; what cannot be told comes first."""
    problems = ["old: cannot load old:Old: its module is not there"]

    assert TOOLS == render_asks.tools({"tools": [TOOL], "problems": problems}, 100)
