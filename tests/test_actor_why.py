"""Why a job stands as it does: said for every standing and every hold, from its past and its state alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import effects_kit
import gates_kit
import pytest
from attrs import evolve
from machine_kit import ANNA, FOUND, Play, moment
from machine_points import POINTS, comparing
from test_machine_publishing import OFFER

from resumed.actors import past, possible, receipts, why
from resumed.actors.machine import standing, transition
from resumed.actors.machine.draft import NOT_GONE
from resumed.schemas import decisions, events
from resumed.schemas.decisions import Compared
from resumed.schemas.instant import spell
from resumed.schemas.job import Budget, Hold, ItemState, Status
from resumed.schemas.ledger import Obstacle
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry
from resumed.schemas.views import JobRow, WhyView
from resumed.store.history import Past

HOUSE = Path(__file__).resolve().parent.parent
NOTHING = Past(lines=(), following=0, torn=0, notes=())


def view(play: Play, told: Past | None = None) -> WhyView:
    """The whole view of a play, with its own past."""
    lines = tuple(play.lines[-why.LOOK_BACK :])
    return why.view(play.snapshot, play.now, told or evolve(NOTHING, lines=lines))


def words(seen: WhyView) -> list[tuple[str, str]]:
    """What happened, without the times."""
    return [(event.word, event.said) for event in seen.events]


STANDINGS: dict[str, tuple[str, list[str], list[str]]] = {
    # the point -> its status, what it waits for, what is left undone
    "Waiting for its time to start": ("waiting", ["its time to start"], ["start before its time"]),
    "Waiting for another job": (
        "waiting",
        ["harbour-6, once it has completed"],
        ["start before the jobs that it comes after"],
    ),
    "Held: the job that it waits for failed": (
        "held",
        ["anna, and nothing else"],
        ["start: it comes after a job that will not complete by itself"],
    ),
    "Ready, not started": ("ready", ["a free worker"], ["start: no worker is free for it"]),
    "A job step runs, repeatable": ("running", ["the end of what runs", "the first time limit of these"], []),
    "A job step runs, not repeatable": (
        "running",
        ["the end of what runs", "the first time limit of these"],
        [],
    ),
    "An item runs, repeatable": ("running", ["the end of what runs", "the first time limit of these"], []),
    "An item runs, not repeatable": (
        "running",
        ["the end of what runs", "the first time limit of these"],
        [],
    ),
    "Waiting for a retry": ("waiting", ["starting"], ["start before its time"]),
    "Waiting, too many tries have failed in a row": (
        "waiting",
        ["trying one item alone"],
        ["start before its time"],
    ),
    "Held: they go on failing": (
        "held",
        ["anna, and nothing else"],
        ["try any more: each try fails with the same reason"],
    ),
    "A fan-out with items left, none running": (
        "ready",
        ["a free worker"],
        ["start: no worker is free for it"],
    ),
    "Paused": (
        "paused",
        ["whoever lets it go on, and nothing else"],
        ["start 1 waiting items: paused by anna"],
    ),
    "Held, at a job step": ("held", ["anna, and nothing else"], ["go on: unsure is for a person to decide"]),
    "Held: all items are settled, one has failed": (
        "held",
        ["anna, and nothing else"],
        ["go on to step close: items failed, and only a person may leave them behind"],
    ),
    "The items' sources are being compared": (
        "resuming",
        ["the end of what runs", "the first time limit of these"],
        ["start: it is being examined first"],
    ),
    "Held: the items' sources have changed": (
        "held",
        ["anna, and nothing else"],
        [
            "go on to step close: items are held, and only a person may decide about them",
            "start it: its source is not what it was pinned as",
        ],
    ),
    "Held: what it may spend is spent": (
        "held",
        ["anna, and nothing else"],
        ["start anything new: it has used what it may"],
    ),
    "Held: only a wall clock that was set says that its deadline has passed": (
        "held",
        ["anna, or the clock, once it is known", "its deadline, which ends it"],
        ["go by a clock that cannot be right"],
    ),
    "Held: a worker's end is not proven": (
        "held",
        ["anna, and nothing else"],
        ["start or end anything: processes of its last attempt may be alive"],
    ),
    "Being canceled, an item is being stopped": (
        "running",
        ["the end of what runs", "the first time limit of these"],
        ["start anything new: being ended by anna"],
    ),
    "An effect waits for somebody to allow it": (
        "waiting",
        ["group:curators, deciding 7hfbew"],
        ["send anything that nobody has allowed"],
    ),
    "An effect waits to be let go": ("ready", ["a free worker"], ["start: no worker is free for it"]),
    "An effect is being checked": (
        "running",
        ["the end of what runs", "the first time limit of these"],
        [],
    ),
    "An effect is being sent": ("running", ["the end of what runs", "the first time limit of these"], []),
    "An effect may have left, and is being looked up": (
        "reconciling",
        ["its target's answer"],
        ["go on: the other system is asked first"],
    ),
    "Held: an effect may have left, and nobody can be asked": (
        "held",
        ["anna, and nothing else"],
        ["send again, or go on with what depends on it: nobody can tell whether it landed"],
    ),
    "Held: an effect is there already": (
        "held",
        ["anna, and nothing else"],
        ["go on: what is said of one of its effects does not agree"],
    ),
    "Being canceled, an effect may have left": (
        "reconciling",
        ["a free worker, to ask its target"],
        ["go on: the other system is asked first"],
    ),
    "A draft waits to be looked at": (
        "waiting",
        ["group:curators, deciding kkzpzz"],
        ["go on with a draft that nobody has accepted"],
    ),
    "A question waits for its answer": (
        "waiting",
        ["group:curators, deciding dnj8qg"],
        ["go on without an answer"],
    ),
    "Terminal": ("completed", [], []),
}


@pytest.mark.parametrize("point", POINTS)
def test_standing_says_what_it_waits_for(point: str) -> None:
    """Wherever a job stands: what lets it go on, and what is left undone and why."""
    seen = view(POINTS[point][1]())

    assert STANDINGS[point] == (
        seen.row.status.value,
        [wake.said for wake in seen.wakes],
        list(seen.not_done),
    )
    assert seen.reason
    assert seen.events


@pytest.mark.parametrize("point", POINTS)
def test_each_command_says_what_it_does(point: str) -> None:
    """No command is offered without a word on it; where a job stands still, those that change are bound."""
    play = POINTS[point][1]()
    seen = view(play)
    steering = [each.command for each in seen.commands if each.command.split()[1] in possible.STEERING]
    bound = seen.row.status in (Status.HELD, Status.PAUSED)

    assert seen.commands
    assert [] == [each.command for each in seen.commands if not each.means or " ITEM" in each.command]
    assert (play.snapshot.sequence if bound else 0) == seen.record
    assert [bound] * len(steering) == [f"--record {seen.record}" in command for command in steering]


@pytest.mark.parametrize("point", POINTS)
def test_what_a_held_job_needs_is_what_may_be_typed(point: str) -> None:
    """A list names no verb that the law would refuse, and at least one that it would carry out."""
    seen = view(POINTS[point][1]())
    if seen.row.status is not Status.HELD:
        return
    offered = {each.command.split()[1] for each in seen.commands}
    named = {word.strip(",") for word in seen.row.needs.split()} & possible.STEERING

    assert named
    assert named <= offered


def test_every_status_is_told() -> None:
    """The table has a row for each status there is."""
    assert set(Status) == set(why.STATUSES)


def hold_codes() -> Iterator[tuple[str, str]]:
    """Every code that the product gives to a hold by name, and where."""
    for path in sorted(HOUSE.glob("*/**/*.py")):
        if path.relative_to(HOUSE).parts[0] not in ("actors", "store", "daemon"):
            continue
        tree = ast.parse(path.read_text())
        constants = {
            node.targets[0].id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for code in _codes(node, constants):
                    yield code, f"{path.relative_to(HOUSE)}:{node.lineno}"


def _codes(call: ast.Call, constants: dict[str, object]) -> list[str]:
    name = ast.unparse(call.func).split(".")[-1]
    places = {"set_hold": 0, "hold_unit": 2, "_trouble": 1, "_hold": 3}
    found = [k.value for k in call.keywords if k.arg == "code" and name in ("Trouble", "HoldBack")]
    if name in places and len(call.args) > places[name]:
        found.append(call.args[places[name]])
    found = [
        each for one in found for each in ([one.body, one.orelse] if isinstance(one, ast.IfExp) else [one])
    ]
    named = [
        constants.get(one.id) if isinstance(one, ast.Name) else getattr(one, "value", None) for one in found
    ]
    return [one for one in named if isinstance(one, str)]


def test_every_hold_of_ours_has_its_sentence() -> None:
    """Whoever adds a hold says what is left undone under it."""
    found = dict(hold_codes())

    assert {"items", "step_failed", "contract", "import", "output_exists"} <= set(found)
    assert {} == {code: place for code, place in found.items() if code not in why.NOT_DONE}


@pytest.mark.parametrize("code", [*why.NOT_DONE, "of-an-author", "{braces}"])
def test_every_hold_is_told(code: str) -> None:
    """Under each code: whose it is, what is left undone, and commands that lead on."""
    play = Play.fan_out("a", "b")
    hold = Hold(code=code, reason="it is so {and so}", owner="bo", since=play.now)
    play.snapshot = evolve(play.snapshot, hold=hold)
    seen = view(play)
    verbs = {each.command.split()[1] for each in seen.commands}

    wakes = "bo, or the clock, once it is known" if code == "clock" else "bo, and nothing else"

    assert (Status.HELD, "it is so {and so}", [wakes]) == (
        seen.row.status,
        seen.reason,
        [wake.said for wake in seen.wakes],
    )
    assert 1 == len(seen.not_done)
    assert seen.not_done[0]
    assert "{then}" not in seen.not_done[0]
    assert "{at}" not in seen.not_done[0]
    assert {"cancel", "resume"} & verbs


def test_kinds_of_stuck_items_are_told() -> None:
    """Items that were cut off are not merely failed: each kind says why it is not simply run again."""
    play = Play.fan_out("a", "b", at="post", parallel=2)
    play.start("a", "b")
    play.does(play.gone("a"))
    play.answer("b", decisions.Failed(reason="no such page"))
    seen = view(play)

    assert [
        "go on to step close: items failed, and only a person may leave them behind",
        "run it again: it was cut off, and its step is not repeatable",
    ] == list(seen.not_done)
    assert [("held", "a, try 1"), ("failed", "b, try 1: no such page")] == [
        (word, said.partition(": interrupted")[0]) for word, said in words(seen)[-2:]
    ]


def test_only_what_was_checked_is_said_to_be_well() -> None:
    """A torn tail, processes that may be alive and a passed deadline are not well."""
    well = view(POINTS["Paused"][1]())
    bad = view(POINTS["Held: a worker's end is not proven"][1](), evolve(NOTHING, torn=1))
    late = Play.of("a", deadline=10)
    late.start("")
    late.wait(20)
    late.does(events.Tick())

    assert [("integrity", "ok", True), ("processes", "gone", True)] == [
        (check.name, check.said, check.good) for check in well.checks
    ]
    assert [("integrity", "torn 1"), ("processes", "not known to be gone")] == [
        (check.name, check.said) for check in bad.checks if not check.good
    ]
    assert ("deadline", "passed", False) == (
        view(late).checks[-1].name,
        view(late).checks[-1].said,
        view(late).checks[-1].good,
    )


def test_confirming_that_nothing_runs_is_named_as_that() -> None:
    """Where trees may be alive, `resume` is a person's word that they are not."""
    seen = view(POINTS["Held: a worker's end is not proven"][1]())
    means = {each.command.split()[1]: each.means for each in seen.commands}

    assert NOT_GONE == standing.NOT_GONE
    assert possible.NOT_GONE == means["resume"]


