"""The loop's named cases, in process and in virtual time, on both loops."""

import errno
import itertools
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from loop import cases, laws, workers, world
from loop.workers import Manners
from loop.world import Weather, World

from resumed.actors import job as jobs
from resumed.actors import verdicts
from resumed.actors.entry import Stage
from resumed.actors.mailbox import Message
from resumed.actors.straight import Drawn
from resumed.schemas import events, framelines
from resumed.schemas.job import Ending, ItemState
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import Told
from resumed.store import files, log, quarantine
from resumed.store.journal import SYNC_FAILED

BACKENDS = ("asyncio", "trio")
Case = Callable[[Path], Awaitable[None]]

pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.usefixtures("quiet")]


def epochs(one: World, job: str) -> int:
    """How many attempts a job has had, by its log."""
    folder = one.place(job)
    assert folder is not None
    return laws.history(folder)[1].snapshot.epoch


# ---- C15 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kill", [False, True])
def test_twenty_resumes_make_one_attempt(backend: str, kill: bool) -> None:
    """Twenty resumes at once, and one while the start is still loading, begin one attempt (C15)."""

    async def case(root: Path) -> None:
        async with cases.made(root, seed=3) as one:
            await one.start()
            await one.admit("harbour", ["a", "b", "c"])
            one.daemon.soon(one.daemon.ask, "harbour", "Pause")
            await one.until(lambda: one.entry("harbour").row.status == "paused")  # type: ignore[union-attr]
            before = epochs(one, "harbour")
            await one.kill()
            one.pace = world.Pace(1.0, 0.2)
            await one.start()
            assert one.entry("harbour").stage is Stage.LOADING  # type: ignore[union-attr]
            one.daemon.soon(one.daemon.ask, "harbour", "Resume")
            if kill:
                one.weather.kill_in = 12
            for _ in range(20):
                one.daemon.soon(one.daemon.ask, "harbour", "Resume")
            await one.passes(1.0)
            if kill:
                assert one.daemon.over.is_set()
                one.pace = world.Pace()
                await one.start()
                one.daemon.soon(one.daemon.ask, "harbour", "Resume")
            await one.until(lambda: one.rests("harbour"))
            told = [asked.answer for asked in one.asked if asked.kind == "Resume" and not asked.lost]

            assert all(isinstance(answer, Told) for answer in told)
            assert {before + 1} == {answer.attempt for answer in told if isinstance(answer, Told)}
            assert before + 1 == epochs(one, "harbour")
            assert [1, 1, 1] == [one.witness.runs("harbour", name) for name in "abc"]

    cases.play(backend, case)


# ---- C17 --------------------------------------------------------------------------------------------------


def test_cancel_against_completion_has_one_winner(backend: str) -> None:
    """A cancel at any moment around the end agrees with its answer, and the end stays (C17)."""
    seen: set[Ending] = set()
    late: list[int] = []

    def at(micro: int) -> Case:
        async def case(root: Path) -> None:
            async with cases.made(root, seed=micro) as one:
                one.pace = world.Pace(0.5, 0.004)
                one.machine.manners = Manners(slowest=0.02, contradict=1.0)
                await one.start()
                await one.admit("harbour", ["a", "b"])
                await one.passes(micro / 1_000_000)
                one.daemon.soon(one.daemon.ask, "harbour", "Cancel")
                await one.until(lambda: one.rests("harbour") and one.asked[0].answer is not None)
                await one.passes(10.0)
                answer, ended = one.asked[0].answer, one.snapshot("harbour").outcome
                assert ended is not None
                seen.add(ended.ending)
                if ended.ending is Ending.COMPLETED:
                    assert isinstance(answer, Refusal)
                    assert "too late" in answer.reason
                else:
                    assert isinstance(answer, Told)
                await one.kill()
                await one.start()
                await one.passes(1.0)

                assert ended == one.snapshot("harbour").outcome
                late.append(one.machine.did.get("contradict", 0))

        return case

    for micro in range(0, 900_000, 25_000):
        cases.play(backend, at(micro), micro)

    assert {Ending.COMPLETED, Ending.CANCELED} == seen
    assert any(late)


# ---- C47 --------------------------------------------------------------------------------------------------


class UnprintableError(Exception):
    """An error whose text cannot be made."""

    def __str__(self) -> str:
        raise ValueError("no text")


class AwkwardError(Exception):
    """An error whose text no file may hold."""

    def __str__(self) -> str:
        return "a NUL \0 and half a pair \ud800"


