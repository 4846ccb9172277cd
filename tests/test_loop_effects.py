"""Effects through the loop: law, store, workshop and workers together, against a target that counts.

Whatever dies, and whenever: what the target has landed twice by one key is a fault, and so is a row that says
what the target does not.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from loop import cases, sendings, target, world
from loop.target import ASKED, TOOL, Fate, Target
from loop.world import World

from resumed.actors.entry import Stage
from resumed.actors.machine import reconcile
from resumed.actors.machine.draft import Draft
from resumed.schemas import decisions, frames
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.frames import Given
from resumed.schemas.job import Ending
from resumed.schemas.ledger import ERRAND, Effect, EffectState, ErrandKind, ToolContract
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import Told
from resumed.store import artifacts

BACKENDS = ("asyncio", "trio")
pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.usefixtures("quiet")]
EFFECT = "job/cms.publish/1.0"
Case = Callable[[World, Target], Awaitable[None]]


def play(
    backend: str,
    case: Case,
    *tools: ToolContract,
    pages: tuple[str, ...] = ("p1",),
    fates: tuple[Fate, ...] = (),
    otherwise: str = "",
    **limits: Any,
) -> None:
    """Run a case in a world whose daemon has started, with one job that asks for these pages."""

    async def started(root: Path) -> None:
        contract = target.with_tools(world.contract(**limits), *tools)
        says = target.performing(*pages, otherwise=otherwise)
        async with cases.made(root, contracts=[contract], says=says) as one:
            cms = Target(fates=list(fates))
            cms.over(one.machine)
            await one.start()
            await one.admit("harbour", [])
            await case(one, cms)

            assert [] == target.broken(cms, one.snapshot("harbour"))

    cases.play(backend, started)


def ended(one: World) -> Ending:
    """How the job ended."""
    outcome = one.snapshot("harbour").outcome
    assert outcome is not None
    return outcome.ending


# ---- the thin path ----------------------------------------------------------------------------------------


def test_an_effect_is_durably_dispatching_before_it_is_sent(backend: str) -> None:
    """Asked for, let go on the disk, sent, confirmed: in this order, and what is sent is the stored call."""

    async def case(one: World, cms: Target) -> None:
        seen: list[EffectState] = []
        cms.watch = lambda frame: seen.append(one.snapshot("harbour").effects[EFFECT].state)
        assert await one.until(lambda: one.rests("harbour"))
        row = one.snapshot("harbour").effects[EFFECT]
        folder = one.place("harbour")
        assert folder is not None
        (sent,) = cms.heard

        assert Ending.COMPLETED is ended(one)
        assert [EffectState.DISPATCHING] == seen
        assert (EffectState.CONFIRMED, "send", 1) == (row.state, row.confirmed_by, row.dispatches)
        assert [1] == list(cms.landed.values())
        assert b"201 created" == artifacts.read(folder, row.response)
        assert sent.call is not None
        assert (row.operation_key, row.arguments, 1) == (
            sent.call.operation_key, sent.call.arguments, sent.call.attempt,
        )  # fmt: skip
        assert target.BODY == artifacts.read(folder, sent.call.bodies[0].sha256)

    play(backend, case)


ENDS: dict[str, tuple[tuple[Fate, ...], int, str, int]] = {
    # what becomes of the sends -> how often it was sent, who confirmed it, how often it landed
    "it lands": ((), 1, "send", 1),
    "its reply is lost": ((Fate.LOST_REPLY,), 1, "look_up", 1),
    "it never arrives": ((Fate.LOST,), 2, "send", 1),
    "it is not sent": ((Fate.NOT_SENT, Fate.NOT_SENT), 3, "send", 1),
    "its worker dies": ((Fate.DIES,), 1, "look_up", 1),
    "it hangs": ((Fate.HANGS,), 1, "look_up", 1),
}


@pytest.mark.parametrize("how", ENDS)
def test_an_effect_lands_once_however_its_send_ends(backend: str, how: str) -> None:
    """What may have left is looked up before anything is sent again: it lands once, and the job goes on."""
    fates, sends, by, landed = ENDS[how]

    async def case(one: World, cms: Target) -> None:
        assert await one.until(lambda: one.rests("harbour"))
        snapshot = one.snapshot("harbour")

        assert Ending.COMPLETED is ended(one)
        assert (sends, [landed]) == (cms.sends, list(cms.landed.values()))
        assert by == snapshot.effects[EFFECT].confirmed_by
        assert (0, 0) == (snapshot.position.failures, snapshot.position.crashes)

    play(backend, case, fates=fates)


def test_a_refused_effect_ends_its_job(backend: str) -> None:
    """The target's no is its own: nothing landed, and the job says so."""

    async def case(one: World, cms: Target) -> None:
        assert await one.until(lambda: one.rests("harbour"))

        assert Ending.FAILED is ended(one)
        assert EffectState.REJECTED is one.snapshot("harbour").effects[EFFECT].state
        assert {} == cms.landed

    play(backend, case, fates=(Fate.REFUSED,))