def test_what_is_tried_again_is_not_said_to_wait_for_a_person_alone() -> None:
    """A call that may not go now is judged again by itself: whoever reads why is told so, and when."""
    play = effects_kit.asked()
    play.grant(facts=evolve(effects_kit.FACTS, requester=False))
    seen = view(play)

    assert "held" == seen.row.status.value
    assert ["anna", "one of its effects, which is tried again"] == [wake.said for wake in seen.wakes]
    assert seen.wakes[-1].at


def test_call_that_a_lost_line_may_have_let_go_is_told() -> None:
    """What was not said before the line was lost is asked first; that one was lost is no secret."""
    play = effects_kit.asked()
    play.does(events.Woke(torn=True))
    seen = view(play)

    assert ("integrity", "a line was lost", False) == (
        seen.checks[0].name, seen.checks[0].said, seen.checks[0].good,
    )  # fmt: skip
    assert ["its target, which is asked again"] == [wake.said for wake in seen.wakes]
    assert "a line of its job was lost" in seen.reason


def test_deadline_wakes_too() -> None:
    """A job with a deadline says when that ends it."""
    play = Play.of("a", deadline=50)

    assert ("its deadline, which ends it", spell(moment(50).wall)) == (
        view(play).wakes[-1].said,
        view(play).wakes[-1].at,
    )


