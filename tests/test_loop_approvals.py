"""People decide through the living loop and the real store: one winner, whoever comes, dies or asks again."""

from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve
from loop import cases, world
from loop.workers import accept, fan_out
from loop.world import World
from test_loop_requests import answer, jobs_of, sweep

from resumed.actors.bounds import Bounds, Only
from resumed.actors.entry import Stage
from resumed.actors.hostnames import Looked
from resumed.actors.sight import Whose
from resumed.schemas import decisions, events, frames
from resumed.schemas.approvals import ApprovalRule, Gate
from resumed.schemas.job import ItemState, Person
from resumed.schemas.ledger import Effect, EffectState, ErrandKind, ToolContract
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import Told
from resumed.schemas.workflow import Contract

BACKENDS = ("asyncio", "trio")
pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.usefixtures("quiet")]
CURATORS = 500
BO, CY = (
    Person(uid=uid, name=name, gid=uid, groups=(CURATORS,)) for uid, name in ((1002, "bo"), (1003, "cy"))
)
ASKER = evolve(world.ADA, groups=(CURATORS,))
"""The requester, a curator as well."""
EVE = Person(uid=1004, name="eve", gid=1004)
CROWD = [Person(uid=2000 + number, name=f"p{number}", gid=1, groups=(CURATORS,)) for number in range(50)]
TOOL = ToolContract(
    tool="cms.publish",
    version=1,
    target="cms",
    approve=ApprovalRule(by=("group:curators",), decide_within=900.0, valid_for=300.0),
    look_up=True,
    absent_is_final=True,
    in_flight=30.0,
)
CALL = decisions.Call(tool="cms.publish", arguments='{"page":"1"}')


class Grants:
    """Nobody has a role; everybody may hand in jobs, or nobody."""

    def __init__(self, may: bool = True) -> None:
        self.may = may

    def roles(self, uid: int, gids: Iterable[int], whose: Whose) -> tuple[str, ...]:
        """None at all."""
        return ()

    def may_ask(self, uid: int, gids: Iterable[int], workflow: str) -> bool:
        """All of them, or none."""
        return self.may

    def is_ours(self, uid: int) -> bool:
        """Nobody is."""
        return False


class Target:
    """The other system: what was written to it, by operation key."""

    def __init__(self, calls: tuple[decisions.Call, ...] = (CALL,)) -> None:
        self.calls = calls
        self.pages: list[str] = []
        self.checks = 0

    def says(self, frame: frames.Run) -> decisions.Answer:
        """What a worker answers in this play."""
        call = frame.call
        if call is None:
            return self._step(frame)
        if call.kind is ErrandKind.CHECK:
            return decisions.Answer(decided=decisions.Checked(observed=""))
        if call.kind is ErrandKind.SEND:
            self.pages.append(call.operation_key)
            return decisions.Answer(decided=decisions.Landed(reference=f"page-{len(self.pages)}"))
        if call.operation_key in self.pages:
            return decisions.Answer(decided=decisions.Landed(reference="page"))
        return decisions.Answer(decided=decisions.Absent())

    def _step(self, frame: frames.Run) -> decisions.Answer:
        steps: dict[str, decisions.Decided] = {
            "start": fan_out(),
            "work": decisions.Performing(calls=self.calls, then="check"),
            "finish": decisions.Finished(),
        }
        decided = steps.get(frame.step)
        return accept(frame.item) if decided is None else decisions.Answer(decided=decided)


def contract(**more: Any) -> Contract:
    """The loop's own workflow, whose items write to another system."""
    return evolve(world.contract(), effects=(evolve(TOOL, **more),))


async def look(whom: Iterable[str], uids: Iterable[int], gids: Iterable[int]) -> Looked:
    """A host that knows everybody of this play."""
    del whom
    known = {who.uid: (who.gid, *who.groups) for who in (BO, EVE, ASKER, *CROWD)}
    return Looked(
        numbers={"group:curators": CURATORS},
        groups={uid: known.get(uid, (uid,)) for uid in uids},
        names={CURATORS: "curators"} | {gid: str(gid) for gid in gids if gid != CURATORS},
    )


async def begin(one: World, inside: frozenset[int] = frozenset()) -> None:
    """Start a daemon that sees people so; those of `inside` come from within an attempt."""

    async def placed(person: Person) -> str:
        return "it comes from within an attempt of job-0" if person.uid in inside else ""

    await one.start()
    witness = one.daemon.supervisor.witness
    witness.look, witness.placed, witness.authority = look, placed, Grants()