def test_what_nobody_can_look_up_is_held_for_a_person(backend: str) -> None:
    """Without look-up and deduplication an unknown outcome is never sent again: a person settles it."""
    blind = evolve(TOOL, look_up=False, absent_is_final=False)

    async def case(one: World, cms: Target) -> None:
        assert await one.until(lambda: one.rests("harbour"))
        hold = one.snapshot("harbour").hold
        assert hold is not None
        assert ("effect_unknown", 1) == (hold.code, cms.sends)
        one.daemon.soon(lambda: one.daemon.ask("harbour", "Settle", subject=EFFECT, reference="r-by-hand"))
        assert await one.until(lambda: one.entry("harbour") is None)

        assert (Ending.COMPLETED, 1) == (ended(one), cms.sends)

    play(backend, case, blind, fates=(Fate.DIES,))


# ---- where errands run ------------------------------------------------------------------------------------


def test_errands_have_workers_of_one_slot(backend: str) -> None:
    """A workflow whose workers run many tries at once has others for errands, and those run no tries."""

    async def case(one: World, cms: Target) -> None:
        assert await one.until(lambda: one.rests("harbour"))
        by_slots = {1: set(), 3: set()}  # type: dict[int, set[bool]]
        slots = {worker.name: worker.slots for worker in one.machine.workers}
        for ran in one.witness.ran:
            by_slots[slots[ran.worker]].add(ran.unit.startswith(ERRAND))

        assert {1: {True}, 3: {False}} == by_slots
        assert Ending.COMPLETED is ended(one)

    play(backend, case, slots=3)


@pytest.mark.parametrize("at_once", [1, 2])
def test_a_target_is_called_no_more_at_once_than_it_takes(backend: str, at_once: int) -> None:
    """Over all jobs of the store no more calls to one target are under way than its contract says."""

    async def case(root: Path) -> None:
        contract = target.with_tools(world.contract(), evolve(TOOL, at_once=at_once))
        says = target.performing("p1", "p2", "p3")
        async with cases.made(root, contracts=[contract], says=says, most_workers=4) as one:
            cms = Target()
            cms.over(one.machine)
            one.machine.lasts = lambda frame: 1.0
            await one.start()
            jobs = [f"harbour-{number}" for number in range(4)]
            for job in jobs:
                await one.admit(job, [])
            assert await one.until(lambda: all(one.entry(job) is None for job in jobs))

            assert (at_once, 12, {1}) == (cms.most, cms.sends, set(cms.landed.values()))
            assert 0 == cms.under_way

    cases.play(backend, case)


# ---- the end of a daemon ----------------------------------------------------------------------------------


def test_a_send_under_way_at_a_shutdown_may_finish(backend: str) -> None:
    """A daemon that is told to end lets a send come to its answer within its time, and records it."""

    async def case(one: World, cms: Target) -> None:
        one.machine.lasts = lambda frame: 3.0 if frame.call is not None else 0.1
        assert await one.until(lambda: cms.under_way == 1)
        await stopped(one, 20.0)
        row = one.snapshot("harbour").effects[EFFECT]

        assert (EffectState.CONFIRMED, "send") == (row.state, row.confirmed_by)
        await one.start()
        assert await one.until(lambda: one.rests("harbour"))
        assert (Ending.COMPLETED, 1, 0) == (ended(one), cms.sends, cms.look_ups)

    play(backend, case)