# ---- events -----------------------------------------------------------------------------------------------


def lives() -> Iterator[Play]:
    """Plays that go through every kind of event."""
    play = Play.fan_out("a", "b", "c", parallel=3)
    play.start("a", "b")
    play.answer("a", decisions.Later(seconds=1, reason="busy"))
    play.does(play.raised("b"))
    play.does(events.Pause(by=ANNA, reason="tea"))
    play.does(events.Resume(by=ANNA))
    play.start("c")
    play.does(play.gone("c"))
    play.does(events.Skip(by=ANNA, items=("c",), reason="empty"))
    play.does(events.Reopen(by=ANNA, items=("c",), reason="not empty"))
    play.does(events.Skip(by=ANNA, items=("c",), reason="empty"))
    play.does(events.Retry(by=ANNA, items=("c",)))
    play.start("c")
    play.answer("c", decisions.NextStep(step="write"))
    play.start("c")
    play.wait(200)
    play.does(events.Tick())
    play.does(events.Woke(detail="power"))
    play.does(events.Trouble(code="actor_died", reason="it died"))
    play.does(events.Cancel(by=ANNA, reason="enough"))
    yield play
    other = Play.fan_out("a", parallel=1)
    other.start("a")
    answer = other.returned("a", decisions.Accepted())
    other.does(answer)
    other.does(answer)
    other.start("")
    other.does(events.Shutdown())
    other.does(other.gone("", died=False))
    other.start("")
    other.answer("", decisions.GoTo(step="open"))
    other.start("")
    other.answer("", decisions.Finished())
    yield other
    publishing = Play.fan_out("a")
    publishing.start("a")
    publishing.answer("a", decisions.Accepted(output=OFFER), output=FOUND)
    publishing.does(events.Placed(unit="a", number=1, outcome=events.Placing.EXISTS, reason="it is there"))
    publishing.does(events.Retry(by=ANNA))
    number = publishing.snapshot.publications["a"].number
    publishing.does(events.Placed(unit="a", number=number, outcome=events.Placing.PUBLISHED))
    yield publishing
    limited = Play.of("a", budget=Budget(usd="1"))
    limited.does(events.Extend(by=ANNA, usd="2", reason="worth it"))
    yield limited
    yield from effects()
    waiting = Play.of("a", after=("harbour-6",), not_before=5.0)
    waiting.wait(5.0)
    waiting.does(events.Tick())
    waiting.does(events.OtherJob(job="harbour-6", obstacle=Obstacle.UNKNOWN))
    waiting.does(events.OtherJob(job="harbour-6", completed=True))
    yield waiting


