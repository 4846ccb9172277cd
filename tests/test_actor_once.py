"""Commands that no job keeps, under their request ids: one effect, one answer, also after a kill."""

from typing import Any

import pytest
from attrs import evolve
from loop import cases
from loop.world import ADA, World
from test_actor_finder import ask
from test_actor_retirement import BACKENDS, broken

from resumed.actors.once import Ask
from resumed.schemas.receipt import KEPT_SECONDS
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import Told
from resumed.store import receipts, retire

pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.usefixtures("quiet")]


def of(method: str, job: str, request: str = "r-1", uid: int = ADA.uid) -> Ask:
    return Ask(uid=uid, request=request, method=method, content=job)


async def ended(one: World, *jobs: str) -> None:
    """These jobs have ended."""
    for job in jobs:
        await one.admit(job, ["a"])
        await one.until(lambda job=job: one.entry(job) is None)  # type: ignore[misc]


async def again(one: World) -> None:
    """The daemon is killed and started anew."""
    await one.kill()
    one.weather.revive()
    one.numbered += len(one.asked)
    one.asked.clear()
    await one.start()


def forget(one: World, *jobs: str) -> None:
    """These jobs are gone: the world's laws need not look for them."""
    for job in jobs:
        one.jobs.remove(job)


def test_prune_under_its_id_is_one_prune(backend: str) -> None:
    """Asked again, also after a kill, it is answered as done; another command under the id is a conflict."""

    async def case(one: World) -> None:
        await ended(one, "ended-1", "ended-2")
        first = await ask(one, one.daemon.jobs.prune, "ended-1", ADA, "old", of("Prune", "ended-1"))
        forget(one, "ended-1")
        second = await ask(one, one.daemon.jobs.prune, "ended-1", ADA, "old", of("Prune", "ended-1"))
        await again(one)
        prune = one.daemon.jobs.prune
        third = await ask(one, prune, "ended-1", ADA, "old", of("Prune", "ended-1"))
        other = await ask(one, prune, "ended-2", ADA, "old", of("Prune", "ended-2"))
        stranger = await ask(one, prune, "ended-1", ADA, "old", of("Prune", "ended-1", uid=99))

        assert (False, True, True) == (first, second, third)
        assert isinstance(other, Refusal)
        assert "request_conflict" == other.code
        assert "(Prune ended-1)" in other.reason
        assert one.layout.archived("ended-2").is_dir()
        assert isinstance(stranger, Refusal)
        assert "gone" == stranger.code

    cases.play_started(backend, case)


def test_what_was_cut_off_is_done_when_it_is_asked_again(backend: str) -> None:
    """A kill between the receipt and the deed, and one in the middle of the deed: asked again, it is done."""

    async def case(one: World) -> None:
        await ended(one, "ended-1", "ended-2")
        now = one.daemon.supervisor.clock.now()
        for job in ("ended-1", "ended-2"):
            asked = of("Prune", job, request=job)
            receipt = receipts.HouseReceipt(
                uid=ADA.uid, value=job, method="Prune", content=asked.digest, at=now, job=job
            )
            receipts.keep(one.layout, receipt)
        farewell = retire.Farewell(id="ended-2", how="pruned", by="ada", at=now)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(retire, "remove", lambda _: False)
            retire.prune(one.layout, farewell)
        await again(one)
        done = [
            await ask(one, one.daemon.jobs.prune, job, ADA, "", of("Prune", job, request=job))
            for job in ("ended-1", "ended-2")
        ]
        forget(one, "ended-1", "ended-2")

        assert [False, True] == done
        assert not one.layout.archived("ended-1").exists()

    cases.play_started(backend, case)