def test_a_look_up_under_way_at_a_shutdown_is_stopped(backend: str) -> None:
    """It is told to end, which opens no errand and takes no place; the next start asks anew."""

    async def case(one: World, cms: Target) -> None:
        def is_looked_up() -> bool:
            row = one.snapshot("harbour").errands.get(EFFECT)
            return row is not None and row.kind is ErrandKind.LOOK_UP

        is_slow = {ErrandKind.LOOK_UP}
        one.machine.lasts = lambda frame: 9.0 if frame.call and frame.call.kind in is_slow else 0.1
        assert await one.until(is_looked_up, 100.0)
        entry = one.entry("harbour")
        assert entry is not None
        await stopped(one, 20.0)
        assert (0, "") == (entry.crashes, entry.trouble)
        snapshot = one.snapshot("harbour")
        assert (EffectState.UNKNOWN, {}) == (snapshot.effects[EFFECT].state, snapshot.errands)
        one.machine.lasts = lambda frame: 0.1
        await one.start()
        assert await one.until(lambda: one.rests("harbour"), 100.0)

        assert (Ending.COMPLETED, [1]) == (ended(one), list(cms.landed.values()))

    play(backend, case, fates=(Fate.LOST_REPLY,))


def test_a_send_that_outlasts_a_shutdown_is_unknown(backend: str) -> None:
    """What has not answered by the end of the daemon's time may have landed: the next start asks."""

    async def case(one: World, cms: Target) -> None:
        one.machine.lasts = lambda frame: 9.0 if frame.call is not None else 0.1
        assert await one.until(lambda: cms.under_way == 1)
        await stopped(one, 4.0)
        assert EffectState.UNKNOWN is one.snapshot("harbour").effects[EFFECT].state
        one.machine.lasts = lambda frame: 0.1
        await one.start()
        assert await one.until(lambda: one.rests("harbour"))

        assert Ending.COMPLETED is ended(one)
        assert [1] == list(cms.landed.values())

    play(backend, case)


async def stopped(one: World, seconds: float) -> None:
    """The daemon is told to end within so many seconds."""
    daemon = one.daemon
    one.group.start_soon(daemon.stop, seconds)
    assert await one.until(daemon.over.is_set)


def test_a_worker_that_cannot_be_had_is_not_asked_for_without_end(backend: str) -> None:
    """While no worker can run the workflow, what is unknown is asked about with pauses, never in a circle."""

    async def case(one: World, cms: Target) -> None:
        one.machine.lasts = lambda frame: 9.0 if frame.call is not None else 0.1
        assert await one.until(lambda: cms.under_way == 1)
        await one.kill()
        one.machine.manners = evolve(one.machine.manners, say_trouble=1.0)
        before = len(one.machine.workers)
        await one.start()
        await one.until(lambda: False, 3600.0)
        assert len(one.machine.workers) - before < 40
        one.machine.manners = evolve(one.machine.manners, say_trouble=0.0)
        one.machine.lasts = lambda frame: 0.1
        one.daemon.soon(one.daemon.ask, "harbour", "Resume")
        assert await one.until(lambda: one.entry("harbour") is None, 7200.0)

        assert Ending.COMPLETED is ended(one)

    play(backend, case)


# ---- people -----------------------------------------------------------------------------------------------


def test_an_approved_effect_is_sent_and_another_is_not(backend: str) -> None:
    """Nothing leaves before its own yes: approved by fingerprint through the mailbox, then sent once."""

    async def case(one: World, cms: Target) -> None:
        await asked(one)
        row = one.snapshot("harbour").effects[EFFECT]
        assert (EffectState.PROPOSED, 0) == (row.state, cms.sends)
        one.daemon.soon(lambda: one.daemon.ask("harbour", "Approve", subject=EFFECT, fingerprint="0" * 64))
        one.daemon.soon(
            lambda: one.daemon.ask("harbour", "Approve", subject=EFFECT, fingerprint=row.fingerprint)
        )
        assert await one.until(lambda: one.entry("harbour") is None)
        after = one.snapshot("harbour").effects[EFFECT]

        assert (Ending.COMPLETED, 1) == (ended(one), cms.sends)
        assert (row.operation_key, row.arguments) == (after.operation_key, after.arguments)

    play(backend, case, ASKED)