def effects() -> Iterator[Play]:
    """People decide about calls, and one call goes."""
    play = gates_kit.gated("a", "b", "c")
    play.does(gates_kit.approve(play, gates_kit.BO))
    play.does(gates_kit.revoke(play, gates_kit.BO))
    play.does(gates_kit.deny(play, gates_kit.BO, "b"))
    play.does(gates_kit.send_back(play, gates_kit.BO, "c", reason="shorter"))
    yield play
    late = gates_kit.gated("a")
    late.wait(8 * 86_400.0)
    late.does(events.Tick())
    yield late
    asking = Play.of()
    asking.start("")
    asking.answer("", decisions.Asking(text="which?", then="close"))
    facts = gates_kit.facts(gates_kit.OLA)
    (question,) = asking.snapshot.questions
    asking.does(events.Reply(by=gates_kit.OLA, subject=question.id, answer="the first", facts=facts))
    yield asking
    sent = effects_kit.asked(tools=(effects_kit.BLIND,))
    sent.sends()
    sent.says(effects_kit.CALL, decisions.Unsure(reason="HTTP 500"))
    sent.does(events.Settle(by=ANNA, subject=effects_kit.CALL, reference="p1", reason="it is in the list"))
    yield sent


def test_every_kind_of_event_has_its_word() -> None:
    """What happened is told in a word and a sentence, whatever it was."""
    told = {
        (entry.transition, event.told.word): event.told.said
        for play in lives()
        for line in play.lines
        for entry in line.entries
        for event in [past.event(line, entry)]
        if entry.transition != "test"
    }
    names = {name for name, _, _ in transition.ROUTES.values()} | {"admit", "stale", "effect"}

    assert names == {name for name, _ in told}
    assert [] == [name for (name, _), said in told.items() if not said]
    assert {
        ("pause", "paused"): "by anna: tea",
        ("resume", "continued"): "by anna",
        ("skip", "left out"): "1 item by anna: empty",
        ("retry", "retried"): "1 item by anna",
        ("reopen", "reopened"): "1 item by anna: not empty",
        ("cancel", "canceled"): "by anna: enough",
        ("admit", "admitted"): "with 1 item, for ada",
        ("raised", "failed"): "b, try 1: ValueError: no such page",
        ("gone", "cut off"): "step close, try 2: interrupted while it ran",
        ("wake", "woke"): "the daemon had ended; cut off: c; power",
        ("returned", "not now"): "a, try 1: busy",
        ("returned", "publishing"): "a, try 1: its output is to be /srv/small/a.mp4",
        ("placed", "held"): "a, try 1: it is there",
        ("placed", "done"): "a",
        ("trouble", "held"): "it died",
        ("tick", "time over"): "c",
        ("tick", "asked again"): "a/cms.publish/1.0: nobody had decided in time",
        ("tick", "time went by"): "its time has come",
        ("other_job", "told"): "harbour-6 has completed",
        ("extend", "extended"): "usd to 2 by anna: worth it",
        ("effect", "sent"): "job/cms.publish/1.0 to cms at http://cms as museum",
        (
            "effect",
            "no reply",
        ): "job/cms.publish/1.0: HTTP 500; cms cannot be asked about it, and knows no key of it",
        ("settle", "settled"): "landed by anna: it is in the list",
        ("approve", "approved"): "a/cms.publish/1.0 by bo",
        ("send_back", "sent back"): "c/cms.publish/1.0 by bo: shorter",
    }.items() <= told.items()


