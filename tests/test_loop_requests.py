"""Request ids, business keys and names through lives of the daemon that is killed at calls of the disk."""

import json
import shutil
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from attrs import evolve
from loop import cases, laws, world
from loop.world import ADA, World

from resumed.schemas import events
from resumed.schemas.errors import GoneError, StoreError
from resumed.schemas.job import Person
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import Told
from resumed.store import archive, names, retire

BACKENDS = ("asyncio", "trio")
pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.usefixtures("quiet")]
BO = Person(uid=ADA.uid + 1, name="bo")


def text(**keys: Any) -> bytes:
    return json.dumps({"workflow": "label", "items": ["a"], **keys}).encode()


async def answer(one: World, call: Callable[..., Awaitable[Any]], *args: Any, **more: Any) -> Any:
    """The daemon's answer, an error of ours among them; None when it died before."""
    answers: list[Any] = []

    async def ask() -> None:
        try:
            answers.append(await call(*args, **more))
        except (StoreError, GoneError) as error:
            answers.append(error)

    one.daemon.soon(ask)
    await one.until(lambda: bool(answers) or one.daemon.over.is_set(), 60.0)
    return answers[0] if answers and not one.daemon.dead else None


async def submit(one: World, raw: bytes, request: str = "", by: Person = ADA, again: bool = False) -> Any:
    return await answer(
        one,
        one.daemon.jobs.submit,
        raw,
        name="a.json",
        requester=by,
        via="socket",
        request=request,
        again=again,
    )


def jobs_of(one: World) -> list[str]:
    """All jobs that the store holds."""
    return sorted([*archive.folders(one.layout.jobs), *archive.folders(one.layout.archive)])


async def rest(one: World) -> None:
    """Every job that is open has ended; the laws look at all there are."""
    await one.until(lambda: all(one.rests(job) for job in jobs_of(one)))
    one.jobs[:] = jobs_of(one)


async def sweep(one: World, killed_at: Callable[[World, int], Awaitable[bool]], stride: int) -> int:
    """Kill at each call of the disk (or each third), until one comes through; returns how many hit."""
    number = 0
    while await killed_at(one, number):
        number += stride
    return number // stride


@pytest.fixture
def stride(faults_scale: float) -> int:
    """Every call of the disk at the full count, else every third."""
    return 1 if faults_scale >= 1 else 3