DEATHS: dict[str, tuple[Callable[[], BaseException] | None, str]] = {
    "a ValueError": (lambda: ValueError("a bad value"), "a bad value"),
    "an exception group": (lambda: ExceptionGroup("several", [KeyError("one")]), "several"),
    "a RecursionError": (lambda: RecursionError("too deep"), "too deep"),
    "a MemoryError": (lambda: MemoryError("no room"), "no room"),
    "a SystemExit": (lambda: SystemExit(3), "SystemExit: 3"),
    "an early return": (None, "work was open"),
    "an error without a text": (UnprintableError, "cannot be printed"),
    "a text that no file may hold": (AwkwardError, "a NUL"),
}


@pytest.mark.parametrize("death", DEATHS)
def test_an_actor_dies_alone(backend: str, death: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine jobs go on undisturbed while one's actor keeps dying; that one is held, with the cause (C47)."""
    make, cause = DEATHS[death]
    lives: list[str] = []
    names = [f"job-{number}" for number in range(10)]
    hit: list[int] = []

    def doomed(event: object) -> bool:
        return isinstance(event, events.Returned) and event.unit == "b"

    real, run, turn = verdicts.transition, jobs.JobActor.run, jobs.JobActor.draw_up

    def mortal(snapshot: Any, event: Any, now: Any) -> Any:
        if snapshot.job.id == "job-3" and doomed(event) and make is not None:
            hit.append(1)
            raise make()
        return real(snapshot, event, now)

    class LeaveError(Exception):
        """Takes the actor out of its loop."""

    async def counted(actor: jobs.JobActor, *first: Any) -> bool:
        lives.append(actor.entry.id)
        try:
            return await run(actor, *first)
        except LeaveError:
            hit.append(1)
            return False

    def early(actor: jobs.JobActor, messages: list[Message]) -> Drawn:
        mine = make is None and actor.entry.id == "job-3" and actor.snapshot.hold is None
        if mine and any(doomed(message.event) for message in messages):
            raise LeaveError
        return turn(actor, messages)

    monkeypatch.setattr(verdicts, "transition", mortal)
    monkeypatch.setattr(jobs.JobActor, "run", counted)
    monkeypatch.setattr(jobs.JobActor, "draw_up", early)

    async def case(root: Path) -> None:
        async with cases.made(root, most_workers=4) as one:
            await one.start()
            for name in names:
                await one.admit(name, ["a", "b", "c"])
            assert await one.until(lambda: all(one.rests(name) for name in names))
            assert hit
            for name in names:
                snapshot = one.snapshot(name)
                if name == "job-3":
                    assert snapshot.hold is not None
                    assert snapshot.hold.code == "actor_died"
                    assert cause in snapshot.hold.reason
                else:
                    assert snapshot.outcome is not None
                    assert [1, 1, 1] == [one.witness.runs(name, item) for item in "abc"]
            assert lives.count("job-3") <= 8
            one.daemon.soon(one.daemon.ask, "job-3", "Cancel")
            await one.until(lambda: one.asked[-1].answer is not None)

            assert isinstance(one.asked[-1].answer, Told)

    cases.play(backend, case)


def test_a_shutdown_ends_all_promptly(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one actor keeps dying, a shutdown still ends all ten jobs in good order and in time (C47)."""
    act = jobs.JobActor.act

    def mortal(actor: jobs.JobActor) -> bool:
        if actor.entry.id == "job-3" and actor.snapshot.tries:
            raise ValueError("a bad value")
        return act(actor)

    monkeypatch.setattr(jobs.JobActor, "act", mortal)

    async def case(root: Path) -> None:
        async with cases.made(root, most_workers=4) as one:
            one.machine.manners = Manners(slowest=500.0)
            await one.start()
            for number in range(10):
                await one.admit(f"job-{number}", ["a", "b", "c"])
            await one.passes(30.0)
            assert Stage.ASIDE is one.entry("job-3").stage  # type: ignore[union-attr]
            began = one.clock.seconds
            one.group.start_soon(one.daemon.stop, 20.0)

            assert await one.until(one.daemon.over.is_set, 60.0)
            assert one.clock.seconds - began <= 30.0
            assert not one.witness.alive

    cases.play(backend, case)


# ---- C19 --------------------------------------------------------------------------------------------------


def test_one_bad_record_stops_no_other(backend: str) -> None:
    """Of fifty jobs one is garbage, one unreadable, two for a while: the others go on at once (C19)."""

    async def case(root: Path) -> None:
        unread: set[str] = set()

        def veto(name: str, args: tuple[Any, ...]) -> int | None:
            found = any(part in unread for part in Path(str(args[0])).parts)
            return chance.choice((errno.EIO, errno.EMFILE)) if found else None

        chance = random.Random(1)
        sky = Weather(chance=chance, veto=veto)
        async with cases.made(root, weather=sky, most_workers=4) as one:
            one.machine.lasts = lambda frame: 2.0 if frame.item else 0.01
            await one.start()
            for number in range(50):
                await one.admit(f"job-{number}", ["a", "b"])
            one.daemon.soon(one.daemon.ask, "job-0", "Pause")
            await one.until(lambda: all(one.witness.runs(f"job-{n}", "") for n in (1, 2, 3)))
            await one.kill()
            folder = one.layout.job("job-0")
            newest = max(folder.glob("*.log"))
            raw = newest.read_bytes()
            newest.write_bytes(b"x" * 80 + raw[80:])
            unread.update({"job-1", "job-2", "job-3"})
            one.jobs.remove("job-0")
            one.asked.clear()
            await one.start()
            others = [f"job-{n}" for n in range(4, 50)]
            assert await one.until(lambda: all(one.entry(name) is None for name in others), 60.0)
            assert Stage.UNREADABLE is one.entry("job-1").stage  # type: ignore[union-attr]
            assert ["job-0"] == [each.id for each in quarantine.entries(one.layout)]
            unread.intersection_update({"job-1"})
            assert await one.until(lambda: all(one.entry(name) is None for name in ("job-2", "job-3")), 60.0)
            aside: list[Any] = []

            async def list_aside() -> None:
                aside.extend(await one.daemon.jobs.quarantined())

            one.daemon.soon(list_aside)
            await one.until(lambda: len(aside) == 2)
            shown = {(each.id, each.moved) for each in aside}
            assert {("job-0", True), ("job-1", False)} == shown
            assert sky.failures > 0
            unread.clear()

            assert await one.until(lambda: one.entry("job-1") is None, 60.0)

    cases.play(backend, case)


def test_a_folder_that_the_reader_fails_over_stops_no_other(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of our own while one job is read sets that one aside in its place; the daemon starts."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("bad", ["a"])
            await one.admit("good", ["a"])
            await one.kill()
            real = one.daemon.supervisor.load

            def load(folder: Path) -> Any:
                if folder.name == "bad":
                    raise RecursionError("too deep")
                return real(folder)

            start = world.Daemon.__init__

            def patched(daemon: world.Daemon, *args: Any) -> None:
                start(daemon, *args)
                daemon.supervisor.load = load  # type: ignore[method-assign]

            monkeypatch.setattr(world.Daemon, "__init__", patched)
            await one.start()
            assert await one.until(lambda: one.entry("good") is None)
            assert Stage.ASIDE is one.entry("bad").stage  # type: ignore[union-attr]
            one.daemon.soon(one.daemon.ask, "bad", "Resume")
            await one.passes(1.0)

            assert isinstance(one.asked[0].answer, Refusal)

    cases.play(backend, case)


def test_a_hanging_job_file_stops_no_other(backend: str) -> None:
    """While the read of one job hangs, all others are loaded, run and end."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            for number in range(5):
                await one.admit(f"job-{number}", ["a"])
            await one.kill()
            hung: list[str] = []
            call = world.Daemon.call

            class Slow(world.Daemon):
                async def call(self, function: Any, *args: Any) -> Any:
                    if args and str(args[0]).endswith("job-0") and not hung:
                        hung.append("job-0")
                        await self.world.clock.wait(5000.0)
                    return await call(self, function, *args)

            keep, world.Daemon = world.Daemon, Slow  # type: ignore[misc]
            try:
                await one.start()
            finally:
                world.Daemon = keep  # type: ignore[misc]
            others = [f"job-{n}" for n in range(1, 5)]

            assert await one.until(lambda: all(one.entry(name) is None for name in others), 100.0)
            assert Stage.LOADING is one.entry("job-0").stage  # type: ignore[union-attr]
            assert ["job-0"] == hung

    cases.play(backend, case)


# ---- suspects ---------------------------------------------------------------------------------------------


def test_suspects_start_one_at_a_time(backend: str) -> None:
    """Items that were twice in a row cut down start one at a time, store-wide, 5 s apart or after an end."""

    async def case(root: Path) -> None:
        async with cases.made(root, most_workers=8, parallel=3) as one:
            one.machine.lasts = lambda frame: 1000.0 if frame.item else 0.01
            await one.start()
            for job in ("one", "two"):
                await one.admit(job, ["a", "b", "c"])
            cut = seen = 0
            items = [(job, item) for job in ("one", "two") for item in "abc"]
            while cut < 2:
                assert await one.until(lambda: all(key in one.witness.alive for key in items), 300.0)
                await one.kill()
                seen = len(one.witness.ran)
                await one.start()
                cut += 1
            await one.until(lambda: len(one.witness.ran) >= seen + 6, 300.0)
            starts = [ran.at for ran in one.witness.ran[seen:]]
            gaps = [round((b - a) / 1_000_000) for a, b in itertools.pairwise(starts)]

            assert 6 == len(starts)
            assert all(gap >= 5 for gap in gaps), gaps

    cases.play(backend, case)


# ---- regressions ------------------------------------------------------------------------------------------


def test_a_job_that_cannot_be_archived_is_answered_and_archived_later(backend: str) -> None:
    """While the archive refuses a finished job, requests get the law's own answer; then it moves."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("harbour", ["a"])
            moved = one.layout.archived("harbour")

            def veto(name: str, args: tuple[Any, ...]) -> int | None:
                refused = name == "sync_folder" and moved.parent == args[0] and one.clock.seconds < 100
                return errno.ENOSPC if refused else None

            one.weather.veto = veto
            await one.until(lambda: one.weather.failures > 1)
            assert moved.is_dir()
            one.daemon.soon(one.daemon.ask, "harbour", "Cancel")
            await one.passes(1.0)
            assert isinstance(one.asked[0].answer, Refusal)
            assert one.entry("harbour") is not None

            assert await one.until(lambda: one.entry("harbour") is None, 200.0)
            assert moved.is_dir()

    cases.play(backend, case)


def test_a_frame_too_large_to_send_is_the_trys_failure(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A try whose frame cannot be sent has failed: its slot is free, and the job says why."""
    monkeypatch.setattr(framelines, "MAX_FRAME", 3000)

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()
            await one.admit("harbour", [f"item-{number}" for number in range(60)])
            assert await one.until(lambda: one.rests("harbour"))
            hold = one.snapshot("harbour").hold
            hands = one.daemon.supervisor.workshop.slots.hands.values()

            assert hold is not None
            assert "cannot send a frame" in hold.reason
            assert not any(hand.held or hand.offered for hand in hands)

    cases.play(backend, case)


def test_a_job_set_aside_gives_its_slots_back(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose actors cannot even commit a hold is set aside, and another one gets the only worker."""
    act = jobs.JobActor.act

    def mortal(actor: jobs.JobActor) -> bool:
        wants = act(actor)
        if actor.entry.id == "bad" and actor.snapshot.tries:
            raise ValueError("a bad value")
        return wants

    monkeypatch.setattr(jobs.JobActor, "act", mortal)

    async def case(root: Path) -> None:
        async with cases.made(root, most_workers=1) as one:
            one.machine.manners = Manners(ignore_stop=1.0, slowest=100_000.0)
            await one.start()
            await one.admit("bad", ["a"])
            await one.until(lambda: one.entry("bad").stage is Stage.ASIDE, 60.0)  # type: ignore[union-attr]
            one.machine.manners = workers.GOOD
            await one.admit("good", ["a"])

            assert await one.until(lambda: one.entry("good") is None, 120.0)

    cases.play(backend, case)


def test_a_damaged_job_is_moved_once_nothing_of_it_runs(backend: str) -> None:
    """A log that rots while a handler ignores its stop: the folder stays in its place until that is dead."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            one.machine.manners = Manners(ignore_stop=1.0, slowest=100_000.0)
            await one.start()
            await one.admit("bad", ["a"])
            await one.until(lambda: bool(one.witness.alive))
            folder = one.layout.job("bad")
            newest = max(folder.glob("*.log"))
            raw = newest.read_bytes()
            newest.write_bytes(raw[:200] + b"x" * 40 + raw[240:])
            one.weather.veto = lambda name, _: errno.EIO if name == "sync_data" else None
            one.daemon.soon(one.daemon.ask, "bad", "Pause")
            await one.until(lambda: one.entry("bad").stage is Stage.ASIDE, 60.0)  # type: ignore[union-attr]
            one.weather.veto = None
            assert one.witness.alive
            assert folder.exists()
            one.jobs.remove("bad")

            assert await one.until(lambda: ["bad"] == [e.id for e in quarantine.entries(one.layout)], 600.0)
            assert not one.witness.alive

    cases.play(backend, case)


def test_log_after_a_failed_sync_is_vouched_for(backend: str) -> None:
    """The log that failed can say nothing more, so a checkpoint names the line that the new one follows:
    without the new log the job is damaged, not older."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            one.machine.manners = Manners(ignore_stop=1.0, slowest=100_000.0)
            await one.start()
            await one.admit("harbour", ["a"])
            await one.until(lambda: bool(one.witness.alive))
            folder = one.layout.job("harbour")

            def veto(name: str, args: tuple[Any, ...]) -> int | None:
                return errno.EIO if name == "sync_data" and not one.weather.failures else None

            one.weather.veto = veto
            one.daemon.soon(one.daemon.ask, "harbour", "Pause")
            assert await one.until(lambda: bool(files.listing(folder).checkpoints), 60.0)
            found = files.listing(folder)
            assert one.weather.failures == 1
            assert found.logs[-1].first == found.checkpoints[-1].sequence + 1 > 1
            raw = (folder / str(found.logs[-1])).read_bytes()
            assert SYNC_FAILED == log.read_seal(raw, "it")[0].why
            one.jobs.remove("harbour")

    cases.play(backend, case)


def test_admission_in_doubt_is_found_again(backend: str) -> None:
    """An admission whose last sync failed is taken in at once: nobody waits for the next start."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            await one.start()

            def veto(name: str, args: tuple[Any, ...]) -> int | None:
                there = name == "sync_folder" and one.layout.job("harbour").exists()
                return errno.EIO if there and not one.weather.failures else None

            one.weather.veto = veto
            assert await one.admit("harbour", ["a"])
            assert one.weather.failures == 1

            assert await one.until(lambda: one.entry("harbour") is None)
            assert ItemState.DONE is one.snapshot("harbour").items["a"].state

    cases.play(backend, case)


def test_a_worker_that_never_gets_ready_is_ended(backend: str) -> None:
    """Workers that start and then say nothing are ended in time; the job asks for a person."""

    async def case(root: Path) -> None:
        async with cases.made(root) as one:
            one.machine.manners = Manners(never_ready=1.0)
            await one.start()
            await one.admit("harbour", ["a"])
            assert await one.until(lambda: one.rests("harbour"))
            hold = one.snapshot("harbour").hold

            assert hold is not None
            assert "before it was ready" in hold.reason
            assert 3 == one.machine.did["never_ready"]

    cases.play(backend, case)


def test_a_failed_start_makes_room_for_another_workflow(backend: str) -> None:
    """A workflow whose workers the system refuses to start waits, keeps no other one waiting, and goes on."""

    async def case(root: Path) -> None:
        contracts = [world.contract("bad"), world.contract("good")]
        async with cases.made(root, contracts=contracts, most_workers=1) as one:
            spawn = one.machine.spawn

            async def refusing(boss: Any, name: str, contract: Any) -> Any:
                if contract.workflow == "bad":
                    await one.clock.wait(1.0)
                    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
                return await spawn(boss, name, contract)

            one.spawn = refusing
            await one.start()
            await one.admit("first", ["a"], "bad")
            await one.admit("second", ["a"], "good")

            assert await one.until(lambda: one.entry("second") is None, 60.0)
            await one.passes(300.0)
            assert one.snapshot("first").hold is None
            (trouble,) = one.daemon.supervisor.workshop.slots.troubles()
            assert "no worker of bad could be started" in trouble
            one.spawn = spawn
            assert await one.until(lambda: one.entry("first") is None, 60.0)

    cases.play(backend, case)


def test_a_workflow_with_much_to_do_gives_way(backend: str) -> None:
    """With room for one worker, a job of many items does not keep another workflow's job waiting."""

    async def case(root: Path) -> None:
        contracts = [world.contract("long"), world.contract("short")]
        async with cases.made(root, contracts=contracts, most_workers=1) as one:
            one.machine.lasts = lambda frame: 1.0
            await one.start()
            await one.admit("long", [f"item-{number}" for number in range(100)], "long")
            await one.passes(5.0)
            await one.admit("short", ["a"], "short")

            assert await one.until(lambda: one.entry("short") is None, 30.0)
            assert one.entry("long") is not None
            assert await one.until(lambda: one.entry("long") is None, 300.0)

    cases.play(backend, case)
