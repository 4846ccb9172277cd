"""Jobs leave by a person's word: back out of the quarantine, or for good; nothing else is touched by it."""

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from loop import cases
from loop.world import ADA, World
from test_actor_finder import ask

from resumed.actors import retirement
from resumed.actors.entry import Stage
from resumed.actors.finder import Located
from resumed.schemas.effecttable import EffectTable
from resumed.schemas.job import Status
from resumed.schemas.ledger import Effect, EffectState
from resumed.schemas.refusal import Refusal
from resumed.schemas.views import AsideView, Told
from resumed.store import layout, retire

BACKENDS = ("asyncio", "trio")
pytestmark = [pytest.mark.parametrize("backend", BACKENDS), pytest.mark.usefixtures("quiet")]


async def paused(one: World, job: str) -> Path:
    """A job that is parked, and where it lies."""
    await one.admit(job, ["a", "b"])
    one.daemon.soon(one.daemon.ask, job, "Pause")
    await one.until(lambda: one.entry(job).row.status == "paused")  # type: ignore[union-attr]
    folder = one.place(job)
    assert folder is not None
    return folder


async def broken(one: World, job: str, *, made: bool = True) -> dict[Path, bytes]:
    """The job (with `made` a new one) is damaged and set aside; its good files, by where they lie now."""
    folder = await paused(one, job) if made else one.layout.job(job)
    await one.kill()
    good = {path: path.read_bytes() for path in folder.glob("*.log")}
    for path, raw in good.items():
        path.write_bytes(raw.replace(b" {", b" [", 2))
    one.weather.revive()
    one.jobs.clear()
    one.numbered += len(one.asked)
    one.asked.clear()
    await one.start()
    await one.until(lambda: one.entry(job) is None)
    aside = one.layout.quarantine / job
    return {aside / path.name: raw for path, raw in good.items()}


def test_job_is_restored_once_its_files_hold(backend: str) -> None:
    """A restore is refused with what is wrong and moves nothing; mended, the job is back and goes on."""

    async def case(one: World) -> None:
        good = await broken(one, "bad-1")
        jobs = one.daemon.jobs
        shown = await ask(one, jobs.aside, "bad-1")
        refused = await ask(one, jobs.restore, "bad-1", ADA, "")
        there = (one.layout.quarantine / "bad-1").is_dir()
        for path, raw in good.items():
            path.write_bytes(raw)
        mended = await ask(one, jobs.aside, "bad-1")
        told = await ask(one, jobs.restore, "bad-1", ADA, "mended")
        again = await ask(one, jobs.restore, "bad-1", ADA, "")

        assert isinstance(shown, AsideView)
        assert (False, True) == (shown.loads, any(each.fatal for each in shown.findings))
        assert "ada" == shown.requester
        assert isinstance(refused, Refusal)
        assert ("does_not_load", True) == (refused.code, there)
        assert "does not verify" in refused.reason
        assert mended.loads
        assert isinstance(told, Told)
        assert ("bad-1 is back in its place: it is paused", Status.PAUSED) == (told.said, told.row.status)
        assert isinstance(again, Refusal)
        assert "not_aside" == again.code
        assert [] == await ask(one, jobs.quarantined)
        one.jobs.append("bad-1")
        one.daemon.soon(one.daemon.ask, "bad-1", "Resume")
        await one.until(lambda: one.entry("bad-1") is None)
        assert one.layout.archived("bad-1").is_dir()

    cases.play_started(backend, case)


def test_discarded_job_is_gone_and_never_comes_again(backend: str) -> None:
    """Given up, it is in no list; who names it is told by whom and why; its id admits nothing."""

    async def case(one: World) -> None:
        await paused(one, "good-1")
        await broken(one, "bad-1")
        jobs = one.daemon.jobs
        told = await ask(one, jobs.discard, "bad-1", ADA, "not ours")
        named = await ask(one, jobs.locate, "bad-1")
        again = await ask(one, jobs.discard, "bad-1", ADA, "")
        job = b'{"workflow":"label","id":"bad-1","items":[{"id":"a"}]}'
        submitted = await ask(one, lambda: jobs.submit(job, name="x", requester=ADA, via="test"))

        assert isinstance(told, Told)
        assert isinstance(named, Refusal)
        assert "there is no job 'bad-1' any more: it was discarded on " in named.reason
        assert named.reason.endswith("by ada (not ours)")
        assert isinstance(again, Refusal)
        assert "not_aside" == again.code
        assert isinstance(submitted, Refusal)
        assert "which is gone for good" in submitted.reason
        assert [] == await ask(one, jobs.quarantined)
        assert ["good-1"] == [row.id for row in jobs.rows()]

    cases.play_started(backend, case)


def test_job_in_its_place_is_read_again(backend: str) -> None:
    """A job that the daemon gave up on without moving it is not discarded, and is opened again when asked."""

    async def case(one: World) -> None:
        await paused(one, "odd-1")
        entry = one.entry("odd-1")
        assert entry is not None
        one.daemon.supervisor._aside(entry, "its actor keeps dying")
        jobs = one.daemon.jobs
        shown = await ask(one, jobs.aside, "odd-1")
        discarded = await ask(one, jobs.discard, "odd-1", ADA, "")
        entry.moving = True
        moving = await ask(one, jobs.restore, "odd-1", ADA, "")
        entry.moving = False
        told = await ask(one, jobs.restore, "odd-1", ADA, "")

        assert (True, False) == (shown.loads, shown.job.moved)
        assert isinstance(discarded, Refusal)
        assert "in_its_place" == discarded.code
        assert isinstance(moving, Refusal)
        assert "busy" == moving.code
        assert isinstance(told, Told)
        after = one.entry("odd-1")
        assert after is not entry
        await one.until(lambda: one.entry("odd-1").stage is Stage.PARKED)  # type: ignore[union-attr]

    cases.play_started(backend, case)