COMMANDS = {
    "pause": events.Pause(by=ADA, reason="tea", request="r-1"),
    "cancel": events.Cancel(by=ADA, reason="enough", request="r-1"),
    "resume": events.Resume(by=ADA, request="r-1"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_command_killed_anywhere_takes_effect_once(backend: str, name: str, stride: int) -> None:
    """Killed at any call of the disk and asked again under its id, a command is one decision (C37)."""
    command = COMMANDS[name]

    async def killed_at(one: World, number: int) -> bool:
        """Whether the kill hit before the answer."""
        job = f"job-{number}"
        await one.admit(job, ["a", "b"])
        if name == "resume":
            one.daemon.soon(one.daemon.ask, job, "Pause")
            await one.until(lambda: one.entry(job) is None or one.rests(job))
        one.weather.kill_in = number
        first = await answer(one, one.daemon.jobs.tell, job, command)
        hit = first is None
        one.weather.kill_in = None
        if hit:
            await one.start()
        told = await answer(one, one.daemon.jobs.tell, job, command)
        again = await answer(one, one.daemon.jobs.tell, job, command)
        other = await answer(one, one.daemon.jobs.tell, job, evolve(command, reason="another"))
        history = laws.history(one.place(job))[0]  # type: ignore[arg-type]
        steps = [step for step in history if step.entry.changes.receipt is not None]

        assert isinstance(told, Told), told
        assert hit or told == evolve(first, row=told.row, known=True)
        assert evolve(told, row=again.row, known=True) == again
        assert 1 == len(steps)
        assert isinstance(other, Refusal)
        assert ("request_conflict", True) == (other.code, told.said in other.reason)
        return hit

    async def case(one: World) -> None:
        hits = await sweep(one, killed_at, stride)

        assert hits > 0
        for job in jobs_of(one):
            await answer(one, one.daemon.jobs.tell, job, events.Cancel(by=ADA))
        one.asked.clear()
        await rest(one)

    cases.play_started(backend, case)


def test_submit_killed_anywhere_is_one_job(backend: str, stride: int) -> None:
    """Killed at any call of the disk and handed in again under its id, a file with a key is one job (C37)."""

    async def killed_at(one: World, number: int) -> bool:
        raw = text(key=f"invoice-{number}", title="first")
        one.weather.kill_in = number
        first = await submit(one, raw, f"r-{number}")
        hit = first is None
        one.weather.kill_in = None
        if hit:
            await one.start()
        told = await submit(one, raw, f"r-{number}")
        again = await submit(one, raw, f"r-{number}")
        by_key = await submit(one, text(key=f"invoice-{number}", title="second"), f"s-{number}")
        other = await submit(one, text(title="third"), f"r-{number}")

        assert isinstance(told, Told), told
        assert hit or told == evolve(first, row=told.row, known=True)
        assert (f"{told.row.id} was admitted", 1, False) == (told.said, told.attempt, told.repeated)
        assert (again.row.id, True, again.said) == (told.row.id, again.known, told.said)
        assert (told.row.id, True) == (by_key.row.id, by_key.repeated)
        assert f"under the key invoice-{number}" in by_key.said
        assert isinstance(other, Refusal)
        assert ("request_conflict", True) == (other.code, told.row.id in other.reason)
        return hit

    async def case(one: World) -> None:
        hits = await sweep(one, killed_at, stride)

        assert hits > 8 // stride
        assert hits + 1 == len(jobs_of(one))
        await rest(one)

    cases.play_started(backend, case)


def test_name_without_a_job_keeps_nobody_out(backend: str, stride: int) -> None:
    """A submit that was killed between its names and its job never happened: its names are free."""

    async def case(one: World) -> None:
        number, left = 0, 0
        while True:
            before = set(jobs_of(one))
            one.weather.kill_in = number
            first = await submit(one, text(key=f"k-{number}", title="first"), f"r-{number}")
            one.weather.kill_in = None
            if first is not None:
                break
            await one.start()
            happened = set(jobs_of(one)) - before
            names = len(list(one.layout.names.iterdir()))
            other = await submit(one, text(key=f"k-{number}", title="other"), f"r-{number}")
            if happened:
                assert isinstance(other, Refusal), other
            else:
                assert isinstance(other, Told)
                assert not other.repeated
                left += names > 2 * len(before)
            number += stride

        assert left > 0
        await rest(one)

    cases.play_started(backend, case)


def test_names_are_asserted_again_at_the_start(backend: str) -> None:
    """Names that somebody removed are there again soon after a start, for every open job."""

    async def case(one: World) -> None:
        for number in range(3):
            told = await submit(one, text(key=f"k-{number}", after=["later"]), f"r-{number}")
            assert isinstance(told, Told)
        await one.kill()
        before = {path.name for path in one.layout.names.iterdir()}
        shutil.rmtree(one.layout.names)
        one.layout.names.mkdir()
        await one.start()
        await one.until(lambda: before == {path.name for path in one.layout.names.iterdir()}, 60.0)
        found = await submit(one, text(key="k-1", title="another"), "r-9")
        known = await submit(one, text(key="k-2", after=["later"]), "r-2")

        assert 6 == len(before)
        assert (True, False) == (found.repeated, found.known)
        assert (False, True) == (known.repeated, known.known)
        for job in jobs_of(one):
            await answer(one, one.daemon.jobs.tell, job, events.Cancel(by=ADA))
        await rest(one)

    cases.play_started(backend, case)


def test_again_is_another_job_each_time_it_is_meant(backend: str) -> None:
    """The same content again is the next number of its id; under one request id it is the same again."""

    async def case(one: World) -> None:
        first = await submit(one, text(), "r-0")
        plain = await submit(one, text(), "r-1")
        second = await submit(one, text(), "r-2", again=True)
        same = await submit(one, text(), "r-2", again=True)
        third = await submit(one, text(), again=True)
        fourth = await submit(one, text(), again=True)
        conflict = await submit(one, text(), "r-2")
        named = await submit(one, text(id="mine"), again=True)
        keyed = await submit(one, text(key="mine"), again=True)
        base = first.row.id

        assert (base, True) == (plain.row.id, plain.repeated)
        assert [f"{base}.2", f"{base}.2", f"{base}.3", f"{base}.4"] == [
            each.row.id for each in (second, same, third, fourth)
        ]
        assert [False, True, False, False] == [each.known for each in (second, same, third, fourth)]
        assert ["request_conflict", "named", "named"] == [each.code for each in (conflict, named, keyed)]
        await rest(one)

    cases.play_started(backend, case)


def test_again_killed_anywhere_is_one_more_job(backend: str, stride: int) -> None:
    """Two that mean it again, one of them killed anywhere, are two jobs and never one."""

    async def killed_at(one: World, number: int) -> bool:
        raw = text(title=f"t-{number}")
        base = (await submit(one, raw)).row.id
        one.weather.kill_in = number
        first = await submit(one, raw, f"r-{number}", again=True)
        hit = first is None
        one.weather.kill_in = None
        if hit:
            await one.start()
        other = await submit(one, raw, f"s-{number}", again=True)
        told = await submit(one, raw, f"r-{number}", again=True)

        assert {f"{base}.2", f"{base}.3"} == {other.row.id, told.row.id}
        return hit

    async def case(one: World) -> None:
        hits = await sweep(one, killed_at, stride)

        assert hits > 8 // stride
        assert 3 * (hits + 1) == len(jobs_of(one))
        await rest(one)

    cases.play_started(backend, case)


def test_keys_and_ids_are_each_users_own(backend: str) -> None:
    """Another user's key and request id are other names."""

    async def case(one: World) -> None:
        mine = await submit(one, text(key="invoice-7"), "r-1")
        theirs = await submit(one, text(key="invoice-7"), "r-1", by=BO)
        composed = await submit(one, text(key="caf\u00e9"))
        decomposed = await submit(one, text(key="cafe\u0301"))

        assert [False] * 4 == [each.repeated for each in (mine, theirs, composed, decomposed)]
        assert 4 == len(jobs_of(one))
        await rest(one)

    cases.play_started(backend, case)


def test_at_once_under_one_name_is_one_job(backend: str) -> None:
    """Asked again while the first answer is still on its way, a submit is the same job."""

    async def case(one: World) -> None:
        one.pace = world.Pace(1.0, 0.3)
        answers: list[Any] = []

        async def ask(raw: bytes, request: str) -> None:
            answers.append(
                await one.daemon.jobs.submit(raw, name="a.json", requester=ADA, via="socket", request=request)
            )

        for _ in range(10):
            one.daemon.soon(ask, text(key="k"), "r-1")
        for number in range(10):
            one.daemon.soon(ask, text(key="k", title=str(number)), f"s-{number}")
        await one.until(lambda: len(answers) == 20, 600.0)
        one.pace = world.Pace()

        assert [] == [each for each in answers if not isinstance(each, Told)]
        assert 1 == len(jobs_of(one)) == len({each.row.id for each in answers})
        assert 1 == sum(not each.repeated and not each.known for each in answers)
        await rest(one)

    cases.play_started(backend, case)


def test_job_that_is_gone_for_good_stays_known(backend: str) -> None:
    """Pruned, a job's id and key find nothing new: the work was done once, and that is said."""

    async def case(one: World) -> None:
        told = await submit(one, text(key="k"), "r-1")
        job = told.row.id
        await one.until(lambda: one.entry(job) is None, 60.0)
        farewell = retire.Farewell(id=job, how="pruned", by="ada", at=one.clock.now())
        retire.prune(one.layout, farewell)
        refused = [
            await submit(one, text(key="k"), "r-2"),
            await submit(one, text(key="k", title="another"), "r-3"),
        ]

        left = {path.name for path in one.layout.names.iterdir()}

        assert {names.spell("id", 0, job), names.spell("key", ADA.uid, "k")} == left
        assert ["removed", "removed"] == [each.code for each in refused]
        assert all(job in each.reason for each in refused)
        assert [] == jobs_of(one)
        one.jobs.clear()

    cases.play_started(backend, case)


def test_name_that_fails_its_digest_is_never_guessed(backend: str) -> None:
    """A damaged name is no answer and no free name: it is refused with what is damaged."""

    async def case(one: World) -> None:
        await submit(one, text(key="k"))
        (name,) = one.layout.names.iterdir()
        name.write_bytes(name.read_bytes().replace(b"label", b"lapel"))
        told = await submit(one, text(key="k", title="another"))

        assert isinstance(told, StoreError)
        assert name.name in str(told)
        assert 1 == len(jobs_of(one))
        await rest(one)

    cases.play_started(backend, case)