def snapshot_of(one: World, job: str) -> Snapshot:
    """The job as its files tell it now, wherever they lie."""
    return one.snapshot(job)


def effect_of(one: World, job: str) -> Effect:
    """Its one call."""
    [effect] = snapshot_of(one, job).effects
    return effect


async def asked(one: World, job: str) -> Effect:
    """A job whose call waits for a yes, and that is parked meanwhile."""
    await one.admit(job, ["a"])
    await one.until(lambda: _waits(one, job))
    return effect_of(one, job)


def is_still(one: World, job: str) -> bool:
    """Whether it has ended, or nothing of it runs and it is parked."""
    entry = one.entry(job)
    return entry is None or (entry.stage is Stage.PARKED and not entry.box)


def _waits(one: World, job: str) -> bool:
    entry = one.entry(job)
    return entry is not None and entry.asks != () and is_still(one, job)


def yes(who: Person, effect: Effect, **more: Any) -> events.Approve:
    """Their yes."""
    return events.Approve(by=who, **({"subject": effect.id, "fingerprint": effect.fingerprint} | more))


def no(who: Person, effect: Effect, **more: Any) -> events.Deny:
    """Their no."""
    return events.Deny(by=who, subject=effect.id, fingerprint=effect.fingerprint, **more)


async def at_once(one: World, job: str, found: list[Any]) -> list[Any]:
    """What each of these requests is answered that come together."""
    answers: dict[int, Any] = {}

    async def ask(number: int, event: Any) -> None:
        answers[number] = await one.daemon.jobs.tell(job, event)

    for number, event in enumerate(found):
        one.daemon.soon(ask, number, event)
    await one.until(lambda: len(answers) == len(found), 60.0)
    return [answers[number] for number in range(len(found))]


async def end(one: World) -> None:
    """Nothing is left open."""
    for job in jobs_of(one):
        await answer(one, one.daemon.jobs.tell, job, events.Cancel(by=world.ADA))
    one.asked.clear()
    await one.until(lambda: all(is_still(one, job) for job in jobs_of(one)))


