"""SIGKILL of the daemon at any moment: what was done stays done, what was in progress is asked about."""

import random
import shutil
from pathlib import Path

import pytest

from resumed.actors.clock import SystemClock
from resumed.actors.machine import due
from resumed.actors.machine.transition import transition
from resumed.schemas import events
from resumed.schemas.job import ItemState
from resumed.schemas.snapshot import Entry, Snapshot

from .kit import FINAL, Daemon, pass_by, until

AGAIN, ONCE = "again", "once"
ITEMS = [f"i{number}" for number in range(6)]
KILLS = 200


class Story:
    """Two jobs at a time, one that may be repeated and one that may not, and kills among them."""

    def __init__(self, daemon: Daemon, seed: int) -> None:
        self.daemon = daemon
        self.random = random.Random(seed)
        self.rounds = self._asked = 0
        self.jobs: dict[str, str] = {}
        self.done: dict[str, dict[str, int]] = {}
        """By job: how long the witness was at the first kill that found the item done on the disk."""
        self.retried: dict[tuple[str, str], int] = {}
        self.interrupted = self.held = 0

    def begin(self) -> None:
        """A fresh job of each kind where the last has ended; stuck items are given to a person."""
        for kind in (AGAIN, ONCE):
            job = self.jobs.get(kind)
            row = None if job is None else self.daemon.row(job)
            if row is not None and row["held"]:
                self._retry(row["id"])
            if row is None or row["status"] in FINAL:
                self.rounds += 1
                self.jobs[kind] = f"{kind}-{self.rounds}"
                self.daemon.submit(self.jobs[kind], kind, ITEMS)

    def _retry(self, job: str) -> None:
        for item in self.daemon.items(job).values():
            if item["state"] == "held":
                self.retried[job, item["id"]] = self.retried.get((job, item["id"]), 0) + 1
        self.daemon.ask("Retry", job=job)

    def kill(self) -> None:
        """At a moment of chance: after some lines of the witness, and up to 20 ms more."""
        size = self.daemon.witness.size() + self.random.randrange(-100, 300)
        until(lambda: self.daemon.witness.size() >= size or self._idle(), "the items go on", every=0.004)
        pass_by(self.random.uniform(0, 0.02))
        self.daemon.kill()
        self.daemon.bury()

    def kill_at_start(self) -> None:
        """A daemon that is killed before, while or just after it loads its jobs."""
        self.daemon.start(ready=False)
        pass_by(self.random.uniform(0.2, 0.8))
        self.daemon.kill()
        self.daemon.bury()

    def _idle(self) -> bool:
        # Asked seldom: a drill that asks all the time measures itself.
        self._asked += 1
        if self._asked % 50:
            return False
        return all(self.daemon.row(job)["status"] in (*FINAL, "held") for job in self.jobs.values())

    def look(self) -> dict[str, tuple[Snapshot, str]]:
        """What two copies of the state say of each job: the same, down to what would be decided next."""
        copies = [self.daemon.copy_state(name) for name in ("copy-1", "copy-2")]
        found = {}
        for job in self.jobs.values():
            if job not in self.daemon.jobs_on_disk():
                continue
            one, two = (self._decided(job, copy) for copy in copies)
            assert one == two
            found[job] = one
            self._note_done(job, one[0])
        for copy in copies:
            shutil.rmtree(copy)
        return found

    def _decided(self, job: str, copy: Path) -> tuple[Snapshot, str]:
        recovered = self.daemon.recover(job, copy)
        now = SystemClock().now()
        verdict = transition(recovered.snapshot, events.Woke(), now)
        first = verdict.decision.choice if isinstance(verdict, Entry) else ""
        return recovered.snapshot, f"{first} {due.due(recovered.snapshot, recovered.snapshot.job.created)}"

    def _note_done(self, job: str, snapshot: Snapshot) -> None:
        seen = self.done.setdefault(job, {})
        done = {item.id for item in snapshot.items if item.state is ItemState.DONE}
        assert set(seen) <= done, "what was done is no longer done"
        for item in done - set(seen):
            seen[item] = self.daemon.witness.size()

    def compare(self, before: dict[str, tuple[Snapshot, str]]) -> None:
        """After the restart: each item in progress went where its step says."""
        for job, (snapshot, _) in before.items():
            cut = [item.id for item in snapshot.items if item.state is ItemState.IN_PROGRESS]
            if not cut or snapshot.outcome is not None:
                continue
            after = self._woken(job, snapshot.sequence)
            for item in cut:
                self.interrupted += 1
                if job.startswith(ONCE):
                    self.held += 1
                    assert ("held", "interrupted") == (after[item]["state"], after[item]["code"])
                else:
                    assert after[item]["state"] != "held" or after[item]["code"] == "crashes"
                assert after[item]["tries"] >= snapshot.items[item].tries

    def _woken(self, job: str, sequence: int) -> dict[str, dict[str, str]]:
        until(lambda: self.daemon.row(job)["sequence"] > sequence, f"{job} woke", every=0.005)
        return self.daemon.items(job)

    def finish(self) -> None:
        """No more kills: both jobs end."""
        for _ in range(len(ITEMS) + 1):
            for job in self.jobs.values():
                row = self.daemon.wait_status(job, *FINAL, "held")
                if row["status"] == "held":
                    self._retry(job)
        for job in self.jobs.values():
            self.daemon.wait_status(job, "completed")

    def check_witness(self) -> int:
        """Never after done, never twice at once; what must not be repeated only after a person's word."""
        starts = self.daemon.witness.lines(event="start")
        for said in starts:
            assert said.place < self.done.get(said.job, {}).get(said.item, 1 << 60), f"ran after done: {said}"
        assert [] == self.daemon.witness.overlaps()
        counted: dict[tuple[str, str], int] = {}
        for said in starts:
            counted[said.job, said.item] = counted.get((said.job, said.item), 0) + 1
        for (job, item), count in counted.items():
            if job.startswith(ONCE):
                assert count <= 1 + self.retried.get((job, item), 0), (job, item)
        for job in self.jobs.values():
            for item in self.daemon.items(job).values():
                assert item["tries"] >= counted.get((job, item["id"]), 0)
        return len(starts) - len(counted)


@pytest.mark.timeout(1500)
def test_nothing_done_runs_again_however_the_daemon_is_killed(daemon: Daemon, faults_scale: float) -> None:
    """C01: a durable result is never computed again, what was in progress is re-attempted where its step may
    be repeated and held where not, and two recoveries of one disk decide the same."""
    for name, repeatable in ((AGAIN, True), (ONCE, False)):
        daemon.works(
            name,
            "work",
            12,
            repeatable=repeatable,
            parallel=2,
            tries=3,
            backoff={"first": "1ms", "max": "1ms"},
        )
    daemon.configure(workers=2)
    story = Story(daemon, 1)
    daemon.start()
    for number in range(round(KILLS * faults_scale)):
        if number % 4 == 3:
            story.daemon.kill()
            story.kill_at_start()
        else:
            story.begin()
            story.kill()
        before = story.look()
        daemon.start()
        story.compare(before)
    story.finish()
    again = story.check_witness()
    daemon.kill()
    daemon.bury()

    assert story.interrupted > 0
    assert story.held > 0
    assert again > 0
    assert 0 == daemon.fsck().returncode, daemon.fsck().stdout