async def asked(one: World) -> None:
    """Wait until the job is parked with its effect asked about."""

    def is_asked() -> bool:
        entry = one.entry("harbour")
        return entry is not None and entry.stage is Stage.PARKED and EFFECT in one.snapshot("harbour").effects

    assert await one.until(is_asked, 60.0)


async def decides(one: World, kind: str, **more: Any) -> Any:
    """A person's decision, and what they were told."""
    number = len(one.asked)
    one.daemon.soon(lambda: one.daemon.ask("harbour", kind, subject=EFFECT, **more))
    assert await one.until(lambda: len(one.asked) > number and one.asked[number].answer is not None, 60.0)
    return one.asked[number].answer


def slow_to_start(one: World) -> None:
    """From now on a worker needs five seconds to be there."""
    spawn = one.spawn

    async def later(*args: Any) -> Any:
        await one.clock.wait(5.0)
        return await spawn(*args)

    one.spawn = later


POINTS = ("decided", "let go", "answered", "recorded")
"""Where the daemon dies: the yes is durable and nothing else; it is on its way; its answer is not on record;
it is."""


@pytest.mark.parametrize("point", POINTS)
def test_an_approval_is_spent_once_and_readable_ever_after(backend: str, point: str) -> None:
    """Killed anywhere between a yes and its outcome: sent once, and the same yes gets one answer (C11)."""

    async def case(one: World, cms: Target) -> None:
        await asked(one)
        await one.passes(120.0)  # its worker has gone
        slow_to_start(one)
        yes = {"fingerprint": one.snapshot("harbour").effects[EFFECT].fingerprint}
        one.machine.lasts = lambda frame: 2.0
        if point == "answered":
            cms.watch = lambda frame: setattr(one.weather, "kill_in", 0)
        assert isinstance(await decides(one, "Approve", **yes), Told)
        if point == "recorded":
            await one.until(lambda: one.snapshot("harbour").effects[EFFECT].state is EffectState.CONFIRMED)
        elif point == "let go":
            await one.until(lambda: cms.under_way == 1)
        elif point == "answered":
            await one.until(one.daemon.over.is_set)
        state = one.snapshot("harbour").effects[EFFECT].state if point != "answered" else None
        await one.kill()
        cms.watch = lambda frame: None
        await one.start()
        again = await decides(one, "Approve", **yes)
        no = await decides(one, "Deny", **yes)
        assert await one.until(lambda: one.entry("harbour") is None)

        wanted = {"decided": "proposed", "let go": "dispatching", "recorded": "confirmed"}
        assert wanted.get(point) == state
        assert isinstance(again, Told)
        assert again.repeated
        assert isinstance(no, Refusal)
        assert "ada" in no.reason
        assert [1] == list(cms.landed.values())
        assert 1 == len(one.snapshot("harbour").approvals)

    play(backend, case, ASKED)


RESUMES = ("same process", "restart", "killed between decision and dispatch", "sent back")