def test_ended_jobs_are_listed_and_pruned(backend: str) -> None:
    """What ended is told with its time and size, oldest first; pruned, its id stays taken; open jobs stay."""

    async def case(one: World) -> None:
        for job in ("ended-1", "ended-2"):
            await one.admit(job, ["a"])
            await one.until(lambda job=job: one.entry(job) is None)  # type: ignore[misc]
        await paused(one, "open-1")
        jobs = one.daemon.jobs
        many = one.daemon.supervisor.roll.ended
        rows, count = await ask(one, jobs.ended_before, 0.0, ())
        none, _ = await ask(one, jobs.ended_before, 1e9, ())
        one_row, _ = await ask(one, jobs.ended_before, 0.0, ("ended-2", "../x"))
        kept = await ask(one, jobs.prune, "open-1", ADA, "")
        gone = await ask(one, jobs.prune, "ended-1", ADA, "old")
        again = await ask(one, jobs.prune, "ended-1", ADA, "")

        assert (["ended-1", "ended-2"], 2) == (sorted(row.id for row in rows), count)
        assert all(row.size > 0 and row.ended.endswith("Z") for row in rows)
        assert ((), ["ended-2"]) == (none, [row.id for row in one_row])
        assert isinstance(kept, Refusal)
        assert "not_ended" == kept.code
        assert gone is False
        assert isinstance(again, Refusal)
        one.jobs.remove("ended-1")
        assert many - 1 == one.daemon.supervisor.roll.ended
        assert not one.layout.archived("ended-1").exists()
        assert layout.taken(one.layout, "ended-1")

    cases.play_started(backend, case)


def test_nothing_unsettled_is_given_up(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nobody knows whether something reached another system, neither discard nor prune removes it."""

    async def case(one: World) -> None:
        await one.admit("ended-1", ["a"])
        await one.until(lambda: one.entry("ended-1") is None)
        effect = Effect(
            id="e", state=EffectState.UNKNOWN, item="a", business_object="b", operation_key="k",
            fingerprint="f", tool="bank.transfer", target="bank", arguments="{}",
        )  # fmt: skip
        load = one.daemon.supervisor.load

        def unsettled(folder: Path) -> Any:
            found = load(folder)
            return evolve(found, snapshot=evolve(found.snapshot, effects=EffectTable((effect,))))

        monkeypatch.setattr(one.daemon.supervisor, "load", unsettled)
        refused = await ask(one, one.daemon.jobs.prune, "ended-1", ADA, "")

        assert isinstance(refused, Refusal)
        assert "unsettled" == refused.code
        assert one.layout.archived("ended-1").is_dir()
        assert None is retire.farewell_of(one.layout, "ended-1")

    assert EffectState.DISPATCHING in retirement.UNSETTLED
    cases.play_started(backend, case)


def test_prefix_finds_ended_jobs_and_those_set_aside(backend: str) -> None:
    """Open jobs come first; then what has ended or is set aside; several are named."""

    async def case(one: World) -> None:
        for job in ("pier-1", "pier-22"):
            await one.admit(job, ["a"])
            await one.until(lambda job=job: one.entry(job) is None)  # type: ignore[misc]
        await broken(one, "pier-3")
        await paused(one, "port-1")
        locate = one.daemon.jobs.locate
        several = await ask(one, locate, "pier")
        ended = await ask(one, locate, "pier-2")
        exact = await ask(one, locate, "pier-1")
        aside = await ask(one, locate, "pier-3")
        first = await ask(one, locate, "p")
        none = await ask(one, locate, "pier-9")

        assert isinstance(several, Refusal)
        assert ("ambiguous", "'pier' begins 3 jobs: pier-1, pier-22, pier-3") == (
            several.code,
            several.reason,
        )
        assert tuple(f"resumectl show {job}" for job in ("pier-1", "pier-22", "pier-3")) == several.commands
        assert (Located("pier-22", None), Located("pier-1", None)) == (ended, exact)
        assert isinstance(aside, Located)
        assert aside.aside is not None
        assert aside.aside.reason.startswith("pier-3 is set aside: ")
        assert Located("port-1", None) == evolve(first, whose=None)
        assert isinstance(none, Refusal)
        assert "no_such_job" == none.code

    cases.play_started(backend, case)


def test_what_ended_lately_is_counted_across_a_restart(backend: str) -> None:
    """How many ended since an instant is known of this daemon's time, and of the one before from the disk."""

    async def case(one: World) -> None:
        for job in ("ended-1", "ended-2"):
            await one.admit(job, ["a"])
            await one.until(lambda job=job: one.entry(job) is None)  # type: ignore[misc]
        here = one.daemon.jobs.ended_since(0)
        later = one.daemon.jobs.ended_since(one.clock.now().wall + 1)
        await one.kill()
        one.weather.revive()
        await one.start()
        await one.until(lambda: one.daemon.supervisor.roll.ended == 2)
        await one.until(lambda: one.daemon.jobs.ended_since(0) == 2)

        assert (2, 0) == (here, later)
        assert 0 == one.daemon.jobs.ended_since(10**18)

    cases.play_started(backend, case)