def test_row_has_who_what_and_why() -> None:
    """A row of the history is the decision as it was committed, with what was started and stopped by it."""
    rows = [row for play in lives() for row in past.rows(play.lines)]
    by = {(row.transition, row.choice): row for row in rows}

    assert ("uid:1000 anna", "tea") == (by["pause", "paused"].by, by["pause", "paused"].reason)
    assert ("machine", ("a",), "") == (
        by["start", "started"].by,
        past.rows(next(lives()).lines, "a")[1].started,
        by["start", "started"].reason,
    )
    assert ("c",) == by["tick", "timeout"].stopped
    assert ("stale", "kept") in by
    assert '"unit":"a"' in by["stale", "kept"].evidence
    assert [row.sequence for row in past.rows(next(lives()).lines)] == [
        line.sequence for line in next(lives()).lines
    ]


def test_rows_of_one_item_leave_the_others_out() -> None:
    """With an item, only what touched it is told."""
    rows = past.rows(next(lives()).lines, "b")

    assert {"start", "raised"} <= {row.transition for row in rows}
    assert set() == {"gone", "skip"} & {row.transition for row in rows}


def test_long_texts_are_cut_where_they_are_told() -> None:
    """A reason of any length makes a row of a bounded one, and says that it was cut."""
    play = Play.fan_out("a")
    play.start("a")
    play.answer("a", decisions.Failed(reason="x" * 50_000))
    row = past.rows(play.lines)[-1]

    assert (past.MOST_TEXT, "...") == (len(row.reason), row.reason[-3:])


def test_item_whose_end_is_far_back_is_told_from_its_row() -> None:
    """A job of many lines: what stuck long ago is told from the state, with its own time."""
    play = Play.fan_out("a", "b", parallel=1)
    play.start("a")
    play.answer("a", decisions.Failed(reason="no such page"))
    failed = play.now
    play.wait(60)
    play.start("b")
    seen = view(play, evolve(NOTHING, lines=tuple(play.lines[-1:])))

    assert [
        (spell(failed.wall), "failed", "a, try 1: no such page"),
        (spell(play.now.wall), "started", "b, try 1"),
    ] == [(event.at, event.word, event.said) for event in seen.events]


def test_few_events_are_told_and_the_last_ones() -> None:
    """However much happened, a handful is told, oldest first."""
    play = Play.fan_out(*(f"item-{number:02}" for number in range(40)), parallel=40)
    for number in range(40):
        play.start(f"item-{number:02}")
        play.answer(f"item-{number:02}", decisions.Failed(reason="no"))
    told = view(play).events

    assert why.MOST_EVENTS == len(told)
    assert "item-39, try 1: no" == told[-1].said
    assert sorted(event.at for event in told) == [event.at for event in told]