@pytest.mark.parametrize("way", RESUMES)
def test_what_was_approved_is_what_is_sent(backend: str, way: str) -> None:
    """A handler that would ask for another call when entered anew sends nothing under the first yes (C05)."""

    async def case(root: Path) -> None:
        pages = iter(("reviewed", *("changed",) * 9))

        def says(frame: frames.Run) -> decisions.Answer:
            decided = target.perform(next(pages)) if frame.step == "start" else decisions.Finished()
            return decisions.Answer(decided=decided)

        contract = target.with_tools(world.contract(), ASKED)
        async with cases.made(root, contracts=[contract], says=says) as one:
            cms = Target()
            cms.over(one.machine)
            await one.start()
            await one.admit("harbour", [])
            await asked(one)
            yes = {"fingerprint": one.snapshot("harbour").effects[EFFECT].fingerprint}
            if way == "restart":
                await stopped(one, 5.0)
                await one.start()
            if way == "sent back":
                assert isinstance(await decides(one, "SendBack", **yes), Told)
                await one.until(lambda: len(one.snapshot("harbour").effects) == 2, 60.0)
                assert isinstance(await decides(one, "Approve", **yes), Refusal)
                await one.passes(60.0)
                assert [] == cms.heard
                assert {"proposed", "withdrawn"} == {row.state for row in one.snapshot("harbour").effects}
                return
            await one.passes(120.0)
            slow_to_start(one)
            assert isinstance(await decides(one, "Approve", **yes), Told)
            if way.startswith("killed"):
                assert EffectState.PROPOSED is one.snapshot("harbour").effects[EFFECT].state
                await one.kill()
                await one.start()
            assert await one.until(lambda: one.entry("harbour") is None)
            (sent,) = cms.heard

            assert sent.call is not None
            assert '"page":"reviewed"' in sent.call.arguments
            assert [1] == list(cms.landed.values())

    cases.play(backend, case)


# ---- lost lines -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["nothing", "the line that let it go"])
def test_what_a_lost_line_may_have_let_go_is_looked_up_first(backend: str, lost: str) -> None:
    """A tail that does not verify may have been the commit that let a call go: its target is asked first."""

    async def case(one: World, cms: Target) -> None:
        await asked(one)
        await one.passes(120.0)
        slow_to_start(one)
        yes = {"fingerprint": one.snapshot("harbour").effects[EFFECT].fingerprint}
        assert isinstance(await decides(one, "Approve", **yes), Told)
        before = one.snapshot("harbour").sequence
        if lost != "nothing":
            one.machine.lasts = lambda frame: 1.0
            assert await one.until(lambda: bool(cms.landed))
        await one.kill()
        world.tear(one.place("harbour"), before)
        # What ran by the lines that are lost has no durable start any more.
        one.witness.ran.clear()
        one.weather.revive()
        assert EffectState.PROPOSED is one.snapshot("harbour").effects[EFFECT].state
        await one.start()
        assert await one.until(lambda: one.rests("harbour"))
        row = one.snapshot("harbour").effects[EFFECT]

        assert [1] == list(cms.landed.values())
        assert (1, EffectState.CONFIRMED) == (cms.sends, row.state)
        assert cms.checks + cms.look_ups == 1
        assert not row.suspect

    play(backend, case, ASKED)


def test_what_a_lost_line_asked_for_and_let_go_is_not_sent_again(backend: str) -> None:
    """Nothing of the call is on record any more: what its step asks for next is looked up, is found to be
    there, and a person says whether that is the same call."""

    async def case(one: World, cms: Target) -> None:
        seen: list[int] = []
        cms.watch = lambda frame: seen.append(one.snapshot("harbour").sequence)
        assert await one.until(lambda: bool(cms.landed))
        await one.kill()
        world.tear(one.place("harbour"), seen[0] - 1)
        one.witness.ran.clear()
        one.weather.revive()
        assert not len(one.snapshot("harbour").effects)
        await one.start()
        assert await one.until(lambda: one.rests("harbour"))
        snapshot = one.snapshot("harbour")
        row = snapshot.effects[EFFECT]

        assert ([1], 1) == (list(cms.landed.values()), cms.sends)
        assert (EffectState.PROPOSED, 0, True) == (row.state, row.dispatches, row.renewed)
        assert snapshot.hold is not None
        assert "conflict" == snapshot.hold.code
        one.daemon.soon(lambda: one.daemon.ask("harbour", "Settle", subject=EFFECT, reference=row.found))
        assert await one.until(lambda: one.entry("harbour") is None)
        assert (Ending.COMPLETED, 1) == (ended(one), cms.sends)

    play(backend, case)


# ---- what a step is given ---------------------------------------------------------------------------------