CROWDS = {
    "fifty yeses": [yes] * 50,
    "yeses and noes": [yes, no] * 25,
    "noes and yeses": [no, yes] * 25,
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_fifty_at_once_have_one_winner(backend: str, crowd: str) -> None:
    """The losers are told who won, and the record agrees after a restart."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one)
            effect = await asked(one, "job-0")
            found = [kind(who, effect) for kind, who in zip(CROWDS[crowd], CROWD, strict=True)]
            told = await at_once(one, "job-0", found)
            winners = [number for number, each in enumerate(told) if isinstance(each, Told)]
            assert 1 == len(winners), told
            winner = CROWD[winners[0]]
            losers = [each.reason for each in told if isinstance(each, Refusal)]
            assert 49 == len(losers)
            assert all(f"by {winner.name} (uid {winner.uid})" in said for said in losers)
            await one.kill()
            await begin(one)
            [row] = snapshot_of(one, "job-0").approvals
            assert (winner.uid, 1) == (row.uid, row.round)
            again = await answer(one, one.daemon.jobs.tell, "job-0", found[winners[0]])
            assert isinstance(again, Told), again
            assert "already by you, at " in again.said
            await end(one)
            denied = found[winners[0]].__class__ is events.Deny
            assert len(target.pages) <= (0 if denied else 1)

    cases.play(backend, case)


@pytest.mark.parametrize("first", ["approve", "cancel"])
@pytest.mark.parametrize("seed", range(4))
def test_c17_approve_against_cancel_agrees_with_the_record(backend: str, first: str, seed: int) -> None:
    """C17: both come at once; what each was answered is what the files and the target say afterwards."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, seed=seed, says=target.says, contracts=[contract()]) as one:
            await begin(one)
            effect = await asked(one, "job-0")
            both = [yes(BO, effect), events.Cancel(by=world.ADA)]
            told = await at_once(one, "job-0", both if first == "approve" else both[::-1])
            approved, canceled = told if first == "approve" else told[::-1]
            await one.until(lambda: is_still(one, "job-0"))
            assert isinstance(canceled, Told), canceled
            await one.kill()
            await begin(one)
            after = effect_of(one, "job-0")
            assert after.state in (EffectState.WITHDRAWN, EffectState.CONFIRMED)
            assert (1 if after.state is EffectState.CONFIRMED else 0) == len(target.pages)
            if isinstance(approved, Refusal):
                assert "canceled" in approved.reason
                assert ("canceled", 0) == (after.code, len(target.pages))
            await end(one)

    cases.play(backend, case, seed)


def test_c37_an_approval_whose_reply_was_lost_is_one_decision(backend: str, stride: int) -> None:
    """C37: killed at any call of the disk and asked again under its id, it is one decision; C11: it is there
    after each kill, or was never heard of, and is not asked anew."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one)

            async def killed_at(one: World, number: int) -> bool:
                job = f"job-{number}"
                effect = await asked(one, job)
                command = yes(BO, effect, request="r-1")
                one.weather.kill_in = number
                first = await answer(one, one.daemon.jobs.tell, job, command)
                hit = first is None
                one.weather.kill_in = None
                if hit:
                    await begin(one)
                told = await answer(one, one.daemon.jobs.tell, job, command)
                again = await answer(one, one.daemon.jobs.tell, job, command)
                other = await answer(one, one.daemon.jobs.tell, job, evolve(command, reason="another"))

                assert isinstance(told, Told), told
                assert hit or told == evolve(first, row=told.row, known=True)
                assert evolve(told, row=again.row, known=True) == again
                assert isinstance(other, Refusal)
                assert "request_conflict" == other.code
                [row] = snapshot_of(one, job).approvals
                assert 1 == row.round
                return hit

            assert await sweep(one, killed_at, stride) > 0
            await end(one)
            assert len(set(target.pages)) == len(target.pages)

    cases.play(backend, case)


def test_c13_a_job_approves_nothing_of_its_own(backend: str) -> None:
    """C13: from within its processes, as its requester, as a stranger: all refused, nothing written."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one, inside=frozenset({BO.uid}))
            effect = await asked(one, "job-0")
            tries = [yes(BO, effect), no(BO, effect), yes(ASKER, effect), yes(EVE, effect)]
            told = await at_once(one, "job-0", tries)
            assert ["placed", "placed", "requester", "not_asked"] == [each.code for each in told]
            taken_back = await answer(one, one.daemon.jobs.tell, "job-0", no(ASKER, effect))
            assert isinstance(taken_back, Told), taken_back
            await one.until(lambda: is_still(one, "job-0"))
            assert ("denied", []) == (effect_of(one, "job-0").code, target.pages)
            await end(one)

    cases.play(backend, case)


def test_a_question_lapses_while_its_job_is_parked(backend: str) -> None:
    """At its time the job is woken, a new round is on record, and it is parked again; nothing is granted."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one)
            await asked(one, "job-0")
            await one.passes(960.0)
            await one.until(lambda: is_still(one, "job-0"))
            gate = gate_of(one, "job-0")
            assert (2, "lapsed", None, []) == (gate.round, gate.why, gate.met, target.pages)
            await end(one)

    cases.play(backend, case)


def test_a_yes_expires_while_its_job_is_paused(backend: str) -> None:
    """It was good for five minutes; afterwards it is asked anew, and going on sends nothing."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one)
            effect = await asked(one, "job-0")
            await answer(one, one.daemon.jobs.tell, "job-0", events.Pause(by=world.ADA))
            await answer(one, one.daemon.jobs.tell, "job-0", yes(BO, effect))
            await one.passes(360.0)
            await answer(one, one.daemon.jobs.tell, "job-0", events.Resume(by=world.ADA))
            await one.until(lambda: is_still(one, "job-0"))
            gate = gate_of(one, "job-0")
            assert (2, "expired", None, []) == (gate.round, gate.why, gate.met, target.pages)
            await end(one)

    cases.play(backend, case)


def test_a_host_that_cannot_say_lets_nobody_decide(backend: str) -> None:
    """The decision is refused, and may be made again once the host says who people are."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one)
            effect = await asked(one, "job-0")

            one.daemon.supervisor.witness.look = away
            refused = await answer(one, one.daemon.jobs.tell, "job-0", yes(BO, effect))
            assert isinstance(refused, Refusal)
            assert "names" == refused.code
            one.daemon.supervisor.witness.look = look
            told = await answer(one, one.daemon.jobs.tell, "job-0", yes(BO, effect))
            assert isinstance(told, Told), told
            assert ItemState.IN_PROGRESS is snapshot_of(one, "job-0").items["a"].state
            await end(one)

    cases.play(backend, case)


def test_what_was_allowed_leaves_once_and_the_yes_says_for_what(backend: str) -> None:
    """C11: the same decision made again is answered with what became of it, also once the job has ended."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one)
            effect = await asked(one, "job-0")
            await answer(one, one.daemon.jobs.tell, "job-0", yes(BO, effect))
            await one.until(lambda: one.entry("job-0") is None)
            after = effect_of(one, "job-0")
            [row] = snapshot_of(one, "job-0").approvals
            assert (EffectState.CONFIRMED, [after.operation_key]) == (after.state, target.pages)
            assert (after.operation_key, True) == (row.operation_key, row.spent is not None)
            again = await answer(one, one.daemon.jobs.tell, "job-0", yes(BO, effect))
            assert isinstance(again, Told), again
            assert f"spent on key {after.operation_key[:16]} at " in again.said
            other = await answer(one, one.daemon.jobs.tell, "job-0", no(CROWD[0], effect))
            assert isinstance(other, Refusal)

    cases.play(backend, case)


def test_c11_killed_anywhere_after_the_yes_it_leaves_once_and_is_not_asked_again(
    backend: str, stride: int
) -> None:
    """C11: at each call of the disk from the decision to the job's end; the yes is spent once, and the same
    decision made again is answered with what became of it."""

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one)

            async def killed_at(one: World, number: int) -> bool:
                job = f"job-{number}"
                effect = await asked(one, job)
                one.weather.kill_in = number
                one.daemon.soon(one.daemon.jobs.tell, job, yes(BO, effect))
                await one.until(lambda: one.entry(job) is None or one.daemon.over.is_set())
                hit = one.daemon.over.is_set()
                one.weather.kill_in = None
                if hit:
                    await begin(one)
                    if one.entry(job) is not None:  # it may have been cut off before anybody heard of it
                        await answer(one, one.daemon.jobs.tell, job, yes(BO, effect))
                    await one.until(lambda: one.entry(job) is None)
                [row] = snapshot_of(one, job).approvals
                again = await answer(one, one.daemon.jobs.tell, job, yes(BO, effect))
                key = effect_of(one, job).operation_key
                assert 1 == target.pages.count(key)
                assert (1, key) == (row.round, row.operation_key)
                assert isinstance(again, Told), again
                assert f"spent on key {key[:16]}" in again.said
                return hit

            assert await sweep(one, killed_at, stride) > 0
            await end(one)

    cases.play(backend, case)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_c09_of_two_calls_the_one_that_was_named_goes(backend: str, seed: int, same: bool) -> None:
    """C09: a restart between request and decision; what names only the job is refused with both ids, one id
    with the other's fingerprint is refused, and exactly the one that was allowed is sent."""
    arguments = ['{"n":1}', '{"n":1}' if same else '{"n":2}']

    async def case(root: Any) -> None:
        target = Target(tuple(decisions.Call(tool="cms.publish", arguments=text) for text in arguments))
        async with cases.made(root, seed=seed, says=target.says, contracts=[contract()]) as one:
            await begin(one)
            await one.admit("job-0", ["a"])
            await one.until(lambda: _waits(one, "job-0"))
            first, second = snapshot_of(one, "job-0").effects
            assert first.operation_key != second.operation_key
            await one.kill()
            await begin(one)
            await one.until(lambda: _waits(one, "job-0"))
            tell = one.daemon.jobs.tell
            unnamed = await answer(one, tell, "job-0", yes(BO, second, subject=""))
            assert isinstance(unnamed, Refusal)
            assert all(each.id in unnamed.reason for each in (first, second))
            if not same:
                crossed = await answer(one, tell, "job-0", yes(BO, second, subject=first.id))
                assert isinstance(crossed, Refusal)
                assert "fingerprint" == crossed.code
            entry = one.entry("job-0")
            assert entry is not None
            short = next(row.id for row in entry.asks if row.subject == second.id)
            told = await answer(one, tell, "job-0", yes(BO, second, subject=short))
            assert isinstance(told, Told), told
            await one.until(lambda: bool(target.pages) and is_still(one, "job-0"))
            states = [row.state for row in snapshot_of(one, "job-0").effects]
            assert [second.operation_key] == target.pages
            assert [EffectState.PROPOSED, EffectState.CONFIRMED] == states
            await end(one)

    cases.play(backend, case, seed)