def test_refusals_are_not_remembered_and_ids_end(backend: str) -> None:
    """What was refused may be asked again under its id; after seven days an id means nothing any more."""

    async def case(one: World) -> None:
        prune = one.daemon.jobs.prune
        refused = await ask(one, prune, "ended-1", ADA, "", of("Prune", "ended-1"))
        kept = receipts.find(one.layout, ADA.uid, "r-1")
        await ended(one, "ended-1", "ended-2")
        done = await ask(one, prune, "ended-1", ADA, "", of("Prune", "ended-1"))
        forget(one, "ended-1")
        found = receipts.find(one.layout, ADA.uid, "r-1")
        assert found is not None
        receipts.drop(one.layout, found)
        early = evolve(found.at, wall=found.at.wall - round(KEPT_SECONDS * 1e6))
        receipts.keep(one.layout, evolve(found, at=evolve(early, boot="another")))
        late = await ask(one, prune, "ended-2", ADA, "", of("Prune", "ended-2"))
        forget(one, "ended-2")

        assert isinstance(refused, Refusal)
        assert (None, False, False) == (kept, done, late)

    cases.play_started(backend, case)


def test_restore_under_its_id_is_one_restore(backend: str) -> None:
    """Asked again it is answered as done; once the job is set aside anew, it is another matter: the first
    answer stands, and nothing is moved."""

    async def case(one: World) -> None:
        good = await broken(one, "bad-1")
        for path, raw in good.items():
            path.write_bytes(raw)
        jobs = one.daemon.jobs
        first = await ask(one, jobs.restore, "bad-1", ADA, "mended", of("Restore", "bad-1"))
        second = await ask(one, jobs.restore, "bad-1", ADA, "mended", of("Restore", "bad-1"))
        one.jobs.append("bad-1")
        await one.passes(60.0)
        await broken(one, "bad-1", made=False)
        third = await ask(one, one.daemon.jobs.restore, "bad-1", ADA, "mended", of("Restore", "bad-1"))

        assert isinstance(first, Told)
        assert isinstance(second, Told)
        assert isinstance(third, Told)
        assert (False, True, True) == (first.known, second.known, third.known)
        assert first.said == second.said
        assert third.said.endswith("has been set aside again since")
        assert (one.layout.quarantine / "bad-1").is_dir()

    cases.play_started(backend, case)


def test_discard_under_its_id_is_one_discard(backend: str) -> None:
    """Asked again it is answered as done, and the job is found for whoever asked, by that id alone."""

    async def case(one: World) -> None:
        await broken(one, "bad-1")
        jobs = one.daemon.jobs
        first = await ask(one, jobs.discard, "bad-1", ADA, "", of("Discard", "bad-1"))
        second = await ask(one, jobs.discard, "bad-1", ADA, "", of("Discard", "bad-1"))
        left = [
            await ask(one, jobs.left, uid, request, name)
            for uid, request, name in (
                (ADA.uid, "r-1", "bad"), (ADA.uid, "r-1", ""), (ADA.uid, "r-2", "bad-1"),
                (99, "r-1", "bad-1"),
            )
        ]  # fmt: skip

        assert isinstance(first, Told)
        assert isinstance(second, Told)
        assert (False, True, first.said) == (first.known, second.known, second.said)
        assert ["bad-1", "", "", ""] == left

    cases.play_started(backend, case)


def test_reload_under_its_id_is_answered_once(backend: str) -> None:
    """The first answer is given again, also after a kill; without an id everything is read each time."""

    async def case(one: World) -> None:
        did: list[int] = []

        async def act() -> tuple[tuple[str, ...], tuple[str, ...]]:
            did.append(1)
            return (f"read {len(did)}",), ("a problem",)

        def tell(request: str) -> Any:
            return ask(one, one.daemon.jobs.once.tell, of("Reload", "", request), act)

        first = await tell("r-1")
        await again(one)
        answers = [await tell("r-1"), await tell(""), await tell(""), await tell("r-2")]

        assert (("read 1",), ("a problem",), False) == first
        assert [True, False, False, False] == [known for _, _, known in answers]
        assert ["read 1", "read 2", "read 3", "read 4"] == [said[0] for said, _, _ in answers]

    cases.play_started(backend, case)