def test_a_step_that_waits_is_given_the_same_again(backend: str) -> None:
    """A step that asks for later keeps its entry: each try of it is told of its outcomes, and no other."""

    async def case(root: Path) -> None:
        told: list[tuple[str, Given | None]] = []

        def says(frame: frames.Run) -> decisions.Answer:
            told.append((frame.step, frame.given))
            decided: decisions.Decided = target.perform("p1")
            if frame.step == "finish":
                finishes = [step for step, _ in told].count("finish")
                decided = decisions.Later(seconds=5.0) if finishes < 3 else decisions.GoTo(step="start")
            if frame.step == "start" and len(told) > 1:
                decided = decisions.Finished()
            return decisions.Answer(decided=decided)

        async with cases.made(root, contracts=[target.with_tools(world.contract())], says=says) as one:
            Target().over(one.machine)
            await one.start()
            await one.admit("harbour", [])
            assert await one.until(lambda: one.entry("harbour") is None)

            assert ["start", *["finish"] * 3, "start"] == [step for step, _ in told]
            assert [None, "confirmed", "confirmed", "confirmed", None] == [
                None if given is None else given.outcomes[0].state for _, given in told
            ]

    cases.play(backend, case)


def test_a_step_is_given_what_people_said(backend: str) -> None:
    """A reviewed text and an answer reach the steps that they lead to, through the mailbox and the disk."""

    async def case(root: Path) -> None:
        told: list[Given | None] = []

        def says(frame: frames.Run) -> decisions.Answer:
            decided: decisions.Decided = decisions.Finished()
            if frame.step == "start":
                decided = decisions.FanOut(start="work", then="finish")
            elif frame.step == "check":
                told.append(frame.given)
                decided = decisions.Asking(text="go on?", then="work")
            elif frame.step == "work" and told:
                told.append(frame.given)
                decided = decisions.Accepted()
            elif frame.step == "work":
                draft = target.offer(b"a draft", "draft")
                rule = ApprovalRule(not_requester=False)
                decided = decisions.Reviewing(draft=draft, rule=rule, then="check")
            return decisions.Answer(decided=decided)

        async with cases.made(root, says=says) as one:
            await one.start()
            await one.admit("harbour", ["a"])

            def waits(what: str) -> bool:
                entry = one.entry("harbour")
                parked = entry is not None and entry.stage is Stage.PARKED
                return parked and bool(getattr(one.snapshot("harbour"), what))

            assert await one.until(lambda: waits("reviews"), 60.0)
            sha256 = one.snapshot("harbour").reviews["a"].draft.sha256
            one.daemon.soon(lambda: one.daemon.ask("harbour", "Approve", subject="a", fingerprint=sha256))
            assert await one.until(lambda: waits("questions"), 60.0)
            [question] = one.snapshot("harbour").questions
            one.daemon.soon(lambda: one.daemon.ask("harbour", "Reply", subject=question.id, answer="yes"))
            assert await one.until(lambda: one.entry("harbour") is None, 60.0)
            accepted, answered = told

            assert accepted is not None
            assert accepted.text is not None
            assert "a draft" == accepted.text.text
            assert answered is not None
            assert ("yes", "ada") == (answered.answer, answered.by)

    cases.play(backend, case)


# ---- seeds ------------------------------------------------------------------------------------------------


def test_what_lands_is_told_whatever_fails(backend: str, faults_scale: float) -> None:
    """Workers, actors, disk and daemon that fail at random: each call lands once, or not at all (I3)."""
    did: dict[str, int] = {}
    for seed in range(round(120 * faults_scale)):
        told = sendings.run(seed, backend)

        assert [] == told.broken, (seed, backend)
        for what, count in told.did.items():
            did[what] = did.get(what, 0) + count
    assert {"killed", "died", "completed", "confirmed"} <= set(did)


def test_the_seeds_see_a_send_that_is_forgotten(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a lost send taken for none, some seed would have its target count two."""

    def forgetful(draft: Draft, effect: Effect, code: str, reason: str) -> None:
        draft.put_effect(evolve(effect, state=EffectState.PROPOSED, code=code, reason=reason))

    monkeypatch.setattr(reconcile, "lost", forgetful)

    assert any("times" in fault for seed in range(30) for fault in sendings.run(seed, backend).broken)