BETWEEN = {"just before": (-1, 1), "exactly then": (0, 0), "just after": (1, 0)}


@pytest.mark.parametrize("when", BETWEEN)
def test_a_yes_that_expires_between_check_and_dispatch_sends_nothing(backend: str, when: str) -> None:
    """The check was begun in time; what counts is the commit that would let it go."""
    micro, pages = BETWEEN[when]

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(
            root, says=target.says, contracts=[contract(observe=True, timeout=200.0)]
        ) as one:
            await begin(one)
            effect = await asked(one, "job-0")

            def lasts(frame: frames.Run) -> float:
                if frame.call is None or frame.call.kind is not ErrandKind.CHECK or target.checks:
                    return 0.0
                target.checks += 1
                until = gate_of(one, "job-0").until
                assert until is not None
                return (until.wall + micro - one.clock.now().wall) / 1_000_000

            one.machine.lasts = lasts
            await answer(one, one.daemon.jobs.tell, "job-0", yes(BO, effect))
            await one.until(lambda: target.checks > 0 and is_still(one, "job-0"))
            assert (1, pages) == (target.checks, len(target.pages))
            if not pages:
                gate = gate_of(one, "job-0")
                assert (2, "expired", None) == (gate.round, gate.why, gate.met)
            await end(one)

    cases.play(backend, case)