def test_done_work_is_no_explanation() -> None:
    """Items that went well do not explain a hold; they are told only while nothing else is there to tell."""
    play = Play.fan_out("a", "b", parallel=1)
    play.start("a")
    play.answer("a", decisions.Accepted())
    play.start("b")
    play.answer("b", decisions.Failed(reason="no such page"))

    assert [("failed", "b, try 1: no such page")] == words(view(play))[-1:]
    assert "done" not in [word for word, _ in words(view(play))]


def test_repeated_request_is_no_explanation() -> None:
    """A decision that was made already, and is made again, stands in the history and explains nothing."""
    play = gates_kit.gated("a")
    play.does(gates_kit.approve(play, gates_kit.BO))
    again = evolve(gates_kit.approve(play, gates_kit.BO), request="r-2")
    verdict = transition.transition(play.snapshot, again, play.now)
    kept = receipts.with_receipt(play.snapshot, again, verdict, play.snapshot.sequence + 1, play.now)
    assert isinstance(kept, Entry)

    assert past.event(play.lines[-1], kept).routine
    assert not past.event(play.lines[-1], play.lines[-1].entries[0]).routine


def test_job_set_aside_is_told_as_far_as_it_can_be_read() -> None:
    """A quarantined job has its reason, what of its past verifies, and what may be done with it."""
    play = POINTS["Paused"][1]()
    row = JobRow(
        id="harbour-7", status=Status.QUARANTINED, workflow="", version=0, title="", owner="", done=0,
        total=0, failed=0, held=0, running=0, since=1, created=0,
    )  # fmt: skip
    lines = tuple(play.lines)
    notes = ("line 3 is not there",)
    moved = why.aside(row, "damaged: line 3", evolve(NOTHING, lines=lines, notes=notes), moved=True)
    there = why.aside(row, "unreadable", NOTHING, moved=False)

    assert ("paused", notes, True) == (moved.events[-1].word, moved.notes, moved.row.needs_person)
    assert [False] == [check.good for check in moved.checks]
    assert ["show", "restore", "discard", "list"] == [each.command.split()[2] for each in moved.commands]
    assert ["show", "list"] == [each.command.split()[2] for each in there.commands]
    assert all(each.means for each in (*moved.commands, *there.commands))


# ---- requests that are bound to a record ------------------------------------------------------------------


REQUESTS = {
    "pause": events.Pause(by=ANNA, record=2),
    "resume": events.Resume(by=ANNA, record=2),
    "cancel": events.Cancel(by=ANNA, record=2),
    "retry": events.Retry(by=ANNA, record=2),
    "skip": events.Skip(by=ANNA, record=2),
    "reopen": events.Reopen(by=ANNA, items=("a",), reason="wrong", record=2),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_request_for_another_record_is_refused(name: str) -> None:
    """What was decided looking at one record is not done to another; bound to the present one it is."""
    play = POINTS["Held: all items are settled, one has failed"][1]()
    before = play.snapshot
    refusal = play.tell(REQUESTS[name])
    at_present = transition.transition(before, evolve(REQUESTS[name], record=before.sequence), play.now)
    unbound = transition.transition(before, evolve(REQUESTS[name], record=0), play.now)

    assert isinstance(refusal, Refusal)
    assert ("moved", f"cannot {name} harbour-7: it has moved on from record 2 to {before.sequence}") == (
        refusal.code,
        refusal.reason,
    )
    assert ("resumectl why harbour-7",) == refusal.commands
    assert before is play.snapshot
    assert at_present == unbound


def test_end_is_told_before_a_record() -> None:
    """Of a job that has ended, it is the end that is told, whichever record was looked at."""
    play = POINTS["Terminal"][1]()
    refusal = play.tell(events.Pause(by=ANNA, record=2))

    assert isinstance(refusal, Refusal)
    assert "ended" == refusal.code


def test_stuck_states_are_those_of_the_law() -> None:
    """The items that a person must deal with are failed and held ones, everywhere."""
    assert (ItemState.FAILED, ItemState.HELD) == possible._STUCK == why._STUCK


def test_changed_sources_are_told_with_the_checks() -> None:
    """At the last wake so many of the sources were what they had been; the rest is said in words."""
    first = comparing()
    same = comparing()
    same.answer("", Compared(through=2, sources=2))
    held = POINTS["Held: the items' sources have changed"][1]()
    told = [[(c.name, c.said, c.good) for c in view(play).checks][2:] for play in (first, same, held)]

    assert [[], [("sources", "2/2", True)], [("sources", "0/2 (2 held)", False)]] == told