def gate_of(one: World, job: str) -> Gate:
    """The gate of its one call."""
    gate = effect_of(one, job).gate
    assert gate is not None
    return gate


async def nobody_is_a_curator(whom: Any, uids: Any, gids: Any) -> Looked:
    """A host on which everybody has left the group."""
    return evolve(await look(whom, uids, gids), groups={uid: (uid,) for uid in uids})


async def away(*_: Any) -> Looked:
    """A host that cannot say."""
    return Looked(problem="this host did not say within 3 s who its users are")


# what changes between the yes and the dispatch -> the round and why it is asked anew; or the code of the hold
CHANGES: dict[str, tuple[dict[str, Any], tuple[int, str], str]] = {
    "the reviewer has left the group": ({"look": nobody_is_a_curator}, (2, "member"), ""),
    "the administrator wants two": ({"bounds": Bounds(quorum=2)}, (2, "policy"), ""),
    "the administrator wants others": (
        {"bounds": Bounds(only=(Only(by=("user:eve",)),))},
        (2, "policy"),
        "",
    ),
    "the host cannot say": ({"look": away}, (1, ""), "names"),
    "the requester has lost its access": ({"authority": Grants(may=False)}, (1, ""), "access"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_since_the_yes_is_judged_where_it_is_let_go(backend: str, change: str) -> None:
    """Nothing is sent on a yes that would not be given today; what only held it goes on by itself later."""
    more, asked_anew, code = CHANGES[change]

    async def case(root: Any) -> None:
        target = Target()
        async with cases.made(root, says=target.says, contracts=[contract()]) as one:
            await begin(one)
            effect = await asked(one, "job-0")
            await answer(one, one.daemon.jobs.tell, "job-0", events.Pause(by=world.ADA))
            await answer(one, one.daemon.jobs.tell, "job-0", yes(BO, effect))
            witness = one.daemon.supervisor.witness
            before = {name: getattr(witness, name) for name in more}
            for name, value in more.items():
                setattr(witness, name, value)
            await answer(one, one.daemon.jobs.tell, "job-0", events.Resume(by=world.ADA))
            await one.passes(5.0)
            after, gate = effect_of(one, "job-0"), gate_of(one, "job-0")
            assert (asked_anew, []) == ((gate.round, gate.why), target.pages)
            assert code == ("" if after.hold is None else after.hold.code)
            for name, value in before.items():
                setattr(witness, name, value)
            if code:
                await one.until(lambda: one.entry("job-0") is None)
                assert 1 == len(target.pages)
            await end(one)

    cases.play(backend, case)


@pytest.fixture
def stride(faults_scale: float) -> int:
    """Every call of the disk at the full count, else every third."""
    return 1 if faults_scale >= 1 else 3
